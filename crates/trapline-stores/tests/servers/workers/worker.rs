//! One worker process: admits, claims and settles, by the server's clock, and says what it is about to do and what it was
//! answered. Killed at any moment.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use trapline_core::{Candidate, NO_BUDGET, Request, Terms, Timestamp};
use trapline_frontier::{
    Admission, Answer, ErrorKind, Frontier, Lease, Outcome, Settings, Settlement, Store, StoreError,
};
use trapline_stores::PostgresStore;
use trapline_stores::postgres::Clock;

pub(super) const URL: &str = "TRAPLINE_WORKER_URL";
pub(super) const LIFE: &str = "TRAPLINE_WORKER_LIFE";

pub(super) const LEASE: Duration = Duration::from_secs(2);
/// Of a queue that nobody gave another one.
pub(super) const DELAY: Duration = Duration::from_millis(150);
pub(super) const BUDGET: u64 = 10;

/// Queues that are never empty, and may have two leases at a time.
pub(super) const STEADY: u64 = 16;
pub(super) const STEADY_DELAY: Duration = Duration::from_millis(100);
pub(super) const STEADY_CONCURRENCY: usize = 2;

pub(super) fn open(store: &PostgresStore, now: Timestamp) -> Result<Frontier, StoreError> {
    let settings = Settings {
        lease: LEASE,
        delay: DELAY,
        concurrency: 1,
        queue_budget: Some(BUDGET),
        balance_replenish: 3,
        max_deliveries: 0,
        ..Settings::default()
    };
    let store: Arc<dyn Store> = Arc::new(store.clone());
    let key = trapline_core::IdentityKey::from_seed(7);
    let builder = Frontier::builder("workers").settings(settings).partitions(4).key(key);
    pollster::block_on(builder.open_shared(store, now))
}

pub(super) fn is_steady(key: &str) -> bool {
    key.ends_with(".steady.example")
}

/// A URL of a steady queue: page after page, each linking to the next.
pub(super) fn steady(frontier: &Frontier, host: u64, chain: u64) -> Candidate {
    let terms = Terms {
        queue_budget: Some(NO_BUDGET),
        delay: Some(STEADY_DELAY),
        concurrency: Some(STEADY_CONCURRENCY as u32),
        ..Terms::default()
    };
    let request = Request::get(format!("http://{host}.steady.example/{chain}/0"));
    Candidate { terms, ..frontier.prepare(request).expect("a good URL") }
}

/// The URLs of a batch, which is named by a life and a turn in it: two on a host of its own, and one on a host that gets more
/// than may be spent on it.
pub(super) fn urls(batch: &str) -> [String; 3] {
    let numbers: u64 = batch.bytes().map(u64::from).sum();
    [
        format!("http://{batch}.own.example/1"),
        format!("http://{batch}.own.example/2"),
        format!("http://{}.shared.example/{batch}", numbers % 40),
    ]
}

/// The link that a page has, if it has one.
pub(super) fn link(url: &str) -> Option<String> {
    let (start, page) = url.rsplit_once('/')?;
    if url.contains(".steady.example/") {
        let page: u64 = page.parse().ok()?;
        return Some(format!("{start}/{}", page + 1));
    }
    let has_one = url.bytes().map(u32::from).sum::<u32>().is_multiple_of(2) && page != "link";
    has_one.then(|| format!("{url}/link"))
}

/// What becomes of a lease. Of some nothing does, and they expire; some are given back, but not where that would make it hard to
/// say what was spent.
fn outcome(lease: &Lease, now: Timestamp) -> Option<(&'static str, Outcome)> {
    Some(match lease.id.0 % 23 {
        0 => return None,
        1 if is_steady(&lease.key) => ("release", Outcome::Release),
        2 | 3 => ("retry", Outcome::Retry { at: now + Duration::from_millis(200) }),
        _ => ("done", Outcome::done()),
    })
}

