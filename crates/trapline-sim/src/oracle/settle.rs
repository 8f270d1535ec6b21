//! What settling must answer, and what it changes in the books.

use std::time::Duration;

use trapline_core::{Candidate, Timestamp};
use trapline_frontier::script::{SettleAs, Verb};
use trapline_frontier::{Answer, LeaseId, Pace, Settled};

use super::Oracle;
use super::admit::{first_wrong, rule_of};
use super::books::{Books, Moment};
use super::breach::{Breach, Rule};
use super::entry::{Grant, State};

/// A settlement as it was given.
pub(crate) struct Given<'a> {
    pub(crate) lease: LeaseId,
    pub(crate) outcome: &'a SettleAs,
    pub(crate) delay: Option<Duration>,
    pub(crate) links: &'a [Candidate],
}

impl Oracle {
    /// A lease is settled: what must be answered.
    pub(crate) fn settle(&mut self, given: &Given<'_>) -> Settled {
        let books = &mut self.books;
        let Some(number) = books.live.get(&given.lease).copied() else {
            return Settled { answer: Answer::Stale, links: Vec::new() };
        };
        let queue = books.entries[&number].queue;
        books.conclude(number, given);
        let links = given.links.iter().map(|link| books.admit(link, Some(queue))).collect();
        books.refresh(None);
        books.check_limits();
        // A lease renewed for no time has expired before whatever is settled next.
        books.advance(books.now);
        Settled { answer: answer_to(given.outcome), links }
    }

    /// A lease was settled and answered.
    pub(crate) fn settled(&mut self, given: &Given<'_>, settled: &Settled) -> Result<(), Breach> {
        let live = self.books.live.get(&given.lease);
        let url = live.map(|number| self.books.entries[number].url.clone());
        let expected = self.settle(given);
        let Some(url) = url else {
            return if *settled == expected {
                Ok(())
            } else {
                let message =
                    format!("lease {} had ended, and yet was answered `{}`", given.lease.0, settled.answer);
                Err(Breach::new(Rule::N3, message).expecting("stale"))
            };
        };
        if settled.answer != expected.answer {
            let message = format!(
                "the lease {} of {url} is live, and yet was answered `{}`, not `{}`",
                given.lease.0, settled.answer, expected.answer
            );
            return Err(Breach::new(Rule::Lease, message).expecting(expected.answer.to_string()));
        }
        if settled.links.len() != expected.links.len() {
            let (given_links, came) = (expected.links.len(), settled.links.len());
            let message = format!("{url} was settled with {given_links} links, {came} were answered");
            let breach = Breach::new(Rule::N8, message);
            return Err(match given.links.first() {
                Some(link) => {
                    let state = self.books.state_of(link.identity).to_string();
                    breach.shown_by(Verb::Url(link.request.url.clone())).expecting(state)
                }
                None => breach,
            });
        }
        match first_wrong(given.links, &settled.links, &expected.links) {
            None => Ok(()),
            Some((Candidate { request, identity, .. }, answer, expected)) => {
                let (link, identity) = (request.url.as_str(), *identity);
                let message =
                    format!("{link}, found on {url}, was answered `{answer}`, but it is to be `{expected}`");
                let state = self.books.state_of(identity).to_string();
                Err(Breach::new(rule_of(answer, expected), message)
                    .shown_by(Verb::Url(link.to_owned()))
                    .expecting(state))
            }
        }
    }
}

fn answer_to(outcome: &SettleAs) -> Answer {
    match outcome {
        SettleAs::Done { .. } => Answer::Done,
        SettleAs::Retry { .. } => Answer::Retry,
        SettleAs::Release => Answer::Released,
        SettleAs::Dead { .. } => Answer::Dead,
        SettleAs::Disregard => Answer::Disregarded,
        SettleAs::Renew { .. } => Answer::Renewed,
    }
}

impl Books {
    /// A live lease is settled; its queue finds its state when the links are in.
    fn conclude(&mut self, number: u64, given: &Given<'_>) {
        let command = self.next_command();
        let now = self.now;
        let entry = self.entries.get_mut(&number).expect("a live lease is of an entry");
        let State::Leased(grant) = entry.state else {
            unreachable!("a live lease is of an entry that is leased")
        };
        let (queue, cost) = (entry.queue, entry.cost);
        entry.set_by = command;
        if !matches!(given.outcome, SettleAs::Release | SettleAs::Renew { .. }) {
            entry.expiries = 0;
            entry.retries =
                if matches!(given.outcome, SettleAs::Retry { .. }) { entry.retries + 1 } else { 0 };
        }
        let state = match given.outcome {
            SettleAs::Done { visit, next } => {
                self.fetched += 1;
                self.bytes = self.bytes.saturating_add(visit.bytes);
                entry.record(now, visit, *next);
                State::Done(*next)
            }
            SettleAs::Retry { at } => {
                entry.first = Some(*at);
                if *at > now { State::Retry(*at) } else { State::Pending }
            }
            SettleAs::Release => State::Pending,
            SettleAs::Dead { .. } => State::Dead,
            SettleAs::Disregard => State::Disregarded,
            SettleAs::Renew { lease } => State::Leased(Grant { deadline: now + *lease, ..grant }),
        };
        match state {
            State::Done(Some(next)) if next <= now => self.visit_again(number, next),
            state => self.set_state(number, state),
        }
        let is_error = matches!(given.outcome, SettleAs::Retry { .. } | SettleAs::Dead { .. });
        if is_error {
            self.spent += self.settings.error_penalty;
            self.queues[queue].spent += self.settings.error_penalty;
            self.queues[queue].errors += 1;
        }
        if matches!(given.outcome, SettleAs::Release | SettleAs::Disregard) && cost > 0 {
            self.spent = self.spent.saturating_sub(u64::from(cost));
            let queue = &mut self.queues[queue];
            if grant.in_period {
                queue.spent = queue.spent.saturating_sub(u64::from(cost));
            }
            queue.balance += i64::from(cost);
            queue.over_budget = false;
        }
        if is_error || matches!(given.outcome, SettleAs::Done { .. }) || given.delay.is_some() {
            let from = if self.settings.pace == Pace::Claim { grant.granted } else { now };
            let delay = given.delay.unwrap_or_else(|| self.queues[queue].in_force(&self.settings).delay);
            self.wait(queue, from + delay);
        }
    }

    /// The queue and its group wait, never less long than they do already.
    fn wait(&mut self, index: usize, until: Timestamp) {
        if until <= self.now {
            return;
        }
        if let Some(group) = self.queues[index].in_force(&self.settings).group {
            let shared = self.groups.entry(group).or_default();
            *shared = until.max(*shared);
            self.moments.insert((until, Moment::Group));
        }
        let queue = &mut self.queues[index];
        queue.next_fetch = until.max(queue.next_fetch);
        self.moments.insert((until, Moment::Queue(index)));
    }
}
