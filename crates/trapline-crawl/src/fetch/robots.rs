//! robots.txt: what a host lets robots see.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Verdict, Visit};
use crate::chain::{Flow, Processor};
use crate::gate::Gate;
use crate::ports::{Robots, RobotsWord, World};
use crate::robots_policy::{RobotsPolicies, RobotsPolicy};

/// Disregards what robots.txt forbids.
pub(super) struct Obey {
    /// None for a crawl that does not ask.
    pub(super) robots: Option<Arc<dyn Robots>>,
    pub(super) policies: RobotsPolicies,
    pub(super) world: Arc<dyn World>,
    pub(super) gate: Arc<Gate>,
    /// Hosts are left alone between two requests, so also after that for robots.txt.
    pub(super) pause: bool,
    /// So are those whose robots.txt asks for it.
    pub(super) crawl_delay: bool,
}

impl Obey {
    fn pauses(&self, word: &RobotsWord) -> bool {
        self.pause || (self.crawl_delay && word.crawl_delay.is_some_and(|delay| !delay.is_zero()))
    }
}

#[async_trait]
impl Processor<Visit> for Obey {
    fn name(&self) -> &'static str {
        "robots"
    }

    async fn process(&self, visit: &mut Visit) -> Flow {
        let policy = self.policies.of(visit.url().host_str().unwrap_or_default());
        let Some(robots) = self.robots.as_ref().filter(|_| policy != RobotsPolicy::Ignore) else {
            return Flow::Next;
        };
        if self.gate.is_closed() {
            visit.verdict = Some(Verdict::Release { asked: false });
            return Flow::End;
        }
        // The clock of the store, which said when the visit began, may be a little ahead.
        let now = self.world.now().max(visit.started);
        let word = match policy {
            RobotsPolicy::MostFavored => robots.ask_most_favored(now, visit.url()).await,
            _ => robots.ask(now, visit.url()).await,
        };
        visit.verdict = if let Some(until) = word.unreachable_until {
            let asked = word.fetched >= visit.started;
            let trouble = word.trouble.as_deref().map_or(String::new(), |trouble| format!(": {trouble}"));
            let reason = format!("robots.txt cannot be had{trouble}");
            let url = visit.url().as_str();
            match (asked, visit.lease.request.depth) {
                // Somebody has named it, perhaps with a slip of the pen.
                (true, 0) => tracing::warn!(url, "{reason}"),
                (true, _) => tracing::info!(url, "{reason}"),
                (false, _) => {}
            }
            Some(if word.refused {
                Verdict::Dead { reason }
            } else {
                Verdict::Retry { at: Some(until), reason, asked }
            })
        } else if !word.allowed {
            let detail = word.line.clone().unwrap_or_default();
            Some(Verdict::Disregard { rule: "robots", detail })
        } else if self.pauses(&word) && word.fetched >= visit.started {
            Some(Verdict::Release { asked: true })
        } else {
            None
        };
        visit.robots = Some(word);
        if visit.verdict.is_some() { Flow::End } else { Flow::Next }
    }
}
