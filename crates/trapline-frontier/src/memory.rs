//! The memory store: the engine behind a lock. The reference for every other store, and the one for crawls that
//! fit in memory and may be forgotten.

use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;
use trapline_core::{Candidate, Timestamp};

use crate::engine::Engine;
use crate::report::{Page, Scan, Stats};
use crate::store::{ErrorKind, Store, StoreError};
use crate::verbs::{Admission, Claimed, Settled, Settlement, Steer, Steered, Want};

/// A frontier in memory. Gone with the process.
#[derive(Debug, Default)]
pub struct MemoryStore {
    /// One lock around all crawls: a verb holds it for its batch, microseconds a URL, and never while waiting.
    engine: Mutex<Engine>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store that does one thing wrong: see [`Fault`](crate::Fault).
    #[cfg(feature = "planted")]
    pub fn faulty(fault: crate::Fault) -> Self {
        Self { engine: Mutex::new(Engine::planted(crate::planted::Planted::with(fault))) }
    }

    fn engine(&self) -> Result<MutexGuard<'_, Engine>, StoreError> {
        self.engine.lock().map_err(|_| {
            StoreError::new(
                ErrorKind::Corrupt,
                "memory store: an earlier verb failed half-way, so what is left cannot be trusted; this is a bug in \
                 Trapline, please report it, and begin anew",
            )
        })
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn admit(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: &[Candidate],
    ) -> Result<Vec<Admission>, StoreError> {
        self.engine()?.admit(crawl, now, batch)
    }

    async fn claim(&self, crawl: Option<&str>, now: Timestamp, want: &Want) -> Result<Claimed, StoreError> {
        self.engine()?.claim(crawl, now, want)
    }

    async fn settle(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: Vec<Settlement>,
    ) -> Result<Vec<Settled>, StoreError> {
        self.engine()?.settle(crawl, now, &batch)
    }

    async fn steer(&self, crawl: &str, now: Timestamp, steer: Steer) -> Result<Steered, StoreError> {
        self.engine()?.steer(crawl, now, steer)
    }

    async fn scan(&self, crawl: &str, now: Timestamp, scan: &Scan) -> Result<Page, StoreError> {
        self.engine()?.scan(crawl, now, scan)
    }

    async fn stats(&self, crawl: &str, now: Timestamp) -> Result<Stats, StoreError> {
        self.engine()?.stats(crawl, now)
    }
}
