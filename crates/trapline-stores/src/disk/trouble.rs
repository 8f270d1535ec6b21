//! What callers are told when something is wrong: what was attempted, why it failed, what became of it, and what can be done.

use trapline_frontier::{ErrorKind, StoreError};

use super::commit::Failure;
use super::log::NoRoom;

/// There is no room for a record.
pub(super) fn no_room(attempted: &str, trouble: &NoRoom) -> StoreError {
    match trouble {
        NoRoom::Failed(failure) => stopped(attempted, failure),
        NoRoom::Spared { needed, free, kept } => {
            let [needed, free, kept] = [needed, free, kept].map(|bytes| *bytes as f64 / f64::from(1 << 20));
            let needed =
                if needed > 0.0 { format!(", and {needed:.0} MiB are needed") } else { String::new() };
            StoreError::new(
                ErrorKind::Full,
                format!(
                    "disk store: cannot {attempted}: the disk has {free:.1} MiB left, {kept:.0} MiB are to be left alone \
                     (min_free_disk){needed}; nothing was done and nothing is lost, what is there can still be claimed and \
                     settled: free some space, then try again"
                ),
            )
        }
        NoRoom::Refused { file, error } => StoreError::new(
            ErrorKind::Full,
            format!(
                "disk store: cannot {attempted}: cannot make room for more in {file}: {error}; nothing was done and \
                 nothing is lost: free some space, then try again"
            ),
        ),
    }
}

/// Nothing was done, and nothing will be.
pub(super) fn stopped(attempted: &str, failure: &Failure) -> StoreError {
    StoreError::new(
        ErrorKind::Corrupt,
        format!(
            "disk store: cannot {attempted}: {failure}, so nothing more is promised; what was answered before is safe, and \
             questions are still answered: look after the disk, then open the store again"
        ),
    )
}

/// What was put on disk for want of memory cannot be read. Nothing was done.
pub(super) fn lost_swap(attempted: &str, failure: &Failure) -> StoreError {
    StoreError::new(
        ErrorKind::Corrupt,
        format!(
            "disk store: cannot {attempted}: {failure}, where it was put for want of memory (max_memory), so what is in memory \
             cannot be trusted any more; what was answered before is safe: look after the disk, then open the store again"
        ),
    )
}

/// What was left in a snapshot when the store was opened cannot be read. Nothing was done.
pub(super) fn lost_frame(attempted: &str, failure: &Failure) -> StoreError {
    StoreError::new(
        ErrorKind::Corrupt,
        format!(
            "disk store: cannot {attempted}: {failure}, which was whole when the store went on from it, so what is in memory cannot \
             be trusted any more; what was answered before is safe: look after the disk, then open the store again"
        ),
    )
}

/// It was done in memory, and may or may not be on disk.
pub(super) fn unsure(attempted: &str, failure: &Failure) -> StoreError {
    StoreError::new(
        ErrorKind::Corrupt,
        format!(
            "disk store: cannot {attempted} for certain: {failure}; whether this batch is there will be seen when the store \
             is opened again, whole or not at all: look after the disk, then open it and try again"
        ),
    )
}

/// Something that the answer needs cannot be read.
/// Something could not be read that may be another time.
pub(super) fn not_now(attempted: &str, failure: &Failure) -> StoreError {
    let message = format!(
        "disk store: cannot {attempted}: {failure}; nothing was changed: try again, and look after the disk"
    );
    StoreError::new(ErrorKind::Unavailable, message)
}

pub(super) fn unreadable(attempted: &str, failure: &Failure) -> StoreError {
    StoreError::new(
        ErrorKind::Corrupt,
        format!(
            "disk store: cannot {attempted}: {failure}; the rest of the store is not harmed: look after the disk, and see what \
             `verify` says (docs/manual/disk.md)"
        ),
    )
}
