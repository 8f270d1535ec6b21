//! How much memory an engine may take, and how much of what can be put on a shelf is in memory now.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::report::Pressure;
use crate::shelf::Shelf;

/// What all lists share of which chunks may be put on the shelf.
#[derive(Debug)]
pub(super) struct Room {
    shelf: Arc<dyn Shelf>,
    /// All that the engine may take.
    pub(super) most: u64,
    /// How many bytes of chunks are in memory, and how many only on the shelf.
    here: AtomicU64,
    away: AtomicU64,
    /// How many chunks were put there and brought back, and how many things were looked at there.
    put: AtomicU64,
    brought: AtomicU64,
    looked: AtomicU64,
    /// Whether the shelf had no room when it was last asked.
    is_full: AtomicBool,
}

/// A thing that can be put on a shelf.
pub(super) trait Shelved: Sized {
    /// How many bytes it has there.
    const SIZE: usize;

    /// Appends that many bytes; false if it must stay in memory.
    fn write(&self, bytes: &mut Vec<u8>) -> bool;

    /// What was written so.
    fn read(bytes: &[u8]) -> Self;

    /// Takes on what it is told, perhaps long after that was decided.
    fn amend(&mut self, news: u32);
}

impl Room {
    pub(super) fn new(shelf: Arc<dyn Shelf>, most: u64) -> Self {
        Self {
            shelf,
            most,
            here: AtomicU64::new(0),
            away: AtomicU64::new(0),
            put: AtomicU64::new(0),
            brought: AtomicU64::new(0),
            looked: AtomicU64::new(0),
            is_full: AtomicBool::new(false),
        }
    }

    pub(super) fn here(&self) -> u64 {
        self.here.load(Relaxed)
    }

    pub(super) fn is_full(&self) -> bool {
        self.is_full.load(Relaxed)
    }

    /// Another try may do better.
    pub(super) fn hope(&self) {
        self.is_full.store(false, Relaxed);
    }

    /// How it is, for an engine that takes so much besides.
    pub(super) fn pressure(&self, besides: u64) -> Pressure {
        Pressure {
            max_memory: self.most,
            in_memory: self.here() + besides,
            fixed: besides,
            paged: self.away.load(Relaxed),
            paged_out: self.put.load(Relaxed),
            paged_in: self.brought.load(Relaxed),
            looked_up: self.looked.load(Relaxed),
            is_full: self.is_full(),
        }
    }

    /// A chunk of so many bytes is in memory that was nowhere before.
    pub(super) fn made(&self, bytes: u64) {
        self.here.fetch_add(bytes, Relaxed);
    }

    /// A chunk of so many bytes is in an image that was nowhere before.
    pub(super) fn lent(&self, bytes: u64) {
        self.away.fetch_add(bytes, Relaxed);
    }

    /// A chunk is nowhere any more, neither in memory nor on the shelf.
    pub(super) fn dropped(&self, bytes: u64, is_here: bool, place: Option<u64>, size: usize) {
        (if is_here { &self.here } else { &self.away }).fetch_sub(bytes, Relaxed);
        if let Some(place) = place {
            self.shelf.free(place, size);
        }
    }

    /// Puts a chunk there that is in memory, and says where; or only notes that it went, if it is there already.
    pub(super) fn put_away(
        &self,
        bytes: u64,
        place: Option<u64>,
        size: usize,
        things: Option<&[u8]>,
    ) -> Option<u64> {
        let place = match things {
            Some(things) => self.shelf.put(place, size, things),
            None => place,
        };
        if place.is_some() {
            self.here.fetch_sub(bytes, Relaxed);
            self.away.fetch_add(bytes, Relaxed);
            self.put.fetch_add(1, Relaxed);
        } else {
            self.is_full.store(true, Relaxed);
        }
        place
    }

    /// A chunk that was away is in memory again.
    pub(super) fn came_back(&self, bytes: u64) {
        self.away.fetch_sub(bytes, Relaxed);
        self.here.fetch_add(bytes, Relaxed);
        self.brought.fetch_add(1, Relaxed);
    }

    /// All things of a chunk that is away.
    pub(super) fn all<T: Shelved>(&self, place: u64, count: usize) -> Vec<T> {
        let mut bytes = vec![0; count * T::SIZE];
        self.read(place, T::SIZE, 0, &mut bytes);
        bytes.chunks_exact(T::SIZE).map(T::read).collect()
    }

    /// One thing of a chunk that is away.
    pub(super) fn one<T: Shelved>(&self, place: u64, number: usize) -> T {
        let mut bytes = [0; SIZE_MAX];
        let bytes = &mut bytes[..T::SIZE];
        self.read(place, T::SIZE, number, bytes);
        self.looked.fetch_add(1, Relaxed);
        T::read(bytes)
    }

    fn read(&self, place: u64, size: usize, from: usize, buffer: &mut [u8]) {
        if self.shelf.read(place, size, from, buffer).is_none() {
            unwind();
        }
    }
}

/// Something that is elsewhere cannot be read. Nothing can be decided without it, and nothing that is in memory is right any more.
/// Whoever keeps it knows why, and catches this.
#[cold]
pub(super) fn unwind() -> ! {
    std::panic::resume_unwind(Box::new("what is kept elsewhere cannot be read"));
}

/// No thing has more bytes.
const SIZE_MAX: usize = 64;
