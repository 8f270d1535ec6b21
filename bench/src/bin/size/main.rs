//! What the memory store takes at a million, ten million and fifty million URLs over a million hosts, by what the
//! store says of itself and by what the process really grew, and the slowest batch on the way there.
//!
//! Each size is a process of its own. What is measured and how to read it: `bench/README.md`.

use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use pollster::block_on;
use trapline_bench::measure::{Stopwatch, resident};
use trapline_bench::stream;
use trapline_core::{IdentityKey, Request, Timestamp};
use trapline_frontier::{Frontier, Memory, MemoryStore, Outcome, Settings, Settlement, Stats, UrlState};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BATCH: u64 = 1000;
const NOW: Timestamp = Timestamp::ZERO;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [] => all(&["1000000", "10000000", "50000000"], "1000000"),
        ["--quick"] => all(&["100000", "1000000"], "100000"),
        ["--one", urls, hosts, memory @ ("fresh" | "touched"), ref batches @ ..] => {
            match (urls.parse(), hosts.parse(), batches) {
                (Ok(urls), Ok(hosts), [] | ["batches"]) if hosts > 0 && urls >= hosts => {
                    let took = measure(urls, hosts, memory);
                    if !batches.is_empty() {
                        println!("{}", took.iter().map(u64::to_string).collect::<Vec<_>>().join(" "));
                    }
                    ExitCode::SUCCESS
                }
                _ => usage(),
            }
        }
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!(
        "size [--quick | --one URLS HOSTS fresh|touched [batches]], with at least as many URLs as hosts"
    );
    ExitCode::FAILURE
}

fn all(sizes: &[&str], hosts: &str) -> ExitCode {
    println!(
        "bytes, by the store's own account; targets: 12 a known URL, 20 more a pending one, 200 a queue\n"
    );
    println!(
        "{:>8} {:>9} {:>9} | {:>8} {:>11} {:>10} | {:>8} {:>8} {:>8} | {:>13} {:>9} | {:>10} {:>14} {:>14}",
        "memory",
        "URLs",
        "queues",
        "a known",
        "+ a pending",
        "an idle",
        "record",
        "text",
        "of URLs",
        "accounted MiB",
        "grew MiB",
        "admits/s",
        "slowest batch",
        "(ms) CPU, wall"
    );
    for urls in sizes {
        for memory in ["fresh", "touched"] {
            let (Some(first), Some(second)) = (run(urls, hosts, memory), run(urls, hosts, memory)) else {
                eprintln!("{urls} URLs failed");
                return ExitCode::FAILURE;
            };
            // The machine makes a batch wait now and then, but hardly ever the same one twice.
            let mut better: Vec<_> =
                first.iter().zip(&second).map(|(first, second)| *first.min(second)).collect();
            better.sort_unstable();
            if let [.., slowest] = better[..] {
                let millis = |nanos: u64| nanos as f64 / 1e6;
                println!(
                    "{memory:>8} {:>9} batches, each the better of two runs: half take up to {:.2} ms, the slowest {:.2} ms CPU\n",
                    better.len(),
                    millis(better[better.len() / 2]),
                    millis(slowest),
                );
            }
        }
    }
    ExitCode::SUCCESS
}

/// A measurement in a process of its own: shows its figures, and answers the CPU time of its batches in nanoseconds.
fn run(urls: &str, hosts: &str, memory: &str) -> Option<Vec<u64>> {
    let program = std::env::current_exe().expect("this program can be found");
    let mut command = Command::new(&program);
    command.args(["--one", urls, hosts, memory, "batches"]).envs(trapline_bench::ENVIRONMENT);
    if memory == "touched" {
        // What was touched is not to be given back.
        command.env("MIMALLOC_PURGE_DELAY", "-1");
    }
    let output = command.stderr(Stdio::inherit()).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut lines = text.lines();
    println!("{}", lines.next()?);
    lines.next()?.split(' ').map(|word| word.parse().ok()).collect()
}

