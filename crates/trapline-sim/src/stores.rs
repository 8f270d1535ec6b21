//! Where a simulation gets its stores from: the one seam between it and whatever keeps a frontier.

use std::sync::Arc;

use trapline_frontier::script::Reopen;
use trapline_frontier::{MemoryStore, Store, StoreError};

/// A store that was opened, fresh and empty.
pub struct Opened {
    /// The store. The simulation drops it before it is opened again.
    pub store: Arc<dyn Store>,
    /// How it is closed and opened again; None for a store that keeps nothing, which is then never restarted.
    pub reopen: Option<Box<dyn Reopen>>,
}

/// Opens stores, one for each run. Called from several threads at once.
pub trait Stores: Sync {
    /// Opens a store that knows nothing.
    fn open(&self) -> Result<Opened, StoreError>;
}

/// Stores in memory, which keep nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryStores;

impl Stores for MemoryStores {
    fn open(&self) -> Result<Opened, StoreError> {
        Ok(Opened { store: Arc::new(MemoryStore::new()), reopen: None })
    }
}
