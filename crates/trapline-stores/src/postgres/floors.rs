//! Where to begin to look, so that what is long gone is not passed again and again.
//!
//! While some old snapshot may still see them, a server cannot clear away ended leases and former places in line. They lie before
//! all that lives, and every look goes over them: with a report running beside it for a minute, a claim would take a hundred times
//! as long. So whoever has looked at everything, and found that it takes long, begins the next looks where it found the first that
//! lives, for ten times as long as that look took; then it looks at everything again. What this handle itself puts before that
//! place, it knows of; what others put there it finds a little later, or as soon as nothing else is left to claim. Nothing but that
//! depends on it: whether a lease has expired, or a queue may be served, is never decided here.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::entry::State;
use super::queue::NOT_IN_LINE;
use super::work::Work;

/// Looks that take less long are made at everything, always: for what is due, and for queues to serve, where each that is found
/// takes its time as well.
const LONG_FOR_EVENTS: Duration = Duration::from_millis(3);
const LONG_FOR_LINE: Duration = Duration::from_millis(10);
const FOR_EACH: Duration = Duration::from_micros(50);

/// So many times as long as a look at everything took, the next ones begin where it found something.
const TIMES: u32 = 10;

/// Where to begin, as long as that is good.
#[derive(Clone, Debug, Default)]
pub(super) struct Floors {
    events: Option<Floor<Events>>,
    line: Option<Floor<Line>>,
}

#[derive(Clone, Debug)]
struct Floor<T> {
    good_until: Instant,
    at: T,
}

/// The earliest deadline, and the earliest time at which something is due.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Events {
    pub(super) expiry: i64,
    pub(super) due: i64,
}

/// The first of each precedence and tier that is there.
type Line = BTreeMap<(i64, i64), i64>;

impl<T> Floor<T> {
    /// After a look at everything.
    fn after(took: Duration, long: Duration, at: T) -> Option<Self> {
        (took >= long).then(|| Self { good_until: Instant::now() + took * TIMES, at })
    }

    fn is_good(&self) -> bool {
        Instant::now() < self.good_until
    }
}

impl Floors {
    /// Only what is still good.
    pub(super) fn good(&self) -> Self {
        Self {
            events: self.events.clone().filter(Floor::is_good),
            line: self.line.clone().filter(Floor::is_good),
        }
    }

    /// Where to begin to look for what is due.
    pub(super) fn events(&self) -> Events {
        self.events.as_ref().map(|floor| floor.at).unwrap_or_default()
    }

    /// What was found first of that, in a look that took so long.
    pub(super) fn found_events(&mut self, took: Duration, expiry: Option<i64>, due: Option<i64>) {
        match &mut self.events {
            Some(floor) => {
                floor.at =
                    Events { expiry: expiry.unwrap_or(floor.at.expiry), due: due.unwrap_or(floor.at.due) };
            }
            None => {
                let at = Events { expiry: expiry.unwrap_or(0), due: due.unwrap_or(0) };
                self.events = Floor::after(took, LONG_FOR_EVENTS, at);
            }
        }
    }

    /// Where to begin to look for queues: precedences, tiers and times. None for everywhere.
    pub(super) fn line(&self) -> Option<[Vec<i64>; 3]> {
        let line = &self.line.as_ref()?.at;
        Some([
            line.keys().map(|(precedence, _)| *precedence).collect(),
            line.keys().map(|(_, tier)| *tier).collect(),
            line.values().copied().collect(),
        ])
    }

    /// Nothing more is found from there on: the next look is at everything.
    pub(super) fn forget_line(&mut self) {
        self.line = None;
    }

    /// What was found first in line, in a look that took so long and found so many.
    pub(super) fn found_line(&mut self, took: Duration, found: usize, first: Line) {
        match &mut self.line {
            Some(floor) => floor.at.extend(first),
            None => {
                let each = FOR_EACH * u32::try_from(found).unwrap_or(u32::MAX);
                self.line = Floor::after(took, LONG_FOR_LINE + each, first);
            }
        }
    }

    /// Takes note of what a step has put before these places.
    pub(super) fn lower(&mut self, work: &Work) {
        if let Some(Floor { at, .. }) = &mut self.events {
            for entry in work.entries.values() {
                match &entry.state {
                    State::Leased(grant) => at.expiry = at.expiry.min(grant.deadline.at),
                    State::Waiting(_, due) => at.due = at.due.min(due.at),
                    _ => {}
                }
            }
        }
        if let Some(Floor { at, .. }) = &mut self.line {
            for queue in work.queues.values().filter(|queue| queue.touched && queue.row.tier != NOT_IN_LINE) {
                let floor = at.entry((queue.row.precedence, queue.row.tier)).or_insert(queue.row.serve_at);
                *floor = queue.row.serve_at.min(*floor);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quick_look_is_no_reason_to_begin_anywhere_else() {
        let mut floors = Floors::default();
        floors.found_events(Duration::from_millis(1), Some(7), None);
        floors.found_line(Duration::from_millis(1), 1, [((3, 0), 9)].into());
        assert_eq!((floors.events().expiry, floors.line()), (0, None));
    }

    #[test]
    fn after_a_long_look_the_next_begin_where_it_found_something() {
        let mut floors = Floors::default();
        floors.found_events(Duration::from_secs(9), Some(7), None);
        floors.found_line(Duration::from_secs(9), 2, [((3, 0), 9), ((3, 1), 4)].into());
        floors.found_events(Duration::ZERO, None, Some(8));
        floors.found_line(Duration::ZERO, 1, [((3, 0), 12)].into());
        let floors = floors.good();
        assert_eq!((floors.events().expiry, floors.events().due), (7, 8));
        assert_eq!(floors.line(), Some([vec![3, 3], vec![0, 1], vec![12, 4]]));
    }
}
