//! Opening a log: replays every command, and tells a torn end from damage.
//!
//! A record that is not whole at the end of the newest segment was being written when the process or the machine died:
//! it is cut off, and was never promised. Anything else that is not whole was whole once, and is reported with its place,
//! never skipped. Only a cut writes, and only after everything was read.

use std::sync::Arc;

use trapline_frontier::{Engine, ErrorKind, StoreError};

use super::files::Files;
use super::log::{Log, NoRoom, Place};
use super::message;
use super::record::{self, Found, Record};
use super::segment::{BadHeader, FORMAT, HEADER, Segment};

/// What a log was found to hold.
pub(crate) struct Recovery {
    pub(crate) engine: Engine,
    pub(crate) log: Log,
    /// The number of the last record.
    pub(crate) last: u64,
    /// How many bytes were cut off.
    pub(crate) bytes_cut: u64,
}

/// Reads the log in these files, or begins one.
pub(crate) fn recover(
    files: &Arc<dyn Files>,
    segment_bytes: u64,
    draw: impl FnOnce() -> u128,
) -> Result<Recovery, StoreError> {
    let names = files.list().map_err(|error| cannot(format_args!("list {}: {error}", files.describe(""))))?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| Segment::number_of(name)).collect();
    numbers.sort_unstable();
    let mut replay =
        Replay { files: &**files, engine: Engine::named("disk"), next: 1, known: 0, store: None };
    let mut end = None;
    for (index, number) in numbers.iter().copied().enumerate() {
        let is_newest = index + 1 == numbers.len();
        if number != index as u64 + 1 {
            let missing = files.describe(&Segment::name(index as u64 + 1));
            return Err(damaged(format_args!("{missing} is missing, although there are later segments")));
        }
        match replay.segment(number, is_newest)? {
            Some(place) => end = Some(place),
            // The newest had only been begun. The one before it was complete, and goes on.
            None => replay.remove(number)?,
        }
    }
    let Replay { engine, next, known, .. } = replay;
    let last = next - 1;
    let Some(end) = end else {
        let log = Log::begin(Arc::clone(files), segment_bytes, draw()).map_err(no_room)?;
        return Ok(Recovery { engine, log, last, bytes_cut: 0 });
    };
    end.mend(&**files, known)?;
    let bytes_cut = end.bytes_cut() as u64;
    let place =
        Place { segment: end.segment, file: end.file, at: end.at as u64, size: end.bytes.len() as u64, next };
    Ok(Recovery { engine, log: Log::new(Arc::clone(files), segment_bytes, place), last, bytes_cut })
}

struct Replay<'a> {
    files: &'a dyn Files,
    engine: Engine,
    /// The number that the next record must have.
    next: u64,
    /// Up to here everything was on disk when a later record was written.
    known: u64,
    store: Option<u128>,
}

/// Where the records of a segment end.
struct End {
    segment: Segment,
    file: Arc<dyn super::files::LogFile>,
    bytes: Vec<u8>,
    /// The first byte after the last record.
    at: usize,
    /// Where each record begins, by number.
    begins: Vec<(u64, usize)>,
}

