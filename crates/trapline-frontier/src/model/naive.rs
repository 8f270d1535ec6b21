//! The frontier's behaviour a second time, from its specification alone, as plainly as possible: lists that are
//! searched from end to end. It shares no code with the engine, so that a mistake has to be made twice to stay
//! unseen.
//!
//! Not a store: one crawl, one partition, no durability, no batches, and the answers are the words of the script
//! language. How the specification was read where it leaves room is said where it is done, marked `Reading:`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::script::{Admit, Claim, CrawlVerb, Settle, SettleAs, Steering, Verb};
use crate::{AdmissionGate, Order, Pace, Settings};
use trapline_core::{ClassPolicy, CostPolicy, NO_BUDGET, Statement, Terms, Timestamp};

/// One crawl.
pub struct Model {
    settings: Settings,
    now: Timestamp,
    paused: bool,
    finished: bool,
    /// How many `done` settlements there were, for `max_urls`.
    visits: u64,
    /// How many commands there were: each settlement, link and grant is one.
    commands: u64,
    /// How many admissions there were, real ones and what counts as one.
    admissions: i64,
    /// How often a queue was given an age.
    ages: u64,
    /// How many budget periods have ended.
    periods: u64,
    /// The command that set how long they are.
    period_set_by: u64,
    queues: Vec<Queue>,
    /// Until when each group waits.
    groups: BTreeMap<Arc<str>, Timestamp>,
    /// Oldest first.
    entries: Vec<Entry>,
    /// Every lease ever granted, in order.
    leases: Vec<Lease>,
}

struct Queue {
    key: String,
    steered: Terms,
    suggested: Terms,
    retired_by_hand: bool,
    retired_over_budget: bool,
    blocked_until: Timestamp,
    blocked_by: u64,
    next_fetch: Timestamp,
    /// The command that set the next fetch time.
    next_fetch_by: u64,
    active: bool,
    balance: i64,
    spent: u64,
    latest_cost: u32,
    /// Lower is earlier. Only the order matters.
    age: u64,
    /// What hindered it when it last found its state.
    hindrances: Hindrances,
    was_empty: bool,
}

/// What keeps a queue from being served, but for its group.
#[derive(Clone, Copy, Default)]
struct Hindrances {
    retired: bool,
    blocked: bool,
    /// Nothing pending that is due.
    bare: bool,
    /// As many leases as its concurrency allows.
    full: bool,
    waiting: bool,
}

impl Hindrances {
    fn any(self) -> bool {
        self.retired || self.blocked || self.bare || self.full || self.waiting
    }
}

#[derive(Clone)]
struct Entry {
    url: String,
    queue: usize,
    class: u8,
    cost: u32,
    depth: u32,
    state: State,
    /// Its number among admissions.
    admitted: i64,
    /// Its place in `fifo` and `lifo`: its number among admissions, unless improving made it the last.
    place: i64,
    /// Its place in `date`.
    scheduled: Timestamp,
    /// Goes first in its class, by this time: a retry's time or an expired deadline.
    first: Option<Timestamp>,
    deliveries: u32,
    /// The command that set the time in `state`.
    set_by: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Pending,
    /// A retry that is due later.
    Retry(Timestamp),
    /// Pending, due then, as if admitted then.
    Visit(Timestamp),
    /// The index of its lease.
    Leased(usize),
    Done(Option<Timestamp>),
    Disregarded,
    Dead,
}

struct Lease {
    url: String,
    granted: Timestamp,
    deadline: Timestamp,
    /// The command that set the deadline.
    set_by: u64,
    /// The budget period of the grant.
    period: u64,
}

/// A queue's terms as they are in force.
#[derive(PartialEq)]
struct InForce {
    precedence: u8,
    budget: Option<u64>,
    replenish: u64,
    delay: Duration,
    concurrency: u32,
    group: Option<Arc<str>>,
}

/// Why queues find their state.
#[derive(Clone, Copy)]
enum Cause<'a> {
    Command,
    /// Time: per queue, the latest command that set the time at which an entry came, and the one that set the
    /// deadline at which a lease expired.
    Time {
        arrived: &'a [u64],
        expired: &'a [u64],
    },
}

