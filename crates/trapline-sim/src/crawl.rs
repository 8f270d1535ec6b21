//! A crawl of a generated web by the real frontier, in virtual time.
//!
//! Workers are events: each is idle, or busy until a moment that is known when its fetch begins. Time jumps from one such
//! moment to the next, or to when the frontier says that more can be claimed. What workers decide (retry, give up, how long
//! to wait) is decided here, as a crawler would; what is fetched when is the frontier's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use trapline_core::{Candidate, IdentityKey, Request, Timestamp};
use trapline_frontier::{
    Admission, Answer, Frontier, Lease, Outcome, Settings, Settled, Settlement, Stats, Store, StoreError,
    Visit, Want,
};

use crate::ending::{Ending, Endings};
use crate::politeness::PolitenessMeter;
use crate::random::Random;
use crate::summary::{CrawlSummary, HostSummary, Links};
use crate::web::{Page, Response, Web};

/// How often a page that fails is asked for.
const TRIES_MAX: u32 = 3;

/// How long a page that failed is left alone; each time twice as long.
const BACKOFF: Duration = Duration::from_secs(30);

/// How many hosts a summary names.
const LAST_HOSTS: usize = 5;

/// Progress is told each time so many fetches have ended.
const ENDED_PER_PROGRESS: u64 = 200;

/// How to crawl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrawlPlan {
    /// Decides how long each fetch takes, and who is who in the frontier. Defaults to 1.
    pub seed: u64,
    /// How many fetches can go on at once. Defaults to 50.
    pub workers: u32,
    /// How long a host is left alone after a fetch. Defaults to 1s.
    pub delay: Duration,
}

impl Default for CrawlPlan {
    fn default() -> Self {
        Self { seed: 1, workers: 50, delay: Duration::from_secs(1) }
    }
}

/// Crawls a web from its seeds until the frontier has nothing left, telling now and then how it stands.
///
/// # Panics
/// If the frontier breaks its contract in a way that leaves nothing to go on with.
pub fn crawl(
    web: &Web,
    plan: &CrawlPlan,
    store: Arc<dyn Store>,
    progress: &mut dyn FnMut(Timestamp, &Stats),
) -> Result<CrawlSummary, StoreError> {
    pollster::block_on(async {
        let settings = Settings { delay: plan.delay, ..Settings::default() };
        let frontier = Frontier::builder("demo")
            .key(IdentityKey::from_seed(plan.seed))
            .settings(settings)
            .open_shared(store, Timestamp::ZERO)
            .await?;
        Crawl::new(web, plan, frontier).run(progress).await
    })
}

struct Crawl<'a> {
    web: &'a Web,
    plan: &'a CrawlPlan,
    frontier: Frontier,
    random: Random,
    now: Timestamp,
    idle: BTreeSet<u32>,
    /// Fetches under way, by when they end and whose they are.
    busy: BTreeMap<(Timestamp, u32), Fetch>,
    /// How often pages have failed that may still be tried. A lease counts all retries, those of a host that was
    /// down among them.
    failures: BTreeMap<usize, u32>,

    ended: Vec<bool>,
    hosts: Vec<HostSummary>,
    meter: PolitenessMeter,
    endings: Endings,
    repeated: u64,
    requests: u64,
    retries_unavailable: u64,
    retries_broken: u64,
    links: Links,
    claims: u64,
}

/// One fetch under way.
struct Fetch {
    lease: Lease,
    page: Page,
    took: Duration,
    response: Response,
}

impl<'a> Crawl<'a> {
    fn new(web: &'a Web, plan: &'a CrawlPlan, frontier: Frontier) -> Self {
        let host = |host: &crate::Host| HostSummary { name: host.name(), ..HostSummary::default() };
        Self {
            web,
            plan,
            frontier,
            random: Random::new(plan.seed),
            now: Timestamp::ZERO,
            idle: (0..plan.workers).collect(),
            busy: BTreeMap::new(),
            failures: BTreeMap::new(),
            ended: vec![false; web.pages()],
            hosts: web.hosts().iter().map(host).collect(),
            meter: PolitenessMeter::new(web.hosts().len()),
            endings: Endings::default(),
            repeated: 0,
            requests: 0,
            retries_unavailable: 0,
            retries_broken: 0,
            links: Links::default(),
            claims: 0,
        }
    }

    async fn run(mut self, progress: &mut dyn FnMut(Timestamp, &Stats)) -> Result<CrawlSummary, StoreError> {
        self.frontier.admit(self.now, self.web.seeds().map(Request::get)).await?;
        let mut told = 0;
        loop {
            self.settle().await?;
            let next = self.claim().await?;
            if self.endings.total() >= told + ENDED_PER_PROGRESS {
                told = self.endings.total();
                progress(self.now, &self.frontier.stats(self.now).await?);
            }
            let ends = self.busy.keys().next().map(|(ends, _)| *ends);
            match ends.into_iter().chain(next).min() {
                Some(next) => self.now = next,
                None => break,
            }
        }
        self.summary().await
    }

    /// Idle workers claim what they can. Answers when there may be more for those that got nothing.
    async fn claim(&mut self) -> Result<Option<Timestamp>, StoreError> {
        if self.idle.is_empty() {
            return Ok(None);
        }
        self.claims += 1;
        let claimed = self.frontier.claim(self.now, Want::urls(self.idle.len())).await?;
        for lease in claimed.leases {
            let worker = self.idle.pop_first().expect("no more leases than were asked for");
            self.begin(worker, lease);
        }
        if self.idle.is_empty() {
            return Ok(None);
        }
        assert!(
            claimed.exhausted || claimed.next.is_some() || !self.busy.is_empty(),
            "at {}: nothing is being fetched, nothing will be, and yet the frontier is not exhausted",
            self.now
        );
        assert!(
            claimed.next.is_none_or(|next| next > self.now),
            "at {}: a claim promises more for {:?}, which is not later",
            self.now,
            claimed.next
        );
        Ok(if claimed.exhausted { None } else { claimed.next })
    }

