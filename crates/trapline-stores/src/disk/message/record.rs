//! Records as messages: what is restored from another frontier.

use std::sync::Arc;

use prost::{Message, Oneof};
use trapline_core::{Terms, Timestamp};
use trapline_frontier::{CrawlRecord, QueueRecord, Record, RetiredBy, UrlRecord, UrlStanding, payload};

use super::candidate::TermsMessage;
use super::lease::PageMessage;
use super::settle::NoteMessage;
use super::{IdentityMessage, Unreadable, read_byte, read_time};

#[derive(Clone, PartialEq, Message)]
pub(super) struct RecordMessage {
    #[prost(oneof = "KindMessage", tags = "1, 2, 3, 4")]
    record: Option<KindMessage>,
}

#[derive(Clone, PartialEq, Oneof)]
enum KindMessage {
    #[prost(message, boxed, tag = "1")]
    Url(Box<UrlMessage>),
    #[prost(message, boxed, tag = "2")]
    Queue(Box<QueueMessage>),
    #[prost(message, tag = "3")]
    Note(NoteMessage),
    #[prost(message, tag = "4")]
    Crawl(CrawlMessage),
}

#[derive(Clone, PartialEq, Message)]
struct UrlMessage {
    #[prost(string, tag = "1")]
    url: String,
    /// The rest of the request: see [`payload`].
    #[prost(bytes = "vec", tag = "2")]
    rest: Vec<u8>,
    #[prost(message, optional, tag = "3")]
    identity: Option<IdentityMessage>,
    #[prost(string, tag = "4")]
    key: String,
    #[prost(uint32, tag = "5")]
    class: u32,
    #[prost(uint32, tag = "6")]
    cost: u32,
    #[prost(message, optional, tag = "7")]
    page: Option<PageMessage>,
    #[prost(uint32, tag = "8")]
    visits: u32,
    #[prost(uint32, tag = "9")]
    retries: u32,
    #[prost(uint32, tag = "10")]
    expiries: u32,
    #[prost(uint32, tag = "11")]
    entries: u32,
    #[prost(oneof = "StandingMessage", tags = "12, 13, 14, 15, 16, 17, 18, 19, 20, 21")]
    standing: Option<StandingMessage>,
}

#[derive(Clone, PartialEq, Oneof)]
enum StandingMessage {
    #[prost(bool, tag = "12")]
    Pending(bool),
    #[prost(uint64, tag = "13")]
    PendingSince(u64),
    #[prost(uint64, tag = "14")]
    Returned(u64),
    #[prost(uint64, tag = "15")]
    Retry(u64),
    #[prost(uint64, tag = "16")]
    Scheduled(u64),
    #[prost(bool, tag = "17")]
    Leased(bool),
    #[prost(bool, tag = "18")]
    Done(bool),
    #[prost(uint64, tag = "19")]
    DoneUntil(u64),
    #[prost(string, tag = "20")]
    Disregarded(String),
    #[prost(message, tag = "21")]
    Dead(DeathMessage),
}

#[derive(Clone, PartialEq, Message)]
struct DeathMessage {
    #[prost(string, tag = "1")]
    reason: String,
    #[prost(uint64, tag = "2")]
    at: u64,
}

#[derive(Clone, PartialEq, Message)]
struct QueueMessage {
    #[prost(string, tag = "1")]
    key: String,
    /// Left out where no term is given.
    #[prost(message, optional, tag = "2")]
    terms: Option<TermsMessage>,
    #[prost(message, optional, tag = "3")]
    steered: Option<TermsMessage>,
    #[prost(oneof = "RetiredMessage", tags = "4, 5")]
    retired: Option<RetiredMessage>,
    #[prost(uint64, optional, tag = "6")]
    blocked: Option<u64>,
    #[prost(uint64, optional, tag = "7")]
    next_fetch: Option<u64>,
    #[prost(uint64, optional, tag = "8")]
    group_next_fetch: Option<u64>,
    #[prost(bool, tag = "9")]
    active: bool,
    #[prost(sint64, tag = "10")]
    balance: i64,
    #[prost(uint64, tag = "11")]
    spent: u64,
    #[prost(uint32, tag = "12")]
    grants: u32,
    #[prost(uint64, tag = "13")]
    charged: u64,
    #[prost(uint32, tag = "14")]
    latest_cost: u32,
    #[prost(uint64, tag = "15")]
    errors: u64,
}

#[derive(Clone, Copy, PartialEq, Oneof)]
enum RetiredMessage {
    #[prost(bool, tag = "4")]
    Operator(bool),
    #[prost(bool, tag = "5")]
    Budget(bool),
}

#[derive(Clone, Copy, PartialEq, Message)]
struct CrawlMessage {
    #[prost(uint64, tag = "1")]
    started: u64,
    #[prost(uint64, tag = "2")]
    fetched: u64,
    #[prost(uint64, tag = "3")]
    bytes: u64,
    #[prost(uint64, tag = "4")]
    spent: u64,
    #[prost(uint64, tag = "5")]
    granted: u64,
    #[prost(uint64, tag = "6")]
    expired: u64,
    #[prost(uint32, tag = "7")]
    turn: u32,
}

