//! What a claim may grant, and must.

use std::collections::{BTreeMap, BTreeSet};

use trapline_core::{Request, Timestamp};
use trapline_frontier::script::{Claim, CrawlVerb, Verb, describe_page};
use trapline_frontier::{Claimed, Lease, LeaseId};

use super::Oracle;
use super::books::{Books, Moment};
use super::breach::{Breach, Rule};
use super::entry::{Entry, Grant, State};
use super::queue::Queue;

/// A claim whose grants are gone through one by one.
#[derive(Clone)]
pub(super) struct Round<'a> {
    claim: &'a Claim,
    /// Its answer is known, and not only its leases as they are listed.
    is_heard: bool,
    /// A claim that wishes for different queues takes at most so many of each, until all have given what they can.
    spread: Option<usize>,
    /// How many each queue has given.
    given: BTreeMap<usize, usize>,
    /// The URLs granted and found right so far.
    urls: Vec<String>,
    /// Queues over their budget that the claim may have reached, and those it must have reached and retired.
    reachable: BTreeSet<usize>,
    reached: BTreeSet<usize>,
}

impl<'a> Round<'a> {
    fn new(claim: &'a Claim) -> Self {
        Self {
            claim,
            is_heard: true,
            spread: claim.min_queues.map(|queues| (claim.urls / queues.max(1)).max(1)),
            given: BTreeMap::new(),
            urls: Vec::new(),
            reachable: BTreeSet::new(),
            reached: BTreeSet::new(),
        }
    }

    /// Whether the claim may still serve a queue.
    fn may_serve(&self, books: &Books, queue: usize) -> bool {
        let Claim { keys, except, per_queue, queues, .. } = self.claim;
        let key = &books.queues[queue].key;
        let given = self.given.get(&queue).copied().unwrap_or(0);
        keys.as_ref().is_none_or(|keys| keys.contains(key))
            && !except.contains(key)
            && per_queue.is_none_or(|most| given < most)
            && self.spread.is_none_or(|most| given < most)
            && (given > 0 || queues.is_none_or(|most| self.given.len() < most))
    }

    /// Whether the next URL that an answer has is the one that was granted.
    fn is_answered_by(&self, urls: &str, lease: &Lease) -> bool {
        urls.split(' ').nth(self.urls.len()) == Some(lease.request.url.as_str())
    }

    /// When nobody has anything left to spread, the wish is fulfilled as far as it can be, and the rest is filled up.
    /// Whoever could not pay was reached on the way.
    fn fill_up(&mut self, books: &mut Books) {
        if self.spread.is_none() {
            return;
        }
        let is_open = |queue: &usize| books.is_eligible(*queue) && self.may_serve(books, *queue);
        let open: Vec<usize> = (0..books.queues.len()).filter(is_open).collect();
        if open.iter().any(|queue| books.fits(*queue)) {
            return;
        }
        self.spread = None;
        for queue in open {
            books.retire(queue);
            self.reached.insert(queue);
        }
    }
}

impl Oracle {
    /// A claim was answered. Answers the keys of queues of which the oracle cannot know whether the claim has reached
    /// and retired them: whoever asks tells [`Oracle::reached`].
    pub(crate) fn claimed(&mut self, claim: &Claim, claimed: &Claimed) -> Result<Vec<String>, Breach> {
        self.go_through(Round::new(claim), claimed)
    }

    /// As [`Oracle::claimed`], of a claim whose answer nobody heard: its leases say what a list of leases does.
    pub(crate) fn claimed_unheard(
        &mut self,
        claim: &Claim,
        claimed: &Claimed,
    ) -> Result<Vec<String>, Breach> {
        self.go_through(Round { is_heard: false, ..Round::new(claim) }, claimed)
    }

