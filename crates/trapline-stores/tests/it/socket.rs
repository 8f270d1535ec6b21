//! A store through the socket of its folder: it passes the suite, goes from owner to owner, and is not harmed by what
//! strangers send.

mod hostile;
mod owners;

use std::sync::Arc;

use trapline_core::Timestamp;
use trapline_frontier::suite::Harness;
use trapline_frontier::{Frontier, Store, store_suite};
use trapline_stores::{DiskStore, SocketStore};

use crate::disk::SMALL;
use crate::folder::TestFolder;

const NOW: Timestamp = Timestamp::ZERO;

fn serve(folder: &TestFolder) -> Arc<DiskStore> {
    DiskStore::serve(folder.path(), &SMALL).expect("it opens")
}

fn connect(folder: &TestFolder) -> SocketStore {
    SocketStore::connect(folder.path()).expect("it is served")
}

fn crawl(store: impl Store) -> Frontier {
    pollster::block_on(Frontier::builder("c").open(store, NOW)).expect("a crawl can be opened")
}

#[derive(Default)]
struct Served {
    /// All folders of the case: two stores may be open at once.
    folders: Vec<TestFolder>,
    /// All owners, the latest last.
    owners: Vec<Arc<DiskStore>>,
}

impl Served {
    fn open_latest(&mut self) -> Arc<dyn Store> {
        let folder = self.folders.last().expect("one was opened");
        self.owners.push(serve(folder));
        Arc::new(connect(folder))
    }
}

impl Harness for Served {
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        pollster::block_on(future)
    }

    fn open(&mut self) -> Arc<dyn Store> {
        self.folders.push(TestFolder::new());
        self.open_latest()
    }

    fn reopen(&mut self, crash: bool) -> Option<Arc<dyn Store>> {
        let owner = self.owners.pop().expect("one was opened");
        if crash {
            owner.abandon();
        } else {
            owner.close().expect("it closes");
        }
        Some(self.open_latest())
    }
}

mod suite {
    use super::*;
    store_suite!(Served::default());
}
