//! How much memory all connections together may take for what goes over them.

use std::sync::{Mutex, PoisonError};

/// What a connection may always have, so that small frames never wait for large ones of others.
const FREE: usize = 1 << 20;

/// Bytes that are left for all.
pub(super) struct Room {
    left: Mutex<usize>,
}

/// What somebody has of a room, until it is dropped.
pub(super) struct Share<'a> {
    room: &'a Room,
    taken: usize,
}

impl Room {
    pub(super) fn new(bytes: usize) -> Self {
        Self { left: Mutex::new(bytes) }
    }

    pub(super) fn share(&self) -> Share<'_> {
        Share { room: self, taken: 0 }
    }
}

impl Share<'_> {
    /// Takes as much as is needed for so many bytes in all; false if that much is not left.
    pub(super) fn grow_to(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(FREE).saturating_sub(self.taken);
        let mut left = self.room.left.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(rest) = left.checked_sub(more) else { return false };
        *left = rest;
        self.taken += more;
        true
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        *self.room.left.lock().unwrap_or_else(PoisonError::into_inner) += self.taken;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_given_back_and_small_ones_are_free() {
        let room = Room::new(10);
        let mut first = room.share();
        assert!(first.grow_to(FREE + 4) && first.grow_to(FREE + 8) && first.grow_to(5));
        let mut second = room.share();
        assert!(!second.grow_to(FREE + 3), "2 are left");
        assert!(second.grow_to(FREE) && second.grow_to(FREE + 2));
        drop(first);
        assert!(second.grow_to(FREE + 10) && !second.grow_to(FREE + 11));
    }
}
