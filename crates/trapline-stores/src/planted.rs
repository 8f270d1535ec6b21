//! Faults planted in the disk store on purpose, one at a time, to see that the tests would find them.
//!
//! Only with the feature `planted`, which nothing but tests turns on. Without it what is here does what should be done,
//! and nothing else is left in the program.

use std::io;
use std::sync::Arc;

use crate::disk::files::LogFile;

/// What goes wrong. Each breaks one promise about the disk, now and then.
#[cfg(feature = "planted")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// One sync in four is left out, and what waited for it is answered.
    SyncSkipped,
    /// One record in four is written only with the next one, after it was answered.
    AnsweredBeforeWrite,
    /// A snapshot says that it goes as far as the log does when it is written, not when it was begun.
    SnapshotMisplaced,
}

#[cfg(feature = "planted")]
impl Fault {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::SyncSkipped, Self::AnsweredBeforeWrite, Self::SnapshotMisplaced];
}

/// The fault planted in a store, if any is.
#[derive(Clone, Default)]
pub(crate) struct Planted {
    #[cfg(feature = "planted")]
    fault: Option<Fault>,
    /// A record that is written too late: into this file, at this byte.
    #[cfg(feature = "planted")]
    late: Option<(Arc<dyn LogFile>, u64, Vec<u8>)>,
}

#[cfg(feature = "planted")]
impl Planted {
    pub(crate) fn with(fault: Fault) -> Self {
        Self { fault: Some(fault), late: None }
    }

    /// Writes a record.
    pub(crate) fn write(
        &mut self,
        file: &Arc<dyn LogFile>,
        at: u64,
        bytes: &[u8],
        sequence: u64,
    ) -> io::Result<()> {
        if let Some((file, at, bytes)) = self.late.take() {
            file.write(at, &bytes)?;
        }
        if self.fault == Some(Fault::AnsweredBeforeWrite) && sequence.is_multiple_of(4) {
            self.late = Some((Arc::clone(file), at, bytes.to_vec()));
            return Ok(());
        }
        file.write(at, bytes)
    }

    /// Syncs a file up to a record.
    pub(crate) fn sync(&self, file: &dyn LogFile, sequence: u64) -> io::Result<()> {
        if self.fault == Some(Fault::SyncSkipped) && sequence.is_multiple_of(4) {
            return Ok(());
        }
        file.sync()
    }

    /// Whether snapshots have a wrong position.
    pub(crate) fn misplaces_snapshots(&self) -> bool {
        self.fault == Some(Fault::SnapshotMisplaced)
    }
}

#[cfg(not(feature = "planted"))]
#[expect(clippy::unused_self, reason = "only tests plant faults")]
impl Planted {
    #[inline]
    pub(crate) fn write(&self, file: &Arc<dyn LogFile>, at: u64, bytes: &[u8], _: u64) -> io::Result<()> {
        file.write(at, bytes)
    }

    #[inline]
    pub(crate) fn sync(&self, file: &dyn LogFile, _: u64) -> io::Result<()> {
        file.sync()
    }

    #[inline]
    pub(crate) fn misplaces_snapshots(&self) -> bool {
        false
    }
}
