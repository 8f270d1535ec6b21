//! The results in the output folder: `pages.jsonl`, a line a visit, and `skipped.jsonl`, what was not fetched and why.
//!
//! How long the files are is noted in the store with each settlement. After a crash, what is beyond that belongs to visits that
//! do not count, and is cut off: each visit that was settled has its line, once.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::json;
use trapline_crawl::ports::{Output, OutputError, Results};
use trapline_crawl::{PageLine, SkippedLine};
use trapline_frontier::NoteWrite;
use xxhash_rust::xxh3::xxh3_64;

use crate::{config, moment};

/// The version of the lines.
const SCHEMA: u32 = 1;

/// How many lines of `skipped.jsonl` are remembered, so that a link that every page has is told of once.
const REMEMBERED_MAX: usize = 1_000_000;

/// The results of a crawl in a folder.
pub(super) struct ResultFiles {
    /// The key of the note.
    note: String,
    files: Mutex<Files>,
    /// Whether each is wanted.
    pages: bool,
    skipped: bool,
}

struct Files {
    pages: Lines,
    skipped: Lines,
    told: BTreeSet<u64>,
    lines: Vec<u8>,
}

/// A file that grows.
struct Lines {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// What can be done if it cannot be written.
    remedy: &'static str,
}

impl ResultFiles {
    /// The note of files with nothing in them.
    pub(super) fn first_note(key: &str) -> NoteWrite {
        NoteWrite { key: key.to_owned(), value: Some(write_note((0, 0))), expires: None }
    }

    /// Opens the files of a folder, and cuts off what a note does not know of.
    pub(super) fn open(
        folder: &Path,
        note: String,
        noted: Option<&[u8]>,
        wanted: &config::Output,
        in_memory: bool,
    ) -> Result<Self, String> {
        let remedy = if in_memory {
            "Make room, then begin anew with --fresh: a crawl in memory: cannot go on"
        } else {
            "Nothing is lost: make room, then run the same command again"
        };
        let (pages, skipped) = match noted {
            None => (0, 0),
            Some(bytes) => read_note(bytes).ok_or("the note about the output in the store cannot be read")?,
        };
        let files = Files {
            pages: Lines::open(folder.join("pages.jsonl"), pages, noted.is_none(), remedy)?,
            skipped: Lines::open(folder.join("skipped.jsonl"), skipped, noted.is_none(), remedy)?,
            told: BTreeSet::new(),
            lines: Vec::new(),
        };
        Ok(Self { note, files: Mutex::new(files), pages: wanted.pages, skipped: wanted.skipped })
    }
}

impl ResultFiles {
    /// How long `pages.jsonl` is.
    pub(super) fn pages_bytes(&self) -> u64 {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).pages.bytes
    }
}

impl Lines {
    fn open(path: PathBuf, noted: u64, fresh: bool, remedy: &'static str) -> Result<Self, String> {
        let trouble = |error: std::io::Error| format!("cannot open {}: {error}", path.display());
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .write(true)
            .truncate(false)
            .open(&path)
            .map_err(trouble)?;
        let bytes = file.metadata().map_err(trouble)?.len();
        if fresh && bytes > 0 {
            return Err(format!(
                "{} holds results of another crawl: choose another folder with --out, or remove them with --fresh",
                path.display()
            ));
        }
        if bytes < noted {
            return Err(format!(
                "{} has {bytes} bytes, but the crawl had written {noted}: somebody cut it; put it back, or start over with \
                 --fresh",
                path.display()
            ));
        }
        file.set_len(noted).map_err(trouble)?;
        file.seek(SeekFrom::End(0)).map_err(trouble)?;
        Ok(Self { path, file, bytes: noted, remedy })
    }

    fn append(&mut self, lines: &[u8]) -> Result<(), OutputError> {
        if lines.is_empty() {
            return Ok(());
        }
        let written = self.file.write_all(lines).and_then(|()| self.file.sync_data());
        self.bytes += lines.len() as u64;
        written.map_err(|error| {
            OutputError(format!("cannot write to {}: {error}\n  {}", self.path.display(), self.remedy))
        })
    }
}

