//! The census: how many queues are in which state, and how much there is to do, kept as things change so that
//! asking costs nothing.

use super::queues::{Queue, Retired};
use crate::report::QueueState;

/// How many queues are in which state, and how much there is to do, inside and outside retired ones.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Census {
    live: Count,
    by_hand: Count,
    /// In the present generation.
    over_budget: Count,
    /// Inactive and ready queues that a waiting group holds back.
    pub(super) held_by_groups: [u64; 2],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    states: [u64; 7],
    pending: u64,
    visits: u64,
}

impl Count {
    fn queues(&self) -> u64 {
        self.states.iter().sum()
    }
}

impl Census {
    fn count(&mut self, queue: &Queue, generation: u64) -> &mut Count {
        match queue.retired() {
            Some(Retired::ByHand) => &mut self.by_hand,
            Some(Retired::OverBudget(its)) if its == generation => &mut self.over_budget,
            _ => &mut self.live,
        }
    }

    /// Counts a queue as it is now.
    pub(super) fn add(&mut self, queue: &Queue, generation: u64) {
        let count = self.count(queue, generation);
        count.states[queue.base as usize] += 1;
        count.pending += u64::from(queue.pending());
        count.visits += u64::from(queue.visits());
    }

    /// Takes a queue out, as it is now.
    pub(super) fn remove(&mut self, queue: &Queue, generation: u64) {
        let count = self.count(queue, generation);
        count.states[queue.base as usize] -= 1;
        count.pending -= u64::from(queue.pending());
        count.visits -= u64::from(queue.visits());
    }

    /// A queue that is counted takes a state on.
    pub(super) fn change_state(&mut self, queue: &mut Queue, generation: u64, state: QueueState) {
        if queue.base != state {
            let count = self.count(queue, generation);
            count.states[queue.base as usize] -= 1;
            count.states[state as usize] += 1;
            queue.base = state;
        }
    }

    /// A URL of a queue becomes pending.
    pub(super) fn add_pending(&mut self, queue: &Queue, generation: u64) {
        self.count(queue, generation).pending += 1;
    }

    /// Some URLs of a queue are pending no more.
    pub(super) fn remove_pending(&mut self, queue: &Queue, generation: u64, urls: u32) {
        self.count(queue, generation).pending -= u64::from(urls);
    }

    /// A URL of a queue waits for its next visit.
    pub(super) fn add_visit(&mut self, queue: &Queue, generation: u64) {
        self.count(queue, generation).visits += 1;
    }

    /// Some URLs of a queue wait for no visit any more.
    pub(super) fn remove_visits(&mut self, queue: &Queue, generation: u64, urls: u32) {
        self.count(queue, generation).visits -= u64::from(urls);
    }

    pub(super) fn reconsider_all(&mut self) {
        let Count { states, pending, visits } = std::mem::take(&mut self.over_budget);
        for (live, more) in self.live.states.iter_mut().zip(states) {
            *live += more;
        }
        self.live.pending += pending;
        self.live.visits += visits;
    }

    pub(super) fn over_budget(&self) -> u64 {
        self.over_budget.queues()
    }

    pub(super) fn nothing_to_do(&self) -> bool {
        self.live.pending == 0 && self.live.visits == 0
    }

    /// How many queues are in each state, as the outside sees it.
    pub(super) fn queues(&self) -> [u64; 7] {
        let mut states = self.live.states;
        states[QueueState::Retired as usize] = self.by_hand.queues() + self.over_budget.queues();
        let [inactive, ready] = self.held_by_groups;
        states[QueueState::Inactive as usize] -= inactive;
        states[QueueState::Ready as usize] -= ready;
        states[QueueState::Snoozed as usize] += inactive + ready;
        states
    }

    /// Done URLs that wait for their next visit.
    pub(super) fn visits(&self) -> u64 {
        self.live.visits + self.by_hand.visits + self.over_budget.visits
    }
}
