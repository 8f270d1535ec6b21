//! What will happen by itself, in the order of its times: expiries, retries, visits, waking queues and groups,
//! ends of budget periods.
//!
//! Events are removed when they no longer hold, so the first one answers "when will something happen"; only those of
//! URLs that are gone with a purge or deletion stay until they are swept.

use std::collections::{BTreeMap, VecDeque};

use trapline_core::Timestamp;

use super::groups::GroupId;
use super::moment::{Moment, Rank};
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

/// All events to come, by instant.
///
/// Many fall on the same millisecond: the leases of one claim, the waits after one batch of settlements. So an
/// instant is found in the tree once and holds a plain list, to which setting and cancelling only append.
#[derive(Debug, Default)]
pub(super) struct Timers(BTreeMap<Timestamp, Instant>);

/// What happens at one instant: what was set, without what was cancelled.
#[derive(Debug, Default)]
struct Instant {
    set: VecDeque<(Rank, Event)>,
    cancelled: Vec<(Rank, Event)>,
    /// Whether `set` is in order and nothing in it is cancelled.
    settled: bool,
}

impl Instant {
    /// Strikes out what was cancelled and puts the rest in order.
    fn settle(&mut self) {
        if self.settled && self.cancelled.is_empty() {
            return;
        }
        self.set.make_contiguous().sort_unstable();
        self.cancelled.sort_unstable();
        let mut cancelled = self.cancelled.drain(..).peekable();
        self.set.retain(|event| cancelled.next_if_eq(event).is_none());
        drop(cancelled);
        self.settled = true;
    }
}

impl Timers {
    pub(super) fn set(&mut self, moment: Moment, event: Event) {
        let instant = self.0.entry(moment.at).or_default();
        instant.set.push_back((moment.rank, event));
        instant.settled = false;
    }

    /// Takes back what was set.
    pub(super) fn cancel(&mut self, moment: Moment, event: Event) {
        let Some(instant) = self.0.get_mut(&moment.at) else {
            debug_assert!(false, "{event:?} was not set for {moment:?}");
            return;
        };
        instant.cancelled.push((moment.rank, event));
        if instant.cancelled.len() == instant.set.len() {
            self.0.remove(&moment.at);
        } else if instant.cancelled.len() > instant.set.len() / 2 + 64 {
            instant.settle();
        }
    }

    /// When something will happen next.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.0.first_key_value().map(|(at, _)| *at)
    }

    /// Takes the first event, if it happens at `at`.
    pub(super) fn take_at(&mut self, at: Timestamp) -> Option<(Moment, Event)> {
        let mut first = self.0.first_entry().filter(|first| *first.key() == at)?;
        let instant = first.get_mut();
        instant.settle();
        let event = instant.set.pop_front();
        if instant.set.is_empty() {
            first.remove();
        }
        event.map(|(rank, event)| (Moment { at, rank }, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(at: u64, rank: Rank) -> Moment {
        Moment { at: Timestamp::from_millis(at), rank }
    }

    #[test]
    fn what_was_cancelled_does_not_happen_and_the_rest_in_order() {
        let mut timers = Timers::default();
        for rank in [5, 3, 9, 4] {
            timers.set(at(10, rank), Event::Expiry(rank));
        }
        timers.set(at(20, 1), Event::Period);
        timers.cancel(at(10, 9), Event::Expiry(9));
        timers.set(at(10, 9), Event::Expiry(9));
        timers.cancel(at(10, 3), Event::Expiry(3));
        let now = Timestamp::from_millis(10);
        assert_eq!(timers.take_at(now), Some((at(10, 4), Event::Expiry(4))));
        timers.cancel(at(10, 5), Event::Expiry(5));
        assert_eq!(timers.take_at(now), Some((at(10, 9), Event::Expiry(9))));
        assert_eq!(timers.take_at(now), None);
        assert_eq!(timers.next(), Some(Timestamp::from_millis(20)));
        timers.cancel(at(20, 1), Event::Period);
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn setting_and_cancelling_for_ever_takes_no_memory() {
        let mut timers = Timers::default();
        timers.set(at(10, 0), Event::Period);
        for rank in 1..100_000 {
            timers.set(at(10, rank), Event::Expiry(rank));
            timers.cancel(at(10, rank), Event::Expiry(rank));
        }
        assert!(timers.0[&Timestamp::from_millis(10)].set.len() < 1000);
    }
}
