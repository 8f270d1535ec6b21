//! What can be chosen for a disk store.

use std::fmt;
use std::time::Duration;

use trapline_core::format_duration;

/// When an answer is safe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// An answer means that what it says is on disk.
    #[default]
    Batch,
    /// An answer survives the death of the process, and after this long that of the machine.
    Interval(Duration),
    /// An answer survives the death of the process, and after [`flush`](trapline_frontier::Store::flush) that of the
    /// machine.
    Explicit,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Batch => f.write_str("batch"),
            Self::Interval(period) => write!(f, "interval {}", format_duration(*period)),
            Self::Explicit => f.write_str("explicit"),
        }
    }
}

/// How a disk store is kept. Not stored: each opening may choose anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskOptions {
    /// When an answer is safe. Defaults to [`Durability::Batch`].
    pub durability: Durability,
    /// How large the files of the log are made at most; where less is in it they are smaller, and a batch that is larger gets one
    /// of its own. At least 64 KiB, at most 2 GiB. Defaults to 64 MiB.
    pub segment_bytes: u64,
    /// A snapshot is taken when the log has grown by so much since the last one, and by half as much again as was written for that one, or
    /// a quarter of what it has; or sooner, where much of the log is needed no more and that gives it back. Defaults to 64 MiB.
    pub snapshot_bytes: u64,
    /// When hardly anything was asked for in so long, what the log has too much is given back. Defaults to a minute.
    pub quiet: Duration,
    /// So much of the disk is left to others: when a segment would take the rest below it, nothing is admitted any more,
    /// until there is room. Leases are still granted and settled. Defaults to 256 MiB.
    pub min_free_disk: u64,
    /// So much memory the store may take. What has no room is put on disk for a while, as far as it can be: the records of URLs and
    /// their places in the order of their queues, those first that were not used for longest. The seen set and the queues
    /// stay. None takes as much as there is. Defaults to none.
    pub max_memory: Option<u64>,
    /// A snapshot of at least so many bytes is not read whole when the store is opened: what is remembered of single URLs stays in it
    /// until it is wanted, or the thread in the background comes to it. Nor is the next one written whole: it has what has changed, and
    /// refers to this one's files for the rest. Defaults to 16 MiB.
    pub lazy_bytes: u64,
    /// Whether a thread takes snapshots and prepares segments ahead of time, another one reads what claims will hand out, and closing
    /// leaves a snapshot. Without it they are taken only when they are asked for, and nothing happens but in verbs: for tests that must
    /// repeat. Defaults to true.
    pub background: bool,
}

impl DiskOptions {
    /// Smaller segments than this are made this large.
    pub const SEGMENT_BYTES_MIN: u64 = 64 << 10;

    /// Larger segments than this are made this large.
    pub const SEGMENT_BYTES_MAX: u64 = 2 << 30;

    /// Shorter times than this are made this long.
    pub const QUIET_MIN: Duration = Duration::from_millis(1);

    /// The same with sizes and times that a store can have.
    pub(super) fn within_bounds(self) -> Self {
        let segment_bytes = self.segment_bytes.clamp(Self::SEGMENT_BYTES_MIN, Self::SEGMENT_BYTES_MAX);
        Self { segment_bytes, quiet: self.quiet.max(Self::QUIET_MIN), ..self }
    }
}

impl Default for DiskOptions {
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            segment_bytes: 64 << 20,
            snapshot_bytes: 64 << 20,
            quiet: Duration::from_secs(60),
            min_free_disk: 256 << 20,
            max_memory: None,
            lazy_bytes: 16 << 20,
            background: true,
        }
    }
}
