//! What steering changes in the books.

use trapline_core::{Identity, Timestamp};
use trapline_frontier::Settings;
use trapline_frontier::script::{CrawlVerb, Steering};

use super::Oracle;
use super::books::{Books, Moment};
use super::entry::State;

impl Oracle {
    /// An operator steered a queue.
    pub(crate) fn steered(&mut self, key: &str, change: &Steering) {
        self.books.next_command();
        let index = self.books.queue(key);
        let settings = &self.books.settings;
        let queue = &mut self.books.queues[index];
        match change {
            Steering::Terms(terms) => queue.take_terms(terms, true, settings),
            Steering::Block(until) => {
                queue.blocked_until = *until;
                self.books.moments.insert((*until, Moment::Queue(index)));
            }
            Steering::Unblock => queue.blocked_until = Timestamp::ZERO,
            Steering::Retire => {
                queue.retired_by_hand = true;
                queue.active = false;
            }
            Steering::Reinstate => {
                queue.retired_by_hand = false;
                queue.over_budget = false;
            }
            Steering::Purge => self.books.forget_where(index, |state| {
                matches!(state, State::Pending | State::Retry(_) | State::Visit(_))
            }),
            Steering::Delete => self.books.forget_where(index, |_| true),
        }
        self.books.refresh(None);
    }

    /// An operator changed the crawl.
    pub(crate) fn changed(&mut self, change: &CrawlVerb) {
        let books = &mut self.books;
        books.next_command();
        match change {
            CrawlVerb::Pause => books.is_paused = true,
            CrawlVerb::Resume => books.is_paused = false,
            CrawlVerb::Finish => books.is_finished = true,
            CrawlVerb::Show => {}
            CrawlVerb::Set(changes) => {
                let reconsidering =
                    |settings: &Settings| (settings.queue_budget, settings.balance_replenish, settings.cost);
                let before = reconsidering(&books.settings);
                // What cannot be set is refused as a whole, by the store as well.
                let mut settings = books.settings.clone();
                if changes.iter().all(|(name, value)| settings.set(name, value).is_ok()) {
                    books.settings = settings;
                }
                if reconsidering(&books.settings) != before {
                    books.queues.iter_mut().for_each(|queue| queue.over_budget = false);
                }
                books.refresh(None);
                books.check_limits();
            }
        }
        self.fairness.forget();
    }

    /// An operator replayed the dead letters of a URL.
    pub(crate) fn replayed(&mut self, identity: Identity) {
        let books = &mut self.books;
        books.next_command();
        if books.is_finished {
            return;
        }
        for number in books.entries_of(identity).to_vec() {
            if books.entries[&number].state == State::Dead {
                books.visit_again(number, books.now);
                let entry = books.entry_mut(number);
                (entry.expiries, entry.retries) = (0, 0);
            }
        }
        books.refresh(None);
    }

    /// An operator made a URL unknown.
    pub(crate) fn forgot(&mut self, identity: Identity) {
        self.books.next_command();
        for number in self.books.entries_of(identity).to_vec() {
            self.books.forget(number);
        }
        self.books.refresh(None);
    }
}

impl Books {
    fn forget_where(&mut self, queue: usize, gone: impl Fn(State) -> bool) {
        let numbers: Vec<u64> = self.queues[queue].members.iter().copied().collect();
        for number in numbers {
            if gone(self.entries[&number].state) {
                self.forget(number);
            }
        }
    }
}
