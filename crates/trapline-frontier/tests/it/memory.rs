//! The memory store passes the suite.

use std::sync::Arc;

use trapline_frontier::suite::Harness;
use trapline_frontier::{MemoryStore, Store, store_suite};

struct Memory;

impl Harness for Memory {
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        pollster::block_on(future)
    }

    fn open(&mut self) -> Arc<dyn Store> {
        Arc::new(MemoryStore::new())
    }

    fn reopen(&mut self, _crash: bool) -> Option<Arc<dyn Store>> {
        None
    }
}

store_suite!(Memory);
