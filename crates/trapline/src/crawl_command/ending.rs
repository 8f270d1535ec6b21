//! How a crawl ended: a name for programs, a sentence for people, and the exit code.

use std::process::ExitCode;

use trapline_crawl::CrawlEnd;

use super::held::Held;
use super::{LIMIT, NOTHING, STOPPED};

/// How a crawl ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    pub(super) end: CrawlEnd,
    /// What waits, if it ended because nothing else is left.
    pub(super) held: Held,
}

impl Ending {
    /// Its name in reports. Stays as it is.
    pub(super) fn name(&self) -> &'static str {
        match self.end {
            CrawlEnd::Exhausted => "exhausted",
            CrawlEnd::Retired if self.held.by_budget() => "budgets",
            CrawlEnd::Retired => "retired",
            CrawlEnd::Finished => "finished",
            CrawlEnd::MaxPages => "max_pages",
            CrawlEnd::MaxBytes => "max_bytes",
            CrawlEnd::MaxTime => "max_time",
            CrawlEnd::Stopped => "stopped",
        }
    }

    /// For people.
    pub(super) fn sentence(&self) -> String {
        match self.end {
            CrawlEnd::Exhausted => "all is done",
            CrawlEnd::Retired => return self.held.sentence(),
            CrawlEnd::Finished => "the crawl was finished",
            CrawlEnd::MaxPages => "so many pages are done as were wanted; a higher --max-pages goes on",
            CrawlEnd::MaxBytes => "so much has come as was wanted; a higher --max-bytes goes on",
            CrawlEnd::MaxTime => "the time is over; run the same command again to go on",
            CrawlEnd::Stopped => "stopped; run the same command again to go on",
        }
        .to_owned()
    }

    /// What the exit code says, if so many pages are done and so many of them came as they should. What others have fetched into
    /// the same store, or earlier runs that nobody wrote down, may have been good.
    pub(super) fn code(&self, (pages, good): (u64, u64), fetched_by_all: u64) -> ExitCode {
        match self.end {
            CrawlEnd::Exhausted | CrawlEnd::Finished if good == 0 && fetched_by_all <= pages => {
                ExitCode::from(NOTHING)
            }
            CrawlEnd::Exhausted | CrawlEnd::Finished => ExitCode::SUCCESS,
            CrawlEnd::Retired | CrawlEnd::MaxPages | CrawlEnd::MaxBytes | CrawlEnd::MaxTime => {
                ExitCode::from(LIMIT)
            }
            CrawlEnd::Stopped => ExitCode::from(STOPPED),
        }
    }
}
