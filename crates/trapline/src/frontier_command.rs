//! `trapline frontier`: looks after a frontier at the command line. One file for each noun; here are the arguments
//! that all of them share.
//!
//! Nothing is decided here that the frontier could decide: every command is some verbs of a store and a way to print
//! what came back.

pub(crate) mod address;
mod admit;
mod bulk;
mod bytes;
mod candidate;
mod checkpoint;
mod claim;
mod crawls;
mod dead;
mod drop;
mod export;
mod fields;
mod hold;
mod import;
mod jobs;
mod leases;
mod lines;
pub(crate) mod listing;
mod progress;
pub(crate) mod queues;
mod replay;
mod request;
mod settle;
mod stats;
mod steer;
pub(crate) mod transfer;
pub(crate) mod urls;
mod verify;
mod whole_file;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::ended::{self, Ended, complain};
use crate::{moment, output};
use address::Address;
#[cfg(test)]
pub(crate) use import::round_trip;
use output::Output;

/// The note of a crawl that is being imported, in which it is written how far that has come.
pub(crate) const IMPORT_NOTE: &str = "trapline.import";

/// Look after a frontier: what is in it, what goes in and out, and its rules
///
/// A store is named by its URL: disk:crawl for the folder `crawl`, postgres://USER@HOST/DATABASE for a database, grpc://HOST:PORT or
/// grpcs://HOST:PORT for what `trapline serve` serves (its token is in the variable TRAPLINE_TOKEN); without `--store` it is
/// disk:trapline-data. It has one or more crawls; commands mean the one called `default` unless `--crawl` names another. `admit` and
/// `import` make what is not there yet, and `hold` the store; other commands do not.
///
/// Several commands can use a store at once: the first owns its folder, the others go through the socket in it. `hold` owns a
/// store for as long as it runs. disk:PATH?durability=interval&period=100ms and disk:PATH?durability=explicit let an owner answer before
/// the disk has it; with disk:PATH?min_free_disk=10GiB it admits nothing more when the disk has less left than that (256MiB unless
/// chosen); with disk:PATH?max_memory=2GiB what has no room in so much memory is put on disk for a while (unbounded unless chosen).
///
/// Times are written as 2026-05-01T12:00:00Z, or as a duration from now, such as 90s or 2h.
///
/// Exit code 0: done. 1: done, with complaints (bad lines, refused URLs, stale leases, damage, nothing known of what was asked
/// about).
/// 2: it could not be done.
#[derive(Args)]
#[command(after_help = "\
Examples:
  trapline frontier --store disk:crawl admit < seeds.txt
  trapline frontier --store disk:crawl crawls
  trapline frontier --store disk:crawl stats
  trapline frontier --store disk:crawl queue example.com
  trapline frontier --store disk:crawl export --output crawl.jsonl
  trapline frontier --store disk:crawl verify
  trapline frontier --store disk:crawl checkpoint monday
  trapline frontier --store grpc://127.0.0.1:7071 queues

Each command's --help has examples of its own.")]
pub(crate) struct FrontierCommand {
    /// The store: disk:PATH, postgres://USER@HOST/DATABASE or grpc://HOST:PORT [default: disk:trapline-data; for replay: memory:]
    #[arg(long, global = true, value_name = "URL")]
    store: Option<String>,
    /// The crawl, `default` unless named
    #[arg(long, global = true, value_name = "NAME")]
    crawl: Option<String>,
    /// Print for programs: one JSON object a line
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Admit(admit::Admit),
    Claim(claim::ClaimUrls),
    Settle(settle::SettleLeases),
    Stats(stats::ShowStats),
    Crawls(crawls::Crawls),
    Queues(queues::Queues),
    Queue(queues::ShowQueue),
    Urls(urls::Urls),
    Url(urls::ShowUrl),
    Leases(leases::Leases),
    Dead(dead::Dead),
    Drop(drop::DropUrls),
    Forget(bulk::Forget),
    Revisit(bulk::Revisit),
    ForgetPages(bulk::ForgetPages),
    Steer(steer::SteerCommand),
    Jobs(jobs::Jobs),
    Export(export::Export),
    Import(import::Import),
    Hold(hold::Hold),
    Verify(verify::VerifyStore),
    Checkpoint(checkpoint::MakeCheckpoint),
    Checkpoints(checkpoint::ListCheckpoints),
    Restore(checkpoint::RestoreStore),
    Replay(replay::Replay),
}

pub(crate) fn run(command: &FrontierCommand) -> ExitCode {
    let (name, ended) = command.run();
    ended::exit(&format!("frontier {name}"), ended)
}

impl FrontierCommand {
    /// The subcommand's name, and what came of it.
    fn run(&self) -> (&'static str, Result<Ended, String>) {
        let at = Address {
            store: self.store.as_deref(),
            crawl: self.crawl.as_deref().unwrap_or("default"),
            is_named: self.crawl.is_some(),
        };
        let mut out = Output::new(self.json);
        let (name, ended) = match &self.command {
            Command::Admit(admit) => ("admit", admit.run(at, &mut out)),
            Command::Claim(claim) => ("claim", claim.run(at, &mut out)),
            Command::Settle(settle) => ("settle", settle.run(at, &mut out)),
            Command::Stats(stats) => ("stats", stats.run(at, &mut out)),
            Command::Crawls(crawls) => ("crawls", crawls.run(at, &mut out)),
            Command::Queues(queues) => ("queues", queues.run(at, &mut out)),
            Command::Queue(queue) => ("queue", queue.run(at, &mut out)),
            Command::Urls(urls) => ("urls", urls.run(at, &mut out)),
            Command::Url(url) => ("url", url.run(at, &mut out)),
            Command::Leases(leases) => ("leases", leases.run(at, &mut out)),
            Command::Dead(dead) => ("dead", dead.run(at, &mut out)),
            Command::Drop(drop) => ("drop", drop.run(at, &mut out)),
            Command::Forget(forget) => ("forget", forget.run(at, &mut out)),
            Command::Revisit(revisit) => ("revisit", revisit.run(at, &mut out)),
            Command::ForgetPages(forget) => ("forget-pages", forget.run(at, &mut out)),
            Command::Jobs(jobs) => ("jobs", jobs.run(at, &mut out)),
            Command::Export(export) => ("export", export.run(at, &mut out)),
            Command::Import(import) => ("import", import.run(at, &mut out)),
            Command::Steer(steer) => ("steer", steer.run(at, &mut out)),
            Command::Hold(hold) => ("hold", hold.run(at, &mut out)),
            Command::Verify(verify) => ("verify", verify.run(at, &mut out)),
            Command::Checkpoint(checkpoint) => ("checkpoint", checkpoint.run(at, &mut out)),
            Command::Checkpoints(checkpoints) => ("checkpoints", checkpoints.run(at, &mut out)),
            Command::Restore(restore) => ("restore", restore.run(at, &mut out)),
            Command::Replay(replay) => ("replay", replay.run(at.store, &mut std::io::stdout().lock())),
        };
        let printed = out.finish();
        (name, ended.and_then(|ended| printed.map(|()| ended)))
    }
}
