//! A rival of the engine's timers: the tree it had before, in which every instant is a list, also of one event.

use std::collections::{BTreeMap, VecDeque};

use trapline_core::Timestamp;

use super::moment::{Moment, Rank};
use super::timers::Event;

/// All events to come, by instant.
///
/// Many fall on the same millisecond: the leases of one claim, the waits after one batch of settlements. So an
/// instant is found in the tree once and holds a plain list, to which setting and cancelling only append.
#[derive(Debug, Default)]
pub(super) struct Lists(BTreeMap<Timestamp, Instant>);

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

impl Lists {
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
