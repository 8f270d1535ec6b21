//! Reading a log from end to end without opening it: every record that is whole, and every place that is not.
//!
//! Nothing is written, so it can be done beside a process that owns the folder: what that one is just writing looks
//! like a torn end.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::files::{Files, LogFile};
use super::record::{self, Found, Record};
use super::segment::{BadHeader, FORMAT, HEADER, Seal, Segment};
use super::snapshot;

/// Something that was whole once and is not any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: String,
    /// Where in it, if it is there at all.
    pub bytes: Option<Range<u64>>,
    /// What is wrong there, and what is lost by it.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.bytes {
            Some(Range { start, end }) => write!(f, "{}, bytes {start} to {end}: {}", self.file, self.what),
            None => write!(f, "{}: {}", self.file, self.what),
        }
    }
}

/// What a log was found to have in it.
#[derive(Debug, Default)]
pub(crate) struct Scanned {
    pub(crate) store: Option<u128>,
    /// The last segment, but for one that was only begun.
    pub(crate) newest: u64,
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    /// The number that the next record would have.
    pub(crate) next: u64,
    pub(crate) damages: Vec<Damage>,
    /// The end of the log, if it is torn.
    pub(crate) torn: Option<Damage>,
    /// A format that this version does not know.
    pub(crate) newer: Option<String>,
}

/// The segment before which nothing can be replayed: the first one, unless the store was repaired.
pub(crate) fn origin(files: &dyn Files) -> io::Result<u64> {
    let mut origin = 1;
    for name in files.list()? {
        if let Some(number) = Segment::number_of(&name)
            && let Ok(segment) = Segment::read(&files.open(&name)?.read_at(0, HEADER as usize)?)
            && segment.is_origin
        {
            origin = number.max(origin);
        }
    }
    Ok(origin)
}

/// The segment from which on a log is to be gone through: the first one, unless the store was repaired, or segments were removed
/// because nothing in them is needed: then that in which the oldest snapshot goes on.
pub(crate) fn begin(files: &dyn Files) -> io::Result<u64> {
    let names = files.list()?;
    let segments: BTreeSet<u64> = names.iter().filter_map(|name| Segment::number_of(name)).collect();
    let snapshots: BTreeSet<u64> = names.iter().filter_map(|name| snapshot::number_of(name)).collect();
    let mut headers =
        snapshots.iter().filter_map(|number| snapshot::read_header(files, &snapshot::name(*number)).ok());
    let removed = headers.find_map(|header| {
        let before = header.position.segment;
        let mut missing = (1..before).filter(|number| !segments.contains(number)).peekable();
        let has_missing = missing.peek().is_some();
        let ledger = header.ledger?;
        (has_missing && missing.all(|number| ledger.account(number).alive == 0)).then_some(before)
    });
    Ok(origin(files)?.max(removed.unwrap_or(1)))
}

