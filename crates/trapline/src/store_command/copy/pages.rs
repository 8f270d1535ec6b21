//! The records of a crawl, page by page, read ahead by a thread of its own: while one page is written, the next is read.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

use trapline_core::Timestamp;
use trapline_frontier::{Frontier, Query, Record, Rows, Scan};

/// How many records are asked for at once, and how many queues: those are put in order for each page. Few in tests, so that a
/// small crawl has many pages.
pub(super) const URLS: usize = if cfg!(test) { 7 } else { 1000 };
pub(super) const QUEUES: usize = if cfg!(test) { 3 } else { 50_000 };

/// Some records, and where they are.
pub(super) struct RecordsPage {
    /// Where it begins.
    pub(super) at: Option<u64>,
    pub(super) records: Vec<Record>,
    /// Where the next begins; None if this is the last.
    pub(super) next: Option<u64>,
}

/// The pages from a place on.
pub(super) struct Pages {
    /// None once nobody wants more, which ends the thread.
    pages: Option<Receiver<Result<RecordsPage, String>>>,
    reader: Option<JoinHandle<()>>,
}

impl Pages {
    /// Begins to read, at one moment: the crawl stands still as long as nobody else uses it.
    pub(super) fn read(frontier: &Frontier, now: Timestamp, from: Option<u64>, limit: usize) -> Self {
        let (sender, pages) = sync_channel(1);
        let frontier = frontier.clone();
        let reader = std::thread::spawn(move || {
            let mut at = from;
            loop {
                let page = page(&frontier, now, at, limit);
                let next = page.as_ref().ok().and_then(|page| page.next);
                if sender.send(page).is_err() || next.is_none() {
                    return;
                }
                at = next;
            }
        });
        Self { pages: Some(pages), reader: Some(reader) }
    }
}

impl Iterator for Pages {
    type Item = Result<RecordsPage, String>;

    fn next(&mut self) -> Option<Self::Item> {
        self.pages.as_ref()?.recv().ok()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.pages = None;
        if let Some(reader) = self.reader.take() {
            // If it panicked, it has said so.
            let _ = reader.join();
        }
    }
}

/// One page.
pub(super) fn page(
    frontier: &Frontier,
    now: Timestamp,
    at: Option<u64>,
    limit: usize,
) -> Result<RecordsPage, String> {
    let scan = Scan { cursor: at, limit, ..Scan::new(Query::Records) };
    let page = pollster::block_on(frontier.scan(now, &scan)).map_err(|error| error.to_string())?;
    match page.rows {
        Rows::Records(records) => Ok(RecordsPage { at, records, next: page.cursor }),
        _ => Err("the store does not tell its records".to_owned()),
    }
}
