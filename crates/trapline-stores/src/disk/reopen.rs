//! How a disk store is closed and opened again, for scripts and simulations that do so.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use trapline_frontier::script::Reopen;
use trapline_frontier::{Store, StoreError};

use super::{DiskOptions, DiskStore};

/// Holds a disk store, to close it and open it again.
pub struct DiskReopen {
    path: PathBuf,
    options: DiskOptions,
    store: Arc<DiskStore>,
}

impl DiskReopen {
    /// Opens a store in a folder.
    ///
    /// # Errors
    /// As [`DiskStore::open`].
    pub fn open(path: impl Into<PathBuf>, options: DiskOptions) -> Result<Self, StoreError> {
        let path = path.into();
        let store = Arc::new(DiskStore::open(&path, &options)?);
        Ok(Self { path, options, store })
    }

    /// The store as it is open now.
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store) as Arc<dyn Store>
    }

    fn again(&mut self) -> Result<Arc<dyn Store>, StoreError> {
        self.store = Arc::new(DiskStore::open(&self.path, &self.options)?);
        Ok(self.store())
    }
}

#[async_trait]
impl Reopen for DiskReopen {
    async fn restart(&mut self) -> Result<Arc<dyn Store>, StoreError> {
        self.store.close()?;
        self.again()
    }

    async fn crash(&mut self) -> Result<Arc<dyn Store>, StoreError> {
        self.store.abandon();
        self.again()
    }
}
