//! The memory store passes the suite.

use std::sync::Arc;

use trapline_core::{IdentityKey, Request, Timestamp};
use trapline_frontier::suite::Harness;
use trapline_frontier::{Admission, Frontier, MemoryStore, QueueChange, Steer, Store, store_suite};

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

/// How often a queue was purged is counted in two bytes: when they come round, what was purged stays away.
#[test]
fn a_queue_may_be_purged_for_ever() {
    let builder = Frontier::builder("purged").partitions(1).key(IdentityKey::from_seed(1));
    let now = Timestamp::ZERO;
    pollster::block_on(async {
        let frontier = builder.open(MemoryStore::new(), now).await.unwrap();
        // More than a sweep gets through with one verb.
        let others = (0..9_000).map(|number| Request::get(format!("http://other.example/{number}")));
        frontier.admit(now, others).await.unwrap();
        let url = || [Request::get("http://q.example/1")];
        frontier.admit(now, url()).await.unwrap();
        for _ in 0..65_537 {
            let purge = Steer::Queue("q.example".into(), QueueChange::Purge(None));
            frontier.steer(now, purge).await.unwrap();
        }
        assert_eq!(frontier.admit(now, url()).await.unwrap(), [Admission::Added]);
        let claimed = frontier.claim(now, 10).await.unwrap();
        let urls: Vec<_> = claimed.leases.iter().map(|lease| lease.request.url.as_str()).collect();
        assert_eq!(urls, ["http://other.example/0", "http://q.example/1"]);
    });
}
