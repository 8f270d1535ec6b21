//! What will happen when, in a run: each event has its moment, and among equals the order in which they were added.

use std::collections::{BTreeMap, BTreeSet};

use trapline_core::Timestamp;
use trapline_frontier::Lease;
use trapline_frontier::script::Settle;

use crate::web::Response;

/// Something that will happen.
pub(super) enum Event {
    /// A worker has nothing to do and claims.
    Wake(u32),
    /// A worker has something to do about one of its jobs at least. A worker has this event ahead or the one above, and
    /// never both.
    Work(u32, Vec<Job>),
    /// A settlement is sent once more.
    Again(Settle),
    /// Somebody admits URLs.
    Admit,
    /// An operator does something.
    Operate,
    /// Somebody looks.
    Look,
    /// The store is closed and opened again.
    Restart,
}

/// A fetch under way.
#[derive(Clone)]
pub(super) struct Job {
    /// The number of its lease among all grants.
    pub(super) number: usize,
    pub(super) lease: Lease,
    pub(super) response: Response,
    /// When the fetch ends.
    pub(super) ends: Timestamp,
    pub(super) deadline: Timestamp,
    /// Whoever fetches looks after the lease. Others do not, and settle when they do.
    pub(super) renews: bool,
    /// When something is to be done about it: it has ended, or is to be renewed.
    pub(super) acts: Timestamp,
}

/// What will happen when.
#[derive(Default)]
pub(super) struct Agenda {
    events: BTreeMap<(Timestamp, u64), Event>,
    added: u64,
    /// Workers that have something ahead.
    workers: BTreeSet<u32>,
}

impl Agenda {
    pub(super) fn add(&mut self, at: Timestamp, event: Event) {
        if let Event::Wake(worker) | Event::Work(worker, _) = event {
            assert!(self.workers.insert(worker), "worker {worker} has one thing ahead at a time");
        }
        self.added += 1;
        self.events.insert((at, self.added), event);
    }

    pub(super) fn next(&mut self) -> Option<(Timestamp, Event)> {
        let ((at, _), event) = self.events.pop_first()?;
        if let Event::Wake(worker) | Event::Work(worker, _) = event {
            self.workers.remove(&worker);
        }
        Some((at, event))
    }
}
