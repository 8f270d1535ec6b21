//! A server that dies for good, and a replica that takes its place: nobody who uses the store has to know.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use trapline_frontier::{Answer, ErrorKind, Frontier, Outcome, Settlement, StoreError, UrlState};
use trapline_stores::postgres::migrate;
use trapline_testing::{PostgresServer, Stop};

use super::crawls::{add, at_ms, claim, crawl, no_waits, store};
use super::pool;

/// Servers are started and copied in here, so it is long.
const PATIENCE: Duration = Duration::from_secs(60);
const URLS: usize = 300;

/// A batch is tried again as long as the store says that it may be.
fn insist<T>(mut attempt: impl FnMut() -> Result<T, StoreError>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            Ok(answer) => return answer,
            Err(error) if error.kind() == ErrorKind::Unavailable && Instant::now() < until => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Claims one and settles it, until all are done; answers how often something was settled here.
fn work(frontier: &Frontier, began: &AtomicBool) -> usize {
    let mut settled = 0;
    loop {
        let leases = insist(|| pollster::block_on(frontier.claim(at_ms(1), 2))).leases;
        if leases.is_empty() {
            return settled;
        }
        let ends: Vec<_> = leases.iter().map(|lease| Settlement::new(lease.id, Outcome::done())).collect();
        let answers = insist(|| pollster::block_on(frontier.settle(at_ms(1), ends.clone())));
        // `Stale` would be the answer to a batch that was applied, and tried again because its server was away for too long to
        // say so.
        settled +=
            answers.iter().filter(|settled| matches!(settled.answer, Answer::Done | Answer::Stale)).count();
        began.store(true, Ordering::Release);
    }
}

#[test]
fn a_replica_takes_over_and_nothing_is_lost_or_done_twice() {
    let primary = PostgresServer::builder().start().expect("a server");
    let database = primary.create_database().expect("a database is made");
    pollster::block_on(migrate(&pool(&primary.url(&database)))).expect("the tables are made");
    let standby = primary.standby().expect("a replica");
    // As an operator would write it: both, whichever takes writes.
    let both = primary.url(&database).replacen(
        &format!("127.0.0.1:{}", primary.port()),
        &format!("127.0.0.1:{},127.0.0.1:{}", primary.port(), standby.port()),
        1,
    );
    let store = store(&both);
    let frontier = crawl(&store, "c", no_waits());
    let urls: Vec<_> = (0..URLS).map(|page| format!("http://h{page}.example/")).collect();
    add(&frontier, at_ms(0), &urls);
    // Held across the change, by somebody who is busy fetching.
    let held = claim(&frontier, at_ms(0), 3);
    let began = AtomicBool::new(false);
    let settled: usize = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(|| work(&frontier, &began))).collect();
        let until = Instant::now() + PATIENCE;
        while !began.load(Ordering::Acquire) {
            assert!(Instant::now() < until, "nobody works");
            std::thread::yield_now();
        }
        primary.stop(Stop::Immediate).expect("it stops");
        standby.promote().expect("it takes over");
        workers.into_iter().map(|worker| worker.join().expect("it works")).sum()
    });
    let ends = held.iter().map(|lease| Settlement::new(lease.id, Outcome::done())).collect();
    let answers = pollster::block_on(frontier.settle(at_ms(1), ends)).expect("it is settled");
    assert!(answers.iter().all(|settled| settled.answer == Answer::Done), "{answers:?}");
    assert_eq!(settled + held.len(), URLS, "each was settled once");
    let stats = pollster::block_on(frontier.stats(at_ms(1))).expect("it is answered");
    assert_eq!(
        (stats.fetched as usize, stats.urls_in(UrlState::Pending), stats.urls_in(UrlState::Leased)),
        (URLS, 0, 0),
        "{stats:?}"
    );
    assert_eq!(standby.sql(&database, "SELECT pg_is_in_recovery()").as_deref(), Ok("f"));
}
