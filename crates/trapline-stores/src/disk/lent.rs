//! What of a snapshot was not read when the store was opened, only seen to be whole: it is read there when it is wanted. The engine's
//! [`FrameSource`].
//!
//! The file stays open, so it may be removed meanwhile: another snapshot has taken its place by then.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trapline_frontier::FrameSource;

use super::commit::Failure;
use super::files::LogFile;
use super::snapshot::{self, Unusable};

/// Whether snapshots are lent to the engine, and what became of that.
pub(crate) struct Lender {
    /// Those of at least so many bytes are.
    least_bytes: u64,
    failure: Mutex<Option<Failure>>,
}

/// The frames of one.
pub(crate) struct LentFrames {
    lender: Arc<Lender>,
    file: Arc<dyn LogFile>,
    /// What people call it.
    name: String,
    /// Where each frame begins.
    begins: Mutex<Vec<u64>>,
}

impl Lender {
    pub(crate) fn new(least_bytes: u64) -> Self {
        Self { least_bytes, failure: Mutex::default() }
    }

    /// Whether a snapshot of so many bytes is lent.
    pub(crate) fn lends(&self, bytes: u64) -> bool {
        bytes >= self.least_bytes
    }

    /// The same, of an engine that nobody will use.
    pub(crate) fn take_failure(&self) -> Option<Failure> {
        locked(&self.failure).take()
    }

    /// Why something could not be read: the engine cannot be trusted any more.
    pub(crate) fn failure(&self) -> Option<Failure> {
        locked(&self.failure).clone()
    }
}

impl LentFrames {
    pub(crate) fn new(lender: &Arc<Lender>, file: &Arc<dyn LogFile>, name: String) -> Arc<Self> {
        let (lender, file) = (Arc::clone(lender), Arc::clone(file));
        Arc::new(Self { lender, file, name, begins: Mutex::default() })
    }

    /// The next frame begins there.
    pub(crate) fn begins(&self, at: u64) {
        locked(&self.begins).push(at);
    }

    fn try_read(&self, number: u64) -> io::Result<Vec<u8>> {
        let begin = usize::try_from(number).ok().and_then(|number| locked(&self.begins).get(number).copied());
        let begin = begin.ok_or(io::ErrorKind::NotFound)?;
        let changed = || io::Error::other(format!("what is at byte {begin} is not what was there before"));
        match snapshot::read_bytes(&*self.file, begin, number) {
            Ok(bytes) => bytes.ok_or_else(changed),
            Err(Unusable::Unreadable(what)) => Err(io::Error::other(what)),
            Err(_) => Err(changed()),
        }
    }
}

impl FrameSource for LentFrames {
    fn frame(&self, number: u64) -> Option<Vec<u8>> {
        // Once more: another time it may be read.
        let read = self.try_read(number).or_else(|_| self.try_read(number));
        read.map_err(|error| {
            let failure = Failure::new("reading", &self.name, &error);
            locked(&self.lender.failure).get_or_insert(failure);
        })
        .ok()
    }
}

impl fmt::Debug for LentFrames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LentFrames").field("name", &self.name).finish_non_exhaustive()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
