//! `trapline frontier steer`: what an operator changes, on a queue or on the crawl.

use std::sync::Arc;

use clap::{Args, Subcommand};
use serde_json::json;
use trapline_core::{NO_BUDGET, Terms, Timestamp, parse_duration};
use trapline_frontier::{CrawlChange, ErrorKind, Frontier, Pattern, QueueChange, Steer, UrlFilter, UrlState};

use super::address::Address;
use super::output::Output;
use super::{Ended, bulk, complain, jobs, moment};

/// Change a queue or the crawl, in force for the very next claim
#[derive(Args)]
#[command(after_help = "\
Examples:
  trapline frontier --store disk:crawl steer queue example.com delay=10s queue_budget=5000
  trapline frontier --store disk:crawl steer queue example.com purge --pattern '*/calendar/*' --dry-run
  trapline frontier --store disk:crawl steer crawl pause")]
pub(super) struct SteerCommand {
    #[command(subcommand)]
    target: Target,
}

#[derive(Subcommand)]
enum Target {
    Queue(SteerQueue),
    Crawl(SteerCrawl),
}

/// Change a queue
///
/// Terms, one or several as name=value: delay, concurrency, balance_replenish, queue_budget (or none), precedence, group (or none). They win
/// over what URLs bring along later.
///
/// Or one of: `retire` (not served until reinstated), `reinstate`, `block=TIME` (not served until then), `unblock`, `purge` (forget its
/// pending URLs), `delete` (forget all its URLs; its leases become stale).
#[derive(Args)]
#[command(after_help = "\
Examples:
  trapline frontier --store disk:crawl steer queue example.com delay=10s concurrency=2
  trapline frontier --store disk:crawl steer queue example.com block=2h
  trapline frontier --store disk:crawl steer queue example.com purge --pattern '*/calendar/*' --dry-run")]
struct SteerQueue {
    /// The queue's key
    key: String,
    /// name=value…, or retire, reinstate, block=TIME, unblock, purge, delete
    #[arg(required = true)]
    change: Vec<String>,
    /// With purge: only URLs that match as a whole; `*` stands for anything
    #[arg(long)]
    pattern: Option<String>,
    /// With purge: count and show what would be forgotten, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Change the crawl
///
/// Settings, one or several as name=value: all of them or, if one cannot be, none. Or one of: `pause` (no leases until resumed), `resume`,
/// `finish` (it ends for good), `delete` (it is forgotten with everything in it, which wants --yes).
#[derive(Args)]
#[command(after_help = "\
Examples:
  trapline frontier --store disk:crawl steer crawl delay=2s max_depth=10
  trapline frontier --store disk:crawl steer crawl pause
  trapline frontier --store disk:crawl steer crawl finish --reason 'enough for this year'
  trapline frontier --store disk:crawl --crawl old steer crawl delete --yes")]
struct SteerCrawl {
    /// name=value…, or pause, resume, finish, delete
    #[arg(required = true)]
    change: Vec<String>,
    /// With finish: why, for those who look later
    #[arg(long)]
    reason: Option<String>,
    /// With delete: yes, everything in it
    #[arg(long)]
    yes: bool,
}

impl SteerCommand {
    pub(super) fn run(&self, at: Address<'_>, out: &mut Output) -> Result<Ended, String> {
        match &self.target {
            Target::Queue(queue) => queue.run(at, out),
            Target::Crawl(crawl) => crawl.run(at, out),
        }
    }
}

impl SteerQueue {
    fn run(&self, at: Address<'_>, out: &mut Output) -> Result<Ended, String> {
        // A slip of the hand is told before anything is opened.
        let change = self.change(moment::now())?;
        let frontier = at.open()?;
        if self.dry_run {
            return self.show(&frontier, out);
        }
        let known = pollster::block_on(frontier.queue(moment::now(), &self.key));
        if known.map_err(|error| error.to_string())?.is_none() {
            complain(&format!(
                "nobody knew a queue `{}` until now; it is there from now on, and empty",
                self.key
            ));
        }
        let steer = Steer::Queue(self.key.clone(), change);
        let affected = jobs::steer(&frontier, steer)?;
        out.card(&vec![
            ("queue", json!(self.key)),
            ("change", json!(self.change.join(" "))),
            ("affected", json!(affected)),
        ]);
        Ok(Ended::Well)
    }

    fn change(&self, now: Timestamp) -> Result<QueueChange, String> {
        let words: Vec<&str> = self.change.iter().map(String::as_str).collect();
        if words != ["purge"] && (self.pattern.is_some() || self.dry_run) {
            return Err("--pattern and --dry-run go with `purge` alone; nothing was changed".to_owned());
        }
        Ok(match words[..] {
            ["retire"] => QueueChange::Retire,
            ["reinstate"] => QueueChange::Reinstate,
            ["unblock"] => QueueChange::Unblock,
            ["purge"] => QueueChange::Purge(self.pattern.as_deref().map(Pattern::new)),
            ["delete"] => QueueChange::Delete,
            [word] if word.starts_with("block=") => QueueChange::Block(moment::read(&word[6..], now)?),
            _ => QueueChange::Terms(terms(&words)?),
        })
    }

