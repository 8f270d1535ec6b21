//! Stores that survive their own reopening, because they are never really closed: the memory store, handed out again. They
//! exercise the simulation's restarts and crashes without a disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use async_trait::async_trait;
use trapline_core::{Candidate, Timestamp};
use trapline_frontier::script::Reopen;
use trapline_frontier::{
    Admission, Claimed, MemoryStore, Page, Scan, Settled, Settlement, Stats, Steer, Steered, Store,
    StoreError, Want,
};
use trapline_sim::{Opened, Stores};

pub(crate) struct KeptStores;

struct Kept(Arc<MemoryStore>);

impl Stores for KeptStores {
    fn open(&self) -> Result<Opened, StoreError> {
        let memory = Arc::new(MemoryStore::new());
        let store = Arc::clone(&memory) as Arc<dyn Store>;
        Ok(Opened { store, reopen: Some(Box::new(Kept(memory))) })
    }
}

#[async_trait]
impl Reopen for Kept {
    async fn restart(&mut self) -> Result<Arc<dyn Store>, StoreError> {
        assert_eq!(Arc::strong_count(&self.0), 1, "nobody holds a store that is being closed");
        Ok(Arc::clone(&self.0) as Arc<dyn Store>)
    }

    async fn crash(&mut self) -> Result<Arc<dyn Store>, StoreError> {
        self.restart().await
    }
}

/// Stores that take their time over every call: half of them wait before it is done, half before it is answered. A crash
/// in between finds it undone, or done.
pub(crate) struct HesitantStores {
    /// Of a batch that is waited over, the first half is done before the wait and the rest after it.
    pub(crate) by_halves: bool,
}

struct Hesitant {
    memory: MemoryStore,
    by_halves: bool,
    calls: AtomicU64,
}

impl Stores for HesitantStores {
    fn open(&self) -> Result<Opened, StoreError> {
        let by_halves = self.by_halves;
        let hesitant = Arc::new(Hesitant { memory: MemoryStore::new(), by_halves, calls: AtomicU64::new(0) });
        let store = Arc::clone(&hesitant) as Arc<dyn Store>;
        Ok(Opened { store, reopen: Some(Box::new(HesitantReopen(hesitant))) })
    }
}

struct HesitantReopen(Arc<Hesitant>);

#[async_trait]
impl Reopen for HesitantReopen {
    async fn restart(&mut self) -> Result<Arc<dyn Store>, StoreError> {
        assert_eq!(Arc::strong_count(&self.0), 1, "nobody holds a store that is being closed");
        Ok(Arc::clone(&self.0) as Arc<dyn Store>)
    }

    async fn crash(&mut self) -> Result<Arc<dyn Store>, StoreError> {
        self.restart().await
    }
}

/// Waits until it is asked again.
async fn wait() {
    let mut is_asked_again = false;
    std::future::poll_fn(|context| {
        context.waker().wake_by_ref();
        if std::mem::replace(&mut is_asked_again, true) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

impl Hesitant {
    /// Every other call waits before it is done, the others after.
    async fn before(&self) -> bool {
        let is_before = self.calls.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
        if is_before {
            wait().await;
        }
        is_before
    }
}

#[async_trait]
impl Store for Hesitant {
    async fn admit(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: &[Candidate],
    ) -> Result<Vec<Admission>, StoreError> {
        if self.by_halves {
            let (first, rest) = batch.split_at(batch.len() / 2);
            let mut answers = self.memory.admit(crawl, now, first).await?;
            wait().await;
            answers.extend(self.memory.admit(crawl, now, rest).await?);
            return Ok(answers);
        }
        let waited = self.before().await;
        let answers = self.memory.admit(crawl, now, batch).await;
        if !waited {
            wait().await;
        }
        answers
    }

    async fn claim(&self, crawl: Option<&str>, now: Timestamp, want: &Want) -> Result<Claimed, StoreError> {
        let waited = self.before().await;
        let claimed = self.memory.claim(crawl, now, want).await;
        if !waited {
            wait().await;
        }
        claimed
    }

    async fn settle(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: Vec<Settlement>,
    ) -> Result<Vec<Settled>, StoreError> {
        let waited = self.before().await;
        let settled = self.memory.settle(crawl, now, batch).await;
        if !waited {
            wait().await;
        }
        settled
    }

    async fn steer(&self, crawl: &str, now: Timestamp, steer: Steer) -> Result<Steered, StoreError> {
        let waited = self.before().await;
        let steered = self.memory.steer(crawl, now, steer).await;
        if !waited {
            wait().await;
        }
        steered
    }

    async fn scan(&self, crawl: &str, now: Timestamp, scan: &Scan) -> Result<Page, StoreError> {
        self.memory.scan(crawl, now, scan).await
    }

    async fn stats(&self, crawl: &str, now: Timestamp) -> Result<Stats, StoreError> {
        self.memory.stats(crawl, now).await
    }
}
