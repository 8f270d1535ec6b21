//! `trapline frontier drop`: forgets pending URLs by a pattern, or shows which it would.

use clap::Args;
use serde_json::json;
use trapline_frontier::{CrawlChange, Pattern, QueueChange, Steer, UrlFilter, UrlState};

use super::address::Address;
use super::output::{Output, Row};
use super::{Ended, bulk, jobs};

/// Forget pending URLs that match a pattern
///
/// Of all queues, or of one. Only what waits to be fetched is forgotten: URLs that are leased, done or dead stay known. A URL that was
/// forgotten is new again when somebody finds it. In a pattern `*` stands for anything, and the whole URL must match.
///
/// `--dry-run` counts what would be forgotten, shows the first of it, and changes nothing. Exit code 1 if nothing matches.
#[derive(Args)]
#[command(after_help = "\
Examples:
  trapline frontier --store disk:crawl drop --pattern '*/calendar/*' --dry-run
  trapline frontier --store disk:crawl drop --pattern '*?sessionid=*' --queue example.com
  trapline frontier --store disk:crawl drop --pattern '*' --dry-run --show 0 --json")]
pub(super) struct DropUrls {
    /// Which URLs; `*` stands for anything, and the whole URL must match
    #[arg(long)]
    pattern: String,
    /// Only those of this queue
    #[arg(long, value_name = "KEY")]
    queue: Option<String>,
    /// Count and show what would be forgotten, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// With --dry-run: show so many at most
    #[arg(long, value_name = "N", default_value_t = bulk::SHOWN, requires = "dry_run")]
    show: usize,
}

impl DropUrls {
    pub(super) fn run(&self, at: Address<'_>, out: &mut Output) -> Result<Ended, String> {
        let frontier = at.open()?;
        let pattern = Pattern::new(&*self.pattern);
        if let Some(key) = &self.queue {
            bulk::check_queue(&frontier, at, key)?;
        }
        let mut row: Row = vec![("crawl", json!(at.crawl))];
        row.extend(self.queue.as_ref().map(|key| ("queue", json!(key))));
        row.push(("pattern", json!(self.pattern)));
        let count = if self.dry_run {
            let filter = UrlFilter { key: self.queue.clone(), pattern: Some(pattern) };
            let (count, shown) =
                bulk::would_change(&frontier, filter, Some(UrlState::Pending), |_| true, self.show)?;
            row.extend([("would_forget", json!(count)), ("among_them", json!(shown))]);
            count
        } else {
            let steer = match &self.queue {
                Some(key) => Steer::Queue(key.clone(), QueueChange::Purge(Some(pattern))),
                None => Steer::Crawl(CrawlChange::Purge(pattern)),
            };
            let count = jobs::steer(&frontier, steer)?;
            row.push(("forgotten", json!(count)));
            count
        };
        out.card(&row);
        Ok(if count == 0 { Ended::WithComplaints } else { Ended::Well })
    }
}
