//! robots.txt, but not of hosts whose operator is ours.

use async_trait::async_trait;
use trapline_core::Timestamp;
use trapline_crawl::ports::{Robots, RobotsWord};
use trapline_fetch::{HostPattern, RobotsCache};
use url::Url;

use super::refusals::with_remedy;

/// The cache, which is not asked about some hosts.
pub(super) struct SomeRobots {
    pub(super) robots: RobotsCache,
    pub(super) ignoring: Vec<HostPattern>,
}

impl SomeRobots {
    fn ignores(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        self.ignoring.iter().any(|pattern| pattern.matches(host))
    }
}

#[async_trait]
impl Robots for SomeRobots {
    async fn ask(&self, now: Timestamp, url: &Url) -> RobotsWord {
        if self.ignores(url) {
            return RobotsWord { allowed: true, ..RobotsWord::default() };
        }
        let word = self.robots.ask(now, url).await;
        RobotsWord { trouble: word.trouble.map(with_remedy), ..word }
    }

    async fn known(&self, now: Timestamp, url: &Url) -> Option<RobotsWord> {
        if self.ignores(url) { None } else { Robots::known(&self.robots, now, url).await }
    }
}