impl Model {
    /// A fresh crawl with these settings.
    pub fn new(settings: &[(String, String)]) -> Self {
        let mut model = Self {
            settings: Settings::default(),
            now: Timestamp::ZERO,
            paused: false,
            finished: false,
            visits: 0,
            commands: 0,
            admissions: 0,
            ages: 0,
            periods: 0,
            period_set_by: 0,
            queues: Vec::new(),
            groups: BTreeMap::new(),
            entries: Vec::new(),
            leases: Vec::new(),
        };
        for (name, value) in settings {
            model.settings.set(name, value).expect("a setting that can be read");
        }
        model
    }

    /// Plays one line and says what comes back.
    pub fn play(&mut self, at: Timestamp, verb: &Verb) -> String {
        self.advance(at);
        self.check_limits();
        let answer = match verb {
            Verb::Admit(admit) => self.admit(admit, None).to_owned(),
            Verb::Claim(claim) => self.claim(claim),
            Verb::Settle(settle) => self.settle(settle).to_owned(),
            Verb::Steer { key, change } => {
                self.steer(key, change);
                "ok".to_owned()
            }
            Verb::Crawl(CrawlVerb::Show) => self.show_crawl(),
            Verb::Crawl(change) => {
                self.change_crawl(change);
                "ok".to_owned()
            }
            Verb::DeadReplay(url) => {
                self.replay(url);
                "ok".to_owned()
            }
            Verb::Forget(url) => {
                self.next_command();
                self.entries.retain(|entry| entry.url != *url);
                self.find_states(Cause::Command, None);
                "ok".to_owned()
            }
            Verb::Url(url) => self.show_url(url).to_owned(),
            Verb::Queue(key) => self.show_queue(key),
            Verb::Page(_) => panic!("the model keeps no pages"),
            Verb::Restart | Verb::Crash => panic!("the model keeps nothing"),
        };
        self.check_limits();
        answer
    }

    // What a generator of scripts may look at.

    pub(super) fn is_paused(&self) -> bool {
        self.paused
    }

    /// How many leases were granted so far.
    pub(super) fn granted(&self) -> usize {
        self.leases.len()
    }

    pub(super) fn url_of_lease(&self, lease: usize) -> &str {
        &self.leases[lease].url
    }

    /// The indexes of all live leases.
    pub(super) fn live(&self) -> Vec<usize> {
        let leased = |entry: &Entry| if let State::Leased(lease) = entry.state { Some(lease) } else { None };
        self.entries.iter().filter_map(leased).collect()
    }

    /// The URLs of all dead letters.
    pub(super) fn dead(&self) -> Vec<String> {
        let dead = self.entries.iter().filter(|entry| entry.state == State::Dead);
        dead.map(|entry| entry.url.clone()).collect()
    }

    /// All moments ahead at which something is due.
    pub(super) fn ahead(&self) -> Vec<Timestamp> {
        let mut times: Vec<_> = self.entries.iter().filter_map(|entry| self.due(entry)).collect();
        for queue in &self.queues {
            times.extend([queue.blocked_until, queue.next_fetch]);
        }
        times.extend(self.groups.values());
        times.extend(self.period_end());
        times.retain(|time| *time > self.now);
        times
    }

    // Time.

    /// Lets happen what is due by `to`, in the order of its times.
    fn advance(&mut self, to: Timestamp) {
        let to = to.max(self.now);
        // What a lease of no length left undone at this very moment.
        if self.live().iter().any(|lease| self.leases[*lease].deadline <= self.now) {
            self.happen(false);
        }
        while let Some(next) = self.ahead().into_iter().min().filter(|next| *next <= to) {
            let period_ends = self.period_end() == Some(next);
            self.now = next;
            self.happen(period_ends);
        }
        self.now = to;
    }

    fn due(&self, entry: &Entry) -> Option<Timestamp> {
        match entry.state {
            State::Retry(time) | State::Visit(time) | State::Done(Some(time)) => Some(time),
            State::Leased(lease) => Some(self.leases[lease].deadline),
            _ => None,
        }
    }

    /// Reading: the next multiple of the period as it is set now; setting another period resets nothing.
    fn period_end(&self) -> Option<Timestamp> {
        let period = self.settings.queue_budget_period?.as_millis();
        let ended = u128::from(self.now.as_millis()) / period;
        u64::try_from((ended + 1) * period).ok().map(Timestamp::from_millis)
    }

