//! What the oracle says when a store breaks the contract.

use std::fmt;

use trapline_core::Timestamp;
use trapline_frontier::script::Verb;

/// Which part of the contract was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A URL answered `added` that is neither pending, leased, nor terminal with a reason.
    N1,
    /// A lease for a URL that nobody admitted, or that is not to be fetched.
    N2,
    /// Two live leases for one entry, a number that comes again, or an old number that changes something.
    N3,
    /// More leases of a queue than its concurrency, or sooner than its delay.
    N4,
    /// A grant above the budget.
    N5,
    /// A new URL answered `known`.
    N6,
    /// A lease granted while the crawl is paused or finished.
    N7,
    /// A done parent whose links were lost.
    N8,
    /// A queue passed over for more than two sessions of another.
    N9,
    /// Two histories of the same commands.
    N10,
    /// Another URL was due, or another queue's turn had come.
    Order,
    /// A claim's bounds, or what an operator set, was not kept.
    Bounds,
    /// A lease that ended before its deadline, or says something else than it should.
    Lease,
    /// Something could be fetched and was not, or nobody says when it can.
    Supply,
    /// An answer that is not what the contract says.
    Answer,
    /// A report or a count that is not what happened.
    Report,
    /// What was left undisturbed did not come to an end.
    Drain,
    /// A call that a crash cut short happened by half.
    Half,
    /// The store failed.
    Failure,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = format!("{self:?}");
        f.pad(&if self.is_numbered() { name } else { name.to_lowercase() })
    }
}

impl Rule {
    /// What a trace shows of it: a crawl that does not drain is one whose claims come back short.
    pub(crate) fn shown_as(self) -> Self {
        if self == Self::Drain { Self::Supply } else { self }
    }

    /// Whether the contract has a number for it.
    pub fn is_numbered(self) -> bool {
        self <= Self::N10
    }
}

/// One breach of the contract.
#[derive(Clone, Debug, PartialEq)]
pub struct Breach {
    /// What was broken.
    pub rule: Rule,
    /// What happened and what should have, in words.
    pub message: String,
    /// What the line should have answered, where that is known.
    pub expected: Option<String>,
    /// A further line that shows it, where the one at which it was found does not.
    pub line: Option<Box<Verb>>,
    /// When that line shows it, if it does so later.
    pub at: Option<Timestamp>,
}

impl Breach {
    pub(crate) fn new(rule: Rule, message: impl Into<String>) -> Self {
        Self { rule, message: message.into(), expected: None, line: None, at: None }
    }

    /// A claim that leaves something out keeps what is to be drained from coming to its end.
    pub(crate) fn while_draining(self) -> Self {
        match self.rule {
            // Shown by the claim itself, and not by what it says besides.
            Rule::Supply if self.line.is_none() => Self { rule: Rule::Drain, ..self },
            _ => self,
        }
    }

    /// Says also what the line should have answered.
    pub(crate) fn expecting(self, expected: impl Into<String>) -> Self {
        Self { expected: Some(expected.into()), ..self }
    }

    /// Says also which line would show it, if that is not known yet.
    pub(crate) fn or_shown_by(self, line: Verb) -> Self {
        if self.line.is_some() { self } else { self.shown_by(line) }
    }

    /// Says also which line would show it at a time.
    pub(crate) fn shown_later(self, at: Timestamp, line: Verb, expected: Option<String>) -> Self {
        Self { line: Some(Box::new(line)), at: Some(at), expected, ..self }
    }

    /// Says also which line would show it.
    pub(crate) fn shown_by(self, line: Verb) -> Self {
        Self { line: Some(Box::new(line)), ..self }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.message)
    }
}
