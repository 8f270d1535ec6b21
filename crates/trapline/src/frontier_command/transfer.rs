//! Whole crawls as lines of JSON, for `export` and `import`: our own format, and the dump of a URLFrontier.
//!
//! Our own has a header, then for each crawl a line of its own, its URLs, queues, notes and counts, and a line that says how
//! many there were; then a last line. What is missing at the end, or in between, is therefore noticed. Here lines are
//! only written and read; what is done with them is for the commands.

pub(super) mod read;
pub(super) mod urlfrontier;
pub(crate) mod write;

use serde_json::Value;
use trapline_core::{IdentityKey, Timestamp};
use trapline_frontier::{CrawlState, Settings};

use super::fields::Fields;

/// What the header calls the format.
pub(super) const FORMAT: &str = "trapline-frontier";
/// The version that is written, and the latest that is read.
pub(super) const VERSION: u32 = 1;

/// A crawl as its own line tells of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CrawlLine {
    pub(super) name: String,
    pub(super) key: IdentityKey,
    pub(super) partitions: u32,
    pub(super) settings: Settings,
    pub(super) state: CrawlState,
}

/// How many lines of each kind a crawl has, or a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) urls: u64,
    pub(super) queues: u64,
    pub(super) notes: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: Self) {
        self.urls += other.urls;
        self.queues += other.queues;
        self.notes += other.notes;
    }
}

/// Which format a file is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Our own.
    Trapline,
    /// What URLFrontier's `DumpURLs` writes.
    UrlFrontier,
}

impl Format {
    pub(super) const NAMES: [(&'static str, Self); 2] =
        [("trapline", Self::Trapline), ("urlfrontier", Self::UrlFrontier)];

    /// The format that a file's first line is in.
    pub(super) fn of(line: &Fields) -> Result<Self, String> {
        if line.has("format") {
            Ok(Self::Trapline)
        } else if line.has("known") || line.has("discovered") {
            Ok(Self::UrlFrontier)
        } else {
            Err("it is neither the header of an export, {\"format\":\"trapline-frontier\",…}, nor an item of a URLFrontier dump, \
                 {\"known\":…} or {\"discovered\":…}; a list of URLs is for `admit`"
                .to_owned())
        }
    }
}

/// A time: as people write it, or in milliseconds where that has too many digits.
fn write_time(at: Timestamp) -> Value {
    let text = super::moment::write(at);
    if trapline_core::parse_utc(&text) == Some(at) { Value::String(text) } else { at.as_millis().into() }
}
