//! Moments ahead, however far an operator sets them.

use std::time::Duration;

use tokio::time::Instant;

/// Farther than any process runs, and near enough to be a moment.
pub(crate) const FAR: Duration = Duration::from_secs(30 * 365 * 86_400);

/// The moment after this time; adding to a moment would panic for times without end.
pub(crate) fn after(time: Duration) -> Instant {
    Instant::now() + time.min(FAR)
}
