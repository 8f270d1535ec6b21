//! What a frontier can be asked, and what it answers: pages of queues, URLs, leases, dead letters, notes and
//! jobs, and the counts of a crawl.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use trapline_core::{Identity, IdentityKey, Request, Timestamp};

use crate::pattern::Pattern;
use crate::record::Record;
use crate::settings::Settings;
use crate::verbs::{LeaseId, PageRecord};

/// A question with room for a long answer: ask again with the page's cursor for the rest.
#[derive(Clone, Debug, PartialEq)]
pub struct Scan {
    /// What to list.
    pub query: Query,
    /// Where to go on; None begins.
    pub cursor: Option<u64>,
    /// How many rows at most; what names its rows one by one gets them all.
    pub limit: usize,
}

impl Scan {
    /// The first thousand rows.
    pub fn new(query: Query) -> Self {
        Self { query, cursor: None, limit: 1000 }
    }
}

/// What to list.
#[derive(Clone, Debug, PartialEq)]
pub enum Query {
    /// The crawl itself: one row.
    Crawl,
    /// All crawls of the store, by name, whichever crawl is asked, there or not. They are told of as they stand: no time
    /// passes for them.
    Crawls,
    /// Queues: the named ones (unknown ones are left out), or all, in one state or any.
    Queues {
        /// These, or all.
        keys: Option<Vec<String>>,
        /// In this state, or any.
        state: Option<QueueState>,
    },
    /// Exactly these URLs, in this order, the unknown among them.
    UrlList(Vec<Identity>),
    /// All known URLs that fit every filter given.
    Urls {
        /// In this queue.
        key: Option<String>,
        /// Whose URL matches.
        pattern: Option<Pattern>,
        /// In this state.
        state: Option<UrlState>,
    },
    /// Live leases.
    Leases,
    /// Dead letters.
    Dead,
    /// Notes whose key begins so.
    Notes {
        /// The beginning; empty for all.
        prefix: String,
    },
    /// All that the crawl remembers but its settings and state, for another frontier to restore: URLs, those of a queue in
    /// the order in which they would be claimed; queues; notes; and the crawl's counts. A cursor holds as long as the
    /// crawl is not used for anything else and time stands still: ask for all pages with one `now`.
    Records,
    /// Background jobs: those under way, and the last ones that have ended.
    Jobs,
}

/// Some rows of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The rows, in a stable order of the store's own.
    pub rows: Rows,
    /// Where to go on, if there is more.
    pub cursor: Option<u64>,
}

/// Rows of one kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Rows {
    /// The crawl.
    Crawl(Box<CrawlReport>),
    /// Crawls.
    Crawls(Vec<CrawlReport>),
    /// Queues.
    Queues(Vec<QueueReport>),
    /// URLs.
    Urls(Vec<UrlReport>),
    /// Leases.
    Leases(Vec<LeaseReport>),
    /// Dead letters.
    Dead(Vec<DeadLetter>),
    /// Notes.
    Notes(Vec<Note>),
    /// Records.
    Records(Vec<Record>),
    /// Jobs.
    Jobs(Vec<JobReport>),
}

/// A crawl: what was fixed at its creation, its settings, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct CrawlReport {
    /// Its name.
    pub name: Arc<str>,
    /// The secret of its identities.
    pub key: IdentityKey,
    /// How many partitions it has.
    pub partitions: u32,
    /// Its settings.
    pub settings: Settings,
    /// When it was created.
    pub started: Timestamp,
    /// Running, paused or finished.
    pub state: CrawlState,
    /// See [`Claimed::exhausted`](crate::Claimed::exhausted).
    pub exhausted: bool,
}

/// Where a crawl stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CrawlState {
    /// Claims are granted.
    Running,
    /// No claims are granted until it is resumed.
    Paused,
    /// It is over, for this reason.
    Finished(String),
}

impl fmt::Display for CrawlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Finished(_) => "finished",
        })
    }
}

/// The state of a queue: the first of these that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QueueState {
    /// Over its budget, or retired by hand.
    Retired,
    /// Not served until a given time.
    Blocked,
    /// Nothing pending, nothing leased.
    Empty,
    /// As much leased as its concurrency allows, or some leased and nothing pending.
    Busy,
    /// Its next fetch time lies ahead, or all its pending URLs are due later.
    Snoozed,
    /// Active: may supply a URL now.
    Ready,
    /// May supply a URL, waits for its turn.
    Inactive,
}

impl QueueState {
    /// Every state, in the order in which they are looked for.
    pub const ALL: [Self; 7] =
        [Self::Retired, Self::Blocked, Self::Empty, Self::Busy, Self::Snoozed, Self::Ready, Self::Inactive];
}

