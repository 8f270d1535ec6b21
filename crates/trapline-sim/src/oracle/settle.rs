//! What settling must answer, and what it changes in the books.

use std::time::Duration;

use trapline_core::{Candidate, Timestamp};
use trapline_frontier::script::SettleAs;
use trapline_frontier::{Answer, LeaseId, Pace, Settled};

use super::Oracle;
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
    /// A lease was settled and answered.
    pub(crate) fn settled(&mut self, given: &Given<'_>, settled: &Settled) -> Result<(), Breach> {
        let Some(number) = self.books.live.get(&given.lease).copied() else {
            return if settled.answer == Answer::Stale && settled.links.is_empty() {
                Ok(())
            } else {
                let message =
                    format!("lease {} had ended, and yet was answered `{}`", given.lease.0, settled.answer);
                Err(Breach::new(Rule::N3, message).expecting("stale"))
            };
        };
        let expected = answer_to(given.outcome);
        if settled.answer != expected {
            let url = &self.books.entries[&number].url;
            let message = format!(
                "the lease {} of {url} is live, and yet was answered `{}`, not `{expected}`",
                given.lease.0, settled.answer
            );
            return Err(Breach::new(Rule::Lease, message).expecting(expected.to_string()));
        }
        let queue = self.books.entries[&number].queue;
        self.books.conclude(number, given);
        self.check_admissions(given.links, &settled.links, Some(queue))?;
        self.books.refresh(None);
        self.books.check_limits();
        Ok(())
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
        let Some(entry) = self.entries.get_mut(&number) else { return };
        let State::Leased(grant) = entry.state else { return };
        let (queue, cost) = (entry.queue, entry.cost);
        entry.set_by = command;
        if !matches!(given.outcome, SettleAs::Release | SettleAs::Renew { .. }) {
            entry.expiries = 0;
            entry.retries =
                if matches!(given.outcome, SettleAs::Retry { .. }) { entry.retries + 1 } else { 0 };
        }
        let state = match given.outcome {
            SettleAs::Done { next, .. } => {
                self.fetched += 1;
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
