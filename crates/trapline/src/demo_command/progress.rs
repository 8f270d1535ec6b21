//! How the demo tells that it goes on: a bar on a terminal, a line now and then elsewhere.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use trapline_core::Timestamp;
use trapline_frontier::{QueueState, Stats, UrlState};

use super::report::{clock, thousands};

/// Tells on standard error.
pub(super) enum Progress {
    Bar(ProgressBar),
    /// A line each time the virtual clock has doubled, so that there are few however long the crawl is, or
    /// after a while without one.
    Lines {
        next: Timestamp,
        last: Instant,
    },
}

const SILENCE_MAX: Duration = Duration::from_secs(5);

impl Progress {
    pub(super) fn new() -> Self {
        if !stderr().is_terminal() {
            return Self::Lines { next: Timestamp::from_millis(60_000), last: Instant::now() };
        }
        let style = ProgressStyle::with_template("{bar:30} {human_pos} of {human_len} known URLs\n{msg}")
            .expect("a template with keys that exist");
        Self::Bar(ProgressBar::new(0).with_style(style))
    }

    pub(super) fn tell(&mut self, now: Timestamp, stats: &Stats) {
        let known: u64 = stats.urls.iter().sum();
        let ended = known - stats.urls_in(UrlState::Pending) - stats.urls_in(UrlState::Leased);
        let clock = clock(now.since(Timestamp::ZERO));
        match self {
            Self::Bar(bar) => {
                bar.set_length(known);
                bar.set_position(ended);
                bar.set_message(format!("clock {clock}  {}", queues(stats)));
            }
            Self::Lines { next, last } => {
                if now < *next && last.elapsed() < SILENCE_MAX {
                    return;
                }
                *next = Timestamp::from_millis(now.as_millis() * 2);
                *last = Instant::now();
                let (ended, known) = (thousands(ended), thousands(known));
                let queues = queues(stats);
                // Progress that nobody reads any more is no reason to stop.
                let _ = writeln!(stderr(), "clock {clock:>8}  {ended:>9} of {known:>9} known URLs  {queues}");
            }
        }
    }

    pub(super) fn end(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// The queues by state, those of interest while a crawl goes on.
fn queues(stats: &Stats) -> String {
    [QueueState::Busy, QueueState::Snoozed, QueueState::Ready, QueueState::Inactive, QueueState::Empty]
        .map(|state| format!("{} {state}", thousands(stats.queues_in(state))))
        .join(", ")
}
