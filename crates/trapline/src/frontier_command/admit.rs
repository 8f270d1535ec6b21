//! `trapline frontier admit`: URLs from standard input into a crawl.

use std::collections::BTreeMap;
use std::io::{IsTerminal, stdin};

use clap::Args;
use serde_json::json;
use trapline_core::{Candidate, Request, Timestamp};
use trapline_frontier::{Admission, Frontier};

use super::address::Address;
use super::lines::{Line, Lines};
use super::output::Output;
use super::{Ended, candidate, complain, moment, progress};

/// How many candidates go to the store at once, and how many bytes of lines: some have large bodies.
const BATCH: usize = 1000;
const BATCH_BYTES: usize = 8 << 20;

/// Remember URLs to be fetched
///
/// Reads standard input, one URL a line. A line that begins with `{` is JSON: `url`, and any of `method`, `headers`, `cookies`, `body`,
/// `metadata`, `opaque`, `priority`, `score`, `depth`, `depth_limit`, `via`, `hop_path`, `redirects`, `retries`, `dont_filter`, `seed`, `fingerprint`;
/// `key` (its queue), `class`, `cost`, `improve`; terms for its queue (`precedence`, `queue_budget`, `balance_replenish`, `delay`,
/// `concurrency`, `group`); and what is known of it, `state` ("done") or `next` (a time).
///
/// A bad line is reported with its number and does not stop the rest. The store and the crawl are made if they are not there.
/// Exit code 0: all were taken or known. 1: some lines were bad or refused. 2: it could not be done, or not to the end.
#[derive(Args)]
#[command(after_help = "\
Examples:
  trapline frontier --store disk:crawl admit < seeds.txt
  echo '{\"url\":\"https://example.com/\",\"priority\":5,\"delay\":\"10s\"}' | trapline frontier --store disk:crawl admit")]
pub(super) struct Admit {}

/// What became of the lines.
#[derive(Default)]
struct Tally {
    lines: u64,
    added: u64,
    known: u64,
    rescored: u64,
    restated: u64,
    refused: BTreeMap<String, u64>,
    bad: u64,
}

impl Admit {
    #[expect(clippy::unused_self, reason = "commands are run alike, whether they have arguments or not")]
    pub(super) fn run(&self, at: Address<'_>, out: &mut Output) -> Result<Ended, String> {
        if stdin().is_terminal() {
            complain("Type URLs, one a line; end with Ctrl-D.");
        }
        let mut lines = Lines::new(stdin().lock());
        lines.wait()?;
        let frontier = at.open_or_make()?;
        let mut tally = Tally::default();
        let progress = progress::begin(!stdin().is_terminal());
        let mut admit = || -> Result<(), String> {
            let mut batch = Vec::with_capacity(BATCH);
            let mut batch_bytes = 0;
            loop {
                let line = lines.next()?;
                let ended = line.is_none();
                batch_bytes += lines.line_bytes();
                if let Some((number, line)) = line {
                    tally.lines += 1;
                    match line.and_then(|line| read(line, &frontier, moment::now())) {
                        Ok(candidate) => batch.push(candidate),
                        Err(problem) => {
                            tally.bad += 1;
                            progress.suspend(|| complain(&format!("line {number}: {problem}")));
                        }
                    }
                }
                let is_full = batch.len() == BATCH || batch_bytes >= BATCH_BYTES;
                if !batch.is_empty() && (is_full || ended) {
                    tally.admit(&frontier, &batch)?;
                    batch.clear();
                    batch_bytes = 0;
                    progress.set_message(format!("{} lines, {} added", tally.lines, tally.added));
                }
                if ended {
                    return Ok(());
                }
            }
        };
        let flush = || pollster::block_on(frontier.flush()).map_err(|error| error.to_string());
        let admitted = admit().and_then(|()| flush());
        progress.finish_and_clear();
        tally.print(at.crawl, out);
        admitted.map_err(|error| {
            format!("{error}\n  What is counted above is in the crawl; the rest can be admitted again.")
        })?;
        let is_well = tally.bad == 0 && tally.refused.is_empty();
        Ok(if is_well { Ended::Well } else { Ended::WithComplaints })
    }
}

fn read(line: Line, frontier: &Frontier, now: Timestamp) -> Result<Candidate, String> {
    match line {
        Line::Text(url) => frontier.prepare(Request::get(url)).map_err(|error| error.to_string()),
        Line::Json(fields) => candidate::read(fields, Request::get(""), frontier, now),
    }
}

impl Tally {
    fn admit(&mut self, frontier: &Frontier, batch: &[Candidate]) -> Result<(), String> {
        let admitted = pollster::block_on(frontier.admit_candidates(moment::now(), batch));
        for answer in admitted.map_err(|error| error.to_string())? {
            match answer {
                Admission::Added => self.added += 1,
                Admission::Known => self.known += 1,
                Admission::Rescored => self.rescored += 1,
                Admission::Restated => self.restated += 1,
                Admission::Refused(why) => *self.refused.entry(why.to_string()).or_default() += 1,
            }
        }
        Ok(())
    }

    fn print(&self, crawl: &str, out: &mut Output) {
        out.card(&vec![
            ("crawl", json!(crawl)),
            ("lines", json!(self.lines)),
            ("added", json!(self.added)),
            ("known", json!(self.known)),
            ("rescored", json!(self.rescored)),
            ("restated", json!(self.restated)),
            ("refused", json!(self.refused)),
            ("bad", json!(self.bad)),
        ]);
    }
}
