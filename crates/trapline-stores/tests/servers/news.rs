//! Whoever waits for something to claim is told of what others bring, and all follow the server's clock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pollster::block_on;
use trapline_core::{Request, Timestamp};
use trapline_frontier::{Frontier, Outcome, Settings, Settlement, Store};
use trapline_stores::PostgresStore;

use super::fresh_database;

fn crawl(url: &str) -> Frontier {
    let store = Arc::new(PostgresStore::open(url).expect("it opens"));
    let settings = Settings { delay: Duration::ZERO, ..Settings::default() };
    block_on(Frontier::builder("crawl").settings(settings).open_shared(store, Timestamp::ZERO))
        .expect("it opens")
}

#[test]
fn one_who_waits_hears_of_what_another_brings() {
    let url = fresh_database();
    let (idle, busy) = (crawl(&url), crawl(&url));
    let now = Timestamp::ZERO;
    let mut ear = block_on(idle.ear()).expect("it listens").expect("it has ears");
    // Until somebody listens, and what that is worth is known.
    while block_on(ear.wait(Duration::from_millis(300))) {}
    let waits = |ear: &mut dyn trapline_frontier::Ear, bring: &dyn Fn()| {
        bring();
        let begun = Instant::now();
        let heard = block_on(ear.wait(Duration::from_secs(20)));
        (heard, begun.elapsed())
    };
    let admit = || {
        block_on(busy.admit(now, [Request::get("http://a.example/")])).expect("it is admitted");
    };
    let (heard, took) = waits(&mut *ear, &admit);
    assert!(heard, "after {took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    let lease = block_on(idle.claim(now, 1)).expect("it is granted").leases.remove(0);
    while block_on(ear.wait(Duration::from_millis(300))) {}
    // A release is news too; a settlement that leaves nothing to claim is not.
    let release = || {
        let release = Settlement::new(lease.id, Outcome::Release);
        block_on(busy.settle(now, vec![release])).expect("it is settled");
    };
    assert!(waits(&mut *ear, &release).0);
    let lease = block_on(busy.claim(now, 1)).expect("it is granted").leases.remove(0);
    while block_on(ear.wait(Duration::from_millis(300))) {}
    block_on(busy.settle(now, vec![Settlement::new(lease.id, Outcome::done())])).expect("it is settled");
    assert!(!block_on(ear.wait(Duration::from_millis(300))), "there is nothing new");
}

#[test]
fn handles_follow_the_servers_clock() {
    let url = fresh_database();
    let now = || {
        let store = PostgresStore::open(&url).expect("it opens");
        block_on(store.now()).expect("the server answers").expect("it has a clock")
    };
    let (first, second) = (now(), now());
    assert!(first <= second && second.since(first) < Duration::from_secs(60), "{first} {second}");
    let year_2026 = Timestamp::from_millis(1_767_225_600_000);
    assert!(first > year_2026, "{first}");
}

#[test]
fn an_unknown_crawl_has_no_news() {
    let store = PostgresStore::open(&fresh_database()).expect("it opens");
    let error = block_on(store.ear("nobody")).err().expect("there is no such crawl");
    assert_eq!(error.kind(), trapline_frontier::ErrorKind::NotFound, "{error}");
}
