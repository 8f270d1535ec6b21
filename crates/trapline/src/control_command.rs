//! `trapline pause|resume|stop|reload|steer|status DIR`: a hand on a crawl, through its folder, whether it runs or not.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use trapline_core::format_duration;
use trapline_frontier::{CrawlChange, CrawlState, Frontier, QueueState, UrlState};

use crate::crawl_command::{Held, Order, Steered, check_order, order};
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
    /// Where the crawl is kept, if not in its folder and it does not run.
    #[arg(long, value_name = "URL")]
    store: Option<String>,
}

/// Set options of a crawl that runs, or of its next run: its strategy, its pace, policies for some hosts
///
/// What is set stays on top of the configuration, also after a restart, until --forget. A crawl that runs goes on by it at once; what is in
/// flight ends by what held before. Without options, shows what was set.
#[derive(Args)]
#[command(after_help = "\
Examples:
  $ trapline steer example --strategy depth_first
  $ trapline steer example --strategy discovery --strategy-arg pages=50
  $ trapline steer example --set pace.delay=5s --set scope.max_depth=3
  $ trapline steer example --host '*.example.org' --set delay=30s --set budget=100
  $ trapline steer example --forget

  Options are those of the configuration (`trapline config --defaults`), and with --host those of [[host]].
  URLs, queues and the crawl as a whole are steered with `trapline frontier steer`.")]
pub(crate) struct SteerArgs {
    #[command(flatten)]
    which: ControlArgs,
    /// Another strategy.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["host", "forget"])]
    strategy: Option<String>,
    /// What the strategy is told. Can be given several times; what it was told before is forgotten.
    #[arg(long, value_name = "NAME=VALUE", requires = "strategy")]
    strategy_arg: Vec<String>,
    /// Any option, as section.key=value. Can be given several times.
    #[arg(long, value_name = "OPTION=VALUE", conflicts_with = "forget")]
    set: Vec<String>,
    /// Set options of [[host]] for these hosts: as in [[host]], such as a name, an address, domain:example.org,
    /// *.example.org or shop-*.example.org.
    #[arg(long, value_name = "HOSTS", requires = "set")]
    host: Option<String>,
    /// Forget all that was set so: the configuration alone counts again.
    #[arg(long)]
    forget: bool,
}

/// Steers a crawl.
pub(crate) fn steer(args: &SteerArgs) -> ExitCode {
    ended::exit("steer", steered(args))
}

fn steered(args: &SteerArgs) -> Result<Ended, String> {
    let mut assignments = Vec::new();
    if let Some(name) = &args.strategy {
        assignments.push(format!("strategy.name={name}"));
        assignments.push(format!("strategy.args={}", json!(args.strategy_arg)));
    }
    assignments.extend(args.set.iter().cloned());
    let change = Steered::of(&assignments, args.host.as_deref())?;
    let runs = runs(&args.which.dir)?.is_some();
    let what = match (args.forget, change.is_empty()) {
        (true, _) => Order::Forget,
        (false, false) => Order::Steer(change),
        (false, true) => return show_steered(&args.which),
    };
    if runs {
        return obey(&args.which, &what);
    }
    let frontier = stopped(&args.which)?;
    pollster::block_on(async {
        let now = moment::now();
        let told = |error: trapline_frontier::StoreError| error.to_string();
        let before = Steered::load(&frontier, now).await.map_err(told)?;
        let steered = match what {
            Order::Steer(change) => before.and(change),
            _ => Steered::default(),
        };
        let config = steered.check()?;
        if steered.sets("strategy.name") {
            check_order(&config, frontier.report(now).await.map_err(told)?.settings.order)?;
        }
        steered.keep(&frontier, now).await.map_err(told)
    })?;
    println!("done; the crawl does not run at present, its next run goes by it");
    Ok(Ended::Well)
}

/// Shows what was steered.
fn show_steered(which: &ControlArgs) -> Result<Ended, String> {
    let frontier = stopped(which)?;
    let steered =
        pollster::block_on(Steered::load(&frontier, moment::now())).map_err(|error| error.to_string())?;
    if steered.is_empty() {
        println!("nothing was steered: the configuration alone counts");
    }
    for line in steered.lines() {
        println!("{line}");
    }
    Ok(Ended::Well)
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
pub(crate) fn run(args: &ControlArgs, what: &Order) -> ExitCode {
    ended::exit(what.name(), obey(args, what))
}

fn obey(args: &ControlArgs, what: &Order) -> Result<Ended, String> {
    if runs(&args.dir)?.is_some() {
        let said = order(&args.dir, what, PATIENCE)?;
        println!(
            "{}",
            match what {
                Order::Pause => "paused: nothing is in flight, and nothing will be until `trapline resume`",
                Order::Resume => "resumed",
                Order::Stop => "stopping: what is in flight is finished first",
                Order::Reload | Order::Steer(_) | Order::Forget => &said,
            }
        );
        return Ok(Ended::Well);
    }
    let change = match what {
        Order::Pause => CrawlChange::Pause,
        Order::Resume => CrawlChange::Resume,
        Order::Stop => return Err(format!("no crawl runs in {}", args.dir.display())),
        Order::Reload | Order::Steer(_) | Order::Forget => {
            return Err(format!(
                "no crawl runs in {}; the next one that does reads the configuration anyway",
                args.dir.display()
            ));
        }
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
pub(crate) fn runs(dir: &Path) -> Result<Option<u32>, String> {
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

/// The crawl of a folder: directly if nobody crawls there at present, else through who does.
fn stopped(args: &ControlArgs) -> Result<Frontier, String> {
    let own = args.dir.join("store");
    let url = match &args.store {
        Some(url) => url.clone(),
        None if own.exists() => format!("disk:{}", own.display()),
        None => {
            return Err(format!(
                "the crawl in {} is kept elsewhere: name its store with --store URL",
                args.dir.display()
            ));
        }
    };
    let store = store_url::share_and_follow(&url)?;
    let open = Frontier::builder(&args.crawl).attach(store, moment::now());
    pollster::block_on(open).map_err(|error| error.to_string())
}
