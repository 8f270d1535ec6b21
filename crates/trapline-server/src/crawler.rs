//! A crawl that runs in the same process as the service: what the service holds of it, and what it asks of the program around it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use tonic::Status;
use trapline_crawl::CrawlHandle;
use trapline_crawl::candidate::Prospect;
use trapline_crawl::ports::SettledVisit;
use trapline_frontier::Frontier;

use crate::crawl_metrics::CrawlMetrics;
use crate::crawl_results::CrawlResults;
use crate::exposition::Exposition;

/// The program around a crawl, which knows configurations and how people write seeds.
#[async_trait]
pub trait CrawlerProgram: Send + Sync + 'static {
    /// Reads a seed as people write it, or says what is wrong with it.
    fn seed(&self, text: &str) -> Result<Prospect, String>;

    /// Sets options for some hosts, on top of the configuration. Answers for people.
    async fn set_policy(&self, hosts: &str, options: &[(String, String)]) -> Result<String, NoPolicy>;

    /// Of how many names it is remembered where they lead.
    fn names_remembered(&self) -> u64;
}

/// Why a policy was not set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoPolicy {
    /// What was sent is wrong, in words that name nothing else.
    Wrong(String),
    /// Something else went wrong. What it says is for the log alone.
    Failed(String),
}

/// A crawl that runs.
pub struct RunningCrawl {
    /// A hand on it.
    pub handle: CrawlHandle,
    /// Where it is kept.
    pub frontier: Frontier,
    /// The program around it.
    pub program: Arc<dyn CrawlerProgram>,
}

/// The crawler of a service: a seat that the crawl takes once it runs. Services can be asked before, and after it has ended.
#[derive(Default)]
pub struct Crawler {
    running: OnceLock<RunningCrawl>,
    /// How it ended, for people.
    ended: OnceLock<String>,
    /// Because the service ends.
    stops: AtomicBool,
    pub(crate) metrics: CrawlMetrics,
    pub(crate) results: CrawlResults,
}

impl Crawler {
    /// The crawl runs from now on. A second one is not heard of.
    pub fn runs(&self, crawl: RunningCrawl) {
        let _ = self.running.set(crawl);
    }

    /// Is told what was settled, as outputs of crawls are.
    pub fn settled(&self, visits: &[SettledVisit<'_>]) {
        visits.iter().for_each(|visit| self.metrics.visit(visit));
        self.results.tell(visits);
    }

    /// The crawl has ended, or never came to run: how, for people.
    pub fn ended(&self, how: String) {
        let _ = self.ended.set(how);
        self.results.end();
    }

    /// The crawl is about to be stopped, because the service ends.
    pub fn stops(&self) {
        self.stops.store(true, Ordering::Relaxed);
    }

    /// With which status a stream of results ends.
    pub(crate) fn last_word(&self) -> Status {
        match self.ended.get() {
            Some(how) if !self.stops.load(Ordering::Relaxed) => over(how),
            _ => Status::unavailable("the service is ending"),
        }
    }

    /// A hand on the crawl, if it runs or ran.
    pub fn handle(&self) -> Option<&CrawlHandle> {
        self.running.get().map(|crawl| &crawl.handle)
    }

    /// How it ended.
    pub(crate) fn ending(&self) -> Option<&str> {
        self.ended.get().map(String::as_str)
    }

    /// The crawl, as long as nothing says that it has ended. Who asks again after `UNAVAILABLE` will have it.
    pub(crate) fn running(&self) -> Result<&RunningCrawl, Status> {
        match (self.ended.get(), self.running.get()) {
            (Some(how), _) => Err(over(how)),
            (None, Some(crawl)) => Ok(crawl),
            (None, None) => Err(Status::unavailable("the crawl is about to begin; ask again")),
        }
    }

    /// The crawl, whether or not it has ended.
    pub(crate) fn known(&self) -> Option<&RunningCrawl> {
        self.running.get()
    }

    pub(crate) fn write_metrics(&self, out: &mut Exposition) {
        self.metrics.write(out);
        let active = self.handle().map_or(0, |handle| handle.look(|tally| tally.in_flight));
        out.family("trapline_active_workers", "gauge", "Fetches that are under way.").value(active);
        let most = self.handle().map_or(0, CrawlHandle::concurrency);
        out.family("trapline_workers_max", "gauge", "How many fetches may go on at once.").value(most);
        let names = self.known().map_or(0, |crawl| crawl.program.names_remembered());
        out.family("trapline_dns_cache_names", "gauge", "Names of which it is remembered where they lead.")
            .value(names);
    }
}

/// What calls are answered that need a crawl which has ended.
fn over(how: &str) -> Status {
    Status::failed_precondition(format!("the crawl has ended: {how}"))
}
