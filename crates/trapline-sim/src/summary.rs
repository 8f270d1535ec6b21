//! What a simulated crawl came to, in numbers: counted by the simulation, except for the frontier's own counts.

use std::time::Duration;

use trapline_core::Timestamp;
use trapline_frontier::Stats;

use crate::ending::Endings;
use crate::politeness::Politeness;

/// A whole crawl. The same web, plan and seed give an equal one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrawlSummary {
    /// How long the crawl took, in virtual time.
    pub took: Duration,
    /// How its pages ended.
    pub endings: Endings,
    /// Pages that ended more than once, which must not happen.
    pub repeated: u64,
    /// Requests that were sent. A retried page counts each time, a disallowed one never.
    pub requests: u64,
    /// Retries because a host was down.
    pub retries_unavailable: u64,
    /// Retries because a page failed.
    pub retries_broken: u64,
    /// Links that were found.
    pub links: Links,
    /// Hosts of which at least one page ended: all of their pages that anybody linked to.
    pub hosts_done: u64,
    /// How the hosts were treated.
    pub politeness: Politeness,
    /// The hosts that were done last, the last one first.
    pub last_hosts: Vec<HostSummary>,
    /// How often the frontier was asked for URLs.
    pub claims: u64,
    /// What the frontier counted.
    pub stats: Stats,
}

impl CrawlSummary {
    /// Requests in each second of virtual time.
    pub fn requests_per_second(&self) -> f64 {
        let seconds = self.took.as_secs_f64();
        if seconds > 0.0 { self.requests as f64 / seconds } else { 0.0 }
    }

    /// What the frontier did: claims, URLs granted, settlements, and links admitted with them.
    pub fn operations(&self) -> u64 {
        let settled = self.endings.total() + self.retries_unavailable + self.retries_broken;
        self.claims + self.stats.granted + settled + self.links.found
    }
}

/// Links found on pages and behind redirects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// All of them.
    pub found: u64,
    /// Those to a URL that was new.
    pub new: u64,
    /// Those to a URL that was known.
    pub known: u64,
}

/// One host of a crawl.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostSummary {
    /// Its name.
    pub name: String,
    /// Pages that ended.
    pub pages: u64,
    /// Requests sent to it.
    pub requests: u64,
    /// How long it took to answer them, together.
    pub answering: Duration,
    /// When the last page ended.
    pub finished: Timestamp,
}

impl HostSummary {
    /// How long it took to answer a request, on average.
    pub fn latency_mean(&self) -> Duration {
        let requests = u32::try_from(self.requests).unwrap_or(u32::MAX);
        self.answering.checked_div(requests).unwrap_or_default()
    }
}
