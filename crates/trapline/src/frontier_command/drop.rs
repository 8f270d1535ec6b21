//! `trapline frontier drop`: forgets pending URLs by a pattern, or shows which it would.

use clap::Args;
use serde_json::json;
use trapline_frontier::{CrawlChange, Frontier, Pattern, Query, QueueChange, Rows, Steer, UrlState};

use super::address::Address;
use super::output::{Output, Row};
use super::{Ended, jobs, listing, moment};

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
    #[arg(long, value_name = "N", default_value_t = SHOWN, requires = "dry_run")]
    show: usize,
}

/// How many URLs a dry run shows.
pub(super) const SHOWN: usize = 20;

impl DropUrls {
    pub(super) fn run(&self, at: Address<'_>, out: &mut Output) -> Result<Ended, String> {
        let frontier = at.open()?;
        let pattern = Pattern::new(&*self.pattern);
        if let Some(key) = &self.queue {
            let queue = pollster::block_on(frontier.queue(moment::now(), key));
            if queue.map_err(|error| error.to_string())?.is_none() {
                return Err(format!(
                    "nobody knows a queue `{key}` in crawl `{}`; `trapline frontier queues` lists those there are",
                    at.crawl
                ));
            }
        }
        let mut row: Row = vec![("crawl", json!(at.crawl))];
        row.extend(self.queue.as_ref().map(|key| ("queue", json!(key))));
        row.push(("pattern", json!(self.pattern)));
        let count = if self.dry_run {
            let (count, shown) = would_drop(&frontier, self.queue.as_deref(), Some(pattern), self.show)?;
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

/// How many pending URLs fit, and the first of them.
pub(super) fn would_drop(
    frontier: &Frontier,
    queue: Option<&str>,
    pattern: Option<Pattern>,
    most: usize,
) -> Result<(u64, Vec<String>), String> {
    let query = Query::Urls { key: queue.map(str::to_owned), pattern, state: Some(UrlState::Pending) };
    let (mut count, mut shown) = (0, Vec::new());
    listing::each_page(frontier, query, |rows| {
        if let Rows::Urls(urls) = rows {
            count += urls.len() as u64;
            let room = most - shown.len();
            let some = urls.into_iter().filter_map(|url| url.request).take(room);
            shown.extend(some.map(|request| request.url.clone()));
        }
        true
    })?;
    Ok((count, shown))
}
