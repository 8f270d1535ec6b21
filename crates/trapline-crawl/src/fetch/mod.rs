//! The fetch chain: what is done to get a page, up to the links found in it.
//!
//! It changes nothing outside of its subject but archives, which may keep a page twice, so that it may be aborted and repeated freely. The folder holds the processors,
//! one a file; the order is in [`ORDER`].

mod archive;
mod conditional;
mod extract;
mod get;
mod robots;
mod scope;

use std::sync::Arc;
use std::time::Duration;

use trapline_core::{Timestamp, parse_url};
use trapline_extract::{Page, Sitemap, SitemapLimits};
use trapline_frontier::Lease;
use url::Url;

use crate::archives::Archives;
use crate::candidate::without_fragment;
use crate::chain::{ChainError, Processor, Processors, in_order};
use crate::parts::Common;
use crate::ports::RobotsWord;
use crate::response::{Response, WebRequest};

/// The processors of the fetch chain, as they follow one another unless a configuration says otherwise.
pub const ORDER: [&str; 7] = ["scope", "strategy", "robots", "conditional", "fetch", "extract", "archive"];

/// A page that is being fetched.
#[derive(Debug)]
pub struct Visit {
    /// The right to do so.
    pub lease: Lease,
    /// When it began.
    pub started: Timestamp,
    /// What to get.
    pub request: WebRequest,
    /// What robots.txt says.
    pub robots: Option<RobotsWord>,
    /// What came. Shared with who is told of it, so that a processor anywhere sees it.
    pub response: Option<Arc<Response>>,
    /// What was found in it.
    pub page: Option<Page>,
    /// What was found in it, if it is a sitemap.
    pub sitemap: Option<Sitemap>,
    /// Where archives keep it.
    pub archived: Vec<String>,
    /// A processor's decision that the usual rules are not to make.
    pub verdict: Option<Verdict>,
}

/// What is to become of a visit, decided before the disposition chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Not to be fetched.
    Disregard {
        /// The rule that says so, in a word.
        rule: &'static str,
        /// What it says.
        detail: String,
    },
    /// Not yet: back to its place.
    Release {
        /// Its host was asked for something else, and is left alone for a while.
        asked: bool,
    },
    /// Later, if it was not tried too often.
    Retry {
        /// Not before.
        at: Option<Timestamp>,
        /// Why.
        reason: String,
        /// Its host was asked.
        asked: bool,
    },
    /// Never.
    Dead {
        /// Why.
        reason: String,
    },
}

impl Visit {
    /// A visit under a lease. None if its URL is none.
    pub fn new(lease: Lease, started: Timestamp) -> Option<Self> {
        let request = &lease.request;
        let mut headers = request.headers.clone();
        if !request.cookies.is_empty() {
            let cookies: Vec<_> =
                request.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
            headers.push(("cookie".to_owned(), cookies.join("; ").into_bytes()));
        }
        let request = WebRequest {
            url: parse_url(without_fragment(&request.url), None).ok()?,
            method: request.method.to_string(),
            headers,
            body: request.body.clone(),
            etag: None,
            last_modified: None,
            decoded_bytes_max: None,
        };
        let mut visit = Self {
            lease,
            started,
            request,
            robots: None,
            response: None,
            page: None,
            sitemap: None,
            archived: Vec::new(),
            verdict: None,
        };
        if visit.is_sitemap() {
            visit.request.decoded_bytes_max = Some(SitemapLimits::default().decoded_bytes_max as usize);
        }
        Some(visit)
    }

    /// The URL that is fetched.
    pub fn url(&self) -> &Url {
        &self.request.url
    }

    /// Whether a sitemap is expected, also from where a redirect of one leads.
    pub fn is_sitemap(&self) -> bool {
        self.lease.request.hop_path.trim_end_matches('R').ends_with(SITEMAP_HOP)
    }

    /// Whether robots.txt was asked for on behalf of this visit, or of another that it waited for.
    pub fn fetched_robots(&self) -> bool {
        self.robots.as_ref().is_some_and(|word| word.fetched >= self.started)
    }

    /// How long the server took, if it was asked.
    pub fn took(&self) -> Option<Duration> {
        self.response.as_ref().map(|response| response.times.total)
    }
}

/// The hop to a sitemap: something that is needed first.
pub(crate) const SITEMAP_HOP: char = 'P';

/// The processors that the options ask for, with a program's own to choose from too.
pub(crate) fn chain(
    crawl: &Common<'_>,
    archives: Archives,
    own: Processors<Visit>,
) -> Result<Processors<Visit>, ChainError> {
    let options = crawl.options;
    let is_wait = |delay: &Duration| !delay.is_zero();
    let of_hosts = options.queue.hosts.iter().filter_map(|host| host.delay.as_ref());
    let pause = [&options.pace.delay, &options.pace.min].into_iter().chain(of_hosts).any(is_wait);
    let crawl_delay = options.pace.crawl_delay;
    let (world, gate) = (Arc::clone(&crawl.parts.world), Arc::clone(&crawl.parts.gate));
    let (fetch, robots) = (Arc::clone(&crawl.parts.fetch), crawl.parts.robots.clone());
    let mut parts: Processors<Visit> = vec![
        Arc::new(scope::Recheck::new(Arc::clone(crawl.scope), crawl.parts.frontier.clone())),
        Arc::new(crawl.ask()),
        Arc::new(robots::Obey {
            robots,
            policies: options.robots_policies(),
            world,
            gate: Arc::clone(&gate),
            pause,
            crawl_delay,
        }),
        Arc::new(conditional::Conditional { on: options.conditional }),
        Arc::new(get::Get { fetch, gate }),
        Arc::new(extract::Extract),
        Arc::new(archive::Keep(archives)),
    ];
    parts.extend(own);
    let names = options.chains.fetch.clone().unwrap_or_else(|| ORDER.map(str::to_owned).to_vec());
    in_order("fetch", &names, &parts, |part: &dyn Processor<Visit>| part.name())
}
