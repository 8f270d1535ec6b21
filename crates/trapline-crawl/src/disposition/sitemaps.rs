//! Sitemaps: those that robots.txt names, or one by guess; and what they list.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use trapline_core::{SplitUrl, Timestamp, parse_url, registrable_domain};
use trapline_extract::SitemapKind;
use url::{Position, Url};

use super::Disposition;
use super::links::child;
use crate::candidate::{CandidateChain, Origin, Prospect, Scope};
use crate::chain::{Flow, Processor};
use crate::fetch::{SITEMAP_HOP, Visit};
use crate::line::SkippedLine;
use crate::options::CrawlOptions;
use crate::ports::RobotsWord;

/// Of so many hosts at most it is remembered that their sitemaps were announced. To announce them once more does no harm.
const HOSTS_MAX: usize = 100_000;

/// Hands sitemaps and their entries to the candidate chain.
pub(super) struct Sitemaps {
    candidates: Arc<CandidateChain>,
    follow: bool,
    guess: bool,
    /// How many of a robots.txt are read, and how many of them elsewhere.
    max: usize,
    elsewhere_max: usize,
    scope: Arc<Scope>,
    /// Hosts whose sitemaps this process has announced.
    announced: Mutex<BTreeSet<String>>,
}

impl Sitemaps {
    pub(super) fn new(options: &CrawlOptions, scope: &Arc<Scope>, candidates: &Arc<CandidateChain>) -> Self {
        Self {
            candidates: Arc::clone(candidates),
            follow: options.sitemaps,
            guess: options.sitemap_guess,
            max: options.sitemaps_max,
            elsewhere_max: options.sitemaps_elsewhere_max,
            scope: Arc::clone(scope),
            announced: Mutex::default(),
        }
    }

    /// Whether sitemaps of its host are to be announced with this visit: its robots.txt has just come, or nobody can tell what became of
    /// those who saw it come.
    fn is_news(&self, visit: &Visit) -> bool {
        let host = &visit.url()[..Position::BeforePath];
        let mut announced = self.announced.lock().unwrap_or_else(PoisonError::into_inner);
        if announced.contains(host) {
            return visit.fetched_robots();
        }
        if announced.len() >= HOSTS_MAX {
            announced.clear();
        }
        announced.insert(host.to_owned())
    }

    /// Sitemaps of a host.
    fn announce(&self, disposition: &mut Disposition) {
        let visit = &disposition.visit;
        let known = |word: &&RobotsWord| word.fetched > Timestamp::ZERO && word.unreachable_until.is_none();
        let Some(word) = visit.robots.as_ref().filter(known) else { return };
        if visit.is_sitemap() || !self.is_news(visit) {
            return;
        }
        if word.sitemaps.is_empty() && self.guess {
            if let Ok(sitemap) = parse_url("/sitemap.xml", Some(visit.url())) {
                self.consider(disposition, sitemap.into(), SITEMAP_HOP, Origin::Sitemap);
            }
            return;
        }
        let named = Arc::clone(&word.sitemaps);
        let (mut kept, mut elsewhere) = (0, 0);
        let (mut too_many, mut too_far) = (Vec::new(), Vec::new());
        for sitemap in &*named {
            let near = kept < self.max && self.is_near(disposition.visit.url(), sitemap);
            if kept == self.max {
                too_many.push(sitemap);
            } else if !near && elsewhere == self.elsewhere_max {
                too_far.push(sitemap);
            } else {
                kept += 1;
                elsewhere += usize::from(!near);
                self.consider(disposition, sitemap.as_str().to_owned(), SITEMAP_HOP, Origin::Sitemap);
            }
        }
        for (left_out, max, which) in
            [(too_many, self.max, "sitemaps"), (too_far, self.elsewhere_max, "sitemaps elsewhere")]
        {
            // One line for all of them: whoever lists thousands does not fill a disk with it.
            if let Some(first) = left_out.first() {
                let count = left_out.len();
                let detail =
                    format!("robots.txt names {count} more than the {max} {which} that are read of one");
                let from = &disposition.visit.lease.request;
                disposition.results.skipped.push(SkippedLine {
                    url: first.as_str().to_owned(),
                    reason: "sitemaps".to_owned(),
                    detail: Some(detail),
                    via: Some(from.url.clone()),
                    depth: 0,
                });
            }
        }
    }

    /// Whether a sitemap is where its host may send us as often as it likes: in scope, or in its own domain.
    fn is_near(&self, of: &Url, sitemap: &Url) -> bool {
        fn domain(url: &Url) -> &str {
            let host = url.host_str().unwrap_or_default();
            registrable_domain(host).unwrap_or(host)
        }
        domain(of) == domain(sitemap) || self.scope.decide(&SplitUrl::from(sitemap)).accepted
    }

    /// What a sitemap lists.
    fn listed(&self, disposition: &mut Disposition) {
        let Some(sitemap) = disposition.visit.sitemap.take() else { return };
        let (hop, origin) = match sitemap.kind {
            SitemapKind::Index => (SITEMAP_HOP, Origin::Sitemap),
            _ => ('M', Origin::SitemapEntry),
        };
        for entry in &sitemap.entries {
            self.consider(disposition, entry.url.as_str().to_owned(), hop, origin);
        }
        disposition.visit.sitemap = Some(sitemap);
    }

    fn consider(&self, disposition: &mut Disposition, url: String, hop: char, origin: Origin) {
        let from = &disposition.visit.lease.request;
        let mut request = child(from, url, hop);
        // A sitemap is no page on the way, and what it lists is as near as a link of a seed.
        request.depth = if origin == Origin::Sitemap { 0 } else { 1 };
        let Some(prospect) = Prospect::new(request, origin) else { return };
        match self.candidates.consider(prospect) {
            Ok(candidate) => disposition.links.push(candidate),
            Err(skipped) => disposition.results.skipped.push(skipped),
        }
    }
}

#[async_trait]
impl Processor<Disposition> for Sitemaps {
    fn name(&self) -> &'static str {
        "sitemaps"
    }

    async fn process(&self, disposition: &mut Disposition) -> Flow {
        if self.follow {
            self.announce(disposition);
            self.listed(disposition);
        }
        Flow::Next
    }
}
