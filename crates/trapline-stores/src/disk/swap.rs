//! The swap file: what memory has no room for, in a file that goes with the process. The engine's [`Shelf`].
//!
//! Nothing here survives anything: what is in the file is in the log and the snapshots as well. So it has no name, and nothing is
//! left of it when the process ends, however it ends. Every thing has a checksum all the same: a disk that has forgotten what was
//! written must not change what is decided.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trapline_frontier::{Engine, SHELF_THINGS, Shelf};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::commit::Failure;
use super::files::{Files, LogFile};

/// What the file is called while it is made.
pub(crate) const NAME: &str = "swap";

/// The file, and how much memory the engine may take before there is one.
pub(crate) struct Swap {
    files: Arc<dyn Files>,
    max_memory: u64,
    min_free_disk: u64,
    file: Mutex<Option<SwapFile>>,
    failure: Mutex<Option<Failure>>,
}

/// The file once it is made.
struct SwapFile {
    file: Arc<dyn LogFile>,
    /// How far it was used, and which places before that are free, by how long they are.
    end: u64,
    free: BTreeMap<u64, Vec<u64>>,
    /// How far there is room on the disk for certain, or was when it was last asked.
    room: u64,
}

/// The checksum of a thing.
const CHECK: usize = 4;

/// After so many bytes the disk is asked for room again.
const ASKED_AFTER: u64 = 16 << 20;

impl Swap {
    pub(crate) fn new(files: Arc<dyn Files>, max_memory: u64, min_free_disk: u64) -> Self {
        Self { files, max_memory, min_free_disk, file: Mutex::default(), failure: Mutex::default() }
    }

    /// The engine, made to keep within its memory.
    pub(crate) fn hold(self: &Arc<Self>, engine: Engine) -> Engine {
        engine.within(self.max_memory, Arc::clone(self) as Arc<dyn Shelf>)
    }

    /// Why it could not be read: the engine cannot be trusted any more.
    pub(crate) fn failure(&self) -> Option<Failure> {
        locked(&self.failure).clone()
    }

    /// Makes the file, which nobody else can find.
    fn make(&self) -> io::Result<SwapFile> {
        let file = self.files.create(NAME, 0)?;
        self.files.remove(NAME)?;
        Ok(SwapFile { file, end: 0, free: BTreeMap::new(), room: 0 })
    }

    fn try_put(&self, before: Option<u64>, size: usize, things: &[u8]) -> io::Result<Option<u64>> {
        let mut guard = locked(&self.file);
        let swap = match &mut *guard {
            Some(swap) => swap,
            none => none.insert(self.make()?),
        };
        let bytes = region(size);
        let free = || swap.free.get_mut(&bytes).and_then(Vec::pop);
        let place = match before.or_else(free) {
            Some(place) => place,
            None => {
                let place = swap.end;
                if place + bytes > swap.room {
                    let free = self.files.free()?;
                    if free < self.min_free_disk.saturating_add(ASKED_AFTER) {
                        return Ok(None);
                    }
                    swap.room = place + ASKED_AFTER;
                }
                swap.end += bytes;
                place
            }
        };
        let mut checked = Vec::with_capacity(things.len() / size * (size + CHECK));
        for (number, thing) in things.chunks_exact(size).enumerate() {
            checked.extend_from_slice(thing);
            checked.extend_from_slice(&check(thing, place, number));
        }
        let file = Arc::clone(&swap.file);
        let written = file.write(place, &checked);
        if written.is_err() && before.is_none() {
            swap.free.entry(bytes).or_default().push(place);
        }
        written.map(|()| Some(place))
    }

    fn try_read(&self, place: u64, size: usize, from: usize, buffer: &mut [u8]) -> io::Result<()> {
        let file = locked(&self.file).as_ref().map(|swap| Arc::clone(&swap.file));
        let file = file.ok_or(io::ErrorKind::NotFound)?;
        let count = buffer.len() / size;
        let at = place + (from * (size + CHECK)) as u64;
        let checked = file.read_at(at, count * (size + CHECK))?;
        let things = checked.chunks_exact(size + CHECK);
        if things.len() != count {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for (number, (thing, place_for)) in things.zip(buffer.chunks_exact_mut(size)).enumerate() {
            let (thing, sum) = thing.split_at(size);
            if sum != check(thing, place, from + number) {
                return Err(io::Error::other(format!(
                    "what is at byte {place} is not what was written there"
                )));
            }
            place_for.copy_from_slice(thing);
        }
        Ok(())
    }
}

impl Shelf for Swap {
    fn put(&self, before: Option<u64>, size: usize, things: &[u8]) -> Option<u64> {
        // What has no room stays in memory, whatever the reason is; what was there before may be half of it now, but nobody
        // reads it before it was put there once more.
        self.try_put(before, size, things).ok().flatten()
    }

    fn read(&self, place: u64, size: usize, from: usize, buffer: &mut [u8]) -> Option<()> {
        // Once more: another time it may be read.
        let read =
            self.try_read(place, size, from, buffer).or_else(|_| self.try_read(place, size, from, buffer));
        read.map_err(|error| {
            let failure = Failure::new("reading", &self.files.describe(NAME), &error);
            locked(&self.failure).get_or_insert(failure);
        })
        .ok()
    }

    fn free(&self, place: u64, size: usize) {
        if let Some(swap) = &mut *locked(&self.file) {
            swap.free.entry(region(size)).or_default().push(place);
        }
    }
}

impl fmt::Debug for Swap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Swap").finish_non_exhaustive()
    }
}

/// How much of the file is set aside for things of a size, however many there are now.
fn region(size: usize) -> u64 {
    (SHELF_THINGS * (size + CHECK)) as u64
}

fn check(thing: &[u8], place: u64, number: usize) -> [u8; CHECK] {
    (xxh3_64_with_seed(thing, place + number as u64) as u32).to_le_bytes()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
