//! Queues: what the crawl knows of each, and how one is found by its key.
//!
//! A queue here only remembers. Which state follows from that, and where it stands in line, is worked out in
//! [`super::serving`].

use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use foldhash::SharedSeed;
use foldhash::fast::SeedableRandomState;
use hashbrown::HashTable;
use trapline_core::{NO_BUDGET, Terms, Timestamp};

use super::groups::GroupId;
use super::moment::{Age, Moment};
use super::order::Order;
use crate::report::QueueState;
use crate::settings::Settings;

/// Where a queue lies. Queues are never removed, so this is also the order of their creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct QueueId(pub(super) u32);

/// The precedence of a queue that nobody gave one.
const DEFAULT_PRECEDENCE: u8 = 3;

/// One queue.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) key: Arc<str>,
    pub(super) partition: u32,
    /// None until somebody sets one.
    terms: Option<Box<QueueTerms>>,
    pub(super) group: Option<GroupId>,

    /// Its pending URLs that are due.
    pub(super) order: Order,
    /// Its pending URLs that are due later.
    pub(super) waiting: u32,
    pub(super) leased: u32,
    /// Done URLs that wait for their next visit.
    pub(super) visits: u32,
    pub(super) done: u64,
    pub(super) disregarded: u64,
    pub(super) dead: u64,
    pub(super) errors: u64,

    /// In a session.
    pub(super) active: bool,
    /// Nothing has come since it was made or last ran empty: the next URL starts a session anew.
    pub(super) vacant: bool,
    pub(super) balance: i64,
    spent: u64,
    /// When that last changed: in an earlier budget period, it counts no more.
    spent_at: Timestamp,
    pub(super) latest_cost: u32,
    pub(super) grants: u64,
    pub(super) charged: u64,

    /// When it may be fetched from again.
    pub(super) next_fetch: Moment,
    /// Until when it is blocked.
    pub(super) blocked: Moment,
    /// When the latest of the hindrances that end by a command or an event ended.
    pub(super) freed: Moment,
    /// Whether, when it last found its state, nothing of it was due, and as much leased as may be.
    pub(super) bare: bool,
    pub(super) full: bool,
    pub(super) age: Age,
    /// Its state, were it not retired and had it no group.
    pub(super) base: QueueState,
    pub(super) retired: Option<Retired>,
    pub(super) standing: Standing,
    pub(super) timer: Option<Moment>,
    /// How many pending URLs and visits the census counts for it.
    pub(super) counted: (u32, u32),
    /// How often it was purged and deleted: what came in before is gone.
    pub(super) purges: u32,
    pub(super) deletions: u32,
}

/// Why a queue is retired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retired {
    /// An operator said so.
    ByHand,
    /// It is over its budget. Holds while the crawl's generation is this one.
    OverBudget(u64),
}

/// Where a queue stands in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nowhere: it cannot supply.
    Nowhere,
    /// Among the ready and inactive ones.
    InLine,
    /// Among the members of its group.
    InGroup,
    /// Among those that retired over their budget in this generation.
    Aside(u64),
}

/// The terms of a queue; None follows the crawl's settings.
#[derive(Debug, Default)]
pub(super) struct QueueTerms {
    precedence: Term<u8>,
    queue_budget: Term<u64>,
    balance_replenish: Term<u64>,
    delay: Term<Duration>,
    concurrency: Term<u32>,
    group_by_operator: bool,
}

/// One term, and whether an operator set it.
#[derive(Debug, Default)]
struct Term<T> {
    value: Option<T>,
    by_operator: bool,
}

impl<T: Copy + PartialEq> Term<T> {
    /// Takes a value on, unless it comes from a candidate and an operator was there before. Answers whether
    /// what holds has changed.
    fn take(&mut self, value: Option<T>, by_operator: bool, in_force: T) -> bool {
        let Some(value) = value else { return false };
        if self.by_operator && !by_operator {
            return false;
        }
        self.value = Some(value);
        self.by_operator |= by_operator;
        value != in_force
    }
}

