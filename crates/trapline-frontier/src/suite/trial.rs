//! One crawl on the store under test, with verbs short enough for a test's sentence: they wait for their answer, and
//! an error of the store is a panic that names the verb.

use std::time::Duration;

use trapline_core::{Candidate, IdentityKey, Request, Terms, Timestamp};

use super::{Arc, Harness, Store};
use crate::frontier::Frontier;
use crate::pattern::Pattern;
use crate::record::Record;
use crate::report::{
    CrawlReport, DeadLetter, JobReport, LeaseReport, Note, Page, Query, QueueReport, QueueState, Rows, Scan,
    Stats, UrlReport, UrlState,
};
use crate::settings::Settings;
use crate::store::StoreError;
use crate::verbs::{
    Admission, Answer, Claimed, CrawlChange, Lease, NoteWrite, Outcome, QueueChange, Settled, Settlement,
    Steer, Steered, Visit, Want,
};

/// The moment this many seconds after the start.
pub(super) fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

/// The start.
pub(super) const START: Timestamp = Timestamp::ZERO;

/// This many seconds.
pub(super) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// `http://HOST.example/NUMBER`, for numbers from 1.
pub(super) fn pages(host: &str, count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("http://{host}.example/{number}")).collect()
}

/// Settings written as `name=value name=value`.
pub(super) fn settings(text: &str) -> Settings {
    let mut settings = Settings::default();
    for pair in text.split_whitespace() {
        let (name, value) = pair.split_once('=').unwrap_or_else(|| panic!("`{pair}` is not name=value"));
        settings.set(name, value).unwrap_or_else(|error| panic!("{error}"));
    }
    settings
}

/// One crawl on the store under test.
pub(super) struct Trial<'h, H> {
    harness: &'h H,
    pub(super) frontier: Frontier,
}

impl<H> Clone for Trial<'_, H> {
    fn clone(&self) -> Self {
        Self { harness: self.harness, frontier: self.frontier.clone() }
    }
}

impl<'h, H: Harness> Trial<'h, H> {
    /// A crawl of one partition.
    pub(super) fn new(harness: &'h H, store: Arc<dyn Store>, settings: &str) -> Self {
        Self::named(harness, store, "suite", 1, settings)
    }

    /// A crawl of this name, with so many partitions.
    pub(super) fn named(
        harness: &'h H,
        store: Arc<dyn Store>,
        name: &str,
        partitions: u32,
        text: &str,
    ) -> Self {
        // A fixed key, so that a failure repeats.
        let builder = Frontier::builder(name)
            .settings(settings(text))
            .partitions(partitions)
            .key(IdentityKey::from_seed(7));
        let opened = harness.block_on(builder.open_shared(store, START));
        Self { harness, frontier: ok("open", opened) }
    }

