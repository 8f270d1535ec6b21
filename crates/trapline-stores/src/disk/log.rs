//! The log: appends records to the newest segment, and begins another when one does not fit.
//!
//! It promises nothing about the disk; that is [`Commit`]'s. It does not read either: see `recovery.rs`.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trapline_frontier::Engine;

use super::commit::{Commit, Failure};
use super::files::{Files, LogFile};
use super::options::DiskOptions;
use super::record::{Draft, Stamp};
use super::segment::{self, Segment};
use crate::planted::Planted;

/// The end of the log.
pub(crate) struct Log {
    files: Arc<dyn Files>,
    sizes: Sizes,
    segment: Segment,
    file: Arc<dyn LogFile>,
    /// Where the next record goes.
    at: u64,
    /// How long the segment's file is.
    size: u64,
    /// The next record's number.
    next: u64,
    /// How large the next segment is made, by how much of the log is needed.
    usual: u64,
    /// The most room that was made for a record of late.
    largest: u64,
    ahead: Arc<Ahead>,
    /// Whether the next segment was asked for.
    has_asked: bool,
    /// Whether the segment may have taken what is to be left alone of the disk: then it is not for admissions.
    is_tight: bool,
    pub(crate) planted: Planted,
}

/// How large segments are, and how much of the disk is left alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    segment_bytes: u64,
    min_free_disk: u64,
}

/// Where a log goes on.
pub(crate) struct Place {
    pub(crate) segment: Segment,
    pub(crate) file: Arc<dyn LogFile>,
    pub(crate) at: u64,
    pub(crate) size: u64,
    pub(crate) next: u64,
}

/// A place in the log: the record that comes there, and the segment and byte where it will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) next: u64,
    pub(crate) segment: u64,
    pub(crate) at: u64,
}

/// How much room a record must leave behind it in its segment, so that on a full disk admissions stop first, and
/// questions last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    Admission,
    Work,
    Question,
}

/// Why there is no room for a record. Nothing was written.
pub(crate) enum NoRoom {
    /// A segment could not be made; later it may be.
    Refused { file: String, error: io::Error },
    /// So much is needed, so much of the disk is free, and so much is to be left alone: more than that.
    Spared { needed: u64, free: u64, kept: u64 },
    /// Something failed for good.
    Failed(Failure),
}

/// The next segment, if somebody had the time to make it. Who makes one holds the lock, so that nobody else does.
pub(crate) struct Ahead(Mutex<Next>);

struct Next {
    /// The newest segment of the log: that one is in use, and its file never made again.
    newest: u64,
    blank: Option<Blank>,
}

/// A segment's file that has only zeros in it.
struct Blank {
    number: u64,
    size: u64,
    file: Arc<dyn LogFile>,
}

impl Ahead {
    fn lock(&self) -> MutexGuard<'_, Next> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a segment ahead of time. If it cannot be made, nothing is lost: whoever needs it will see.
    pub(crate) fn make(&self, files: &dyn Files, (number, size): (u64, u64)) {
        let mut next = self.lock();
        // The log may have gone on since somebody saw that this one is wanted.
        if number <= next.newest || next.blank.as_ref().is_some_and(|blank| blank.number >= number) {
            return;
        }
        let name = Segment::name(number);
        let made = files.create(&name, size).and_then(|file| file.sync().map(|()| file));
        match made {
            Ok(file) => next.blank = Some(Blank { number, size, file }),
            Err(_) => drop(files.remove(&name)),
        }
    }
}

impl Sizes {
    pub(crate) fn of(options: &DiskOptions) -> Self {
        let DiskOptions { segment_bytes, min_free_disk, .. } = options.within_bounds();
        Self { segment_bytes, min_free_disk }
    }

    /// The first segment: a store of which there is little is small.
    const FIRST: u64 = 1 << 20;
    /// The others are no smaller than this.
    const LEAST: u64 = 4 << 20;
    /// Nor than such a part of what is needed of the log. What is set aside is up to two of them.
    const SHARE: u64 = 32;
    /// And they have room for so many of the largest records: each is given the most that it may take, and what is left of a segment
    /// when the next one does not fit is lost.
    const RECORDS: u64 = 8;

