//! Budgets: what a queue may spend, in a session and altogether, and what happens when it has.

use std::time::Duration;

use trapline_core::Timestamp;

use super::crawl::Crawl;
use super::moment::{Age, Moment};
use super::queues::{Queue, QueueId, Retired};
use super::serving::as_balance;
use super::timers::Event;
use super::urls::EntryId;
use crate::planted::Fault;
use crate::report::QueueState;

impl Crawl {
    /// A claim reaches a queue: its next URL, or nothing if the queue retires over it.
    pub(super) fn reach(&mut self, id: QueueId) -> Option<EntryId> {
        let queue = &self.queues[id];
        let Some(entry) = queue.order.first(self.order(), &self.urls) else {
            debug_assert!(false, "{} stands in line and has nothing to give", queue.key);
            self.stand_down(id);
            return None;
        };
        let cost = u64::from(self.urls[entry].cost);
        let replenish = queue.balance_replenish(&self.settings);
        let fits = queue
            .budget(&self.settings)
            .is_none_or(|budget| queue.spent(self.charges_from()).saturating_add(cost) <= budget);
        let fits = fits || self.planted.is(Fault::BudgetAfterGrant) && !self.is_spent(queue);
        if replenish == 0 || !fits {
            self.retire(id, Retired::OverBudget(self.generation));
            return None;
        }
        if !queue.active {
            self.stand_down(id);
            let queue = &mut self.queues[id];
            queue.active = true;
            queue.balance = as_balance(replenish);
        }
        Some(entry)
    }

    /// Whether nothing at all fits a queue's budget any more.
    fn is_spent(&self, queue: &Queue) -> bool {
        queue.budget(&self.settings).is_some_and(|budget| queue.spent(self.charges_from()) >= budget)
    }

    /// An error costs the queue its penalty.
    pub(super) fn penalize(&mut self, id: EntryId) {
        let (from, now, penalty) = (self.charges_from(), self.now, self.settings.error_penalty);
        let queue = &mut self.queues[self.urls[id].queue];
        queue.rare_mut().errors += 1;
        queue.spend(from, now, penalty);
        self.spent = self.spent.saturating_add(penalty);
    }

    /// Gives back what a grant cost. What was spent in an earlier period is not given back to this one.
    pub(super) fn refund(&mut self, id: QueueId, cost: u32, granted: Timestamp) {
        let (from, now) = (self.charges_from(), self.now);
        let queue = &mut self.queues[id];
        queue.balance = queue.balance.saturating_add(i64::from(cost));
        if granted >= from {
            queue.refund(from, now, u64::from(cost));
        }
        self.spent = self.spent.saturating_sub(u64::from(cost));
        if cost > 0 {
            self.reconsider(id);
        }
    }

    /// Retires a queue, which ends its session.
    pub(super) fn retire(&mut self, id: QueueId, why: Retired) {
        self.stand_down(id);
        self.census.remove(&self.queues[id], self.generation);
        let queue = &mut self.queues[id];
        queue.rare_mut().retired = Some(why);
        queue.active = false;
        if queue.base == QueueState::Ready {
            queue.base = QueueState::Inactive;
        }
        self.census.add(&self.queues[id], self.generation);
        self.stand_up(id);
        if matches!(why, Retired::OverBudget(_)) {
            self.set_period_timer();
        }
    }

    /// A retired queue is served again, as of this moment. It must find its state afterwards.
    pub(super) fn unretire(&mut self, id: QueueId) {
        let since = self.this_moment();
        self.stand_down(id);
        self.census.remove(&self.queues[id], self.generation);
        let queue = &mut self.queues[id];
        queue.rare_mut().retired = None;
        queue.freed = queue.freed.max(since);
        queue.set_age(Age::since(since));
        self.census.add(&self.queues[id], self.generation);
    }

    /// If a queue is over its budget, it gets another chance. It must find its state afterwards.
    pub(super) fn reconsider(&mut self, id: QueueId) {
        let queue = &self.queues[id];
        if queue.retired() == Some(Retired::OverBudget(self.generation)) {
            self.unretire(id);
        }
    }

    /// All queues over their budget get another chance, as of a moment, without being touched.
    pub(super) fn reconsider_all(&mut self, since: Moment) {
        self.lines.reconsider(self.generation, since);
        self.generation += 1;
        self.reconsidered.push(since);
        self.census.reconsider_all();
    }

    /// A new budget period begins: what is spent starts at 0.
    pub(super) fn begin_period(&mut self, moment: Moment) {
        self.period_timer = None;
        self.reconsider_all(moment);
    }

    /// A timer for the end of the period, as long as a queue waits for it.
    pub(super) fn set_period_timer(&mut self) {
        let end = self.period_ends().filter(|_| self.census.over_budget() > 0);
        // The command that set the periods set their ends.
        let timer = end.map(|at| Moment { at, rank: self.period_set.rank });
        if self.period_timer == timer {
            return;
        }
        if let Some(old) = std::mem::replace(&mut self.period_timer, timer) {
            self.timers.cancel(old, Event::Period);
        }
        if let Some(new) = timer {
            self.timers.set(new, Event::Period);
        }
    }

    /// From when on charges count: since the present budget period began.
    pub(super) fn charges_from(&self) -> Timestamp {
        let began = self.period_began(self.settings.queue_budget_period);
        if began > self.period_set.at { began } else { self.charged_before_period_set }
    }

    /// When the present period began, if periods are this long. They count from the crawl's start.
    fn period_began(&self, period: Option<Duration>) -> Timestamp {
        let Some(period) = period else { return self.started };
        let length = (Timestamp::ZERO + period).as_millis().max(1);
        let since = self.now.as_millis().saturating_sub(self.started.as_millis());
        Timestamp::from_millis(self.started.as_millis() + since / length * length)
    }

    /// When the present period ends.
    pub(super) fn period_ends(&self) -> Option<Timestamp> {
        let period = self.settings.queue_budget_period?;
        Some(self.period_began(Some(period)) + period)
    }

    /// Periods have another length from now on. What was spent so far counts until the first of them ends.
    pub(super) fn period_changed(&mut self, before: Option<Duration>) {
        let began = self.period_began(before);
        if began > self.period_set.at {
            self.charged_before_period_set = began;
        }
        self.period_set = self.this_moment();
    }
}
