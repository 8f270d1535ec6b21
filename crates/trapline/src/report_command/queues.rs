//! `trapline report queues`: how each queue stands, and why it is not being served.

use clap::Args;
use trapline_frontier::{Query, QueueState, Rows};

use super::ReportArgs;
use super::origin::Origin;
use crate::ended::Ended;
use crate::frontier_command::{listing, queues};
use crate::output::Output;

/// Queues: how each stands, and why it is not being served
///
/// State, URLs pending, leased, done, disregarded and dead, errors, budget, what was spent, balance, costs, precedence, pace, next
/// fetch, and why it is not being served. The table has some of it, JSON and CSV have all.
#[derive(Args)]
pub(super) struct QueueReportArgs {
    #[command(flatten)]
    at: ReportArgs,
    /// Only those in this state: retired, blocked, empty, busy, snoozed, ready or inactive
    #[arg(long, value_parser = |name: &str| listing::named(name, &QueueState::ALL))]
    state: Option<QueueState>,
}

const COLUMNS: [&str; 11] =
    ["key", "state", "pending", "leased", "done", "dead", "errors", "spent", "budget", "precedence", "why"];

impl QueueReportArgs {
    /// Page by page: there may be millions.
    pub(super) fn run(&self) -> Result<Ended, String> {
        let origin = Origin::open(&self.at)?;
        let mut out = Output::of(self.at.format);
        let query = Query::Queues { keys: None, state: self.state };
        let rows = |rows| match rows {
            Rows::Queues(queues) => queues.iter().map(queues::row).collect(),
            _ => Vec::new(),
        };
        if listing::print(origin.frontier()?, query, self.at.limit, &COLUMNS, &mut out, rows)? == 0 {
            out.say("no queues");
        }
        out.finish().map(|()| Ended::Well)
    }
}
