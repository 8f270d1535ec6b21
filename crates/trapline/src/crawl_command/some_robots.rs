//! robots.txt, but not of hosts whose operator is ours.

use async_trait::async_trait;
use trapline_core::Timestamp;
use trapline_crawl::ports::{Robots, RobotsWord};
use trapline_fetch::{HostPattern, RobotsCache};
use url::Url;

/// The cache, which is not asked about some hosts.
pub(super) struct SomeRobots {
    pub(super) robots: RobotsCache,
    pub(super) ignoring: Vec<HostPattern>,
}

#[async_trait]
impl Robots for SomeRobots {
    async fn ask(&self, now: Timestamp, url: &Url) -> RobotsWord {
        let host = url.host_str().unwrap_or_default();
        if self.ignoring.iter().any(|pattern| pattern.matches(host)) {
            return RobotsWord { allowed: true, ..RobotsWord::default() };
        }
        self.robots.ask(now, url).await
    }
}