    /// How large a segment is made where so much of the log is needed.
    pub(crate) fn usual(self, needed: u64) -> u64 {
        let share = needed / Self::SHARE;
        (share - share % Self::FIRST).max(Self::LEAST).min(self.segment_bytes)
    }

    /// Whether a segment of this size may be used where another one would be made now.
    pub(crate) fn is_fit(self, size: u64, needed: u64) -> bool {
        let usual = self.usual(needed);
        (usual / 2..=usual.saturating_mul(2).min(self.segment_bytes)).contains(&size)
    }
}

impl Log {
    pub(crate) fn new(files: Arc<dyn Files>, sizes: Sizes, place: Place) -> Self {
        let Place { segment, file, at, size, next } = place;
        let usual = sizes.usual(0);
        let ahead = Arc::new(Ahead(Mutex::new(Next { newest: segment.number, blank: None })));
        Self {
            files,
            sizes,
            segment,
            file,
            at,
            size,
            next,
            usual,
            largest: 0,
            ahead,
            has_asked: false,
            is_tight: true,
            planted: Planted::default(),
        }
    }

    /// Begins a log with its first segment.
    pub(crate) fn begin(files: Arc<dyn Files>, sizes: Sizes, store: u128) -> Result<Self, NoRoom> {
        let segment = Segment { store, number: 1, first: 1, is_origin: false };
        let size = Sizes::FIRST.min(sizes.segment_bytes);
        let file = make(&*files, segment, size, None)?;
        let place = Place { segment, file, at: segment::HEADER, size, next: 1 };
        Ok(Self::new(files, sizes, place))
    }

    pub(crate) fn file(&self) -> Arc<dyn LogFile> {
        Arc::clone(&self.file)
    }

    pub(crate) fn ahead(&self) -> Arc<Ahead> {
        Arc::clone(&self.ahead)
    }

    /// The next segment is there already.
    pub(crate) fn put_ahead(&mut self, file: Arc<dyn LogFile>, size: u64) {
        self.ahead.lock().blank = Some(Blank { number: self.segment.number + 1, size, file });
        self.has_asked = true;
    }

    pub(crate) fn store(&self) -> u128 {
        self.segment.store
    }

    /// Where the next record goes.
    pub(crate) fn position(&self) -> Position {
        Position { next: self.next, segment: self.segment.number, at: self.at }
    }

    /// So much of the log is needed: the next segment is made as large as is usual then.
    pub(crate) fn expect(&mut self, needed: u64) {
        self.usual = self.sizes.usual(needed);
    }

    /// How large the next segment is made, unless its first record takes more.
    fn next_size(&self) -> u64 {
        let records = self.largest.saturating_mul(Sizes::RECORDS).min(self.sizes.segment_bytes);
        self.usual.max(records)
    }

    /// Whether it is time to make the next segment; said once.
    pub(crate) fn begins_to_want(&mut self) -> bool {
        let wants = self.wants_ahead().is_some();
        wants && !std::mem::replace(&mut self.has_asked, wants)
    }

    /// Whether the disk has room for the next segment ahead of time.
    pub(crate) fn can_spare(&self, size: u64) -> bool {
        self.spare(size).is_ok()
    }

    /// The number and size of the next segment, once it is time to make it.
    pub(crate) fn wants_ahead(&self) -> Option<(u64, u64)> {
        (self.at > self.size / 2).then(|| (self.segment.number + 1, self.next_size()))
    }

    /// What to call the newest segment when talking to people.
    pub(crate) fn name(&self) -> String {
        self.files.describe(&Segment::name(self.segment.number))
    }

