//! Opening a log: goes on from the newest snapshot that is whole, replays every command after it, and tells a torn end
//! from damage.
//!
//! A record that is not whole at the end of the newest segment was being written when the process or the machine died:
//! it is cut off, and was never promised. Anything else that is not whole was whole once, and is reported with its place,
//! never skipped. Only a cut writes, and only after everything was read. A snapshot that is not whole is passed over and told
//! of: the log has all that is in it.

use std::sync::Arc;

use trapline_frontier::{Engine, ErrorKind, StoreError};

use super::files::Files;
use super::frames::FrameFile;
use super::lent::Lender;
use super::log::{Log, NoRoom, Place, Position, Sizes};
use super::message::logged;
use super::record::{self, Found, Record};
use super::scan::{self, Begun};
use super::segment::{BadHeader, FORMAT, HEADER, Segment};
use super::shared::Latest;
use super::snapshot::{self, Snapshot, Unusable};
use super::swap::{NAME as SWAP, Swap};
use super::texts::{self, Texts};

/// What a log was found to hold.
pub(crate) struct Recovery {
    pub(crate) engine: Engine,
    pub(crate) log: Log,
    pub(crate) texts: Arc<Texts>,
    /// The number of the last record.
    pub(crate) last: u64,
    /// How many bytes were cut off.
    pub(crate) bytes_cut: u64,
    /// The snapshot it went on from, if from any.
    pub(crate) latest: Latest,
    /// How many newer ones are damaged, or could not be read.
    pub(crate) snapshots_passed_over: u64,
    /// How many bytes of the log came after it.
    pub(crate) unsaved: u64,
}

