//! Queues: what the crawl knows of each, and how one is found by its key.
//!
//! A queue here only remembers. Which state follows from that, and where it stands in line, is worked out in
//! [`super::serving`].

use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use foldhash::SharedSeed;
use foldhash::quality::SeedableRandomState;
use trapline_core::{NO_BUDGET, Terms, Timestamp};

use super::chunks::Chunks;
use super::groups::GroupId;
use super::index::Index;
use super::moment::{Age, Moment};
use super::order::Order;
use crate::report::QueueState;
use crate::settings::Settings;

/// Where a queue lies. Queues are never removed, so this is also the order of their creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct QueueId(pub(super) u32);

/// The precedence of a queue that nobody gave one.
const DEFAULT_PRECEDENCE: u8 = 3;

/// One queue. There may be millions, so what few of them need is in [`Rare`].
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) key: Arc<str>,
    pub(super) rare: Option<Box<Rare>>,
    /// Its pending URLs that are due.
    pub(super) order: Order,

    pub(super) balance: i64,
    pub(super) spent: u64,
    /// When that last changed: in an earlier budget period, it counts no more.
    pub(super) spent_at: Timestamp,
    pub(super) charged: u64,
    pub(super) grants: u32,
    pub(super) latest_cost: u32,

    /// When it may be fetched from again.
    pub(super) next_fetch: Moment,
    /// When the latest of the hindrances that end by a command or an event ended.
    pub(super) freed: Moment,
    /// Its age, but for what is rare of it.
    pub(super) since: Moment,

    pub(super) leased: u32,
    pub(super) done: u32,
    pub(super) partition: u16,
    /// In a session.
    pub(super) active: bool,
    /// Nothing has come since it was made or last ran empty: the next URL starts a session anew.
    pub(super) vacant: bool,
    /// What it lacked when it last found its state.
    pub(super) lack: Lack,
    /// Its state, were it not retired and had it no group.
    pub(super) base: QueueState,
    pub(super) standing: Standing,
    pub(super) timer: QueueTimer,
}

/// What few queues need.
#[derive(Clone, Debug, Default)]
pub(super) struct Rare {
    pub(super) terms: QueueTerms,
    pub(super) group: Option<GroupId>,
    /// Its pending URLs that are due later.
    pub(super) waiting: u32,
    /// Done URLs that wait for their next visit.
    pub(super) visits: u32,
    pub(super) disregarded: u32,
    pub(super) dead: u32,
    pub(super) errors: u64,
    /// Until when it is blocked.
    pub(super) blocked: Moment,
    pub(super) retired: Option<Retired>,
    /// What its age was before it was reconsidered with others.
    pub(super) former: Option<Arc<Age>>,
    /// How often it was purged and deleted: what came in before is gone.
    pub(super) purges: u16,
    pub(super) deletions: u16,
}

/// Whether nothing of a queue was due, and as much leased as may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lack {
    Nothing,
    Bare,
    Full,
    BareAndFull,
}

impl Lack {
    pub(super) fn of(bare: bool, full: bool) -> Self {
        match (bare, full) {
            (false, false) => Self::Nothing,
            (true, false) => Self::Bare,
            (false, true) => Self::Full,
            (true, true) => Self::BareAndFull,
        }
    }

    pub(super) fn is_bare(self) -> bool {
        matches!(self, Self::Bare | Self::BareAndFull)
    }

    pub(super) fn is_full(self) -> bool {
        matches!(self, Self::Full | Self::BareAndFull)
    }
}

/// What a queue's timer waits for. To be cancelled before that moment changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueTimer {
    /// It has none.
    None,
    /// Its `next_fetch`.
    Fetch,
    /// The end of its block.
    Block,
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
    /// Among those that retired over their budget, in the generation that says so.
    Aside,
}

/// The terms of a queue; None follows the crawl's settings.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QueueTerms {
    pub(super) precedence: Term<u8>,
    pub(super) queue_budget: Term<u64>,
    pub(super) balance_replenish: Term<u64>,
    pub(super) delay: Term<Duration>,
    pub(super) concurrency: Term<u32>,
    pub(super) group_by_operator: bool,
}

