//! What will happen by itself, in the order of its times: expiries, retries, visits, waking queues and groups,
//! ends of budget periods.
//!
//! Events are removed when they no longer hold, so the first one answers "when will something happen"; only those of
//! URLs that are gone with a purge or deletion stay until they are swept.

use std::collections::VecDeque;
use std::collections::btree_map::{BTreeMap, Entry};

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
/// instant is found in the tree once and holds a plain list, to which setting and cancelling only append. Retries and
/// next visits are mostly alone in theirs, and need no list.
#[derive(Debug, Default)]
pub(super) struct Timers(BTreeMap<Timestamp, Instant>);

/// What happens at one instant.
#[derive(Debug)]
enum Instant {
    One((Rank, Event)),
    Many(Box<List>),
}

/// What was set, without what was cancelled.
#[derive(Debug, Default)]
struct List {
    set: VecDeque<(Rank, Event)>,
    cancelled: Vec<(Rank, Event)>,
    /// Whether `set` is in order and nothing in it is cancelled.
    settled: bool,
}

impl Instant {
    fn push(&mut self, event: (Rank, Event)) {
        match self {
            Self::Many(list) => {
                list.set.push_back(event);
                list.settled = false;
            }
            Self::One(first) => {
                let mut set = VecDeque::with_capacity(8);
                set.extend([*first, event]);
                *self = Self::Many(Box::new(List { set, ..List::default() }));
            }
        }
    }
}

impl List {
    /// Strikes out what was cancelled and puts the rest in order.
    fn settle(&mut self) {
        if self.settled && self.cancelled.is_empty() {
            return;
        }
        self.set.make_contiguous().sort_unstable();
        if !self.cancelled.is_empty() {
            self.cancelled.sort_unstable();
            let mut cancelled = self.cancelled.drain(..).peekable();
            self.set.retain(|event| cancelled.next_if_eq(event).is_none());
        }
        self.settled = true;
    }
}

impl Timers {
    pub(super) fn set(&mut self, moment: Moment, event: Event) {
        let event = (moment.rank, event);
        match self.0.entry(moment.at) {
            Entry::Vacant(place) => {
                place.insert(Instant::One(event));
            }
            Entry::Occupied(place) => place.into_mut().push(event),
        }
    }

    /// Takes back what was set.
    pub(super) fn cancel(&mut self, moment: Moment, event: Event) {
        let Entry::Occupied(mut place) = self.0.entry(moment.at) else {
            debug_assert!(false, "{event:?} was not set for {moment:?}");
            return;
        };
        let Instant::Many(list) = place.get_mut() else {
            debug_assert!(
                matches!(place.get(), Instant::One(only) if *only == (moment.rank, event)),
                "{event:?} was not set for {moment:?}"
            );
            place.remove();
            return;
        };
        // Leases mostly end in the order of their grants.
        if list.set.front() == Some(&(moment.rank, event)) {
            list.set.pop_front();
        } else {
            list.cancelled.push((moment.rank, event));
        }
        if list.cancelled.len() == list.set.len() {
            place.remove();
        } else if list.cancelled.len() > list.set.len() / 2 + 64 {
            list.settle();
        }
    }

    /// At how many instants something happens.
    pub(super) fn instants(&self) -> usize {
        self.0.len()
    }