/// A worker. Does nothing unless it was started as one.
#[test]
fn worker() {
    let (Ok(url), Ok(life)) = (std::env::var(URL), std::env::var(LIFE)) else { return };
    let store = PostgresStore::open(&url).expect("the URL is good");
    let clock = store.pool().clock();
    let frontier = loop {
        let opened = pollster::block_on(clock.now()).and_then(|now| Ok((now, open(&store, now)?)));
        match opened {
            Ok((now, frontier)) => {
                say(&format!("@ opened {life} {} {}\n", wall_clock(), now.as_millis()));
                break frontier;
            }
            Err(error) => excuse(&error),
        }
    };
    for turn in 0.. {
        if let Err(error) = take_turn(&frontier, &clock, &life, turn) {
            excuse(&error);
        }
    }
}

/// What this machine takes the time for.
#[expect(clippy::disallowed_methods, reason = "to show that nothing follows from it")]
fn wall_clock() -> u128 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("it is later than that").as_millis()
}

/// One write, which the pipe keeps together. The parent is gone if it fails.
fn say(lines: &str) {
    assert!(lines.len() <= 4096, "as much as a pipe keeps together");
    if std::io::stdout().lock().write_all(lines.as_bytes()).is_err() {
        std::process::exit(1);
    }
}

/// A server that was stopped excuses what failed. Nothing else does.
fn excuse(error: &StoreError) {
    if error.kind() != ErrorKind::Unavailable {
        say(&format!("@ error {}\n", error.to_string().replace('\n', " ")));
    }
}

fn take_turn(frontier: &Frontier, clock: &Clock, life: &str, turn: u64) -> Result<(), StoreError> {
    let now = || pollster::block_on(clock.now());
    if turn.is_multiple_of(3) {
        let batch = format!("{life}-{turn}");
        say(&format!("@ admitting {batch}\n"));
        let answers = pollster::block_on(frontier.admit(now()?, urls(&batch).map(Request::get)))?;
        let is_new = answers.iter().all(|answer| *answer == Admission::Added);
        say(&if is_new { format!("@ added {batch}\n") } else { format!("@ error {batch}: {answers:?}\n") });
    }
    say(&format!("@ claiming {life}\n"));
    let claimed = pollster::block_on(frontier.claim(now()?, 8))?;
    if claimed.leases.is_empty() {
        linger();
        return Ok(());
    }
    let leased = |lease: &Lease| {
        let (id, deadline) = (lease.id.0, lease.deadline.as_millis());
        format!("@ leased {life} {id} {} {} {deadline}\n", lease.key, lease.request.url)
    };
    say(&claimed.leases.iter().map(leased).collect::<String>());

    let now = now()?;
    let ends = claimed.leases.iter().filter_map(|lease| Some((lease, outcome(lease, now)?)));
    let ends: Vec<_> = ends.collect();
    let told = |(lease, (word, _)): &(&Lease, (&str, Outcome))| {
        format!("@ settling {} {word} {}\n", lease.id.0, now.as_millis())
    };
    say(&ends.iter().map(told).collect::<String>());
    let settle = |(lease, (_, outcome)): &(&Lease, (&str, Outcome))| {
        let mut settlement = Settlement::new(lease.id, outcome.clone());
        let link = link(&lease.request.url).filter(|_| matches!(outcome, Outcome::Done { .. }));
        settlement.links =
            link.and_then(|link| frontier.prepare(Request::get(link)).ok()).into_iter().collect();
        settlement
    };
    let settled = pollster::block_on(frontier.settle(now, ends.iter().map(settle).collect()))?;
    let told = |((lease, (word, _)), settled): (&(&Lease, (&str, Outcome)), &trapline_frontier::Settled)| {
        let id = lease.id.0;
        match (*word, settled.answer) {
            ("done", Answer::Done) | ("retry", Answer::Retry) | ("release", Answer::Released) => {
                format!("@ settled {id}\n")
            }
            (_, Answer::Stale) => format!("@ stale {id}\n"),
            (word, other) => format!("@ error {word} of lease {id} was answered {other:?}\n"),
        }
    };
    say(&ends.iter().zip(&settled).map(told).collect::<String>());
    Ok(())
}

/// Nothing is eligible: soon something will be.
#[expect(clippy::disallowed_methods, reason = "as a worker without wake-ups does")]
fn linger() {
    std::thread::sleep(Duration::from_millis(5));
}
