//! What will happen by itself, in the order of its times: expiries, retries, visits, waking queues and groups,
//! ends of budget periods.
//!
//! Events are removed when they no longer hold, never left to be ignored later, so the first one is always a
//! true answer to "when will something happen".

use std::collections::BTreeSet;

use trapline_core::Timestamp;

use super::groups::GroupId;
use super::moment::Moment;
use super::queues::QueueId;
use super::urls::EntryId;

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// A lease expires.
    Expiry(u64),
    /// A retry, a scheduled URL or a next visit is due.
    Due(EntryId),
    /// A queue's own wait or block ends.
    Queue(QueueId),
    /// A group's wait ends.
    Group(GroupId),
    /// A budget period ends.
    Period,
}

/// All events to come.
#[derive(Debug, Default)]
pub(super) struct Timers(BTreeSet<(Moment, Event)>);

impl Timers {
    pub(super) fn set(&mut self, moment: Moment, event: Event) {
        self.0.insert((moment, event));
    }

    pub(super) fn cancel(&mut self, moment: Moment, event: Event) {
        let was_there = self.0.remove(&(moment, event));
        debug_assert!(was_there, "{event:?} was not set for {moment:?}");
    }

    /// When something will happen next.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.0.first().map(|(moment, _)| moment.at)
    }

    /// Takes the first event, if it happens at `at`.
    pub(super) fn take_at(&mut self, at: Timestamp) -> Option<(Moment, Event)> {
        let first = *self.0.first()?;
        (first.0.at == at).then(|| {
            self.0.pop_first();
            first
        })
    }
}
