//! `trapline store copy`: moves crawls from one store to another, whichever two they are.
//!
//! Everything is done with the verbs of a store: what a crawl remembers is scanned in one and restored in the other. Here are the
//! arguments and what is told; how one crawl is copied is in `course`.

mod ask;
mod compare;
mod course;
mod mark;
mod pages;
mod progress;
mod stop;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use trapline_core::parse_duration;
use trapline_frontier::{CrawlReport, Store};

use crate::ended::Ended;
use crate::output::{Output, Row, plain};
use crate::{moment, store_url};
use course::{Course, Outcome};
use progress::Progress;
use stop::Stop;

/// Copy crawls from one store to another
///
/// All crawls of FROM, or those that `--crawl` names, with everything in them: settings, URLs with their states, order and page records, due
/// times, dead letters, queues with terms, budgets, balances and waits, notes and counts. A store is disk:PATH, postgres://USER@HOST/DATABASE
/// or grpc://HOST:PORT; a folder is made if it is not there, a database needs its tables (`trapline store migrate`).
///
/// A crawl is paused in FROM before it is copied, and stays paused there: it is to run in one place. What is leased is waited for, for as long as
/// `--wait` says; a lease that is still out then stays behind, and its URL is pending in the copy. In the end both sides are read again
/// and compared. Only then does the copy take on the state that the original had: what ran goes on running, in TO.
///
/// Interrupted at any point, the same command goes on where it was. A crawl that is there already, and not the half-made copy of this
/// one, is left alone; one that is there and the same is passed over.
///
/// Exit code 0: everything is in TO. 1: there are differences, which are listed. 2: it could not be done, or not to the end.
#[derive(Args)]
#[command(after_help = "\
Examples:
  trapline store copy disk:crawl postgres://crawler@db.example/frontier
  trapline store copy postgres://crawler@db.example/frontier disk:back --crawl news
  trapline store copy disk:crawl disk:crawl --crawl news --as news-2
  trapline store copy disk:crawl grpc://127.0.0.1:7071
  trapline store copy disk:crawl postgres://crawler@db.example/frontier --verify-only")]
pub(super) struct CopyStore {
    /// The store with the crawls
    from: String,
    /// The store that they are to be in
    to: String,
    /// This crawl; may be given several times. All, unless there is one
    #[arg(long, value_name = "NAME")]
    crawl: Vec<String>,
    /// What the one crawl is called in TO
    #[arg(long = "as", value_name = "NAME")]
    other_name: Option<String>,
    /// Wait so long for open leases to be settled or to expire
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = |text: &str| duration(text))]
    wait: Duration,
    /// Leave the copy paused, until it is resumed
    #[arg(long)]
    paused: bool,
    /// Do not pause the crawl in FROM. What changes there meanwhile may be in the copy or not; the copy is left paused
    #[arg(long)]
    leave_running: bool,
    /// Throw away the half-made copy that an earlier command left, and begin anew
    #[arg(long)]
    anew: bool,
    /// Copy nothing; compare what is there
    #[arg(long, conflicts_with_all = ["anew", "paused", "leave_running"])]
    verify_only: bool,
}

/// So many differences are listed for people.
const LISTED_MAX: usize = 20;

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

