//! What lines of a script mean as verbs of the store, and how answers are written as a script has them.

use trapline_core::{Candidate, PrepareError, Request};

use super::{Admit, Claim, CrawlVerb, Settle, SettleAs, Steering};
use crate::frontier::Frontier;
use crate::report::{CrawlReport, QueueReport};
use crate::verbs::{CrawlChange, LeaseId, Outcome, PageRecord, QueueChange, Settlement, Visit, Want};

impl Admit {
    /// The candidate, prepared for a crawl.
    pub fn candidate(&self, frontier: &Frontier) -> Result<Candidate, PrepareError> {
        let request = Request {
            priority: self.priority,
            score: self.score,
            depth: self.depth,
            via: self.via.clone(),
            dont_filter: self.dont_filter,
            ..Request::get(&self.url)
        };
        Ok(Candidate {
            class: self.class,
            cost: self.cost,
            terms: self.terms.clone(),
            improve: self.improve,
            statement: self.statement,
            ..frontier.prepare_in(request, self.key.as_deref())?
        })
    }
}

impl From<&Claim> for Want {
    fn from(claim: &Claim) -> Self {
        Self {
            urls: claim.urls,
            lease: claim.lease,
            queues: claim.queues,
            per_queue: claim.per_queue,
            min_queues: claim.min_queues,
            keys: claim.keys.clone(),
            except: claim.except.clone(),
            partitions: None,
        }
    }
}

impl Settle {
    /// The settlement of a lease of a request. Links are found on it, one deeper than it.
    pub fn settlement(&self, lease: LeaseId, request: &Request, frontier: &Frontier) -> Settlement {
        let outcome = match &self.outcome {
            SettleAs::Done { visit, next } => Outcome::Done { visit: visit.clone(), next: *next },
            SettleAs::Retry { at } => Outcome::Retry { at: *at },
            SettleAs::Release => Outcome::Release,
            SettleAs::Dead { reason } => Outcome::Dead { reason: reason.clone() },
            SettleAs::Disregard => Outcome::Disregard { reason: String::new() },
            SettleAs::Renew { lease } => Outcome::Renew { lease: *lease },
        };
        let link = |url: &String| {
            let (via, depth) = (Some(request.url.clone()), request.depth.saturating_add(1));
            frontier.prepare(Request { via, depth, ..Request::get(url) }).ok()
        };
        let links = self.links.iter().filter_map(link).collect();
        Settlement { delay: self.delay, links, ..Settlement::new(lease, outcome) }
    }
}

impl From<&Steering> for QueueChange {
    fn from(change: &Steering) -> Self {
        match change {
            Steering::Terms(terms) => Self::Terms(terms.clone()),
            Steering::Block(until) => Self::Block(*until),
            Steering::Unblock => Self::Unblock,
            Steering::Retire => Self::Retire,
            Steering::Reinstate => Self::Reinstate,
            Steering::Purge => Self::Purge(None),
            Steering::Delete => Self::Delete,
        }
    }
}

impl CrawlVerb {
    /// The change; None if the crawl is only to be shown.
    pub fn change(&self) -> Option<CrawlChange> {
        Some(match self {
            Self::Pause => CrawlChange::Pause,
            Self::Resume => CrawlChange::Resume,
            Self::Finish => CrawlChange::Finish("the script said so".to_owned()),
            Self::Set(settings) => CrawlChange::Set(settings.clone()),
            Self::Show => return None,
        })
    }
}

/// A queue as a script shows it.
pub fn describe_queue(queue: &QueueReport) -> String {
    format!(
        "state={} pending={} leased={} done={} disregarded={} dead={} budget={} spent={} balance={} latest_cost={} precedence={}",
        queue.state,
        queue.pending,
        queue.leased,
        queue.done,
        queue.disregarded,
        queue.dead,
        queue.budget.map_or_else(|| "none".to_owned(), |budget| budget.to_string()),
        queue.spent,
        queue.balance,
        queue.latest_cost,
        queue.precedence,
    )
}

/// What the visits of a URL left, as a script shows it.
pub fn describe_page(page: Option<&PageRecord>) -> String {
    let Some(PageRecord { visited, visit, visits, changes, next }) = page else { return "none".to_owned() };
    let none = || "none".to_owned();
    let digest = visit.digest.as_deref().map_or_else(none, write_hex);
    let next = next.map_or_else(none, |next| next.to_string());
    let Visit { status, bytes, .. } = visit;
    format!(
        "visits={visits} changes={changes} visited={visited} status={status} bytes={bytes} digest={digest} next={next}"
    )
}

/// Bytes as a script has them.
pub(super) fn write_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A crawl as a script shows it.
pub fn describe_crawl(crawl: &CrawlReport) -> String {
    format!("state={} exhausted={}", crawl.state, if crawl.exhausted { "yes" } else { "no" })
}
