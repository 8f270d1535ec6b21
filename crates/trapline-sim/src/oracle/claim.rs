//! What a claim may grant, and must.

use std::collections::{BTreeMap, BTreeSet};

use trapline_core::Timestamp;
use trapline_frontier::script::Claim;
use trapline_frontier::{Claimed, Lease};

use super::Oracle;
use super::books::{Books, Moment};
use super::breach::{Breach, Rule};
use super::entry::{Grant, State};
use super::queue::Queue;

/// A claim whose grants are gone through one by one.
pub(super) struct Round<'a> {
    claim: &'a Claim,
    /// How many each queue has given.
    given: BTreeMap<usize, usize>,
    /// The URLs granted and found right so far.
    urls: Vec<String>,
    /// Queues over their budget that the claim may have reached, and those it must have reached and retired.
    reachable: BTreeSet<usize>,
    reached: BTreeSet<usize>,
}

impl Round<'_> {
    /// Whether the claim may still serve a queue.
    fn may_serve(&self, books: &Books, queue: usize) -> bool {
        let Claim { keys, except, per_queue, queues, .. } = self.claim;
        let key = &books.queues[queue].key;
        let given = self.given.get(&queue).copied().unwrap_or(0);
        keys.as_ref().is_none_or(|keys| keys.contains(key))
            && !except.contains(key)
            && per_queue.is_none_or(|most| given < most)
            && (given > 0 || queues.is_none_or(|most| self.given.len() < most))
    }

    /// What the line should have answered: what was right so far, and then this.
    fn expecting(&self, next: &str) -> String {
        self.urls
            .iter()
            .map(String::as_str)
            .chain((!next.is_empty()).then_some(next))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

impl Oracle {
    /// A claim was answered. Answers the keys of queues of which the oracle cannot know whether the claim has reached
    /// and retired them: whoever asks tells [`Oracle::reached`].
    pub(crate) fn claimed(&mut self, claim: &Claim, claimed: &Claimed) -> Result<Vec<String>, Breach> {
        let mut round = Round {
            claim,
            given: BTreeMap::new(),
            urls: Vec::new(),
            reachable: BTreeSet::new(),
            reached: BTreeSet::new(),
        };
        self.fairness.look(&self.books);
        for lease in &claimed.leases {
            self.granted(&mut round, lease)?;
        }
        if claimed.leases.len() > claim.urls {
            let message = format!("{} were wanted, {} granted", claim.urls, claimed.leases.len());
            return Err(Breach::new(Rule::Bounds, message));
        }
        let books = &mut self.books;
        let is_short = claimed.leases.len() < claim.urls;
        let is_running = !books.is_paused && !books.is_finished;
        if is_running && claim.urls > 0 {
            for queue in 0..books.queues.len() {
                if !books.is_eligible(queue) || !round.may_serve(books, queue) {
                    continue;
                }
                if !books.fits(queue) {
                    let reached = if is_short { &mut round.reached } else { &mut round.reachable };
                    reached.insert(queue);
                } else if is_short {
                    let url = books.head(queue).map_or("", |head| &books.entries[&head].url);
                    let message =
                        format!("{} could supply {url}, and nothing was granted", books.queues[queue].key);
                    return Err(Breach::new(Rule::Supply, message).expecting(round.expecting(url)));
                }
            }
        }
        for queue in &round.reached {
            books.retire(*queue);
        }
        self.asked = round.reachable.into_iter().map(|queue| (queue, false)).collect();
        self.asked.extend(round.reached.into_iter().map(|queue| (queue, true)));
        Ok(self.asked.keys().map(|queue| self.books.queues[*queue].key.clone()).collect())
    }

    /// What came of the queues that were asked about, and the rest of the claim's answer.
    pub(crate) fn reached(
        &mut self,
        claim: &Claim,
        claimed: &Claimed,
        is_retired: impl Fn(&str) -> bool,
    ) -> Result<(), Breach> {
        for (queue, must) in std::mem::take(&mut self.asked) {
            let key = &self.books.queues[queue].key;
            match (is_retired(key), must) {
                (true, _) => self.books.retire(queue),
                (false, false) => {}
                (false, true) => {
                    let message = format!("{key} cannot pay for its next URL and is not retired");
                    return Err(Breach::new(Rule::N5, message));
                }
            }
        }
        let books = &mut self.books;
        if claimed.exhausted != books.is_exhausted() {
            let is = |exhausted| if exhausted { "exhausted" } else { "not exhausted" };
            let message = format!(
                "the claim says that the crawl is {}, but it is {}",
                is(claimed.exhausted),
                is(books.is_exhausted())
            );
            return Err(Breach::new(Rule::Supply, message));
        }
        let is_short = claimed.leases.len() < claim.urls;
        if is_short && !books.is_paused && !books.is_finished {
            books.is_paused = books.settings.pause_at_finish && books.is_exhausted();
            if !books.is_paused {
                books.check_next(claim, claimed.next)?;
            }
        }
        Ok(())
    }

    /// One grant of a claim.
    fn granted(&mut self, round: &mut Round<'_>, lease: &Lease) -> Result<(), Breach> {
        let books = &mut self.books;
        let url = &lease.request.url;
        let breach = |rule, message: String, round: &Round<'_>| {
            Err(Breach::new(rule, message).expecting(round.expecting("")))
        };
        if books.is_paused || books.is_finished {
            let state = if books.is_finished { "finished" } else { "paused" };
            return breach(Rule::N7, format!("{url} was granted while the crawl is {state}"), round);
        }
        if !self.numbers.insert(lease.id) {
            return breach(
                Rule::N3,
                format!("{url} was granted under {}, a number that was used", lease.id.0),
                round,
            );
        }
        let queue = books.find_queue(&lease.key).filter(|_| !books.entries_of(lease.identity).is_empty());
        let Some(queue) = queue else {
            return breach(Rule::N2, format!("{url} was granted, which nobody admitted"), round);
        };
        let head = books.head(queue);
        let Some(number) = head.filter(|head| books.entries[head].identity == lease.identity) else {
            let states: Vec<State> =
                books.entries_of(lease.identity).iter().map(|number| books.entries[number].state).collect();
            if states.contains(&State::Pending)
                && let Some(head) = head
            {
                let first = books.entries[&head].url.clone();
                let message = format!("{url} was granted although {first} goes before it");
                return Err(Breach::new(Rule::Order, message).expecting(round.expecting(&first)));
            }
            let rule = if states.iter().any(|state| matches!(state, State::Leased(_))) {
                Rule::N3
            } else {
                Rule::N2
            };
            return breach(rule, format!("{url} was granted, which is {states:?}"), round);
        };
        books.check_may(queue, number).or_else(|(rule, message)| breach(rule, message, round))?;
        if !round.may_serve(books, queue) {
            let message = format!("{url} was granted from {}, which the claim's bounds exclude", lease.key);
            return breach(Rule::Bounds, message, round);
        }
        let cannot_pay = |other: &usize| {
            books.is_eligible(*other) && round.may_serve(books, *other) && !books.fits(*other)
        };
        let reachable: Vec<usize> = (0..books.queues.len()).filter(cannot_pay).collect();
        round.reachable.extend(reachable);
        books.check_turn(queue, round)?;

        let others: Vec<usize> = (0..books.queues.len())
            .filter(|other| *other != queue)
            .filter(|other| {
                books.is_rival(*other, queue) && round.may_serve(books, *other) && books.fits(*other)
            })
            .collect();
        let is_new_session = !books.queues[queue].active;
        self.fairness.served(books, queue, is_new_session, others.into_iter())?;

        books.check_lease(lease, number, round.claim)?;
        books.grant(number, lease);
        *round.given.entry(queue).or_default() += 1;
        round.urls.push(url.clone());
        Ok(())
    }
}

