//! Sitemaps: those that robots.txt names, or one by guess; and what they list.

use std::sync::Arc;

use async_trait::async_trait;
use trapline_core::parse_url;
use trapline_extract::SitemapKind;

use super::Disposition;
use super::links::child;
use crate::candidate::{CandidateChain, Origin, Prospect};
use crate::chain::{Flow, Processor};
use crate::fetch::SITEMAP_HOP;
use crate::options::CrawlOptions;

/// Hands sitemaps and their entries to the candidate chain.
pub(super) struct Sitemaps {
    candidates: Arc<CandidateChain>,
    follow: bool,
    guess: bool,
}

impl Sitemaps {
    pub(super) fn new(options: &CrawlOptions, candidates: &Arc<CandidateChain>) -> Self {
        Self { candidates: Arc::clone(candidates), follow: options.sitemaps, guess: options.sitemap_guess }
    }

    /// Sitemaps of a host whose robots.txt has just come.
    fn announced(&self, disposition: &mut Disposition) {
        let visit = &disposition.visit;
        if !visit.fetched_robots() || visit.is_sitemap() {
            return;
        }
        let Some(word) = visit.robots.as_ref().filter(|word| word.unreachable_until.is_none()) else {
            return;
        };
        let mut sitemaps = word.sitemaps.clone();
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
            self.announced(disposition);
            self.listed(disposition);
        }
        Flow::Next
    }
}
