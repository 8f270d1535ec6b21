//! What is measured: a frontier on disk, by the three verbs of a crawl's day.
//!
//! Everybody gets candidates that were prepared off the clock (identity, queue key, URL) and answers when the batch is on
//! disk. What each does with them is in `ours.rs`, `on_fjall.rs` and `on_redb.rs`.

use std::path::Path;

use trapline_core::Candidate;

/// How a subject is opened.
#[derive(Clone, Copy)]
pub struct Manner {
    /// Whether each batch is on disk before it is answered.
    pub synced: bool,
    /// How long a queue rests after a settlement, in milliseconds. 0 also lets any number of its URLs be leased at a
    /// time; otherwise one is.
    pub delay: u64,
}

impl Manner {
    /// The crawl that is measured.
    pub const CRAWL: Self = Self { synced: true, delay: 1000 };
    /// Nothing but one queue and its order.
    pub const HEAD: Self = Self { synced: false, delay: 0 };
}

/// For how long a lease is given, in milliseconds. None of them expires here.
pub const LEASE: u64 = 60_000;

/// What a subject holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Different URLs ever offered.
    pub known: u64,
    pub leased: u64,
    /// Queues that are being served or rest, not those that wait for their first turn.
    pub active: u64,
}

/// A frontier on disk. What fails, panics: a benchmark has nobody to tell.
pub trait Subject: Sized {
    /// Opens what is in the folder, and leaves it ready for the first claim.
    fn open(folder: &Path, manner: Manner) -> Self;

    /// Remembers candidates, and frees them: how many were new.
    fn admit(&mut self, now: u64, batch: Vec<Candidate>) -> u64;

    /// Leases out the first URLs of queues whose turn it is, or of one queue: their leases. The whole answer, with URL,
    /// identity, queue key and deadline, is made and freed.
    fn claim(&mut self, now: u64, want: usize, from: Option<&str>) -> Vec<u64>;

    /// Ends leases, their URLs being done: how many were still held.
    fn settle(&mut self, now: u64, leases: Vec<u64>) -> u64;

    fn counts(&mut self, now: u64) -> Counts;
}
