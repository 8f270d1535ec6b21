//! `trapline frontier jobs`: work over many URLs that a store does in the background. Commands that begin such work wait
//! for it here, because a stopped store does it only while somebody uses it.

use clap::Args;
use serde_json::json;
use trapline_frontier::{CrawlChange, ErrorKind, Frontier, JobReport, Query, Rows, Steer};

use super::address::Address;
use super::output::{Output, Row};
use super::{Ended, listing, moment};

/// List background work, or stop some: what is done to many URLs or dead letters
///
/// Shows what is under way and the last jobs that have ended, with how many URLs each has changed. Work goes on with every command.
///
/// passed is how many URLs it has looked at, of total, those that were forgotten meanwhile among them; affected, how many of them it
/// has changed. One that was stopped has ended before it has looked at all.
#[derive(Args)]
#[command(after_help = "\
Examples:
  trapline frontier --store disk:crawl jobs
  trapline frontier --store disk:crawl jobs --cancel 7")]
pub(super) struct Jobs {
    /// Stop this job where it is; what it has done stays done
    #[arg(long, value_name = "ID", value_parser = number)]
    cancel: Option<u64>,
}

fn number(text: &str) -> Result<u64, &'static str> {
    text.parse().map_err(|_| "a job has a number: `trapline frontier jobs` lists them")
}

const COLUMNS: [&str; 6] = ["id", "ended", "passed", "total", "affected", "what"];

/// Rounds without progress after which a job is left to others.
const PATIENCE: u32 = 1000;

impl Jobs {
    pub(super) fn run(&self, at: Address<'_>, out: &mut Output) -> Result<Ended, String> {
        if let Some(job) = self.cancel {
            cancel(at, job)?;
        }
        let rows: Vec<_> = reports(&at.open()?)?.iter().map(row).collect();
        out.rows(&COLUMNS, &rows);
        if rows.is_empty() {
            out.say("no jobs");
        }
        Ok(Ended::Well)
    }
}

/// Not through the crawl itself: opening it lets its jobs go on, and one that cannot may be what is to be stopped.
fn cancel(at: Address<'_>, job: u64) -> Result<(), String> {
    let store = at.store()?;
    let cancel = Steer::Crawl(CrawlChange::Cancel(job));
    match pollster::block_on(store.steer(at.crawl, moment::now(), cancel)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Err(at.no_crawl(&*store)?),
        Ok(steered) if steered.affected == 0 => Err(format!(
            "there is no job {job} under way that could be stopped; `trapline frontier jobs` lists them"
        )),
        cancelled => cancelled.map(|_| ()).map_err(|error| error.to_string()),
    }
}

fn row(job: &JobReport) -> Row {
    vec![
        ("id", json!(job.id)),
        ("what", json!(job.what)),
        ("ended", json!(job.ended)),
        ("passed", json!(job.passed)),
        ("total", json!(job.total)),
        ("affected", json!(job.affected)),
    ]
}

/// Steers, and waits for the work to be done. Answers how many URLs it concerned.
pub(super) fn steer(frontier: &Frontier, steer: Steer) -> Result<u64, String> {
    let steered =
        pollster::block_on(frontier.steer(moment::now(), steer)).map_err(|error| error.to_string())?;
    let Some(job) = steered.job else { return Ok(steered.affected) };
    let (mut passed, mut patience) = (0, PATIENCE);
    loop {
        // Asking lets them go on.
        let jobs = reports(frontier)?;
        let under_way = || jobs.iter().filter(|report| !report.ended);
        if !under_way().any(|report| report.id == job) {
            // What only frees memory is not remembered: the answer said what it was about.
            let ended = jobs.iter().find(|report| report.id == job);
            return Ok(ended.map_or(steered.affected, |report| report.affected));
        }
        let now_passed = under_way().map(|report| report.passed).sum::<u64>();
        patience = if now_passed == passed { patience - 1 } else { PATIENCE };
        passed = now_passed;
        if patience == 0 {
            return Err(format!(
                "job {job} has come to a halt after {passed} URLs; look at the store and try again"
            ));
        }
    }
}

fn reports(frontier: &Frontier) -> Result<Vec<JobReport>, String> {
    let mut reports = Vec::new();
    listing::each_page(frontier, Query::Jobs, |rows| {
        if let Rows::Jobs(jobs) = rows {
            reports.extend(jobs);
        }
        true
    })?;
    Ok(reports)
}