    /// Waits for a verb whose errors are part of the test.
    pub(super) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.harness.block_on(future)
    }

    pub(super) fn candidate(&self, request: Request) -> Candidate {
        self.frontier.prepare(request).unwrap_or_else(|error| panic!("{error}"))
    }

    pub(super) fn get(&self, url: &str) -> Candidate {
        self.candidate(Request::get(url))
    }

    /// A candidate for a queue of the caller's own.
    pub(super) fn slot(&self, url: &str, slot: &str) -> Candidate {
        self.frontier.prepare_in(Request::get(url), Some(slot)).unwrap_or_else(|error| panic!("{error}"))
    }

    pub(super) fn admit(&self, now: Timestamp, batch: &[Candidate]) -> Vec<Admission> {
        let answers = ok("admit", self.wait(self.frontier.admit_candidates(now, batch)));
        assert_eq!(answers.len(), batch.len(), "admit answers each candidate");
        answers
    }

    pub(super) fn admit_one(&self, now: Timestamp, candidate: Candidate) -> Admission {
        let mut answers = self.admit(now, &[candidate]);
        answers.pop().unwrap_or_else(|| panic!("admit did not answer"))
    }

    pub(super) fn admit_url(&self, now: Timestamp, url: &str) -> Admission {
        self.admit_one(now, self.get(url))
    }

    /// Admits URLs that must be new.
    pub(super) fn add<U: AsRef<str>>(&self, now: Timestamp, urls: &[U]) {
        let batch: Vec<_> = urls.iter().map(|url| self.get(url.as_ref())).collect();
        self.add_candidates(now, &batch);
    }

    /// Admits candidates that must be new.
    pub(super) fn add_candidates(&self, now: Timestamp, batch: &[Candidate]) {
        for (answer, candidate) in self.admit(now, batch).iter().zip(batch) {
            assert_eq!(*answer, Admission::Added, "{}", candidate.request.url);
        }
    }

    pub(super) fn claim(&self, now: Timestamp, want: impl Into<Want>) -> Claimed {
        ok("claim", self.wait(self.frontier.claim(now, want)))
    }

    pub(super) fn leases(&self, now: Timestamp, want: impl Into<Want>) -> Vec<Lease> {
        self.claim(now, want).leases
    }

    /// The URLs that a claim gets.
    pub(super) fn urls(&self, now: Timestamp, want: impl Into<Want>) -> Vec<String> {
        self.leases(now, want).iter().map(|lease| lease.request.url.clone()).collect()
    }

    /// Claims one URL, which there must be.
    pub(super) fn one(&self, now: Timestamp) -> Lease {
        let mut leases = self.leases(now, 1);
        assert_eq!(leases.len(), 1, "a claim of one at {now}");
        leases.remove(0)
    }

    pub(super) fn settle(&self, now: Timestamp, batch: Vec<Settlement>) -> Vec<Settled> {
        let count = batch.len();
        let answers = ok("settle", self.wait(self.frontier.settle(now, batch)));
        assert_eq!(answers.len(), count, "settle answers each settlement");
        answers
    }

    pub(super) fn settle_one(&self, now: Timestamp, settlement: Settlement) -> Settled {
        self.settle(now, vec![settlement]).remove(0)
    }

    /// Settles a lease without links, notes or delay.
    pub(super) fn end(&self, now: Timestamp, lease: &Lease, outcome: Outcome) -> Answer {
        self.settle_one(now, Settlement::new(lease.id, outcome)).answer
    }

    /// Settles a lease as done.
    pub(super) fn done(&self, now: Timestamp, lease: &Lease) {
        assert_eq!(self.end(now, lease, Outcome::done()), Answer::Done, "{}", lease.request.url);
    }

    /// Settles a lease as dead.
    pub(super) fn dead(&self, now: Timestamp, lease: &Lease, reason: &str) {
        let outcome = Outcome::Dead { reason: reason.to_owned() };
        assert_eq!(self.end(now, lease, outcome), Answer::Dead, "{}", lease.request.url);
    }

    pub(super) fn steer(&self, now: Timestamp, steer: Steer) -> Steered {
        ok("steer", self.wait(self.frontier.steer(now, steer)))
    }

    pub(super) fn steer_queue(&self, now: Timestamp, key: &str, change: QueueChange) -> Steered {
        self.steer(now, Steer::Queue(key.to_owned(), change))
    }

    pub(super) fn terms(&self, now: Timestamp, key: &str, terms: Terms) {
        self.steer_queue(now, key, QueueChange::Terms(terms));
    }

    pub(super) fn steer_crawl(&self, now: Timestamp, change: CrawlChange) -> Steered {
        self.steer(now, Steer::Crawl(change))
    }

    /// Changes settings, which must be possible.
    pub(super) fn set(&self, now: Timestamp, name: &str, value: &str) {
        self.steer_crawl(now, CrawlChange::Set(vec![(name.to_owned(), value.to_owned())]));
    }

    pub(super) fn note(&self, now: Timestamp, key: &str, value: Option<&[u8]>, expires: Option<Timestamp>) {
        let value = value.map(<[u8]>::to_vec);
        self.steer_crawl(now, CrawlChange::Note(NoteWrite { key: key.to_owned(), value, expires }));
    }

    pub(super) fn report(&self, now: Timestamp) -> CrawlReport {
        ok("scan", self.wait(self.frontier.report(now)))
    }

    /// Without what goes on in a log when nothing changes: an empty batch may be written down, too.
    pub(super) fn stats(&self, now: Timestamp) -> Stats {
        let mut stats = ok("stats", self.wait(self.frontier.stats(now)));
        if let Some(disk) = &mut stats.disk {
            disk.log_position = 0;
        }
        stats
    }

    /// How a queue stands, which must be known.
    pub(super) fn queue(&self, now: Timestamp, key: &str) -> QueueReport {
        self.find_queue(now, key).unwrap_or_else(|| panic!("there is no queue {key}"))
    }

    pub(super) fn find_queue(&self, now: Timestamp, key: &str) -> Option<QueueReport> {
        ok("scan", self.wait(self.frontier.queue(now, key)))
    }

    pub(super) fn url(&self, now: Timestamp, url: &str) -> UrlReport {
        ok("scan", self.wait(self.frontier.url(now, url)))
    }

    pub(super) fn state(&self, now: Timestamp, url: &str) -> UrlState {
        self.url(now, url).state
    }

    pub(super) fn scan(&self, now: Timestamp, scan: &Scan) -> Page {
        ok("scan", self.wait(self.frontier.scan(now, scan)))
    }

    /// All rows of a query, fetched in pages of `limit`.
    fn walk<T>(
        &self,
        now: Timestamp,
        query: Query,
        limit: usize,
        pick: impl Fn(Rows) -> Option<Vec<T>>,
    ) -> Vec<T> {
        let mut scan = Scan { limit, ..Scan::new(query) };
        let mut all = Vec::new();
        loop {
            let page = self.scan(now, &scan);
            let rows = pick(page.rows).unwrap_or_else(|| panic!("{:?} got rows of another kind", scan.query));
            assert!(rows.len() <= limit, "{} rows on a page of {limit}: {:?}", rows.len(), scan.query);
            all.extend(rows);
            let Some(cursor) = page.cursor else { return all };
            assert_ne!(scan.cursor, Some(cursor), "the cursor of {:?} stands still", scan.query);
            scan.cursor = Some(cursor);
        }
    }

    pub(super) fn queues(&self, now: Timestamp, state: Option<QueueState>, limit: usize) -> Vec<QueueReport> {
        self.walk(now, Query::Queues { keys: None, state }, limit, |rows| match rows {
            Rows::Queues(queues) => Some(queues),
            _ => None,
        })
    }

    /// The URLs that fit every filter given.
    pub(super) fn known(
        &self,
        now: Timestamp,
        key: Option<&str>,
        pattern: Option<&str>,
        state: Option<UrlState>,
        limit: usize,
    ) -> Vec<UrlReport> {
        let query = Query::Urls { key: key.map(str::to_owned), pattern: pattern.map(Pattern::new), state };
        self.walk(now, query, limit, |rows| match rows {
            Rows::Urls(urls) => Some(urls),
            _ => None,
        })
    }

    /// The live leases, by number: the order in which a store lists them is its own.
    pub(super) fn live(&self, now: Timestamp, limit: usize) -> Vec<LeaseReport> {
        let mut leases = self.walk(now, Query::Leases, limit, |rows| match rows {
            Rows::Leases(leases) => Some(leases),
            _ => None,
        });
        leases.sort_by_key(|lease| lease.id);
        leases
    }

    /// The dead letters, by URL.
    pub(super) fn dead_letters(&self, now: Timestamp, limit: usize) -> Vec<DeadLetter> {
        let mut dead = self.walk(now, Query::Dead, limit, |rows| match rows {
            Rows::Dead(dead) => Some(dead),
            _ => None,
        });
        dead.sort_by(|a, b| a.request.url.cmp(&b.request.url));
        dead
    }

    /// The notes whose key begins so, by key.
    pub(super) fn notes(&self, now: Timestamp, prefix: &str, limit: usize) -> Vec<Note> {
        let query = Query::Notes { prefix: prefix.to_owned() };
        let mut notes = self.walk(now, query, limit, |rows| match rows {
            Rows::Notes(notes) => Some(notes),
            _ => None,
        });
        notes.sort_by(|a, b| a.key.cmp(&b.key));
        notes
    }

    /// Everything that a crawl remembers.
    pub(super) fn records(&self, now: Timestamp, limit: usize) -> Vec<Record> {
        self.walk(now, Query::Records, limit, |rows| match rows {
            Rows::Records(records) => Some(records),
            _ => None,
        })
    }

    /// Restores records, and answers how many were not known.
    pub(super) fn restore(&self, now: Timestamp, records: &[Record]) -> u64 {
        self.steer_crawl(now, CrawlChange::Restore(records.to_vec())).affected
    }

    /// The jobs under way.
    pub(super) fn jobs(&self, now: Timestamp) -> Vec<JobReport> {
        self.all_jobs(now).into_iter().filter(|job| !job.ended).collect()
    }

    /// The jobs that have ended.
    pub(super) fn ended_jobs(&self, now: Timestamp) -> Vec<JobReport> {
        self.all_jobs(now).into_iter().filter(|job| job.ended).collect()
    }

    fn all_jobs(&self, now: Timestamp) -> Vec<JobReport> {
        self.walk(now, Query::Jobs, 1000, |rows| match rows {
            Rows::Jobs(jobs) => Some(jobs),
            _ => None,
        })
    }

    /// Asks for the jobs until none is left, and answers what was seen of them on the way. Verbs are what lets a
    /// job go on, so there is nothing else to wait for.
    pub(super) fn finish_jobs(&self, now: Timestamp) -> Vec<JobReport> {
        let mut seen = Vec::new();
        for _ in 0..1_000_000 {
            let jobs = self.jobs(now);
            if jobs.is_empty() {
                return seen;
            }
            seen.extend(jobs);
        }
        panic!("after a million verbs a job still goes on: {:?}", seen.last());
    }
}

/// A visit that found this digest.
pub(super) fn visit(digest: &[u8]) -> Visit {
    Visit { status: 200, digest: Some(digest.to_vec()), ..Visit::default() }
}

/// The keys of what was claimed, in order.
pub(super) fn keys(leases: &[Lease]) -> Vec<&str> {
    leases.iter().map(|lease| &*lease.key).collect()
}

fn ok<T>(verb: &str, answer: Result<T, StoreError>) -> T {
    answer.unwrap_or_else(|error| panic!("{verb} failed ({:?}): {error}", error.kind()))
}