    /// What a purge would forget.
    fn show(&self, frontier: &Frontier, out: &mut Output) -> Result<Ended, String> {
        let pattern = self.pattern.as_deref().map(Pattern::new);
        let filter = UrlFilter { key: Some(self.key.clone()), pattern };
        let (count, shown) =
            bulk::would_change(frontier, filter, Some(UrlState::Pending), |_| true, bulk::SHOWN)?;
        out.card(&vec![
            ("queue", json!(self.key)),
            ("would_forget", json!(count)),
            ("among_them", json!(shown)),
        ]);
        Ok(Ended::Well)
    }
}

impl SteerCrawl {
    fn run(&self, at: Address<'_>, out: &mut Output) -> Result<Ended, String> {
        let change = self.change()?;
        if change == CrawlChange::Delete {
            self.delete(at)?;
        } else {
            let frontier = at.open()?;
            let steered = pollster::block_on(frontier.steer_crawl(moment::now(), change));
            steered.map_err(|error| error.to_string())?;
        }
        out.card(&vec![("crawl", json!(at.crawl)), ("change", json!(self.change.join(" ")))]);
        Ok(Ended::Well)
    }

    /// Not through the crawl itself: one that cannot be read cannot be opened, and can be deleted.
    fn delete(&self, at: Address<'_>) -> Result<(), String> {
        if !self.yes {
            return Err(format!(
                "`delete` forgets the crawl `{}` with all its URLs, for good; if that is meant, write --yes behind it; nothing \
                 was changed",
                at.crawl
            ));
        }
        let store = at.store()?;
        let delete = Steer::Crawl(CrawlChange::Delete);
        match pollster::block_on(store.steer(at.crawl, moment::now(), delete)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Err(at.no_crawl(&*store)?),
            deleted => deleted.map(|_| ()).map_err(|error| error.to_string()),
        }
    }

    fn change(&self) -> Result<CrawlChange, String> {
        let words: Vec<&str> = self.change.iter().map(String::as_str).collect();
        if words != ["finish"] && self.reason.is_some() {
            return Err("--reason goes with `finish` alone; nothing was changed".to_owned());
        }
        if words != ["delete"] && self.yes {
            return Err("--yes goes with `delete` alone; nothing was changed".to_owned());
        }
        Ok(match words[..] {
            ["pause"] => CrawlChange::Pause,
            ["resume"] => CrawlChange::Resume,
            ["delete"] => CrawlChange::Delete,
            ["finish"] => {
                CrawlChange::Finish(self.reason.clone().unwrap_or_else(|| "an operator said so".to_owned()))
            }
            _ => {
                let expected = "write settings as name=value, or alone one of pause, resume, finish, delete";
                let set = |word: &&str| {
                    pair(word, expected).map(|(name, value)| (name.to_owned(), value.to_owned()))
                };
                CrawlChange::Set(words.iter().map(set).collect::<Result<_, String>>()?)
            }
        })
    }
}

fn pair<'a>(word: &'a str, expected: &str) -> Result<(&'a str, &'a str), String> {
    word.split_once('=').ok_or_else(|| format!("`{word}` is no change: {expected}; nothing was changed"))
}

fn terms(words: &[&str]) -> Result<Terms, String> {
    let expected =
        "write terms as name=value, or alone one of retire, reinstate, block=TIME, unblock, purge, delete";
    let mut terms = Terms::default();
    for word in words {
        let (name, value) = pair(word, expected)?;
        match name {
            "precedence" => terms.precedence = Some(number(name, value)?),
            "queue_budget" if value == "none" => terms.queue_budget = Some(NO_BUDGET),
            "queue_budget" => terms.queue_budget = Some(number(name, value)?),
            "balance_replenish" => terms.balance_replenish = Some(number(name, value)?),
            "delay" => {
                terms.delay = Some(parse_duration(value).map_err(|error| format!("`{name}`: {error}"))?);
            }
            "concurrency" => terms.concurrency = Some(number(name, value)?),
            "group" => terms.group = Some(Arc::from(if value == "none" { "" } else { value })),
            _ => {
                return Err(format!(
                    "there is no term `{name}`: terms are delay, concurrency, balance_replenish, queue_budget, precedence and \
                     group; nothing was changed"
                ));
            }
        }
    }
    Ok(terms)
}

fn number<N: TryFrom<u64>>(name: &str, value: &str) -> Result<N, String> {
    let number = value.parse::<u64>().ok().and_then(|number| N::try_from(number).ok());
    number.ok_or_else(|| {
        format!(
            "`{name}` cannot be `{value}`: write a whole number, not negative, that fits; nothing was changed"
        )
    })
}
