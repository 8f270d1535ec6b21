//! `claim`: which URLs are fetched next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use trapline_core::{Request, Timestamp};

use super::WARMED_MAX;
use super::crawl::Crawl;
use super::leases::Grant;
use super::line::{Next, Turn};
use super::moment::Moment;
use super::payloads::{Handed, UnreadRequest};
use super::queues::QueueId;
use super::timers::Event;
use super::urls::{EntryId, State};
use crate::planted::Fault;
use crate::report::{CrawlState, UrlState};
use crate::verbs::{Lease, LeaseId, Want};

/// No claim grants more than this, whatever it asks for: the caller can claim again, and a claim of URLs that come
/// back at once (`lease=0` without `max_deliveries`) comes to an end.
pub(super) const GRANTS_MAX: usize = 1_000_000;

/// What a claim granted.
pub(super) struct Granted {
    pub(super) leases: Vec<Lease>,
    /// Where their requests are, if they were not read.
    pub(super) unread: Vec<UnreadRequest>,
}

/// One claim of a crawl under way.
pub(super) struct Round<'a> {
    want: &'a Want,
    /// How many URLs, and from at most how many queues.
    pub(super) urls: usize,
    pub(super) queues: Option<usize>,
    pub(super) leases: Vec<Lease>,
    unread: Vec<UnreadRequest>,
    /// How much each queue has given, where a bound asks for it.
    given: BTreeMap<QueueId, usize>,
    /// Queues taken out of line for the rest of the claim: excluded, or at their bound.
    aside: BTreeSet<QueueId>,
    /// At most so many of a queue.
    per_queue: usize,
}

impl Crawl {
    /// Grants up to what is wanted, each under the next number of `last_lease`.
    pub(super) fn claim(&mut self, want: &Want, last_lease: &mut u64) -> Granted {
        self.warm_claim(want);
        let mut round = self.begin_round(want);
        let spread = want.min_queues.map(|queues| (want.urls / queues.max(1)).max(1));
        if let Some(spread) = spread.filter(|spread| *spread < round.per_queue) {
            let excluded = round.aside.clone();
            let bound = std::mem::replace(&mut round.per_queue, spread);
            self.grant_round(&mut round, last_lease);
            round.per_queue = bound;
            for queue in std::mem::replace(&mut round.aside, excluded).difference(&round.aside) {
                self.stand_up(*queue);
            }
        }
        self.grant_round(&mut round, last_lease);
        self.end_round(round)
    }

    /// Looks at what a claim will probably grant, ahead of time: see [`Crawl::warm`].
    fn warm_claim(&self, want: &Want) {
        let plain = want.keys.is_none() && want.partitions.is_none() && want.queues.is_none();
        if want.urls > 1 && plain && self.state == CrawlState::Running {
            let queues = self.lines.likely(want.urls.min(WARMED_MAX));
            let touched = queues.iter().fold(0, |all, queue| all ^ self.queues.touch(*queue));
            std::hint::black_box(touched);
            let entries: Vec<_> =
                queues.iter().filter_map(|queue| self.queues[*queue].order.likely()).collect();
            self.urls.touch(&entries);
            self.urls.expect(&entries);
            // Those behind them become the first of their queues.
            self.urls.touch(&self.urls.behind(&entries));
        }
    }

