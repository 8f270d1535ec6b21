//! A crawl that is being imported into: records are collected and restored in batches, and counted.

use serde_json::json;
use trapline_core::{KEY_BYTES_MAX, URL_BYTES_MAX};
use trapline_frontier::{CrawlChange, Frontier, NoteWrite, Record};

use super::Problem;
use crate::frontier_command::output::Row;
use crate::frontier_command::{IMPORT_NOTE, moment};

/// How much goes to the store at once, in records and in bytes of their lines.
const BATCH: usize = 1000;
const BATCH_BYTES: usize = 8 << 20;

/// What came of a crawl.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) crawl: String,
    pub(super) urls: u64,
    pub(super) imported: u64,
    pub(super) known: u64,
    pub(super) queues: u64,
    pub(super) notes: u64,
    pub(super) bad: u64,
}

impl Tally {
    pub(super) const COLUMNS: [&'static str; 7] =
        ["crawl", "urls", "imported", "known", "queues", "notes", "bad"];

    pub(super) fn new(crawl: &str) -> Self {
        Self { crawl: crawl.to_owned(), urls: 0, imported: 0, known: 0, queues: 0, notes: 0, bad: 0 }
    }

    pub(super) fn row(&self) -> Row {
        vec![
            ("crawl", json!(self.crawl)),
            ("urls", json!(self.urls)),
            ("imported", json!(self.imported)),
            ("known", json!(self.known)),
            ("queues", json!(self.queues)),
            ("notes", json!(self.notes)),
            ("bad", json!(self.bad)),
        ]
    }
}

/// A crawl and what is to be restored in it next.
pub(super) struct Target {
    pub(super) frontier: Frontier,
    pub(super) tally: Tally,
    /// All of one kind.
    batch: Vec<Record>,
    batch_bytes: usize,
    /// What is written with each batch: how far the import has come.
    pub(super) marker: Option<Vec<u8>>,
}

impl Target {
    pub(super) fn new(frontier: Frontier) -> Self {
        let tally = Tally::new(frontier.crawl());
        Self { frontier, tally, batch: Vec::new(), batch_bytes: 0, marker: None }
    }

    /// Collects a record; answers whether it is time to restore what was collected.
    pub(super) fn push(&mut self, record: Record, bytes: usize) -> Result<bool, Problem> {
        let other_kind = |last: &Record| std::mem::discriminant(last) != std::mem::discriminant(&record);
        if self.batch.last().is_some_and(other_kind) {
            self.flush()?;
        }
        self.batch.push(record);
        self.batch_bytes += bytes;
        Ok(self.batch.len() >= BATCH || self.batch_bytes >= BATCH_BYTES)
    }

    /// Restores what was collected.
    pub(super) fn flush(&mut self) -> Result<(), Problem> {
        self.batch_bytes = 0;
        let mut batch = std::mem::take(&mut self.batch);
        let Some(last) = batch.last() else { return Ok(()) };
        let count = batch.len() as u64;
        let kind = match last {
            Record::Url(_) => "url",
            Record::Queue(_) => "queue",
            Record::Note(_) => "note",
            Record::Crawl(_) => "crawl",
        };
        // In the same step as what it tells of.
        let marker = self.marker.clone().map(|value| {
            Record::Note(NoteWrite { key: IMPORT_NOTE.to_owned(), value: Some(value), expires: None })
        });
        let marked = u64::from(marker.is_some());
        batch.extend(marker);
        let restore = self.frontier.steer_crawl(moment::now(), CrawlChange::Restore(batch));
        let affected = pollster::block_on(restore)?.affected.saturating_sub(marked);
        match kind {
            "url" => {
                self.tally.imported += affected;
                self.tally.known += count.saturating_sub(affected);
            }
            "queue" => self.tally.queues += affected,
            "note" => self.tally.notes += affected,
            _ => {}
        }
        Ok(())
    }
}

/// What a store would refuse, and a whole batch with it.
pub(super) fn check_sizes(key: &str, url: &str) -> Result<(), String> {
    if !(1..=KEY_BYTES_MAX).contains(&key.len()) {
        return Err(format!("its queue's key has {} bytes, and keys have 1 to {KEY_BYTES_MAX}", key.len()));
    }
    if url.len() > URL_BYTES_MAX {
        return Err(format!("its URL has {} bytes, and a URL may have {URL_BYTES_MAX}", url.len()));
    }
    Ok(())
}
