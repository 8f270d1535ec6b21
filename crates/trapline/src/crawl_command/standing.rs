//! How a crawl stands at a moment: for the panel, the lines, `status.json` and `trapline status`.

use std::time::Duration;

use serde_json::{Value, json};
use trapline_core::format_duration;
use trapline_crawl::Tally;
use trapline_frontier::{QueueState, Stats, UrlState};

use crate::demo_command::{clock, thousands};

/// How many hosts are named.
const HOSTS: usize = 3;

/// How a crawl stands.
pub(super) struct Standing {
    pub(super) tally: Tally,
    pub(super) stats: Stats,
    pub(super) paused: bool,
    /// How long this run goes on.
    pub(super) runs: Duration,
    /// Pages a second, of late.
    pub(super) rate: f64,
    pub(super) concurrency: usize,
    pub(super) max_pages: Option<u64>,
}

impl Standing {
    fn pending(&self) -> u64 {
        self.stats.urls_in(UrlState::Pending)
    }

    fn queues(&self) -> u64 {
        let all: u64 = self.stats.queues.iter().sum();
        all - self.stats.queues_in(QueueState::Empty)
    }

    fn errors(&self) -> u64 {
        self.tally.errors.values().sum::<u64>()
            + self
                .tally
                .statuses
                .iter()
                .filter(|(status, _)| **status >= 400)
                .map(|(_, count)| count)
                .sum::<u64>()
    }

    /// How long it may take yet, where that can be said: up to a limit, or for what is known so far.
    fn left(&self) -> Option<Duration> {
        if self.rate < 0.01 || self.paused {
            return None;
        }
        let known = self.pending() + self.stats.urls_in(UrlState::Leased);
        let pages = match self.max_pages {
            Some(most) => most.saturating_sub(self.tally.pages_ever()).min(known),
            None => known,
        };
        Some(Duration::from_secs_f64((pages as f64 / self.rate).min(1e9)))
    }

    /// What keeps the crawl from going on.
    fn trouble(&self) -> Option<String> {
        let trouble = self.tally.trouble.as_ref()?;
        let (since, now) = (trouble.since, crate::moment::now());
        let long = format_duration(Duration::from_secs(now.since(since).as_secs()));
        Some(format!(
            "the store is away since {} ({long}), trying again: {}",
            crate::moment::write(since),
            trouble.why
        ))
    }

    /// One line for people.
    pub(super) fn line(&self) -> String {
        let paused = if self.paused { "paused, " } else { "" };
        let trouble = self.trouble().map(|trouble| format!("; {trouble}")).unwrap_or_default();
        format!(
            "{}  {paused}{} pages ({:.1}/s), {} pending in {} queues, {} in flight, {} errors, {}{trouble}",
            clock(self.runs),
            thousands(self.tally.pages_ever()),
            self.rate,
            thousands(self.pending()),
            thousands(self.queues()),
            self.tally.in_flight,
            thousands(self.errors()),
            size(self.tally.bytes_ever()),
        )
    }

    /// Several lines for a terminal.
    pub(super) fn panel(&self) -> String {
        let mut lines = vec![self.line()];
        let names = |title: &str, hosts: Vec<(&String, String)>| {
            let hosts: Vec<_> = hosts.iter().map(|(name, what)| format!("{name} ({what})")).collect();
            format!("  {title}: {}", if hosts.is_empty() { "-".to_owned() } else { hosts.join(", ") })
        };
        let mut hosts: Vec<_> = self.tally.hosts.iter().filter(|(name, _)| !name.is_empty()).collect();
        let average =
            |host: &trapline_crawl::HostTally| host.time.as_secs_f64() / host.requests.max(1) as f64;
        hosts.sort_by(|(_, a), (_, b)| average(b).total_cmp(&average(a)));
        let slowest = hosts.iter().take(HOSTS).map(|(name, host)| (*name, format!("{:.2} s", average(host))));
        lines.push(names("slowest", slowest.collect()));
        hosts.sort_by_key(|(_, host)| std::cmp::Reverse(host.pages));
        let largest =
            hosts.iter().take(HOSTS).map(|(name, host)| (*name, format!("{} pages", thousands(host.pages))));
        lines.push(names("largest", largest.collect()));
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
            "state": if self.paused { "paused" } else { "running" },
            "seconds": self.runs.as_secs_f64().round(),
            "pages": self.tally.pages_ever(),
            "pages_per_second": (self.rate * 10.0).round() / 10.0,
            "bytes": self.tally.bytes_ever(),
            "pending": self.pending(),
            "in_flight": self.tally.in_flight,
            "in_flight_max": self.concurrency,
            "done": self.stats.urls_in(UrlState::Done),
            "dead": self.stats.urls_in(UrlState::Dead),
            "disregarded": self.stats.urls_in(UrlState::Disregarded),
            "retries": self.tally.retries,
            "errors": self.errors(),
            "queues": counts,
            "seconds_left": self.left().map(|left| left.as_secs()),
            "trouble": self.trouble(),
        })
    }
}

/// Bytes for people.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut size = bytes as f64;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{size:.1} {}", UNITS[unit]) }
}