/// Reads the log in these files, or begins one.
pub(crate) fn recover(
    files: &Arc<dyn Files>,
    sizes: Sizes,
    swap: Option<&Arc<Swap>>,
    lender: &Arc<Lender>,
    draw: impl FnOnce() -> u128,
) -> Result<Recovery, StoreError> {
    let names = files.list().map_err(|error| cannot(format_args!("list {}: {error}", files.describe(""))))?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| Segment::number_of(name)).collect();
    numbers.sort_unstable();
    // The newest may only have been begun. The one before it goes on.
    let begun = match numbers.last() {
        Some(newest) => begun(&**files, *newest)?,
        None => None,
    };
    if begun.is_some() {
        numbers.pop();
    }
    if names.iter().any(|name| name == SWAP) {
        // Whoever made it was killed before it had no name any more.
        let _ = files.remove(SWAP);
    }
    let texts = Arc::new(Texts::new(Arc::clone(files)));
    let Snapshots { newest: mut found, passed_over } =
        find_snapshots(&**files, &names, &texts, swap, lender)?;
    let snapshots_passed_over = passed_over.iter().filter(|(_, why)| why.is_trouble()).count() as u64;
    let origin = scan::origin(&**files)
        .map_err(|error| cannot(format_args!("read {}: {error}", files.describe(""))))?;
    if found.as_ref().map_or(1, |found| found.position.segment) < origin {
        return Err(damaged(format_args!(
            "{} was repaired once, and has no snapshot any more from which it could go on",
            files.describe("")
        )));
    }
    let snapshot = found.as_ref().map(|found| found.position);
    let latest = found.as_mut().map(|Snapshot { position, bytes, places, .. }| Latest {
        next: position.next,
        segment: position.segment,
        bytes: *bytes,
        places: places.take(),
        has_lost_some: false,
    });
    let latest = latest.unwrap_or_default();
    let newest = numbers.last().copied().unwrap_or(0);
    let begin = snapshot.map_or(1, |position| position.segment);
    let ledger = found.as_ref().map(|found| found.ledger.clone()).unwrap_or_default();
    for number in 1..newest {
        // Those from which nothing is needed any more were removed.
        let is_needed = number >= begin || ledger.account(number).alive > 0;
        if is_needed && numbers.binary_search(&number).is_err() {
            let missing = files.describe(&Segment::name(number));
            let unusable = passed_over.iter().filter(|(_, why)| snapshot.is_none() && why.is_trouble());
            let unusable = unusable.map(|(next, why)| {
                format!("; {} would do without it, but {why}", files.describe(&snapshot::name(*next)))
            });
            let unusable: String = unusable.collect();
            return Err(damaged(format_args!(
                "{missing} is missing, although there are later segments{unusable}"
            )));
        }
    }
    let mut replay = match found {
        Some(Snapshot { engine, store, position, mut ledger, .. }) => {
            ledger.keep(&numbers);
            texts.set_ledger(ledger);
            Replay {
                files: &**files,
                engine,
                texts: &texts,
                next: position.next,
                known: position.next - 1,
                store: Some(store),
                unsaved: 0,
            }
        }
        None => Replay {
            files: &**files,
            engine: empty(&texts, swap),
            texts: &texts,
            next: 1,
            known: 0,
            store: None,
            unsaved: 0,
        },
    };
    if snapshot.is_some() && begin > newest {
        let missing = files.describe(&Segment::name(begin));
        return Err(damaged(format_args!(
            "{missing} is missing, although there is a snapshot that goes on in it"
        )));
    }
    let mut end = None;
    for number in numbers.iter().copied().filter(|number| *number >= begin) {
        let from = snapshot.filter(|position| position.segment == number);
        end = Some(replay.segment(number, number == newest, from)?);
    }
    // One that was made ahead of time is as good as it was, unless other sizes are wanted now.
    let number = newest + 1;
    let needed = texts.alive_bytes();
    let ahead = begun.as_ref().filter(|begun| number > 1 && sizes.is_fit(begun.blank_bytes, needed));
    if begun.is_some() && ahead.is_none() {
        replay.remove(number)?;
    }
    for (number, why) in &passed_over {
        let name = snapshot::name(*number);
        match why {
            // The damaged ones are left for `verify` to see, until another is taken.
            Unusable::Unfinished => {
                let _ = files.remove(&name);
                for file in FrameFile::all(*number) {
                    let _ = files.remove(&file.name());
                }
            }
            // If it is whole, then the log was on disk up to there, and what looks torn is damage.
            Unusable::Unreadable(what) if *number > replay.next => {
                let name = files.describe(&name);
                return Err(cannot(format_args!("do without {name}, before which the log ends: {what}")));
            }
            Unusable::Broken(_) | Unusable::Unreadable(_) | Unusable::Newer(_) => {}
        }
    }
    let Replay { mut engine, next, known, unsaved, .. } = replay;
    assert!(engine.follow(Engine::RULES), "they are its own");
    let last = next - 1;
    let Some(end) = end else {
        let log = Log::begin(Arc::clone(files), sizes, draw()).map_err(no_room)?;
        let bytes_cut = 0;
        return Ok(Recovery { engine, log, texts, last, bytes_cut, latest, snapshots_passed_over, unsaved });
    };
    end.mend(&**files, known)?;
    let bytes_cut = end.bytes_cut() as u64;
    let place =
        Place { segment: end.segment, file: end.file, at: end.at as u64, size: end.bytes.len() as u64, next };
    let mut log = Log::new(Arc::clone(files), sizes, place);
    log.expect(needed);
    if let Some(ahead) = ahead {
        log.put_ahead(Arc::clone(&ahead.file), ahead.blank_bytes);
    }
    Ok(Recovery { engine, log, texts, last, bytes_cut, latest, snapshots_passed_over, unsaved })
}

/// The newest segment, if it had only been begun.
fn begun(files: &dyn Files, number: u64) -> Result<Option<Begun>, StoreError> {
    let read = |error| cannot(format_args!("read {}: {error}", files.describe(&Segment::name(number))));
    scan::begun(files, number).map_err(read)
}

/// What there is of snapshots.
#[derive(Default)]
struct Snapshots {
    /// The newest that is whole.
    newest: Option<Snapshot>,
    /// Those after it, and why they are none.
    passed_over: Vec<(u64, Unusable)>,
}

