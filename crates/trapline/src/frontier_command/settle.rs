//! `trapline frontier settle`: what became of leases.

use std::collections::BTreeMap;
use std::io::stdin;
use std::sync::Arc;

use clap::Args;
use serde_json::{Map, Value, json};
use trapline_core::{Candidate, Request, Timestamp};
use trapline_frontier::{Answer, Frontier, LeaseId, Outcome, Query, Rows, Settlement, Visit};

use super::address::Address;
use super::fields::Fields;
use super::lines::{Line, Lines};
use super::output::Output;
use super::{Ended, candidate, complain, listing, moment};

/// How many settlements go to the store at once.
const BATCH: usize = 1000;

/// Say what became of leases
///
/// Reads JSON objects from standard input, one a line, or settles one lease that is named by arguments. Each has an `id` and an `outcome`:
///
///   done        fetched; `next` says when to come back; also `status`, `bytes`, `etag`, `last_modified`
///   retry       to be tried again; `at` says when
///   release     back to its place, as if never leased
///   dead        given up, for a `reason`
///   disregard   not to be fetched, for a `reason`
///   renew       the work goes on; `for` says how much longer
///
/// Any of them may have a `delay` for its queue, and `links`: URLs found, or objects as `admit` reads them. Prints for each lease what
/// happened; `stale` means that it had expired or was settled before, and nothing happened.
///
/// Exit code 0: all were settled. 1: some lines were bad, leases stale or links left out. 2: it could not be done.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  trapline frontier --store disk:crawl settle 12 done next=7d link=https://example.com/about
  trapline frontier --store disk:crawl settle 13 retry at=10m
  echo '{\"id\":14,\"outcome\":\"dead\",\"reason\":\"410\"}' | trapline frontier --store disk:crawl settle"
)]
pub(super) struct SettleLeases {
    /// The lease's id; without it, standard input is read
    #[arg(requires = "outcome")]
    lease: Option<u64>,
    /// done, retry, release, dead, disregard or renew
    outcome: Option<String>,
    /// name=value, such as at=10m, reason=gone, or link=URL (several times)
    fields: Vec<String>,
}

/// What was asked for, before it is known what its links were found on.
struct Asked {
    settlement: Settlement,
    links: Vec<Value>,
}

impl SettleLeases {
    pub(super) fn run(&self, at: Address<'_>, out: &mut Output) -> Result<Ended, String> {
        if let Some(lease) = self.lease {
            let frontier = at.open()?;
            let now = moment::now();
            let asked = Asked::read(self.as_fields(lease)?, now)?;
            let mut batch = vec![(None, asked)];
            return settle(&frontier, &mut batch, out);
        }
        let mut lines = Lines::new(stdin().lock());
        lines.wait()?;
        let frontier = at.open()?;
        let mut ended = Ended::Well;
        let mut batch = Vec::new();
        while let Some((number, line)) = lines.next()? {
            let asked = line.and_then(|line| match line {
                Line::Json(fields) => Asked::read(fields, moment::now()),
                Line::Text(_) => {
                    Err("it is not a JSON object such as {\"id\":12,\"outcome\":\"done\"}".to_owned())
                }
            });
            match asked {
                Ok(asked) => batch.push((Some(number), asked)),
                Err(problem) => {
                    complain(&format!("line {number}: {problem}"));
                    ended = Ended::WithComplaints;
                }
            }
            if batch.len() == BATCH {
                ended = ended.and(settle(&frontier, &mut batch, out)?);
            }
        }
        let ended = ended.and(settle(&frontier, &mut batch, out)?);
        pollster::block_on(frontier.flush()).map_err(|error| error.to_string())?;
        Ok(ended)
    }

    /// The arguments, as a line of input would say it.
    fn as_fields(&self, lease: u64) -> Result<Fields, String> {
        let mut fields = Map::new();
        let mut links = Vec::new();
        for pair in &self.fields {
            let (name, value) =
                pair.split_once('=').ok_or_else(|| format!("`{pair}` is not of the form name=value"))?;
            if name == "link" {
                links.push(json!(value));
                continue;
            }
            let number = value.parse::<u64>().ok().filter(|_| matches!(name, "status" | "bytes"));
            fields.insert(name.to_owned(), number.map_or_else(|| json!(value), |number| json!(number)));
        }
        if !links.is_empty() {
            fields.insert("links".to_owned(), Value::Array(links));
        }
        fields.insert("id".to_owned(), json!(lease));
        fields.insert("outcome".to_owned(), json!(self.outcome));
        Ok(fields.into())
    }
}

