//! What is told of a visit.

use std::sync::Arc;

use async_trait::async_trait;
use trapline_frontier::Outcome;

use super::{CanonicalSolver, Disposition};
use crate::candidate::without_fragment;
use crate::chain::{Flow, Processor};
use crate::line::{PageLine, SkippedLine};
use crate::response::RedirectTo;

/// Writes down the visit, or why there was none.
pub(super) struct Tell {
    /// Under which of its URLs a page is told beside its own.
    pub(super) solver: Option<CanonicalSolver>,
}

#[async_trait]
impl Processor<Disposition> for Tell {
    fn name(&self) -> &'static str {
        "output"
    }

    async fn process(&self, disposition: &mut Disposition) -> Flow {
        let request = &disposition.visit.lease.request;
        let not_fetched = match &disposition.outcome {
            Outcome::Disregard { reason } | Outcome::Dead { reason } => Some(reason),
            _ => None,
        };
        if let Some(reason) = not_fetched {
            let (reason, detail) = match reason.split_once(": ") {
                Some((rule, detail)) => (rule, Some(detail.to_owned())),
                None => (reason.as_str(), None),
            };
            disposition.results.skipped.push(SkippedLine {
                url: without_fragment(&request.url).to_owned(),
                reason: reason.to_owned(),
                detail,
                via: request.via.clone(),
                depth: request.depth,
            });
        }
        let canonical = self.solver.map(|solver| solver.solve(&disposition.visit));
        disposition.results.page = line(disposition).map(|page| PageLine { canonical, ..page });
        Flow::Next
    }
}

/// The line of a visit; None if the server was not asked.
fn line(disposition: &Disposition) -> Option<PageLine> {
    let visit = &disposition.visit;
    let outcome = match disposition.outcome {
        Outcome::Done { .. } => "done",
        Outcome::Retry { .. } => "retry",
        Outcome::Dead { .. } => "dead",
        Outcome::Disregard { .. } => "disregarded",
        Outcome::Release | Outcome::Renew { .. } => return None,
    };
    let response = Arc::clone(visit.response.as_ref()?);
    let request = &visit.lease.request;
    let page = visit.page.as_ref();
    let before = visit.lease.page.as_deref();
    let digest = page.map(|page| page.digest);
    let digest_before = before.and_then(|before| before.visit.digest.as_deref());
    Some(PageLine {
        url: without_fragment(&request.url).into(),
        at: visit.started,
        lease: visit.lease.id.0,
        outcome,
        status: response.status,
        error: response.error.as_ref().map(|error| error.kind.to_owned()),
        retries: visit.lease.retries,
        times: response.times,
        encoded_bytes: response.encoded_bytes,
        decoded_bytes: response.body.len() as u64,
        address: response.address.clone(),
        protocol: response.protocol,
        truncated: response.truncated,
        not_modified: response.not_modified,
        visited_before: before.is_some(),
        // What is remembered is the beginning of it.
        changed: matches!((digest, digest_before), (Some(now), Some(before)) if !now.starts_with(before)),
        redirect: match &response.redirect {
            Some(RedirectTo::Url(url)) => Some(without_fragment(url.as_str()).to_owned()),
            _ => None,
        },
        canonical: None,
        mime: page.map(|page| page.mime.clone()),
        charset: page.map(|page| page.charset.name),
        digest,
        simhash: page.and_then(|page| page.simhash).map(|hash| hash.0),
        title: page.and_then(|page| page.title.clone()),
        links_found: page.map_or(0, |page| page.links.len())
            + visit.sitemap.as_ref().map_or(0, |sitemap| sitemap.entries.len()),
        links_kept: disposition.links.len(),
        via: request.via.clone(),
        depth: request.depth,
        hops: request.hop_path.clone(),
        seed: request.seed.clone(),
        archived: visit.archived.clone(),
        response,
    })
}