/// An engine without crawls.
fn empty(texts: &Arc<Texts>, swap: Option<&Arc<Swap>>) -> Engine {
    swap.map_or_else(|| texts.engine(), |swap| swap.hold(texts.engine()))
}

fn find_snapshots(
    files: &dyn Files,
    names: &[String],
    texts: &Arc<Texts>,
    swap: Option<&Arc<Swap>>,
    lender: &Arc<Lender>,
) -> Result<Snapshots, StoreError> {
    let mut found = Snapshots::default();
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| snapshot::number_of(name)).collect();
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    for number in numbers {
        let name = snapshot::name(number);
        match snapshot::read_into(empty(texts, swap), files, &name, texts, Some(lender)) {
            Ok(snapshot) if snapshot.position.next == number => {
                found.newest = Some(snapshot);
                break;
            }
            Ok(_) => {
                found.passed_over.push((number, Unusable::Broken("it has another's name".to_owned())));
            }
            Err(Unusable::Newer(what)) => {
                return Err(newer(format_args!("{}: {what}", files.describe(&name))));
            }
            Err(why) => found.passed_over.push((number, why)),
        }
    }
    Ok(found)
}

struct Replay<'a> {
    files: &'a dyn Files,
    engine: Engine,
    texts: &'a Texts,
    /// The number that the next record must have.
    next: u64,
    /// Up to here everything was on disk when a later record was written.
    known: u64,
    store: Option<u128>,
    /// How many bytes were replayed.
    unsaved: u64,
}

/// Where the records of a segment end.
struct End {
    segment: Segment,
    file: Arc<dyn super::files::LogFile>,
    bytes: Vec<u8>,
    /// The first byte after the last record.
    at: usize,
    /// Where each record begins that was replayed, by number.
    begins: Vec<(u64, usize)>,
    /// Whether a snapshot goes on in it: the segment was certainly there before that counted.
    is_certain: bool,
}

