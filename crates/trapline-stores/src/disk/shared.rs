//! What the threads of a store share: the engine and the log under one lock, and all that needs none of it.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use trapline_frontier::{Disk, Engine, ErrorKind, StoreError};

use super::commit::{Commit, Failure};
use super::due::Due;
use super::files::Files;
use super::folder::Held;
use super::frames::{FrameFile, Places};
use super::keeper::Bell;
use super::lent::Lender;
use super::log::{Ahead, Log, Sizes};
use super::record::Draft;
use super::segment::Segment;
use super::snapshot;
use super::swap::Swap;
use super::texts::Texts;
use super::trouble::{lost_frame, lost_swap};
use crate::planted::Planted;

/// What the threads of a store share.
pub(super) struct Shared {
    /// Held while the engine does a verb and its record is written, never while waiting for the disk.
    pub(super) inner: Mutex<Inner>,
    pub(super) commit: Commit,
    pub(super) texts: Arc<Texts>,
    pub(super) swap: Option<Arc<Swap>>,
    pub(super) lender: Arc<Lender>,
    pub(super) files: Arc<dyn Files>,
    pub(super) ahead: Arc<Ahead>,
    pub(super) bell: Bell,
    pub(super) snapshots: Mutex<Latest>,
    pub(super) snapshot_bytes: u64,
    pub(super) sizes: Sizes,
    pub(super) quiet: Duration,
    /// Segments that were rewritten but for what cannot be read in them.
    pub(super) stuck: Mutex<BTreeSet<u64>>,
    /// Whether nothing is wanted any more of the snapshot from which the store was opened.
    pub(super) is_all_here: AtomicBool,
    /// Whether a thread takes snapshots, and makes segments ahead of time.
    pub(super) has_keeper: bool,
    pub(super) planted: Planted,
}

/// What is known of the latest snapshot. Locked while another one is taken.
pub(super) struct Latest {
    /// The record that comes after it.
    pub(super) next: u64,
    /// The segment in which that goes on.
    pub(super) segment: u64,
    /// How large it is.
    pub(super) bytes: u64,
    /// Where its chunks are, if they are beside it.
    pub(super) places: Option<Places>,
    /// Whether some of them were found to be lost: the next one must not refer to them.
    pub(super) has_lost_some: bool,
}

impl Default for Latest {
    /// There is none yet: all of the log comes after it.
    fn default() -> Self {
        Self { next: 1, segment: 1, bytes: 0, places: None, has_lost_some: false }
    }
}

pub(super) struct Inner {
    pub(super) engine: Engine,
    pub(super) log: Log,
    /// The last record that was a command; those after it only let time pass.
    pub(super) last_command: u64,
    /// How much was written since the last snapshot was begun.
    pub(super) unsaved: u64,
    /// When another one is due.
    pub(super) due: Due,
    pub(super) phase: Phase,
    /// The folder is ours as long as this is held. None with files of a test.
    pub(super) held: Option<Held>,
}

/// How far a store is on its way to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    /// Nothing is done any more, so that the last snapshot has everything.
    Closing,
    Closed,
    /// It has ended as a killed process does: not even what is half-way is removed.
    Abandoned,
}

impl Phase {
    pub(super) fn has_ended(self) -> bool {
        matches!(self, Self::Closed | Self::Abandoned)
    }
}

/// Why something that an engine has elsewhere cannot be read, if so, and what callers are told.
pub(super) fn loss(attempted: &str, swap: Option<&Swap>, lender: &Lender) -> Option<(Failure, StoreError)> {
    let swapped =
        swap.and_then(Swap::failure).map(|failure| (failure.clone(), lost_swap(attempted, &failure)));
    let lent = || lender.failure().map(|failure| (failure.clone(), lost_frame(attempted, &failure)));
    swapped.or_else(lent)
}

impl Shared {
    /// What the store takes of the disk; None if it cannot be seen.
    pub(super) fn disk(&self) -> Option<Disk> {
        let needed_bytes = self.texts.alive_bytes();
        let mut disk = Disk { needed_bytes, log_position: self.commit.durable(), ..Disk::default() };
        for name in self.files.list().ok()? {
            // What was removed since it was listed takes nothing.
            let bytes = self.files.bytes(&name).unwrap_or(0);
            if Segment::number_of(&name).is_some() {
                disk.segments += 1;
                disk.log_bytes += bytes;
            } else if snapshot::number_of(&name).is_some() || FrameFile::named(&name).is_some() {
                disk.snapshot_bytes += bytes;
            }
        }
        Some(disk)
    }

    /// Writes a record for which room was made, and says its number.
    pub(super) fn append(&self, inner: &mut Inner, draft: &mut Draft, answers: u64) -> Result<u64, Failure> {
        let appended = inner.log.append(draft, self.commit.durable(), answers);
        match &appended {
            Ok(sequence) => self.commit.wrote(*sequence),
            Err(failure) => self.commit.fail(failure.clone()),
        }
        inner.unsaved += draft.len();
        let wants_segment = inner.log.begins_to_want();
        if wants_segment {
            inner.log.expect(self.texts.alive_bytes());
        }
        if wants_segment || inner.unsaved >= inner.due.worth_a_look() {
            self.bell.ring();
        }
        appended
    }

    /// How large segments are made now.
    pub(super) fn usual_segment(&self) -> u64 {
        self.sizes.usual(self.texts.alive_bytes())
    }

    /// Why something that the engine has elsewhere cannot be read, if so, and what callers are told.
    pub(super) fn loss(&self, attempted: &str) -> Option<(Failure, StoreError)> {
        loss(attempted, self.swap.as_deref(), &self.lender)
    }

    /// Does something with the engine. It unwinds if a page cannot be read, and nothing is promised any more.
    pub(super) fn caught<T>(
        &self,
        attempted: &str,
        work: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|unwound| match self.loss(attempted) {
            Some((failure, error)) => {
                self.commit.fail(failure);
                Err(error)
            }
            None => resume_unwind(unwound),
        })
    }

    /// Goes on to a phase; answers whether it had not come there yet.
    pub(super) fn go_to(&self, phase: Phase) -> bool {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let goes = inner.phase != phase && !inner.phase.has_ended();
        if goes {
            inner.phase = phase;
        }
        goes
    }

    pub(super) fn inner(&self, attempted: &str) -> Result<MutexGuard<'_, Inner>, StoreError> {
        self.inner_in(Phase::Open, attempted)
    }

    /// What there is, if the store is still in a phase.
    pub(super) fn inner_in(
        &self,
        phase: Phase,
        attempted: &str,
    ) -> Result<MutexGuard<'_, Inner>, StoreError> {
        let Ok(inner) = self.inner.lock() else {
            if let Some((_, error)) = self.loss(attempted) {
                return Err(error);
            }
            return Err(StoreError::new(
                ErrorKind::Corrupt,
                format!(
                    "disk store: cannot {attempted}: an earlier verb failed half-way, so what is in memory cannot be trusted; \
                     what is on disk can: open the store again, and report this bug in Trapline"
                ),
            ));
        };
        if inner.phase != phase {
            let message = format!("disk store: cannot {attempted}: the store was closed; open it again");
            return Err(StoreError::new(ErrorKind::Unavailable, message));
        }
        Ok(inner)
    }
}