impl From<&Record> for RecordMessage {
    fn from(record: &Record) -> Self {
        Self {
            record: Some(match record {
                Record::Url(url) => KindMessage::Url(Box::new((&**url).into())),
                Record::Queue(queue) => KindMessage::Queue(Box::new((&**queue).into())),
                Record::Note(note) => KindMessage::Note(note.into()),
                Record::Crawl(crawl) => KindMessage::Crawl((*crawl).into()),
            }),
        }
    }
}

impl RecordMessage {
    pub(super) fn read(self) -> Result<Record, Unreadable> {
        Ok(match self.record.ok_or(Unreadable::Lacks("a record"))? {
            KindMessage::Url(url) => Record::Url(Box::new(url.read()?)),
            KindMessage::Queue(queue) => Record::Queue(Box::new(queue.read()?)),
            KindMessage::Note(note) => Record::Note(note.read()),
            KindMessage::Crawl(crawl) => Record::Crawl(crawl.read()),
        })
    }
}

impl From<&UrlRecord> for UrlMessage {
    fn from(record: &UrlRecord) -> Self {
        let UrlRecord {
            request,
            identity,
            key,
            class,
            cost,
            standing,
            page,
            visits,
            retries,
            expiries,
            entries,
        } = record;
        Self {
            url: request.url.clone(),
            rest: payload::encode(request),
            identity: Some((*identity).into()),
            key: key.to_string(),
            class: (*class).into(),
            cost: *cost,
            page: page.as_deref().map(PageMessage::from),
            visits: *visits,
            retries: *retries,
            expiries: *expiries,
            entries: *entries,
            standing: Some(match standing {
                UrlStanding::Pending(None) => StandingMessage::Pending(true),
                UrlStanding::Pending(Some(at)) => StandingMessage::PendingSince(at.as_millis()),
                UrlStanding::Returned(at) => StandingMessage::Returned(at.as_millis()),
                UrlStanding::Retry(at) => StandingMessage::Retry(at.as_millis()),
                UrlStanding::Scheduled(at) => StandingMessage::Scheduled(at.as_millis()),
                UrlStanding::Leased => StandingMessage::Leased(true),
                UrlStanding::Done(None) => StandingMessage::Done(true),
                UrlStanding::Done(Some(at)) => StandingMessage::DoneUntil(at.as_millis()),
                UrlStanding::Disregarded(reason) => StandingMessage::Disregarded(reason.clone()),
                UrlStanding::Dead { reason, at } => {
                    StandingMessage::Dead(DeathMessage { reason: reason.clone(), at: at.as_millis() })
                }
            }),
        }
    }
}

impl UrlMessage {
    fn read(self) -> Result<UrlRecord, Unreadable> {
        let Self {
            url,
            rest,
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
        } = self;
        Ok(UrlRecord {
            request: Arc::new(payload::decode(url, &rest)?),
            identity: identity.ok_or(Unreadable::Lacks("an identity"))?.into(),
            key: Arc::from(key),
            class: read_byte(class, "a class")?,
            cost,
            standing: match standing.ok_or(Unreadable::Lacks("where a URL stands"))? {
                StandingMessage::Pending(_) => UrlStanding::Pending(None),
                StandingMessage::PendingSince(at) => UrlStanding::Pending(Some(read_time(at))),
                StandingMessage::Returned(at) => UrlStanding::Returned(read_time(at)),
                StandingMessage::Retry(at) => UrlStanding::Retry(read_time(at)),
                StandingMessage::Scheduled(at) => UrlStanding::Scheduled(read_time(at)),
                StandingMessage::Leased(_) => UrlStanding::Leased,
                StandingMessage::Done(_) => UrlStanding::Done(None),
                StandingMessage::DoneUntil(at) => UrlStanding::Done(Some(read_time(at))),
                StandingMessage::Disregarded(reason) => UrlStanding::Disregarded(reason),
                StandingMessage::Dead(DeathMessage { reason, at }) => {
                    UrlStanding::Dead { reason, at: read_time(at) }
                }
            },
            page: page.map(PageMessage::read).transpose()?,
            visits,
            retries,
            expiries,
            entries,
        })
    }
}

impl From<&QueueRecord> for QueueMessage {
    fn from(record: &QueueRecord) -> Self {
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
        } = record;
        let given = |terms: &Terms| (*terms != Terms::default()).then(|| terms.into());
        Self {
            key: key.to_string(),
            terms: given(terms),
            steered: given(steered),
            retired: retired.map(|by| match by {
                RetiredBy::Operator => RetiredMessage::Operator(true),
                RetiredBy::Budget => RetiredMessage::Budget(true),
            }),
            blocked: blocked.map(Timestamp::as_millis),
            next_fetch: next_fetch.map(Timestamp::as_millis),
            group_next_fetch: group_next_fetch.map(Timestamp::as_millis),
            active: *active,
            balance: *balance,
            spent: *spent,
            grants: *grants,
            charged: *charged,
            latest_cost: *latest_cost,
            errors: *errors,
        }
    }
}

