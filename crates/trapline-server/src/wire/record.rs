//! Records: what a crawl consists of, as one frontier hands it to another.

use std::sync::Arc;

use trapline_core::{Terms, Timestamp};
use trapline_frontier::{CrawlRecord, QueueRecord, Record, RetiredBy, UrlRecord, UrlStanding};

use super::{
    Unreadable, byte, candidate, claim, read_identity, read_time, request, settle, write_identity, write_time,
};
use crate::proto::v1;
use v1::queue_record::Retired;
use v1::record::Record as RecordMessage;
use v1::url_record::Standing;

pub(super) fn write(record: &Record) -> v1::Record {
    v1::Record {
        record: Some(match record {
            Record::Url(url) => RecordMessage::Url(write_url(url)),
            Record::Queue(queue) => RecordMessage::Queue(write_queue(queue)),
            Record::Note(note) => RecordMessage::Note(settle::write_note(note)),
            Record::Crawl(crawl) => RecordMessage::Crawl(write_crawl(*crawl)),
        }),
    }
}

pub(super) fn read(record: v1::Record) -> Result<Record, Unreadable> {
    Ok(match record.record.ok_or_else(|| Unreadable::lacks("a record it knows"))? {
        RecordMessage::Url(url) => Record::Url(Box::new(read_url(url)?)),
        RecordMessage::Queue(queue) => Record::Queue(Box::new(read_queue(queue)?)),
        RecordMessage::Note(note) => Record::Note(settle::read_note(note)),
        RecordMessage::Crawl(crawl) => Record::Crawl(read_crawl(crawl)),
    })
}

fn write_url(url: &UrlRecord) -> v1::UrlRecord {
    let UrlRecord { request, identity, key, class, cost, standing, page, visits, retries, expiries, entries } =
        url;
    v1::UrlRecord {
        request: Some(request::write(request)),
        identity: write_identity(*identity),
        key: key.to_string(),
        class: u32::from(*class),
        cost: *cost,
        page: page.as_deref().map(claim::write_page),
        visits: *visits,
        retries: *retries,
        expiries: *expiries,
        entries: *entries,
        standing: Some(match standing {
            UrlStanding::Pending(None) => Standing::Pending(true),
            UrlStanding::Pending(Some(since)) => Standing::PendingSinceMs(since.as_millis()),
            UrlStanding::Returned(at) => Standing::ReturnedMs(at.as_millis()),
            UrlStanding::Retry(at) => Standing::RetryMs(at.as_millis()),
            UrlStanding::Scheduled(at) => Standing::ScheduledMs(at.as_millis()),
            UrlStanding::Leased => Standing::Leased(true),
            UrlStanding::Done(None) => Standing::Done(true),
            UrlStanding::Done(Some(until)) => Standing::DoneUntilMs(until.as_millis()),
            UrlStanding::Disregarded(reason) => Standing::Disregarded(reason.clone()),
            UrlStanding::Dead { reason, at } => {
                Standing::Dead(v1::Dying { reason: reason.clone(), at_ms: at.as_millis() })
            }
        }),
    }
}

fn read_url(url: v1::UrlRecord) -> Result<UrlRecord, Unreadable> {
    let v1::UrlRecord {
        request,
        identity,
        key,
        class,
        cost,
        page,
        visits,
        retries,
        expiries,
        entries,
        standing,
    } = url;
    let at = Timestamp::from_millis;
    Ok(UrlRecord {
        request: Arc::new(request::given(request)?),
        identity: read_identity(&identity)?,
        key: Arc::from(key),
        class: byte("class", class)?,
        cost,
        standing: match standing.ok_or_else(|| Unreadable::lacks("how a URL stands"))? {
            Standing::Pending(_) => UrlStanding::Pending(None),
            Standing::PendingSinceMs(since) => UrlStanding::Pending(Some(at(since))),
            Standing::ReturnedMs(ms) => UrlStanding::Returned(at(ms)),
            Standing::RetryMs(ms) => UrlStanding::Retry(at(ms)),
            Standing::ScheduledMs(ms) => UrlStanding::Scheduled(at(ms)),
            Standing::Leased(_) => UrlStanding::Leased,
            Standing::Done(_) => UrlStanding::Done(None),
            Standing::DoneUntilMs(until) => UrlStanding::Done(Some(at(until))),
            Standing::Disregarded(reason) => UrlStanding::Disregarded(reason),
            Standing::Dead(v1::Dying { reason, at_ms }) => UrlStanding::Dead { reason, at: at(at_ms) },
        },
        page: page.map(claim::read_page).transpose()?.map(Arc::new),
        visits,
        retries,
        expiries,
        entries,
    })
}

fn write_queue(queue: &QueueRecord) -> v1::QueueRecord {
    let QueueRecord {
        key,
        terms,
        steered,
        retired,
        blocked,
        next_fetch,
        group_next_fetch,
        active,
        balance,
        spent,
        grants,
        charged,
        latest_cost,
        errors,
    } = queue;
    let some = |terms: &Terms| (*terms != Terms::default()).then(|| candidate::write_terms(terms));
    v1::QueueRecord {
        key: key.to_string(),
        terms: some(terms),
        steered: some(steered),
        retired: retired.map(|by| match by {
            RetiredBy::Operator => Retired::ByOperator(true),
            RetiredBy::Budget => Retired::ByBudget(true),
        }),
        blocked_ms: write_time(*blocked),
        next_fetch_ms: write_time(*next_fetch),
        group_next_fetch_ms: write_time(*group_next_fetch),
        active: *active,
        balance: *balance,
        spent: *spent,
        grants: *grants,
        charged: *charged,
        latest_cost: *latest_cost,
        errors: *errors,
    }
}

fn read_queue(queue: v1::QueueRecord) -> Result<QueueRecord, Unreadable> {
    let v1::QueueRecord {
        key,
        terms,
        steered,
        retired,
        blocked_ms,
        next_fetch_ms,
        group_next_fetch_ms,
        active,
        balance,
        spent,
        grants,
        charged,
        latest_cost,
        errors,
    } = queue;
    Ok(QueueRecord {
        key: Arc::from(key),
        terms: candidate::read_terms(terms.unwrap_or_default())?,
        steered: candidate::read_terms(steered.unwrap_or_default())?,
        retired: retired.map(|by| match by {
            Retired::ByOperator(_) => RetiredBy::Operator,
            Retired::ByBudget(_) => RetiredBy::Budget,
        }),
        blocked: read_time(blocked_ms),
        next_fetch: read_time(next_fetch_ms),
        group_next_fetch: read_time(group_next_fetch_ms),
        active,
        balance,
        spent,
        grants,
        charged,
        latest_cost,
        errors,
    })
}

fn write_crawl(crawl: CrawlRecord) -> v1::CrawlRecord {
    let CrawlRecord { started, fetched, bytes, spent, granted, expired, turn } = crawl;
    v1::CrawlRecord { started_ms: started.as_millis(), fetched, bytes, spent, granted, expired, turn }
}

fn read_crawl(crawl: v1::CrawlRecord) -> CrawlRecord {
    let v1::CrawlRecord { started_ms, fetched, bytes, spent, granted, expired, turn } = crawl;
    CrawlRecord { started: Timestamp::from_millis(started_ms), fetched, bytes, spent, granted, expired, turn }
}