impl fmt::Display for QueueState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Retired => "retired",
            Self::Blocked => "blocked",
            Self::Empty => "empty",
            Self::Busy => "busy",
            Self::Snoozed => "snoozed",
            Self::Ready => "ready",
            Self::Inactive => "inactive",
        })
    }
}

/// The state of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UrlState {
    /// Never seen, or forgotten.
    Unknown,
    /// To be fetched, now or later.
    Pending,
    /// Being fetched.
    Leased,
    /// Fetched.
    Done,
    /// Not to be fetched.
    Disregarded,
    /// Given up.
    Dead,
}

impl UrlState {
    /// Every state.
    pub const ALL: [Self; 6] =
        [Self::Unknown, Self::Pending, Self::Leased, Self::Done, Self::Disregarded, Self::Dead];
}

impl fmt::Display for UrlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "unknown",
            Self::Pending => "pending",
            Self::Leased => "leased",
            Self::Done => "done",
            Self::Disregarded => "disregarded",
            Self::Dead => "dead",
        })
    }
}

/// Everything an operator wants to know of a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueReport {
    /// Its key.
    pub key: Arc<str>,
    /// Its partition.
    pub partition: u32,
    /// Its state.
    pub state: QueueState,
    /// Why it is not being served, or when it will be, in words.
    pub why: String,
    /// URLs pending, due later among them.
    pub pending: u64,
    /// URLs leased.
    pub leased: u64,
    /// URLs done.
    pub done: u64,
    /// URLs disregarded.
    pub disregarded: u64,
    /// URLs dead.
    pub dead: u64,
    /// Retries and deaths there were.
    pub errors: u64,
    /// What may be spent.
    pub budget: Option<u64>,
    /// What was spent.
    pub spent: u64,
    /// What is left of the session, 0 before the first.
    pub balance: i64,
    /// What the last grant cost.
    pub latest_cost: u32,
    /// What grants cost on average.
    pub average_cost: f64,
    /// Its precedence, lower first.
    pub precedence: u8,
    /// The group whose pace it shares.
    pub group: Option<Arc<str>>,
    /// How many leases at a time.
    pub concurrency: u32,
    /// How long it waits after a fetch.
    pub delay: Duration,
    /// Not fetched from before, its own wait and its group's.
    pub next_fetch: Option<Timestamp>,
}

impl QueueReport {
    /// What `why` says of a queue that is over its budget.
    pub const OVER_BUDGET: &str = "its next URL does not fit its budget";

    /// Whether it is retired because of its budget, and not because somebody wanted it.
    pub fn is_over_budget(&self) -> bool {
        self.state == QueueState::Retired && self.why.contains(Self::OVER_BUDGET)
    }
}

/// What is known of a URL.
#[derive(Clone, Debug, PartialEq)]
pub struct UrlReport {
    /// Which URL.
    pub identity: Identity,
    /// The request; None if the URL is unknown, or the store cannot read it.
    pub request: Option<Arc<Request>>,
    /// Its state.
    pub state: UrlState,
    /// Its queue; None if unknown.
    pub key: Option<Arc<str>>,
    /// Its class.
    pub class: u8,
    /// Its cost.
    pub cost: u32,
    /// Why it ended, if it is dead or disregarded and a reason was given.
    pub reason: Option<String>,
    /// When it is due, if later: a retry or a next visit.
    pub due: Option<Timestamp>,
    /// What the last visit left.
    pub page: Option<Arc<PageRecord>>,
}

/// A live lease.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaseReport {
    /// Its number.
    pub id: LeaseId,
    /// The queue.
    pub key: Arc<str>,
    /// What is being fetched; without a URL if the store cannot read it.
    pub request: Arc<Request>,
    /// When it was granted.
    pub granted: Timestamp,
    /// When it expires.
    pub deadline: Timestamp,
    /// See [`Lease::delivery`](crate::Lease::delivery).
    pub delivery: u32,
}

/// A request that ended for good without success.
#[derive(Clone, Debug, PartialEq)]
pub struct DeadLetter {
    /// Which URL.
    pub identity: Identity,
    /// Its queue.
    pub key: Arc<str>,
    /// The request, whole; without a URL if the store cannot read it.
    pub request: Arc<Request>,
    /// Why.
    pub reason: String,
    /// When.
    pub at: Timestamp,
}

/// A small durable value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: Vec<u8>,
    /// When it goes.
    pub expires: Option<Timestamp>,
}

/// Work over many URLs that goes on in the background.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobReport {
    /// Its number.
    pub id: u64,
    /// What it does, in words.
    pub what: String,
    /// How many URLs it has looked at.
    pub passed: u64,
    /// How many it will look at.
    pub total: u64,
    /// How many it has changed.
    pub affected: u64,
    /// Whether it has ended: all was looked at, or it was cancelled on the way.
    pub ended: bool,
}

