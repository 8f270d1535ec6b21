//! A store that survives its own reopening, because it is never really closed: the memory store, handed out again.
//!
//! Not a store for use. It runs what the memory store skips, so that the suite's questions about durability are asked
//! of the reference before they are asked of anybody else.

use std::sync::Arc;

use async_trait::async_trait;
use trapline_core::{Candidate, Timestamp};
use trapline_frontier::suite::Harness;
use trapline_frontier::{
    Admission, Claimed, MemoryStore, Page, Recovered, Scan, Settled, Settlement, Stats, Steer, Steered,
    Store, StoreError, UrlState, Want, store_suite,
};

#[derive(Clone, Default)]
struct Kept {
    memory: Arc<MemoryStore>,
    /// What the suite's crawl had when the store was opened again.
    recovered: Option<Recovered>,
}

impl Harness for Kept {
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        pollster::block_on(future)
    }

    fn open(&mut self) -> Arc<dyn Store> {
        *self = Self::default();
        Arc::new(self.clone())
    }

    fn reopen(&mut self, _crash: bool) -> Option<Arc<dyn Store>> {
        self.recovered = Some(Recovered::default());
        if let Ok(stats) = pollster::block_on(self.memory.stats("suite", Timestamp::ZERO)) {
            let (pending, leased) = (stats.urls_in(UrlState::Pending), stats.urls_in(UrlState::Leased));
            let (seen, dead) = (stats.urls.iter().sum(), stats.urls_in(UrlState::Dead));
            self.recovered = Some(Recovered { pending, leased, seen, dead, ..Recovered::default() });
        }
        Some(Arc::new(self.clone()))
    }
}

#[async_trait]
impl Store for Kept {
    async fn admit(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: &[Candidate],
    ) -> Result<Vec<Admission>, StoreError> {
        self.memory.admit(crawl, now, batch).await
    }

    async fn claim(&self, crawl: Option<&str>, now: Timestamp, want: &Want) -> Result<Claimed, StoreError> {
        self.memory.claim(crawl, now, want).await
    }

    async fn settle(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: Vec<Settlement>,
    ) -> Result<Vec<Settled>, StoreError> {
        self.memory.settle(crawl, now, batch).await
    }

    async fn steer(&self, crawl: &str, now: Timestamp, steer: Steer) -> Result<Steered, StoreError> {
        self.memory.steer(crawl, now, steer).await
    }

    async fn scan(&self, crawl: &str, now: Timestamp, scan: &Scan) -> Result<Page, StoreError> {
        self.memory.scan(crawl, now, scan).await
    }

    async fn stats(&self, crawl: &str, now: Timestamp) -> Result<Stats, StoreError> {
        let stats = self.memory.stats(crawl, now).await?;
        Ok(Stats { recovered: self.recovered, ..stats })
    }
}

store_suite!(Kept::default());
