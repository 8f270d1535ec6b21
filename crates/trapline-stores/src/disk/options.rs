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
    /// How large the files of the log are made; a batch that is larger gets one of its own. At least 64 KiB. Defaults to
    /// 64 MiB.
    pub segment_bytes: u64,
}

impl DiskOptions {
    /// Smaller segments than this are made this large.
    pub const SEGMENT_BYTES_MIN: u64 = 64 << 10;
}

impl Default for DiskOptions {
    fn default() -> Self {
        Self { durability: Durability::default(), segment_bytes: 64 << 20 }
    }
}
