//! Leases as messages: what a claim got, with requests and page records.

use std::sync::Arc;

use prost::Message;
use trapline_core::{Request, Timestamp};
use trapline_frontier::{Claimed, Lease, LeaseId, PageRecord, Visit, payload};

use super::settle::VisitMessage;
use super::{IdentityMessage, Unreadable, read_time};

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ClaimedMessage {
    #[prost(message, repeated, tag = "1")]
    leases: Vec<LeaseMessage>,
    #[prost(uint64, optional, tag = "2")]
    next: Option<u64>,
    #[prost(bool, tag = "3")]
    exhausted: bool,
}

#[derive(Clone, PartialEq, Message)]
struct LeaseMessage {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(string, tag = "2")]
    crawl: String,
    #[prost(string, tag = "3")]
    key: String,
    #[prost(message, optional, tag = "4")]
    identity: Option<IdentityMessage>,
    #[prost(message, optional, tag = "5")]
    request: Option<RequestMessage>,
    #[prost(uint64, tag = "6")]
    deadline: u64,
    #[prost(uint32, tag = "7")]
    delivery: u32,
    #[prost(uint32, tag = "8")]
    retries: u32,
    #[prost(uint32, tag = "9")]
    cost: u32,
    #[prost(message, optional, tag = "10")]
    page: Option<PageMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RequestMessage {
    #[prost(string, tag = "1")]
    url: String,
    /// The rest of the request: see [`payload`].
    #[prost(bytes = "vec", tag = "2")]
    rest: Vec<u8>,
}

/// A page record.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PageMessage {
    #[prost(uint64, tag = "1")]
    visited: u64,
    #[prost(message, optional, tag = "2")]
    visit: Option<VisitMessage>,
    #[prost(uint32, tag = "3")]
    visits: u32,
    #[prost(uint32, tag = "4")]
    changes: u32,
    #[prost(uint64, optional, tag = "5")]
    next: Option<u64>,
}

impl From<&Request> for RequestMessage {
    fn from(request: &Request) -> Self {
        Self { url: request.url.clone(), rest: payload::encode(request) }
    }
}

impl RequestMessage {
    pub(super) fn read(self) -> Result<Arc<Request>, Unreadable> {
        let Self { url, rest } = self;
        Ok(Arc::new(payload::decode(url, &rest)?))
    }
}

pub(super) fn read_request(request: Option<RequestMessage>) -> Result<Arc<Request>, Unreadable> {
    request.ok_or(Unreadable::Lacks("a request"))?.read()
}

impl From<&PageRecord> for PageMessage {
    fn from(record: &PageRecord) -> Self {
        let PageRecord { visited, visit, visits, changes, next } = record;
        Self {
            visited: visited.as_millis(),
            visit: (*visit != Visit::default()).then(|| visit.into()),
            visits: *visits,
            changes: *changes,
            next: next.map(Timestamp::as_millis),
        }
    }
}

impl PageMessage {
    pub(super) fn read(self) -> Result<Arc<PageRecord>, Unreadable> {
        let Self { visited, visit, visits, changes, next } = self;
        Ok(Arc::new(PageRecord {
            visited: read_time(visited),
            visit: visit.map(VisitMessage::read).transpose()?.unwrap_or_default(),
            visits,
            changes,
            next: next.map(read_time),
        }))
    }
}

impl From<&Lease> for LeaseMessage {
    fn from(lease: &Lease) -> Self {
        let Lease { id, crawl, key, identity, request, deadline, delivery, retries, cost, page } = lease;
        Self {
            id: id.0,
            crawl: crawl.to_string(),
            key: key.to_string(),
            identity: Some((*identity).into()),
            request: Some((&**request).into()),
            deadline: deadline.as_millis(),
            delivery: *delivery,
            retries: *retries,
            cost: *cost,
            page: page.as_deref().map(PageMessage::from),
        }
    }
}

impl LeaseMessage {
    fn read(self) -> Result<Lease, Unreadable> {
        let Self { id, crawl, key, identity, request, deadline, delivery, retries, cost, page } = self;
        Ok(Lease {
            id: LeaseId(id),
            crawl: Arc::from(crawl),
            key: Arc::from(key),
            identity: identity.ok_or(Unreadable::Lacks("an identity"))?.into(),
            request: read_request(request)?,
            deadline: read_time(deadline),
            delivery,
            retries,
            cost,
            page: page.map(PageMessage::read).transpose()?,
        })
    }
}

impl From<&Claimed> for ClaimedMessage {
    fn from(claimed: &Claimed) -> Self {
        let Claimed { leases, next, exhausted } = claimed;
        Self {
            leases: leases.iter().map(LeaseMessage::from).collect(),
            next: next.map(Timestamp::as_millis),
            exhausted: *exhausted,
        }
    }
}

impl ClaimedMessage {
    pub(crate) fn read(self) -> Result<Claimed, Unreadable> {
        let Self { leases, next, exhausted } = self;
        let leases: Result<_, _> = leases.into_iter().map(LeaseMessage::read).collect();
        Ok(Claimed { leases: leases?, next: next.map(read_time), exhausted })
    }
}

#[cfg(test)]
pub(super) fn sample_page() -> Arc<PageRecord> {
    use trapline_frontier::Visit;
    let visit = Visit { status: 304, etag: Some(String::new()), simhash: Some(0), ..Visit::default() };
    Arc::new(PageRecord {
        visited: Timestamp::MAX,
        visit,
        visits: u32::MAX,
        changes: 1,
        next: Some(Timestamp::ZERO),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_come_back_as_they_were() {
        let candidates = super::super::candidate::samples();
        let leases = candidates.into_iter().enumerate().map(|(number, candidate)| Lease {
            id: LeaseId(u64::MAX - number as u64),
            crawl: Arc::from("c"),
            key: candidate.key,
            identity: candidate.identity,
            request: candidate.request,
            deadline: Timestamp::MAX,
            delivery: 1,
            retries: 2,
            cost: u32::MAX,
            page: number.is_multiple_of(2).then(sample_page),
        });
        let full = Claimed { leases: leases.collect(), next: Some(Timestamp::ZERO), exhausted: true };
        for claimed in [Claimed::default(), full] {
            let bytes = ClaimedMessage::from(&claimed).encode_to_vec();
            assert_eq!(ClaimedMessage::decode(&*bytes).unwrap().read().unwrap(), claimed);
        }
    }
}
