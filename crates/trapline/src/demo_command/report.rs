//! The demo's report: aligned tables for people.

use std::fmt;
use std::time::Duration;

use trapline_core::format_duration;
use trapline_frontier::{QueueState, UrlState};
use trapline_sim::{CrawlPlan, CrawlSummary, Ending, WebSize};

/// One run of the demo: what was asked for and what came of it.
pub(super) struct Run {
    pub(super) size: WebSize,
    pub(super) plan: CrawlPlan,
    pub(super) summary: CrawlSummary,
    pub(super) wall: Duration,
}

impl Run {
    /// Whether the frontier did what it promises.
    pub(super) fn is_sound(&self) -> bool {
        self.summary.politeness.violations == 0 && self.summary.repeated == 0
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { size, plan, .. } = self;
        writeln!(
            f,
            "Crawled a web of {} and {} (seed {}) with {}, a host left alone for {} after each fetch.",
            count(size.hosts.into(), "host"),
            count(size.pages.into(), "page"),
            plan.seed,
            count(plan.workers.into(), "worker"),
            format_duration(plan.delay),
        )?;
        self.pages(f)?;
        self.hosts(f)?;
        self.politeness(f)?;
        self.speed(f)?;
        if !self.is_sound() {
            writeln!(
                f,
                "\nThe frontier broke its word. That is a bug: please report it with the command you ran."
            )?;
        }
        Ok(())
    }
}

impl Run {
    fn pages(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let summary = &self.summary;
        let endings = &summary.endings;
        title(f, "Pages by outcome")?;
        for ending in Ending::ALL {
            let remark = match ending {
                Ending::Fetched => "",
                Ending::Redirected => "their targets were taken as links",
                Ending::NotFound => "dead letters",
                Ending::Broken => "dead letters, after three tries each",
                Ending::Disallowed => "disregarded, never requested",
            };
            row(f, &ending.to_string(), &thousands(endings.of(ending)), remark)?;
        }
        let once = match summary.repeated {
            0 => "each exactly once".to_owned(),
            repeated => format!("{} MORE THAN ONCE", thousands(repeated)),
        };
        row(f, "all", &thousands(endings.total()), &once)?;
        let unlinked = u64::from(self.size.pages) - (endings.total() - summary.repeated);
        row(f, "never linked to", &thousands(unlinked), "by any page that was fetched")?;

        title(f, "Requests and links")?;
        row(f, "requests", &thousands(summary.requests), &bytes(summary.stats.bytes))?;
        row(
            f,
            "retries, host down",
            &thousands(summary.retries_unavailable),
            "the whole host was left alone",
        )?;
        row(f, "retries, page failed", &thousands(summary.retries_broken), "later each time")?;
        row(f, "links found", &thousands(summary.links.found), "")?;
        row(f, "to new URLs", &thousands(summary.links.new), "")?;
        row(f, "to known URLs", &thousands(summary.links.known), "recognized and not queued again")
    }

    fn hosts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (summary, stats) = (&self.summary, &self.summary.stats);
        title(f, "Queues, one for each host")?;
        row(
            f,
            "done",
            &thousands(summary.hosts_done),
            &format!("of {}", count(self.size.hosts.into(), "host")),
        )?;
        for state in QueueState::ALL {
            let queues = stats.queues_in(state);
            if queues > 0 {
                row(f, &state.to_string(), &thousands(queues), "at the end")?;
            }
        }
        let open = stats.urls_in(UrlState::Pending) + stats.urls_in(UrlState::Leased);
        row(f, "URLs left in them", &thousands(open), "")?;
        row(f, "leases granted", &thousands(stats.granted), "")?;
        row(f, "leases expired", &thousands(stats.expired), "")?;

        title(f, "Done last")?;
        writeln!(f, "  {:<24}{:>9}{:>11}{:>13}{:>13}", "host", "pages", "requests", "answers in", "done at")?;
        for host in &summary.last_hosts {
            writeln!(
                f,
                "  {:<24}{:>9}{:>11}{:>13}{:>13}",
                host.name,
                thousands(host.pages),
                thousands(host.requests),
                format!("{} ms", thousands(millis(host.latency_mean()))),
                clock(Duration::from_millis(host.finished.as_millis())),
            )?;
        }
        Ok(())
    }

    fn politeness(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let politeness = &self.summary.politeness;
        title(f, "Politeness, measured at the hosts")?;
        let gap = politeness.gap_min.map_or_else(|| "none".to_owned(), format_duration);
        row(
            f,
            "shortest pause",
            &gap,
            &format!("from a fetch's end to the next start; {} asked for", format_duration(self.plan.delay)),
        )?;
        row(f, "most at once", &politeness.concurrency_max.to_string(), "fetches of one host")?;
        row(f, "violations", &thousands(politeness.violations), "")
    }

    fn speed(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let summary = &self.summary;
        let wall = self.wall.as_secs_f64().max(0.000_001);
        let faster = summary.took.as_secs_f64() / wall;
        let operations = summary.operations();
        title(f, "Speed")?;
        row(f, "virtual time", &clock(summary.took), "")?;
        let rate = format!("{:.1}", summary.requests_per_second());
        row(f, "requests a second", &rate, "in virtual time")?;
        row(f, "wall time", &format!("{wall:.2}s"), &format!("{} times as fast", thousands(faster as u64)))?;
        row(f, "frontier operations", &thousands(operations), "claims, leases, settlements, links admitted")?;
        let rate = thousands((operations as f64 / wall) as u64);
        row(f, "operations a second", &rate, "in wall time, the making of the web included")
    }
}

fn title(f: &mut fmt::Formatter<'_>, title: &str) -> fmt::Result {
    writeln!(f, "\n{title}")
}

fn row(f: &mut fmt::Formatter<'_>, label: &str, value: &str, remark: &str) -> fmt::Result {
    let line = format!("  {label:<22}{value:>11}  {remark}");
    writeln!(f, "{}", line.trim_end())
}

/// A number with its thousands apart: `1,234,567`.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// So many of something: `1 host`, `1,200 pages`.
fn count(number: u64, what: &str) -> String {
    format!("{} {what}{}", thousands(number), if number == 1 { "" } else { "s" })
}

/// A time as a clock would have it, in its two largest units: `41m 07s`, `3h 02m`, `2d 05h`.
pub(crate) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{:.1}s", time.as_secs_f64()),
        (0, 0, _) => format!("{minutes}m {:02}s", seconds % 60),
        (0, _, _) => format!("{hours}h {:02}m", minutes % 60),
        _ => format!("{days}d {:02}h", hours % 24),
    }
}

fn bytes(bytes: u64) -> String {
    let (unit, size) = if bytes < 1_000_000_000 { ("MB", 1_000_000) } else { ("GB", 1_000_000_000) };
    format!("{:.1} {unit} received", bytes as f64 / size as f64)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_easy_to_read() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(thousands(number), text);
        }
        for (millis, text) in [
            (0, "0.0s"),
            (59_940, "59.9s"),
            (60_000, "1m 00s"),
            (2_467_000, "41m 07s"),
            (10_920_000, "3h 02m"),
            (190_800_000, "2d 05h"),
        ] {
            assert_eq!(clock(Duration::from_millis(millis)), text);
        }
        assert_eq!((count(1, "host"), count(1_200, "page")), ("1 host".to_owned(), "1,200 pages".to_owned()));
    }
}
