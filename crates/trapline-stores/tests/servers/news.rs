//! Whoever waits for something to claim is told of what others bring, and all follow the server's clock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pollster::block_on;
use trapline_core::{Request, Timestamp};
use trapline_frontier::{Frontier, Outcome, Settings, Settlement, Store, Want};
use trapline_stores::PostgresStore;

use super::fresh_database;

fn crawl(url: &str) -> Frontier {
    let store = Arc::new(PostgresStore::open(url).expect("it opens"));
    let settings = Settings { delay: Duration::ZERO, ..Settings::default() };
    block_on(Frontier::builder("crawl").settings(settings).open_shared(store, Timestamp::ZERO))
        .expect("it opens")
}

/// Waits until somebody listens, and until what that is worth is known: before that, waits end early.
fn until_listening(ear: &mut dyn trapline_frontier::Ear) {
    loop {
        let begun = Instant::now();
        let heard = block_on(ear.wait(Duration::from_millis(300)));
        if !heard && begun.elapsed() >= Duration::from_millis(300) {
            return;
        }
    }
}

#[test]
fn one_who_waits_hears_of_what_another_brings() {
    let url = fresh_database();
    let (idle, busy) = (crawl(&url), crawl(&url));
    let now = Timestamp::ZERO;
    let mut ear = block_on(idle.ear()).expect("it listens").expect("it has ears");
    until_listening(&mut *ear);
    let waits = |ear: &mut dyn trapline_frontier::Ear, bring: &dyn Fn()| {
        bring();
        let begun = Instant::now();
        let mut heard = false;
        while !heard && begun.elapsed() < Duration::from_secs(20) {
            heard = block_on(ear.wait(Duration::from_secs(20)));
        }
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

/// A crawl in the server's time, and what it says.
fn polite(url: &str) -> (Frontier, impl Fn() -> Timestamp) {
    let store = PostgresStore::open(url).expect("it opens");
    let settings = Settings { delay: Duration::from_secs(1), ..Settings::default() };
    let opening =
        Frontier::builder("crawl").settings(settings).open_shared(Arc::new(store.clone()), Timestamp::ZERO);
    (block_on(opening).expect("it opens"), move || {
        block_on(store.now()).expect("the server answers").expect("it has a clock")
    })
}

/// Waits and claims as a worker does, and answers how long it took until something was granted.
fn until_granted(frontier: &Frontier, now: &impl Fn() -> Timestamp, meanwhile: impl FnOnce()) -> Duration {
    let mut ear = block_on(frontier.ear()).expect("it listens").expect("it has ears");
    until_listening(&mut *ear);
    assert!(block_on(frontier.claim(now(), 1)).expect("it is asked").leases.is_empty());
    meanwhile();
    let begun = Instant::now();
    while block_on(frontier.claim(now(), 1)).expect("it is asked").leases.is_empty() {
        block_on(ear.wait(Duration::from_secs(20)));
    }
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(10), "nobody was told for {took:?}");
    took
}

#[test]
fn one_who_waits_hears_of_what_will_be_there_later() {
    let url = fresh_database();
    let ((idle, now), (busy, _)) = (polite(&url), polite(&url));
    let pages = [1, 2, 3].map(|page| Request::get(format!("http://a.example/{page}")));
    block_on(busy.admit(now(), pages)).expect("they are admitted");
    let claim = |want| block_on(busy.claim(now(), want)).expect("it is granted").leases.remove(0);
    let settle = |settlement| {
        block_on(busy.settle(now(), vec![settlement])).expect("it is settled");
    };
    // Its delay has to pass first.
    let lease = claim(Want::urls(1));
    let took = until_granted(&idle, &now, || settle(Settlement::new(lease.id, Outcome::done())));
    assert!(took >= Duration::from_millis(900), "{took:?}");
    // Who gets a lease now may not settle it.
    let pages = [1, 2].map(|page| Request::get(format!("http://b.example/{page}")));
    block_on(busy.admit(now(), pages)).expect("they are admitted");
    let short = || drop(claim(Want { lease: Some(Duration::from_secs(1)), ..Want::urls(1) }));
    let mut ear = block_on(idle.ear()).expect("it listens").expect("it has ears");
    until_listening(&mut *ear);
    short();
    until_granted(&idle, &now, || {});
}

/// It has to do with one, which it has already.
#[test]
fn one_connection_is_enough_to_tell() {
    let url = fresh_database() + "?pool=1";
    let frontier = crawl(&url);
    let begun = Instant::now();
    block_on(frontier.admit(Timestamp::ZERO, [Request::get("http://a.example/")])).expect("it is admitted");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
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

/// The worker of the manual's page for Rust: it knows no time but the store's, and waits by its ear.
#[test]
fn a_worker_follows_the_stores_clock() {
    let url = fresh_database();
    let (worker, other) = (crawl(&url), crawl(&url));
    let store = PostgresStore::open(&url).expect("it opens");
    let mut done = Vec::new();
    std::thread::scope(|scope| {
        let working = scope.spawn(|| {
            block_on(async {
                let mut done = Vec::new();
                let mut ear = worker.ear().await?.expect("it has ears");
                while done.len() < 2 {
                    let now = worker.now().await?.expect("it has a clock");
                    let claimed = worker.claim(now, 10).await?;
                    for lease in &claimed.leases {
                        let now = worker.now().await?.expect("it has a clock");
                        worker.settle(now, vec![Settlement::new(lease.id, Outcome::done())]).await?;
                        done.push((lease.request.url.clone(), lease.deadline));
                    }
                    if claimed.leases.is_empty() {
                        ear.wait(claimed.next.map_or(Duration::from_secs(5), |next| next.since(now))).await;
                    }
                }
                Ok::<_, trapline_frontier::StoreError>(done)
            })
        });
        for page in ["http://a.example/", "http://b.example/"] {
            let now = block_on(other.now()).expect("the server answers").expect("it has a clock");
            block_on(other.admit(now, [Request::get(page)])).expect("it is admitted");
        }
        done = working.join().expect("it works").expect("nothing fails");
    });
    assert_eq!(
        done.iter().map(|(url, _)| &**url).collect::<Vec<_>>(),
        ["http://a.example/", "http://b.example/"]
    );
    let now = block_on(store.now()).expect("the server answers").expect("it has a clock");
    let lease = Settings::default().lease;
    for (_, deadline) in done {
        assert!(
            deadline > now && deadline <= now + lease,
            "a lease counts from the server's time: {deadline}"
        );
    }
    let none = block_on(async {
        let store = trapline_frontier::MemoryStore::new();
        Frontier::builder("c").open(store, Timestamp::ZERO).await?.now().await
    });
    assert_eq!(none.expect("it answers"), None, "in memory the time is the caller's");
}

#[test]
fn an_unknown_crawl_has_no_news() {
    let store = PostgresStore::open(&fresh_database()).expect("it opens");
    let error = block_on(store.ear("nobody")).err().expect("there is no such crawl");
    assert_eq!(error.kind(), trapline_frontier::ErrorKind::NotFound, "{error}");
}
