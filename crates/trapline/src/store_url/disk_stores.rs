//! Disk stores for simulations: one folder for each run, gone with it.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use trapline_frontier::script::Reopen;
use trapline_frontier::{Store, StoreError};
use trapline_sim::{Opened, Stores};
use trapline_stores::{DiskOptions, DiskReopen, Durability};

/// Segments as small as they can be, so that there are several. A simulated crash ends a process and not a machine, so
/// nobody has to wait for the disk.
const OPTIONS: DiskOptions = DiskOptions {
    durability: Durability::Explicit,
    segment_bytes: DiskOptions::SEGMENT_BYTES_MIN,
    snapshot_bytes: u64::MAX,
    quiet: Duration::MAX,
    min_free_disk: 0,
    max_memory: None,
    lazy_bytes: 0,
    background: false,
};

/// Stores in a folder of their own.
pub(super) struct DiskStores {
    folder: PathBuf,
    next: AtomicU64,
}

impl DiskStores {
    /// In a folder that is empty or not there yet.
    pub(super) fn new(path: &str) -> Result<Self, String> {
        let cannot = |why: &dyn std::fmt::Display| {
            format!("cannot simulate in `{path}`: {why}; choose an empty folder or a new one")
        };
        fs::create_dir_all(path).map_err(|error| cannot(&error))?;
        let mut entries = fs::read_dir(path).map_err(|error| cannot(&error))?;
        if entries.next().is_some() {
            return Err(cannot(&"it is not empty"));
        }
        Ok(Self { folder: path.into(), next: AtomicU64::new(0) })
    }
}

impl Stores for DiskStores {
    fn open(&self) -> Result<Opened, StoreError> {
        let path = self.folder.join(format!("run-{}", self.next.fetch_add(1, Ordering::Relaxed)));
        let reopen = DiskReopen::open(&path, OPTIONS)?;
        let store = reopen.store();
        Ok(Opened { store, reopen: Some(Box::new(Run { reopen, path })) })
    }
}

/// A store and the folder that goes with it.
struct Run {
    reopen: DiskReopen,
    path: PathBuf,
}

#[async_trait]
impl Reopen for Run {
    async fn restart(&mut self) -> Result<Arc<dyn Store>, StoreError> {
        self.reopen.restart().await
    }

    async fn crash(&mut self) -> Result<Arc<dyn Store>, StoreError> {
        self.reopen.crash().await
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let removed: io::Result<()> = fs::remove_dir_all(&self.path);
        // The next simulation will say so, should something be left.
        drop(removed);
    }
}