    /// Everything that is due now; then queues find their state.
    fn happen(&mut self, period_ends: bool) {
        let mut arrived = vec![0; self.queues.len()];
        let mut expired = vec![0; self.queues.len()];
        let mut visits = Vec::new();
        for index in 0..self.entries.len() {
            if self.due(&self.entries[index]).is_none_or(|due| due > self.now) {
                continue;
            }
            let entry = &mut self.entries[index];
            let mut set_by = entry.set_by;
            match entry.state {
                State::Leased(lease) => {
                    set_by = self.leases[lease].set_by;
                    let vacated = &mut expired[entry.queue];
                    *vacated = set_by.max(*vacated);
                    entry.deliveries += 1;
                    let most = self.settings.max_deliveries;
                    if most > 0 && entry.deliveries >= most {
                        entry.state = State::Dead;
                        continue;
                    }
                    entry.first = Some(self.leases[lease].deadline);
                    entry.state = State::Pending;
                }
                State::Retry(_) => entry.state = State::Pending,
                _ => visits.push((set_by, index)),
            }
            let came = &mut arrived[entry.queue];
            *came = set_by.max(*came);
        }
        visits.sort_unstable();
        for (_, index) in visits {
            self.visit_again(index);
        }
        if period_ends {
            self.periods += 1;
            for queue in &mut self.queues {
                queue.spent = 0;
                queue.retired_over_budget = false;
            }
        }
        self.find_states(Cause::Time { arrived: &arrived, expired: &expired }, None);
    }

    /// A visit has come: as if admitted now.
    fn visit_again(&mut self, index: usize) {
        let number = self.next_admission();
        let entry = &mut self.entries[index];
        if let State::Visit(time) | State::Done(Some(time)) = entry.state {
            entry.scheduled = time;
        }
        entry.admitted = number;
        entry.place = number;
        entry.first = None;
        entry.state = State::Pending;
    }

    fn check_limits(&mut self) {
        let enough = self.settings.max_urls.is_some_and(|most| self.visits >= most);
        let over = self.settings.max_time.is_some_and(|most| self.now >= Timestamp::ZERO + most);
        self.finished |= enough || over;
    }

    fn next_command(&mut self) -> u64 {
        self.commands += 1;
        self.commands
    }

    fn next_admission(&mut self) -> i64 {
        self.admissions += 1;
        self.admissions
    }

    // Queues and their states.

    fn find_queue(&self, key: &str) -> Option<usize> {
        self.queues.iter().position(|queue| queue.key == key)
    }

    fn queue(&mut self, key: &str) -> usize {
        self.find_queue(key).unwrap_or_else(|| {
            self.queues.push(Queue {
                key: key.to_owned(),
                steered: Terms::default(),
                suggested: Terms::default(),
                retired_by_hand: false,
                retired_over_budget: false,
                blocked_until: Timestamp::ZERO,
                blocked_by: 0,
                next_fetch: Timestamp::ZERO,
                next_fetch_by: 0,
                active: false,
                balance: 0,
                spent: 0,
                latest_cost: 0,
                age: u64::MAX,
                hindrances: Hindrances { bare: true, ..Hindrances::default() },
                was_empty: true,
            });
            self.queues.len() - 1
        })
    }

    fn in_force(&self, queue: usize) -> InForce {
        let Queue { steered, suggested, .. } = &self.queues[queue];
        let budget = steered.queue_budget.or(suggested.queue_budget).or(self.settings.queue_budget);
        let group = steered.group.as_ref().or(suggested.group.as_ref());
        InForce {
            precedence: steered.precedence.or(suggested.precedence).unwrap_or(3),
            budget: budget.filter(|budget| *budget != NO_BUDGET),
            replenish: steered
                .balance_replenish
                .or(suggested.balance_replenish)
                .unwrap_or(self.settings.balance_replenish),
            delay: steered.delay.or(suggested.delay).unwrap_or(self.settings.delay),
            concurrency: steered.concurrency.or(suggested.concurrency).unwrap_or(self.settings.concurrency),
            group: group.filter(|group| !group.is_empty()).cloned(),
        }
    }

