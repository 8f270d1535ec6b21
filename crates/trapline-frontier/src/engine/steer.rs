//! `steer`: what operators change.

use std::sync::Arc;

use trapline_core::Identity;

use super::crawl::Crawl;
use super::jobs::Task;
use super::moment::Moment;
use super::queues::{QueueId, QueueTimer, Retired};
use super::urls::{EntryId, State};
use crate::pattern::Pattern;
use crate::report::{CrawlState, UrlState};
use crate::settings::{SettingError, Settings};
use crate::verbs::{DeadChange, DeadLetters, QueueChange, Steered, UrlChange, UrlFilter, UrlsChange};

impl Crawl {
    pub(super) fn steer_queue(&mut self, key: &str, change: QueueChange) -> Steered {
        let id = self.queue_of(&Arc::from(key));
        let mut steered = Steered { affected: 1, job: None };
        match change {
            QueueChange::Terms(terms) => {
                self.take_terms(id, &terms, true);
                self.refresh(id);
            }
            QueueChange::DefaultTerms => {
                self.stand_down(id);
                let mut changed = self.queues[id].default_terms(&self.settings);
                changed.any |= self.queues[id].rare_mut().group.take().is_some();
                self.terms_changed(id, changed);
                self.refresh(id);
            }
            QueueChange::Block(until) if until > self.now => {
                let until = Moment { at: until, rank: self.draw() };
                self.block(id, until);
            }
            QueueChange::Block(_) | QueueChange::Unblock => {
                if self.queues[id].blocked().at > self.now {
                    let now = self.this_moment();
                    self.block(id, now);
                } else {
                    self.refresh(id);
                }
            }
            QueueChange::Retire => {
                self.refresh(id);
                if self.queues[id].retired() != Some(Retired::ByHand) {
                    self.retire(id, Retired::ByHand);
                }
            }
            QueueChange::Reinstate => {
                self.refresh(id);
                if self.queues[id].retired().is_some() {
                    self.unretire(id);
                    self.refresh(id);
                }
            }
            QueueChange::Purge(None) => steered = self.purge(id),
            QueueChange::Purge(Some(pattern)) => {
                steered = self.begin(Task::Purge { queue: Some(id), pattern });
            }
            QueueChange::Delete => steered = self.delete(id),
        }
        steered
    }

    /// A queue is not served before `until`.
    pub(super) fn block(&mut self, id: QueueId, until: Moment) {
        self.cancel_queue_timer(id, QueueTimer::Block);
        self.queues[id].rare_mut().blocked = until;
        self.refresh(id);
    }

    /// Forgets a queue's pending URLs at once; their slots are swept in the background.
    fn purge(&mut self, id: QueueId) -> Steered {
        if self.queues[id].purges() == u16::MAX {
            self.sweep_all();
        }
        let queue = &mut self.queues[id];
        let pending = queue.pending();
        self.census.remove_pending(queue, self.generation, pending);
        queue.order = Default::default();
        let rare = queue.rare_mut();
        rare.waiting = 0;
        rare.purges = rare.purges.wrapping_add(1);
        self.url_counts[UrlState::Pending as usize] -= u64::from(pending);
        self.refresh(id);
        Steered { affected: pending.into(), ..self.begin_sweep() }
    }

    /// Forgets all of a queue's URLs at once; their slots are swept in the background.
    fn delete(&mut self, id: QueueId) -> Steered {
        if self.queues[id].deletions() == u16::MAX {
            self.sweep_all();
        }
        let moment = self.this_moment();
        let queue = &mut self.queues[id];
        let (pending, leased, done) = (queue.pending(), queue.leased, queue.done);
        self.census.remove_pending(queue, self.generation, pending);
        self.census.remove_visits(queue, self.generation, queue.visits());
        queue.order = Default::default();
        (queue.leased, queue.done) = (0, 0);
        queue.freed = queue.freed.max(moment);
        let rare = queue.rare_mut();
        let (disregarded, dead) = (rare.disregarded, rare.dead);
        (rare.waiting, rare.visits, rare.disregarded, rare.dead) = (0, 0, 0, 0);
        rare.deletions = rare.deletions.wrapping_add(1);
        let counts = [
            (UrlState::Pending, pending),
            (UrlState::Leased, leased),
            (UrlState::Done, done),
            (UrlState::Disregarded, disregarded),
            (UrlState::Dead, dead),
        ];
        for (state, count) in counts {
            self.url_counts[state as usize] -= u64::from(count);
        }
        self.refresh(id);
        let affected = counts.iter().map(|(_, count)| u64::from(*count)).sum();
        Steered { affected, ..self.begin_sweep() }
    }

