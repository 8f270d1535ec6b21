//! Candidates, with their terms and statements; and what became of them.

use std::sync::Arc;
use std::time::Duration;

use trapline_core::{Candidate, Preparer, Statement, Terms, Timestamp};
use trapline_frontier::{Admission, Refusal};

use super::{Unreadable, byte, chosen, millis, read_identity, request, write_identity};
use crate::proto::v1;
use v1::candidate::Statement as StatementMessage;

pub(crate) fn write(candidate: &Candidate) -> v1::Candidate {
    let Candidate { request, identity, key, class, cost, terms, improve, dont_filter, statement } = candidate;
    v1::Candidate {
        request: Some(request::write(request)),
        key: key.to_string(),
        identity: write_identity(*identity),
        class: class.map(u32::from),
        cost: *cost,
        terms: (*terms != Terms::default()).then(|| write_terms(terms)),
        improve: *improve,
        dont_filter: *dont_filter,
        statement: statement.map(|statement| match statement {
            Statement::Done => StatementMessage::Done(true),
            Statement::Next(at) => StatementMessage::NextMs(at.as_millis()),
        }),
    }
}

/// Whether it is left to the service to find its identity and queue.
pub(crate) fn is_bare(candidate: &v1::Candidate) -> bool {
    candidate.identity.is_empty()
}

/// Reads one. None: it is bare, and what it has is no URL. `preparer` is there if one of the batch is bare.
pub(crate) fn read(
    candidate: v1::Candidate,
    preparer: Option<&Preparer>,
) -> Result<Option<Candidate>, Unreadable> {
    let v1::Candidate { request: wanted, key, identity, class, cost, terms, improve, dont_filter, statement } =
        candidate;
    let wanted = Arc::new(request::given(wanted)?);
    let is_again = dont_filter || wanted.dont_filter;
    let mut candidate = match preparer {
        Some(preparer) if identity.is_empty() => {
            let slot = Some(&*key).filter(|key| !key.is_empty());
            match preparer.prepare_in(wanted, slot) {
                Ok(candidate) => candidate,
                Err(_) => return Ok(None),
            }
        }
        _ => Candidate {
            request: wanted,
            identity: read_identity(&identity)?,
            key: Arc::from(key),
            class: None,
            cost: None,
            terms: Terms::default(),
            improve: false,
            dont_filter: false,
            statement: None,
        },
    };
    if let Some(class) = class {
        candidate.class = Some(byte("class", class)?);
    }
    candidate.cost = cost.or(candidate.cost);
    if let Some(terms) = terms {
        candidate.terms = read_terms(terms)?;
    }
    candidate.improve = improve;
    candidate.dont_filter = is_again;
    candidate.statement = match statement {
        Some(StatementMessage::Done(word)) => Some(chosen("done", word, Statement::Done)?),
        Some(StatementMessage::NextMs(at)) => Some(Statement::Next(Timestamp::from_millis(at))),
        None => None,
    };
    Ok(Some(candidate))
}

pub(super) fn write_terms(terms: &Terms) -> v1::Terms {
    let Terms { precedence, queue_budget, balance_replenish, delay, concurrency, group } = terms;
    v1::Terms {
        precedence: precedence.map(u32::from),
        queue_budget: *queue_budget,
        balance_replenish: *balance_replenish,
        delay_ms: delay.map(millis),
        concurrency: *concurrency,
        group: group.as_deref().map(str::to_owned),
    }
}

pub(super) fn read_terms(terms: v1::Terms) -> Result<Terms, Unreadable> {
    let v1::Terms { precedence, queue_budget, balance_replenish, delay_ms, concurrency, group } = terms;
    Ok(Terms {
        precedence: precedence.map(|precedence| byte("precedence", precedence)).transpose()?,
        queue_budget,
        balance_replenish,
        delay: delay_ms.map(Duration::from_millis),
        concurrency,
        group: group.map(Arc::from),
    })
}

pub(crate) fn write_admission(admission: &Admission) -> v1::Admission {
    match admission {
        Admission::Added => v1::Admission::Added,
        Admission::Known => v1::Admission::Known,
        Admission::Rescored => v1::Admission::Rescored,
        Admission::Restated => v1::Admission::Restated,
        Admission::Refused(Refusal::Finished) => v1::Admission::RefusedFinished,
        Admission::Refused(Refusal::Blocked) => v1::Admission::RefusedBlocked,
        Admission::Refused(Refusal::TooDeep) => v1::Admission::RefusedTooDeep,
        Admission::Refused(Refusal::QueueFull) => v1::Admission::RefusedQueueFull,
        Admission::Refused(Refusal::Malformed) => v1::Admission::RefusedMalformed,
    }
}

pub(crate) fn read_admission(number: i32) -> Result<Admission, Unreadable> {
    Ok(match v1::Admission::try_from(number) {
        Ok(v1::Admission::Added) => Admission::Added,
        Ok(v1::Admission::Known) => Admission::Known,
        Ok(v1::Admission::Rescored) => Admission::Rescored,
        Ok(v1::Admission::Restated) => Admission::Restated,
        Ok(v1::Admission::RefusedFinished) => Admission::Refused(Refusal::Finished),
        Ok(v1::Admission::RefusedBlocked) => Admission::Refused(Refusal::Blocked),
        Ok(v1::Admission::RefusedTooDeep) => Admission::Refused(Refusal::TooDeep),
        Ok(v1::Admission::RefusedQueueFull) => Admission::Refused(Refusal::QueueFull),
        Ok(v1::Admission::RefusedMalformed) => Admission::Refused(Refusal::Malformed),
        Ok(v1::Admission::Unspecified) | Err(_) => return Err(Unreadable::lacks("an admission it knows")),
    })
}
