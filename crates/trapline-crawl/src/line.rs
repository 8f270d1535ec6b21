//! What is told of a visit, and of what was not fetched: the results of a crawl, as plain values.

use std::sync::Arc;

use trapline_core::Timestamp;

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
    /// Where it redirects to.
    pub redirect: Option<String>,
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
    /// The response itself, for outputs that keep more than a line.
    pub response: Arc<Response>,
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
