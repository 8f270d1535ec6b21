//! What the guard refuses to dial, told with the option that would allow it. The guard itself knows of no options of commands.

use async_trait::async_trait;
use trapline_core::Timestamp;
use trapline_crawl::ports::{Fetch, Robots, RobotsWord};
use trapline_crawl::{Response, WebRequest};
use trapline_fetch::{DialErrorKind, Fetcher, RobotsCache};
use url::Url;

/// Why something was not dialled, and what would let it be.
fn with_remedy(trouble: String) -> String {
    let remedies = [
        (DialErrorKind::AddressRefused, "--allow-network NETWORK, such as 127.0.0.0/8, allows it"),
        (DialErrorKind::PortRefused, "--set fetch.allow_ports=PORT allows it"),
    ];
    match remedies.iter().find(|(kind, _)| trouble == kind.message()) {
        Some((_, remedy)) => format!("{trouble}; {remedy}"),
        None => trouble,
    }
}

/// The fetcher, whose errors say what can be done.
pub(super) struct ToldFetcher(pub(super) Fetcher);

#[async_trait]
impl Fetch for ToldFetcher {
    async fn fetch(&self, request: &WebRequest) -> Response {
        let mut response = Fetch::fetch(&self.0, request).await;
        if let Some(error) = &mut response.error {
            error.message = with_remedy(std::mem::take(&mut error.message));
        }
        response
    }
}

/// The cache of robots.txt, likewise.
pub(super) struct ToldRobots(pub(super) RobotsCache);

fn told(word: RobotsWord) -> RobotsWord {
    RobotsWord { trouble: word.trouble.map(with_remedy), ..word }
}

#[async_trait]
impl Robots for ToldRobots {
    async fn ask(&self, now: Timestamp, url: &Url) -> RobotsWord {
        told(self.0.ask(now, url).await)
    }

    async fn ask_most_favored(&self, now: Timestamp, url: &Url) -> RobotsWord {
        told(self.0.ask_most_favored(now, url).await)
    }

    async fn known(&self, now: Timestamp, url: &Url) -> Option<RobotsWord> {
        Robots::known(&self.0, now, url).await
    }
}
