//! What admitting must answer, and what it changes in the books.

use std::sync::Arc;

use trapline_core::{Candidate, Statement};
use trapline_frontier::{Admission, AdmissionGate, Order, Refusal};

use super::Oracle;
use super::books::Books;
use super::breach::{Breach, Rule};
use super::entry::{Entry, State};

impl Oracle {
    /// Candidates were admitted and answered.
    pub(crate) fn admitted(&mut self, candidates: &[Candidate], answers: &[Admission]) -> Result<(), Breach> {
        self.books.check_limits();
        self.check_admissions(candidates, answers, None)
    }

    /// Compares the answers to candidates, or to the links of a parent's queue.
    pub(super) fn check_admissions(
        &mut self,
        candidates: &[Candidate],
        answers: &[Admission],
        parent: Option<usize>,
    ) -> Result<(), Breach> {
        let rule = if parent.is_some() { Rule::N8 } else { Rule::Answer };
        if candidates.len() != answers.len() {
            let (given, came) = (candidates.len(), answers.len());
            return Err(Breach::new(rule, format!("{given} candidates were given, {came} were answered")));
        }
        for (candidate, answer) in candidates.iter().zip(answers) {
            let expected = self.books.admit(candidate, parent);
            if *answer != expected {
                let rule = match (&expected, answer) {
                    (Admission::Added, Admission::Known) => Rule::N6,
                    _ => Rule::Answer,
                };
                let url = &candidate.request.url;
                let message = format!("{url} was answered `{answer}`, but it is to be `{expected}`");
                return Err(Breach::new(rule, message).expecting(expected.to_string()));
            }
        }
        Ok(())
    }
}

impl Books {
    /// Admits a candidate, and says what is to be answered.
    fn admit(&mut self, candidate: &Candidate, parent: Option<usize>) -> Admission {
        if self.is_finished {
            return Admission::Refused(Refusal::Finished);
        }
        let command = self.next_command();
        let request = &candidate.request;
        let cost = candidate.cost.unwrap_or_else(|| self.settings.cost.cost(request));
        let class = candidate.class.unwrap_or_else(|| self.settings.class.class(request, cost));
        let is_known = !self.entries_of(candidate.identity).is_empty();
        if candidate.statement.is_some() {
            for number in self.entries_of(candidate.identity).to_vec() {
                self.forget(number);
            }
        } else {
            if is_known && !candidate.dont_filter {
                let improved = candidate.improve && self.improve(candidate, class);
                return if improved { Admission::Rescored } else { Admission::Known };
            }
            if let Some(why) = self.refusal(candidate) {
                return Admission::Refused(why);
            }
        }
        let queue = self.queue(&candidate.key);
        self.queues[queue].take_terms(&candidate.terms, false, &self.settings);
        let place = self.next_admission();
        let (state, scheduled) = match candidate.statement {
            Some(Statement::Done) => (State::Done(None), self.now),
            Some(Statement::Next(at)) if at > self.now => (State::Visit(at), at),
            Some(Statement::Next(at)) => (State::Pending, at),
            None => (State::Pending, self.now),
        };
        self.enter(Entry {
            identity: candidate.identity,
            url: request.url.clone(),
            request: Arc::clone(request),
            queue,
            class,
            cost,
            is_link: parent.is_some(),
            state,
            admitted: place,
            place,
            scheduled,
            first: None,
            expiries: 0,
            retries: 0,
            set_by: command,
        });
        self.refresh(parent);
        if candidate.statement.is_some() { Admission::Restated } else { Admission::Added }
    }

    fn refusal(&self, candidate: &Candidate) -> Option<Refusal> {
        let settings = &self.settings;
        let waiting = self.find_queue(&candidate.key).map_or(0, |queue| self.queues[queue].counts.pending());
        if settings.admission == AdmissionGate::Blocked {
            Some(Refusal::Blocked)
        } else if settings.max_depth.is_some_and(|most| candidate.request.depth > most) {
            Some(Refusal::TooDeep)
        } else if settings.max_queue_length.is_some_and(|most| waiting >= most) {
            Some(Refusal::QueueFull)
        } else {
            None
        }
    }

    /// Moves a URL's newest entry to a better class, if that is one and the entry is pending.
    fn improve(&mut self, candidate: &Candidate, class: u8) -> bool {
        let place = self.next_admission();
        let order = self.settings.order;
        let newest = self.entries_of(candidate.identity).last().copied();
        let Some(entry) = newest.and_then(|number| self.entries.get_mut(&number)) else { return false };
        let is_pending = matches!(entry.state, State::Pending | State::Retry(_) | State::Visit(_));
        if !is_pending || class >= entry.class {
            return false;
        }
        entry.class = class;
        // Last in its class: in `lifo` that is behind what was admitted first.
        if order != Order::Date {
            entry.place = if order == Order::Lifo { -place } else { place };
            if entry.state == State::Pending {
                entry.first = None;
            }
        }
        true
    }
}