    /// When something will happen next.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.0.first_key_value().map(|(at, _)| *at)
    }

    /// The queues that will wake at an instant, if several things happen then.
    pub(super) fn waking(&self, at: Timestamp) -> impl Iterator<Item = QueueId> {
        let list = match self.0.get(&at) {
            Some(Instant::Many(list)) => Some(list),
            Some(Instant::One(_)) | None => None,
        };
        list.into_iter().flat_map(|list| &list.set).filter_map(|(_, event)| match event {
            Event::Queue(queue) => Some(*queue),
            _ => None,
        })
    }

    /// The entries that will be due from a moment on, in that order, so many at most.
    pub(super) fn due_from(&mut self, from: Moment, most: usize) -> Vec<EntryId> {
        let mut due = Vec::new();
        for (at, instant) in self.0.range_mut(from.at..) {
            let events = match instant {
                Instant::One(event) => std::slice::from_ref(event),
                Instant::Many(list) => {
                    list.settle();
                    list.set.make_contiguous()
                }
            };
            let first = if *at == from.at { from.rank } else { 0 };
            let begin = events.partition_point(|(rank, _)| *rank < first);
            let entries = events[begin..].iter().filter_map(|(_, event)| match event {
                Event::Due(entry) => Some(*entry),
                _ => None,
            });
            due.extend(entries.take(most - due.len()));
            if due.len() == most {
                break;
            }
        }
        due
    }

    /// Takes the first event, if it happens at `at`.
    pub(super) fn take_at(&mut self, at: Timestamp) -> Option<(Moment, Event)> {
        let mut first = self.0.first_entry().filter(|first| *first.key() == at)?;
        let ((rank, event), left) = match first.get_mut() {
            Instant::One(event) => (*event, 0),
            Instant::Many(list) => {
                list.settle();
                let event = list.set.pop_front()?;
                (event, list.set.len())
            }
        };
        if left == 0 {
            first.remove();
        }
        Some((Moment { at, rank }, event))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;

    fn at(at: u64, rank: Rank) -> Moment {
        Moment { at: Timestamp::from_millis(at), rank }
    }

    #[test]
    fn what_will_be_due_is_told_in_order_from_a_moment_on() {
        let mut timers = Timers::default();
        for (ms, rank) in [(20, 7), (10, 5), (10, 3), (30, 9), (10, 4)] {
            timers.set(at(ms, rank), Event::Due(EntryId(rank as u32)));
        }
        timers.set(at(10, 1), Event::Expiry(1));
        timers.cancel(at(10, 4), Event::Due(EntryId(4)));
        let due = |timers: &mut Timers, from, most| {
            timers.due_from(from, most).into_iter().map(|entry| entry.0).collect::<Vec<_>>()
        };
        assert_eq!(due(&mut timers, Moment::ZERO, 9), [3, 5, 7, 9]);
        assert_eq!(due(&mut timers, Moment::ZERO, 2), [3, 5]);
        assert_eq!(due(&mut timers, at(10, 4), 2), [5, 7]);
        assert_eq!(due(&mut timers, at(30, 9), 9), [9]);
        assert_eq!(due(&mut timers, at(30, 10), 9), [0; 0]);
        assert_eq!(timers.take_at(Timestamp::from_millis(10)), Some((at(10, 1), Event::Expiry(1))));
        assert_eq!(timers.take_at(Timestamp::from_millis(10)), Some((at(10, 3), Event::Due(EntryId(3)))));
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
        let Instant::Many(list) = &timers.0[&Timestamp::from_millis(10)] else { panic!("many were set") };
        assert!(list.set.len() < 1000);
    }

    /// Retries and next visits may be millions, each alone in its millisecond.
    #[test]
    fn what_happens_alone_needs_no_list() {
        assert_eq!(size_of::<Instant>(), size_of::<(Rank, Event)>());
    }

    /// Whatever is set, cancelled and taken, the answers are those of a plain ordered set.
    #[test]
    fn timers_answer_like_an_ordered_set() {
        for seed in 0..300u64 {
            let mut state = seed;
            let mut random = |end: usize| {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                (state >> 33) as usize % end
            };
            let (mut timers, mut set) = (Timers::default(), BTreeSet::new());
            let instants = [1, 3, 1000][random(3)];
            let cancels = random(4);
            for _ in 0..1000 {
                match random(10) {
                    0..5 => {
                        let moment = at(random(instants) as u64, random(500) as u64);
                        let event = [Event::Period, Event::Expiry(moment.rank / 2)][random(2)];
                        if set.insert((moment, event)) {
                            timers.set(moment, event);
                        }
                    }
                    5..8 => {
                        for _ in 0..cancels.min(set.len()) {
                            let (moment, event) = *set.iter().nth(random(set.len())).unwrap();
                            set.remove(&(moment, event));
                            timers.cancel(moment, event);
                        }
                    }
                    _ => {
                        let first = set.first().map_or(Timestamp::ZERO, |(moment, _)| moment.at);
                        assert_eq!(timers.take_at(first + Duration::from_millis(1)), None, "seed {seed}");
                        assert_eq!(timers.take_at(first), set.pop_first(), "seed {seed}");
                    }
                }
                assert_eq!(timers.next(), set.first().map(|(moment, _)| moment.at), "seed {seed}");
            }
        }
    }
}
