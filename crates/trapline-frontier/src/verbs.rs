//! What goes into the six verbs and what comes out: wishes, leases, settlements, steering.
//!
//! Plain values, the same for every store. Behaviour lives in the stores.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use trapline_core::{Candidate, Civil, Identity, IdentityKey, Request, Terms, Timestamp};

use crate::pattern::Pattern;
use crate::record::Record;
use crate::settings::Settings;

/// What became of one candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// New; it is pending now.
    Added,
    /// Seen before; nothing changed.
    Known,
    /// Known and pending; moved to the better class it asked for.
    Rescored,
    /// It was a statement about the URL, and holds now.
    Restated,
    /// Not taken, for this reason.
    Refused(Refusal),
}

/// Why a candidate was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The crawl is over.
    Finished,
    /// The crawl takes no candidates at present (`admission = blocked`).
    Blocked,
    /// Deeper than the crawl's `max_depth` or the request's own limit.
    TooDeep,
    /// Its queue is as long as `max_queue_length` allows.
    QueueFull,
    /// No URL with a host, or beyond what can be stored.
    Malformed,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Finished => "finished",
            Self::Blocked => "admission blocked",
            Self::TooDeep => "max_depth",
            Self::QueueFull => "max_queue_length",
            Self::Malformed => "malformed",
        })
    }
}

impl fmt::Display for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added => f.write_str("added"),
            Self::Known => f.write_str("known"),
            Self::Rescored => f.write_str("rescored"),
            Self::Restated => f.write_str("restated"),
            Self::Refused(why) => write!(f, "refused: {why}"),
        }
    }
}

/// What a claim asks for. A bound not given does not bind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Want {
    /// How many URLs.
    pub urls: usize,
    /// For how long. Defaults to the crawl's `lease`.
    pub lease: Option<Duration>,
    /// From at most so many queues.
    pub queues: Option<usize>,
    /// At most so many URLs of one queue.
    pub per_queue: Option<usize>,
    /// From so many different queues at least, if that many can supply. A wish, not a bound: URLs are spread
    /// so that it holds where possible, and filled up where it is not.
    pub min_queues: Option<usize>,
    /// Only from these queues.
    pub keys: Option<Vec<String>>,
    /// Not from these queues.
    pub except: Vec<String>,
    /// Only from these partitions.
    pub partitions: Option<Vec<u32>>,
}

impl Want {
    /// Asks for `urls` URLs, from anywhere, for the crawl's usual lease.
    pub fn urls(urls: usize) -> Self {
        Self { urls, ..Self::default() }
    }
}

impl From<usize> for Want {
    fn from(urls: usize) -> Self {
        Self::urls(urls)
    }
}

/// The number of a lease. It never repeats in a store, also across restarts: a fencing token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub u64);

/// The right to fetch one URL until a deadline.
#[derive(Clone, Debug, PartialEq)]
pub struct Lease {
    /// What a settlement names.
    pub id: LeaseId,
    /// The crawl it belongs to.
    pub crawl: Arc<str>,
    /// The queue it was taken from.
    pub key: Arc<str>,
    /// Which URL.
    pub identity: Identity,
    /// What to fetch.
    pub request: Arc<Request>,
    /// From this moment on the lease has expired, noticed or not.
    pub deadline: Timestamp,
    /// The how-manieth delivery in a row this is, counting those that expired; 1 unless one did.
    pub delivery: u32,
    /// How often in a row it was settled as a retry.
    pub retries: u32,
    /// What it cost the queue.
    pub cost: u32,
    /// What the last visit left.
    pub page: Option<Arc<PageRecord>>,
}

/// What a claim got.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claimed {
    /// The leases, in the order of their grants.
    pub leases: Vec<Lease>,
    /// When less than wanted was eligible: the earliest time at which more may be, if any is foreseen.
    pub next: Option<Timestamp>,
    /// Nothing is pending, waits for its next visit, or is leased, outside retired queues.
    pub exhausted: bool,
}

