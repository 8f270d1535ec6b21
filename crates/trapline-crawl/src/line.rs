//! What is told of a visit, and of what was not fetched: the results of a crawl, as plain values.

use std::sync::Arc;

use trapline_core::Timestamp;

use crate::fetch::SITEMAP_HOP;
use crate::response::{Response, ResponseTimes};

/// One visit.
#[derive(Clone, Debug)]
pub struct PageLine {
    /// What was fetched.
    pub url: Arc<str>,
    /// When it began.
    pub at: Timestamp,
    /// Which lease it was fetched under: no two visits have the same.
    pub lease: u64,
    /// What became of it: `done`, `retry` or `dead`.
    pub outcome: &'static str,
    /// The status; None if there was no response.
    pub status: Option<u16>,
    /// Why there was none, in a word.
    pub error: Option<String>,
    /// How often it was tried before.
    pub retries: u32,
    /// How long everything took.
    pub times: ResponseTimes,
    /// The body before decoding, in bytes.
    pub encoded_bytes: u64,
    /// The body after that.
    pub decoded_bytes: u64,
    /// Who answered.
    pub address: Option<String>,
    /// What was spoken.
    pub protocol: Option<&'static str>,
    /// Why the body is not all there.
    pub truncated: Option<&'static str>,
    /// The page is as it was.
    pub not_modified: bool,
    /// There was a page at this URL before.
    pub visited_before: bool,
    /// It is another one now. Never without one before, nor without one now.
    pub changed: bool,
    /// Where it redirects to.
    pub redirect: Option<String>,
    /// Under which of its URLs it is to be known, if a solver was chosen.
    pub canonical: Option<String>,
    /// Its media type.
    pub mime: Option<String>,
    /// The encoding of its text.
    pub charset: Option<&'static str>,
    /// BLAKE3 of the decoded body.
    pub digest: Option<[u8; 32]>,
    /// SimHash of the visible text.
    pub simhash: Option<u64>,
    /// Its title.
    pub title: Option<String>,
    /// How many links were found in it.
    pub links_found: usize,
    /// How many of them were handed to the frontier.
    pub links_kept: usize,
    /// The page on which its URL was found.
    pub via: Option<String>,
    /// How many links from a seed.
    pub depth: u32,
    /// How it was reached, a letter a hop.
    pub hops: String,
    /// The seed it descends from.
    pub seed: Option<String>,
    /// Where archives keep it.
    pub archived: Vec<String>,
    /// The response itself, for outputs that keep more than a line.
    pub response: Arc<Response>,
}

impl PageLine {
    /// Whether it is a page: its outcome is `done`, whatever the status. All other visits are errors.
    pub fn is_page(&self) -> bool {
        is_page(self.outcome)
    }

    /// Whether it is a page that came as it should.
    pub fn is_good(&self) -> bool {
        is_good(self.outcome, self.status, &self.hops)
    }
}

/// Whether a visit with this outcome is a page; otherwise it is an error.
pub fn is_page(outcome: &str) -> bool {
    outcome == "done"
}

/// Whether a visit is a page that came as it should, or is as it was. A sitemap is found, and nobody wanted to have it.
pub fn is_good(outcome: &str, status: Option<u16>, hops: &str) -> bool {
    let is_sitemap = hops.trim_end_matches('R').ends_with(SITEMAP_HOP);
    is_page(outcome) && !is_sitemap && matches!(status, Some(200..=299 | 304))
}

/// Something that is not fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedLine {
    /// What.
    pub url: String,
    /// Why, in a word or two: the name of the rule.
    pub reason: String,
    /// More about it.
    pub detail: Option<String>,
    /// Where it was found.
    pub via: Option<String>,
    /// How many links from a seed.
    pub depth: u32,
}
