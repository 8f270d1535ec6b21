//! The world as it is: the machine's clock, Tokio's tasks, and chance.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use trapline_core::Timestamp;
use trapline_crawl::ports::World;

use crate::moment;

/// The world of a Tokio runtime.
pub(super) struct RealWorld(pub(super) Handle);

impl World for RealWorld {
    fn now(&self) -> Timestamp {
        moment::now()
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'static, ()> {
        tokio::time::sleep(at.since(moment::now())).boxed()
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        drop(self.0.spawn(task));
    }

    fn random(&self) -> u64 {
        // Without a source of chance there is no jitter, which is no reason to stop.
        getrandom::u64().unwrap_or_default()
    }
}
