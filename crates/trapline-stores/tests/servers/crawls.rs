//! Crawls for tests of the PostgreSQL store, and short ways to ask about them.

use std::sync::Arc;
use std::time::Duration;

use trapline_core::{IdentityKey, Request, Timestamp};
use trapline_frontier::{Admission, Frontier, Lease, QueueReport, Settings, Store, UrlState};
use trapline_stores::PostgresStore;

/// A time of a test.
pub(super) fn at_ms(millis: u64) -> Timestamp {
    Timestamp::from_millis(1_000_000 + millis)
}

/// Nobody waits for anybody, unless a test says so.
pub(super) fn no_waits() -> Settings {
    Settings { delay: Duration::ZERO, lease: Duration::from_secs(60), ..Settings::default() }
}

pub(super) fn store(url: &str) -> PostgresStore {
    PostgresStore::open(url).expect("the URL is good")
}

/// Opens a crawl of one partition, made if it is not there.
pub(super) fn crawl(store: &PostgresStore, name: &str, settings: Settings) -> Frontier {
    let store: Arc<dyn Store> = Arc::new(store.clone());
    let opening = Frontier::builder(name)
        .partitions(1)
        .key(IdentityKey::from_seed(7))
        .settings(settings)
        .open_shared(store, at_ms(0));
    pollster::block_on(opening).expect("it opens")
}

/// Admits URLs that are new.
pub(super) fn add(frontier: &Frontier, now: Timestamp, urls: &[impl AsRef<str>]) {
    let requests = urls.iter().map(|url| Request::get(url.as_ref()));
    let answers = pollster::block_on(frontier.admit(now, requests)).expect("it is admitted");
    assert_eq!(answers, vec![Admission::Added; urls.len()]);
}

pub(super) fn claim(frontier: &Frontier, now: Timestamp, urls: usize) -> Vec<Lease> {
    pollster::block_on(frontier.claim(now, urls)).expect("it is claimed").leases
}

pub(super) fn state(frontier: &Frontier, now: Timestamp, url: &str) -> UrlState {
    pollster::block_on(frontier.url(now, url)).expect("it is answered").state
}

pub(super) fn queue(frontier: &Frontier, now: Timestamp, key: &str) -> QueueReport {
    pollster::block_on(frontier.queue(now, key)).expect("it is answered").expect("the queue is known")
}