    /// Makes sure that a record of so many bytes can be appended.
    pub(crate) fn make_room(&mut self, bytes: u64, urgency: Urgency, commit: &Commit) -> Result<(), NoRoom> {
        let reserve = reserve(self.size);
        let left_behind = match urgency {
            Urgency::Admission => reserve,
            Urgency::Work => reserve / 16,
            Urgency::Question => 0,
        };
        if self.is_tight && urgency == Urgency::Admission {
            self.spare(0)?;
            self.is_tight = false;
        }
        self.largest = self.largest.max(bytes);
        if self.at + bytes + left_behind <= self.size {
            return Ok(());
        }
        let number = self.segment.number + 1;
        let needed = segment::HEADER + bytes;
        let has_room = |size: u64| needed + self::reserve(size) <= size;
        let next_size = self.next_size();
        let size = if has_room(next_size) { next_size } else { needed + self::reserve(needed) };
        let ahead = Arc::clone(&self.ahead);
        let mut ahead = ahead.lock();
        // One that was made for other times will do.
        let blank = ahead.blank.take().filter(|blank| blank.number == number && has_room(blank.size));
        let spared = if blank.is_none() { self.spare(size) } else { Ok(()) };
        let is_tight = spared.is_err();
        if urgency == Urgency::Admission {
            spared?;
        }
        // Only the newest segment is ever incomplete: recovery counts on it.
        commit.sync().map_err(NoRoom::Failed)?;
        let segment = Segment { number, first: self.next, is_origin: false, ..self.segment };
        let size = blank.as_ref().map_or(size, |blank| blank.size);
        self.file = make(&*self.files, segment, size, blank.map(|blank| blank.file))?;
        ahead.newest = number;
        self.segment = segment;
        self.at = segment::HEADER;
        self.size = size;
        self.largest = bytes.max(self.largest / 2);
        self.has_asked = false;
        self.is_tight = is_tight;
        commit.rolled(self.file(), self.name());
        Ok(())
    }

    /// Whether the disk has so much to give beside what is left alone.
    fn spare(&self, bytes: u64) -> Result<(), NoRoom> {
        let kept = self.sizes.min_free_disk;
        match self.files.free() {
            Ok(free) if free < bytes.saturating_add(kept) => {
                Err(NoRoom::Spared { needed: bytes, free, kept })
            }
            // If it cannot be asked, it will be seen.
            _ => Ok(()),
        }
    }

    /// Writes a record for which room was made, and says its number.
    pub(crate) fn append(&mut self, draft: &mut Draft, synced: u64, answers: u64) -> Result<u64, Failure> {
        let sequence = self.next;
        let stamp = Stamp { rules: Engine::RULES, sequence, synced, answers };
        let bytes = draft.finish(self.segment.seal(), stamp);
        if self.at + bytes.len() as u64 > self.size {
            let error = io::Error::other("a record is larger than was thought; please report this bug");
            return Err(Failure::new("writing to", &self.name(), &error));
        }
        let written = self.planted.write(&self.file, self.at, bytes, sequence);
        written.map_err(|error| Failure::new("writing to", &self.name(), &error))?;
        self.at += draft.len();
        self.next += 1;
        Ok(sequence)
    }
}

/// How much of a segment of this size is kept for settlements: on a full disk there will be no other.
pub(crate) fn reserve(size: u64) -> u64 {
    (size / 64).max(64 << 10).min(size / 4)
}