/// What became of a lease, with all that must happen in the same atomic step.
#[derive(Clone, Debug, PartialEq)]
pub struct Settlement {
    /// Which lease.
    pub lease: LeaseId,
    /// What became of it.
    pub outcome: Outcome,
    /// How long the queue waits now; without it, its own delay, where the outcome starts a wait.
    pub delay: Option<Duration>,
    /// Links found, admitted in this order.
    pub links: Vec<Candidate>,
    /// Notes to write.
    pub notes: Vec<NoteWrite>,
}

impl Settlement {
    /// A settlement without links, notes or a delay of its own.
    pub fn new(lease: LeaseId, outcome: Outcome) -> Self {
        Self { lease, outcome, delay: None, links: Vec::new(), notes: Vec::new() }
    }
}

/// What became of a fetch.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Fetched.
    Done {
        /// What the visit found.
        visit: Visit,
        /// When to come back.
        next: Option<Timestamp>,
    },
    /// To be tried again at a time.
    Retry {
        /// Not before.
        at: Timestamp,
    },
    /// Given back to its old place, as if never leased.
    Release,
    /// Ended for good, without success.
    Dead {
        /// For the audit.
        reason: String,
    },
    /// Robots or scope said no; no request was made.
    Disregard {
        /// For the audit.
        reason: String,
    },
    /// The work goes on: the deadline becomes now plus this.
    Renew {
        /// How much longer.
        lease: Duration,
    },
}

impl Outcome {
    /// Fetched, and nothing to remember about it.
    pub fn done() -> Self {
        Self::Done { visit: Visit::default(), next: None }
    }
}

/// What one successful visit found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Visit {
    /// The HTTP status, 0 if there was none.
    pub status: u16,
    /// Bytes received, counted towards `max_bytes`.
    pub bytes: u64,
    /// The validator for the next conditional request.
    pub etag: Option<String>,
    /// The other one.
    pub last_modified: Option<String>,
    /// An exact digest of the content.
    pub digest: Option<Vec<u8>>,
    /// A similarity digest of the content.
    pub simhash: Option<u64>,
}

/// What is known of a visited URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRecord {
    /// When it was last visited.
    pub visited: Timestamp,
    /// What that visit found.
    pub visit: Visit,
    /// How many visits there were.
    pub visits: u32,
    /// How many of them found another digest than the one before.
    pub changes: u32,
    /// When the next visit is due.
    pub next: Option<Timestamp>,
}

/// A note to be written, replacing what stood under its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteWrite {
    /// Under this key of the crawl.
    pub key: String,
    /// The value; None removes the note.
    pub value: Option<Vec<u8>>,
    /// From this moment on it is gone.
    pub expires: Option<Timestamp>,
}

/// The answer to one settlement.
#[derive(Clone, Debug, PartialEq)]
pub struct Settled {
    /// What happened.
    pub answer: Answer,
    /// What became of the links, in their order. Empty if stale.
    pub links: Vec<Admission>,
}

/// What happened to a settlement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The URL is done.
    Done,
    /// The URL is pending again, due at its time.
    Retry,
    /// The URL is back in its place.
    Released,
    /// The URL is a dead letter.
    Dead,
    /// The URL is disregarded.
    Disregarded,
    /// The lease goes on.
    Renewed,
    /// The lease had expired or was settled before; nothing happened.
    Stale,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Done => "done",
            Self::Retry => "retry",
            Self::Released => "released",
            Self::Dead => "dead",
            Self::Disregarded => "disregarded",
            Self::Renewed => "renewed",
            Self::Stale => "stale",
        })
    }
}

/// One act of an operator: a target and a change.
#[derive(Clone, Debug, PartialEq)]
pub enum Steer {
    /// A queue, by its key. A queue nobody knows yet comes to be, empty.
    Queue(String, QueueChange),
    /// A URL.
    Url(Identity, UrlChange),
    /// URLs by what they are like, in the background.
    Urls(UrlFilter, UrlsChange),
    /// Dead letters.
    Dead(DeadLetters, DeadChange),
    /// The crawl itself.
    Crawl(CrawlChange),
}

