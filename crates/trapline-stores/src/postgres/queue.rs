//! A queue as a step of work sees it: its row, its terms, and the rules that need nothing else.

use std::sync::Arc;
use std::time::Duration;

use trapline_core::{NO_BUDGET, Terms};
use trapline_frontier::{QueueState, Settings};

use super::moment::{Moment, count, time};

/// The precedence of a queue that nobody gave one.
const DEFAULT_PRECEDENCE: u8 = 3;

/// One queue.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub(super) id: i64,
    pub(super) key: Arc<str>,
    pub(super) partition: i64,
    /// Terms that came with candidates, and those that operators set.
    pub(super) suggested: Terms,
    pub(super) steered: Terms,
    pub(super) row: Row,
    /// Whether it could be served when it was brought here.
    pub(super) stood: bool,
    /// What is to be written when the step ends.
    pub(super) touched: bool,
    pub(super) terms_touched: bool,
    /// Whether its terms cannot be read: then it is not served, since nobody knows how long it is to wait.
    pub(super) unreadable: bool,
}

/// Where a queue stands in line.
pub(super) const NOT_IN_LINE: i64 = -1;
pub(super) const READY: i64 = 0;
pub(super) const INACTIVE: i64 = 1;

/// Why a queue is retired.
pub(super) const NOT_RETIRED: i64 = 0;
pub(super) const BY_HAND: i64 = 1;
pub(super) const OVER_BUDGET: i64 = 2;

/// What a queue lacked when it last found its state, as bits.
pub(super) const BARE: i64 = 1;
pub(super) const FULL: i64 = 2;

/// A row of numbers: its fields, the names of their columns, and the way from one to the other.
macro_rules! row {
    ($($field:ident),* $(,)?) => {
        /// The columns of a queue that change as it is served.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub(super) struct Row {
            $(pub(super) $field: i64,)*
        }

        impl Row {
            pub(super) const COLUMNS: [&'static str; [$(stringify!($field)),*].len()] = [$(stringify!($field)),*];

            pub(super) fn values(&self) -> [i64; Self::COLUMNS.len()] {
                [$(self.$field),*]
            }

            pub(super) fn read(mut value: impl FnMut(usize) -> i64) -> Self {
                let mut column = 0..;
                let mut next = || value(column.next().unwrap_or(0));
                Self { $($field: next()),* }
            }
        }
    };
}

row! {
    tier, precedence, serve_at, serve_rank, parked, group_id, retired, retired_at, concurrency, active, vacant, free, lack,
    age_at, age_rank, freed_at, freed_rank, next_at, next_rank, blocked_at, blocked_rank,
    balance, spent, spent_at, charged, grants, latest_cost,
    ready, waiting, visits, leased, done, disregarded, dead, errors,
    head_class, head_band, head_place,
}

impl Queue {
    /// Pending URLs, due now or later.
    pub(super) fn pending(&self) -> i64 {
        self.row.ready + self.row.waiting
    }

    fn term<T>(&self, of: impl Fn(&Terms) -> Option<T>) -> Option<T> {
        of(&self.steered).or_else(|| of(&self.suggested))
    }

    pub(super) fn precedence(&self) -> u8 {
        self.term(|terms| terms.precedence).unwrap_or(DEFAULT_PRECEDENCE)
    }

    pub(super) fn budget(&self, settings: &Settings) -> Option<u64> {
        let budget = self.term(|terms| terms.queue_budget).or(settings.queue_budget)?;
        (budget != NO_BUDGET).then_some(budget)
    }

    pub(super) fn replenish(&self, settings: &Settings) -> i64 {
        count(self.term(|terms| terms.balance_replenish).unwrap_or(settings.balance_replenish))
    }

    pub(super) fn delay(&self, settings: &Settings) -> Duration {
        self.term(|terms| terms.delay).unwrap_or(settings.delay)
    }

