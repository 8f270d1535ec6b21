//! What a crawl has done so far, counted: for those who watch it, and for its limits.

use std::collections::BTreeMap;
use std::time::Duration;

use trapline_core::Timestamp;
use trapline_frontier::{Admission, Outcome};

use crate::line::PageLine;
use crate::ports::Results;

/// How many hosts are told apart. Further ones are counted together.
const HOSTS_MAX: usize = 100_000;

/// What a crawl has done so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// Pages done in earlier runs.
    pub pages_before: u64,
    /// Bytes that came in earlier runs.
    pub bytes_before: u64,
    /// Pages done in this run: those with a response that was no reason to try again.
    pub pages: u64,
    /// Bytes of bodies in this run, as they came.
    pub bytes: u64,
    /// Requests that were made, those that failed among them.
    pub requests: u64,
    /// Pages of this run that came as they should: see [`PageLine::is_good`].
    pub good: u64,
    /// Visits of this run that are no pages: tried again, or given up.
    pub failed: u64,
    /// Visits that will be tried again.
    pub retries: u64,
    /// URLs that were given up.
    pub dead: u64,
    /// URLs that were not to be fetched.
    pub disregarded: u64,
    /// Leases that somebody else had by then, or that had expired.
    pub stale: u64,
    /// Seeds that were new.
    pub seeds: u64,
    /// Links that were new to the frontier.
    pub links_added: u64,
    /// Links that it knew.
    pub links_known: u64,
    /// Links that it did not take.
    pub links_refused: u64,
    /// How many fetches are under way.
    pub in_flight: usize,
    /// When the next one may begin, while none is under way and the frontier foresees one.
    pub next: Option<Timestamp>,
    /// Responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests without a response, by kind of error.
    pub errors: BTreeMap<String, u64>,
    /// What was not fetched, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Hosts that were asked. What does not fit is under the empty name.
    pub hosts: BTreeMap<String, HostTally>,
    /// The goal that the strategy has reached.
    pub goal: Option<String>,
    /// What the strategy had to say at the end.
    pub last_words: Option<String>,
    /// What keeps the crawl from going on at present: its store.
    pub trouble: Option<Trouble>,
    /// The same of its archives.
    pub archive_trouble: Option<Trouble>,
}

/// What keeps a crawl from going on: its store is away, or an archive cannot keep anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Since when.
    pub since: Timestamp,
    /// What was last attempted in vain, for people.
    pub why: String,
}

/// What came of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostTally {
    /// Requests.
    pub requests: u64,
    /// Pages done.
    pub pages: u64,
    /// Bytes that came.
    pub bytes: u64,
    /// Visits that are no pages.
    pub errors: u64,
    /// How long all requests took together.
    pub time: Duration,
}

impl Tally {
    /// Pages done in all runs.
    pub fn pages_ever(&self) -> u64 {
        self.pages_before + self.pages
    }

    /// Bytes that came in all runs.
    pub fn bytes_ever(&self) -> u64 {
        self.bytes_before + self.bytes
    }

    /// Counts a visit that was settled.
    pub(crate) fn count(&mut self, outcome: &Outcome, results: &Results) {
        match outcome {
            Outcome::Done { visit, .. } => {
                self.pages += 1;
                self.bytes += visit.bytes;
            }
            Outcome::Retry { .. } => self.retries += 1,
            Outcome::Dead { .. } => self.dead += 1,
            Outcome::Disregard { .. } => self.disregarded += 1,
            Outcome::Release | Outcome::Renew { .. } => {}
        }
        for skipped in &results.skipped {
            count(&mut self.skipped, &skipped.reason);
        }
        if let Some(page) = &results.page {
            self.page(page);
        }
    }

    fn page(&mut self, page: &PageLine) {
        self.requests += 1;
        if let Some(status) = page.status {
            *self.statuses.entry(status).or_default() += 1;
        }
        if let Some(error) = &page.error {
            count(&mut self.errors, error);
        }
        let host = host_of(&page.url);
        let host = if self.hosts.len() < HOSTS_MAX || self.hosts.contains_key(host) { host } else { "" };
        let host = match self.hosts.get_mut(host) {
            Some(host) => host,
            None => self.hosts.entry(host.to_owned()).or_default(),
        };
        host.requests += 1;
        host.bytes += page.encoded_bytes;
        host.time += page.times.total;
        let is_page = page.is_page();
        host.pages += u64::from(is_page);
        host.errors += u64::from(!is_page);
        self.failed += u64::from(!is_page);
        self.good += u64::from(page.is_good());
    }

    pub(crate) fn links(&mut self, admissions: &[Admission]) {
        for admission in admissions {
            match admission {
                Admission::Added | Admission::Restated => self.links_added += 1,
                Admission::Known | Admission::Rescored => self.links_known += 1,
                Admission::Refused(_) => self.links_refused += 1,
            }
        }
    }
}

fn count(counts: &mut BTreeMap<String, u64>, name: &str) {
    match counts.get_mut(name) {
        Some(count) => *count += 1,
        None => drop(counts.insert(name.to_owned(), 1)),
    }
}

/// The host and port of a URL, as it is written.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}
