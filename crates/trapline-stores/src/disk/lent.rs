//! What of a snapshot was not read when the store was opened, only seen to be whole: it is read there when it is wanted. The engine's
//! [`FrameSource`].
//!
//! The files stay open, so they may be removed meanwhile: another snapshot has taken their place by then.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trapline_frontier::FrameSource;

use super::commit::Failure;
use super::files::LogFile;
use super::frames::{FrameFile, FramePlace};
use super::snapshot::{self, Found, Unusable};

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
    frames: Mutex<Frames>,
}

#[derive(Default)]
struct Frames {
    /// Where each of them is, by its number.
    places: Vec<Place>,
    /// The files besides the snapshot's, and what people call them.
    files: BTreeMap<FrameFile, (String, Arc<dyn LogFile>)>,
}

#[derive(Clone, Copy)]
enum Place {
    /// From this byte of the snapshot on.
    Here(u64),
    Elsewhere(FramePlace),
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
        Arc::new(Self { lender, file, name, frames: Mutex::default() })
    }

    /// The next frame begins there.
    pub(crate) fn begins(&self, at: u64) {
        locked(&self.frames).places.push(Place::Here(at));
    }

    /// The next frame is in another file, which people call so.
    pub(crate) fn is_elsewhere(
        &self,
        place: FramePlace,
        file: &Arc<dyn LogFile>,
        name: impl FnOnce() -> String,
    ) {
        let mut frames = locked(&self.frames);
        frames.places.push(Place::Elsewhere(place));
        frames.files.entry(place.file()).or_insert_with(|| (name(), Arc::clone(file)));
    }

    /// Where a frame is: in which file, what people call that, and its place there.
    fn find(&self, number: u64) -> Option<(Arc<dyn LogFile>, String, Place)> {
        let frames = locked(&self.frames);
        let place = *frames.places.get(usize::try_from(number).ok()?)?;
        let (name, file) = match place {
            Place::Here(_) => (&self.name, &self.file),
            Place::Elsewhere(place) => frames.files.get(&place.file()).map(|(name, file)| (name, file))?,
        };
        Some((Arc::clone(file), name.clone(), place))
    }
}

impl Place {
    fn read(self, file: &dyn LogFile, number: u64) -> io::Result<Vec<u8>> {
        let changed = |at| io::Error::other(format!("what is at byte {at} is not what was there before"));
        match self {
            Self::Here(begin) => match snapshot::read_bytes(file, begin, number) {
                Ok(Some(Found::Here(bytes))) => Ok(bytes),
                Err(Unusable::Unreadable(what)) => Err(io::Error::other(what)),
                _ => Err(changed(begin)),
            },
            Self::Elsewhere(place) => match place.read(file)? {
                Some(read) => Ok(read.bytes),
                None => Err(changed(place.at())),
            },
        }
    }
}

impl FrameSource for LentFrames {
    fn frame(&self, number: u64) -> Option<Vec<u8>> {
        let (file, name, place) = self.find(number)?;
        // Once more: another time it may be read.
        let read = place.read(&*file, number).or_else(|_| place.read(&*file, number));
        read.map_err(|error| {
            let failure = Failure::new("reading", &name, &error);
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
