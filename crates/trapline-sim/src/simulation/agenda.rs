//! What will happen when, in a run: each event has its moment, and among equals the order in which they were added.

use std::collections::BTreeMap;

use trapline_core::Timestamp;
use trapline_frontier::Lease;
use trapline_frontier::script::Settle;

use crate::web::Response;

/// Something that will happen.
pub(super) enum Event {
    /// A worker has nothing to do and claims.
    Wake(u32),
    /// A worker settles.
    End(u32, Vec<Job>),
    /// A worker needs more time.
    Renew(u32, Job),
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
}

/// What will happen when.
#[derive(Default)]
pub(super) struct Agenda {
    events: BTreeMap<(Timestamp, u64), Event>,
    added: u64,
}

impl Agenda {
    pub(super) fn add(&mut self, at: Timestamp, event: Event) {
        self.added += 1;
        self.events.insert((at, self.added), event);
    }

    pub(super) fn next(&mut self) -> Option<(Timestamp, Event)> {
        self.events.pop_first().map(|((at, _), event)| (at, event))
    }
}
