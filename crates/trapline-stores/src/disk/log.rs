//! The log: appends records to the newest segment, and begins another when one does not fit.
//!
//! It promises nothing about the disk; that is [`Commit`]'s. It does not read either: see `recovery.rs`.

use std::io;
use std::sync::Arc;

use super::commit::{Commit, Failure};
use super::files::{Files, LogFile};
use super::record::Draft;
use super::segment::{self, Segment};

/// The end of the log.
pub(crate) struct Log {
    files: Arc<dyn Files>,
    segment_bytes: u64,
    segment: Segment,
    file: Arc<dyn LogFile>,
    /// Where the next record goes.
    at: u64,
    /// How long the segment's file is.
    size: u64,
    /// The next record's number.
    next: u64,
}

/// Where a log goes on.
pub(crate) struct Place {
    pub(crate) segment: Segment,
    pub(crate) file: Arc<dyn LogFile>,
    pub(crate) at: u64,
    pub(crate) size: u64,
    pub(crate) next: u64,
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
    /// Something failed for good.
    Failed(Failure),
}

impl Log {
    pub(crate) fn new(files: Arc<dyn Files>, segment_bytes: u64, place: Place) -> Self {
        let Place { segment, file, at, size, next } = place;
        Self { files, segment_bytes, segment, file, at, size, next }
    }

    /// Begins a log with its first segment.
    pub(crate) fn begin(files: Arc<dyn Files>, segment_bytes: u64, store: u128) -> Result<Self, NoRoom> {
        let segment = Segment { store, number: 1, first: 1 };
        let file = make(&*files, segment, segment_bytes)?;
        let place = Place { segment, file, at: segment::HEADER, size: segment_bytes, next: 1 };
        Ok(Self::new(files, segment_bytes, place))
    }

    pub(crate) fn file(&self) -> Arc<dyn LogFile> {
        Arc::clone(&self.file)
    }

    /// What to call the newest segment when talking to people.
    pub(crate) fn name(&self) -> String {
        self.files.describe(&Segment::name(self.segment.number))
    }

    /// Makes sure that a record of so many bytes can be appended.
    pub(crate) fn make_room(&mut self, bytes: u64, urgency: Urgency, commit: &Commit) -> Result<(), NoRoom> {
        let reserve = self.segment_bytes / 64;
        let left_behind = match urgency {
            Urgency::Admission => reserve,
            Urgency::Work => reserve / 16,
            Urgency::Question => 0,
        };
        if self.at + bytes + left_behind <= self.size {
            return Ok(());
        }
        // Only the newest segment is ever incomplete: recovery counts on it.
        commit.sync().map_err(NoRoom::Failed)?;
        let segment = Segment { number: self.segment.number + 1, first: self.next, ..self.segment };
        let size = self.segment_bytes.max(segment::HEADER + bytes + reserve);
        self.file = make(&*self.files, segment, size)?;
        self.segment = segment;
        self.at = segment::HEADER;
        self.size = size;
        commit.rolled(self.file(), self.name());
        Ok(())
    }

    /// Writes a record for which room was made, and says its number.
    pub(crate) fn append(&mut self, draft: &mut Draft, synced: u64, answers: u64) -> Result<u64, Failure> {
        let sequence = self.next;
        let bytes = draft.finish(sequence, synced, answers);
        self.file.write(self.at, bytes).map_err(|error| Failure::new("writing to", &self.name(), &error))?;
        self.at += draft.len();
        self.next += 1;
        Ok(sequence)
    }
}

/// Makes a segment that is certainly there.
fn make(files: &dyn Files, segment: Segment, size: u64) -> Result<Arc<dyn LogFile>, NoRoom> {
    let name = Segment::name(segment.number);
    let file = match files.create(&name, size) {
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