/// Makes a segment that is certainly there, in a file that was made ahead of time or a new one.
fn make(
    files: &dyn Files,
    segment: Segment,
    size: u64,
    blank: Option<Arc<dyn LogFile>>,
) -> Result<Arc<dyn LogFile>, NoRoom> {
    let name = Segment::name(segment.number);
    let file = match blank.map_or_else(|| files.create(&name, size), Ok) {
        Ok(file) => file,
        Err(error) => {
            // What is left of it would be found unfinished, and be removed, when the store is opened.
            let _ = files.remove(&name);
            return Err(NoRoom::Refused { file: files.describe(&name), error });
        }
    };
    let failed =
        |attempted| move |error| NoRoom::Failed(Failure::new(attempted, &files.describe(&name), &error));
    file.write(0, &segment.header()).map_err(failed.clone()("writing to"))?;
    file.sync().map_err(failed.clone()("syncing"))?;
    files.sync_folder().map_err(failed("syncing the folder of"))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::files::Folder;

    const MIB: u64 = 1 << 20;

    #[test]
    fn segments_grow_with_what_is_needed() {
        let sizes = Sizes { segment_bytes: 64 * MIB, min_free_disk: 0 };
        let cases = [(0, 4), (100, 4), (159, 4), (160, 5), (1000, 31), (2048, 64), (1 << 30, 64)];
        for (needed, usual) in cases {
            assert_eq!(sizes.usual(needed * MIB), usual * MIB, "{needed} MiB are needed");
        }
        // One that was made when more or less was needed is used, unless it is far too large or too small.
        let cases = [(15, false), (16, true), (31, true), (62, true), (63, false)];
        for (size, is_fit) in cases {
            assert_eq!(sizes.is_fit(size * MIB, 1000 * MIB), is_fit, "{size} MiB");
        }
        assert!(sizes.is_fit(64 * MIB, u64::MAX) && !sizes.is_fit(65 * MIB, u64::MAX));
        let small = Sizes { segment_bytes: 64 << 10, min_free_disk: 0 };
        assert_eq!(small.usual(u64::MAX), 64 << 10);
    }

    /// Does something with a log in a folder.
    fn with_log(name: &str, segment_bytes: u64, test: impl FnOnce(&mut Log, &Commit)) {
        let path = std::env::temp_dir().join(format!("trapline-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let files: Arc<dyn Files> = Arc::new(Folder::new(&path));
        let sizes = Sizes { segment_bytes, min_free_disk: 0 };
        let Ok(mut log) = Log::begin(files, sizes, 7) else { panic!("there is room") };
        let commit = Commit::new(log.file(), log.name(), 0, Planted::default());
        test(&mut log, &commit);
        std::fs::remove_dir_all(&path).unwrap();
    }

    /// Room is made for all that a batch may take. Where that is much, a segment that has room for one of them only would be left
    /// behind with each.
    #[test]
    fn segments_have_room_for_several_of_the_largest_records() {
        with_log("largest", 64 * MIB, |log, commit| {
            for _ in 0..3 {
                assert!(log.make_room(5 * MIB, Urgency::Work, commit).is_ok());
                log.at += 1000;
            }
            assert_eq!((log.segment.number, log.size), (2, 40 * MIB));
            // When they have become small, so do segments.
            for _ in 0..25 {
                log.at = log.size;
                assert!(log.make_room(1000, Urgency::Work, commit).is_ok());
            }
            assert_eq!(log.size, 4 * MIB);
        });
    }

    /// One that was made ahead of time is used if it has room, however large another one would be made by now.
    #[test]
    fn a_segment_that_was_made_ahead_is_used() {
        with_log("blank", 64 * MIB, |log, commit| {
            log.at = log.size / 2 + 1;
            log.ahead().make(&*log.files, log.wants_ahead().unwrap());
            log.expect(2048 * MIB);
            log.at = log.size;
            assert!(log.make_room(1000, Urgency::Work, commit).is_ok());
            assert_eq!((log.segment.number, log.size), (2, 4 * MIB));
            // And if it has none, one is made that has.
            log.at = log.size / 2 + 1;
            log.usual = 4 * MIB;
            log.ahead().make(&*log.files, log.wants_ahead().unwrap());
            log.at = log.size;
            assert!(log.make_room(6 * MIB, Urgency::Work, commit).is_ok());
            assert_eq!((log.segment.number, log.size), (3, 48 * MIB));
        });
    }

    /// What the log has begun by itself in the meantime is in use.
    #[test]
    fn a_segment_in_use_is_never_made_ahead() {
        let path = std::env::temp_dir().join(format!("trapline-ahead-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let files: Arc<dyn Files> = Arc::new(Folder::new(&path));
        let sizes = Sizes { segment_bytes: DiskOptions::SEGMENT_BYTES_MIN, min_free_disk: 0 };
        let Ok(mut log) = Log::begin(Arc::clone(&files), sizes, 7) else { panic!("there is room") };
        let commit = Commit::new(log.file(), log.name(), 0, Planted::default());
        log.at = log.size / 2 + 1;
        let wanted = log.wants_ahead().unwrap();
        assert_eq!(wanted.0, 2);
        // Before anybody came to make it, the log needs it.
        assert!(log.make_room(log.size / 2, Urgency::Work, &commit).is_ok());
        let ahead = log.ahead();
        ahead.make(&*files, wanted);
        let header = files.open(&Segment::name(2)).unwrap().read_at(0, segment::HEADER as usize).unwrap();
        let segment = Segment::read(&header);
        log.at = log.size / 2 + 1;
        ahead.make(&*files, log.wants_ahead().unwrap());
        let third = path.join(Segment::name(3)).exists();
        std::fs::remove_dir_all(&path).unwrap();
        assert_eq!(segment.map(|segment| segment.number), Ok(2), "it was made again");
        assert!(third, "the one after it is made ahead");
    }
}
