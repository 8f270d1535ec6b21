//! Where a strategy is asked: before a fetch, and after it.

use std::sync::Arc;

use async_trait::async_trait;
use trapline_core::{Candidate, Request};
use trapline_frontier::{Outcome, Query, Rows, Scan, StoreError, UrlState};
use url::Url;

use super::{After, FoundLink, Memories, Memory, Seen, SiteMemory, Strategies, Strategy, Wish, site_of};
use crate::candidate::{CandidateChain, Origin, Prospect, without_fragment};
use crate::chain::{Flow, Processor};
use crate::disposition::Disposition;
use crate::fetch::{Verdict, Visit};
use crate::line::SkippedLine;

/// The rule that strategies are, where something is left out.
pub(crate) const RULE: &str = "strategy";

/// The hop to what a strategy has thought of, as Heritrix has it for what was inferred.
pub(crate) const INFERRED_HOP: char = 'I';

/// Asks the strategy before a fetch.
pub(crate) struct Ask {
    pub(crate) strategies: Arc<Strategies>,
    pub(crate) memories: Arc<Memories>,
}

#[async_trait]
impl Processor<Visit> for Ask {
    fn name(&self) -> &'static str {
        RULE
    }

    async fn process(&self, visit: &mut Visit) -> Flow {
        let strategy = self.strategies.of(visit.url().host_str().unwrap_or_default());
        if !strategy.remembers() {
            return refuse(strategy, visit, &Memory::default());
        }
        match memory_of(&self.memories, strategy, visit.url()).await {
            Ok(site) => {
                let memory = site.lock().clone();
                refuse(strategy, visit, &memory)
            }
            Err(_) => {
                // The loop meets the same trouble, and says so.
                visit.verdict = Some(Verdict::Release { asked: false });
                Flow::End
            }
        }
    }
}

fn refuse(strategy: &dyn Strategy, visit: &mut Visit, memory: &Memory) -> Flow {
    match strategy.refuses(&visit.lease.request, memory) {
        None => Flow::Next,
        Some(detail) => {
            visit.verdict = Some(Verdict::Disregard { rule: RULE, detail });
            Flow::End
        }
    }
}

/// Asks the strategy after a fetch: what to make of links, and what comes next.
pub(crate) struct Decide {
    pub(crate) strategies: Arc<Strategies>,
    pub(crate) memories: Arc<Memories>,
    pub(crate) candidates: Arc<CandidateChain>,
}

#[async_trait]
impl Processor<Disposition> for Decide {
    fn name(&self) -> &'static str {
        RULE
    }

    async fn process(&self, disposition: &mut Disposition) -> Flow {
        // Also a visit that came to nothing may have brought something: sitemaps, if robots.txt was asked for it.
        let is_visit = matches!(
            disposition.outcome,
            Outcome::Done { .. } | Outcome::Retry { .. } | Outcome::Dead { .. }
        );
        if !is_visit && disposition.links.is_empty() {
            return Flow::Next;
        }
        let decided = self.decide(disposition).await;
        if decided.is_err() && is_visit {
            // Without what it remembers it cannot decide: the loop meets the same trouble, and says so.
            disposition.outcome = Outcome::Release;
            disposition.links.clear();
        }
        Flow::Next
    }
}

impl Decide {
    async fn decide(&self, disposition: &mut Disposition) -> Result<(), StoreError> {
        let strategy = self.strategies.of(disposition.visit.url().host_str().unwrap_or_default());
        let site = match strategy.remembers() {
            true => Some(memory_of(&self.memories, strategy, disposition.visit.url()).await?),
            false => None,
        };
        let mut links = std::mem::take(&mut disposition.links);
        let mut left_out = Vec::new();
        let view = seen(disposition);
        links.retain(|link| match strategy.leaves_out(&view, &link.request) {
            None => true,
            Some(why) => {
                left_out.push(skipped(&link.request, why));
                false
            }
        });
        let mut states = Vec::new();
        if strategy.sees_states() && !links.is_empty() {
            match self.states(&links).await {
                Ok(known) => states = known,
                Err(error) => {
                    disposition.links = links;
                    return Err(error);
                }
            }
        }
        let mut empty = Memory::default();
        let mut held = site.as_ref().map(|site| site.lock());
        let memory = held.as_deref_mut().unwrap_or(&mut empty);
        let mut kept = Vec::with_capacity(links.len());
        let mut wishes = {
            let states = states.iter().copied().chain(std::iter::repeat(UrlState::Unknown));
            let found =
                links.iter().zip(states).map(|(link, state)| FoundLink { request: &link.request, state });
            strategy.links(&view, &found.collect::<Vec<_>>(), memory).into_iter()
        };
        for link in links {
            match wishes.next().unwrap_or_default() {
                Wish::Leave(why) => left_out.push(skipped(&link.request, why.into_owned())),
                wish => kept.push(placed(link, &wish)),
            }
        }
        let after = match disposition.outcome {
            Outcome::Done { .. } => strategy.page(&view, memory),
            Outcome::Retry { .. } | Outcome::Dead { .. } => strategy.error(&view, memory),
            Outcome::Release | Outcome::Renew { .. } | Outcome::Disregard { .. } => After::default(),
        };
        drop(held);
        for (request, wish) in &after.requests {
            let request = inferred(request.clone(), &disposition.visit.lease.request);
            match consider(&self.candidates, &request, wish) {
                Ok(candidate) => kept.push(candidate),
                Err(skipped) => left_out.push(skipped),
            }
        }
        apply(&after, &mut disposition.outcome);
        disposition.links = kept;
        disposition.results.skipped.append(&mut left_out);
        disposition.site = site;
        Ok(())
    }