#[async_trait]
impl Output for ResultFiles {
    async fn write(&self, batch: &[Results]) -> Result<Vec<NoteWrite>, OutputError> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let files = &mut *files;
        let mut notes = Vec::with_capacity(batch.len());
        let (mut pages, mut skipped) = (std::mem::take(&mut files.lines), Vec::new());
        pages.clear();
        for results in batch {
            if let Some(page) = results.page.as_ref().filter(|_| self.pages) {
                write_line(&mut pages, &page_line(page));
            }
            for line in results.skipped.iter().filter(|_| self.skipped) {
                let print = xxh3_64(format!("{}\n{}", line.url, line.reason).as_bytes());
                if files.told.len() >= REMEMBERED_MAX {
                    files.told.clear();
                }
                if files.told.insert(print) {
                    write_line(&mut skipped, &skipped_line(line));
                }
            }
            let lengths =
                (files.pages.bytes + pages.len() as u64, files.skipped.bytes + skipped.len() as u64);
            notes.push(NoteWrite { key: self.note.clone(), value: Some(write_note(lengths)), expires: None });
        }
        files.pages.append(&pages)?;
        files.skipped.append(&skipped)?;
        files.lines = pages;
        Ok(notes)
    }
}

fn write_note((pages, skipped): (u64, u64)) -> Vec<u8> {
    format!("{pages} {skipped}").into_bytes()
}

/// How much of `pages.jsonl` belongs to visits that count, by the note about a folder.
pub(crate) fn noted_pages(note: &[u8]) -> Option<u64> {
    read_note(note).map(|(pages, _)| pages)
}

fn read_note(bytes: &[u8]) -> Option<(u64, u64)> {
    let (pages, skipped) = std::str::from_utf8(bytes).ok()?.split_once(' ')?;
    Some((pages.parse().ok()?, skipped.parse().ok()?))
}

fn write_line(lines: &mut Vec<u8>, value: &serde_json::Value) {
    // Writing to memory cannot fail.
    let _ = serde_json::to_writer(&mut *lines, value);
    lines.push(b'\n');
}

/// A visit. Names stay as they are; what is not known is left out.
fn page_line(page: &PageLine) -> serde_json::Value {
    let ms = |duration: std::time::Duration| (duration.as_secs_f64() * 1e6).round() / 1e3;
    let times = &page.times;
    let mut line = json!({
        "v": SCHEMA,
        "url": &*page.url,
        "at": moment::write(page.at),
        "outcome": page.outcome,
        "status": page.status,
        "ms": {
            "dns": ms(times.dns),
            "connect": ms(times.connect),
            "tls": ms(times.tls),
            "first_byte": times.first_byte.map(ms),
            "total": ms(times.total),
        },
        "bytes": page.encoded_bytes,
        "decoded_bytes": page.decoded_bytes,
        "links": page.links_found,
        "links_kept": page.links_kept,
        "depth": page.depth,
        "hops": page.hops,
        "lease": page.lease,
    });
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let more = [
        ("error", page.error.as_ref().map(|error| json!(error))),
        ("retries", (page.retries > 0).then(|| json!(page.retries))),
        ("address", page.address.as_ref().map(|address| json!(address))),
        ("protocol", page.protocol.map(|protocol| json!(protocol))),
        ("truncated", page.truncated.map(|truncated| json!(truncated))),
        ("not_modified", page.not_modified.then_some(json!(true))),
        ("redirect", page.redirect.as_ref().map(|redirect| json!(redirect))),
        ("canonical", page.canonical.as_ref().map(|canonical| json!(canonical))),
        ("mime", page.mime.as_ref().map(|mime| json!(mime))),
        ("charset", page.charset.map(|charset| json!(charset))),
        ("digest", page.digest.map(|digest| json!(format!("blake3:{}", hex(&digest))))),
        ("simhash", page.simhash.map(|simhash| json!(format!("{simhash:016x}")))),
        ("title", page.title.as_ref().map(|title| json!(title))),
        ("via", page.via.as_ref().map(|via| json!(via))),
        ("seed", page.seed.as_ref().map(|seed| json!(seed))),
        ("archived", (!page.archived.is_empty()).then(|| json!(page.archived))),
    ];
    for (name, value) in more {
        if let Some(value) = value {
            line[name] = value;
        }
    }
    line
}

fn skipped_line(skipped: &SkippedLine) -> serde_json::Value {
    let mut line = json!({
        "v": SCHEMA,
        "url": skipped.url,
        "reason": skipped.reason,
        "depth": skipped.depth,
    });
    for (name, value) in [("detail", &skipped.detail), ("via", &skipped.via)] {
        if let Some(value) = value {
            line[name] = json!(value);
        }
    }
    line
}
