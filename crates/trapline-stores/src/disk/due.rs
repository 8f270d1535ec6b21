//! When the next snapshot is due.
//!
//! Two reasons there are for one: what was written since the last is replayed at opening, and what was dead before the older of two snapshots
//! can go. The first has time. The second has not where much is dead, as in a crawl that visits the same pages again and again.

use std::time::{Duration, Instant};

use super::shared::Latest;

/// How large a snapshot is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size {
    /// All that it has.
    pub(super) bytes: u64,
    /// What of it was written, and not there before.
    pub(super) written: u64,
}

impl Size {
    /// Of a snapshot that others can refer to, such a part is thought to be written for the next one.
    const CHANGES_SHARE: u64 = 8;

    /// Of one from which the store was opened, as if it had just been written.
    pub(super) fn at_opening(latest: &Latest) -> Self {
        let bytes = latest.bytes;
        let written = if latest.places.is_some() { bytes / Self::CHANGES_SHARE } else { bytes };
        Self { bytes, written }
    }
}

/// When a snapshot is due, by how much was written since the last one.
pub(super) struct Due {
    /// In any case.
    at: u64,
    /// If it gives back much of the log: so it is looked at, and again after so much more.
    sooner: u64,
    step: u64,
    /// But not before then.
    since: Instant,
}

impl Due {
    /// Where much is given back, snapshots may be written so many times as fast as the log.
    const TIMES_THE_LOG: u64 = 4;
    /// After such a part of a snapshot there is another one, however much of it was written: the log since then is done again at opening.
    const TAIL_SHARE: u64 = 4;
    /// However small they are, not more often than the log grows by this.
    const LEAST: u64 = 16 << 20;
    /// And for so many times as long as one took, there is no other.
    const RESTS: u32 = 4;

    /// After a snapshot which took so long, and of which so much was written. `snapshot_bytes`:
    /// [`DiskOptions::snapshot_bytes`](super::DiskOptions).
    pub(super) fn after(snapshot: Size, took: Duration, snapshot_bytes: u64) -> Self {
        let Size { bytes, written } = snapshot;
        let sooner = Self::LEAST.max(written / Self::TIMES_THE_LOG);
        // In any case not so soon that snapshots write more than twice what the log does.
        let at = (written / 2 * 3).min(bytes / Self::TAIL_SHARE).max(written / 2);
        Self {
            at: snapshot_bytes.max(at),
            sooner,
            step: sooner / 4,
            since: Instant::now() + took * Self::RESTS,
        }
    }

    /// After one that failed.
    pub(super) fn again(unsaved: u64, snapshot_bytes: u64) -> Self {
        let at = unsaved.saturating_add(snapshot_bytes);
        Self { at, sooner: at, step: at, since: Instant::now() }
    }

    /// From so much on it may be.
    pub(super) fn worth_a_look(&self) -> u64 {
        self.at.min(self.sooner)
    }

    /// Whether it is, where the log has much too much or not.
    pub(super) fn is_now(&mut self, unsaved: u64, is_wasteful: bool) -> bool {
        let is_worth_it = is_wasteful && unsaved >= self.sooner && Instant::now() >= self.since;
        if unsaved >= self.at || is_worth_it {
            return true;
        }
        if unsaved >= self.sooner {
            self.sooner = unsaved.saturating_add(self.step);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn whole(bytes: u64) -> Size {
        Size { bytes, written: bytes }
    }

    #[test]
    fn a_snapshot_is_due_sooner_where_much_is_dead() {
        // A large one, of which an eighth was written.
        let large = Size { bytes: 1600 * MIB, written: 200 * MIB };
        let mut due = Due::after(large, Duration::ZERO, 64 * MIB);
        assert!(!due.is_now(299 * MIB, false) && due.is_now(300 * MIB, false));
        let mut due = Due::after(large, Duration::ZERO, 64 * MIB);
        assert!(!due.is_now(49 * MIB, true) && due.is_now(50 * MIB, true));
        // A small one: so much as was chosen, or a little.
        let mut due = Due::after(whole(MIB), Duration::ZERO, 64 * MIB);
        assert!(!due.is_now(63 * MIB, false) && due.is_now(64 * MIB, false));
        let mut due = Due::after(whole(MIB), Duration::ZERO, 64 * MIB);
        assert!(!due.is_now(15 * MIB, true) && due.is_now(16 * MIB, true));
    }

    /// What is replayed at opening is half as much again as was written for it, and no more than a quarter of it; unless that were to
    /// write more than twice as much as the log.
    #[test]
    fn what_is_soon_written_is_soon_due() {
        let mut due = Due::after(Size { bytes: 800 * MIB, written: 100 * MIB }, Duration::ZERO, 64 * MIB);
        assert!(!due.is_now(149 * MIB, false) && due.is_now(150 * MIB, false));
        let mut due = Due::after(Size { bytes: 800 * MIB, written: 300 * MIB }, Duration::ZERO, 64 * MIB);
        assert!(!due.is_now(199 * MIB, false) && due.is_now(200 * MIB, false));
        let mut due = Due::after(whole(800 * MIB), Duration::ZERO, 64 * MIB);
        assert!(!due.is_now(399 * MIB, false) && due.is_now(400 * MIB, false));
    }

    /// Whoever is told that something was written has not to look each time.
    #[test]
    fn it_is_looked_at_now_and_then() {
        let mut due = Due::after(Size { bytes: 1600 * MIB, written: 200 * MIB }, Duration::ZERO, 64 * MIB);
        assert_eq!(due.worth_a_look(), 50 * MIB);
        assert!(!due.is_now(60 * MIB, false));
        assert_eq!(due.worth_a_look(), 72 * MIB + MIB / 2);
        assert!(!due.is_now(290 * MIB, false));
        assert_eq!(due.worth_a_look(), 300 * MIB);
    }

    /// However much is dead, a slow one is not followed by another at once; but what is to be replayed is bounded.
    #[test]
    fn after_a_slow_one_there_is_a_rest() {
        let large = Size { bytes: 1600 * MIB, written: 200 * MIB };
        let mut due = Due::after(large, Duration::from_secs(3600), 64 * MIB);
        assert!(!due.is_now(299 * MIB, true) && due.is_now(300 * MIB, true));
    }

    #[test]
    fn after_one_that_failed_as_much_is_written_once_more() {
        let mut due = Due::again(300 * MIB, 64 * MIB);
        assert!(!due.is_now(363 * MIB, true) && due.is_now(364 * MIB, false));
        assert_eq!(Due::again(u64::MAX, 1).worth_a_look(), u64::MAX);
    }
}
