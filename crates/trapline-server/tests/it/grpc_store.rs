//! A store behind the network passes the suite, with a store behind the service that keeps everything.

use std::sync::Arc;
use std::time::Duration;

use trapline_frontier::suite::Harness;
use trapline_frontier::{Store, store_suite};
use trapline_stores::{DiskOptions, DiskStore, Durability};

use crate::folder::TestFolder;
use crate::service::Service;

const SMALL: DiskOptions = DiskOptions {
    durability: Durability::Batch,
    segment_bytes: 64 << 10,
    snapshot_bytes: u64::MAX,
    quiet: Duration::MAX,
    min_free_disk: 0,
    max_memory: None,
    lazy_bytes: 0,
    background: false,
};

#[derive(Default)]
struct Served {
    /// All of the case: two stores may be open at once.
    folders: Vec<TestFolder>,
    services: Vec<(Service, Arc<DiskStore>)>,
}

impl Served {
    fn open_latest(&mut self) -> Arc<dyn Store> {
        let path = self.folders.last().expect("one was opened").path();
        let store = Arc::new(DiskStore::open(path, &SMALL).expect("it opens"));
        let service = Service::start(Arc::clone(&store) as Arc<dyn Store>);
        let connected = service.connect();
        self.services.push((service, store));
        Arc::new(connected)
    }
}

impl Harness for Served {
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        // As a program does that has no runtime.
        pollster::block_on(future)
    }

    fn open(&mut self) -> Arc<dyn Store> {
        self.folders.push(TestFolder::new());
        self.open_latest()
    }

    fn reopen(&mut self, crash: bool) -> Option<Arc<dyn Store>> {
        let (mut service, store) = self.services.pop().expect("one was opened");
        service.stop();
        if crash {
            store.abandon();
        } else {
            store.close().expect("it closes");
        }
        drop(store);
        Some(self.open_latest())
    }
}

store_suite!(Served::default());