    pub(super) fn concurrency(&self, settings: &Settings) -> u32 {
        self.term(|terms| terms.concurrency).unwrap_or(settings.concurrency)
    }

    /// The group's name, if it has one.
    pub(super) fn group(&self) -> Option<Arc<str>> {
        self.term(|terms| terms.group.clone()).filter(|name| !name.is_empty())
    }

    /// Whether as much is leased as may be.
    pub(super) fn is_full(&self, settings: &Settings) -> bool {
        let concurrency = i64::from(self.concurrency(settings));
        concurrency != 0 && self.row.leased >= concurrency
    }

    /// How many more may be leased.
    pub(super) fn room(&self, settings: &Settings) -> i64 {
        match i64::from(self.concurrency(settings)) {
            0 => i64::MAX,
            most => (most - self.row.leased).max(0),
        }
    }

    /// Takes terms on, of candidates or of operators; answers whether something changed in force, and whether the
    /// concurrency did. The group's number is not among it.
    pub(super) fn take_terms(
        &mut self,
        terms: &Terms,
        by_operator: bool,
        settings: &Settings,
    ) -> (bool, bool) {
        // An operator wrote them, or a candidate: only an operator may write over them.
        if self.unreadable && !by_operator {
            return (false, false);
        }
        let before = self.in_force(settings);
        let own = if by_operator { &mut self.steered } else { &mut self.suggested };
        let taken = own.clone();
        own.precedence = terms.precedence.or(own.precedence);
        own.queue_budget = terms.queue_budget.or(own.queue_budget);
        own.balance_replenish = terms.balance_replenish.or(own.balance_replenish);
        own.delay = terms.delay.or(own.delay);
        own.concurrency = terms.concurrency.or(own.concurrency);
        own.group = terms.group.clone().or(own.group.take());
        self.terms_touched |= *own != taken || std::mem::take(&mut self.unreadable);
        self.terms_changed(&before, settings)
    }

    /// Forgets all terms; answers the same.
    pub(super) fn default_terms(&mut self, settings: &Settings) -> (bool, bool) {
        let before = self.in_force(settings);
        (self.suggested, self.steered) = (Terms::default(), Terms::default());
        (self.terms_touched, self.unreadable) = (true, false);
        self.terms_changed(&before, settings)
    }

    fn terms_changed(&mut self, before: &InForce, settings: &Settings) -> (bool, bool) {
        let after = self.in_force(settings);
        self.row.precedence = after.precedence.into();
        self.row.concurrency = self.term(|terms| terms.concurrency).map_or(-1, i64::from);
        (after != *before, after.concurrency != before.concurrency)
    }

    fn in_force(&self, settings: &Settings) -> InForce {
        InForce {
            precedence: self.precedence(),
            budget: self.budget(settings),
            replenish: self.replenish(settings),
            delay: self.delay(settings),
            concurrency: self.concurrency(settings),
            group: self.group(),
        }
    }

    pub(super) fn age(&self) -> Moment {
        Moment { at: self.row.age_at, rank: self.row.age_rank }
    }

    pub(super) fn set_age(&mut self, age: Moment) {
        (self.row.age_at, self.row.age_rank) = (age.at, age.rank);
    }

    pub(super) fn freed(&self) -> Moment {
        Moment { at: self.row.freed_at, rank: self.row.freed_rank }
    }

    /// A hindrance that ends by a command or an event has ended.
    pub(super) fn free(&mut self, since: Moment) {
        let freed = self.freed().max(since);
        (self.row.freed_at, self.row.freed_rank) = (freed.at, freed.rank);
    }

    pub(super) fn next(&self) -> Moment {
        Moment { at: self.row.next_at, rank: self.row.next_rank }
    }

    pub(super) fn set_next(&mut self, next: Moment) {
        (self.row.next_at, self.row.next_rank) = (next.at, next.rank);
    }

    pub(super) fn blocked(&self) -> Moment {
        Moment { at: self.row.blocked_at, rank: self.row.blocked_rank }
    }

