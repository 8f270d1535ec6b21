//! Candidates as JSON: how `admit` and the links of `settle` are written.

use std::sync::Arc;

use trapline_core::{Candidate, NO_BUDGET, Request, Statement, Terms, Timestamp};
use trapline_frontier::Frontier;

use super::fields::{Fields, brief};
use super::request;

/// Reads a candidate. What the object does not say is as in `start`, whose URL does not count.
pub(super) fn read(
    mut fields: Fields,
    start: Request,
    frontier: &Frontier,
    now: Timestamp,
) -> Result<Candidate, String> {
    let request = request::read(&mut fields, start)?;
    let key = fields.text("key")?;
    let (class, cost, improve) = (fields.number("class")?, fields.number("cost")?, fields.flag("improve")?);
    let terms = terms(&mut fields)?;
    let statement = statement(&mut fields, now)?;
    fields.end()?;
    let prepared = frontier.prepare_in(request, key.as_deref()).map_err(|error| error.to_string())?;
    Ok(Candidate { class, cost, terms, improve, statement, ..prepared })
}

/// Reads the terms of a queue.
pub(super) fn terms(fields: &mut Fields) -> Result<Terms, String> {
    Ok(Terms {
        precedence: fields.number("precedence")?,
        queue_budget: budget(fields)?,
        balance_replenish: fields.number("balance_replenish")?,
        delay: fields.duration("delay")?,
        concurrency: fields.number("concurrency")?,
        group: fields.text("group")?.map(Arc::from),
    })
}

fn budget(fields: &mut Fields) -> Result<Option<u64>, String> {
    let Some(value) = fields.value("queue_budget") else { return Ok(None) };
    match value.as_u64() {
        Some(budget) => Ok(Some(budget)),
        None if value == "none" => Ok(Some(NO_BUDGET)),
        None => Err(format!("`queue_budget` is {}, and should be a whole number or \"none\"", brief(&value))),
    }
}

fn statement(fields: &mut Fields, now: Timestamp) -> Result<Option<Statement>, String> {
    match (fields.text("state")?.as_deref(), fields.time("next", now)?) {
        (None, None) => Ok(None),
        (None, Some(next)) => Ok(Some(Statement::Next(next))),
        (Some("done"), None) => Ok(Some(Statement::Done)),
        (Some("done"), Some(_)) => {
            Err("it says both `state` and `next`; one of them can be stated".to_owned())
        }
        (Some(other), _) => Err(format!("`state` is \"{other}\", and only \"done\" can be stated")),
    }
}
