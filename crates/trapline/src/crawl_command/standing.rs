//! How a crawl stands at a moment: for the panel, the lines, `status.json` and `trapline status`.

use std::cmp::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use trapline_core::{Timestamp, format_duration};
use trapline_crawl::{HostTally, Tally, Trouble};
use trapline_frontier::{QueueState, Stats, UrlState};

use crate::demo_command::{clock, thousands};

/// How many hosts are named.
const HOSTS: usize = 3;

/// How a crawl stands.
pub(super) struct Standing {
    pub(super) counted: Counted,
    pub(super) stats: Stats,
    pub(super) paused: bool,
    /// How long this run goes on.
    pub(super) runs: Duration,
    /// Pages a second, of late.
    pub(super) rate: f64,
    pub(super) concurrency: usize,
    pub(super) max_pages: Option<u64>,
    /// How it ended, if it has.
    pub(super) ended: Option<LastWord>,
}

/// How a crawl ended.
pub(super) struct LastWord {
    /// As in reports.
    pub(super) name: &'static str,
    /// Why it could not go on.
    pub(super) trouble: Option<String>,
}

/// What is told of a crawl's tally, which may be large.
pub(super) struct Counted {
    pages_ever: u64,
    bytes_ever: u64,
    retries: u64,
    errors: u64,
    in_flight: usize,
    next: Option<Timestamp>,
    trouble: Option<Trouble>,
    archive_trouble: Option<Trouble>,
    /// Names, and what is told of them.
    slowest: Vec<(String, String)>,
    largest: Vec<(String, String)>,
}

impl Counted {
    /// Hosts are gone through only if somebody wants to see them.
    pub(super) fn of(tally: &Tally, with_hosts: bool) -> Self {
        let seconds = |host: &HostTally| host.time.as_secs_f64() / host.requests.max(1) as f64;
        let hosts = || tally.hosts.iter().filter(|(name, _)| with_hosts && !name.is_empty());
        let name = |(name, _): &(&String, &HostTally)| (*name).clone();
        let slowest = top(hosts(), |a, b| seconds(a).total_cmp(&seconds(b)));
        let largest = top(hosts(), |a, b| a.pages.cmp(&b.pages));
        Self {
            pages_ever: tally.pages_ever(),
            bytes_ever: tally.bytes_ever(),
            retries: tally.retries,
            errors: tally.failed,
            in_flight: tally.in_flight,
            next: tally.next,
            trouble: tally.trouble.clone(),
            archive_trouble: tally.archive_trouble.clone(),
            slowest: slowest.iter().map(|host| (name(host), format!("{:.2} s", seconds(host.1)))).collect(),
            largest: largest
                .iter()
                .map(|host| (name(host), format!("{} pages", thousands(host.1.pages))))
                .collect(),
        }
    }
}

/// The few that come first, the greatest before the others.
fn top<'t>(
    hosts: impl Iterator<Item = (&'t String, &'t HostTally)>,
    compare: impl Fn(&HostTally, &HostTally) -> Ordering,
) -> Vec<(&'t String, &'t HostTally)> {
    let mut top: Vec<(&String, &HostTally)> = Vec::with_capacity(HOSTS + 1);
    for host in hosts {
        let place = top.partition_point(|better| compare(better.1, host.1) != Ordering::Less);
        if place < HOSTS {
            top.insert(place, host);
            top.truncate(HOSTS);
        }
    }
    top
}

impl Standing {
    fn pending(&self) -> u64 {
        self.stats.urls_in(UrlState::Pending)
    }

    fn queues(&self) -> u64 {
        let all: u64 = self.stats.queues.iter().sum();
        all - self.stats.queues_in(QueueState::Empty)
    }

    /// How long it may take yet, where that can be said: up to a limit, or for what is known so far.
    fn left(&self) -> Option<Duration> {
        if self.rate < 0.01 || self.paused {
            return None;
        }
        let known = self.pending() + self.stats.urls_in(UrlState::Leased);
        let pages = match self.max_pages {
            Some(most) => most.saturating_sub(self.counted.pages_ever).min(known),
            None => known,
        };
        Some(Duration::from_secs_f64((pages as f64 / self.rate).min(1e9)))
    }

    /// How long nothing is asked for, where the frontier foresees the next visit.
    fn waits(&self, now: Timestamp) -> Option<Duration> {
        if self.ended.is_some() || self.paused || self.counted.in_flight > 0 {
            return None;
        }
        let next = self.counted.next.filter(|next| *next > now)?;
        let seconds = u64::try_from(next.since(now).as_millis().div_ceil(1000));
        Some(Duration::from_secs(seconds.unwrap_or(u64::MAX)))
    }

    /// What keeps the crawl from going on.
    fn trouble(&self) -> Option<String> {
        if let Some(ended) = &self.ended {
            return ended.trouble.clone();
        }
        let since = |trouble: &Trouble| {
            let long = crate::moment::now().since(trouble.since);
            let long = format_duration(Duration::from_secs(long.as_secs()));
            format!("since {} ({long}), trying again: {}", crate::moment::write(trouble.since), trouble.why)
        };
        let store =
            self.counted.trouble.as_ref().map(|trouble| format!("the store is away {}", since(trouble)));
        store.or_else(|| {
            let trouble = self.counted.archive_trouble.as_ref()?;
            Some(format!("nothing is fetched {}", since(trouble)))
        })
    }

