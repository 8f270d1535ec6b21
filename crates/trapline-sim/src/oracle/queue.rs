//! What the oracle knows of one queue: its terms, what it spent, its session, and how its URLs stand.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use trapline_core::{NO_BUDGET, Terms, Timestamp};
use trapline_frontier::{Settings, UrlState};

use super::entry::State;

/// One queue.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub(super) key: String,
    pub(super) partition: u32,
    /// The numbers of its entries.
    pub(super) members: BTreeSet<u64>,
    /// What operators set, which wins, and what candidates brought.
    pub(super) steered: Terms,
    pub(super) suggested: Terms,
    pub(super) retired_by_hand: bool,
    pub(super) over_budget: bool,
    pub(super) blocked_until: Timestamp,
    pub(super) next_fetch: Timestamp,
    pub(super) active: bool,
    pub(super) balance: i64,
    pub(super) spent: u64,
    pub(super) latest_cost: u32,
    pub(super) errors: u64,
    /// When its last hindrance ended: among equals the earlier is served first.
    pub(super) free_since: Timestamp,
    pub(super) was_hindered: bool,
    pub(super) was_empty: bool,
    pub(super) counts: Counts,
}

/// Entries by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Pending and due.
    pub(super) due: u64,
    /// Pending, due later.
    pub(super) later: u64,
    pub(super) leased: u64,
    pub(super) done: u64,
    /// Done, with a next visit ahead.
    pub(super) visits: u64,
    pub(super) disregarded: u64,
    pub(super) dead: u64,
}

impl Counts {
    fn of(&mut self, state: State) -> &mut u64 {
        match state {
            State::Pending => &mut self.due,
            State::Retry(_) | State::Visit(_) => &mut self.later,
            State::Leased(_) => &mut self.leased,
            State::Done(_) => &mut self.done,
            State::Disregarded => &mut self.disregarded,
            State::Dead => &mut self.dead,
        }
    }

    pub(super) fn add(&mut self, state: State) {
        *self.of(state) += 1;
        self.visits += u64::from(matches!(state, State::Done(Some(_))));
    }

    pub(super) fn remove(&mut self, state: State) {
        *self.of(state) -= 1;
        self.visits -= u64::from(matches!(state, State::Done(Some(_))));
    }

    /// Pending, due now or later.
    pub(super) fn pending(&self) -> u64 {
        self.due + self.later
    }

    /// By what a report says, in the order of [`UrlState::ALL`].
    pub(super) fn shown(&self) -> [u64; 6] {
        UrlState::ALL.map(|state| match state {
            UrlState::Unknown => 0,
            UrlState::Pending => self.pending(),
            UrlState::Leased => self.leased,
            UrlState::Done => self.done,
            UrlState::Disregarded => self.disregarded,
            UrlState::Dead => self.dead,
        })
    }
}

/// A queue's terms as they are in force.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct InForce {
    pub(super) precedence: u8,
    pub(super) budget: Option<u64>,
    pub(super) replenish: u64,
    pub(super) delay: Duration,
    pub(super) concurrency: u32,
    pub(super) group: Option<Arc<str>>,
}

impl Queue {
    pub(super) fn new(key: &str, partition: u32) -> Self {
        Self {
            key: key.to_owned(),
            partition,
            members: BTreeSet::new(),
            steered: Terms::default(),
            suggested: Terms::default(),
            retired_by_hand: false,
            over_budget: false,
            blocked_until: Timestamp::ZERO,
            next_fetch: Timestamp::ZERO,
            active: false,
            balance: 0,
            spent: 0,
            latest_cost: 0,
            errors: 0,
            free_since: Timestamp::ZERO,
            was_hindered: true,
            was_empty: true,
            counts: Counts::default(),
        }
    }

    pub(super) fn is_retired(&self) -> bool {
        self.retired_by_hand || self.over_budget
    }

    /// Nothing pending, nothing leased.
    pub(super) fn is_empty(&self) -> bool {
        self.counts.pending() == 0 && self.counts.leased == 0
    }

    pub(super) fn in_force(&self, settings: &Settings) -> InForce {
        let Self { steered, suggested, .. } = self;
        let budget = steered.queue_budget.or(suggested.queue_budget).or(settings.queue_budget);
        let group = steered.group.as_ref().or(suggested.group.as_ref());
        InForce {
            precedence: steered.precedence.or(suggested.precedence).unwrap_or(3),
            budget: budget.filter(|budget| *budget != NO_BUDGET),
            replenish: steered
                .balance_replenish
                .or(suggested.balance_replenish)
                .unwrap_or(settings.balance_replenish),
            delay: steered.delay.or(suggested.delay).unwrap_or(settings.delay),
            concurrency: steered.concurrency.or(suggested.concurrency).unwrap_or(settings.concurrency),
            group: group.filter(|group| !group.is_empty()).cloned(),
        }
    }

    /// Takes on terms. Whatever really changes reconsiders a queue over its budget.
    pub(super) fn take_terms(&mut self, terms: &Terms, by_operator: bool, settings: &Settings) {
        let before = self.in_force(settings);
        let own = if by_operator { &mut self.steered } else { &mut self.suggested };
        own.precedence = terms.precedence.or(own.precedence);
        own.queue_budget = terms.queue_budget.or(own.queue_budget);
        own.balance_replenish = terms.balance_replenish.or(own.balance_replenish);
        own.delay = terms.delay.or(own.delay);
        own.concurrency = terms.concurrency.or(own.concurrency);
        own.group = terms.group.clone().or(own.group.take());
        if self.in_force(settings) != before {
            self.over_budget = false;
        }
    }

    pub(super) fn activate(&mut self, settings: &Settings) {
        self.active = true;
        self.balance = i64::try_from(self.in_force(settings).replenish).unwrap_or(i64::MAX);
    }

    pub(super) fn is_full(&self, settings: &Settings) -> bool {
        let most = u64::from(self.in_force(settings).concurrency);
        most > 0 && self.counts.leased >= most
    }
}
