//! Moments: a time, and among equal times the order of the commands; and how times and ranks are kept in columns.

use trapline_core::Timestamp;

/// The order of commands. No two are equal.
pub(super) type Rank = i64;

/// When something ends or ended, and the command that set it.
///
/// A moment that lay ahead when it was set comes before one of the same time that was set at that time, whatever else
/// happened: that is in the two highest bits of the rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    pub(super) at: i64,
    pub(super) rank: Rank,
}

const PHASE: i64 = 1 << 61;

impl Moment {
    pub(super) const ZERO: Self = Self { at: 0, rank: 0 };

    /// A moment set by a command of a rank at `now`.
    pub(super) fn set(at: i64, rank: Rank, now: i64) -> Self {
        Self { at, rank: if at > now { rank } else { rank + 2 * PHASE } }
    }

    /// When a session that ends as soon as its queue could be served ends: behind all that are freed at that time.
    pub(super) fn session_end(self) -> Self {
        Self { at: self.at, rank: self.rank % PHASE + PHASE }
    }
}

/// A time as a column has it. The end of time is the last there is.
pub(super) fn column(time: Timestamp) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// The same, back.
pub(super) fn time(column: i64) -> Timestamp {
    match column {
        i64::MAX => Timestamp::MAX,
        millis => Timestamp::from_millis(millis.unsigned_abs()),
    }
}

/// A count as a column has it.
pub(super) fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// How many ranks are drawn for one number of the sequence.
const BLOCK: i64 = 1 << 18;

/// The ranks that a command may draw: later than those of all commands before it.
#[derive(Debug)]
pub(super) struct Ranks {
    /// Numbers of the sequence, the next one last.
    blocks: Vec<i64>,
    next: Rank,
    end: Rank,
}

impl Ranks {
    /// How many numbers of the sequence a command takes that draws so many ranks.
    pub(super) fn blocks(draws: usize) -> i64 {
        draws as i64 / BLOCK + 1
    }

    pub(super) fn new(mut blocks: Vec<i64>) -> Self {
        blocks.sort_unstable_by(|a, b| b.cmp(a));
        Self { blocks, next: 0, end: 0 }
    }

    /// The next rank. Once all are drawn, the last one is drawn again and again: a command that takes too few blocks is a
    /// mistake that only blurs an order.
    pub(super) fn draw(&mut self) -> Rank {
        if self.next == self.end
            && let Some(block) = self.blocks.pop()
        {
            (self.next, self.end) = (block * BLOCK, (block + 1) * BLOCK);
        }
        let rank = self.next;
        debug_assert!(self.next < self.end, "a command that draws more ranks than it took");
        self.next = (self.next + 1).min(self.end);
        rank
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_set_ahead_comes_before_what_is_set_at_that_time() {
        let ahead = Moment::set(10, 7, 3);
        let at_once = Moment::set(10, 5, 10);
        assert!(ahead < ahead.session_end());
        assert!(ahead.session_end() < at_once);
        assert_eq!(at_once.session_end().rank % PHASE, 5);
    }

    #[test]
    fn ranks_go_up_over_blocks() {
        let mut ranks = Ranks::new(vec![9, 4]);
        let first = ranks.draw();
        assert_eq!(first, 4 * BLOCK);
        for _ in 1..BLOCK {
            assert!(ranks.draw() > first);
        }
        assert_eq!(ranks.draw(), 9 * BLOCK);
    }

    #[test]
    fn times_come_back_and_the_end_of_time_stays_it() {
        for millis in [0, 1, 1_700_000_000_000, i64::MAX as u64 - 1] {
            let at = Timestamp::from_millis(millis);
            assert_eq!(time(column(at)), at);
        }
        assert_eq!(time(column(Timestamp::MAX)), Timestamp::MAX);
    }
}
