//! `trapline frontier forget`, `revisit` and `forget-pages`: what is done to many URLs, or shown what would be.

use clap::Args;
use serde_json::json;
use trapline_core::{Timestamp, parse_duration};
use trapline_frontier::{Frontier, Pattern, Query, Rows, Steer, UrlFilter, UrlReport, UrlState, UrlsChange};

use super::address::Address;
use super::output::{Output, Row};
use super::{Ended, jobs, listing, moment};

/// Forget URLs, whatever became of them
///
/// Unlike `drop`, this forgets also what is leased, done, disregarded or dead, with all that is known of its pages: a URL that
/// was forgotten is new when somebody finds it again. Leases of it are stale.
///
/// `--dry-run` counts what would be forgotten, shows the first of it, and changes nothing. Exit code 1 if there is nothing.
#[derive(Args)]
#[command(after_help = "\
Examples:
  trapline frontier --store disk:crawl forget --pattern '*/calendar/*' --dry-run
  trapline frontier --store disk:crawl forget --queue example.com --pattern '*?sessionid=*'
  trapline frontier --store disk:crawl forget --queue example.com")]
pub(super) struct Forget {
    #[command(flatten)]
    work: Work,
}

/// Fetch done URLs again
///
/// All that is done becomes pending, as if its next visit were due; workers are told what is known of each page. Delays and budgets
/// hold as always. What is disregarded or dead stays so (see `dead replay`).
///
/// `--dry-run` counts what would be fetched again, shows the first of it, and changes nothing. Exit code 1 if there is nothing.
#[derive(Args)]
#[command(after_help = "\
Examples:
  trapline frontier --store disk:crawl revisit --queue example.com
  trapline frontier --store disk:crawl revisit --pattern '*/news/*' --dry-run
  trapline frontier --store disk:crawl revisit --all")]
pub(super) struct Revisit {
    #[command(flatten)]
    work: Work,
}

/// Forget what is known of pages that were not visited for long
///
/// Their URLs stay known and done, their visits counted and scheduled; what goes is what the last visit left: status, digest,
/// validators, when it was. A disk store gives the space back when it rewrites its log. Exit code 1 if there is nothing to forget.
#[derive(Args)]
#[command(after_help = "\
Examples:
  trapline frontier --store disk:crawl forget-pages --all --older 90d --dry-run
  trapline frontier --store disk:crawl forget-pages --queue example.com --older 2026-01-01T00:00:00Z")]
pub(super) struct ForgetPages {
    /// Last visited longer ago than this, such as 90d; or before a time
    #[arg(long, value_name = "AGE|TIME", allow_hyphen_values = true)]
    older: String,
    #[command(flatten)]
    work: Work,
}

#[derive(Args)]
struct Work {
    #[command(flatten)]
    which: Which,
    /// Count and show what it would be, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// With --dry-run: show so many at most
    #[arg(long, value_name = "N", default_value_t = SHOWN, requires = "dry_run")]
    show: usize,
}

#[derive(Args)]
#[group(required = true, multiple = true)]
struct Which {
    /// URLs that match as a whole; `*` stands for anything
    #[arg(long)]
    pattern: Option<String>,
    /// URLs of this queue
    #[arg(long, value_name = "KEY")]
    queue: Option<String>,
    /// All URLs of the crawl
    #[arg(long, conflicts_with_all = ["pattern", "queue"])]
    all: bool,
}

/// How many URLs a dry run shows.
pub(super) const SHOWN: usize = 20;

impl Forget {
    pub(super) fn run(&self, at: Address<'_>, out: &mut Output) -> Result<Ended, String> {
        self.work.run(at, out, UrlsChange::Forget, ("forgotten", "would_forget"))
    }
}

impl Revisit {
    pub(super) fn run(&self, at: Address<'_>, out: &mut Output) -> Result<Ended, String> {
        self.work.run(at, out, UrlsChange::Revisit, ("to_be_visited", "would_visit"))
    }
}

