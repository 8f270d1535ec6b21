//! Claims: what is wanted, and the leases that come of it.

use std::sync::Arc;
use std::time::Duration;

use trapline_core::Timestamp;
use trapline_frontier::{Claimed, Lease, LeaseId, PageRecord, Visit, Want};

use super::{Unreadable, count, millis, read_identity, read_time, request, write_identity, write_time};
use crate::proto::v1;

pub(crate) fn write(crawl: Option<&str>, now: Timestamp, want: &Want) -> v1::ClaimRequest {
    let Want { urls, lease, queues, per_queue, min_queues, keys, except, partitions } = want;
    v1::ClaimRequest {
        crawl: crawl.map(str::to_owned),
        urls: *urls as u64,
        lease_ms: lease.map(millis),
        queues: queues.map(|queues| queues as u64),
        per_queue: per_queue.map(|urls| urls as u64),
        min_queues: min_queues.map(|queues| queues as u64),
        keys: keys.clone().map(|keys| v1::Keys { keys }),
        except: except.clone(),
        partitions: partitions.clone().map(|partitions| v1::Partitions { partitions }),
        wait_ms: 0,
        now_ms: Some(now.as_millis()),
    }
}

pub(crate) fn read(request: v1::ClaimRequest) -> Want {
    let v1::ClaimRequest {
        crawl: _,
        urls,
        lease_ms,
        queues,
        per_queue,
        min_queues,
        keys,
        except,
        partitions,
        wait_ms: _,
        now_ms: _,
    } = request;
    Want {
        urls: count(urls),
        lease: lease_ms.map(Duration::from_millis),
        queues: queues.map(count),
        per_queue: per_queue.map(count),
        min_queues: min_queues.map(count),
        keys: keys.map(|keys| keys.keys),
        except,
        partitions: partitions.map(|partitions| partitions.partitions),
    }
}

pub(crate) fn write_claimed(claimed: &Claimed) -> v1::ClaimResponse {
    let Claimed { leases, next, exhausted } = claimed;
    v1::ClaimResponse {
        leases: leases.iter().map(write_lease).collect(),
        next_ms: write_time(*next),
        exhausted: *exhausted,
    }
}

pub(crate) fn read_claimed(claimed: v1::ClaimResponse) -> Result<Claimed, Unreadable> {
    let v1::ClaimResponse { leases, next_ms, exhausted } = claimed;
    Ok(Claimed {
        leases: leases.into_iter().map(read_lease).collect::<Result<_, _>>()?,
        next: read_time(next_ms),
        exhausted,
    })
}

fn write_lease(lease: &Lease) -> v1::Lease {
    let Lease { id, crawl, key, identity, request, deadline, delivery, retries, cost, page } = lease;
    v1::Lease {
        id: id.0,
        crawl: crawl.to_string(),
        key: key.to_string(),
        identity: write_identity(*identity),
        request: Some(request::write(request)),
        deadline_ms: deadline.as_millis(),
        delivery: *delivery,
        retries: *retries,
        cost: *cost,
        page: page.as_deref().map(write_page),
    }
}

fn read_lease(lease: v1::Lease) -> Result<Lease, Unreadable> {
    let v1::Lease { id, crawl, key, identity, request, deadline_ms, delivery, retries, cost, page } = lease;
    Ok(Lease {
        id: LeaseId(id),
        crawl: Arc::from(crawl),
        key: Arc::from(key),
        identity: read_identity(&identity)?,
        request: Arc::new(request::given(request)?),
        deadline: Timestamp::from_millis(deadline_ms),
        delivery,
        retries,
        cost,
        page: page.map(read_page).transpose()?.map(Arc::new),
    })
}

pub(super) fn write_page(page: &PageRecord) -> v1::PageRecord {
    let PageRecord { visited, visit, visits, changes, next } = page;
    v1::PageRecord {
        visited_ms: visited.as_millis(),
        visit: Some(write_visit(visit)),
        visits: *visits,
        changes: *changes,
        next_ms: write_time(*next),
    }
}

pub(super) fn read_page(page: v1::PageRecord) -> Result<PageRecord, Unreadable> {
    let v1::PageRecord { visited_ms, visit, visits, changes, next_ms } = page;
    Ok(PageRecord {
        visited: Timestamp::from_millis(visited_ms),
        visit: read_visit(visit.unwrap_or_default())?,
        visits,
        changes,
        next: read_time(next_ms),
    })
}

pub(super) fn write_visit(visit: &Visit) -> v1::Visit {
    let Visit { status, bytes, etag, last_modified, digest, simhash } = visit;
    v1::Visit {
        status: u32::from(*status),
        bytes: *bytes,
        etag: etag.clone(),
        last_modified: last_modified.clone(),
        digest: digest.clone(),
        simhash: *simhash,
    }
}

pub(super) fn read_visit(visit: v1::Visit) -> Result<Visit, Unreadable> {
    let v1::Visit { status, bytes, etag, last_modified, digest, simhash } = visit;
    let status =
        u16::try_from(status).map_err(|_| Unreadable::beyond("status", status, "from 0 to 65535"))?;
    Ok(Visit { status, bytes, etag, last_modified, digest, simhash })
}
