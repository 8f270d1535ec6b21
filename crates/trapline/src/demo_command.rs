//! `trapline demo`: a crawl of a generated web, with a report at its end: served and crawled for real, or in virtual time.
//!
//! Here is what the user typed and what it means. The crawl in virtual time is in `trapline-sim`; nothing leaves this machine.

mod progress;
mod real;
mod report;
mod web_server;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use trapline_core::{format_duration, parse_duration};
use trapline_frontier::MemoryStore;
use trapline_sim::{CrawlPlan, Web, WebSize, crawl};

use progress::Progress;
use report::Run;
pub(crate) use report::{clock, thousands};

/// Some 800 bytes a page are needed, most of them by the frontier in memory.
const PAGES_MAX: u32 = 2_000_000;
const WORKERS_MAX: u32 = 100_000;
const DELAY_MAX: Duration = Duration::from_secs(86_400);
const PAGES_PER_HOST: u32 = 100;

const EXAMPLES: &str = "\
Examples:
  trapline demo                   30 hosts, 1,000 pages: some 20 seconds
  trapline demo --out demo        the same, and the results stay in the folder `demo`
  trapline demo --delay 0         as fast as it goes
  trapline demo --virtual         100 hosts, 10,000 pages in no time: time is only counted
  trapline demo --virtual --workers 2
                                  too few: hosts wait although they could be asked
  trapline demo --virtual --hosts 2000 --pages 200000
                                  a larger web; takes some seconds

The report goes to standard output, progress to standard error.";

/// Crawl a generated web, and see what a crawl does
///
/// Makes a web from a seed: large hosts and small ones, slow ones and some that are down at
/// times, pages that are gone, moved, broken or disallowed. Serves it on a loopback address
/// of this machine and crawls it as `trapline crawl` does, politely, with a report at its end.
///
/// With --virtual nothing is served: the real frontier crawls it in memory while time is only
/// counted, so that an hour passes in less than a second.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, verbatim_doc_comment)]
pub(crate) struct DemoArgs {
    /// Which web, and which crawl of it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed, allow_negative_numbers = true)]
    seed: u64,

    /// Only count the time, and serve nothing
    #[arg(long = "virtual")]
    virtual_time: bool,

    /// Where the results go [default: a folder that is removed afterwards]
    #[arg(long, value_name = "DIR", conflicts_with = "virtual_time")]
    out: Option<PathBuf>,

    /// How many hosts the web has [default: 30; 100 with --virtual]
    #[arg(long, value_name = "N", value_parser = hosts, allow_negative_numbers = true)]
    hosts: Option<u32>,

    /// How many pages the hosts have together [default: 1,000; 100 for each host with --virtual]
    #[arg(long, value_name = "N", value_parser = pages, allow_negative_numbers = true)]
    pages: Option<u32>,

    /// How many fetches can go on at once
    #[arg(long, value_name = "N", default_value = "50", value_parser = workers, allow_negative_numbers = true)]
    workers: u32,

    /// How long a host is left alone after each fetch, such as 0, 250ms or 2m [default: 50ms; 1s with --virtual]
    #[arg(long, value_name = "TIME", value_parser = delay)]
    delay: Option<Duration>,
}

impl DemoArgs {
    /// The size that was asked for; what was left out suits what was given.
    fn size(&self) -> Result<WebSize, String> {
        let standard =
            if self.virtual_time { WebSize::default() } else { WebSize { hosts: 30, pages: 1_000 } };
        let hosts = self.hosts.unwrap_or_else(|| standard.hosts.min(self.pages.unwrap_or(standard.pages)));
        let pages = self.pages.unwrap_or_else(|| match self.hosts {
            None if !self.virtual_time => standard.pages,
            _ => hosts.saturating_mul(PAGES_PER_HOST).min(PAGES_MAX),
        });
        if pages < hosts {
            let (some, many) = (thousands(pages.into()), thousands(hosts.into()));
            return Err(format!(
                "{some} pages are too few for {many} hosts: every host has a home page at least\n  \
                 Give --pages {hosts} or more, or --hosts {pages} or fewer."
            ));
        }
        Ok(WebSize { hosts, pages })
    }
}