/// One term, and whether an operator set it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Term<T> {
    pub(super) value: Option<T>,
    pub(super) by_operator: bool,
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
    fn new(key: Arc<str>, partition: u16) -> Self {
        Self {
            key,
            rare: None,
            order: Order::default(),
            balance: 0,
            spent: 0,
            spent_at: Timestamp::ZERO,
            charged: 0,
            grants: 0,
            latest_cost: 0,
            next_fetch: Moment::ZERO,
            freed: Moment::ZERO,
            since: Moment::ZERO,
            leased: 0,
            done: 0,
            partition,
            active: false,
            vacant: true,
            lack: Lack::Bare,
            base: QueueState::Empty,
            standing: Standing::Nowhere,
            timer: QueueTimer::None,
        }
    }

    /// What is rare of it, if anything is.
    pub(super) fn rare(&self) -> Option<&Rare> {
        self.rare.as_deref()
    }

    /// The same, to be changed.
    pub(super) fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    fn term<T>(&self, of: impl FnOnce(&QueueTerms) -> Option<T>) -> Option<T> {
        self.rare().and_then(|rare| of(&rare.terms))
    }

    pub(super) fn group(&self) -> Option<GroupId> {
        self.rare().and_then(|rare| rare.group)
    }

    pub(super) fn retired(&self) -> Option<Retired> {
        self.rare().and_then(|rare| rare.retired)
    }

    pub(super) fn blocked(&self) -> Moment {
        self.rare().map_or(Moment::ZERO, |rare| rare.blocked)
    }

    pub(super) fn waiting(&self) -> u32 {
        self.rare().map_or(0, |rare| rare.waiting)
    }

    pub(super) fn visits(&self) -> u32 {
        self.rare().map_or(0, |rare| rare.visits)
    }

    pub(super) fn purges(&self) -> u16 {
        self.rare().map_or(0, |rare| rare.purges)
    }

    pub(super) fn deletions(&self) -> u16 {
        self.rare().map_or(0, |rare| rare.deletions)
    }

    /// What its timer waits for.
    pub(super) fn timer_moment(&self) -> Option<Moment> {
        match self.timer {
            QueueTimer::None => None,
            QueueTimer::Fetch => Some(self.next_fetch),
            QueueTimer::Block => Some(self.blocked()),
        }
    }

    pub(super) fn age(&self) -> Age {
        Age { since: self.since, former: self.rare().and_then(|rare| rare.former.clone()) }
    }

    pub(super) fn set_age(&mut self, age: Age) {
        self.since = age.since;
        if age.former.is_some() || self.rare.is_some() {
            self.rare_mut().former = age.former;
        }
    }

    /// Pending URLs, due now or later.
    pub(super) fn pending(&self) -> u32 {
        self.order.len() + self.waiting()
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
        let own = &mut self.rare_mut().terms;
        let mut changed = own.precedence.take(terms.precedence, by_operator, precedence);
        changed |= own.queue_budget.take(terms.queue_budget, by_operator, budget);
        changed |= own.balance_replenish.take(terms.balance_replenish, by_operator, replenish);
        changed |= own.delay.take(terms.delay, by_operator, delay);
        let freed = own.concurrency.take(terms.concurrency, by_operator, concurrency);
        TermsChanged { any: changed | freed, concurrency: freed }
    }

    /// Whether a group that a candidate or an operator names is to be taken on.
    pub(super) fn may_change_group(&mut self, by_operator: bool) -> bool {
        let terms = &mut self.rare_mut().terms;
        let may = by_operator || !terms.group_by_operator;
        terms.group_by_operator |= by_operator;
        may
    }

    /// Its terms but for the group: those that came with candidates, or those that operators set.
    pub(super) fn terms_by(&self, by_operator: bool) -> Terms {
        let Some(Rare { terms, .. }) = self.rare() else { return Terms::default() };
        fn by<T: Copy>(term: Term<T>, by_operator: bool) -> Option<T> {
            term.value.filter(|_| term.by_operator == by_operator)
        }
        Terms {
            precedence: by(terms.precedence, by_operator),
            queue_budget: by(terms.queue_budget, by_operator),
            balance_replenish: by(terms.balance_replenish, by_operator),
            delay: by(terms.delay, by_operator),
            concurrency: by(terms.concurrency, by_operator),
            group: None,
        }
    }

    /// Whether an operator set its group, or that it has none.
    pub(super) fn is_grouped_by_operator(&self) -> bool {
        self.rare().is_some_and(|rare| rare.terms.group_by_operator)
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
        self.rare_mut().terms = QueueTerms::default();
        let after = of(self);
        TermsChanged { any: before != after, concurrency: before.4 != after.4 }
    }

    /// The moment at which the last of its own hindrances ended, if none is left at `now`.
    pub(super) fn free_since(&self, now: Timestamp) -> Moment {
        let past = |moment: Moment| if moment.at <= now { moment } else { Moment::default() };
        self.freed.max(past(self.next_fetch)).max(past(self.blocked()))
    }
}

