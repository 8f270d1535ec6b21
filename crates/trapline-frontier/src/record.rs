//! Records: what a crawl consists of, as one frontier hands it to another. `scan` gives them out with
//! [`Query::Records`](crate::Query::Records), `steer` takes them in with
//! [`CrawlChange::Restore`](crate::CrawlChange::Restore).
//!
//! Plain values, the same for every store. How they are written to a file is decided elsewhere.

use std::sync::Arc;

use trapline_core::{Identity, Request, Terms, Timestamp};

use crate::verbs::{NoteWrite, PageRecord};

/// One thing that a crawl remembers.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// A URL.
    Url(Box<UrlRecord>),
    /// A queue, after its URLs. Those that are served earlier come first.
    Queue(Box<QueueRecord>),
    /// A note.
    Note(NoteWrite),
    /// What is counted of the crawl as a whole. The last of all records.
    Crawl(CrawlRecord),
}

/// A URL with its state. It is restored unless the URL is known.
#[derive(Clone, Debug, PartialEq)]
pub struct UrlRecord {
    /// The request, whole.
    pub request: Arc<Request>,
    /// Which URL.
    pub identity: Identity,
    /// Its queue.
    pub key: Arc<str>,
    /// Its class.
    pub class: u8,
    /// Its cost.
    pub cost: u32,
    /// Where it stands.
    pub standing: UrlStanding,
    /// What the last visit left.
    pub page: Option<Arc<PageRecord>>,
    /// How often it was visited.
    pub visits: u32,
    /// How often in a row it was settled as a retry.
    pub retries: u32,
    /// How many leases of it expired in a row.
    pub expiries: u32,
    /// How many entries this URL has, through `dont_filter`; usually 1. It counts as known when there are so many.
    pub entries: u32,
}

/// Where a URL stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UrlStanding {
    /// Pending, in its place behind those of its queue and class that were restored before it. In `date` order the time
    /// for which it is scheduled; now, if there is none.
    Pending(Option<Timestamp>),
    /// Pending, and come back as of a time: a due retry or an expired lease, which goes first in its class.
    Returned(Timestamp),
    /// Pending, a retry that is due at a time.
    Retry(Timestamp),
    /// Pending, to be visited at a time.
    Scheduled(Timestamp),
    /// Being fetched. Restored as if its lease had expired now, which is not counted.
    Leased,
    /// Done, and to be visited again at a time if there is one.
    Done(Option<Timestamp>),
    /// Not to be fetched, for this reason.
    Disregarded(String),
    /// Given up.
    Dead {
        /// Why.
        reason: String,
        /// When.
        at: Timestamp,
    },
}

/// What is remembered of a queue besides its URLs. It is restored unless something has happened to the queue other than that
/// it was given URLs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueRecord {
    /// Its key.
    pub key: Arc<str>,
    /// The terms that came with candidates.
    pub terms: Terms,
    /// The terms that operators set.
    pub steered: Terms,
    /// Whether it is retired.
    pub retired: Option<RetiredBy>,
    /// Until when it is blocked, if that lies ahead.
    pub blocked: Option<Timestamp>,
    /// When it may be fetched from again, if that lies ahead.
    pub next_fetch: Option<Timestamp>,
    /// The same of its group.
    pub group_next_fetch: Option<Timestamp>,
    /// Whether it is in a session.
    pub active: bool,
    /// What is left of the session.
    pub balance: i64,
    /// What was spent of its budget.
    pub spent: u64,
    /// How many leases were granted.
    pub grants: u32,
    /// What they cost altogether.
    pub charged: u64,
    /// What the last of them cost.
    pub latest_cost: u32,
    /// Retries and deaths there were.
    pub errors: u64,
}

/// Why a queue is retired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetiredBy {
    /// An operator said so.
    Operator,
    /// It is over its budget.
    Budget,
}

/// What is counted of a crawl since it began. It is restored unless the crawl has granted a lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CrawlRecord {
    /// When it began: budget periods and `max_time` count from then.
    pub started: Timestamp,
    /// Fetches that were done.
    pub fetched: u64,
    /// Bytes they received.
    pub bytes: u64,
    /// What was spent on all queues.
    pub spent: u64,
    /// Leases granted.
    pub granted: u64,
    /// Leases that expired.
    pub expired: u64,
    /// The partition whose turn it is.
    pub turn: u32,
}