    /// Takes on terms; what really changes reconsiders a queue over its budget.
    fn take_terms(&mut self, queue: usize, terms: &Terms, operator: bool) {
        let before = self.in_force(queue);
        let Queue { steered, suggested, .. } = &mut self.queues[queue];
        let own = if operator { steered } else { suggested };
        own.precedence = terms.precedence.or(own.precedence);
        own.queue_budget = terms.queue_budget.or(own.queue_budget);
        own.balance_replenish = terms.balance_replenish.or(own.balance_replenish);
        own.delay = terms.delay.or(own.delay);
        own.concurrency = terms.concurrency.or(own.concurrency);
        own.group = terms.group.clone().or(own.group.take());
        if self.in_force(queue) != before {
            self.queues[queue].retired_over_budget = false;
        }
    }

    fn of(&self, queue: usize) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.queue == queue)
    }

    fn pending(&self, queue: usize) -> usize {
        self.of(queue).filter(|entry| entry.is_pending()).count()
    }

    fn leased(&self, queue: usize) -> usize {
        self.of(queue).filter(|entry| matches!(entry.state, State::Leased(_))).count()
    }

    fn hindrances(&self, index: usize) -> Hindrances {
        let queue = &self.queues[index];
        let most = self.in_force(index).concurrency as usize;
        Hindrances {
            retired: queue.is_retired(),
            blocked: queue.blocked_until > self.now,
            bare: !self.of(index).any(|entry| entry.state == State::Pending),
            full: most > 0 && self.leased(index) >= most,
            waiting: queue.next_fetch > self.now,
        }
    }

    fn group_waits(&self, queue: usize) -> bool {
        let group = self.in_force(queue).group;
        group.and_then(|group| self.groups.get(&group)).is_some_and(|until| *until > self.now)
    }

    /// Whether a claim may serve it.
    fn is_eligible(&self, queue: usize) -> bool {
        !self.hindrances(queue).any() && !self.group_waits(queue)
    }

    fn state(&self, queue: usize) -> &'static str {
        let hindrances = self.hindrances(queue);
        let (pending, leased) = (self.pending(queue), self.leased(queue));
        if hindrances.retired {
            "retired"
        } else if hindrances.blocked {
            "blocked"
        } else if pending == 0 && leased == 0 {
            "empty"
        } else if hindrances.full || pending == 0 {
            "busy"
        } else if hindrances.waiting || hindrances.bare || self.group_waits(queue) {
            "snoozed"
        } else if self.queues[queue].active {
            "ready"
        } else {
            "inactive"
        }
    }

    /// Lets all queues but `except` find their state: sessions end and begin, ages are given.
    fn find_states(&mut self, cause: Cause<'_>, except: Option<usize>) {
        let mut freed = Vec::new();
        let period_set_by = self.period_set_by;
        for index in 0..self.queues.len() {
            if Some(index) == except {
                continue;
            }
            let now = self.hindrances(index);
            let is_empty = self.pending(index) == 0 && self.leased(index) == 0;
            let queue = &mut self.queues[index];
            let before = queue.hindrances;
            queue.hindrances = now;
            if before.any() && !now.any() {
                let by = match cause {
                    Cause::Command => 0,
                    // Reading: a lease's deadline was set by its grant or renewal, whichever grant filled the
                    // queue; a retirement that ends with the period by the command that set the period.
                    Cause::Time { arrived, expired } => [
                        (before.retired, period_set_by),
                        (before.blocked, queue.blocked_by),
                        (before.bare, arrived[index]),
                        (before.full, expired[index]),
                        (before.waiting, queue.next_fetch_by),
                    ]
                    .into_iter()
                    .map(|(hindered, by)| if hindered { by } else { 0 })
                    .max()
                    .unwrap_or(0),
                };
                freed.push((by, queue.age, index));
            }
            if is_empty {
                queue.active = false;
            } else if queue.was_empty && !self.settings.hold_queues && !queue.is_retired() {
                self.activate(index);
            }
            self.queues[index].was_empty = is_empty;
        }
        freed.sort_unstable();
        for (_, _, index) in freed {
            self.grow_young(index);
        }
        let mut spent_up: Vec<_> = (0..self.queues.len())
            .filter(|index| Some(*index) != except)
            .filter(|index| self.queues[*index].active && self.queues[*index].balance <= 0)
            .filter(|index| self.is_eligible(*index))
            .collect();
        spent_up.sort_unstable_by_key(|index| self.queues[*index].age);
        for index in spent_up {
            self.queues[index].active = false;
            self.grow_young(index);
        }
    }

    fn grow_young(&mut self, queue: usize) {
        self.ages += 1;
        self.queues[queue].age = self.ages;
    }

    fn activate(&mut self, queue: usize) {
        let replenish = self.in_force(queue).replenish;
        self.queues[queue].active = true;
        self.queues[queue].balance = i64::try_from(replenish).unwrap_or(i64::MAX);
    }

    // Admitting.

    /// Admits a candidate. If it is a link, its parent's queue finds its state later.
    fn admit(&mut self, admit: &Admit, parent: Option<usize>) -> &'static str {
        let Some(host) = host(&admit.url) else { return "refused: malformed" };
        if self.finished {
            return "refused: finished";
        }
        let command = self.next_command();
        let key = admit.key.clone().unwrap_or(host);
        let cost = admit.cost.unwrap_or_else(|| self.price(&admit.url, admit.via.as_deref()));
        let class = admit.class.unwrap_or_else(|| self.class(admit, cost));
        if admit.statement.is_none() {
            if !admit.dont_filter && self.entries.iter().any(|entry| entry.url == admit.url) {
                let improved = admit.improve && self.improve(&admit.url, class);
                return if improved { "rescored" } else { "known" };
            }
            if self.settings.admission == AdmissionGate::Blocked {
                return "refused: admission blocked";
            }
            if self.settings.max_depth.is_some_and(|most| admit.depth > most) {
                return "refused: max_depth";
            }
            let waiting = self.find_queue(&key).map_or(0, |queue| self.pending(queue)) as u64;
            if self.settings.max_queue_length.is_some_and(|most| waiting >= most) {
                return "refused: max_queue_length";
            }
        } else {
            self.entries.retain(|entry| entry.url != admit.url);
        }
        let queue = self.queue(&key);
        self.take_terms(queue, &admit.terms, false);
        let number = self.next_admission();
        let state = match admit.statement {
            Some(Statement::Done) => State::Done(None),
            Some(Statement::Next(time)) if time > self.now => State::Visit(time),
            _ => State::Pending,
        };
        let scheduled = if let Some(Statement::Next(time)) = admit.statement { time } else { self.now };
        self.entries.push(Entry {
            url: admit.url.clone(),
            queue,
            class,
            cost,
            depth: admit.depth,
            state,
            admitted: number,
            place: number,
            scheduled,
            first: None,
            deliveries: 0,
            set_by: command,
        });
        self.find_states(Cause::Command, parent);
        if admit.statement.is_some() { "restated" } else { "added" }
    }

    fn price(&self, url: &str, via: Option<&str>) -> u32 {
        let page = |url: &str| url.split(['?', '#']).next().unwrap_or("").to_owned();
        let has_query = url.split('#').next().is_some_and(|url| url.contains('?'));
        match self.settings.cost {
            CostPolicy::Zero => 0,
            CostPolicy::Unit => 1,
            CostPolicy::Wag if !has_query => 1,
            CostPolicy::Wag if via.is_some_and(|via| page(via) == page(url)) => 3,
            CostPolicy::Wag => 2,
        }
    }

    fn class(&self, admit: &Admit, cost: u32) -> u8 {
        match self.settings.class {
            ClassPolicy::Priority => (127 - i16::from(admit.priority.unwrap_or(0))) as u8,
            ClassPolicy::Score => admit.score.map_or(127, |score| 255 - (score * 255.0).round() as u8),
            ClassPolicy::Depth => admit.depth.min(255) as u8,
            ClassPolicy::DepthFirst => 255 - admit.depth.min(255) as u8,
            ClassPolicy::Cost => cost.min(255) as u8,
        }
    }

    /// Moves a URL's newest entry to a better class, if that is one and the entry is pending.
    fn improve(&mut self, url: &str, class: u8) -> bool {
        let number = self.next_admission();
        let order = self.settings.order;
        let newest = self.entries.iter_mut().rev().find(|entry| entry.url == url);
        let Some(entry) = newest.filter(|entry| entry.is_pending() && class < entry.class) else {
            return false;
        };
        entry.class = class;
        // Reading: in `date` order only the class changes; a retry that is not due yet will go first when it is.
        if order != Order::Date {
            entry.place = if order == Order::Lifo { -number } else { number };
            if entry.state == State::Pending {
                entry.first = None;
            }
        }
        true
    }

    // Claiming.

    /// As many claims of one as wanted, within the bounds.
    fn claim(&mut self, claim: &Claim) -> String {
        let mut granted: Vec<(usize, String)> = Vec::new();
        while granted.len() < claim.urls {
            self.advance(self.now);
            if self.paused || self.finished {
                break;
            }
            let Some(grant) = self.claim_one(claim, &granted) else {
                // Reading: a claim finds the crawl exhausted when it finds nothing, after what it retired.
                self.paused |= self.settings.pause_at_finish && self.is_exhausted();
                break;
            };
            granted.push(grant);
        }
        let urls: Vec<_> = granted.into_iter().map(|(_, url)| url).collect();
        urls.join(" ")
    }

    fn claim_one(&mut self, claim: &Claim, granted: &[(usize, String)]) -> Option<(usize, String)> {
        let command = self.next_command();
        loop {
            let may_serve = |index: &usize| {
                let key = &self.queues[*index].key;
                let of_it = granted.iter().filter(|(queue, _)| queue == index).count();
                let mut queues: Vec<_> = granted.iter().map(|(queue, _)| *queue).collect();
                queues.sort_unstable();
                queues.dedup();
                claim.keys.as_ref().is_none_or(|keys| keys.contains(key))
                    && !claim.except.contains(key)
                    && claim.per_queue.is_none_or(|most| of_it < most)
                    && (of_it > 0 || claim.queues.is_none_or(|most| queues.len() < most))
            };
            let turn = |index: &usize| {
                let queue = &self.queues[*index];
                (self.in_force(*index).precedence, !queue.active, queue.age)
            };
            let best = (0..self.queues.len())
                .filter(may_serve)
                .filter(|index| self.is_eligible(*index))
                .min_by_key(turn)?;
            let order = self.settings.order;
            let next = (0..self.entries.len())
                .filter(|index| self.entries[*index].queue == best)
                .filter(|index| self.entries[*index].state == State::Pending)
                .min_by(|a, b| self.entries[*a].compare(&self.entries[*b], order))
                .expect("an eligible queue has a URL that is due");
            let cost = self.entries[next].cost;
            let terms = self.in_force(best);
            let spent = self.queues[best].spent + u64::from(cost);
            if terms.replenish == 0 || terms.budget.is_some_and(|budget| spent > budget) {
                let queue = &mut self.queues[best];
                queue.retired_over_budget = true;
                queue.active = false;
                self.find_states(Cause::Command, None);
                continue;
            }
            if !self.queues[best].active {
                self.activate(best);
            }
            let queue = &mut self.queues[best];
            queue.spent = spent;
            queue.balance -= i64::from(cost);
            queue.latest_cost = cost;
            let url = self.entries[next].url.clone();
            self.entries[next].state = State::Leased(self.leases.len());
            self.leases.push(Lease {
                url: url.clone(),
                granted: self.now,
                deadline: self.now + claim.lease.unwrap_or(self.settings.lease),
                set_by: command,
                period: self.periods,
            });
            self.find_states(Cause::Command, None);
            return Some((best, url));
        }
    }

    /// Reading: a lease of a retired queue is out too, and its links may go anywhere.
    fn is_exhausted(&self) -> bool {
        self.entries.iter().all(|entry| match entry.state {
            State::Leased(_) => false,
            State::Pending | State::Retry(_) | State::Visit(_) | State::Done(Some(_)) => {
                self.queues[entry.queue].is_retired()
            }
            State::Done(None) | State::Disregarded | State::Dead => true,
        })
    }

    // Settling.

    fn settle(&mut self, settle: &Settle) -> &'static str {
        let lease = match settle.lease {
            Some(number) => number.checked_sub(1),
            None => self.leases.iter().rposition(|lease| lease.url == settle.url),
        };
        let of_lease = |entry: &Entry| lease.is_some_and(|lease| entry.state == State::Leased(lease));
        let Some(index) = self.entries.iter().position(of_lease) else { return "stale" };
        let command = self.next_command();
        let State::Leased(lease) = self.entries[index].state else {
            unreachable!("it was found by its lease")
        };
        let lease = &mut self.leases[lease];
        let (granted, period) = (lease.granted, lease.period);
        let Entry { queue, cost, depth, ref url, .. } = self.entries[index];
        let parent = url.clone();
        let now = self.now;
        let entry = &mut self.entries[index];
        let (mut waits, mut penalty, mut refund) = (false, false, false);
        let answer = match &settle.outcome {
            SettleAs::Done { next, .. } => {
                waits = true;
                self.visits += 1;
                entry.state = State::Done(*next);
                "done"
            }
            SettleAs::Retry { at } => {
                (waits, penalty) = (true, true);
                entry.first = Some(*at);
                entry.state = if *at > now { State::Retry(*at) } else { State::Pending };
                "retry"
            }
            SettleAs::Release => {
                refund = true;
                entry.state = State::Pending;
                "released"
            }
            SettleAs::Dead { .. } => {
                (waits, penalty) = (true, true);
                entry.state = State::Dead;
                "dead"
            }
            SettleAs::Disregard => {
                refund = true;
                entry.state = State::Disregarded;
                "disregarded"
            }
            SettleAs::Renew { lease: longer } => {
                lease.deadline = now + *longer;
                lease.set_by = command;
                "renewed"
            }
        };
        entry.set_by = command;
        if !matches!(settle.outcome, SettleAs::Release | SettleAs::Renew { .. }) {
            entry.deliveries = 0;
        }
        // Reading: a visit that is due at once is the URL's new state, so its queue does not run empty.
        if let State::Done(Some(next)) = entry.state
            && next <= now
        {
            self.visit_again(index);
        }
        if penalty {
            self.queues[queue].spent += self.settings.error_penalty;
        }
        if refund && cost > 0 {
            let same_period = period == self.periods;
            let queue = &mut self.queues[queue];
            if same_period {
                queue.spent = queue.spent.saturating_sub(u64::from(cost));
            }
            queue.balance += i64::from(cost);
            // Reading: also when the refund reaches only the balance.
            queue.retired_over_budget = false;
        }
        if waits || settle.delay.is_some() {
            let from = if self.settings.pace == Pace::Claim { granted } else { now };
            self.wait(queue, from + settle.delay.unwrap_or(self.in_force(queue).delay), command);
        }
        for link in &settle.links {
            // Reading: a link is found on the settled URL, one deeper than it.
            let link = Admit {
                url: link.clone(),
                via: Some(parent.clone()),
                depth: depth.saturating_add(1),
                ..Admit::default()
            };
            self.admit(&link, Some(queue));
        }
        // Reading: the visit that reaches `max_urls` still brings its links; `play` checks the limit afterwards.
        self.find_states(Cause::Command, None);
        answer
    }

    /// The queue's and its group's next fetch come no sooner than that.
    fn wait(&mut self, queue: usize, until: Timestamp, command: u64) {
        if until <= self.now {
            return;
        }
        if let Some(group) = self.in_force(queue).group {
            let shared = self.groups.entry(group).or_default();
            *shared = until.max(*shared);
        }
        let queue = &mut self.queues[queue];
        if until >= queue.next_fetch {
            queue.next_fetch = until;
            queue.next_fetch_by = command;
        }
    }

    // Steering.

    fn steer(&mut self, key: &str, change: &Steering) {
        let command = self.next_command();
        let index = self.queue(key);
        let queue = &mut self.queues[index];
        match change {
            Steering::Terms(terms) => self.take_terms(index, terms, true),
            Steering::Block(until) => {
                queue.blocked_until = *until;
                queue.blocked_by = command;
            }
            Steering::Unblock => queue.blocked_until = Timestamp::ZERO,
            Steering::Retire => {
                queue.retired_by_hand = true;
                queue.active = false;
            }
            Steering::Reinstate => {
                queue.retired_by_hand = false;
                queue.retired_over_budget = false;
            }
            Steering::Purge => self.entries.retain(|entry| entry.queue != index || !entry.is_pending()),
            Steering::Delete => self.entries.retain(|entry| entry.queue != index),
        }
        self.find_states(Cause::Command, None);
    }

    fn change_crawl(&mut self, change: &CrawlVerb) {
        self.next_command();
        match change {
            CrawlVerb::Pause => self.paused = true,
            CrawlVerb::Resume => self.paused = false,
            CrawlVerb::Finish => self.finished = true,
            CrawlVerb::Show => {}
            CrawlVerb::Set(changes) => {
                let reconsidering =
                    |settings: &Settings| (settings.queue_budget, settings.balance_replenish, settings.cost);
                let before = reconsidering(&self.settings);
                let period = self.settings.queue_budget_period;
                for (name, value) in changes {
                    self.settings.set(name, value).expect("a setting that can be read");
                }
                if self.settings.queue_budget_period != period {
                    self.period_set_by = self.commands;
                }
                if reconsidering(&self.settings) != before {
                    self.queues.iter_mut().for_each(|queue| queue.retired_over_budget = false);
                }
                self.find_states(Cause::Command, None);
            }
        }
    }

    /// Reading: what an operator replays is taken whatever the limits, but not by a finished crawl.
    fn replay(&mut self, url: &str) {
        self.next_command();
        if self.finished {
            return;
        }
        for index in 0..self.entries.len() {
            if self.entries[index].url == url && self.entries[index].state == State::Dead {
                self.visit_again(index);
                self.entries[index].scheduled = self.now;
                self.entries[index].deliveries = 0;
            }
        }
        self.find_states(Cause::Command, None);
    }

    // Showing.

    fn show_url(&self, url: &str) -> &'static str {
        let newest = self.entries.iter().rev().find(|entry| entry.url == url);
        newest.map_or("unknown", |entry| match entry.state {
            State::Pending | State::Retry(_) | State::Visit(_) => "pending",
            State::Leased(_) => "leased",
            State::Done(_) => "done",
            State::Disregarded => "disregarded",
            State::Dead => "dead",
        })
    }

    fn show_queue(&self, key: &str) -> String {
        let Some(index) = self.find_queue(key) else { return "state=unknown".to_owned() };
        let queue = &self.queues[index];
        let terms = self.in_force(index);
        let count = |wanted: fn(State) -> bool| self.of(index).filter(|entry| wanted(entry.state)).count();
        format!(
            "state={} pending={} leased={} done={} disregarded={} dead={} budget={} spent={} balance={} \
             latest_cost={} precedence={}",
            self.state(index),
            self.pending(index),
            self.leased(index),
            count(|state| matches!(state, State::Done(_))),
            count(|state| state == State::Disregarded),
            count(|state| state == State::Dead),
            terms.budget.map_or("none".to_owned(), |budget| budget.to_string()),
            queue.spent,
            queue.balance,
            queue.latest_cost,
            terms.precedence,
        )
    }

    fn show_crawl(&self) -> String {
        let state = if self.finished {
            "finished"
        } else if self.paused {
            "paused"
        } else {
            "running"
        };
        format!("state={state} exhausted={}", if self.is_exhausted() { "yes" } else { "no" })
    }
}