impl Books {
    /// Whether another queue of the same partition and precedence could be served as well.
    fn is_rival(&self, other: usize, queue: usize) -> bool {
        let precedence = |queue: usize| self.queues[queue].in_force(&self.settings).precedence;
        self.queues[other].partition == self.queues[queue].partition
            && precedence(other) == precedence(queue)
            && self.is_eligible(other)
    }

    /// Whether a queue may be served at all.
    fn check_may(&self, index: usize, number: u64) -> Result<(), (Rule, String)> {
        let queue = &self.queues[index];
        let entry = &self.entries[&number];
        let (key, now) = (&queue.key, self.now);
        let terms = queue.in_force(&self.settings);
        let fail = |rule, why: String| Err((rule, format!("{} was granted although {key} {why}", entry.url)));
        if queue.retired_by_hand {
            return fail(Rule::Bounds, "is retired by hand".to_owned());
        }
        if queue.blocked_until > now {
            return fail(Rule::Bounds, format!("is blocked until {}", queue.blocked_until));
        }
        if queue.is_full(&self.settings) {
            return fail(
                Rule::N4,
                format!("has {} of {} leases out", queue.counts.leased, terms.concurrency),
            );
        }
        if queue.next_fetch > now {
            return fail(Rule::N4, format!("waits until {}", queue.next_fetch));
        }
        if self.group_waits_until(index) > now {
            return fail(Rule::N4, format!("waits with its group until {}", self.group_waits_until(index)));
        }
        let spent = queue.spent.saturating_add(u64::from(entry.cost));
        if terms.replenish == 0 {
            return fail(Rule::N5, "gets no balance".to_owned());
        }
        if let Some(budget) = terms.budget.filter(|budget| spent > *budget) {
            return fail(Rule::N5, format!("would have spent {spent} of {budget}"));
        }
        if queue.over_budget {
            return fail(Rule::N5, "is retired over its budget and was not reconsidered".to_owned());
        }
        Ok(())
    }