/// Which terms of a queue changed in force.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TermsChanged {
    pub(super) any: bool,
    pub(super) concurrency: bool,
}

impl Queue {
    fn new(key: Arc<str>, partition: u32) -> Self {
        Self {
            key,
            partition,
            terms: None,
            group: None,
            order: Order::default(),
            waiting: 0,
            leased: 0,
            visits: 0,
            done: 0,
            disregarded: 0,
            dead: 0,
            errors: 0,
            active: false,
            vacant: true,
            balance: 0,
            spent: 0,
            spent_at: Timestamp::ZERO,
            latest_cost: 0,
            grants: 0,
            charged: 0,
            next_fetch: Moment::default(),
            blocked: Moment::default(),
            freed: Moment::default(),
            bare: true,
            full: false,
            age: Age::default(),
            base: QueueState::Empty,
            retired: None,
            standing: Standing::Nowhere,
            timer: None,
            counted: (0, 0),
            purges: 0,
            deletions: 0,
        }
    }

    fn term<T>(&self, of: impl FnOnce(&QueueTerms) -> Option<T>) -> Option<T> {
        self.terms.as_deref().and_then(of)
    }

    /// Pending URLs, due now or later.
    pub(super) fn pending(&self) -> u32 {
        self.order.len() + self.waiting
    }

    pub(super) fn precedence(&self) -> u8 {
        self.term(|terms| terms.precedence.value).unwrap_or(DEFAULT_PRECEDENCE)
    }

    pub(super) fn budget(&self, settings: &Settings) -> Option<u64> {
        let budget = self.term(|terms| terms.queue_budget.value).or(settings.queue_budget)?;
        (budget != NO_BUDGET).then_some(budget)
    }

    pub(super) fn balance_replenish(&self, settings: &Settings) -> u64 {
        self.term(|terms| terms.balance_replenish.value).unwrap_or(settings.balance_replenish)
    }

    pub(super) fn delay(&self, settings: &Settings) -> Duration {
        self.term(|terms| terms.delay.value).unwrap_or(settings.delay)
    }

    pub(super) fn concurrency(&self, settings: &Settings) -> u32 {
        self.term(|terms| terms.concurrency.value).unwrap_or(settings.concurrency)
    }

    /// Whether as much is leased as may be.
    pub(super) fn is_full(&self, settings: &Settings) -> bool {
        let concurrency = self.concurrency(settings);
        concurrency != 0 && self.leased >= concurrency
    }

    /// What was spent, if only charges from this time on count.
    pub(super) fn spent(&self, from: Timestamp) -> u64 {
        if self.spent_at >= from { self.spent } else { 0 }
    }

    pub(super) fn spend(&mut self, from: Timestamp, now: Timestamp, amount: u64) {
        self.spent = self.spent(from).saturating_add(amount);
        self.spent_at = now;
    }

    pub(super) fn refund(&mut self, from: Timestamp, now: Timestamp, amount: u64) {
        self.spent = self.spent(from).saturating_sub(amount);
        self.spent_at = now;
    }

    /// Takes terms on and answers what changed in force. The group is not among them: it is an index of the
    /// crawl's.
    pub(super) fn take_terms(
        &mut self,
        terms: &Terms,
        by_operator: bool,
        settings: &Settings,
    ) -> TermsChanged {
        let precedence = self.precedence();
        let budget = self.budget(settings).unwrap_or(NO_BUDGET);
        let replenish = self.balance_replenish(settings);
        let delay = self.delay(settings);
        let concurrency = self.concurrency(settings);
        let own = self.terms.get_or_insert_default();
        let mut changed = own.precedence.take(terms.precedence, by_operator, precedence);
        changed |= own.queue_budget.take(terms.queue_budget, by_operator, budget);
        changed |= own.balance_replenish.take(terms.balance_replenish, by_operator, replenish);
        changed |= own.delay.take(terms.delay, by_operator, delay);
        let freed = own.concurrency.take(terms.concurrency, by_operator, concurrency);
        TermsChanged { any: changed | freed, concurrency: freed }
    }

