//! Sitemaps: those that robots.txt names, or one by guess; and what they list.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use trapline_core::{Timestamp, parse_url};
use trapline_extract::SitemapKind;
use url::Position;

use super::Disposition;
use super::links::child;
use crate::candidate::{CandidateChain, Origin, Prospect};
use crate::chain::{Flow, Processor};
use crate::fetch::{SITEMAP_HOP, Visit};
use crate::options::CrawlOptions;
use crate::ports::RobotsWord;

/// Of so many hosts at most it is remembered that their sitemaps were announced. To announce them once more does no harm.
const HOSTS_MAX: usize = 100_000;

/// Hands sitemaps and their entries to the candidate chain.
pub(super) struct Sitemaps {
    candidates: Arc<CandidateChain>,
    follow: bool,
    guess: bool,
    /// Hosts whose sitemaps this process has announced.
    announced: Mutex<BTreeSet<String>>,
}

impl Sitemaps {
    pub(super) fn new(options: &CrawlOptions, candidates: &Arc<CandidateChain>) -> Self {
        Self {
            candidates: Arc::clone(candidates),
            follow: options.sitemaps,
            guess: options.sitemap_guess,
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
        let mut sitemaps = word.sitemaps.to_vec();
        if sitemaps.is_empty() && self.guess {
            sitemaps.extend(parse_url("/sitemap.xml", Some(visit.url())));
        }
        for sitemap in sitemaps {
            self.consider(disposition, sitemap.into(), SITEMAP_HOP, Origin::Sitemap);
        }
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
