//! Links and redirects of a page, each through the candidate chain.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use trapline_core::{Request, SplitUrl};
use trapline_extract::{Link, LinkKind, Page};
use trapline_frontier::Outcome;

use super::Disposition;
use crate::candidate::{CandidateChain, Origin, Prospect, Scope, seed_notes, without_fragment};
use crate::chain::{Flow, Processor};
use crate::line::SkippedLine;
use crate::options::CrawlOptions;
use crate::response::RedirectTo;
use crate::robots_policy::{RobotsPolicies, RobotsPolicy};

/// How many redirects of a seed make the target a seed.
const SEED_REDIRECTS_MAX: usize = 5;

/// Hands links to the candidate chain.
pub(super) struct Links {
    candidates: Arc<CandidateChain>,
    scope: Arc<Scope>,
    policies: RobotsPolicies,
    agents: Vec<String>,
    redirected_seeds: bool,
}

impl Links {
    pub(super) fn new(options: &CrawlOptions, scope: &Arc<Scope>, candidates: &Arc<CandidateChain>) -> Self {
        Self {
            candidates: Arc::clone(candidates),
            scope: Arc::clone(scope),
            policies: options.robots_policies(),
            agents: options.agents.clone(),
            redirected_seeds: options.redirected_seeds,
        }
    }

    fn consider(&self, disposition: &mut Disposition, prospect: Prospect) {
        match self.candidates.consider(prospect) {
            Ok(candidate) => disposition.links.push(candidate),
            Err(skipped) => disposition.results.skipped.push(skipped),
        }
    }

    fn redirect(&self, disposition: &mut Disposition) {
        let visit = &disposition.visit;
        let from = Arc::clone(&visit.lease.request);
        let target = match visit.response.as_ref().and_then(|response| response.redirect.clone()) {
            None => return,
            Some(RedirectTo::Url(target)) => target,
            Some(RedirectTo::Nowhere(why)) => {
                return disposition.results.skipped.push(SkippedLine {
                    url: from.url.clone(),
                    reason: "redirect".to_owned(),
                    detail: Some(why),
                    via: from.via.clone(),
                    depth: from.depth,
                });
            }
        };
        let mut request = child(&from, target.as_str().to_owned(), 'R');
        request.depth = from.depth;
        request.redirects.clone_from(&from.redirects);
        request.redirects.push(from.url.clone());
        let is_seed = from.depth == 0 && from.hop_path.bytes().all(|hop| hop == b'R');
        if is_seed && self.redirected_seeds && request.redirects.len() <= SEED_REDIRECTS_MAX {
            // So that what it links to is in scope.
            let place = self.scope.seeds.add(&SplitUrl::from(&target));
            disposition.notes.extend(place.map(|place| seed_notes::note(&[place])));
        }
        if let Some(prospect) = Prospect::new(request, Origin::Redirect) {
            self.consider(disposition, prospect);
        }
    }

    /// Whether a page asks us not to follow any of its links.
    fn says_no(&self, page: &Page, policy: RobotsPolicy) -> bool {
        let mut names = self.agents.iter().map(|name| page.robots.of(name).nofollow);
        match policy {
            RobotsPolicy::MostFavored => !self.agents.is_empty() && names.all(|says_no| says_no),
            _ => names.next().unwrap_or(page.robots.everyone.nofollow),
        }
    }

    fn links(&self, disposition: &mut Disposition) {
        let Some(page) = disposition.visit.page.take() else { return };
        let from = Arc::clone(&disposition.visit.lease.request);
        let policy = self.policies.of(disposition.visit.url().host_str().unwrap_or_default());
        let page_says_no = self.says_no(&page, policy);
        // Pages repeat themselves, and fragments do not matter here. What may be followed once may be followed.
        let is_free = |link: &Link| link.kind != LinkKind::Embed && !link.is_nofollow();
        let mut free = BTreeSet::new();
        if !page.links.iter().all(is_free) {
            let links = page.links.iter().filter(|link| is_free(link));
            free.extend(links.map(|link| without_fragment(&link.url)));
        }
        let mut considered = BTreeSet::new();
        for link in &page.links {
            let url = without_fragment(&link.url);
            if !is_free(link) && free.contains(url) || !considered.insert(url) {
                continue;
            }
            let hop = if link.kind == LinkKind::Embed { 'E' } else { 'L' };
            let origin = Origin::Link {
                kind: link.kind,
                nofollow: policy.heeds_pages() && (page_says_no || link.is_nofollow()),
            };
            match Prospect::new(child(&from, url.to_owned(), hop), origin) {
                Some(prospect) => self.consider(disposition, prospect),
                None => disposition.results.skipped.push(SkippedLine {
                    url: url.to_owned(),
                    reason: "malformed".to_owned(),
                    detail: None,
                    via: Some(from.url.clone()),
                    depth: from.depth + 1,
                }),
            }
        }
        disposition.visit.page = Some(page);
    }
}

#[async_trait]
impl Processor<Disposition> for Links {
    fn name(&self) -> &'static str {
        "links"
    }

    async fn process(&self, disposition: &mut Disposition) -> Flow {
        if matches!(disposition.outcome, Outcome::Done { .. }) {
            self.redirect(disposition);
            self.links(disposition);
        }
        Flow::Next
    }
}

/// A request for what another one led to.
pub(super) fn child(from: &Request, url: String, hop: char) -> Request {
    let mut hop_path = String::with_capacity(from.hop_path.len() + 1);
    hop_path.push_str(&from.hop_path);
    hop_path.push(hop);
    Request {
        depth: from.depth.saturating_add(1),
        depth_limit: from.depth_limit,
        via: Some(without_fragment(&from.url).to_owned()),
        hop_path,
        seed: from.seed.clone(),
        ..Request::get(url)
    }
}
