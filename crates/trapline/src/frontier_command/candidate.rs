//! Candidates as JSON: how `admit` and the links of `settle` are written, and how `claim` hands requests out.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Value, json};
use trapline_core::{Candidate, NO_BUDGET, Request, Statement, Terms, Timestamp};
use trapline_frontier::Frontier;

use super::fields::Fields;
use super::output::Row;

/// Reads a candidate. What the object does not say is as in `start`, whose URL does not count.
pub(super) fn read(
    mut fields: Fields,
    start: Request,
    frontier: &Frontier,
    now: Timestamp,
) -> Result<Candidate, String> {
    let request = Request {
        url: fields.needed_text("url")?,
        method: fields.text("method")?.map_or(start.method, Cow::Owned),
        headers: fields
            .pairs("headers")?
            .into_iter()
            .map(|(name, value)| (name, value.into_bytes()))
            .collect(),
        cookies: fields.pairs("cookies")?,
        body: fields.text("body")?.unwrap_or_default().into_bytes(),
        metadata: fields.lists("metadata")?,
        opaque: start.opaque,
        priority: fields.number("priority")?.or(start.priority),
        score: score(&mut fields)?.or(start.score),
        depth: fields.number("depth")?.unwrap_or(start.depth),
        depth_limit: fields.number("depth_limit")?.or(start.depth_limit),
        via: fields.text("via")?.or(start.via),
        hop_path: fields.text("hop_path")?.unwrap_or(start.hop_path),
        redirects: fields.texts("redirects")?,
        retries: fields.number("retries")?.unwrap_or(start.retries),
        dont_filter: fields.flag("dont_filter")?,
        seed: fields.text("seed")?.or(start.seed),
        fingerprint: start.fingerprint,
    };
    let key = fields.text("key")?;
    let (class, cost, improve) = (fields.number("class")?, fields.number("cost")?, fields.flag("improve")?);
    let terms = Terms {
        precedence: fields.number("precedence")?,
        queue_budget: budget(&mut fields)?,
        balance_replenish: fields.number("balance_replenish")?,
        delay: fields.duration("delay")?,
        concurrency: fields.number("concurrency")?,
        group: fields.text("group")?.map(Arc::from),
    };
    let statement = statement(&mut fields, now)?;
    fields.end()?;
    let prepared = frontier.prepare_in(request, key.as_deref()).map_err(|error| error.to_string())?;
    Ok(Candidate { class, cost, terms, improve, statement, ..prepared })
}

fn score(fields: &mut Fields) -> Result<Option<f32>, String> {
    let Some(value) = fields.value("score") else { return Ok(None) };
    match value.as_f64().filter(|score| (0.0..=1.0).contains(score)) {
        Some(score) => Ok(Some(score as f32)),
        None => Err(format!("`score` is {value}, and should be from 0.0 to 1.0")),
    }
}

fn budget(fields: &mut Fields) -> Result<Option<u64>, String> {
    let Some(value) = fields.value("queue_budget") else { return Ok(None) };
    match value.as_u64() {
        Some(budget) => Ok(Some(budget)),
        None if value == "none" => Ok(Some(NO_BUDGET)),
        None => Err(format!("`queue_budget` is {value}, and should be a whole number or \"none\"")),
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

/// What a request says besides its URL, as [`read`] reads it. What is as usual is left out, and bytes that are no text
/// are shown with replacement characters.
pub(super) fn request(request: &Request) -> Row {
    let usual = Request::get("");
    let text = String::from_utf8_lossy;
    let headers =
        || request.headers.iter().map(|(name, value)| json!([name, text(value)])).collect::<Vec<_>>();
    let cookies = || request.cookies.iter().map(|(name, value)| json!([name, value])).collect::<Vec<_>>();
    let mut row = Row::new();
    let mut tell = |name, is_usual: bool, value: &dyn Fn() -> Value| {
        if !is_usual {
            row.push((name, value()));
        }
    };
    tell("method", request.method == usual.method, &|| json!(request.method));
    tell("headers", request.headers.is_empty(), &|| json!(headers()));
    tell("cookies", request.cookies.is_empty(), &|| json!(cookies()));
    tell("body", request.body.is_empty(), &|| json!(text(&request.body)));
    tell("metadata", request.metadata.is_empty(), &|| json!(request.metadata));
    tell("priority", request.priority.is_none(), &|| json!(request.priority));
    tell("score", request.score.is_none(), &|| json!(request.score));
    tell("depth", request.depth == 0, &|| json!(request.depth));
    tell("depth_limit", request.depth_limit.is_none(), &|| json!(request.depth_limit));
    tell("via", request.via.is_none(), &|| json!(request.via));
    tell("hop_path", request.hop_path.is_empty(), &|| json!(request.hop_path));
    tell("redirects", request.redirects.is_empty(), &|| json!(request.redirects));
    tell("retries", request.retries == 0, &|| json!(request.retries));
    tell("dont_filter", !request.dont_filter, &|| json!(true));
    tell("seed", request.seed.is_none(), &|| json!(request.seed));
    row
}
