//! A store that survives its own reopening, because it is never really closed: the memory store, handed out again. It
//! exercises the simulation's restarts until there is a store that keeps something.

use std::sync::Arc;

use async_trait::async_trait;
use trapline_frontier::script::Reopen;
use trapline_frontier::{MemoryStore, Store, StoreError};
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
