//! `trapline frontier queues` and `queue KEY`: how queues stand, and why one is not being served.

use clap::Args;
use serde_json::json;
use trapline_core::format_duration;
use trapline_frontier::{Query, QueueReport, QueueState, Rows};

use super::address::Address;
use super::listing;
use super::output::{Output, Row};
use super::{Ended, complain, moment};

/// List queues
///
/// `--json` tells all of each queue, as `queue KEY` does.
#[derive(Args)]
#[command(after_help = "\
Examples:
  trapline frontier --store disk:crawl queues --state snoozed
  trapline frontier --store disk:crawl queues --json | jq -r 'select(.pending > 1000) | .key'")]
pub(super) struct Queues {
    /// Only those in this state: retired, blocked, empty, busy, snoozed, ready or inactive
    #[arg(long, value_parser = |name: &str| listing::named(name, &QueueState::ALL))]
    state: Option<QueueState>,
    /// So many at most
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

/// Show how a queue stands, and why it is not being served
///
/// Exit code 1 if nobody knows the queue.
#[derive(Args)]
#[command(after_help = "\
Example:
  trapline frontier --store disk:crawl queue example.com

A queue is named by its key: the lower-case host, with `:port` if it is not the scheme's own.")]
pub(super) struct ShowQueue {
    /// The queue's key
    key: String,
}

const COLUMNS: [&str; 9] =
    ["key", "state", "pending", "leased", "done", "dead", "spent", "precedence", "next_fetch"];

impl Queues {
    pub(super) fn run(&self, at: Address<'_>, out: &mut Output) -> Result<Ended, String> {
        let query = Query::Queues { keys: None, state: self.state };
        let rows = |rows| match rows {
            Rows::Queues(queues) => queues.iter().map(row).collect(),
            _ => Vec::new(),
        };
        if listing::print(&at.open()?, query, self.limit, &COLUMNS, out, rows)? == 0 {
            out.say("no queues");
        }
        Ok(Ended::Well)
    }
}

impl ShowQueue {
    pub(super) fn run(&self, at: Address<'_>, out: &mut Output) -> Result<Ended, String> {
        let frontier = at.open()?;
        let queue = pollster::block_on(frontier.queue(moment::now(), &self.key));
        if let Some(queue) = queue.map_err(|error| error.to_string())? {
            out.card(&row(&queue));
            return Ok(Ended::Well);
        }
        complain(&format!(
            "nobody knows a queue `{}` in crawl `{}`; `trapline frontier queues` lists those there are",
            self.key, at.crawl
        ));
        Ok(Ended::WithComplaints)
    }
}

/// All that is known of a queue.
pub(crate) fn row(queue: &QueueReport) -> Row {
    vec![
        ("key", json!(&*queue.key)),
        ("state", json!(queue.state.to_string())),
        ("why", json!(moment::dated(&queue.why))),
        ("pending", json!(queue.pending)),
        ("leased", json!(queue.leased)),
        ("done", json!(queue.done)),
        ("disregarded", json!(queue.disregarded)),
        ("dead", json!(queue.dead)),
        ("errors", json!(queue.errors)),
        ("budget", json!(queue.budget)),
        ("spent", json!(queue.spent)),
        ("balance", json!(queue.balance)),
        ("latest_cost", json!(queue.latest_cost)),
        ("average_cost", json!(queue.average_cost)),
        ("precedence", json!(queue.precedence)),
        ("group", json!(queue.group.as_deref())),
        ("concurrency", json!(queue.concurrency)),
        ("delay", json!(format_duration(queue.delay))),
        ("next_fetch", listing::time(queue.next_fetch)),
        ("partition", json!(queue.partition)),
    ]
}
