//! One act of a simulation: a verb at a time, or several of a kind in one batch.

use trapline_core::Timestamp;
use trapline_frontier::script::{Step, Verb};

/// What a worker or an operator does at a moment, in one call of the frontier.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Act {
    /// When, by the clock of whoever acts, which may be behind.
    pub(crate) at: Timestamp,
    /// Several are admissions or settlements, one batch; anything else comes alone.
    pub(crate) verbs: Vec<Verb>,
}

impl Act {
    pub(crate) fn new(at: Timestamp, verb: Verb) -> Self {
        Self { at, verbs: vec![verb] }
    }
}

/// What has been done so far, as lines of a trace with their answers. The same history, byte by byte, for the same seed.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) steps: Vec<Step>,
    latest: Timestamp,
}

impl History {
    /// Notes an act and what each of its verbs was answered. A clock that is behind is noted as the latest time, which is
    /// what it counts as.
    pub(crate) fn note(&mut self, act: Act, answers: Vec<String>) {
        self.latest = self.latest.max(act.at);
        for (verb, answer) in act.verbs.into_iter().zip(answers) {
            self.add(verb, Some(answer));
        }
    }

    /// The store was told of this time by a question that is not noted.
    pub(crate) fn pass(&mut self, at: Timestamp) {
        self.latest = self.latest.max(at);
    }

    /// The latest time that the store was told of.
    pub(crate) fn latest(&self) -> Timestamp {
        self.latest
    }

    /// Notes an act whose answer was wrong.
    pub(crate) fn note_last(&mut self, act: Act) {
        self.latest = self.latest.max(act.at);
        for verb in act.verbs {
            self.add(verb, None);
        }
    }

    fn add(&mut self, verb: Verb, expected: Option<String>) {
        self.steps.push(Step { line: self.steps.len() + 1, at: self.latest, verb, expected });
    }
}