    async fn states(&self, links: &[Candidate]) -> Result<Vec<UrlState>, StoreError> {
        let identities = links.iter().map(|link| link.identity).collect();
        match self.memories.patiently(&Scan::new(Query::UrlList(identities))).await? {
            Rows::Urls(urls) => Ok(urls.into_iter().map(|url| url.state).collect()),
            _ => Ok(Vec::new()),
        }
    }
}

/// The visit as a strategy sees it.
fn seen(disposition: &Disposition) -> Seen<'_> {
    let visit = &disposition.visit;
    let response = visit.response.as_deref();
    let unreachable = visit.robots.as_ref().filter(|word| word.unreachable_until.is_some());
    Seen {
        request: &visit.lease.request,
        url: visit.url(),
        now: disposition.ended,
        status: response.and_then(|response| response.status),
        error: match response {
            Some(response) => response.error.as_ref().map(|error| error.kind),
            None => unreachable.and_then(|word| word.error),
        },
        page: visit.page.as_ref(),
        before: visit.lease.page.as_deref(),
        retries: visit.lease.retries,
        tries_again: matches!(disposition.outcome, Outcome::Retry { .. }),
    }
}

/// A candidate in the place that is wished for it.
pub(crate) fn placed(candidate: Candidate, wish: &Wish) -> Candidate {
    match wish {
        Wish::Usual | Wish::Leave(_) => candidate,
        Wish::Class(class) => Candidate { class: Some(*class), ..candidate },
        Wish::Better(class) => Candidate { class: Some(*class), improve: true, ..candidate },
    }
}

/// A seed in the place that is wished for it, or why it is left out.
pub(crate) fn wished(seed: Candidate, wish: &Wish) -> Result<Candidate, SkippedLine> {
    match wish {
        Wish::Leave(why) => Err(skipped(&seed.request, why.to_string())),
        wish => Ok(placed(seed, wish)),
    }
}

/// A request that a strategy has thought of, through the candidate chain. Or why it is not wished for.
pub(crate) fn consider(
    candidates: &CandidateChain,
    request: &Request,
    wish: &Wish,
) -> Result<Candidate, SkippedLine> {
    if let Wish::Leave(why) = wish {
        return Err(skipped(request, why.to_string()));
    }
    let Some(prospect) = Prospect::new(request.clone(), Origin::Strategy) else {
        return Err(SkippedLine { reason: "malformed".to_owned(), ..skipped(request, String::new()) });
    };
    candidates.consider(prospect).map(|candidate| placed(candidate, wish))
}

/// A request that a strategy has thought of because of another.
pub(crate) fn inferred(request: Request, from: &Request) -> Request {
    let mut hop_path = from.hop_path.clone();
    hop_path.push(INFERRED_HOP);
    Request {
        via: request.via.or_else(|| Some(without_fragment(&from.url).to_owned())),
        seed: request.seed.or_else(|| from.seed.clone()),
        depth_limit: request.depth_limit.or(from.depth_limit),
        hop_path: if request.hop_path.is_empty() { hop_path } else { request.hop_path },
        ..request
    }
}

/// What becomes of the URL itself.
fn apply(after: &After, outcome: &mut Outcome) {
    match outcome {
        Outcome::Done { next, .. } => *next = after.next.or(*next),
        Outcome::Retry { .. } | Outcome::Dead { .. } => {
            if let Some(reason) = &after.give_up {
                *outcome = Outcome::Dead { reason: format!("{RULE}: {reason}") };
            } else if let Some(at) = after.again {
                *outcome = Outcome::Retry { at };
            }
        }
        Outcome::Release | Outcome::Disregard { .. } | Outcome::Renew { .. } => {}
    }
}

fn skipped(request: &Request, why: String) -> SkippedLine {
    SkippedLine {
        url: request.url.clone(),
        reason: RULE.to_owned(),
        detail: Some(why),
        via: request.via.clone(),
        depth: request.depth,
    }
}

async fn memory_of(
    memories: &Memories,
    strategy: &dyn Strategy,
    url: &Url,
) -> Result<Arc<SiteMemory>, StoreError> {
    memories.of(strategy.name(), site_of(url.host_str().unwrap_or_default())).await
}
