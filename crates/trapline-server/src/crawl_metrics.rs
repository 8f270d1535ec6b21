//! What a crawl of the service counts. Labels come from fixed lists, never from what was fetched.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use trapline_crawl::PageLine;
use trapline_crawl::ports::SettledVisit;
use trapline_frontier::Outcome;

use crate::exposition::Exposition;
use crate::histogram::{Bounds, Histogram};

/// Responses by the first digit of their status, and visits without one.
const STATUSES: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", "error"];

/// What became of a page that was fetched before: put in line for another visit; and then.
const RECRAWLS: [&str; 4] = ["queued", "changed", "unchanged", "error"];

/// Fetches take longer than verbs. Counted in microseconds.
const FETCH_SECONDS: Bounds = &[
    ("0.005", 5_000),
    ("0.01", 10_000),
    ("0.025", 25_000),
    ("0.05", 50_000),
    ("0.1", 100_000),
    ("0.25", 250_000),
    ("0.5", 500_000),
    ("1", 1_000_000),
    ("2.5", 2_500_000),
    ("5", 5_000_000),
    ("10", 10_000_000),
    ("30", 30_000_000),
    ("60", 60_000_000),
];

const PAGE_BYTES: Bounds = &[
    ("1024", 1 << 10),
    ("4096", 4 << 10),
    ("16384", 16 << 10),
    ("65536", 64 << 10),
    ("262144", 256 << 10),
    ("1048576", 1 << 20),
    ("4194304", 4 << 20),
    ("16777216", 16 << 20),
];

/// The counts of a crawl.
pub(crate) struct CrawlMetrics {
    statuses: [AtomicU64; STATUSES.len()],
    recrawls: [AtomicU64; RECRAWLS.len()],
    fetch_seconds: Histogram,
    page_bytes: Histogram,
}

impl Default for CrawlMetrics {
    fn default() -> Self {
        Self {
            statuses: Default::default(),
            recrawls: Default::default(),
            fetch_seconds: Histogram::new(FETCH_SECONDS, 1e6),
            page_bytes: Histogram::new(PAGE_BYTES, 1.0),
        }
    }
}

impl CrawlMetrics {
    /// URLs were put in line to be visited again.
    pub(crate) fn queued(&self, urls: u64) {
        self.recrawls[0].fetch_add(urls, Relaxed);
    }

    pub(crate) fn visit(&self, visit: &SettledVisit<'_>) {
        let Some(page) = &visit.results.page else { return };
        let status = page.status.map_or(5, |status| (usize::from(status / 100).clamp(1, 5)) - 1);
        self.statuses[status].fetch_add(1, Relaxed);
        self.fetch_seconds.add(u64::try_from(page.times.total.as_micros()).unwrap_or(u64::MAX));
        if page.status.is_some() {
            self.page_bytes.add(page.encoded_bytes);
        }
        if page.visited_before {
            self.recrawls[recrawl(page)].fetch_add(1, Relaxed);
        }
        if matches!(visit.outcome, Outcome::Done { next: Some(_), .. }) {
            self.queued(1);
        }
    }

    pub(crate) fn write(&self, out: &mut Exposition) {
        out.family("trapline_pages_fetched_total", "counter", "Visits, by the class of their status.");
        for (status, count) in STATUSES.iter().zip(&self.statuses) {
            out.sample("", &[("status", status)], count.load(Relaxed));
        }
        let help =
            "Visits of pages that were visited before, by outcome; queued: visits that were scheduled.";
        out.family("trapline_recrawls_total", "counter", help);
        for (outcome, count) in RECRAWLS.iter().zip(&self.recrawls) {
            out.sample("", &[("outcome", outcome)], count.load(Relaxed));
        }
        out.family("trapline_fetch_seconds", "histogram", "How long fetches took, all in.");
        self.fetch_seconds.write(out, &[]);
        out.family("trapline_page_bytes", "histogram", "Bodies as they came, before decoding.");
        self.page_bytes.write(out, &[]);
    }
}

/// Which of [`RECRAWLS`] a visit is.
fn recrawl(page: &PageLine) -> usize {
    match (page.is_page(), page.changed) {
        (false, _) => 3,
        (true, true) => 1,
        (true, false) => 2,
    }
}
