//! A store that is away for a while: nothing is lost, and nobody is deaf.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use trapline_core::{Candidate, Timestamp};
use trapline_crawl::CrawlEnd;
use trapline_frontier::{
    Admission, Claimed, CrawlState, ErrorKind, MemoryStore, Page, Scan, Settled, Settlement, Stats, Steer,
    Steered, Store, StoreError, Want,
};

use crate::sites::{BEGIN, Sites, page};

const SECONDS: fn(u64) -> Duration = Duration::from_secs;

/// How a store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    There,
    /// It says that it is not there.
    Away,
    /// It says nothing.
    Silent,
    /// One call in three fails.
    Flaky,
    /// It is there, and cannot be steered.
    Stubborn,
}

/// A store that may be away.
struct Fickle {
    inner: MemoryStore,
    manner: watch::Sender<Manner>,
    calls: AtomicU64,
}

impl Fickle {
    fn new(manner: Manner) -> Arc<Self> {
        Arc::new(Self {
            inner: MemoryStore::new(),
            manner: watch::Sender::new(manner),
            calls: AtomicU64::new(0),
        })
    }

    fn is(&self, manner: Manner) {
        self.manner.send_replace(manner);
    }

    async fn ask(&self) -> Result<(), StoreError> {
        let mut manner = self.manner.subscribe();
        let there = manner.wait_for(|manner| *manner != Manner::Silent).await;
        let fails = match *there.expect("the sender is ours") {
            Manner::Away => true,
            Manner::Flaky => self.calls.fetch_add(1, Ordering::Relaxed) % 3 == 2,
            Manner::There | Manner::Silent | Manner::Stubborn => false,
        };
        if fails { Err(StoreError::new(ErrorKind::Unavailable, "it is not there")) } else { Ok(()) }
    }
}

#[async_trait]
impl Store for Fickle {
    async fn admit(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: &[Candidate],
    ) -> Result<Vec<Admission>, StoreError> {
        self.ask().await?;
        self.inner.admit(crawl, now, batch).await
    }

    async fn claim(&self, crawl: Option<&str>, now: Timestamp, want: &Want) -> Result<Claimed, StoreError> {
        self.ask().await?;
        self.inner.claim(crawl, now, want).await
    }

    async fn settle(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: Vec<Settlement>,
    ) -> Result<Vec<Settled>, StoreError> {
        self.ask().await?;
        self.inner.settle(crawl, now, batch).await
    }

    async fn steer(&self, crawl: &str, now: Timestamp, steer: Steer) -> Result<Steered, StoreError> {
        self.ask().await?;
        if *self.manner.borrow() == Manner::Stubborn {
            return Err(StoreError::new(ErrorKind::Invalid, "it cannot be steered"));
        }
        self.inner.steer(crawl, now, steer).await
    }

    async fn scan(&self, crawl: &str, now: Timestamp, scan: &Scan) -> Result<Page, StoreError> {
        self.ask().await?;
        self.inner.scan(crawl, now, scan).await
    }

    async fn stats(&self, crawl: &str, now: Timestamp) -> Result<Stats, StoreError> {
        self.ask().await?;
        self.inner.stats(crawl, now).await
    }

    async fn now(&self) -> Result<Option<Timestamp>, StoreError> {
        self.ask().await.map(|()| None)
    }

    async fn flush(&self) -> Result<(), StoreError> {
        self.ask().await
    }
}

/// A host with pages that take 2 s each, in a store that is there at first.
fn slow() -> (Sites, Arc<Fickle>) {
    let store = Fickle::new(Manner::There);
    let links = ["/1", "/2", "/3", "/4"];
    let sites = Sites::new().put("http://a.test/", [page(&links).taking(SECONDS(2))]);
    let mut sites = links.iter().fold(sites, |sites, path| {
        sites.put(&format!("http://a.test{path}"), [page(&[]).taking(SECONDS(2))])
    });
    sites.store = Arc::clone(&store) as Arc<dyn Store>;
    (sites, store)
}

#[test]
fn who_is_told_to_stop_now_stops_now_although_the_store_is_away() {
    for manner in [Manner::Away, Manner::Silent] {
        let (sites, store) = slow();
        let (watch, fickle) = (sites.clone(), Arc::clone(&store));
        let end = sites.crawl_while(&["http://a.test/"], |handle, _| async move {
            watch.sleep(SECONDS(4)).await;
            fickle.is(manner);
            watch.sleep(SECONDS(60)).await;
            // The first time politely, which does not help while there is no store to save to.
            handle.stop().await;
            watch.sleep(SECONDS(60)).await;
            handle.abort().await;
        });
        assert_eq!(end, CrawlEnd::Stopped);
        let took = sites.world.now().since(BEGIN);
        assert!((SECONDS(124)..SECONDS(125)).contains(&took), "{manner:?}: {took:?}");
        assert_eq!(sites.seen().len(), 2, "nothing was begun meanwhile");
        // What was in flight comes back, and nothing is lost.
        store.is(Manner::There);
        assert_eq!(sites.crawl(&[]), CrawlEnd::Exhausted);
        assert_eq!(sites.pages().iter().filter(|page| page.outcome == "done").count(), 5, "{manner:?}");
    }
}

