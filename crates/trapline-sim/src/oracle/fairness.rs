//! N9: how many sessions of others a queue that could be served has had to watch.

use std::collections::BTreeMap;

use super::books::Books;
use super::breach::{Breach, Rule};

/// A queue may be passed over for so many sessions of another of its precedence.
const SESSIONS_MAX: u32 = 2;

/// The sessions that each queue has seen begin since it could be served: of whom, how many.
#[derive(Clone, Default)]
pub(super) struct Fairness {
    watched: BTreeMap<usize, BTreeMap<usize, u32>>,
}

impl Fairness {
    /// The crawl's settings were changed, perhaps those that fairness depends on: counting starts again.
    pub(super) fn forget(&mut self) {
        self.watched.clear();
    }

    /// A queue was served, and a session of it began or went on, while others could have been served as well.
    pub(super) fn served(
        &mut self,
        books: &Books,
        queue: usize,
        is_new_session: bool,
        others: impl Iterator<Item = usize>,
    ) -> Result<(), Breach> {
        self.watched.remove(&queue);
        if !books.settings.hold_queues {
            return Ok(());
        }
        let mut waiting = BTreeMap::new();
        for other in others {
            let mut seen = self.watched.remove(&other).unwrap_or_default();
            if is_new_session {
                let sessions = seen.entry(queue).or_default();
                *sessions += 1;
                if *sessions > SESSIONS_MAX {
                    let (other, queue) = (&books.queues[other].key, &books.queues[queue].key);
                    let message =
                        format!("{other} could be served and has seen {sessions} sessions of {queue} begin");
                    return Err(Breach::new(Rule::N9, message));
                }
            }
            waiting.insert(other, seen);
        }
        // Whoever could not be served in between has nothing to complain about; whoever this claim may not serve keeps
        // what it has seen.
        self.watched.retain(|other, _| books.is_eligible(*other));
        self.watched.extend(waiting);
        Ok(())
    }

    /// Time has passed or something was settled: who cannot be served any more starts to count again.
    pub(super) fn look(&mut self, books: &Books) {
        self.watched.retain(|other, _| books.is_eligible(*other));
    }
}
