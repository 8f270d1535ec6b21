//! `trapline report`: how a crawl stands and what came of it, from its folder or its store, running or ended.
//!
//! One file a report. Nothing is changed, and nothing decided here that the frontier or the crawl could decide.

mod census;
mod counted;
mod crawl;
mod errors;
mod hosts;
mod origin;
mod page;
mod queues;
mod seeds;
mod sources;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::ended::{self, Ended};
use crate::output::{Format, Output, Row};
use origin::Origin;

/// Report how a crawl stands and what came of it
///
/// From the folder of a crawl, or from its store with --store, whether it runs or not. A store that somebody has open is asked
/// through its socket.
///
/// Reports are tables for people; --format json writes an object a line and --format csv comma-separated values, both with more
/// columns than the table has room for.
///
/// Exit code 0: done. 2: it could not be done.
#[derive(Args)]
#[command(after_help = "\
Examples:
  $ trapline report crawl example
  $ trapline report crawl example --html report.html
  $ trapline report queues example --state snoozed
  $ trapline report hosts --store postgres://crawler@db/crawls --format csv > hosts.csv
  $ trapline report errors example --format json | jq -r 'select(.count > 10) | .reason'")]
pub(crate) struct ReportCommand {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Crawl(crawl::CrawlReportArgs),
    Queues(queues::QueueReportArgs),
    /// Hosts: how many URLs of each are in which state, what came of them, and how many bytes
    ///
    /// Goes through all URLs that the crawl knows.
    Hosts(ReportArgs),
    /// Seeds: what became of each, where it redirected to, and what was found from it
    ///
    /// Goes through all URLs that the crawl knows.
    Seeds(ReportArgs),
    /// Media types: how many pages of each, and how many bytes
    ///
    /// All visits of all runs of `trapline crawl` count.
    Mime(ReportArgs),
    /// Statuses: how many responses with each, and how many bytes
    ///
    /// All visits of all runs of `trapline crawl` count; of a store into which others have fetched, URLs by their last visit.
    Status(ReportArgs),
    /// Errors: why there was no response, why URLs were given up or disregarded, and which rules dropped links
    Errors(ReportArgs),
    /// Sources: what was found from each seed, by host
    ///
    /// Goes through all URLs that the crawl knows.
    Sources(ReportArgs),
}

/// Which crawl, and how it is told.
#[derive(Args)]
struct ReportArgs {
    /// The output folder of the crawl [default: trapline-crawl, unless --store is given]
    #[arg(value_name = "DIR")]
    dir: Option<std::path::PathBuf>,
    /// The store of the crawl, such as disk:PATH, postgres://USER@HOST/DATABASE or grpc://HOST:PORT [default: the one in the folder]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// The crawl's name in its store
    #[arg(long, value_name = "NAME", default_value = "default")]
    crawl: String,
    /// How it is told
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// So many rows at most
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

/// Reports.
pub(crate) fn run(command: &ReportCommand) -> ExitCode {
    let (name, ended) = match &command.what {
        What::Crawl(args) => ("crawl", args.run()),
        What::Queues(args) => ("queues", args.run()),
        What::Hosts(args) => ("hosts", args.print("no hosts", hosts::table)),
        What::Seeds(args) => ("seeds", args.print("no seeds", seeds::table)),
        What::Mime(args) => ("mime", args.print("no pages", counted::mime)),
        What::Status(args) => ("status", args.print("no responses", counted::status)),
        What::Errors(args) => ("errors", args.print("no errors", errors::table)),
        What::Sources(args) => ("sources", args.print("no sources", sources::table)),
    };
    ended::exit(&format!("report {name}"), ended)
}

/// Rows, and the columns that a table for people has.
struct Table {
    columns: &'static [&'static str],
    rows: Vec<Row>,
}

impl ReportArgs {
    /// Prints a table that is made of a crawl.
    fn print(&self, nothing: &str, make: fn(&Origin) -> Result<Table, String>) -> Result<Ended, String> {
        let mut table = make(&Origin::open(self)?)?;
        table.rows.truncate(self.limit.unwrap_or(usize::MAX));
        let mut out = Output::of(self.format);
        out.rows(table.columns, &table.rows);
        if table.rows.is_empty() {
            out.say(nothing);
        }
        out.finish().map(|()| Ended::Well)
    }
}
