//! `trapline frontier leases`: what is being fetched.

use clap::Args;
use serde_json::json;
use trapline_frontier::{LeaseReport, Query, Rows};

use super::Ended;
use super::address::Address;
use super::output::{Output, Row};
use super::{listing, moment, request};

/// List the leases that are out
///
/// By their ids, which are given in the order of the grants. `--json` tells the request too, as `claim` does.
#[derive(Args)]
#[command(after_help = "\
Example:
  trapline frontier --store disk:crawl leases")]
pub(super) struct Leases {
    /// So many at most
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

const COLUMNS: [&str; 6] = ["id", "key", "granted", "deadline", "delivery", "url"];

impl Leases {
    pub(super) fn run(&self, at: Address<'_>, out: &mut Output) -> Result<Ended, String> {
        let rows = |rows| match rows {
            Rows::Leases(leases) => leases.iter().map(row).collect(),
            _ => Vec::new(),
        };
        if listing::print(&at.open()?, Query::Leases, self.limit, &COLUMNS, out, rows)? == 0 {
            out.say("no leases are out");
        }
        Ok(Ended::Well)
    }
}

fn row(lease: &LeaseReport) -> Row {
    let mut row = vec![
        ("id", json!(lease.id.0)),
        ("url", json!(lease.request.url)),
        ("key", json!(&*lease.key)),
        ("granted", json!(moment::write(lease.granted))),
        ("deadline", json!(moment::write(lease.deadline))),
        ("delivery", json!(lease.delivery)),
    ];
    row.extend(request::write(&lease.request));
    row
}
