//! The candidate chain: what becomes of a URL that somebody found, before it is scheduled.
//!
//! Seeds, injected URLs, links, redirects and entries of sitemaps all come through here. The folder holds the rules, one a
//! file; the order is in [`ORDER`].

mod domain;
mod fingerprint;
mod host_terms;
mod kinds;
mod limits;
mod no_query;
mod nofollow;
mod patterns;
mod queue;
mod scheme;
mod scope;
pub(crate) mod seed_notes;
mod traps;

use std::sync::Arc;

use trapline_core::{Candidate, Request, SplitUrl, Terms};
use trapline_extract::LinkKind;
use trapline_frontier::Frontier;

pub use fingerprint::FingerprintFunction;
pub use host_terms::{HostPolicies, HostTerms};
pub use limits::LimitOptions;
pub use patterns::{PatternError, Patterns};
pub use queue::QueueOptions;
pub use scope::{Scope, ScopeDecision, ScopeError, ScopeKind, ScopeRule, ScopeVote, SeedPlaces};
pub use traps::TrapOptions;

use crate::chain::{ChainError, Flow, Rule, Rules, in_order};
use crate::line::SkippedLine;
use crate::options::CrawlOptions;

/// The rules of the candidate chain, as they follow one another unless a configuration says otherwise.
pub const ORDER: [&str; 8] = ["scheme", "kinds", "nofollow", "scope", "limits", "traps", "patterns", "queue"];

/// All rules that there are, the last ones only for those who name them.
pub const NAMES: [&str; 11] = [
    "scheme",
    "kinds",
    "nofollow",
    "scope",
    "limits",
    "traps",
    "patterns",
    "queue",
    "no_query",
    "domain",
    "fingerprint",
];

/// What decisions are logged as.
const DECISIONS: &str = "trapline_crawl::decisions";

/// Where a URL came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// An operator named it.
    Seed,
    /// A page links to it.
    Link {
        /// What the page does with it.
        kind: LinkKind,
        /// The link, or the page, asks not to follow it.
        nofollow: bool,
    },
    /// A server sent us there.
    Redirect,
    /// It is a sitemap.
    Sitemap,
    /// A sitemap names it.
    SitemapEntry,
    /// A strategy has thought of it.
    Strategy,
}

/// A URL that somebody found, on its way through the candidate chain.
#[derive(Clone, Debug)]
pub struct Prospect {
    /// The URL and its parts.
    pub url: SplitUrl,
    /// The request that it may become.
    pub request: Request,
    /// Where it came from.
    pub origin: Origin,
    /// Terms for its queue.
    pub terms: Terms,
    /// Its queue, if not the usual one.
    pub slot: Option<String>,
    /// Its class, if the crawl's policy is not to decide.
    pub class: Option<u8>,
    /// Its cost, likewise.
    pub cost: Option<u32>,
    /// The rule of the scope that decided, once one has.
    pub scope_rule: Option<Arc<str>>,
    /// Why it is not to be fetched, once a rule has said so.
    pub dropped: Option<Dropped>,
}

/// Why a URL is not to be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// The rule that says so.
    pub rule: &'static str,
    /// What it says.
    pub detail: String,
}

impl Prospect {
    /// A prospect of a request. None if its URL is none. A fragment is left off: it is a place on a page, and no server hears of it.
    pub fn new(mut request: Request, origin: Origin) -> Option<Self> {
        let end = without_fragment(&request.url).len();
        request.url.truncate(end);
        let url = SplitUrl::parse(&request.url).ok()?;
        Some(Self {
            url,
            request,
            origin,
            terms: Terms::default(),
            slot: None,
            class: None,
            cost: None,
            scope_rule: None,
            dropped: None,
        })
    }

    /// A seed.
    pub fn seed(url: &str) -> Option<Self> {
        let url = without_fragment(url);
        Self::new(Request { seed: Some(url.to_owned()), ..Request::get(url) }, Origin::Seed)
    }

    /// Is not to be fetched. What a rule returns then.
    pub fn drop(&mut self, rule: &'static str, detail: impl Into<String>) -> Flow {
        self.dropped = Some(Dropped { rule, detail: detail.into() });
        Flow::End
    }
}