impl Asked {
    fn read(mut fields: Fields, now: Timestamp) -> Result<Self, String> {
        let id = fields.number("id")?.ok_or("it has no `id`: that of the lease")?;
        let outcome = fields.needed_text("outcome")?;
        let outcome = match &*outcome {
            "done" => Outcome::Done {
                next: fields.time("next", now)?,
                visit: Visit {
                    status: fields.number("status")?.unwrap_or_default(),
                    bytes: fields.number("bytes")?.unwrap_or_default(),
                    etag: fields.text("etag")?,
                    last_modified: fields.text("last_modified")?,
                    ..Visit::default()
                },
            },
            "retry" => Outcome::Retry {
                at: fields.time("at", now)?.ok_or("a retry needs `at`: when, such as 10m from now")?,
            },
            "release" => Outcome::Release,
            "dead" => Outcome::Dead { reason: fields.text("reason")?.unwrap_or_default() },
            "disregard" => Outcome::Disregard { reason: fields.text("reason")?.unwrap_or_default() },
            "renew" => Outcome::Renew {
                lease: fields
                    .duration("for")?
                    .ok_or("a renewal needs `for`: how much longer, such as 60s")?,
            },
            other => {
                return Err(format!(
                    "`outcome` is \"{other}\"; write one of done, retry, release, dead, disregard, renew"
                ));
            }
        };
        let delay = fields.duration("delay")?;
        let links = fields.list("links")?;
        fields.end()?;
        Ok(Self { settlement: Settlement { delay, ..Settlement::new(LeaseId(id), outcome) }, links })
    }
}

/// Settles a batch and empties it.
fn settle(
    frontier: &Frontier,
    batch: &mut Vec<(Option<u64>, Asked)>,
    out: &mut Output,
) -> Result<Ended, String> {
    let mut ended = Ended::Well;
    let pages = if batch.iter().any(|(_, asked)| !asked.links.is_empty()) {
        leased(frontier)?
    } else {
        BTreeMap::new()
    };
    let now = moment::now();
    let mut settlements = Vec::with_capacity(batch.len());
    for (line, Asked { mut settlement, links }) in batch.drain(..) {
        // The links of a lease that is not out do not matter: it is stale.
        if let Some(page) = pages.get(&settlement.lease) {
            for value in links {
                match link(value, page, frontier, now) {
                    Ok(link) => settlement.links.push(link),
                    // A link is only found text: the page is fetched all the same.
                    Err(problem) => {
                        let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
                        complain(&format!("{place}a link is left out: {problem}"));
                        ended = Ended::WithComplaints;
                    }
                }
            }
        }
        settlements.push(settlement);
    }
    let ids: Vec<LeaseId> = settlements.iter().map(|settlement| settlement.lease).collect();
    if ids.is_empty() {
        return Ok(ended);
    }
    let answers = pollster::block_on(frontier.settle(now, settlements)).map_err(|error| error.to_string())?;
    let rows = ids.iter().zip(&answers).map(|(id, settled)| {
        let links: Vec<_> = settled.links.iter().map(ToString::to_string).collect();
        vec![("id", json!(id.0)), ("answer", json!(settled.answer.to_string())), ("links", json!(links))]
    });
    let rows = rows.collect::<Vec<_>>();
    out.rows(&["id", "answer", "links"], &rows);
    let is_stale = answers.iter().any(|settled| settled.answer == Answer::Stale);
    Ok(if is_stale { Ended::WithComplaints } else { ended })
}

/// What each lease that is out is for.
fn leased(frontier: &Frontier) -> Result<BTreeMap<LeaseId, Arc<Request>>, String> {
    let mut pages = BTreeMap::new();
    listing::each_page(frontier, Query::Leases, |rows| {
        if let Rows::Leases(leases) = rows {
            pages.extend(leases.into_iter().map(|lease| (lease.id, lease.request)));
        }
        true
    })?;
    Ok(pages)
}

/// A link is found on its page, one deeper than it.
fn link(value: Value, page: &Request, frontier: &Frontier, now: Timestamp) -> Result<Candidate, String> {
    let start = Request {
        via: Some(page.url.clone()),
        depth: page.depth.saturating_add(1),
        seed: page.seed.clone(),
        ..Request::get("")
    };
    match value {
        Value::String(url) => frontier.prepare(Request { url, ..start }).map_err(|error| error.to_string()),
        Value::Object(object) => candidate::read(object.into(), start, frontier, now),
        other => Err(format!("{other} is neither a URL nor an object")),
    }
}
