//! What admitting must answer, and what it changes in the books.

use std::sync::Arc;

use trapline_core::{Candidate, Statement};
use trapline_frontier::{Admission, AdmissionGate, Order, Refusal};

use super::Oracle;
use super::books::Books;
use super::breach::{Breach, Rule};
use super::entry::{Entry, State};

impl Oracle {
    /// Candidates are admitted: what must be answered.
    pub(crate) fn admit(&mut self, candidates: &[Candidate]) -> Vec<Admission> {
        self.books.check_limits();
        candidates.iter().map(|candidate| self.books.admit(candidate, None)).collect()
    }

    /// Candidates were admitted and answered.
    pub(crate) fn admitted(&mut self, candidates: &[Candidate], answers: &[Admission]) -> Result<(), Breach> {
        let expected = self.admit(candidates);
        if candidates.len() != answers.len() {
            let (given, came) = (candidates.len(), answers.len());
            let message = format!("{given} candidates were given, {came} were answered");
            return Err(Breach::new(Rule::Answer, message));
        }
        match first_wrong(candidates, answers, &expected) {
            None => Ok(()),
            Some((candidate, answer, expected)) => {
                let url = &candidate.request.url;
                let rule = rule_of(answer, expected);
                let message = format!("{url} was answered `{answer}`, but it is to be `{expected}`");
                Err(Breach::new(rule, message).expecting(expected.to_string()))
            }
        }
    }
}

/// The first candidate that was answered otherwise than it should have been.
pub(super) fn first_wrong<'a>(
    candidates: &'a [Candidate],
    answers: &'a [Admission],
    expected: &'a [Admission],
) -> Option<(&'a Candidate, &'a Admission, &'a Admission)> {
    let answered = candidates.iter().zip(answers.iter().zip(expected));
    let mut wrong = answered.filter(|(_, (answer, expected))| answer != expected);
    wrong.next().map(|(candidate, (answer, expected))| (candidate, answer, expected))
}

/// The rule that a wrong answer to an admission breaks.
pub(super) fn rule_of(answer: &Admission, expected: &Admission) -> Rule {
    match (expected, answer) {
        (Admission::Added, Admission::Known) => Rule::N6,
        // It was answered `added` before, and now nobody knows it.
        (Admission::Known | Admission::Rescored, Admission::Added) => Rule::N1,
        _ => Rule::Answer,
    }
}

impl Books {
    /// Admits a candidate, and says what is to be answered.
    pub(super) fn admit(&mut self, candidate: &Candidate, parent: Option<usize>) -> Admission {
        if self.is_finished {
            return Admission::Refused(Refusal::Finished);
        }
        let command = self.next_command();
        let request = &candidate.request;
        let cost = candidate.cost.unwrap_or_else(|| self.settings.cost.cost(request));
        let class = candidate.class.unwrap_or_else(|| self.settings.class.class(request, cost));
        let is_known = !self.entries_of(candidate.identity).is_empty();
        let (mut page, mut visits) = (None, 0);
        if candidate.statement.is_some() {
            // What was known of its visits stays known: the newest entry's record.
            for number in self.entries_of(candidate.identity).to_vec().into_iter().rev() {
                let entry = &self.entries[&number];
                page = page.or_else(|| entry.page.clone());
                visits = entry.visits.max(visits);
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
            visits,
            page,
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