impl CopyStore {
    pub(super) fn run(&self, out: &mut Output) -> Result<Ended, String> {
        let (from, to) = (store_url::shown(&self.from), store_url::shown(&self.to));
        for (url, why) in [
            (&self.from, "there is nothing in it yet when a command begins"),
            (&self.to, "the copy would be gone with this command"),
        ] {
            if store_url::place(url)? == "memory:" {
                return Err(format!(
                    "`memory:` keeps nothing from one command to the next: {why}; name a store that does, such as disk:crawl"
                ));
            }
        }
        let (place, to_place) = (store_url::place(&self.from)?, store_url::place(&self.to)?);
        if let Some(path) = store_url::empty_folder(&self.from) {
            return Err(format!("there is no store in `{path}`: there is nothing to copy"));
        }
        if self.verify_only
            && let Some(path) = store_url::empty_folder(&self.to)
        {
            return Err(format!("there is no store in `{path}`: there is nothing to compare with"));
        }
        let source = store_url::share_and_follow(&self.from)?;
        let chosen = self.chosen(&*source, &from)?;
        let names: Vec<_> = chosen.iter().map(|crawl| crawl.name.to_string()).collect();
        if place == to_place
            && let Some(name) = names.iter().find(|name| self.name_in_copy(name) == **name)
        {
            return Err(format!(
                "`{}` would be copied onto itself: {from} and {to} are one store; give the copy another name with --as",
                plain(name)
            ));
        }
        let stop = Stop::listen();
        let target =
            if place == to_place { Arc::clone(&source) } else { store_url::share_and_follow(&self.to)? };
        let mut progress = Progress::new();
        let mut ended = Ended::Well;
        for name in &names {
            let course = Course {
                from: &from,
                to: &to,
                place: &place,
                source: &source,
                target: &target,
                crawl: name,
                copy: self.name_in_copy(name),
                wait: self.wait,
                stays_paused: self.paused || self.leave_running,
                leaves_running: self.leave_running,
                anew: self.anew,
                clock: &moment::now,
                stop: &stop,
            };
            let done =
                if self.verify_only { course.compare(&mut progress) } else { course.run(&mut progress) };
            progress.end();
            let outcome = done?;
            show(&course, &outcome, out);
            if !outcome.compared.differences.is_empty() {
                ended = Ended::WithComplaints;
            }
        }
        Ok(ended)
    }

    /// What a crawl is called in the copy.
    fn name_in_copy<'a>(&'a self, name: &'a str) -> &'a str {
        self.other_name.as_deref().unwrap_or(name)
    }

    /// The crawls that are to be copied.
    fn chosen(&self, source: &dyn Store, from: &str) -> Result<Vec<CrawlReport>, String> {
        let crawls = pollster::block_on(trapline_frontier::crawls(source, moment::now()));
        let mut crawls = crawls.map_err(|error| error.to_string())?;
        if crawls.is_empty() {
            return Err(format!("there is no crawl in {from}: there is nothing to copy"));
        }
        if let Some(absent) =
            self.crawl.iter().find(|name| !crawls.iter().any(|crawl| *crawl.name == ***name))
        {
            let there: Vec<_> =
                crawls.iter().take(10).map(|crawl| format!("`{}`", plain(&crawl.name))).collect();
            let more =
                if crawls.len() > 10 { format!(" and {} more", crawls.len() - 10) } else { String::new() };
            return Err(format!(
                "there is no crawl `{}` in {from}; there is {}{more}",
                plain(absent),
                there.join(", ")
            ));
        }
        if !self.crawl.is_empty() {
            crawls.retain(|crawl| self.crawl.iter().any(|name| **name == *crawl.name));
        }
        if self.other_name.is_some() && crawls.len() > 1 {
            return Err(format!(
                "--as names one crawl, and {} are to be copied: choose one with --crawl",
                crawls.len()
            ));
        }
        Ok(crawls)
    }
}

fn show(course: &Course<'_>, outcome: &Outcome, out: &mut Output) {
    let compared = &outcome.compared;
    let differences: Value = if out.is_json() {
        compared.differences.iter().map(compare::Difference::value).collect()
    } else {
        let more = if compared.and_more { "more than " } else { "" };
        json!(format!("{more}{}", compared.differences.len()))
    };
    let row: Row = vec![
        ("crawl", json!(course.crawl)),
        ("from", json!(course.from)),
        ("to", json!(course.to)),
        ("as", json!(course.copy)),
        ("urls", json!(compared.urls)),
        ("queues", json!(compared.queues)),
        ("notes", json!(compared.notes)),
        ("leases_left_behind", json!(outcome.leased)),
        ("done", json!(outcome.done)),
        ("state", json!(outcome.state)),
        ("differences", differences),
        ("and_more", json!(compared.and_more)),
    ];
    let hidden = ["from", "to", "and_more"];
    let shown: Row = row.iter().filter(|(name, _)| !hidden.contains(name)).cloned().collect();
    out.card(if out.is_json() { &row } else { &shown });
    for difference in compared.differences.iter().take(LISTED_MAX) {
        let compare::Difference { kind, name, what } = difference;
        let name = if name.is_empty() { String::new() } else { format!(" {}", plain(name)) };
        out.say(&format!("  {kind}{name}: {}", plain(what)));
    }
    let more = compared.differences.len().saturating_sub(LISTED_MAX);
    if more > 0 {
        out.say(&format!("  … and {more} more, which --json lists"));
    }
    for sentence in course.sentences(outcome) {
        out.say(&sentence);
    }
    out.flush();
}