impl ForgetPages {
    pub(super) fn run(&self, at: Address<'_>, out: &mut Output) -> Result<Ended, String> {
        let before = before(&self.older, moment::now())?;
        let names = ("pages_forgotten", "would_forget_pages");
        self.work.run(at, out, UrlsChange::ForgetPages(before), names)
    }
}

/// The time before which something is older.
fn before(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    if let Ok(age) = parse_duration(text) {
        let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        return Ok(Timestamp::from_millis(now.as_millis().saturating_sub(age)));
    }
    trapline_core::parse_utc(text).ok_or_else(|| {
        format!(
            "--older cannot be `{text}`: write an age, such as 90d or 12h, or a time, such as 2026-05-01T12:00:00Z"
        )
    })
}

impl Work {
    fn run(
        &self,
        at: Address<'_>,
        out: &mut Output,
        change: UrlsChange,
        (done, would): (&'static str, &'static str),
    ) -> Result<Ended, String> {
        let frontier = at.open()?;
        let Which { pattern, queue, all: _ } = &self.which;
        if let Some(key) = queue {
            check_queue(&frontier, at, key)?;
        }
        let filter = UrlFilter { key: queue.clone(), pattern: pattern.as_deref().map(Pattern::new) };
        let mut row: Row = vec![("crawl", json!(at.crawl))];
        row.extend(queue.as_ref().map(|key| ("queue", json!(key))));
        row.extend(pattern.as_ref().map(|pattern| ("pattern", json!(pattern))));
        let count = if self.dry_run {
            let state = (change == UrlsChange::Revisit).then_some(UrlState::Done);
            let is_meant = |url: &UrlReport| match change {
                UrlsChange::Forget | UrlsChange::Revisit => true,
                UrlsChange::ForgetPages(before) => {
                    url.page.as_ref().is_some_and(|page| page.visited < before)
                }
            };
            let (count, shown) = would_change(&frontier, filter, state, is_meant, self.show)?;
            row.extend([(would, json!(count)), ("among_them", json!(shown))]);
            count
        } else {
            let count = jobs::steer(&frontier, Steer::Urls(filter, change))?;
            row.push((done, json!(count)));
            count
        };
        out.card(&row);
        Ok(if count == 0 { Ended::WithComplaints } else { Ended::Well })
    }
}

/// A slip of the hand names a queue that is not there.
pub(super) fn check_queue(frontier: &Frontier, at: Address<'_>, key: &str) -> Result<(), String> {
    let queue = pollster::block_on(frontier.queue(moment::now(), key));
    if queue.map_err(|error| error.to_string())?.is_some() {
        return Ok(());
    }
    Err(format!(
        "nobody knows a queue `{key}` in crawl `{}`; `trapline frontier queues` lists those there are",
        at.crawl
    ))
}

/// How many URLs fit, and the first of them.
pub(super) fn would_change(
    frontier: &Frontier,
    filter: UrlFilter,
    state: Option<UrlState>,
    is_meant: impl Fn(&UrlReport) -> bool,
    most: usize,
) -> Result<(u64, Vec<String>), String> {
    let query = Query::Urls { key: filter.key, pattern: filter.pattern, state };
    let (mut count, mut shown) = (0, Vec::new());
    listing::each_page(frontier, query, |rows| {
        if let Rows::Urls(mut urls) = rows {
            urls.retain(&is_meant);
            count += urls.len() as u64;
            let room = most - shown.len();
            let some = urls.into_iter().filter_map(|url| url.request).take(room);
            shown.extend(some.map(|request| request.url.clone()));
        }
        true
    })?;
    Ok((count, shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_lies_back_and_a_time_is_one() {
        let now = Timestamp::from_millis(100_000);
        assert_eq!(before("90s", now), Ok(Timestamp::from_millis(10_000)));
        assert_eq!(before("90d", now), Ok(Timestamp::ZERO));
        assert_eq!(before("1970-01-01T00:00:05Z", now), Ok(Timestamp::from_millis(5_000)));
        let error = before("long ago", now).unwrap_err();
        assert!(error.starts_with("--older cannot be `long ago`: write an age, such as 90d"), "{error}");
    }
}
