//! The disk store passes the suite: in a real folder, where a crash is a killed process, and in simulated files, where it
//! is a machine without power, and where there is no memory for what can be put on disk.

use std::sync::Arc;
use std::time::Duration;

use trapline_frontier::suite::Harness;
use trapline_frontier::{Store, store_suite};
use trapline_stores::disk::Rewrite;
use trapline_stores::{DiskOptions, DiskStore, Durability};

use crate::folder::TestFolder;
use crate::sim_files::SimFiles;

/// Small segments, so that there are several, and snapshots of which no more is read than must be.
pub(crate) const SMALL: DiskOptions = DiskOptions {
    durability: Durability::Batch,
    segment_bytes: 64 << 10,
    snapshot_bytes: u64::MAX,
    quiet: Duration::MAX,
    min_free_disk: 0,
    max_memory: None,
    lazy_bytes: 0,
    background: false,
};

/// The same without any memory: whatever can be put on disk is, after each verb.
pub(crate) const SWAPPING: DiskOptions = DiskOptions { max_memory: Some(0), ..SMALL };

/// Snapshots are read whole.
pub(crate) const EAGER: DiskOptions = DiskOptions { lazy_bytes: u64::MAX, ..SMALL };

#[derive(Default)]
struct Real {
    /// All folders of the case: two stores may be open at once.
    folders: Vec<TestFolder>,
    store: Option<Arc<DiskStore>>,
    reopened: u32,
}

impl Real {
    fn open_latest(&mut self) -> Arc<dyn Store> {
        let path = self.folders.last().expect("one was opened").path();
        let store = Arc::new(DiskStore::open(path, &EAGER).expect("it opens"));
        // What is done from now on comes after a snapshot; what was done before it was opened is in it.
        store.snapshot().expect("a snapshot is taken");
        self.store = Some(Arc::clone(&store));
        store
    }
}

impl Harness for Real {
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        pollster::block_on(future)
    }

    fn open(&mut self) -> Arc<dyn Store> {
        self.folders.push(TestFolder::new());
        self.open_latest()
    }

    fn reopen(&mut self, crash: bool) -> Option<Arc<dyn Store>> {
        let store = self.store.take().expect("one was opened");
        self.reopened += 1;
        if self.reopened % 2 == 1 {
            store.snapshot().expect("a snapshot is taken");
            store.rewrite(Rewrite::All).expect("it is rewritten");
        }
        if crash {
            store.abandon();
        } else {
            store.close().expect("it closes");
        }
        Some(self.open_latest())
    }
}

mod folder {
    use super::*;
    store_suite!(Real::default());
}

#[derive(Default)]
struct Simulated {
    files: SimFiles,
    store: Option<Arc<DiskStore>>,
    crashes: u64,
}

impl Simulated {
    fn open_latest(&mut self) -> Arc<dyn Store> {
        let store = Arc::new(DiskStore::open_on(self.files.clone(), &SWAPPING).expect("it opens"));
        self.store = Some(Arc::clone(&store));
        store
    }
}

impl Harness for Simulated {
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        pollster::block_on(future)
    }

    fn open(&mut self) -> Arc<dyn Store> {
        self.files = SimFiles::default();
        self.open_latest()
    }

    fn reopen(&mut self, crash: bool) -> Option<Arc<dyn Store>> {
        let store = self.store.take().expect("one was opened");
        if crash {
            store.abandon();
            self.crashes += 1;
            self.files.lose_power(self.crashes);
        } else {
            store.close().expect("it closes");
        }
        Some(self.open_latest())
    }
}

mod power_loss {
    use super::*;
    store_suite!(Simulated::default());
}
