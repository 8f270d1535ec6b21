//! The scope once more: it may have become another since the URL was admitted.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Verdict, Visit};
use crate::candidate::Scope;
use crate::chain::{Flow, Processor};

/// Disregards what does not belong to the crawl any more.
pub(super) struct Recheck(pub(super) Arc<Scope>);

#[async_trait]
impl Processor<Visit> for Recheck {
    fn name(&self) -> &'static str {
        "scope"
    }

    async fn process(&self, visit: &mut Visit) -> Flow {
        let decision = self.0.decide(visit.url());
        if decision.accepted || visit.is_sitemap() {
            return Flow::Next;
        }
        visit.verdict = Some(Verdict::Disregard { rule: "scope", detail: decision.rule.to_string() });
        Flow::End
    }
}