impl Replay<'_> {
    fn name(&self, number: u64) -> String {
        self.files.describe(&Segment::name(number))
    }

    /// Replays a segment, from a position in it on.
    fn segment(&mut self, number: u64, is_newest: bool, from: Option<Position>) -> Result<End, StoreError> {
        let name = Segment::name(number);
        let read = |error| cannot(format_args!("read {}: {error}", self.files.describe(&name)));
        let file = self.files.open(&name).map_err(read)?;
        let bytes = file.read().map_err(read)?;
        let name = self.name(number);
        let segment = match Segment::read(&bytes) {
            Ok(segment) => segment,
            Err(BadHeader::Newer(format)) => {
                return Err(newer(format_args!(
                    "{name}: it has format {format}, and this version of Trapline knows formats up to {FORMAT}"
                )));
            }
            Err(_) => return Err(damaged(format_args!("{name} is damaged at byte 0: it has no header"))),
        };
        let store = *self.store.get_or_insert(segment.store);
        // What comes before a snapshot is read once more, but not replayed.
        let first = if from.is_some() { segment.first.min(self.next) } else { self.next };
        if segment.store != store || segment.number != number || segment.first != first {
            return Err(damaged(format_args!(
                "{name} does not belong there: it says that it is segment {} of store {:032x} from record {} on, where \
                 segment {number} of store {store:032x} from record {first} on is expected",
                segment.number, segment.store, segment.first,
            )));
        }
        let is_certain = from.is_some();
        let mut end =
            End { segment, file, bytes: Vec::new(), at: HEADER as usize, begins: Vec::new(), is_certain };
        let mut expected = first;
        loop {
            let rest = &bytes[end.at..];
            let at = end.at as u64;
            if let Some(from) = from
                && (expected == from.next && at != from.at || expected < from.next && at >= from.at)
            {
                return Err(damaged(format_args!(
                    "{name} is damaged at byte {}: a snapshot goes on with record {} at byte {}",
                    end.at, from.next, from.at
                )));
            }
            match record::read(rest, segment.seal()) {
                Found::Record(record) if record.sequence == expected => {
                    if expected >= self.next {
                        self.replay(&record, (number, &name, end.at))?;
                        end.begins.push((record.sequence, end.at));
                    }
                    expected += 1;
                    end.at += record.len();
                    continue;
                }
                Found::Newer => {
                    return Err(newer(format_args!(
                        "{name}: the record at byte {} was written by a newer version of Trapline",
                        end.at
                    )));
                }
                // What a snapshot has seen was on disk before it was.
                _ if expected < self.next => return Err(self.damaged_record(&name, end.at, expected)),
                Found::Blank if rest.iter().all(|byte| *byte == 0) => {}
                _ if is_newest && !record::proves_damage(rest, self.next, segment.seal()) => {}
                _ => return Err(self.damaged_record(&name, end.at, expected)),
            }
            end.bytes = bytes;
            return Ok(end);
        }
    }

    fn damaged_record(&self, name: &str, at: usize, number: u64) -> StoreError {
        damaged(format_args!(
            "{name} is damaged at byte {at}: record {number} was on disk and is not whole any more"
        ))
    }

    fn replay(
        &mut self,
        record: &Record<'_>,
        (number, name, at): (u64, &str, usize),
    ) -> Result<(), StoreError> {
        let sequence = record.sequence;
        let unreadable = |error: &dyn std::fmt::Display| {
            damaged(format_args!("{name}: record {sequence} at byte {at} cannot be read: {error}"))
        };
        if !self.engine.follow(record.rules) {
            return Err(other_rules("open", name, record));
        }
        let (texts, message) = record.parts().ok_or_else(|| unreadable(&"it lacks some of its texts"))?;
        let command = logged::read(message, texts).map_err(|error| unreadable(&error))?;
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
        self.texts.begin_again(texts::place(number, at as u64), texts, record.extent);
        let answers = command.replay(&mut self.engine).map_err(|error| other(&format!(" ({error})")))?;
        self.texts.take();
        if let Some(failure) = self.texts.take_failure() {
            return Err(damaged(format_args!("{failure}")));
        }
        self.engine.relieve();
        if answers != record.answers {
            return Err(other(""));
        }
        self.known = self.known.max(record.synced);
        self.next += 1;
        self.unsaved += record.len() as u64;
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
        // A segment gets records and snapshots once it is certainly there; without any, not even its header is certain.
        let is_certain = self.is_certain || !self.begins.is_empty();
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

fn newer(what: std::fmt::Arguments<'_>) -> StoreError {
    StoreError::new(
        ErrorKind::Unsupported,
        format!(
            "disk store: cannot open {what}; nothing was changed: open it with the version that wrote it, or a later one"
        ),
    )
}

/// A record of another engine, which must not be done again by this one.
pub(super) fn other_rules(attempted: &str, file: &str, record: &Record<'_>) -> StoreError {
    StoreError::new(
        ErrorKind::Unsupported,
        format!(
            "disk store: cannot {attempted} {file}: from record {} on it was written by an engine with rules {}, and this version of \
             Trapline has rules {}, which may decide otherwise; nothing was changed: open it once with the version that wrote \
             it and close it in good order (`trapline frontier stats` does), then this one can go on",
            record.sequence,
            record.rules,
            Engine::RULES
        ),
    )
}

fn damaged(what: std::fmt::Arguments<'_>) -> StoreError {
    StoreError::new(
        ErrorKind::Corrupt,
        format!(
            "disk store: cannot open: {what}; nothing was changed: see what `verify` says, which can save the rest into a new folder, or restore a \
             checkpoint (docs/manual/disk.md says more)"
        ),
    )
}

fn no_room(trouble: NoRoom) -> StoreError {
    match trouble {
        NoRoom::Refused { file, error } => cannot(format_args!("make {file}: {error}")),
        // Only asked of admissions.
        NoRoom::Spared { free, .. } => cannot(format_args!("begin a log: the disk has {free} bytes left")),
        NoRoom::Failed(failure) => {
            StoreError::new(ErrorKind::Unavailable, format!("disk store: cannot open: {failure}"))
        }
    }
}
