//! What can be chosen for a crawl: policies, not wiring. Every choice has a default that suits a polite crawl.

use std::time::Duration;

use trapline_core::{Request, Timestamp, parse_url};
use trapline_frontier::Frontier;

use crate::candidate::{
    FingerprintFunction, LimitOptions, Patterns, QueueOptions, ScopeKind, ScopeRule, TrapOptions,
};
use crate::disposition::{CanonicalSolver, PaceOptions, RetryOptions};
use crate::ports::Robots;
use crate::robots_policy::{RobotsPolicies, RobotsPolicy};
use crate::strategies::StrategyChoice;

/// What can be chosen for a crawl.
#[derive(Clone, Debug)]
pub struct CrawlOptions {
    /// How far around its seeds it goes. Defaults to their hosts.
    pub scope: ScopeKind,
    /// Further rules of the scope, the last that decides wins. Defaults to none.
    pub scope_rules: Vec<ScopeRule>,
    /// Fetches images, scripts and style sheets too. Defaults to false.
    pub embeds: bool,
    /// How far it goes, and how strange a URL may be.
    pub limits: LimitOptions,
    /// What looks like a trap.
    pub traps: TrapOptions,
    /// What the operator wants and does not want.
    pub patterns: Patterns,
    /// Terms of queues.
    pub queue: QueueOptions,
    /// How long hosts are left alone.
    pub pace: PaceOptions,
    /// How often a page that fails is asked for.
    pub retry: RetryOptions,
    /// How much is given on what hosts and pages say to robots. Defaults to all.
    pub robots: RobotsPolicy,
    /// By which names the crawl goes where pages speak to robots; the first one counts, unless the most favoured does. Defaults to
    /// `trapline`.
    pub agents: Vec<String>,
    /// Looks for sitemaps: those that robots.txt names. Defaults to true.
    pub sitemaps: bool,
    /// Looks at `/sitemap.xml` where robots.txt names none. Defaults to true.
    pub sitemap_guess: bool,
    /// How many sitemaps of one robots.txt are read. Defaults to 1,000.
    pub sitemaps_max: usize,
    /// How many of them may be elsewhere: neither in scope nor of the same registrable domain as the robots.txt. Defaults to 10.
    pub sitemaps_elsewhere_max: usize,
    /// A seed that redirects makes its target a seed. Defaults to true.
    pub redirected_seeds: bool,
    /// Asks only whether a page has changed, where it was visited before. Defaults to true.
    pub conditional: bool,
    /// Logs what the candidate chain decides of each URL, with the rule that decided. Defaults to false.
    pub log_decisions: bool,
    /// By which function the rule `fingerprint` goes. Defaults to SHA-1.
    pub fingerprint: FingerprintFunction,
    /// Who says under which of its URLs a page is told. Defaults to none: it is told as it was fetched.
    pub solver: Option<CanonicalSolver>,
    /// What the crawl wants: by which strategy it decides. Defaults to the basic one.
    pub strategy: StrategyChoice,
    /// Which processors the chains have, and in which order.
    pub chains: ChainNames,
    /// How many fetches may go on at once. Defaults to 200.
    pub concurrency: usize,
    /// How long a lease lasts. It is renewed while its fetch goes on. Defaults to 60 s.
    pub lease: Duration,
    /// The crawl stops when so many pages are done, those of earlier runs among them. Those that another crawler on the same store
    /// does meanwhile do not count. Defaults to none.
    pub max_pages: Option<u64>,
    /// It stops when so many bytes have come, likewise. Defaults to none.
    pub max_bytes: Option<u64>,
    /// It stops after this long, counted from the beginning of this run. Defaults to none.
    pub max_time: Option<Duration>,
    /// Ends when there is nothing left to do; otherwise it waits for more. Defaults to true.
    pub end_when_exhausted: bool,
}

impl Default for CrawlOptions {
    fn default() -> Self {
        Self {
            scope: ScopeKind::default(),
            scope_rules: Vec::new(),
            embeds: false,
            limits: LimitOptions::default(),
            traps: TrapOptions::default(),
            patterns: Patterns::default(),
            queue: QueueOptions::default(),
            pace: PaceOptions::default(),
            retry: RetryOptions::default(),
            robots: RobotsPolicy::default(),
            agents: vec!["trapline".to_owned()],
            sitemaps: true,
            sitemap_guess: true,
            sitemaps_max: 1000,
            sitemaps_elsewhere_max: 10,
            redirected_seeds: true,
            conditional: true,
            log_decisions: false,
            fingerprint: FingerprintFunction::default(),
            solver: None,
            strategy: StrategyChoice::default(),
            chains: ChainNames::default(),
            concurrency: 200,
            lease: Duration::from_secs(60),
            max_pages: None,
            max_bytes: None,
            max_time: None,
            end_when_exhausted: true,
        }
    }
}

impl CrawlOptions {
    /// How much is given on what a host and its pages say to robots.
    pub fn robots_policy(&self, host: &str) -> RobotsPolicy {
        self.robots_policies().of(host)
    }

    pub(crate) fn robots_policies(&self) -> RobotsPolicies {
        RobotsPolicies { usual: self.robots, hosts: self.queue.hosts.clone() }
    }

    /// How long a host is left alone that may have been asked for something, where nobody can tell any more what came of it.
    pub async fn wait_after(
        &self,
        frontier: &Frontier,
        robots: Option<&dyn Robots>,
        now: Timestamp,
        (key, request): (&str, &Request),
    ) -> Duration {
        // What an operator has set while it ran only the frontier knows.
        let queue = frontier.queue(now, key).await.ok().flatten();
        let set = queue.map_or(Duration::ZERO, |queue| queue.delay);
        let Ok(url) = parse_url(&request.url, None) else { return self.pace.delay.max(set) };
        let host = url.host_str().unwrap_or_default();
        let own = self.queue.of(host).and_then(|terms| terms.delay);
        let word = match robots {
            Some(robots) if self.robots_policy(host) != RobotsPolicy::Ignore => robots.known(now, &url).await,
            _ => None,
        };
        own.unwrap_or(self.pace.delay).max(set).max(self.pace.asked_by(word.as_ref()))
    }
}

/// Which processors there are, in which order. None for the usual ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChainNames {
    /// Of the candidate chain.
    pub candidate: Option<Vec<String>>,
    /// Of the fetch chain.
    pub fetch: Option<Vec<String>>,
    /// Of the disposition chain.
    pub disposition: Option<Vec<String>>,
}