/// Makes every host's queue and lets it run empty, then fills them up. Answers what each batch took.
fn measure(urls: u64, hosts: u64, memory: &str) -> Vec<u64> {
    if memory == "touched" {
        touch(urls * 230 + hosts * 500);
    }
    let (before, _) = resident();
    let settings = Settings { delay: Duration::ZERO, ..Settings::default() };
    let builder = Frontier::builder("size").key(IdentityKey::from_seed(1)).settings(settings);
    let frontier = block_on(builder.open(MemoryStore::new(), NOW)).expect("a memory store opens");
    let mut growth = Growth::default();

    growth.admit(&frontier, 0..hosts, hosts);
    settle(&frontier, hosts);
    let idle = stats(&frontier);
    assert_eq!((idle.urls_in(UrlState::Pending), idle.urls_in(UrlState::Done)), (0, hosts));

    growth.admit(&frontier, hosts..urls, hosts);
    // As many again as ran through at first: then every live part is in use.
    growth.admit(&frontier, urls..urls + hosts, hosts);
    let full = stats(&frontier);
    assert_eq!(full.urls_in(UrlState::Pending), urls);
    let (after, _) = resident();

    let known = urls + hosts;
    let each = |bytes: u64, of: u64| bytes as f64 / of as f64;
    let Memory { seen, records, pending, rare, texts, queues } =
        full.memory.expect("a memory store knows what it takes");
    println!(
        "{memory:>8} {known:>9} {hosts:>9} | {:>8.1} {:>11.1} {:>10.1} | {:>8.1} {:>8.1} {:>8.1} | {:>13} {:>9} | {:>10.0} {:>14.2} {:>14.2}",
        each(seen, known),
        each(pending, urls),
        each(idle.memory.expect("it still does").queues, hosts),
        each(records, known),
        each(texts, known),
        each(growth.text_bytes, known),
        (seen + records + pending + rare + texts + queues) >> 20,
        after.saturating_sub(before) >> 10,
        known as f64 / growth.watch.wall.as_secs_f64(),
        growth.batches.iter().max().map_or(0.0, |nanos| *nanos as f64 / 1e6),
        growth.slowest_wall.as_secs_f64() * 1e3,
    );
    growth.batches
}

/// Touches so much memory and gives it back to the allocator, so that no batch is slow because the operating system, or
/// the machine it runs on, has to find memory first.
fn touch(bytes: u64) {
    let block = || std::hint::black_box(vec![1_u8; 1 << 20]);
    drop((0..bytes >> 20).map(|_| block()).collect::<Vec<_>>());
}

/// Claims and settles so many.
fn settle(frontier: &Frontier, urls: u64) {
    let mut left = urls;
    while left > 0 {
        let claimed = block_on(frontier.claim(NOW, BATCH as usize)).expect("a memory store claims");
        assert!(!claimed.leases.is_empty(), "{left} are pending");
        left -= claimed.leases.len() as u64;
        let settlements = claimed.leases.iter().map(|lease| Settlement::new(lease.id, Outcome::done()));
        block_on(frontier.settle(NOW, settlements.collect())).expect("a memory store settles");
    }
}

fn stats(frontier: &Frontier) -> Stats {
    block_on(frontier.stats(NOW)).expect("a memory store counts")
}

/// Admissions, and what their batches took.
#[derive(Default)]
struct Growth {
    watch: Stopwatch,
    /// CPU nanoseconds.
    batches: Vec<u64>,
    slowest_wall: Duration,
    text_bytes: u64,
}

impl Growth {
    fn admit(&mut self, frontier: &Frontier, numbers: std::ops::Range<u64>, hosts: u64) {
        let mut numbers = numbers.peekable();
        while numbers.peek().is_some() {
            let urls =
                numbers.by_ref().take(BATCH as usize).map(|number| stream::url(number % hosts, number));
            let candidates: Vec<_> = urls
                .map(|url| {
                    self.text_bytes += url.len() as u64;
                    frontier.prepare(Request::get(url)).expect("the stream has only good URLs")
                })
                .collect();
            let before = self.watch;
            let answers = self.watch.time(|| block_on(frontier.admit_candidates(NOW, &candidates)));
            assert_eq!(answers.expect("a memory store admits").len(), candidates.len());
            self.batches.push((self.watch.cpu - before.cpu).as_nanos() as u64);
            self.slowest_wall = self.slowest_wall.max(self.watch.wall - before.wall);
        }
    }
}