    /// Begins a claim: what it excludes is taken out of line until it ends.
    pub(super) fn begin_round<'a>(&mut self, want: &'a Want) -> Round<'a> {
        let urls = want.urls.min(GRANTS_MAX);
        let pending = self.url_counts[UrlState::Pending as usize] as usize;
        let mut round = Round {
            want,
            urls,
            queues: want.queues,
            leases: Vec::with_capacity(urls.min(pending).min(WARMED_MAX)),
            unread: Vec::new(),
            given: BTreeMap::new(),
            aside: BTreeSet::new(),
            per_queue: want.per_queue.unwrap_or(usize::MAX),
        };
        for key in &want.except {
            if let Some(queue) = self.queues.find(key) {
                self.set_aside(queue, &mut round);
            }
        }
        round
    }

    /// Ends a claim, and answers what it granted.
    pub(super) fn end_round(&mut self, round: Round<'_>) -> Granted {
        for queue in round.aside {
            self.stand_up(queue);
        }
        let running = self.state == CrawlState::Running;
        if running
            && round.leases.len() < round.want.urls
            && self.settings.pause_at_finish
            && self.is_exhausted()
        {
            self.state = CrawlState::Paused;
        }
        Granted { leases: round.leases, unread: round.unread }
    }

    /// Takes a queue out of line for the rest of the claim.
    fn set_aside(&mut self, queue: QueueId, round: &mut Round<'_>) {
        if round.aside.insert(queue) {
            self.refresh(queue);
            self.stand_down(queue);
        }
    }

    /// Grants until the round has as many URLs as it is to have, or nothing is left for it.
    pub(super) fn grant_round(&mut self, round: &mut Round<'_>, last_lease: &mut u64) {
        let forgotten = self.planted.is(Fault::PauseForgotten) && round.want.keys.is_some();
        if self.state != CrawlState::Running && !forgotten || round.per_queue == 0 || round.queues == Some(0)
        {
            return;
        }
        let allowed = round
            .want
            .partitions
            .as_ref()
            .map(|partitions| partitions.iter().copied().collect::<BTreeSet<_>>());
        if let Some(keys) = &round.want.keys {
            let queues = keys.iter().filter_map(|key| self.queues.find(key)).collect();
            self.grant_from(queues, allowed.as_ref(), round, last_lease);
            return;
        }
        while round.leases.len() < round.urls {
            if round.queues.is_some_and(|most| round.given.len() >= most) {
                let queues = round.given.keys().copied().collect();
                self.grant_from(queues, allowed.as_ref(), round, last_lease);
                return;
            }
            let queue = match self.lines.next(allowed.as_ref()) {
                None => return,
                Some(Next::Queue(queue)) => queue,
                Some(Next::Returning(queue)) => {
                    self.refresh(queue);
                    continue;
                }
            };
            if let Some(entry) = self.reach(queue) {
                self.lines.end_turn();
                self.grant(queue, entry, round, last_lease);
                if round.at_bound(queue) {
                    self.set_aside(queue, round);
                }
            }
        }
    }

    /// Grants from these queues only, in the order of their turns.
    fn grant_from(
        &mut self,
        queues: BTreeSet<QueueId>,
        allowed: Option<&BTreeSet<u32>>,
        round: &mut Round<'_>,
        last_lease: &mut u64,
    ) {
        let mut turns: BTreeSet<Turn> = BTreeSet::new();
        for queue in queues {
            let partition = u32::from(self.queues[queue].partition);
            let open = !round.aside.contains(&queue) && !round.at_bound(queue);
            if open && allowed.is_none_or(|allowed| allowed.contains(&partition)) {
                self.refresh(queue);
                turns.extend(self.open_turn(queue));
            }
        }
        while round.leases.len() < round.urls {
            let Some(turn) = turns.pop_first() else { return };
            let queue = turn.queue;
            if !round.given.contains_key(&queue) && round.queues.is_some_and(|most| round.given.len() >= most)
            {
                continue;
            }
            let Some(entry) = self.reach(queue) else { continue };
            self.grant(queue, entry, round, last_lease);
            if !round.at_bound(queue) {
                turns.extend(self.open_turn(queue));
            }
        }
    }

    /// The turn of a queue, if it may be served.
    fn open_turn(&self, queue: QueueId) -> Option<Turn> {
        use crate::report::QueueState::{Inactive, Ready};
        matches!(self.state_of(&self.queues[queue]), Ready | Inactive).then(|| self.turn_of(queue))
    }

    /// Grants a lease of a queue's next URL.
    fn grant(&mut self, id: QueueId, entry_id: EntryId, round: &mut Round<'_>, last_lease: &mut u64) {
        if !(self.planted.is(Fault::LeaseReused) && self.granted % 7 == 6) {
            *last_lease += 1;
        }
        let lease = *last_lease;
        let lasts = round.want.lease.unwrap_or(self.settings.lease);
        let deadline = Moment { at: self.now + lasts, rank: self.draw() };
        self.leave(entry_id);
        self.urls.live_mut(entry_id).set_lease(lease);
        self.enter(entry_id, State::Leased);
        self.leases.insert(lease, Grant { entry: entry_id, granted: self.now, deadline });
        self.timers.set(self.expiry_of(deadline), Event::Expiry(lease));

        let (from, now) = (self.charges_from(), self.now);
        let record = &self.urls[entry_id];
        let (identity, cost) = (record.identity(), record.cost);
        let (has_page, more) = (record.has_page(), self.urls.more_of(entry_id, record));
        let request = match self.urls.hand(record) {
            Handed::Read(request) => request,
            Handed::Unread(place) => {
                round.unread.push(UnreadRequest { place, has_page });
                unread_request()
            }
        };
        let queue = &mut self.queues[id];
        queue.spend(from, now, u64::from(cost));
        if !self.planted.is(Fault::BalanceUncharged) {
            queue.balance = queue.balance.saturating_sub(i64::from(cost));
        }
        queue.latest_cost = cost;
        queue.charged = queue.charged.saturating_add(u64::from(cost));
        queue.grants = queue.grants.saturating_add(1);
        self.spent = self.spent.saturating_add(u64::from(cost));
        self.granted += 1;
        if round.counts() {
            *round.given.entry(id).or_default() += 1;
        }
        round.leases.push(Lease {
            id: LeaseId(lease),
            crawl: Arc::clone(&self.name),
            key: Arc::clone(&queue.key),
            identity,
            request,
            deadline: deadline.at,
            delivery: more.expiries.saturating_add(1),
            retries: more.retries,
            cost,
            // Unless a library has it, as it has the request.
            page: more.page(),
        });
        self.refresh(id);
        if deadline.at <= self.now {
            // It has expired already, before whatever is granted next.
            self.happen_until(self.now);
        }
    }

    /// When more may be eligible.
    pub(super) fn next_event(&self) -> Option<Timestamp> {
        let late = Duration::from_millis(self.planted.is(Fault::NextLate).into());
        let next = self.timers.next().filter(|_| self.state == CrawlState::Running);
        next.map(|next| next + late)
    }

    /// The lease goes on for this long.
    pub(super) fn renew(&mut self, lease: u64, lasts: Duration) {
        let deadline = Moment { at: self.now + lasts, rank: self.draw() };
        if let Some(grant) = self.leases.get_mut(lease) {
            let old = std::mem::replace(&mut grant.deadline, deadline);
            let (old, new) = (self.expiry_of(old), self.expiry_of(deadline));
            self.timers.cancel(old, Event::Expiry(lease));
            self.timers.set(new, Event::Expiry(lease));
        }
    }

    /// When a lease with this deadline expires: then.
    pub(super) fn expiry_of(&self, deadline: Moment) -> Moment {
        let early = u64::from(self.planted.is(Fault::ExpiryEarly));
        Moment { at: Timestamp::from_millis(deadline.at.as_millis().saturating_sub(early)), ..deadline }
    }
}

/// In a lease, until its own request is read.
fn unread_request() -> Arc<Request> {
    static UNREAD: LazyLock<Arc<Request>> = LazyLock::new(|| Arc::new(Request::get("")));
    Arc::clone(&UNREAD)
}

impl Round<'_> {
    /// Whether a bound asks how much each queue has given.
    fn counts(&self) -> bool {
        self.want.queues.is_some() || self.want.per_queue.is_some() || self.want.min_queues.is_some()
    }

    /// How many queues have given something, where a bound asks for it.
    pub(super) fn queues_given(&self) -> usize {
        self.given.len()
    }

    fn at_bound(&self, queue: QueueId) -> bool {
        self.per_queue != usize::MAX && self.given.get(&queue).is_some_and(|given| *given >= self.per_queue)
    }
}
