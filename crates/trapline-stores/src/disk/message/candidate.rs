//! Candidates as messages, with their terms and statements.

use std::sync::Arc;

use prost::{Message, Oneof};
use trapline_core::{Candidate, Statement, Terms};
use trapline_frontier::payload;

use super::{IdentityMessage, Span, Unreadable, read_byte, read_span, read_time};

#[derive(Clone, PartialEq, Message)]
pub(super) struct CandidateMessage {
    #[prost(string, tag = "1")]
    url: String,
    /// The rest of the request: see [`payload`].
    #[prost(bytes = "vec", tag = "2")]
    rest: Vec<u8>,
    #[prost(message, optional, tag = "3")]
    identity: Option<IdentityMessage>,
    #[prost(string, tag = "4")]
    key: String,
    #[prost(uint32, optional, tag = "5")]
    class: Option<u32>,
    #[prost(uint32, optional, tag = "6")]
    cost: Option<u32>,
    /// Left out where no term is given.
    #[prost(message, optional, tag = "7")]
    terms: Option<TermsMessage>,
    #[prost(bool, tag = "8")]
    improve: bool,
    #[prost(bool, tag = "9")]
    dont_filter: bool,
    #[prost(oneof = "StatementMessage", tags = "10, 11")]
    statement: Option<StatementMessage>,
}

#[derive(Clone, Copy, PartialEq, Oneof)]
pub(super) enum StatementMessage {
    #[prost(bool, tag = "10")]
    Done(bool),
    #[prost(uint64, tag = "11")]
    Next(u64),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TermsMessage {
    #[prost(uint32, optional, tag = "1")]
    precedence: Option<u32>,
    #[prost(uint64, optional, tag = "2")]
    queue_budget: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    balance_replenish: Option<u64>,
    #[prost(message, optional, tag = "4")]
    delay: Option<Span>,
    #[prost(uint32, optional, tag = "5")]
    concurrency: Option<u32>,
    #[prost(string, optional, tag = "6")]
    group: Option<String>,
}

impl From<&Candidate> for CandidateMessage {
    fn from(candidate: &Candidate) -> Self {
        let Candidate { request, identity, key, class, cost, terms, improve, dont_filter, statement } =
            candidate;
        Self {
            url: request.url.clone(),
            rest: payload::encode(request),
            identity: Some((*identity).into()),
            key: key.to_string(),
            class: class.map(u32::from),
            cost: *cost,
            terms: (*terms != Terms::default()).then(|| terms.into()),
            improve: *improve,
            dont_filter: *dont_filter,
            statement: statement.map(StatementMessage::from),
        }
    }
}

impl From<Statement> for StatementMessage {
    fn from(statement: Statement) -> Self {
        match statement {
            Statement::Done => Self::Done(true),
            Statement::Next(at) => Self::Next(at.as_millis()),
        }
    }
}

impl StatementMessage {
    pub(super) fn read(self) -> Statement {
        match self {
            Self::Done(_) => Statement::Done,
            Self::Next(at) => Statement::Next(read_time(at)),
        }
    }
}

impl CandidateMessage {
    pub(super) fn read(self) -> Result<Candidate, Unreadable> {
        let Self { url, rest, identity, key, class, cost, terms, improve, dont_filter, statement } = self;
        Ok(Candidate {
            request: Arc::new(payload::decode(url, &rest)?),
            identity: identity.ok_or(Unreadable::Lacks("an identity"))?.into(),
            key: Arc::from(key),
            class: class.map(|class| read_byte(class, "a class")).transpose()?,
            cost,
            terms: terms.map(TermsMessage::read).transpose()?.unwrap_or_default(),
            improve,
            dont_filter,
            statement: statement.map(StatementMessage::read),
        })
    }
}

impl From<&Terms> for TermsMessage {
    fn from(terms: &Terms) -> Self {
        let Terms { precedence, queue_budget, balance_replenish, delay, concurrency, group } = terms;
        Self {
            precedence: precedence.map(u32::from),
            queue_budget: *queue_budget,
            balance_replenish: *balance_replenish,
            delay: delay.map(Span::from),
            concurrency: *concurrency,
            group: group.as_deref().map(str::to_owned),
        }
    }
}

impl TermsMessage {
    pub(super) fn read(self) -> Result<Terms, Unreadable> {
        let Self { precedence, queue_budget, balance_replenish, delay, concurrency, group } = self;
        Ok(Terms {
            precedence: precedence.map(|byte| read_byte(byte, "a precedence")).transpose()?,
            queue_budget,
            balance_replenish,
            delay: read_span(delay)?,
            concurrency,
            group: group.map(Arc::from),
        })
    }
}

/// Candidates with everything, with nothing, and with values that could be mistaken for absent ones.
#[cfg(test)]
pub(super) fn samples() -> Vec<Candidate> {
    use std::time::Duration;
    use trapline_core::{Identity, NO_BUDGET, Request, Timestamp};
    let plain = Candidate {
        request: Arc::new(Request::get("http://a.example/ä")),
        identity: Identity(0),
        key: Arc::from("a.example"),
        class: None,
        cost: None,
        terms: Terms::default(),
        improve: false,
        dont_filter: false,
        statement: None,
    };
    let mut request = Request::get("http://b.example/");
    request.method = "POST".into();
    request.body = vec![0, 255];
    request.priority = Some(-128);
    request.metadata.insert("k".to_owned(), vec![String::new()]);
    let full = Candidate {
        request: Arc::new(request),
        identity: Identity(u128::MAX - 7),
        key: Arc::from("slot"),
        class: Some(255),
        cost: Some(u32::MAX),
        terms: sample_terms(),
        improve: true,
        dont_filter: true,
        statement: Some(Statement::Next(Timestamp::MAX)),
    };
    let zeros = Terms {
        precedence: Some(0),
        queue_budget: Some(0),
        balance_replenish: Some(0),
        delay: Some(Duration::ZERO),
        concurrency: Some(0),
        group: Some(Arc::from("")),
    };
    vec![
        Candidate { class: Some(0), cost: Some(0), ..plain.clone() },
        Candidate { terms: zeros, ..plain.clone() },
        Candidate { statement: Some(Statement::Done), ..plain.clone() },
        Candidate { statement: Some(Statement::Next(Timestamp::ZERO)), ..plain.clone() },
        Candidate { dont_filter: true, identity: Identity(1 << 64), ..plain.clone() },
        Candidate {
            improve: true,
            terms: Terms { queue_budget: Some(NO_BUDGET), ..Terms::default() },
            ..plain.clone()
        },
        plain,
        full,
    ]
}

#[cfg(test)]
pub(super) fn sample_terms() -> Terms {
    Terms {
        precedence: Some(255),
        queue_budget: Some(1),
        balance_replenish: Some(2),
        delay: Some(std::time::Duration::from_nanos(3)),
        concurrency: Some(4),
        group: Some(Arc::from("g")),
    }
}
