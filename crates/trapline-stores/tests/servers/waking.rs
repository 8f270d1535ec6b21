//! Waiting for news, with and without somebody who listens.

use std::time::{Duration, Instant};

use trapline_stores::postgres::{Pool, Wakeups};
use trapline_testing::{PostgresServer, Stop};

use super::{empty_database, pool};

/// Longer than anything here should take.
const LONG: Duration = Duration::from_secs(60);

fn notify(pool: &Pool, crawl: &str) {
    pollster::block_on(async {
        let client = pool.client().await.expect("the server is there");
        client.execute("SELECT pg_notify('trapline', $1)", &[&crawl]).await.expect("it is told");
    });
}

fn listening(wakeups: &Wakeups) {
    let began = Instant::now();
    let mut ear = wakeups.ear(None);
    while !wakeups.is_listening() {
        pollster::block_on(ear.wait(LONG));
        assert!(began.elapsed() < LONG, "nobody listens");
    }
}

#[test]
fn news_wakes_who_waits_for_that_crawl_and_nobody_else() {
    let pool = pool(&empty_database());
    let wakeups = pool.wakeups();
    listening(&wakeups);
    let (mut seven, mut eight, mut any) = (wakeups.ear(Some("7")), wakeups.ear(Some("8")), wakeups.ear(None));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| pollster::block_on(seven.wait(LONG)));
        notify(&pool, "7");
        assert!(waiting.join().unwrap());
    });
    assert!(pollster::block_on(any.wait(LONG)));
    assert!(!pollster::block_on(eight.wait(Duration::from_millis(100))));
}

#[test]
fn news_between_the_look_and_the_wait_is_not_missed() {
    let pool = pool(&empty_database());
    let wakeups = pool.wakeups();
    listening(&wakeups);
    let (mut ear, mut witness) = (wakeups.ear(Some("7")), wakeups.ear(Some("7")));
    notify(&pool, "7");
    assert!(pollster::block_on(witness.wait(LONG)));
    assert!(pollster::block_on(ear.wait(LONG)), "it came before the wait, and is told all the same");
    assert!(!pollster::block_on(ear.wait(Duration::from_millis(50))), "but once");
}

#[test]
fn without_somebody_who_listens_waiting_is_looking_again() {
    let server = PostgresServer::builder().careless().start().unwrap();
    let pool = pool(&(server.url("postgres") + "?connect_timeout=30s"));
    let wakeups = pool.wakeups();
    listening(&wakeups);
    let mut ear = wakeups.ear(Some("7"));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| pollster::block_on(ear.wait(LONG)));
        server.stop(Stop::Fast).unwrap();
        assert!(waiting.join().unwrap(), "a lost connection is news: who knows what was missed");
    });
    let began = Instant::now();
    let mut waits = 0;
    while began.elapsed() < Duration::from_secs(1) {
        pollster::block_on(ear.wait(LONG));
        waits += 1;
    }
    assert!((3..=8).contains(&waits), "{waits} looks in a second");
    server.start_again().unwrap();
    listening(&wakeups);
    notify(&pool, "7");
    assert!(pollster::block_on(ear.wait(LONG)));
}