/// All queues of a crawl.
#[derive(Debug)]
pub(super) struct Queues {
    pub(super) queues: Chunks<Queue>,
    by_key: Index,
    /// What the keys take, with the two counts before each.
    key_bytes: usize,
    /// Keys come from hostile pages, so their hash is seeded with the crawl's secret.
    hasher: SeedableRandomState,
}

impl Queues {
    pub(super) fn new(seed: u64) -> Self {
        let hasher = SeedableRandomState::with_seed(seed, SharedSeed::global_fixed());
        Self { queues: Chunks::default(), by_key: Index::default(), key_bytes: 0, hasher }
    }

    pub(super) fn find(&self, key: &str) -> Option<QueueId> {
        let is = |id| *self.queues[id as usize].key == *key;
        self.by_key.find(self.hasher.hash_one(key), is).map(QueueId)
    }

    /// What may be the queue of a key, to be asked ahead of time for many at once.
    pub(super) fn guess(&self, key: &str) -> Option<QueueId> {
        self.by_key.guess(self.hasher.hash_one(key)).map(QueueId)
    }

    /// The queue of a key, made if there is none; and whether it was made.
    pub(super) fn find_or_make(
        &mut self,
        key: &Arc<str>,
        partition: impl FnOnce(&str) -> u16,
    ) -> (QueueId, bool) {
        let hash = self.hasher.hash_one(&**key);
        if let Some(id) = self.by_key.find(hash, |id| *self.queues[id as usize].key == **key) {
            return (QueueId(id), false);
        }
        let id = u32::try_from(self.queues.len()).expect("fewer than 2^32 queues fit in memory");
        self.queues.push(Queue::new(Arc::clone(key), partition(key)));
        self.by_key.insert(hash, id);
        self.key_bytes += key.len() + 2 * size_of::<usize>();
        (QueueId(id), true)
    }

    /// Puts back a queue that was there, behind those that were before it.
    pub(super) fn restore(&mut self, queue: Queue) {
        self.by_key.insert(self.hasher.hash_one(&*queue.key), self.queues.len() as u32);
        self.key_bytes += queue.key.len() + 2 * size_of::<usize>();
        self.queues.push(queue);
    }

    /// Looks at a queue ahead of time, so that all of it is in the cache when it is wanted. What comes back is of no use
    /// but to keep the look from being left out.
    pub(super) fn touch(&self, id: QueueId) -> u64 {
        let queue = &self[id];
        let key = queue.key.as_bytes().first().copied().unwrap_or(0);
        queue.spent ^ queue.next_fetch.rank ^ queue.since.rank ^ u64::from(queue.leased) ^ u64::from(key)
    }

    pub(super) fn len(&self) -> u32 {
        self.queues.len() as u32
    }

    /// How much memory they take, but for what is rare.
    pub(super) fn bytes(&self) -> usize {
        self.queues.bytes() + self.by_key.bytes() + self.key_bytes
    }
}

impl std::ops::Index<QueueId> for Queues {
    type Output = Queue;

    #[inline]
    fn index(&self, id: QueueId) -> &Queue {
        &self.queues[id.0 as usize]
    }
}

impl std::ops::IndexMut<QueueId> for Queues {
    #[inline]
    fn index_mut(&mut self, id: QueueId) -> &mut Queue {
        &mut self.queues[id.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There may be millions of queues: growing one is a decision.
    #[test]
    fn queues_stay_small() {
        assert_eq!(size_of::<Queue>(), 152);
    }
}