impl Queue {
    fn is_retired(&self) -> bool {
        self.retired_by_hand || self.retired_over_budget
    }
}

impl Entry {
    fn is_pending(&self) -> bool {
        matches!(self.state, State::Pending | State::Retry(_) | State::Visit(_))
    }

    /// Which of two pending URLs of a queue goes first.
    fn compare(&self, other: &Self, order: Order) -> std::cmp::Ordering {
        let by_class = self.class.cmp(&other.class).then(self.first.is_none().cmp(&other.first.is_none()));
        by_class.then_with(|| {
            if self.first.is_some() {
                // Reading: in the order of admission in every order, also `lifo`, and whatever was improved.
                return (self.first, self.admitted).cmp(&(other.first, other.admitted));
            }
            match order {
                Order::Fifo => self.place.cmp(&other.place),
                Order::Lifo => other.place.cmp(&self.place),
                Order::Date => {
                    (self.scheduled, &self.url, self.place).cmp(&(other.scheduled, &other.url, other.place))
                }
            }
        })
    }
}

/// The lower-case host of a URL, with its port if it is not the scheme's own.
fn host(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?.to_ascii_lowercase();
    let own_port = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => ":",
    };
    let host = host.strip_suffix(own_port).unwrap_or(&host);
    (!host.is_empty()).then(|| host.to_owned())
}