    fn begin(&mut self, worker: u32, lease: Lease) {
        let page = self.web.find(&lease.request.url).expect("links lead to pages of this web");
        let fetched = self.web.fetch(&lease.request.url, self.now, &mut self.random);
        if fetched.response != Response::Disallowed {
            self.requests += 1;
            self.meter.begin(page.host, self.now);
        }
        let fetch = Fetch { lease, page, took: fetched.took, response: fetched.response };
        self.busy.insert((self.now + fetched.took, worker), fetch);
    }

    /// Settles every fetch that ends now.
    async fn settle(&mut self) -> Result<(), StoreError> {
        let mut settlements = Vec::new();
        while let Some(entry) = self.busy.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let ((_, worker), fetch) = entry.remove_entry();
            self.idle.insert(worker);
            settlements.push(self.end(fetch));
        }
        if settlements.is_empty() {
            return Ok(());
        }
        for settled in self.frontier.settle(self.now, settlements).await? {
            self.count_links(&settled);
        }
        Ok(())
    }

    /// What a worker makes of its fetch.
    fn end(&mut self, fetch: Fetch) -> Settlement {
        let Fetch { lease, page, took, response } = fetch;
        let mut delay = None;
        let mut links = Vec::new();
        let outcome = match &response {
            Response::Page { bytes, digest, links: found } => {
                links.extend(found.iter().map(|url| self.link(&lease, url)));
                let digest = Some(digest.to_le_bytes().to_vec());
                Outcome::Done {
                    visit: Visit { status: 200, bytes: *bytes, digest, ..Visit::default() },
                    next: None,
                }
            }
            Response::Redirect { to } => {
                links.push(self.link(&lease, to));
                Outcome::Done { visit: Visit { status: 301, ..Visit::default() }, next: None }
            }
            Response::NotFound => Outcome::Dead { reason: "404 not found".to_owned() },
            Response::Broken => self.broken(page),
            Response::Unavailable { retry_after } => {
                // The host's trouble, not the page's: the whole host is left alone, and no try is counted.
                delay = Some(self.plan.delay.max(*retry_after));
                self.retries_unavailable += 1;
                Outcome::Retry { at: self.now + *retry_after }
            }
            Response::Disallowed => Outcome::Disregard { reason: "robots.txt".to_owned() },
        };
        if response != Response::Disallowed {
            self.meter.end(page.host, self.now, delay.unwrap_or(self.plan.delay));
            let host = &mut self.hosts[page.host as usize];
            host.requests += 1;
            host.answering += took;
        }
        if let (Some(ending), false) = (response.ending(), matches!(outcome, Outcome::Retry { .. })) {
            self.count_ending(page, ending);
        }
        Settlement { delay, links, ..Settlement::new(lease.id, outcome) }
    }

    /// A page that failed is tried again, later each time, until it has had its tries.
    fn broken(&mut self, page: Page) -> Outcome {
        let ordinal = self.web.ordinal(page);
        let failures = self.failures.entry(ordinal).or_default();
        *failures += 1;
        if *failures == TRIES_MAX {
            self.failures.remove(&ordinal);
            return Outcome::Dead { reason: format!("500 internal server error, {TRIES_MAX} times") };
        }
        self.retries_broken += 1;
        Outcome::Retry { at: self.now + BACKOFF * 2u32.pow(*failures - 1) }
    }

    fn link(&self, from: &Lease, url: &str) -> Candidate {
        let depth = from.request.depth + 1;
        let request = Request { depth, via: Some(from.request.url.clone()), ..Request::get(url) };
        self.frontier.prepare(request).expect("links are URLs")
    }

    fn count_ending(&mut self, page: Page, ending: Ending) {
        self.endings.count(ending);
        self.repeated += u64::from(std::mem::replace(&mut self.ended[self.web.ordinal(page)], true));
        let host = &mut self.hosts[page.host as usize];
        host.pages += 1;
        host.finished = self.now;
    }

    fn count_links(&mut self, settled: &Settled) {
        assert_ne!(settled.answer, Answer::Stale, "at {}: a lease ended before its fetch", self.now);
        self.links.found += settled.links.len() as u64;
        for link in &settled.links {
            match link {
                Admission::Added => self.links.new += 1,
                Admission::Known => self.links.known += 1,
                other => panic!("at {}: a link was {other}, which nobody asked for", self.now),
            }
        }
    }

    async fn summary(self) -> Result<CrawlSummary, StoreError> {
        let stats = self.frontier.stats(self.now).await?;
        let mut hosts = self.hosts;
        hosts.retain(|host| host.pages > 0);
        let hosts_done = hosts.len() as u64;
        hosts.sort_by_key(|host| std::cmp::Reverse(host.finished));
        hosts.truncate(LAST_HOSTS);
        Ok(CrawlSummary {
            took: self.now.since(Timestamp::ZERO),
            endings: self.endings,
            repeated: self.repeated,
            requests: self.requests,
            retries_unavailable: self.retries_unavailable,
            retries_broken: self.retries_broken,
            links: self.links,
            hosts_done,
            politeness: self.meter.found(),
            last_hosts: hosts,
            claims: self.claims,
            stats,
        })
    }
}