    /// Whether a group that a candidate or an operator names is to be taken on.
    pub(super) fn may_change_group(&mut self, by_operator: bool) -> bool {
        let terms = self.terms.get_or_insert_default();
        let may = by_operator || !terms.group_by_operator;
        terms.group_by_operator |= by_operator;
        may
    }

    /// Forgets all terms; answers whether that changes anything in force.
    pub(super) fn default_terms(&mut self, settings: &Settings) -> TermsChanged {
        let of = |queue: &Self| {
            (
                queue.precedence(),
                queue.budget(settings),
                queue.balance_replenish(settings),
                queue.delay(settings),
                queue.concurrency(settings),
            )
        };
        let before = of(self);
        self.terms = None;
        let after = of(self);
        TermsChanged { any: before != after, concurrency: before.4 != after.4 }
    }

    /// The moment at which the last of its own hindrances ended, if none is left at `now`.
    pub(super) fn free_since(&self, now: Timestamp) -> Moment {
        let past = |moment: Moment| if moment.at <= now { moment } else { Moment::default() };
        self.freed.max(past(self.next_fetch)).max(past(self.blocked))
    }
}

/// All queues of a crawl.
#[derive(Debug)]
pub(super) struct Queues {
    queues: Vec<Queue>,
    by_key: HashTable<QueueId>,
    /// Keys come from hostile pages, so their hash is seeded with the crawl's secret.
    hasher: SeedableRandomState,
}

impl Queues {
    pub(super) fn new(seed: u64) -> Self {
        let hasher = SeedableRandomState::with_seed(seed, SharedSeed::global_fixed());
        Self { queues: Vec::new(), by_key: HashTable::new(), hasher }
    }

    /// Makes room for so many more.
    pub(super) fn make_room(&mut self, more: usize) {
        let (queues, hasher) = (&self.queues, &self.hasher);
        self.by_key.reserve(more, |id| hasher.hash_one(&*queues[id.0 as usize].key));
        self.queues.reserve(more);
    }

    pub(super) fn find(&self, key: &str) -> Option<QueueId> {
        self.by_key.find(self.hasher.hash_one(key), |id| *self[*id].key == *key).copied()
    }

    /// The queue of a key, made if there is none; and whether it was made.
    pub(super) fn find_or_make(
        &mut self,
        key: &Arc<str>,
        partition: impl FnOnce(&str) -> u32,
    ) -> (QueueId, bool) {
        let hash = self.hasher.hash_one(&**key);
        if let Some(id) = self.by_key.find(hash, |id| *self.queues[id.0 as usize].key == **key) {
            return (*id, false);
        }
        let id = QueueId(u32::try_from(self.queues.len()).expect("fewer than 2^32 queues fit in memory"));
        self.queues.push(Queue::new(Arc::clone(key), partition(key)));
        let (queues, hasher) = (&self.queues, &self.hasher);
        self.by_key.insert_unique(hash, id, |id| hasher.hash_one(&*queues[id.0 as usize].key));
        (id, true)
    }

    pub(super) fn len(&self) -> u32 {
        self.queues.len() as u32
    }
}

impl std::ops::Index<QueueId> for Queues {
    type Output = Queue;

    fn index(&self, id: QueueId) -> &Queue {
        &self.queues[id.0 as usize]
    }
}

impl std::ops::IndexMut<QueueId> for Queues {
    fn index_mut(&mut self, id: QueueId) -> &mut Queue {
        &mut self.queues[id.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There may be millions of queues and hundreds of millions of entries: growing one is a decision.
    #[test]
    fn queues_and_entries_stay_small() {
        assert!(size_of::<Queue>() <= 320, "a queue has {} bytes", size_of::<Queue>());
        let entry = size_of::<super::super::urls::Entry>();
        assert!(entry <= 128, "an entry has {entry} bytes");
    }
}