/// Goes through all segments from one on. Every whole record is shown with its segment and the byte where it begins; `visit` answers
/// what is wrong with it beyond its checksum, if anything.
pub(crate) fn scan(
    files: &dyn Files,
    from: u64,
    mut visit: impl FnMut(&Record<'_>, u64, usize) -> Option<String>,
) -> io::Result<Scanned> {
    let mut numbers: Vec<u64> = files.list()?.iter().filter_map(|name| Segment::number_of(name)).collect();
    numbers.sort_unstable();
    let mut scanned = Scanned { next: 1, store: store_of(files, &numbers)?, ..Scanned::default() };
    let seal = scanned.store.map(Seal::of).unwrap_or_default();
    // Where the log ends is in the segment before one that was made ahead of time.
    let newest = match numbers.last() {
        Some(last) if begun(files, *last)?.is_some() => last - 1,
        Some(last) => *last,
        None => 0,
    };
    scanned.newest = newest;
    for number in from..=newest {
        let name = Segment::name(number);
        let file = files.describe(&name);
        if !numbers.contains(&number) {
            let what = "the segment is missing, and all records in it".to_owned();
            scanned.damages.push(Damage { file, bytes: None, what });
            continue;
        }
        let opened = files.open(&name)?;
        let bytes = if number == newest { read_newest(|| opened.read(), seal)?.0 } else { opened.read()? };
        scanned.segment(&bytes, (number, &file), number == newest, &mut visit);
    }
    Ok(scanned)
}

/// The number of the store, as the first segment says that has a header, or else the first snapshot.
fn store_of(files: &dyn Files, numbers: &[u64]) -> io::Result<Option<u128>> {
    for number in numbers {
        let header = files.open(&Segment::name(*number))?.read_at(0, HEADER as usize)?;
        if let Ok(segment) = Segment::read(&header) {
            return Ok(Some(segment.store));
        }
    }
    let names = files.list()?;
    let snapshots = names.iter().filter(|name| snapshot::number_of(name).is_some());
    Ok(snapshots.filter_map(|name| snapshot::read_header(files, name).ok()).map(|header| header.store).next())
}

/// A segment that was only begun, or made ahead of time: it has no header yet, and nothing else.
pub(crate) struct Begun {
    pub(crate) file: Arc<dyn LogFile>,
    /// How long it is, if all of it is zeros; 0 if some of a header is there.
    pub(crate) blank_bytes: u64,
}

/// Answers the segment if it was only begun.
pub(crate) fn begun(files: &dyn Files, number: u64) -> io::Result<Option<Begun>> {
    let file = files.open(&Segment::name(number))?;
    let bad = match Segment::read(&file.read_at(0, HEADER as usize)?) {
        Ok(_) | Err(BadHeader::Newer(_)) => return Ok(None),
        Err(bad) => bad,
    };
    let bytes = file.read()?;
    if bytes.iter().skip(HEADER as usize).any(|byte| *byte != 0) {
        return Ok(None);
    }
    let blank_bytes = if bad == BadHeader::Unfinished { bytes.len() as u64 } else { 0 };
    Ok(Some(Begun { file, blank_bytes }))
}

/// Reads a segment into which somebody may be writing: its bytes, and where its whole records end.
///
/// What was written while it was read may look broken with something whole behind it. Read once more, it is whole; what
/// is damaged is not.
pub(crate) fn read_newest(
    read: impl Fn() -> io::Result<Vec<u8>>,
    seal: Seal,
) -> io::Result<(Vec<u8>, usize)> {
    let mut bytes = read()?;
    let mut end = whole_until(&bytes, HEADER as usize, seal);
    while has_record(&bytes, end, seal) {
        let again = read()?;
        let further = whole_until(&again, end, seal);
        let is_damaged = further == end;
        (bytes, end) = (again, further);
        if is_damaged {
            break;
        }
    }
    Ok((bytes, end))
}

/// Whether there is a whole record anywhere behind a place.
pub(crate) fn has_record(bytes: &[u8], from: usize, seal: Seal) -> bool {
    let rest = bytes.get(from..).unwrap_or_default();
    rest.iter().any(|byte| *byte != 0) && record::find(rest, 1, seal).is_some()
}

fn whole_until(bytes: &[u8], from: usize, seal: Seal) -> usize {
    let mut end = from.min(bytes.len());
    while let Found::Record(record) = record::read(&bytes[end..], seal) {
        end += record.len();
    }
    end
}

impl Scanned {
    fn segment(
        &mut self,
        bytes: &[u8],
        (number, file): (u64, &str),
        is_newest: bool,
        visit: &mut impl FnMut(&Record<'_>, u64, usize) -> Option<String>,
    ) {
        let damage = |bytes: Range<usize>, what: String| Damage {
            file: file.to_owned(),
            bytes: Some(bytes.start as u64..bytes.end as u64),
            what,
        };
        match Segment::read(bytes) {
            Ok(segment) => {
                let store = *self.store.get_or_insert(segment.store);
                if segment.store != store || segment.number != number {
                    let what = "the segment belongs to another store, or elsewhere".to_owned();
                    self.damages.push(damage(0..bytes.len(), what));
                    return;
                }
                // Records that are missing were told of where they were.
                self.next = self.next.max(segment.first);
            }
            Err(BadHeader::Newer(format)) => {
                self.newer = Some(format!(
                    "{file} has format {format}, and this version knows formats up to {FORMAT}"
                ));
                return;
            }
            Err(BadHeader::Unfinished | BadHeader::Broken) => {
                self.damages.push(damage(0..HEADER as usize, "its header is damaged".to_owned()));
            }
        }
        let seal = self.store.map(Seal::of).unwrap_or_default();
        let mut at = HEADER as usize;
        while at < bytes.len() {
            match record::read(&bytes[at..], seal) {
                Found::Record(record) if record.sequence >= self.next => {
                    if record.sequence > self.next {
                        let lost =
                            format!("records {} to {} are missing before it", self.next, record.sequence - 1);
                        self.damages.push(damage(at..at, lost));
                    }
                    self.next = record.sequence + 1;
                    self.records += 1;
                    self.bytes += record.len() as u64;
                    if let Some(what) = visit(&record, number, at) {
                        self.damages.push(damage(at..at + record.len(), what));
                    }
                    at += record.len();
                }
                Found::Newer => {
                    self.newer = Some(format!("{file} has a record at byte {at} that a newer version wrote"));
                    return;
                }
                Found::Blank if bytes[at..].iter().all(|byte| *byte == 0) => return,
                _ => {
                    let rest = &bytes[at..];
                    match record::find(rest, self.next, seal) {
                        Some((after, sequence)) => {
                            let lost = match sequence - self.next {
                                0 => "something that is no record".to_owned(),
                                1 => format!("record {} is damaged, and lost", self.next),
                                _ => {
                                    format!("records {} to {} are damaged, and lost", self.next, sequence - 1)
                                }
                            };
                            self.damages.push(damage(at..at + after, lost));
                            self.next = sequence;
                            at += after;
                        }
                        // A torn end, which was never promised.
                        None if is_newest => {
                            let end =
                                at + rest.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                            let what =
                                format!("record {} was being written and was never answered", self.next);
                            self.torn = Some(damage(at..end, what));
                            return;
                        }
                        None => {
                            let what = format!("records from {} on are damaged, and lost", self.next);
                            self.damages.push(damage(at..bytes.len(), what));
                            return;
                        }
                    }
                }
            }
        }
    }
}
