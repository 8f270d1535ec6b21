//! The seam to where an engine puts what memory has no room for.

use std::fmt;

/// So many things are put on a shelf together at most.
pub const SHELF_THINGS: usize = 1 << 10;

/// Keeps things of one size, many at a time, for an engine that has not enough memory for all of them. They are needed as long as
/// the engine is, and not longer.
pub trait Shelf: fmt::Debug + Send + Sync {
    /// Puts things there, each of `size` bytes: to where others of the same size were before, perhaps fewer, or where there is room.
    ///
    /// Answers where they are; None if there is no room now, and nothing has changed.
    fn put(&self, before: Option<u64>, size: usize, things: &[u8]) -> Option<u64>;

    /// Reads some of the things that were put at a place, from a number on, so many that the buffer is full. None if they
    /// cannot be read: the engine then unwinds, and is not to be used any more.
    fn read(&self, place: u64, size: usize, from: usize, buffer: &mut [u8]) -> Option<()>;

    /// What was put there, of `size` bytes each, is needed no more.
    fn free(&self, place: u64, size: usize);
}
