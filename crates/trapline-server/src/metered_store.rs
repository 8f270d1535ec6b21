//! A store whose verbs are counted and timed.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use trapline_core::{Candidate, Timestamp};
use trapline_frontier::{
    Admission, Claimed, Ear, Page, Scan, Settled, Settlement, Stats, Steer, Steered, Store, StoreError, Want,
};

use crate::metrics::{Metrics, Verb};

/// Another store, and what is counted of it.
pub(crate) struct MeteredStore {
    inner: Arc<dyn Store>,
    metrics: Arc<Metrics>,
}

impl MeteredStore {
    pub(crate) fn new(inner: Arc<dyn Store>, metrics: Arc<Metrics>) -> Self {
        Self { inner, metrics }
    }

    async fn timed<T>(
        &self,
        verb: Verb,
        done: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let begun = Instant::now();
        let result = done.await;
        self.metrics.verb(verb, begun.elapsed(), result.as_ref().err().map(StoreError::kind));
        result
    }
}

#[async_trait]
impl Store for MeteredStore {
    async fn admit(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: &[Candidate],
    ) -> Result<Vec<Admission>, StoreError> {
        let answers = self.timed(Verb::Admit, self.inner.admit(crawl, now, batch)).await?;
        self.metrics.admissions(&answers);
        Ok(answers)
    }

    async fn claim(&self, crawl: Option<&str>, now: Timestamp, want: &Want) -> Result<Claimed, StoreError> {
        let claimed = self.timed(Verb::Claim, self.inner.claim(crawl, now, want)).await?;
        self.metrics.leases(claimed.leases.len());
        Ok(claimed)
    }

    async fn settle(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: Vec<Settlement>,
    ) -> Result<Vec<Settled>, StoreError> {
        let settled = self.timed(Verb::Settle, self.inner.settle(crawl, now, batch)).await?;
        for one in &settled {
            self.metrics.settlement(one.answer);
            self.metrics.admissions(&one.links);
        }
        Ok(settled)
    }

    async fn steer(&self, crawl: &str, now: Timestamp, steer: Steer) -> Result<Steered, StoreError> {
        self.timed(Verb::Steer, self.inner.steer(crawl, now, steer)).await
    }

    async fn scan(&self, crawl: &str, now: Timestamp, scan: &Scan) -> Result<Page, StoreError> {
        self.timed(Verb::Scan, self.inner.scan(crawl, now, scan)).await
    }

    async fn stats(&self, crawl: &str, now: Timestamp) -> Result<Stats, StoreError> {
        self.timed(Verb::Stats, self.inner.stats(crawl, now)).await
    }

    async fn now(&self) -> Result<Option<Timestamp>, StoreError> {
        self.timed(Verb::Now, self.inner.now()).await
    }

    async fn ear(&self, crawl: &str) -> Result<Option<Box<dyn Ear>>, StoreError> {
        self.timed(Verb::Ear, self.inner.ear(crawl)).await
    }

    async fn flush(&self) -> Result<(), StoreError> {
        self.timed(Verb::Flush, self.inner.flush()).await
    }
}
