//! When a crawl is over, and why.

use std::panic::{AssertUnwindSafe, catch_unwind};

use trapline_core::Timestamp;
use trapline_frontier::{Claimed, CrawlState, QueueState, UrlState};

use crate::crawl::Crawl;
use crate::patience::Halt;

/// Why a crawl has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrawlEnd {
    /// There is nothing left to do.
    Exhausted,
    /// What is left waits in retired queues: their budgets are used up, or somebody has retired them.
    Retired,
    /// The frontier's crawl was finished, by hand or by a limit of its own.
    Finished,
    /// The strategy has reached its goal; [`Tally::goal`](crate::Tally::goal) says which.
    Goal,
    /// So many pages are done as were wanted.
    MaxPages,
    /// So many bytes have come.
    MaxBytes,
    /// So much time has passed.
    MaxTime,
    /// Somebody stopped it.
    Stopped,
}

/// What a strategy says; nothing if it panics.
pub(crate) fn unharmed<T>(ask: impl FnOnce() -> Option<T>) -> Option<T> {
    catch_unwind(AssertUnwindSafe(ask)).ok().flatten()
}

impl Crawl {
    pub(crate) fn limit_reached(&self, now: Timestamp) -> Option<CrawlEnd> {
        let mut tally = self.tally();
        if let Some(goal) = unharmed(|| self.strategies.usual().goal(&tally)) {
            tally.goal = Some(goal);
            Some(CrawlEnd::Goal)
        } else if self.options.max_pages.is_some_and(|most| tally.pages_ever() >= most) {
            Some(CrawlEnd::MaxPages)
        } else if self.options.max_bytes.is_some_and(|most| tally.bytes_ever() >= most) {
            Some(CrawlEnd::MaxBytes)
        } else if self.options.max_time.is_some_and(|most| now.since(self.begun) >= most) {
            Some(CrawlEnd::MaxTime)
        } else {
            None
        }
    }

    /// Whether that was all.
    pub(crate) async fn end(&mut self, claimed: &Claimed) -> Result<Option<CrawlEnd>, Halt> {
        if !self.flights.is_empty() {
            return Ok(None);
        }
        if self.stopping {
            return Ok(Some(CrawlEnd::Stopped));
        }
        let now = self.now().await?;
        if let Some(limit) = self.limit_reached(now) {
            return Ok(Some(limit));
        }
        // A crawl that is finished foresees nothing, whatever is pending.
        if !claimed.exhausted && claimed.next.is_some() {
            return Ok(None);
        }
        let report = self.patiently("look", async |frontier, now| frontier.report(now).await).await?;
        if matches!(report.state, CrawlState::Finished(_)) {
            return Ok(Some(CrawlEnd::Finished));
        }
        if !report.exhausted || self.seeding || !self.options.end_when_exhausted {
            return Ok(None);
        }
        let stats = self.patiently("look", async |frontier, now| frontier.stats(now).await).await?;
        let holds = stats.queues_in(QueueState::Retired) > 0 && stats.urls_in(UrlState::Pending) > 0;
        Ok(Some(if holds { CrawlEnd::Retired } else { CrawlEnd::Exhausted }))
    }
}