    /// Whether it was a queue's turn: exact about precedence and sessions, and about ages to the millisecond. What
    /// cannot pay and comes before must have been reached.
    fn check_turn(&mut self, queue: usize, round: &mut Round<'_>) -> Result<(), Breach> {
        // Spread claims have two rounds, of which only their sum is known.
        if round.claim.min_queues.is_some() {
            return Ok(());
        }
        let turn =
            |queue: &Queue| (queue.in_force(&self.settings).precedence, !queue.active, queue.free_since);
        let served = &self.queues[queue];
        let mut reached = Vec::new();
        for (index, other) in self.queues.iter().enumerate() {
            let comes_before = index != queue
                && other.partition == served.partition
                && turn(other) < turn(served)
                && self.is_eligible(index)
                && round.may_serve(self, index);
            if comes_before && self.fits(index) {
                let url = self.head(index).map_or("", |head| &self.entries[&head].url);
                let (served, other) = (self.describe_turn(queue), self.describe_turn(index));
                let message = format!("{served} was served before {other}");
                return Err(Breach::new(Rule::Order, message).expecting(round.expecting(url)));
            } else if comes_before {
                reached.push(index);
            }
        }
        for index in reached {
            self.retire(index);
            round.reached.insert(index);
        }
        Ok(())
    }

    fn describe_turn(&self, index: usize) -> String {
        let queue = &self.queues[index];
        let precedence = queue.in_force(&self.settings).precedence;
        let session = if queue.active { "in its session" } else { "inactive" };
        format!("{} (precedence {precedence}, {session}, free since {})", queue.key, queue.free_since)
    }

    /// Whether a lease says what it should.
    fn check_lease(&self, lease: &Lease, number: u64, claim: &Claim) -> Result<(), Breach> {
        let entry = &self.entries[&number];
        let deadline = self.now + claim.lease.unwrap_or(self.settings.lease);
        let says = (&*lease.request.url, lease.deadline, lease.delivery, lease.retries, lease.cost);
        let should = (&*entry.url, deadline, entry.expiries + 1, entry.retries, entry.cost);
        if says == should && lease.request == entry.request {
            return Ok(());
        }
        if says == should {
            let message =
                format!("the lease {} hands out {:?}, not {:?}", lease.id.0, lease.request, entry.request);
            return Err(Breach::new(Rule::Lease, message));
        }
        let message = format!(
            "the lease {} of {} says (URL, deadline, delivery, retries, cost) {says:?}, not {should:?}",
            lease.id.0, entry.url
        );
        Err(Breach::new(Rule::Lease, message))
    }

    fn grant(&mut self, number: u64, lease: &Lease) {
        self.next_command();
        self.granted += 1;
        let Some(entry) = self.entries.get(&number) else { return };
        let (index, cost) = (entry.queue, entry.cost);
        let queue = &mut self.queues[index];
        if !queue.active {
            queue.activate(&self.settings);
        }
        queue.spent += u64::from(cost);
        self.spent += u64::from(cost);
        queue.balance -= i64::from(cost);
        queue.latest_cost = cost;
        let grant = Grant { id: lease.id, granted: self.now, deadline: lease.deadline, in_period: true };
        self.set_state(number, State::Leased(grant));
        self.refresh(None);
    }

    /// A claim reached a queue that cannot pay.
    fn retire(&mut self, queue: usize) {
        self.queues[queue].over_budget = true;
        self.queues[queue].active = false;
        self.refresh(None);
    }

    /// Whether a claim that came back short says when to come again: not too late, and for a reason.
    fn check_next(&self, claim: &Claim, next: Option<Timestamp>) -> Result<(), Breach> {
        let unbounded = |queue: &usize| {
            let key = &self.queues[*queue].key;
            claim.keys.as_ref().is_none_or(|keys| keys.contains(key)) && !claim.except.contains(key)
        };
        let supplies = (0..self.queues.len())
            .filter(unbounded)
            .filter_map(|queue| self.supplies_at(queue))
            .filter(|at| *at > self.now)
            .min();
        let has_reason = |next: Timestamp| {
            self.period_end() == Some(next)
                || self.moments.range((next, Moment::Entry(0))..).next().is_some_and(|(at, _)| *at == next)
        };
        let message = match (next, supplies) {
            (Some(next), _) if next <= self.now => format!("more is promised for {next}, which is not later"),
            (Some(next), Some(supplies)) if next > supplies => {
                format!("more is promised for {next}, but there will be some at {supplies}")
            }
            (None, Some(supplies)) => format!("no more is promised, but there will be some at {supplies}"),
            (Some(next), _) if !has_reason(next) => {
                format!("more is promised for {next}, when nothing happens")
            }
            _ => return Ok(()),
        };
        Err(Breach::new(Rule::Supply, message))
    }
}
