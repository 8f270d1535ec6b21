//! The scope once more: it may have become another since the URL was admitted.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use trapline_core::{SplitUrl, Timestamp};
use trapline_frontier::Frontier;

use super::{Verdict, Visit};
use crate::candidate::{Scope, seed_notes};
use crate::chain::{Flow, Processor};

/// How old what is known of the seeds may be, where another crawler may have found one.
const FRESH: Duration = Duration::from_secs(1);

/// Disregards what does not belong to the crawl any more.
pub(super) struct Recheck {
    scope: Arc<Scope>,
    frontier: Frontier,
    /// When the places of seeds were last looked up.
    looked: Mutex<Timestamp>,
}

impl Recheck {
    pub(super) fn new(scope: Arc<Scope>, frontier: Frontier) -> Self {
        Self { scope, frontier, looked: Mutex::new(Timestamp::ZERO) }
    }

    /// Whether it is time to look the seeds up once more.
    fn is_stale(&self, now: Timestamp) -> bool {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let stale = *looked == Timestamp::ZERO || now.since(*looked) >= FRESH;
        if stale {
            *looked = now;
        }
        stale
    }
}

#[async_trait]
impl Processor<Visit> for Recheck {
    fn name(&self) -> &'static str {
        "scope"
    }

    async fn process(&self, visit: &mut Visit) -> Flow {
        let url = SplitUrl::from(visit.url());
        let mut decision = self.scope.decide(&url);
        if !decision.accepted && self.is_stale(visit.started) {
            // A store that cannot say leaves it at what is known.
            let _ = seed_notes::load(&self.frontier, visit.started, &self.scope.seeds).await;
            decision = self.scope.decide(&url);
        }
        if decision.accepted || visit.is_sitemap() {
            return Flow::Next;
        }
        visit.verdict = Some(Verdict::Disregard { rule: "scope", detail: decision.rule.to_string() });
        Flow::End
    }
}
