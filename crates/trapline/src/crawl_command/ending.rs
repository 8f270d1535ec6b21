//! How a crawl ended: a name for programs, a sentence for people, and the exit code.

use std::process::ExitCode;
use std::time::Duration;

use trapline_crawl::{CrawlEnd, CrawlHandle};
use trapline_frontier::{Frontier, Stats, StoreError};

use super::held::Held;
use super::{LIMIT, NOTHING, STOPPED};
use crate::moment;

/// How long the store may take to sum up, if somebody is in a hurry.
const SUM_TIMEOUT: Duration = Duration::from_millis(500);

/// What lets most crawls go on.
const AGAIN: &str = "run the same command again to go on";

/// What lets a crawl go on that was a part of a service.
const SERVED_AGAIN: &str = "it goes on when the service is started again";

/// How a crawl ended.
#[derive(Clone, Debug)]
pub(super) struct Ending {
    pub(super) end: CrawlEnd,
    /// What waits, if it ended because nothing else is left.
    pub(super) held: Held,
    /// Nothing is kept of the crawl: it cannot go on.
    pub(super) in_memory: bool,
    /// It is a part of a service, which has options and no flags for what ends it. Such a crawl waits when nothing is left, so that no
    /// budget ends it.
    pub(super) is_served: bool,
    /// What the strategy says: which goal it has reached, and its last words.
    pub(super) strategy: [Option<String>; 2],
}

impl Ending {
    /// Looks how a crawl stands that has ended: also how many URLs are in which state. None if the store is away, and somebody wants to
    /// stop now.
    pub(super) async fn of(
        end: CrawlEnd,
        frontier: &Frontier,
        handle: &CrawlHandle,
        (in_memory, is_served): (bool, bool),
    ) -> Result<(Self, Option<Stats>), StoreError> {
        let stats = sum_up(frontier, handle).await?;
        let held = match end {
            CrawlEnd::Retired => Held::count(frontier).await?,
            _ => Held::default(),
        };
        let strategy = handle.look(|tally| [tally.goal.clone(), tally.last_words.clone()]);
        Ok((Self { end, held, in_memory, is_served, strategy }, stats))
    }

    /// Its name in reports. Stays as it is.
    pub(super) fn name(&self) -> &'static str {
        match self.end {
            CrawlEnd::Exhausted => "exhausted",
            CrawlEnd::Retired if self.held.by_budget() => "budgets",
            CrawlEnd::Retired => "retired",
            CrawlEnd::Finished => "finished",
            CrawlEnd::Goal => "goal",
            CrawlEnd::MaxPages => "max_pages",
            CrawlEnd::MaxBytes => "max_bytes",
            CrawlEnd::MaxTime => "max_time",
            CrawlEnd::Stopped => "stopped",
        }
    }

    /// For people: what happened, and how it goes on.
    pub(super) fn sentence(&self) -> String {
        let words = self.strategy[1]
            .as_ref()
            .map_or_else(String::new, |words| format!(" (the strategy says: {words})"));
        format!("{}{words}", self.what_happened())
    }

    fn what_happened(&self) -> String {
        let (reason, remedy) = (self.held.reason(), self.held.remedy());
        let again = if self.is_served { SERVED_AGAIN } else { AGAIN };
        let (what, how) = match self.end {
            CrawlEnd::Exhausted => return "all is done".to_owned(),
            CrawlEnd::Finished => return "the crawl was finished".to_owned(),
            CrawlEnd::Goal => {
                let goal = self.strategy[0].as_deref().unwrap_or_default();
                return format!("the strategy has reached its goal: {goal}");
            }
            CrawlEnd::Retired => (&*reason, &*remedy),
            CrawlEnd::MaxPages if self.is_served => (
                "so many pages are done as were wanted",
                "with a higher `crawl.max_pages` it goes on when the service is started again",
            ),
            CrawlEnd::MaxBytes if self.is_served => (
                "so much has come as was wanted",
                "with a higher `crawl.max_bytes` it goes on when the service is started again",
            ),
            CrawlEnd::MaxPages => ("so many pages are done as were wanted", "a higher --max-pages goes on"),
            CrawlEnd::MaxBytes => ("so much has come as was wanted", "a higher --max-bytes goes on"),
            CrawlEnd::MaxTime => ("the time is over", again),
            CrawlEnd::Stopped => ("stopped", again),
        };
        let how = if self.in_memory { "a crawl in memory: cannot go on" } else { how };
        format!("{what}; {how}")
    }

    /// What the exit code says, if so many pages are done and so many of them came as they should. What others have fetched into
    /// the same store, or earlier runs that nobody wrote down, may have been good.
    pub(super) fn code(&self, (pages, good): (u64, u64), fetched_by_all: u64) -> ExitCode {
        match self.end {
            CrawlEnd::Exhausted | CrawlEnd::Finished | CrawlEnd::Goal
                if good == 0 && fetched_by_all <= pages =>
            {
                ExitCode::from(NOTHING)
            }
            CrawlEnd::Exhausted | CrawlEnd::Finished | CrawlEnd::Goal => ExitCode::SUCCESS,
            CrawlEnd::Retired | CrawlEnd::MaxPages | CrawlEnd::MaxBytes | CrawlEnd::MaxTime => {
                ExitCode::from(LIMIT)
            }
            CrawlEnd::Stopped => ExitCode::from(STOPPED),
        }
    }
}

async fn sum_up(frontier: &Frontier, handle: &CrawlHandle) -> Result<Option<Stats>, StoreError> {
    if handle.is_aborted() && handle.look(|tally| tally.trouble.is_some()) {
        return Ok(None);
    }
    let mut asking = std::pin::pin!(frontier.stats(moment::now()));
    loop {
        match tokio::time::timeout(SUM_TIMEOUT, &mut asking).await {
            Ok(Err(_)) | Err(_) if handle.is_aborted() => return Ok(None),
            Ok(stats) => return stats.map(Some),
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_crawl_that_is_kept_is_said_to_go_on() {
        let told = |end, in_memory, is_served| {
            Ending {
                end,
                held: Held { budgets: 2, ..Held::default() },
                in_memory,
                is_served,
                strategy: [None, None],
            }
            .sentence()
        };
        let said = |end, in_memory| told(end, in_memory, false);
        for end in
            [CrawlEnd::Retired, CrawlEnd::MaxPages, CrawlEnd::MaxBytes, CrawlEnd::MaxTime, CrawlEnd::Stopped]
        {
            let (kept, lost) = (said(end, false), said(end, true));
            assert!(
                kept.ends_with("goes on") || kept.ends_with("run the same command again to go on"),
                "{kept}"
            );
            let reason = kept.split_once("; ").map(|(reason, _)| reason);
            assert_eq!(lost.strip_suffix("; a crawl in memory: cannot go on"), reason);
        }
        assert_eq!(said(CrawlEnd::Exhausted, true), "all is done");
        // A service has none of the flags of a crawl.
        for end in [CrawlEnd::MaxPages, CrawlEnd::MaxBytes, CrawlEnd::MaxTime, CrawlEnd::Stopped] {
            let served = told(end, false, true);
            assert!(!served.contains("--") && !served.contains("same command"), "{served}");
        }
        assert!(told(CrawlEnd::MaxPages, false, true).contains("`crawl.max_pages`"));
    }
}