    fn go_through(&mut self, mut round: Round<'_>, claimed: &Claimed) -> Result<Vec<String>, Breach> {
        let claim = round.claim;
        self.fairness.look(&self.books);
        for lease in &claimed.leases {
            self.granted(&mut round, lease)?;
        }
        if claimed.leases.len() > claim.urls {
            let message = format!("{} were wanted, {} granted", claim.urls, claimed.leases.len());
            return Err(Breach::new(Rule::Bounds, message).expecting(round.urls[..claim.urls].join(" ")));
        }
        let books = &mut self.books;
        let is_short = claimed.leases.len() < claim.urls;
        let is_running = !books.is_paused && !books.is_finished;
        if is_running && is_short {
            round.fill_up(books);
        }
        if is_running && claim.urls > 0 {
            for queue in 0..books.queues.len() {
                if !books.is_eligible(queue) || !round.may_serve(books, queue) {
                    continue;
                }
                if !books.fits(queue) {
                    let reached = if is_short { &mut round.reached } else { &mut round.reachable };
                    reached.insert(queue);
                } else if is_short {
                    let head = books.head(queue).expect("a queue that is eligible has a URL that is due");
                    let url = &books.entries[&head].url;
                    let message =
                        format!("{} could supply {url}, and nothing was granted", books.queues[queue].key);
                    return Err(Breach {
                        expected: books.answer_to(&round),
                        ..Breach::new(Rule::Supply, message)
                    });
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
        self.retire_reached(is_retired)?;
        let books = &mut self.books;
        if claimed.exhausted != books.is_exhausted() {
            let is = |exhausted| if exhausted { "exhausted" } else { "not exhausted" };
            let message = format!(
                "the claim says that the crawl is {}, but it is {}",
                is(claimed.exhausted),
                is(books.is_exhausted())
            );
            let expected = if books.is_exhausted() { "exhausted=yes" } else { "exhausted=no" };
            return Err(Breach::new(Rule::Supply, message)
                .shown_by(Verb::Crawl(CrawlVerb::Show))
                .expecting(expected));
        }
        if self.finish_claim(claim, claimed) { self.books.check_next(claim, claimed.next) } else { Ok(()) }
    }

    /// As [`Oracle::reached`], of a claim whose answer nobody heard: what it said of the time ahead is not known.
    pub(crate) fn reached_unheard(
        &mut self,
        claim: &Claim,
        claimed: &Claimed,
        is_retired: impl Fn(&str) -> bool,
    ) -> Result<(), Breach> {
        self.retire_reached(is_retired)?;
        self.finish_claim(claim, claimed);
        Ok(())
    }

    fn retire_reached(&mut self, is_retired: impl Fn(&str) -> bool) -> Result<(), Breach> {
        for (queue, must) in std::mem::take(&mut self.asked) {
            let key = &self.books.queues[queue].key;
            match (is_retired(key), must) {
                (true, _) => self.books.retire(queue),
                (false, false) => {}
                (false, true) => {
                    let message = format!("{key} cannot pay for its next URL and is not retired");
                    return Err(Breach::new(Rule::N5, message)
                        .shown_by(Verb::Queue(key.clone()))
                        .expecting("state=retired"));
                }
            }
        }
        Ok(())
    }

    /// A claim that found less than it wanted may pause the crawl; if it does not, it must say when to come again.
    fn finish_claim(&mut self, claim: &Claim, claimed: &Claimed) -> bool {
        let books = &mut self.books;
        let is_short = claimed.leases.len() < claim.urls;
        if !is_short || books.is_paused || books.is_finished {
            return false;
        }
        books.is_paused = books.settings.pause_at_finish && books.is_exhausted();
        !books.is_paused
    }

    /// One grant of a claim.
    fn granted(&mut self, round: &mut Round<'_>, lease: &Lease) -> Result<(), Breach> {
        round.fill_up(&mut self.books);
        let checked = self.check_grant(round, lease);
        let number = checked.map_err(|breach| {
            let expected = self.books.answer_to(round);
            // The URL may be right, and only its number or its turn wrong.
            Breach { expected: expected.filter(|urls| !round.is_answered_by(urls, lease)), ..breach }
        })?;
        let Entry { retries, cost, ref page, .. } = self.books.entries[&number];
        let listed = (!round.is_heard).then(|| Lease { retries, cost, page: page.clone(), ..lease.clone() });
        self.books.check_lease(listed.as_ref().unwrap_or(lease), number, round.claim)?;
        self.books.take(round, number, lease.id, lease.deadline);
        Ok(())
    }

    /// Whether a grant is right, and the entry that it is of.
    fn check_grant(&mut self, round: &mut Round<'_>, lease: &Lease) -> Result<u64, Breach> {
        let books = &mut self.books;
        let url = &lease.request.url;
        let breach = |rule, message: String| Err(Breach::new(rule, message));
        if books.is_paused || books.is_finished {
            let state = if books.is_finished { "finished" } else { "paused" };
            return breach(Rule::N7, format!("{url} was granted while the crawl is {state}"));
        }
        if !self.numbers.insert(lease.id) {
            let number = lease.id.0;
            return breach(Rule::N3, format!("{url} was granted under {number}, a number that was used"));
        }
        let queue = books.find_queue(&lease.key).filter(|_| !books.entries_of(lease.identity).is_empty());
        let Some(queue) = queue else {
            return breach(Rule::N2, format!("{url} was granted, which nobody admitted"));
        };
        let head = books.head(queue);
        let Some(number) = head.filter(|head| books.entries[head].identity == lease.identity) else {
            let states: Vec<State> =
                books.entries_of(lease.identity).iter().map(|number| books.entries[number].state).collect();
            if states.contains(&State::Pending)
                && let Some(head) = head
            {
                let first = &books.entries[&head].url;
                return breach(Rule::Order, format!("{url} was granted although {first} goes before it"));
            }
            let is_leased = states.iter().any(|state| matches!(state, State::Leased(_)));
            let rule = if is_leased { Rule::N3 } else { Rule::N2 };
            let states: Vec<String> = states.into_iter().map(State::in_words).collect();
            return breach(rule, format!("{url} was granted, which is {}", states.join(", and once more ")));
        };
        books.check_may(queue, number).or_else(|(rule, message)| breach(rule, message).map(drop))?;
        if !round.may_serve(books, queue) {
            let why = match (round.spread, round.given.get(&queue)) {
                (Some(most), Some(given)) if *given >= most => {
                    "which has given its share, while other queues that were wished for have something left"
                }
                _ => "which the claim's bounds exclude",
            };
            return breach(Rule::Bounds, format!("{url} was granted from {}, {why}", lease.key));
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
        Ok(number)
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
        let served = &self.queues[queue];
        let mut reached = Vec::new();
        for (index, other) in self.queues.iter().enumerate() {
            let comes_before = index != queue
                && other.partition == served.partition
                && self.turn_of(other) < self.turn_of(served)
                && self.is_eligible(index)
                && round.may_serve(self, index);
            if comes_before && self.fits(index) {
                let (served, other) = (self.describe_turn(queue), self.describe_turn(index));
                let message = format!("{served} was served before {other}");
                return Err(Breach::new(Rule::Order, message));
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

    /// Whose turn comes first.
    fn turn_of(&self, queue: &Queue) -> (u8, bool, Timestamp) {
        (queue.in_force(&self.settings).precedence, !queue.active, queue.free_since)
    }

    /// What the claim should have answered: what was right so far, and what should have followed. None where that is the
    /// store's choice: among queues that were freed in the same millisecond, and among partitions.
    fn answer_to(&self, round: &Round<'_>) -> Option<String> {
        let (mut books, mut round) = (self.clone(), round.clone());
        while round.urls.len() < round.claim.urls && !books.is_paused && !books.is_finished {
            round.fill_up(&mut books);
            let mut open: Vec<usize> = (0..books.queues.len())
                .filter(|queue| {
                    books.is_eligible(*queue) && round.may_serve(&books, *queue) && books.fits(*queue)
                })
                .collect();
            open.sort_by_key(|queue| books.turn_of(&books.queues[*queue]));
            let Some(first) = open.first().copied() else { break };
            let is_choice = |other: &usize| {
                let [first, other] = [&books.queues[first], &books.queues[*other]];
                books.turn_of(first) == books.turn_of(other) || first.partition != other.partition
            };
            if open.iter().skip(1).any(is_choice) {
                return None;
            }
            let head = books.head(first).expect("a queue that is eligible has a URL that is due");
            let deadline = books.now + round.claim.lease.unwrap_or(books.settings.lease);
            let number = LeaseId(u64::MAX - round.urls.len() as u64);
            books.take(&mut round, head, number, deadline);
        }
        Some(round.urls.join(" "))
    }

    /// A claim takes an entry.
    fn take(&mut self, round: &mut Round<'_>, number: u64, lease: LeaseId, deadline: Timestamp) {
        let (queue, url) = (self.entries[&number].queue, self.entries[&number].url.clone());
        self.grant(number, lease, deadline);
        *round.given.entry(queue).or_default() += 1;
        round.urls.push(url);
    }

    /// Whether a lease says what it should.
    fn check_lease(&self, lease: &Lease, number: u64, claim: &Claim) -> Result<(), Breach> {
        let entry = &self.entries[&number];
        let deadline = self.now + claim.lease.unwrap_or(self.settings.lease);
        let breach = |what: &str, says: String, should: String| {
            let message =
                format!("the lease {} of {} says {what} {says}, not {should}", lease.id.0, entry.url);
            Err(Breach::new(Rule::Lease, message))
        };
        if lease.deadline != deadline {
            return breach("that it ends at", lease.deadline.to_string(), deadline.to_string());
        }
        let numbers = [
            ("that it is delivery", lease.delivery, entry.expiries + 1),
            ("that the retries in a row were", lease.retries, entry.retries),
            ("that it costs", lease.cost, entry.cost),
        ];
        if let Some((what, says, should)) = numbers.into_iter().find(|(_, says, should)| says != should) {
            return breach(what, says.to_string(), should.to_string());
        }
        if lease.request != entry.request {
            let (what, says, should) = different_part(&lease.request, &entry.request);
            return breach(what, says, should);
        }
        if lease.page != entry.page {
            let [says, should] = [&lease.page, &entry.page].map(|page| describe_page(page.as_deref()));
            let breach = breach("of the last visit", format!("`{says}`"), format!("`{should}`"));
            return breach
                .map_err(|breach| breach.shown_by(Verb::Page(entry.url.clone())).expecting(should.clone()));
        }
        Ok(())
    }

    fn grant(&mut self, number: u64, id: LeaseId, deadline: Timestamp) {
        self.next_command();
        self.granted += 1;
        let entry = &self.entries[&number];
        let (index, cost) = (entry.queue, entry.cost);
        let queue = &mut self.queues[index];
        if !queue.active {
            queue.activate(&self.settings);
        }
        queue.spent += u64::from(cost);
        self.spent += u64::from(cost);
        queue.balance -= i64::from(cost);
        queue.latest_cost = cost;
        let grant = Grant { id, granted: self.now, deadline, in_period: true };
        self.set_state(number, State::Leased(grant));
        self.refresh(None);
        // A lease for no time has expired before whatever is granted next.
        self.advance(self.now);
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
        let breach = Breach::new(Rule::Supply, message);
        let Some(at) = next.into_iter().chain(supplies).min().filter(|at| *at > self.now) else {
            return Err(breach);
        };
        // If time really passes otherwise than it should, the next claim shows it.
        let claim = Claim { urls: 1, ..Claim::default() };
        let mut books = self.clone();
        books.advance(at);
        let expected = books.answer_to(&Round::new(&claim));
        Err(breach.shown_later(at, Verb::Claim(claim), expected))
    }
}

/// The first part in which two requests differ: what it is, and how they have it.
fn different_part(one: &Request, other: &Request) -> (&'static str, String, String) {
    let via = |request: &Request| request.via.clone().unwrap_or_else(|| "nowhere".to_owned());
    let number = |number: Option<f32>| number.map_or_else(|| "none".to_owned(), |number| number.to_string());
    let parts = |request: &Request| {
        [
            ("that its URL is", request.url.clone()),
            ("that it was found on", via(request)),
            ("that its depth is", request.depth.to_string()),
            ("that its priority is", number(request.priority.map(f32::from))),
            ("that its score is", number(request.score)),
            ("that its method is", request.method.to_string()),
        ]
    };
    let mut pairs = parts(one).into_iter().zip(parts(other));
    match pairs.find(|(one, other)| one != other) {
        Some(((what, one), (_, other))) => (what, one, other),
        None => ("something else in its request:", "one thing".to_owned(), "what was admitted".to_owned()),
    }
}
