//! A disk store that takes a snapshot now and then while it does a verb: once the snapshot has begun, and before it is
//! written.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use trapline_core::{Candidate, Timestamp};
use trapline_frontier::{
    Admission, Claimed, Page, Scan, Settled, Settlement, Stats, Steer, Steered, Store, StoreError, Want,
};
use trapline_stores::DiskStore;

use crate::sim_files::SimFiles;

/// One verb in so many is done during a snapshot.
const EVERY: u64 = 13;

pub(crate) struct Overlapping {
    store: Arc<DiskStore>,
    files: SimFiles,
    verbs: AtomicU64,
}

impl Overlapping {
    pub(crate) fn new(store: &Arc<DiskStore>, files: &SimFiles) -> Self {
        Self { store: Arc::clone(store), files: files.clone(), verbs: AtomicU64::new(0) }
    }

    fn act<T: Send + 'static>(&self, verb: impl Fn(&DiskStore) -> T + Send + Sync + 'static) -> T {
        if !self.verbs.fetch_add(1, Ordering::Relaxed).is_multiple_of(EVERY) {
            return verb(&self.store);
        }
        let (verb, answer) = (Arc::new(verb), Arc::new(Mutex::new(None)));
        let (doing, answering, store) = (Arc::clone(&verb), Arc::clone(&answer), Arc::clone(&self.store));
        self.files.set_meanwhile(Some(Arc::new(move || {
            answering.lock().expect("no verb panics").get_or_insert_with(|| doing(&store));
        })));
        // If it fails, nothing is lost by that.
        let _ = self.store.snapshot();
        self.files.set_meanwhile(None);
        let answer = answer.lock().expect("no verb panics").take();
        // Nothing has happened since the latest, so none was begun.
        answer.unwrap_or_else(|| verb(&self.store))
    }
}

#[async_trait]
impl Store for Overlapping {
    async fn admit(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: &[Candidate],
    ) -> Result<Vec<Admission>, StoreError> {
        let (crawl, batch) = (crawl.to_owned(), batch.to_vec());
        self.act(move |store| pollster::block_on(store.admit(&crawl, now, &batch)))
    }

    async fn claim(&self, crawl: Option<&str>, now: Timestamp, want: &Want) -> Result<Claimed, StoreError> {
        let (crawl, want) = (crawl.map(str::to_owned), want.clone());
        self.act(move |store| pollster::block_on(store.claim(crawl.as_deref(), now, &want)))
    }

    async fn settle(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: Vec<Settlement>,
    ) -> Result<Vec<Settled>, StoreError> {
        let crawl = crawl.to_owned();
        self.act(move |store| pollster::block_on(store.settle(&crawl, now, batch.clone())))
    }

    async fn steer(&self, crawl: &str, now: Timestamp, steer: Steer) -> Result<Steered, StoreError> {
        let crawl = crawl.to_owned();
        self.act(move |store| pollster::block_on(store.steer(&crawl, now, steer.clone())))
    }

    async fn scan(&self, crawl: &str, now: Timestamp, scan: &Scan) -> Result<Page, StoreError> {
        self.store.scan(crawl, now, scan).await
    }

    async fn stats(&self, crawl: &str, now: Timestamp) -> Result<Stats, StoreError> {
        self.store.stats(crawl, now).await
    }

    async fn flush(&self) -> Result<(), StoreError> {
        self.store.flush().await
    }
}
