//! Moments: a time, and among equal times the order of the commands. Everything the engine orders, it orders
//! by these.

use trapline_core::Timestamp;

/// The order of commands. Drawn from one counter of the crawl, so no two are equal.
pub(super) type Rank = u64;

/// When something ends or ended, and the command that set it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    pub(super) at: Timestamp,
    pub(super) rank: Rank,
}

/// How long a queue has been waiting to be served: since its last hindrance ended.
///
/// Queues that are reconsidered together share `since` and keep their former order by `former`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Age {
    pub(super) since: Moment,
    pub(super) former: Moment,
}

impl Age {
    pub(super) fn since(since: Moment) -> Self {
        Self { since, former: Moment::default() }
    }
}