    /// Forgets what matches and is pending, in whatever queue.
    pub(super) fn purge_all(&mut self, pattern: Pattern) -> Steered {
        self.begin(Task::Purge { queue: None, pattern })
    }

    pub(super) fn steer_url(&mut self, identity: Identity, change: UrlChange) -> Steered {
        let mut affected = 0;
        match change {
            UrlChange::Forget => {
                let entries = self.find_all(identity);
                affected = u64::from(!entries.is_empty());
                let queues = entries.iter().map(|entry| self.urls[*entry].queue).collect();
                for entry in entries {
                    self.drop_entry(entry);
                }
                self.supply_all(queues, None);
            }
            UrlChange::Class(class) => {
                if let Some(entry) = self.find_url(identity)
                    && self.urls.state(entry).is_pending()
                    && self.urls[entry].class != class
                {
                    self.move_to_class(entry, class);
                    affected = 1;
                }
            }
        }
        Steered { affected, job: None }
    }

    pub(super) fn steer_urls(&mut self, which: UrlFilter, change: UrlsChange) -> Steered {
        let queue = match which.key.map(|key| self.queues.find(&key)) {
            // A queue that nobody knows has no URLs.
            Some(None) => return Steered::default(),
            queue => queue.flatten(),
        };
        self.begin(Task::Urls { queue, pattern: which.pattern, change })
    }

    pub(super) fn steer_dead(&mut self, which: DeadLetters, change: DeadChange) -> Steered {
        let queue = match which {
            DeadLetters::Url(identity) => {
                let mut dead = self.find_all(identity);
                dead.retain(|entry| self.urls.state(*entry) == State::Dead);
                let queues = dead.iter().map(|entry| self.urls[*entry].queue).collect();
                let changed = dead.into_iter().rev().filter(|entry| self.change_dead(*entry, change));
                let affected = changed.count() as u64;
                self.supply_all(queues, None);
                return Steered { affected, job: None };
            }
            DeadLetters::All => None,
            DeadLetters::Queue(key) => match self.queues.find(&key) {
                Some(queue) => Some(queue),
                None => return Steered::default(),
            },
        };
        self.begin(Task::Dead { queue, change })
    }

    /// Replays or forgets one dead letter; answers whether it did: a crawl that is over replays nothing. Its queue
    /// must find its state afterwards.
    pub(super) fn change_dead(&mut self, id: EntryId, change: DeadChange) -> bool {
        match change {
            DeadChange::Purge => self.drop_entry(id),
            DeadChange::Replay if self.is_finished() => return false,
            DeadChange::Replay => {
                self.leave(id);
                self.clear_troubles(id);
                self.place_as_admitted(id, self.now);
                self.enter(id, State::Pending);
            }
        }
        true
    }

    /// Changes settings, all or none.
    pub(super) fn set(&mut self, changes: &[(String, String)]) -> Result<(), SettingError> {
        let mut settings = self.settings.clone();
        for (name, value) in changes {
            settings.set(name, value)?;
        }
        if settings.order != self.settings.order {
            return Err(SettingError::Fixed("order"));
        }
        let before = std::mem::replace(&mut self.settings, settings);
        self.settings_changed(&before);
        Ok(())
    }

    fn settings_changed(&mut self, before: &Settings) {
        let after = &self.settings;
        let budgets =
            |settings: &Settings| (settings.queue_budget, settings.balance_replenish, settings.cost);
        let (concurrency, reconsider) =
            (after.concurrency != before.concurrency, budgets(after) != budgets(before));
        if after.queue_budget_period != before.queue_budget_period {
            self.period_changed(before.queue_budget_period);
            self.set_period_timer();
        }
        if reconsider {
            let moment = self.this_moment();
            self.reconsider_all(moment);
        }
        if concurrency {
            self.concurrency_changed();
        }
        self.check_limits();
    }

    /// Queues with leases may be full no more, or now. Those freed keep their former order.
    fn concurrency_changed(&mut self) {
        let queues = self.leases.iter().map(|(_, grant)| self.urls[grant.entry].queue).collect();
        self.supply_all(queues, None);
    }

    pub(super) fn pause(&mut self) {
        if self.state == CrawlState::Running {
            self.state = CrawlState::Paused;
        }
    }

    pub(super) fn resume(&mut self) {
        if self.state == CrawlState::Paused {
            self.state = CrawlState::Running;
        }
    }
}
