//! The PostgreSQL store passes the suite, on a real server.

use std::sync::Arc;

use trapline_frontier::suite::Harness;
use trapline_frontier::{Store, store_suite};
use trapline_stores::PostgresStore;

use super::fresh_database;

#[derive(Default)]
struct Postgres {
    url: String,
}

impl Harness for Postgres {
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        pollster::block_on(future)
    }

    fn open(&mut self) -> Arc<dyn Store> {
        self.url = fresh_database();
        Arc::new(PostgresStore::open(&self.url).expect("it opens"))
    }

    /// Whether its process was killed or not makes no difference to the server.
    fn reopen(&mut self, _crash: bool) -> Option<Arc<dyn Store>> {
        Some(Arc::new(PostgresStore::open(&self.url).expect("it opens")))
    }
}

store_suite!(Postgres::default());
