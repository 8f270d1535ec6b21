//! `trapline pause|resume|stop|status DIR`: a hand on a crawl, through its folder, whether it runs or not.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use trapline_core::format_duration;
use trapline_frontier::{CrawlChange, CrawlState, Frontier, QueueState, UrlState};

use crate::crawl_command::{Held, Order, order};
use crate::ended::{self, Ended};
use crate::output::{Output, Row};
use crate::{moment, store_url};

/// How long what is in flight may take to land.
const PATIENCE: Duration = Duration::from_secs(360);

/// Which crawl.
#[derive(Args)]
pub(crate) struct ControlArgs {
    /// The output folder of the crawl.
    #[arg(value_name = "DIR", default_value = "trapline-crawl")]
    dir: PathBuf,
    /// The crawl's name in its store, if it does not run.
    #[arg(long, value_name = "NAME", default_value = "default")]
    crawl: String,
}

/// How a crawl stands.
#[derive(Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    which: ControlArgs,
    /// One line of JSON.
    #[arg(long)]
    json: bool,
}

/// Pauses, resumes or stops a crawl.
pub(crate) fn run(args: &ControlArgs, what: Order) -> ExitCode {
    ended::exit(what.name(), obey(args, what))
}

fn obey(args: &ControlArgs, what: Order) -> Result<Ended, String> {
    if runs(&args.dir)?.is_some() {
        order(&args.dir, what, PATIENCE)?;
        println!(
            "{}",
            match what {
                Order::Pause => "paused: nothing is in flight, and nothing will be until `trapline resume`",
                Order::Resume => "resumed",
                Order::Stop => "stopping: what is in flight is finished first",
            }
        );
        return Ok(Ended::Well);
    }
    let change = match what {
        Order::Pause => CrawlChange::Pause,
        Order::Resume => CrawlChange::Resume,
        Order::Stop => return Err(format!("no crawl runs in {}", args.dir.display())),
    };
    let frontier = stopped(args)?;
    pollster::block_on(frontier.steer_crawl(moment::now(), change)).map_err(|error| error.to_string())?;
    println!(
        "{}d; the crawl does not run at present: `trapline crawl` with the same folder goes on",
        what.name()
    );
    Ok(Ended::Well)
}

/// Shows how a crawl stands.
pub(crate) fn status(args: &StatusArgs) -> ExitCode {
    ended::exit("status", show(args))
}

fn show(args: &StatusArgs) -> Result<Ended, String> {
    let dir = &args.which.dir;
    let mut out = Output::new(args.json);
    match runs(dir)? {
        Some(pid) => {
            let path = dir.join("status.json");
            let text = read_soon(&path)?;
            let status: Value =
                serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
            let value = |name: &str| status[name].clone();
            let seconds = |name: &str| {
                status[name].as_f64().map_or(Value::Null, |seconds| {
                    json!(format_duration(Duration::from_secs(seconds as u64)))
                })
            };
            let row: Row = vec![
                ("state", value("state")),
                ("process", json!(pid)),
                ("runs", seconds("seconds")),
                ("pages", value("pages")),
                ("pages_per_second", value("pages_per_second")),
                ("bytes", value("bytes")),
                ("pending", value("pending")),
                ("in_flight", value("in_flight")),
                ("in_flight_max", value("in_flight_max")),
                ("dead", value("dead")),
                ("disregarded", value("disregarded")),
                ("errors", value("errors")),
                ("queues", value("queues")),
                ("left", seconds("seconds_left")),
                ("trouble", value("trouble")),
            ];
            out.card(&row);
        }
        None => {
            let frontier = stopped(&args.which)?;
            let now = moment::now();
            let (report, stats, held) = pollster::block_on(async {
                let (report, stats) = (frontier.report(now).await?, frontier.stats(now).await?);
                let holds = report.exhausted && stats.urls_in(UrlState::Pending) > 0;
                let held = if holds { Some(Held::count(&frontier).await?) } else { None };
                Ok::<_, trapline_frontier::StoreError>((report, stats, held))
            })
            .map_err(|error| error.to_string())?;
            let state = match &report.state {
                CrawlState::Running if report.exhausted => {
                    held.map_or_else(|| "all is done".to_owned(), Held::sentence)
                }
                CrawlState::Running => {
                    "not running; `trapline crawl` with the same folder goes on".to_owned()
                }
                CrawlState::Paused => "paused, and not running".to_owned(),
                CrawlState::Finished(why) => format!("finished: {why}"),
            };
            let queues: serde_json::Map<_, _> = QueueState::ALL
                .iter()
                .map(|state| (state.to_string(), json!(stats.queues_in(*state))))
                .collect();
            out.card(&vec![
                ("state", json!(state)),
                ("pages", json!(stats.fetched)),
                ("bytes", json!(stats.bytes)),
                ("pending", json!(stats.urls_in(UrlState::Pending))),
                ("dead", json!(stats.urls_in(UrlState::Dead))),
                ("disregarded", json!(stats.urls_in(UrlState::Disregarded))),
                ("queues", json!(queues)),
            ]);
        }
    }
    out.finish().map(|()| Ended::Well)
}

/// Reads what a crawl that has just begun may not have written yet.
fn read_soon(path: &Path) -> Result<String, String> {
    let begun = std::time::Instant::now();
    loop {
        match fs::read_to_string(path) {
            Ok(text) => return Ok(text),
            Err(error) if begun.elapsed() > Duration::from_secs(5) => {
                return Err(format!("cannot read {}: {error}", path.display()));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// The process that crawls into a folder, if one does.
fn runs(dir: &Path) -> Result<Option<u32>, String> {
    let path = dir.join("crawl.lock");
    let lock = File::open(&path).map_err(|_| {
        format!(
            "there is no crawl in {}: name the folder that `trapline crawl --out` was given",
            dir.display()
        )
    })?;
    match lock.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(fs::TryLockError::WouldBlock) => {
            let pid = fs::read_to_string(&path).unwrap_or_default();
            Ok(Some(pid.trim().parse().unwrap_or_default()))
        }
        Err(fs::TryLockError::Error(error)) => Err(format!("cannot look at {}: {error}", path.display())),
    }
}

/// The crawl of a folder in which nobody crawls at present.
fn stopped(args: &ControlArgs) -> Result<Frontier, String> {
    let store = args.dir.join("store");
    if !store.exists() {
        return Err(format!(
            "the crawl in {} does not run, and it is kept elsewhere: use `trapline frontier --store URL`",
            args.dir.display()
        ));
    }
    let store = store_url::share_and_follow(&format!("disk:{}", store.display()))?;
    let open = Frontier::builder(&args.crawl).attach(store, moment::now());
    pollster::block_on(open).map_err(|error| error.to_string())
}
