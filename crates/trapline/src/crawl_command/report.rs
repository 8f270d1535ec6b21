//! The report at the end, of all runs together: what the files of results add up to.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde_json::{Value, json};
use trapline_core::SplitUrl;
use trapline_crawl::{is_good, is_page};
use trapline_frontier::{Stats, UrlState};

use super::ending::Ending;
use crate::demo_command::thousands;
use crate::size;

/// How many hosts, titles of reasons and the like are named.
const NAMED: usize = 20;

/// How many hosts are told apart, and how many names of anything else. What servers say of themselves has no end.
const HOSTS_MAX: usize = 100_000;
const NAMES_MAX: usize = 1000;

/// What all visits add up to.
#[derive(Default)]
pub(super) struct Report {
    visits: u64,
    pages: u64,
    /// Pages that came as they should.
    good: u64,
    bytes: u64,
    retries: u64,
    ms: f64,
    first: Option<String>,
    last: Option<String>,
    statuses: BTreeMap<String, u64>,
    errors: BTreeMap<String, u64>,
    mimes: BTreeMap<String, u64>,
    skipped: BTreeMap<String, u64>,
    hosts: BTreeMap<String, Host>,
    /// There are more hosts, which were small when there was no room for them any more.
    more_hosts: bool,
}

#[derive(Default)]
struct Host {
    pages: u64,
    bytes: u64,
    errors: u64,
    ms: f64,
}

impl Host {
    fn visits(&self) -> u64 {
        self.pages + self.errors
    }
}

impl Report {
    /// Reads the files of results.
    pub(super) fn read(folder: &Path) -> Result<Self, String> {
        let mut report = Self::default();
        each_line(&folder.join("pages.jsonl"), |line| report.page(line))?;
        each_line(&folder.join("skipped.jsonl"), |line| count(&mut report.skipped, text(line, "reason")))?;
        Ok(report)
    }

    fn page(&mut self, line: &Value) {
        self.visits += 1;
        let at = text(line, "at");
        if self.first.is_none() {
            self.first = Some(at.to_owned());
        }
        self.last = Some(at.to_owned());
        let bytes = line["bytes"].as_u64().unwrap_or_default();
        let ms = line["ms"]["total"].as_f64().unwrap_or_default();
        self.bytes += bytes;
        self.ms += ms;
        let done = is_page(text(line, "outcome"));
        self.pages += u64::from(done);
        self.retries += u64::from(text(line, "outcome") == "retry");
        let status = line["status"].as_u64().and_then(|status| u16::try_from(status).ok());
        self.good += u64::from(is_good(text(line, "outcome"), status, text(line, "hops")));
        if let Some(status) = status {
            count(&mut self.statuses, &status.to_string());
        }
        if let Some(error) = line["error"].as_str() {
            count(&mut self.errors, error);
        }
        if let Some(mime) = line["mime"].as_str().filter(|_| done) {
            count(&mut self.mimes, mime);
        }
        let url = SplitUrl::parse(text(line, "url"));
        let host = url.map(|url| url.host_and_port().to_owned()).unwrap_or_default();
        if self.hosts.len() >= HOSTS_MAX && !self.hosts.contains_key(&host) {
            self.forget_small_hosts();
        }
        let host = self.hosts.entry(host).or_default();
        host.pages += u64::from(done);
        host.errors += u64::from(!done);
        host.bytes += bytes;
        host.ms += ms;
    }

    /// Makes room: the half of the hosts with the fewest visits is forgotten.
    fn forget_small_hosts(&mut self) {
        let mut visits: Vec<u64> = self.hosts.values().map(Host::visits).collect();
        let (smaller, middle, _) = visits.select_nth_unstable(HOSTS_MAX / 2);
        let middle = *middle;
        let mut of_middle = smaller.iter().filter(|visits| **visits == middle).count() + 1;
        self.hosts.retain(|_, host| {
            let is_middle = host.visits() == middle && of_middle > 0;
            of_middle -= usize::from(is_middle);
            host.visits() >= middle && !is_middle
        });
        self.more_hosts = true;
    }

    /// How many pages were done, and how many of them came as they should.
    pub(super) fn pages(&self) -> (u64, u64) {
        (self.pages, self.good)
    }

    /// For programs. Names stay as they are. Without stats if the store is away.
    pub(super) fn json(&self, ending: &Ending, stats: Option<&Stats>) -> Value {
        let hosts: Vec<_> = self
            .largest_hosts()
            .map(|(name, host)| {
                json!({"host": name, "pages": host.pages, "errors": host.errors, "bytes": host.bytes,
                       "ms_average": average(host.ms, host.visits())})
            })
            .collect();
        json!({
            "v": 1,
            "ended": ending.name(),
            "visits": self.visits,
            "pages": self.pages,
            "failed": self.visits - self.pages,
            "retries": self.retries,
            "bytes": self.bytes,
            "first_visit": self.first,
            "last_visit": self.last,
            "ms_average": average(self.ms, self.visits),
            "pending": stats.map(|stats| stats.urls_in(UrlState::Pending)),
            "dead": stats.map(|stats| stats.urls_in(UrlState::Dead)),
            "disregarded": stats.map(|stats| stats.urls_in(UrlState::Disregarded)),
            "statuses": self.statuses,
            "errors": self.errors,
            "mimes": self.mimes,
            "skipped": self.skipped,
            "hosts_count": if self.more_hosts { HOSTS_MAX } else { self.hosts.len() },
            "hosts_more": self.more_hosts,
            "hosts": hosts,
        })
    }