    /// One line for people.
    pub(super) fn line(&self) -> String {
        let paused = if self.paused { "paused, " } else { "" };
        let trouble = self.trouble().map(|trouble| format!("; {trouble}")).unwrap_or_default();
        let next =
            self.waits(crate::moment::now()).map(|wait| format!(" (next in {})", format_duration(wait)));
        format!(
            "{}  {paused}{} pages ({:.1}/s), {} pending in {} queues, {} in flight{}, {} errors, {}{trouble}",
            clock(self.runs),
            thousands(self.counted.pages_ever),
            self.rate,
            thousands(self.pending()),
            thousands(self.queues()),
            self.counted.in_flight,
            next.unwrap_or_default(),
            thousands(self.counted.errors),
            crate::size::about(self.counted.bytes_ever),
        )
    }

    /// Several lines for a terminal.
    pub(super) fn panel(&self) -> String {
        let mut lines = vec![self.line()];
        let names = |title: &str, hosts: &[(String, String)]| {
            let hosts: Vec<_> = hosts.iter().map(|(name, what)| format!("{name} ({what})")).collect();
            format!("  {title}: {}", if hosts.is_empty() { "-".to_owned() } else { hosts.join(", ") })
        };
        lines.push(names("slowest", &self.counted.slowest));
        lines.push(names("largest", &self.counted.largest));
        let queues = QueueState::ALL.iter().filter(|state| self.stats.queues_in(**state) > 0);
        let queues: Vec<_> =
            queues.map(|state| format!("{} {state}", thousands(self.stats.queues_in(*state)))).collect();
        lines.push(format!("  queues: {}", queues.join(", ")));
        if let Some(left) = self.left() {
            let what = if self.max_pages.is_some() { "up to the limit" } else { "for what is known so far" };
            lines.push(format!("  about {} left {what}", clock(left)));
        }
        lines.join("\n")
    }

    /// For programs. Names stay as they are.
    pub(super) fn json(&self) -> Value {
        let counts: serde_json::Map<_, _> = QueueState::ALL
            .iter()
            .map(|state| (state.to_string(), json!(self.stats.queues_in(*state))))
            .collect();
        json!({
            "v": 1,
            "at": crate::moment::write(crate::moment::now()),
            "pid": std::process::id(),
            "state": match &self.ended {
                Some(_) => "ended",
                None if self.paused => "paused",
                None => "running",
            },
            "ended": self.ended.as_ref().map(|ended| ended.name),
            "seconds": self.runs.as_secs_f64().round(),
            "pages": self.counted.pages_ever,
            "pages_per_second": (self.rate * 10.0).round() / 10.0,
            "bytes": self.counted.bytes_ever,
            "pending": self.pending(),
            "in_flight": if self.ended.is_some() { 0 } else { self.counted.in_flight },
            "in_flight_max": self.concurrency,
            "next": self.waits(crate::moment::now()).and(self.counted.next).map(crate::moment::write),
            "done": self.stats.urls_in(UrlState::Done),
            "dead": self.stats.urls_in(UrlState::Dead),
            "disregarded": self.stats.urls_in(UrlState::Disregarded),
            "retries": self.counted.retries,
            "errors": self.counted.errors,
            "queues": counts,
            "seconds_left": self.left().map(|left| left.as_secs()),
            "trouble": self.trouble(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crawl_that_only_waits_says_until_when() {
        let now = crate::moment::now();
        let standing = |next: Option<Timestamp>, in_flight, paused| Standing {
            counted: Counted::of(&Tally { next, in_flight, ..Tally::default() }, false),
            stats: Stats::default(),
            paused,
            runs: Duration::from_secs(5),
            rate: 0.0,
            concurrency: 1,
            max_pages: None,
            ended: None,
        };
        let later = now + Duration::from_millis(3_599_999);
        let waits = standing(Some(later), 0, false);
        assert_eq!(waits.waits(now), Some(Duration::from_secs(3600)));
        assert!(waits.line().contains(" 0 in flight (next in "), "{}", waits.line());
        assert_eq!(waits.json()["next"], crate::moment::write(later));
        for other in [
            standing(Some(later), 1, false),
            standing(Some(later), 0, true),
            standing(Some(now), 0, false),
            standing(None, 0, false),
        ] {
            assert!(!other.line().contains("next in") && other.json()["next"].is_null(), "{}", other.line());
        }
    }

    #[test]
    fn the_slowest_and_the_largest_hosts_are_named() {
        let host = |pages: u64, ms: u64| HostTally {
            requests: 1,
            pages,
            time: Duration::from_millis(ms),
            ..HostTally::default()
        };
        let hosts = [
            ("a", host(5, 10)),
            ("b", host(9, 400)),
            ("c", host(1, 30)),
            ("d", host(9, 20)),
            ("", host(99, 999)),
        ];
        let hosts = hosts.map(|(name, host)| (name.to_owned(), host)).into();
        let tally = Tally { hosts, ..Tally::default() };
        let names = |hosts: &[(String, String)]| {
            hosts.iter().map(|(name, what)| format!("{name} {what}")).collect::<Vec<_>>()
        };
        let counted = Counted::of(&tally, true);
        assert_eq!(names(&counted.slowest), ["b 0.40 s", "c 0.03 s", "d 0.02 s"]);
        assert_eq!(names(&counted.largest), ["b 9 pages", "d 9 pages", "a 5 pages"]);
        assert!(Counted::of(&tally, false).slowest.is_empty());
    }
}