    pub(super) fn set_blocked(&mut self, until: Moment) {
        (self.row.blocked_at, self.row.blocked_rank) = (until.at, until.rank);
    }

    /// When the last of its own hindrances ended, or will.
    pub(super) fn free_since(&self) -> Moment {
        self.freed().max(self.next()).max(self.blocked())
    }

    pub(super) fn is_retired(&self) -> bool {
        self.row.retired != NOT_RETIRED
    }

    /// Time has passed: what was foreseen for it has happened.
    pub(super) fn wake(&mut self, now: i64) {
        let row = &mut self.row;
        if row.free == 0 && row.tier != NOT_IN_LINE && row.serve_at <= now {
            row.free = 1;
            (row.age_at, row.age_rank) = (row.serve_at, row.serve_rank);
            if row.tier == INACTIVE {
                row.active = 0;
            }
        }
    }

    /// Whether it can be served.
    pub(super) fn stands(&self, now: i64) -> bool {
        self.row.tier != NOT_IN_LINE && self.row.serve_at <= now
    }

    /// Puts it in line, as of a moment.
    pub(super) fn stand(&mut self, tier: i64, since: Moment) {
        self.row.tier = tier;
        (self.row.serve_at, self.row.serve_rank) = (since.at, since.rank);
    }

    /// What was spent, if only charges from this time on count.
    pub(super) fn spent(&self, from: i64) -> i64 {
        if self.row.spent_at >= from { self.row.spent } else { 0 }
    }

    pub(super) fn spend(&mut self, from: i64, now: i64, amount: i64) {
        self.row.spent = self.spent(from).saturating_add(amount).max(0);
        self.row.spent_at = now;
    }

    /// Whether a URL of this cost fits its budget.
    pub(super) fn fits(&self, from: i64, cost: i64, settings: &Settings) -> bool {
        let spent = self.spent(from).saturating_add(cost).unsigned_abs();
        self.budget(settings).is_none_or(|budget| spent <= budget)
    }

    /// Whether more has happened to it than that it was given URLs.
    pub(super) fn is_used(&self) -> bool {
        let row = &self.row;
        row.grants > 0
            || row.leased > 0
            || self.next() != Moment::ZERO
            || self.blocked() != Moment::ZERO
            || self.is_retired()
            || self.suggested != Terms::default()
            || self.steered != Terms::default()
    }

    /// Its state, as the outside sees it.
    pub(super) fn state(&self, now: i64, group_waits: bool, settings: &Settings) -> QueueState {
        if self.is_retired() {
            QueueState::Retired
        } else if self.row.blocked_at > now {
            QueueState::Blocked
        } else if self.pending() == 0 && self.row.leased == 0 {
            QueueState::Empty
        } else if self.is_full(settings) || self.pending() == 0 {
            QueueState::Busy
        } else if self.row.next_at > now || self.row.ready == 0 || group_waits {
            QueueState::Snoozed
        } else if self.row.active == 1 {
            QueueState::Ready
        } else {
            QueueState::Inactive
        }
    }

    /// In which order queues that are served are served: lower first.
    pub(super) fn turn(&self) -> Turn {
        Turn {
            precedence: self.row.precedence,
            tier: self.row.tier,
            since: Moment { at: self.row.serve_at, rank: self.row.serve_rank },
            queue: self.id,
        }
    }

    /// The queue's own wait in words, for reports.
    pub(super) fn next_fetch(&self) -> trapline_core::Timestamp {
        time(self.row.next_at)
    }
}

/// A place in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    pub(super) precedence: i64,
    pub(super) tier: i64,
    pub(super) since: Moment,
    pub(super) queue: i64,
}

/// A queue's terms as they are in force.
#[derive(Debug, PartialEq)]
struct InForce {
    precedence: u8,
    budget: Option<u64>,
    replenish: i64,
    delay: Duration,
    concurrency: u32,
    group: Option<Arc<str>>,
}