/// What can be done to a queue.
#[derive(Clone, Debug, PartialEq)]
pub enum QueueChange {
    /// Set terms. They win over terms that candidates bring later.
    Terms(Terms),
    /// Forget what operators and candidates set; the crawl's settings hold again.
    DefaultTerms,
    /// Not served until then.
    Block(Timestamp),
    /// Served again.
    Unblock,
    /// Not served until reinstated. Keeps its URLs and takes new ones.
    Retire,
    /// Served again; also reconsiders a queue over its budget.
    Reinstate,
    /// Forget its pending URLs: all at once, or those that match in the background.
    Purge(Option<Pattern>),
    /// Forget all its URLs. Its leases become stale; its next fetch time and terms stay.
    Delete,
}

/// What can be done to a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlChange {
    /// Make it unknown. Ends a lease of it.
    Forget,
    /// Move it, if pending, to a class, behind what waits there.
    Class(u8),
}

/// Which URLs: those that fit all that is given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UrlFilter {
    /// In this queue.
    pub key: Option<String>,
    /// Whose URL matches.
    pub pattern: Option<Pattern>,
}

/// What can be done to many URLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlsChange {
    /// Make them unknown, whatever their state. Ends leases of them.
    Forget,
    /// Fetch those again that are done by the time the job comes to them, as if their next visit were due.
    Revisit,
    /// Forget what is known of pages that were last visited before this time. Their URLs stay known, and their visits counted.
    ForgetPages(Timestamp),
}

impl UrlsChange {
    /// What a job does, in words: to URLs `of` a queue or all.
    pub fn describe(&self, of: &str, pattern: Option<&Pattern>) -> String {
        let which = pattern.map_or_else(String::new, |pattern| format!(" that match {pattern}"));
        match self {
            Self::Forget => format!("forget URLs {of}{which}"),
            Self::Revisit => format!("fetch done URLs {of}{which} again"),
            Self::ForgetPages(before) => {
                format!("forget pages {of}{which} last visited before {}", Civil::from(*before))
            }
        }
    }
}

/// Which dead letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeadLetters {
    /// All of the crawl.
    All,
    /// All of one queue.
    Queue(String),
    /// Those of one URL.
    Url(Identity),
}

/// What can be done to dead letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadChange {
    /// As if admitted now.
    Replay,
    /// Forgotten, as if never seen.
    Purge,
}

/// What can be done to a crawl.
#[derive(Clone, Debug, PartialEq)]
pub enum CrawlChange {
    /// Make it, unless it is there already: then nothing changes.
    Create(NewCrawl),
    /// Change settings by name, as the configuration writes them: all or, if one cannot be, none of them.
    Set(Vec<(String, String)>),
    /// Grant no leases until resumed.
    Pause,
    /// Grant leases again.
    Resume,
    /// End it for good.
    Finish(String),
    /// Remove it with everything in it.
    Delete,
    /// Write a note.
    Note(NoteWrite),
    /// Take over what another frontier remembered, in this order. What is known here stays as it is; what is affected is
    /// what was not. Limits of the crawl do not hold it up, but its end does.
    Restore(Vec<Record>),
    /// Forget the pending URLs of all queues that match, in the background.
    Purge(Pattern),
    /// Stop a background job where it is.
    Cancel(u64),
}

/// What is fixed when a crawl is created, and the settings it starts with.
#[derive(Clone, Debug, PartialEq)]
pub struct NewCrawl {
    /// The secret of its identities.
    pub key: IdentityKey,
    /// How many partitions its queues are spread over.
    pub partitions: u32,
    /// Its settings.
    pub settings: Settings,
}

/// What an act of steering did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steered {
    /// How many URLs, dead letters or queues it concerned, as far as known at once.
    pub affected: u64,
    /// The background job that goes on with it, if there is one left to do.
    pub job: Option<u64>,
}
