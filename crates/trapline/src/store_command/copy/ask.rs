//! Questions and commands to a crawl, waited for, with their troubles in words.

use std::sync::Arc;

use trapline_core::Timestamp;
use trapline_frontier::{
    CrawlChange, CrawlRecord, CrawlReport, ErrorKind, Frontier, NoteWrite, Query, Record, Rows, Scan, Stats,
    Store, StoreError,
};

use super::mark::{COPY_NOTE, Mark};
use super::pages::{self, QUEUES, URLS};

/// A moment that is past everywhere: no time passes for whoever is asked then.
pub(super) const AS_IT_IS: Timestamp = Timestamp::ZERO;

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` gives away")]
pub(super) fn told(error: StoreError) -> String {
    error.to_string()
}

pub(super) fn attach(store: &Arc<dyn Store>, crawl: &str) -> Result<Option<Frontier>, String> {
    match pollster::block_on(Frontier::builder(crawl).attach(Arc::clone(store), AS_IT_IS)) {
        Ok(frontier) => Ok(Some(frontier)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(told(error)),
    }
}

pub(super) fn report(frontier: &Frontier, now: Timestamp) -> Result<CrawlReport, String> {
    pollster::block_on(frontier.report(now)).map_err(told)
}

pub(super) fn stats(frontier: &Frontier, now: Timestamp) -> Result<Stats, String> {
    pollster::block_on(frontier.stats(now)).map_err(told)
}

pub(super) fn steer(frontier: &Frontier, now: Timestamp, change: CrawlChange) -> Result<(), String> {
    pollster::block_on(frontier.steer_crawl(now, change)).map(drop).map_err(told)
}

pub(super) fn restore(to: &Frontier, now: Timestamp, records: Vec<Record>) -> Result<u64, String> {
    let restored = pollster::block_on(to.steer_crawl(now, CrawlChange::Restore(records)));
    restored.map(|steered| steered.affected).map_err(told)
}

/// Writes a note, also in a crawl that is finished.
pub(super) fn write_note(frontier: &Frontier, now: Timestamp, note: NoteWrite) -> Result<(), String> {
    steer(frontier, now, CrawlChange::Note(note))
}

/// The value of a note, if it is there.
pub(super) fn note_of(frontier: &Frontier, key: &str) -> Result<Option<Vec<u8>>, String> {
    let scan = Scan { limit: 1, ..Scan::new(Query::Notes { prefix: key.to_owned() }) };
    match pollster::block_on(frontier.scan(AS_IT_IS, &scan)).map_err(told)?.rows {
        // They are listed by key: the first of those that begin so is the one, if it is there.
        Rows::Notes(notes) => Ok(notes.into_iter().find(|note| note.key == key).map(|note| note.value)),
        _ => Err("the store does not tell its notes".to_owned()),
    }
}

pub(super) fn mark_of(frontier: &Frontier) -> Result<Option<Vec<u8>>, String> {
    note_of(frontier, COPY_NOTE)
}

/// A page of notes, and where the next begins.
pub(super) fn notes(
    frontier: &Frontier,
    now: Timestamp,
    cursor: Option<u64>,
) -> Result<(Vec<NoteWrite>, Option<u64>), String> {
    let scan = Scan { cursor, limit: URLS, ..Scan::new(Query::Notes { prefix: String::new() }) };
    let page = pollster::block_on(frontier.scan(now, &scan)).map_err(told)?;
    let Rows::Notes(notes) = page.rows else { return Err("the store does not tell its notes".to_owned()) };
    let write = |note: trapline_frontier::Note| NoteWrite {
        key: note.key,
        value: Some(note.value),
        expires: note.expires,
    };
    Ok((notes.into_iter().map(write).collect(), page.cursor))
}

/// The counts of the crawl, the last of its records.
pub(super) fn counts(from: &Frontier, mark: &Mark) -> Result<CrawlRecord, String> {
    let mut at = mark.cursor;
    loop {
        let page = pages::page(from, mark.now, at, QUEUES)?;
        if let Some(Record::Crawl(counts)) = page.records.last() {
            return Ok(*counts);
        }
        at = Some(page.next.ok_or("the store does not tell the counts of the crawl")?);
    }
}

/// What goes on there, if something does.
pub(super) fn job_under_way(from: &Frontier, now: Timestamp) -> Result<Option<String>, String> {
    match pollster::block_on(from.scan(now, &Scan::new(Query::Jobs))).map_err(told)?.rows {
        Rows::Jobs(jobs) => Ok(jobs.into_iter().find(|job| !job.ended).map(|job| job.what)),
        _ => Ok(None),
    }
}