impl Replay<'_> {
    fn name(&self, number: u64) -> String {
        self.files.describe(&Segment::name(number))
    }

    /// Replays a segment; None if it had only been begun.
    fn segment(&mut self, number: u64, is_newest: bool) -> Result<Option<End>, StoreError> {
        let name = Segment::name(number);
        let read = |error| cannot(format_args!("read {}: {error}", self.files.describe(&name)));
        let file = self.files.open(&name).map_err(read)?;
        let bytes = file.read().map_err(read)?;
        let name = self.name(number);
        let segment = match Segment::read(&bytes) {
            Ok(segment) => segment,
            Err(BadHeader::Newer(format)) => {
                return Err(StoreError::new(
                    ErrorKind::Unsupported,
                    format!(
                        "disk store: cannot open {name}: it has format {format}, and this version of Trapline knows formats \
                         up to {FORMAT}; nothing was changed: open it with the version that wrote it, or a later one"
                    ),
                ));
            }
            Err(BadHeader::Unfinished) if is_newest => return Ok(None),
            Err(_) if is_newest && bytes.iter().skip(HEADER as usize).all(|byte| *byte == 0) => {
                return Ok(None);
            }
            Err(_) => return Err(damaged(format_args!("{name} is damaged at byte 0: it has no header"))),
        };
        let store = *self.store.get_or_insert(segment.store);
        if segment.store != store || segment.number != number || segment.first != self.next {
            return Err(damaged(format_args!(
                "{name} does not belong there: it says that it is segment {} of store {:032x} from record {} on, where \
                 segment {number} of store {store:032x} from record {} on is expected",
                segment.number, segment.store, segment.first, self.next,
            )));
        }
        let mut end = End { segment, file, bytes: Vec::new(), at: HEADER as usize, begins: Vec::new() };
        loop {
            let rest = &bytes[end.at..];
            match record::read(rest) {
                Found::Record(record) if record.sequence == self.next => {
                    self.replay(&record, &name, end.at)?;
                    end.begins.push((record.sequence, end.at));
                    end.at += record.len();
                    continue;
                }
                Found::Newer => {
                    return Err(StoreError::new(
                        ErrorKind::Unsupported,
                        format!(
                            "disk store: cannot open {name}: the record at byte {} was written by a newer version of Trapline; \
                             nothing was changed: open it with that version, or a later one",
                            end.at
                        ),
                    ));
                }
                Found::Blank if rest.iter().all(|byte| *byte == 0) => {}
                _ if is_newest && !record::proves_damage(rest, self.next) => {}
                _ => {
                    return Err(damaged(format_args!(
                        "{name} is damaged at byte {}: record {} was on disk and is not whole any more",
                        end.at, self.next
                    )));
                }
            }
            end.bytes = bytes;
            return Ok(Some(end));
        }
    }

    fn replay(&mut self, record: &Record<'_>, name: &str, at: usize) -> Result<(), StoreError> {
        let sequence = record.sequence;
        let command = message::read(record.body).map_err(|error| {
            damaged(format_args!("{name}: record {sequence} at byte {at} cannot be read: {error}"))
        })?;
        let other = |what: &str| {
            StoreError::new(
                ErrorKind::Corrupt,
                format!(
                    "disk store: cannot open {name}: record {sequence} at byte {at} answered otherwise when it was written \
                     than it does now{what}; nothing was changed: open the folder with the version of Trapline that wrote it, \
                     and report this"
                ),
            )
        };
        let answers = command.replay(&mut self.engine).map_err(|error| other(&format!(" ({error})")))?;
        if answers != record.answers {
            return Err(other(""));
        }
        self.known = self.known.max(record.synced);
        self.next += 1;
        Ok(())
    }

    fn remove(&self, number: u64) -> Result<(), StoreError> {
        let removed = self.files.remove(&Segment::name(number)).and_then(|()| self.files.sync_folder());
        removed.map_err(|error| cannot(format_args!("remove the unfinished {}: {error}", self.name(number))))
    }
}

impl End {
    /// How many bytes after the last record are not blank.
    fn bytes_cut(&self) -> usize {
        let rest = &self.bytes[self.at..];
        rest.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
    }

    /// Blanks what was cut off, lest it pass for records one day, and writes again what is not known to be on disk: if the
    /// process before this one died of a failed sync, the kernel may show bytes that the disk does not have.
    fn mend(&self, files: &dyn Files, known: u64) -> Result<(), StoreError> {
        // A segment gets records once it is certainly there; without any, not even its header is certain.
        let is_certain = !self.begins.is_empty();
        let unknown =
            self.begins.iter().find(|(sequence, _)| *sequence > known).map_or(self.at, |(_, at)| *at);
        let begin = if is_certain { unknown } else { 0 };
        let mut bytes = self.bytes[begin..self.at].to_vec();
        bytes.resize(bytes.len() + self.bytes_cut(), 0);
        if bytes.is_empty() {
            return Ok(());
        }
        let mut mended = self.file.write(begin as u64, &bytes).and_then(|()| self.file.sync());
        if !is_certain {
            mended = mended.and_then(|()| files.sync_folder());
        }
        let name = files.describe(&Segment::name(self.segment.number));
        mended.map_err(|error| cannot(format_args!("mend the end of {name}: {error}")))
    }
}

fn cannot(what: std::fmt::Arguments<'_>) -> StoreError {
    StoreError::new(ErrorKind::Unavailable, format!("disk store: cannot open: cannot {what}"))
}

fn damaged(what: std::fmt::Arguments<'_>) -> StoreError {
    StoreError::new(
        ErrorKind::Corrupt,
        format!(
            "disk store: cannot open: {what}; nothing was changed: restore the folder from a copy, and look after the disk \
             (docs/manual/disk.md says more)"
        ),
    )
}

fn no_room(trouble: NoRoom) -> StoreError {
    match trouble {
        NoRoom::Refused { file, error } => cannot(format_args!("make {file}: {error}")),
        NoRoom::Failed(failure) => {
            StoreError::new(ErrorKind::Unavailable, format!("disk store: cannot open: {failure}"))
        }
    }
}