/// The counts of a crawl, cheap at any size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Queues by state, in the order of [`QueueState::ALL`]. A queue that was reconsidered with all others counts as
    /// inactive until its turn comes, even if its group waits.
    pub queues: [u64; 7],
    /// URLs by state, in the order of [`UrlState::ALL`]; nothing is counted as unknown.
    pub urls: [u64; 6],
    /// Done URLs that wait for their next visit.
    pub visits_waiting: u64,
    /// Fetches that were done since the crawl began, repeated ones counted again.
    pub fetched: u64,
    /// Bytes those fetches received.
    pub bytes: u64,
    /// What was spent on all queues since the crawl began.
    pub spent: u64,
    /// Leases granted since the crawl began.
    pub granted: u64,
    /// Leases that expired.
    pub expired: u64,
    /// When an answer is safe on disk, as the store was told: `batch`, `interval 100ms`, `explicit`. None for a store that
    /// keeps nothing, or cannot say.
    pub durability: Option<String>,
    /// What was found when the store was last opened; None for a store that keeps nothing.
    pub recovered: Option<Recovered>,
    /// What the crawl's memory goes to; None for a store that is elsewhere.
    pub memory: Option<Memory>,
    /// What the store takes of the disk, all its crawls together; None for one that has no files of its own.
    pub disk: Option<Disk>,
    /// How the store keeps within the memory it may take, all its crawls together; None for one that may take any.
    pub pressure: Option<Pressure>,
}

/// How a store keeps within the memory it may take, in bytes. What can be put on disk for a while, in pages of some thousand
/// URLs, are their records and their places in the order of their queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// What it may take.
    pub max_memory: u64,
    /// What it takes.
    pub in_memory: u64,
    /// What of that cannot be put on disk: the seen set, the queues, and all that is said to be missing in [`Memory`] but for
    /// estimates of leases, timers and notes.
    pub fixed: u64,
    /// What is on disk instead.
    pub paged: u64,
    /// How often a page was put there since the store was opened.
    pub paged_out: u64,
    /// How often one was brought back.
    pub paged_in: u64,
    /// How often one URL was looked up there, its page staying where it was.
    pub looked_up: u64,
    /// Whether there was no room for pages on disk when one was to be put there last.
    pub is_full: bool,
}

impl Pressure {
    /// How much of what it may take it takes, in percent.
    pub fn percent(&self) -> u64 {
        (u128::from(self.in_memory) * 100).checked_div(u128::from(self.max_memory)).unwrap_or(100) as u64
    }
}

/// What a store takes of the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// How many files its log has.
    pub segments: u64,
    /// How many bytes those have, what is set aside for what comes next among them.
    pub log_bytes: u64,
    /// How many of them are needed for good, nearly: the requests of known URLs, and what is known of their pages. What is
    /// beyond is rewritten when it is too much.
    pub needed_bytes: u64,
    /// How many bytes its snapshots have.
    pub snapshot_bytes: u64,
    /// The last record of its log that is certainly on disk, counted since the store was made.
    pub log_position: u64,
}

/// What the memory of a crawl goes to, in bytes. Not among it: leases, timers, notes, the reasons of dead
/// letters, the order of URLs that came back or are ordered by date, and what few queues have. Where there are many of
/// those, the process takes more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The seen set, which finds a URL by its identity.
    pub seen: u64,
    /// The record of each known URL: its identity, queue, class, cost and state.
    pub records: u64,
    /// What is needed besides for each pending or leased URL.
    pub pending: u64,
    /// What few URLs have: retries, times at which they are due, page records that are in memory.
    pub rare: u64,
    /// The texts of the URLs and the rest of their requests.
    pub texts: u64,
    /// The queues with their keys, and the index that finds them.
    pub queues: u64,
}

impl Stats {
    /// How many queues are in a state.
    pub fn queues_in(&self, state: QueueState) -> u64 {
        self.queues[state as usize]
    }

    /// How many URLs are in a state.
    pub fn urls_in(&self, state: UrlState) -> u64 {
        self.urls[state as usize]
    }
}

/// What a store found when it was opened: of the crawl that was asked about, and of the store's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// URLs pending.
    pub pending: u64,
    /// URLs leased.
    pub leased: u64,
    /// URLs known.
    pub seen: u64,
    /// Dead letters.
    pub dead: u64,
    /// How many records the log had.
    pub log_position: u64,
    /// How many bytes at the end of the log were cut off, because they were no whole record.
    pub bytes_cut: u64,
    /// Up to which record a snapshot had everything, so that only what came after it was done again.
    pub snapshot: Option<u64>,
    /// How many newer snapshots were passed over, because they are damaged or cannot be read.
    pub snapshots_passed_over: u64,
    /// How long opening took.
    pub took: Duration,
}