/// A URL up to its fragment.
pub(crate) fn without_fragment(url: &str) -> &str {
    &url[..url.find('#').unwrap_or(url.len())]
}

/// The candidate chain.
pub struct CandidateChain {
    rules: Rules<Prospect>,
    frontier: Frontier,
    log: bool,
}

impl CandidateChain {
    /// The chain that the options ask for, with a program's own rules to choose from too.
    pub fn new(
        options: &CrawlOptions,
        scope: Arc<Scope>,
        frontier: Frontier,
        own: Rules<Prospect>,
    ) -> Result<Self, ChainError> {
        let mut parts: Rules<Prospect> = vec![
            Arc::new(scheme::Scheme),
            Arc::new(kinds::Kinds { embeds: options.embeds }),
            Arc::new(nofollow::Nofollow),
            Arc::new(scope::InScope(scope)),
            Arc::new(limits::Limits { usual: options.limits.clone(), hosts: options.queue.hosts.clone() }),
            Arc::new(traps::Traps(options.traps.clone())),
            Arc::new(patterns::Matches {
                usual: options.patterns.clone(),
                hosts: options.queue.hosts.clone(),
            }),
            Arc::new(queue::Queue(options.queue.clone())),
            Arc::new(no_query::NoQuery),
            Arc::new(domain::Domain),
            Arc::new(fingerprint::Fingerprint { function: options.fingerprint, frontier: frontier.clone() }),
        ];
        parts.extend(own);
        let names = options.chains.candidate.clone().unwrap_or_else(|| ORDER.map(str::to_owned).to_vec());
        let rules = in_order("candidate", &names, &parts, |rule: &dyn Rule<Prospect>| rule.name())?;
        Ok(Self { rules, frontier, log: options.log_decisions })
    }

    /// What each rule says to a URL, those among them that would not be asked because one before has dropped it. A rule
    /// that changes a prospect does so for the next ones.
    pub fn opinions(&self, prospect: &mut Prospect) -> Vec<(&'static str, Option<Dropped>)> {
        let ask = |rule: &Arc<dyn Rule<Prospect>>| {
            rule.apply(prospect);
            (rule.name(), prospect.dropped.take())
        };
        self.rules.iter().map(ask).collect()
    }

    /// Whether a URL is to be fetched: the candidate, or why not.
    pub fn consider(&self, mut prospect: Prospect) -> Result<Candidate, SkippedLine> {
        for rule in &self.rules {
            if rule.apply(&mut prospect) == Flow::End {
                break;
            }
        }
        if self.log {
            log(&prospect);
        }
        if let Some(Dropped { rule, detail }) = prospect.dropped {
            return Err(skipped(&prospect.request, rule, Some(detail)));
        }
        let Prospect { request, terms, slot, class, cost, .. } = prospect;
        let request = Arc::new(request);
        match self.frontier.prepare_in(Arc::clone(&request), slot.as_deref()) {
            Ok(candidate) => Ok(Candidate {
                terms,
                class: class.or(candidate.class),
                cost: cost.or(candidate.cost),
                ..candidate
            }),
            Err(error) => Err(skipped(&request, "malformed", Some(error.to_string()))),
        }
    }
}

/// Writes down what was decided, and by whom.
fn log(prospect: &Prospect) {
    let (url, via) = (prospect.url.as_str(), prospect.request.via.as_deref());
    let scope = prospect.scope_rule.as_deref();
    match &prospect.dropped {
        Some(Dropped { rule, detail }) => {
            tracing::info!(target: DECISIONS, url, via, scope, rule, detail, "dropped");
        }
        None => tracing::info!(target: DECISIONS, url, via, scope, "kept"),
    }
}

fn skipped(request: &Request, reason: &str, detail: Option<String>) -> SkippedLine {
    SkippedLine {
        url: request.url.clone(),
        reason: reason.to_owned(),
        detail: detail.filter(|detail| !detail.is_empty()),
        via: request.via.clone(),
        depth: request.depth,
    }
}