impl QueueMessage {
    fn read(self) -> Result<QueueRecord, Unreadable> {
        let Self {
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
        } = self;
        let given = |terms: Option<TermsMessage>| terms.map(TermsMessage::read).transpose();
        Ok(QueueRecord {
            key: Arc::from(key),
            terms: given(terms)?.unwrap_or_default(),
            steered: given(steered)?.unwrap_or_default(),
            retired: retired.map(|by| match by {
                RetiredMessage::Operator(_) => RetiredBy::Operator,
                RetiredMessage::Budget(_) => RetiredBy::Budget,
            }),
            blocked: blocked.map(read_time),
            next_fetch: next_fetch.map(read_time),
            group_next_fetch: group_next_fetch.map(read_time),
            active,
            balance,
            spent,
            grants,
            charged,
            latest_cost,
            errors,
        })
    }
}

impl From<CrawlRecord> for CrawlMessage {
    fn from(record: CrawlRecord) -> Self {
        let CrawlRecord { started, fetched, bytes, spent, granted, expired, turn } = record;
        Self { started: started.as_millis(), fetched, bytes, spent, granted, expired, turn }
    }
}

impl CrawlMessage {
    fn read(self) -> CrawlRecord {
        let Self { started, fetched, bytes, spent, granted, expired, turn } = self;
        CrawlRecord { started: read_time(started), fetched, bytes, spent, granted, expired, turn }
    }
}

/// Every kind of record, with everything and with nothing.
#[cfg(test)]
pub(super) fn samples() -> Vec<Record> {
    use trapline_core::{Identity, Request};
    use trapline_frontier::{PageRecord, Visit};
    let url = UrlRecord {
        request: Arc::new(Request { depth: 3, ..Request::get("http://a.example/ä") }),
        identity: Identity(5 << 64 | 6),
        key: Arc::from("a.example"),
        class: 255,
        cost: u32::MAX,
        standing: UrlStanding::Leased,
        page: None,
        visits: 1,
        retries: 2,
        expiries: 3,
        entries: 4,
    };
    let standings = vec![
        UrlStanding::Pending(None),
        UrlStanding::Pending(Some(Timestamp::ZERO)),
        UrlStanding::Returned(Timestamp::MAX),
        UrlStanding::Retry(Timestamp::ZERO),
        UrlStanding::Scheduled(Timestamp::ZERO),
        UrlStanding::Leased,
        UrlStanding::Done(None),
        UrlStanding::Done(Some(Timestamp::ZERO)),
        UrlStanding::Disregarded(String::new()),
        UrlStanding::Dead { reason: String::new(), at: Timestamp::ZERO },
    ];
    let mut urls: Vec<_> =
        standings.into_iter().map(|standing| UrlRecord { standing, ..url.clone() }).collect();
    for (next, visit) in [
        (None, Visit::default()),
        (Some(Timestamp::ZERO), Visit { status: 200, digest: Some(Vec::new()), ..Visit::default() }),
    ] {
        let page = PageRecord { visited: Timestamp::from_millis(7), visit, visits: 8, changes: 9, next };
        urls.push(UrlRecord { page: Some(Arc::new(page)), ..url.clone() });
    }
    let plain = QueueRecord { key: Arc::from("k"), ..QueueRecord::default() };
    let full = QueueRecord {
        key: Arc::from("k"),
        terms: super::candidate::sample_terms(),
        steered: super::candidate::sample_terms(),
        retired: Some(RetiredBy::Operator),
        blocked: Some(Timestamp::ZERO),
        next_fetch: Some(Timestamp::ZERO),
        group_next_fetch: Some(Timestamp::MAX),
        active: true,
        balance: i64::MIN,
        spent: 1,
        grants: 2,
        charged: 3,
        latest_cost: 4,
        errors: 5,
    };
    let by_budget = QueueRecord { retired: Some(RetiredBy::Budget), ..plain.clone() };
    let queues = [plain, full, by_budget];
    let crawl = CrawlRecord {
        started: Timestamp::MAX,
        fetched: 1,
        bytes: 2,
        spent: 3,
        granted: 4,
        expired: 5,
        turn: 6,
    };
    let mut samples: Vec<_> = urls.into_iter().map(|url| Record::Url(Box::new(url))).collect();
    samples.extend(queues.into_iter().map(|queue| Record::Queue(Box::new(queue))));
    samples.extend(super::settle::sample_notes().into_iter().map(Record::Note));
    samples.extend([crawl, CrawlRecord::default()].map(Record::Crawl));
    samples
}