/// Runs the command.
pub(crate) fn run(args: &DemoArgs) -> ExitCode {
    let size = match args.size() {
        Ok(size) => size,
        Err(message) => {
            eprintln!("error: {message}");
            return ExitCode::from(2);
        }
    };
    if !args.virtual_time {
        let delay = format_duration(args.delay.unwrap_or(Duration::from_millis(50)));
        let out = args.out.clone();
        let demo = real::RealDemo { seed: args.seed, size, workers: args.workers, delay, out };
        return real::run(&demo).unwrap_or_else(|message| {
            eprintln!("error: the demo stopped: {message}");
            ExitCode::from(2)
        });
    }
    let delay = args.delay.unwrap_or(Duration::from_secs(1));
    let plan = CrawlPlan { seed: args.seed, workers: args.workers, delay };
    let started = Instant::now();
    let web = Web::generate(args.seed, size);
    let mut progress = Progress::new();
    let crawled =
        crawl(&web, &plan, Arc::new(MemoryStore::new()), &mut |now, stats| progress.tell(now, stats));
    progress.end();
    let summary = match crawled {
        Ok(summary) => summary,
        Err(error) => {
            eprintln!("error: the demo stopped: {error}");
            return ExitCode::FAILURE;
        }
    };
    let run = Run { size, plan, summary, wall: started.elapsed() };
    // Whoever reads may stop reading early, as `head` does; that is no failure of ours.
    let _ = std::io::stdout().lock().write_all(run.to_string().as_bytes());
    if run.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("write a whole number from 0 to {}", u64::MAX))
}

fn hosts(text: &str) -> Result<u32, String> {
    number(text, "a web has at least one host", PAGES_MAX, "hosts")
}

fn pages(text: &str) -> Result<u32, String> {
    number(text, "a web has at least one page", PAGES_MAX, "pages")
}

fn workers(text: &str) -> Result<u32, String> {
    number(text, "without a worker nothing is fetched", WORKERS_MAX, "workers")
}

/// Reads a number between 1 and `max`.
fn number(text: &str, zero: &str, max: u32, what: &str) -> Result<u32, String> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("write a whole number, such as 500".to_owned());
    }
    // Only digits, so what cannot be read is too large.
    match text.parse().unwrap_or(u32::MAX) {
        0 => Err(zero.to_owned()),
        number if number > max => {
            let max = thousands(max.into());
            Err(format!("the demo keeps everything in memory and takes up to {max} {what}"))
        }
        number => Ok(number),
    }
}

fn delay(text: &str) -> Result<Duration, String> {
    let delay = parse_duration(text).map_err(|error| error.to_string())?;
    if delay > DELAY_MAX { Err("a delay may be up to 1d".to_owned()) } else { Ok(delay) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_were_left_out_suit_those_given() {
        let check = |hosts, pages, expected: Result<(u32, u32), &str>| {
            let args =
                DemoArgs { seed: 1, virtual_time: true, out: None, hosts, pages, workers: 1, delay: None };
            let size = args.size().map(|size| (size.hosts, size.pages));
            assert_eq!(size, expected.map_err(str::to_owned), "{hosts:?} {pages:?}");
        };
        check(None, None, Ok((100, 10_000)));
        check(Some(7), None, Ok((7, 700)));
        check(Some(1_000_000), None, Ok((1_000_000, PAGES_MAX)));
        check(None, Some(30), Ok((30, 30)));
        check(None, Some(50_000), Ok((100, 50_000)));
        check(Some(7), Some(7), Ok((7, 7)));
        check(
            Some(5_000),
            Some(1_200),
            Err("1,200 pages are too few for 5,000 hosts: every host has a home page at least\n  \
                 Give --pages 5000 or more, or --hosts 1200 or fewer."),
        );
    }
}
