//! `trapline frontier dead`: dead letters, listed, replayed or purged.

use clap::{Args, Subcommand};
use serde_json::json;
use trapline_core::Request;
use trapline_frontier::{DeadChange, DeadLetter, DeadLetters, Frontier, Query, Rows, Steer};

use super::address::Address;
use super::output::{Output, Row};
use super::{Ended, jobs, listing, moment, request};

/// List, replay or purge dead letters
///
/// A dead letter is a request that ended for good without success, kept with its reason. Without a subcommand all are listed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  trapline frontier --store disk:crawl dead
  trapline frontier --store disk:crawl dead replay --key example.com
  trapline frontier --store disk:crawl dead purge --all")]
pub(super) struct Dead {
    #[command(subcommand)]
    act: Option<Act>,
}

#[derive(Subcommand)]
enum Act {
    /// List them with their reasons
    ///
    /// Example: trapline frontier --store disk:crawl dead list --limit 20
    List {
        /// So many at most
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
    },
    /// Try them again, as if admitted now
    ///
    /// Example: trapline frontier --store disk:crawl dead replay --url https://example.com/about
    Replay(Which),
    /// Forget them, as if never seen
    ///
    /// Example: trapline frontier --store disk:crawl dead purge --key example.com
    Purge(Which),
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct Which {
    /// All of the crawl
    #[arg(long)]
    all: bool,
    /// All of this queue
    #[arg(long)]
    key: Option<String>,
    /// Those of this URL
    #[arg(long)]
    url: Option<String>,
}

const COLUMNS: [&str; 4] = ["at", "key", "reason", "url"];

impl Dead {
    pub(super) fn run(&self, at: Address<'_>, out: &mut Output) -> Result<Ended, String> {
        let frontier = at.open()?;
        let (change, which) = match &self.act {
            None => return list(&frontier, None, out),
            Some(Act::List { limit }) => return list(&frontier, *limit, out),
            Some(Act::Replay(which)) => (DeadChange::Replay, which),
            Some(Act::Purge(which)) => (DeadChange::Purge, which),
        };
        let letters = which.letters(&frontier)?;
        let affected = jobs::steer(&frontier, Steer::Dead(letters, change))?;
        let name = match change {
            DeadChange::Replay => "replayed",
            DeadChange::Purge => "purged",
        };
        out.card(&vec![(name, json!(affected))]);
        Ok(if affected == 0 { Ended::WithComplaints } else { Ended::Well })
    }
}

impl Which {
    fn letters(&self, frontier: &Frontier) -> Result<DeadLetters, String> {
        Ok(match (&self.key, &self.url) {
            (Some(key), _) => DeadLetters::Queue(key.clone()),
            (None, Some(url)) => {
                let prepared = frontier.prepare(Request::get(url)).map_err(|error| error.to_string())?;
                DeadLetters::Url(prepared.identity)
            }
            (None, None) => DeadLetters::All,
        })
    }
}

fn list(frontier: &Frontier, limit: Option<usize>, out: &mut Output) -> Result<Ended, String> {
    let rows = |rows| match rows {
        Rows::Dead(letters) => letters.iter().map(row).collect(),
        _ => Vec::new(),
    };
    if listing::print(frontier, Query::Dead, limit, &COLUMNS, out, rows)? == 0 {
        out.say("no dead letters");
    }
    Ok(Ended::Well)
}

fn row(letter: &DeadLetter) -> Row {
    let mut row = vec![
        ("url", json!(letter.request.url)),
        ("key", json!(&*letter.key)),
        ("reason", json!(letter.reason)),
        ("at", json!(moment::write(letter.at))),
    ];
    row.extend(request::write(&letter.request));
    row
}
