//! The disk store alone, where it is large, used by several threads, or used for long. What is measured and how to read it:
//! `bench/README.md`.

mod beside;
mod cores;
mod fill;
mod week;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use trapline_bench::measure::resident;
use trapline_core::{IdentityKey, Timestamp};
use trapline_frontier::{Frontier, Settings, Stats};
use trapline_stores::{DiskOptions, DiskStore};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SEED: u64 = 0x7261_706c;

/// URLs a batch, each of which is synced.
const BATCH: usize = 1000;

const USAGE: &str = "scale fill|open|cores|beside|week [--urls N] [--hosts N] [--settlements N] [--dir FOLDER] [--keep yes] \
                     [--seconds N] [--lazy-bytes N] [--max-memory N]";

/// What was asked for on the command line.
#[derive(Clone)]
struct Wish {
    what: String,
    urls: u64,
    hosts: u64,
    settlements: u64,
    /// All settlements are to take so long, if they could be done sooner.
    duration: Duration,
    folder: PathBuf,
    /// The folder stays as a process leaves it that is killed.
    keep: bool,
    options: DiskOptions,
}

fn main() -> ExitCode {
    match read_wish().and_then(|wish| run(&wish)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn read_wish() -> Result<Wish, String> {
    let mut words = std::env::args().skip(1);
    let what = words.next().ok_or(USAGE)?;
    let folder = std::env::temp_dir().join(format!("trapline-scale-{}", std::process::id()));
    let options = DiskOptions::default();
    let (urls, hosts, settlements, keep) = (5_000_000, 100_000, 100_000_000, false);
    let duration = Duration::ZERO;
    let mut wish = Wish { what, urls, hosts, settlements, duration, folder, keep, options };
    while let Some(word) = words.next() {
        let value = words.next().ok_or(format!("{word} needs a value"))?;
        let number = || value.replace(['_', ','], "").parse().map_err(|_| format!("{word} needs a number"));
        match word.as_str() {
            "--urls" => wish.urls = number()?,
            "--hosts" => wish.hosts = number()?,
            "--settlements" => wish.settlements = number()?,
            "--seconds" => wish.duration = Duration::from_secs(number()?),
            "--keep" => wish.keep = value == "yes",
            "--lazy-bytes" => wish.options.lazy_bytes = number()?,
            "--max-memory" => wish.options.max_memory = Some(number()?),
            "--dir" => wish.folder = PathBuf::from(value),
            _ => return Err(format!("there is no option `{word}`: {USAGE}")),
        }
    }
    Ok(wish)
}

fn run(wish: &Wish) -> Result<(), String> {
    match wish.what.as_str() {
        "fill" => fill::run(wish),
        // The second half of `fill`, in a process of its own.
        "open" => fill::open(wish),
        "cores" => cores::run(wish),
        "beside" => beside::run(wish),
        "week" => week::run(wish),
        _ => return Err(USAGE.to_owned()),
    }
    Ok(())
}

fn open(wish: &Wish) -> Frontier {
    let settings = Settings {
        delay: Duration::ZERO,
        concurrency: 0,
        lease: Duration::from_secs(3600),
        ..Settings::default()
    };
    let store = DiskStore::open(&wish.folder, &wish.options).expect("the store opens");
    let builder = Frontier::builder("bench").key(IdentityKey::from_seed(SEED)).settings(settings);
    pollster::block_on(builder.open(store, Timestamp::ZERO)).expect("the crawl opens")
}

fn stats(frontier: &Frontier, now: Timestamp) -> Stats {
    pollster::block_on(frontier.stats(now)).expect("the store counts")
}

fn remove(folder: &Path) {
    std::fs::remove_dir_all(folder).expect("the folder is ours");
}

/// The times of single batches.
#[derive(Default)]
struct Tails(Vec<Duration>);

impl Tails {
    fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let begun = std::time::Instant::now();
        let done = work();
        self.0.push(begun.elapsed());
        done
    }

    /// Half, 99 of 100, 999 of 1,000, all; in milliseconds. What comes next is counted anew.
    fn take(&mut self) -> [f64; 4] {
        self.0.sort_unstable();
        let at = |share: f64| {
            let at = (self.0.len() as f64 * share).ceil() as usize;
            self.0.get(at.saturating_sub(1)).map_or(0.0, |time| time.as_secs_f64() * 1e3)
        };
        let tails = [0.5, 0.99, 0.999, 1.0].map(at);
        self.0.clear();
        tails
    }
}

/// A row of a table: what has just been done, and how everything stands.
fn row(name: &str, per_second: f64, tails: [f64; 4], stats: &Stats) {
    let disk = stats.disk.unwrap_or_default();
    let [half, most, nearly, all] = tails;
    println!(
        "| {name} | {per_second:.0} | {half:.2} / {most:.1} / {nearly:.1} / {all:.1} | {} | {} | {} | {} |",
        resident().0 / 1024,
        disk.log_bytes >> 20,
        disk.needed_bytes >> 20,
        disk.snapshot_bytes >> 20,
    );
}

const HEAD: &str = "| | a second | batch ms: half / 99 % / 99.9 % / all | resident MiB | log MiB | needed MiB | snapshots MiB |\n\
                    |---|---|---|---|---|---|---|";