    /// For people.
    pub(super) fn text(&self, ending: &Ending, stats: Option<&Stats>) -> String {
        let mut text = String::new();
        let mut line = |line: String| {
            // Writing to memory cannot fail.
            let _ = writeln!(text, "{line}");
        };
        line(format!("Ended: {}", ending.sentence()));
        let hosts = if self.more_hosts {
            format!("more than {}", thousands(HOSTS_MAX as u64))
        } else {
            thousands(self.hosts.len() as u64)
        };
        line(format!(
            "Pages: {} of {hosts} hosts, {} errors, {} in {} visits, {:.0} ms each",
            thousands(self.pages),
            thousands(self.visits - self.pages),
            size::about(self.bytes),
            thousands(self.visits),
            average(self.ms, self.visits)
        ));
        if let (Some(first), Some(last)) = (&self.first, &self.last) {
            line(format!("Visits: from {first} to {last}"));
        }
        line(match stats {
            Some(stats) => format!(
                "URLs: {} pending, {} given up, {} not to be fetched",
                thousands(stats.urls_in(UrlState::Pending)),
                thousands(stats.urls_in(UrlState::Dead)),
                thousands(stats.urls_in(UrlState::Disregarded))
            ),
            None => "URLs: not known, because the store is away".to_owned(),
        });
        for (title, counts) in [
            ("Statuses", &self.statuses),
            ("Without a response", &self.errors),
            ("Media types", &self.mimes),
            ("Not fetched", &self.skipped),
        ] {
            if counts.is_empty() {
                continue;
            }
            line(format!("\n{title}"));
            let mut counts: Vec<_> = counts.iter().collect();
            counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
            for (name, count) in counts.into_iter().take(NAMED) {
                line(format!("{:>12}  {}", thousands(*count), crate::output::plain(name)));
            }
        }
        line("\nHosts".to_owned());
        line(format!("{:>12}  {:>8}  {:>10}  {:>8}", "pages", "errors", "bytes", "ms"));
        for (name, host) in self.largest_hosts() {
            let ms = average(host.ms, host.visits());
            let (pages, bytes) = (thousands(host.pages), size::about(host.bytes));
            line(format!("{pages:>12}  {:>8}  {bytes:>10}  {ms:>8.0}  {name}", host.errors));
        }
        text
    }

    fn largest_hosts(&self) -> impl Iterator<Item = (&String, &Host)> {
        let mut hosts: Vec<_> = self.hosts.iter().collect();
        hosts.sort_by_key(|(_, host)| std::cmp::Reverse(host.visits()));
        hosts.into_iter().take(NAMED)
    }
}

fn average(sum: f64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { (sum / count as f64 * 10.0).round() / 10.0 }
}

fn text<'l>(line: &'l Value, name: &str) -> &'l str {
    line[name].as_str().unwrap_or_default()
}

fn count(counts: &mut BTreeMap<String, u64>, name: &str) {
    let room = counts.len() < NAMES_MAX;
    match counts.get_mut(name) {
        Some(count) => *count += 1,
        None if room => drop(counts.insert(name.to_owned(), 1)),
        None => *counts.entry("others".to_owned()).or_default() += 1,
    }
}

fn each_line(path: &Path, mut each: impl FnMut(&Value)) -> Result<(), String> {
    let trouble = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    let mut lines = BufReader::new(File::open(path).map_err(trouble)?);
    let mut line = Vec::new();
    loop {
        line.clear();
        if lines.read_until(b'\n', &mut line).map_err(trouble)? == 0 {
            return Ok(());
        }
        if let Ok(value) = serde_json::from_slice(&line) {
            each(&value);
        }
    }
}

#[cfg(test)]
mod tests {
    use trapline_crawl::CrawlEnd;

    use super::super::held::Held;
    use super::*;

    #[test]
    fn many_hosts_and_names_take_no_more_room_and_large_ones_are_kept() {
        let mut report = Report::default();
        let mut visit = |host: String, mime: String| {
            report.page(
                &json!({"url": format!("http://{host}/"), "outcome": "done", "status": 200, "mime": mime}),
            );
        };
        for number in 0..(3 * HOSTS_MAX as u64) {
            visit(format!("h{number}.test"), format!("x/{}", number % 3000));
            if number % 1000 == 0 {
                visit("large.test".to_owned(), "x/0".to_owned());
            }
        }
        assert!(report.hosts.len() <= HOSTS_MAX && report.mimes.len() <= NAMES_MAX + 1);
        assert_eq!(report.pages, 300_300);
        assert_eq!(report.mimes.values().sum::<u64>(), report.pages);
        let (name, host) = report.largest_hosts().next().unwrap();
        assert_eq!((name.as_str(), host.pages), ("large.test", 300));
        let text = report.text(
            &Ending {
                end: CrawlEnd::Exhausted,
                held: Held::default(),
                in_memory: false,
                is_served: false,
                strategy: [None, None],
            },
            None,
        );
        assert!(text.contains("Pages: 300,300 of more than 100,000 hosts, "), "{text}");
    }
}