#[test]
fn it_is_told_since_when_the_store_is_away_until_it_is_back() {
    for (manner, why) in
        [(Manner::Away, "it is not there"), (Manner::Silent, "no answer to the attempt to ask for the time")]
    {
        let (sites, store) = slow();
        let watch = sites.clone();
        let end = sites.crawl_while(&["http://a.test/"], |handle, _| async move {
            watch.sleep(SECONDS(4)).await;
            assert_eq!(handle.tally().trouble, None);
            store.is(manner);
            watch.sleep(SECONDS(100)).await;
            let trouble = handle.tally().trouble.expect("the store is away");
            let since = trouble.since.since(BEGIN);
            assert!((SECONDS(4)..SECONDS(9)).contains(&since), "{manner:?}: {since:?}");
            assert_eq!(trouble.why, why);
            store.is(Manner::There);
            watch.sleep(SECONDS(11)).await;
            assert_eq!(handle.tally().trouble, None);
        });
        assert_eq!(end, CrawlEnd::Exhausted);
    }
}

#[test]
fn a_stop_while_the_store_is_away_saves_what_landed_once_it_is_back() {
    let (sites, store) = slow();
    let watch = sites.clone();
    let end = sites.crawl_while(&["http://a.test/"], |handle, _| async move {
        watch.sleep(SECONDS(4)).await;
        store.is(Manner::Away);
        handle.stop().await;
        watch.sleep(SECONDS(20)).await;
        store.is(Manner::There);
    });
    assert_eq!(end, CrawlEnd::Stopped);
    assert_eq!((sites.seen().len(), sites.pages().len()), (2, 2));
    assert_eq!(sites.crawl(&[]), CrawlEnd::Exhausted);
    assert_eq!(sites.seen().len(), 5);
}

#[test]
fn a_pause_while_the_store_is_away_holds_at_once_and_is_acknowledged_later() {
    let (sites, store) = slow();
    let watch = sites.clone();
    let end = sites.crawl_while(&["http://a.test/"], |handle, frontier| async move {
        watch.sleep(SECONDS(4)).await;
        store.is(Manner::Away);
        let back = async {
            watch.sleep(SECONDS(20)).await;
            assert_eq!(watch.seen().len(), 2);
            store.is(Manner::There);
        };
        let (paused, ()) = tokio::join!(handle.pause(), back);
        paused.unwrap().unwrap();
        let now = watch.world.now();
        assert_eq!(frontier.report(now).await.unwrap().state, CrawlState::Paused);
        watch.sleep(SECONDS(100)).await;
        assert_eq!(watch.seen().len(), 2);
        handle.resume().await.unwrap().unwrap();
    });
    assert_eq!(end, CrawlEnd::Exhausted);
    assert_eq!(sites.seen().len(), 5);
}

#[test]
fn a_store_that_fails_now_and_then_costs_time_and_nothing_else() {
    let (sites, store) = slow();
    let fickle = Arc::clone(&store);
    let end = sites.crawl_while(&["http://a.test/"], |_, _| {
        fickle.is(Manner::Flaky);
        async {}
    });
    assert_eq!(end, CrawlEnd::Exhausted);
    assert_eq!((sites.seen().len(), sites.pages().len()), (5, 5));
}

#[test]
fn a_crawl_that_cannot_be_resumed_stays_paused() {
    let (sites, store) = slow();
    let watch = sites.clone();
    let end = sites.crawl_while(&["http://a.test/"], |handle, _| async move {
        watch.sleep(SECONDS(4)).await;
        let resume = async {
            watch.sleep(Duration::from_millis(100)).await;
            store.is(Manner::Stubborn);
            let resumed = handle.resume().await;
            store.is(Manner::There);
            resumed
        };
        // While a page is in flight.
        let (paused, resumed) = tokio::join!(handle.pause(), resume);
        assert_eq!(resumed, Some(Err("it cannot be steered".to_owned())));
        assert_eq!(paused, Some(Ok(())));
        watch.sleep(SECONDS(100)).await;
        assert_eq!(watch.seen().len(), 2);
        handle.resume().await.unwrap().unwrap();
    });
    assert_eq!(end, CrawlEnd::Exhausted);
    assert_eq!(sites.seen().len(), 5);
}
