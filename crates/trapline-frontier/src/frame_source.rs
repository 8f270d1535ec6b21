//! The seam to where an engine finds those frames of its image that it has left there.

use std::fmt;

/// Gives the frames of an image from which an engine was made, for as long as the engine needs them.
pub trait FrameSource: fmt::Debug + Send + Sync {
    /// The bytes of the frame with this number, counted from 0. None if they cannot be read: the engine then unwinds, and is not to
    /// be used any more.
    fn frame(&self, number: u64) -> Option<Vec<u8>>;
}
