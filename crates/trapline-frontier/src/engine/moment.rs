//! Moments: a time, and among equal times the order of the commands. Everything the engine orders, it orders
//! by these.

use std::sync::Arc;

use trapline_core::Timestamp;

/// The order of commands. Drawn from one counter of the crawl, so no two are equal.
pub(super) type Rank = u64;

/// When something ends or ended, and the command that set it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    pub(super) at: Timestamp,
    pub(super) rank: Rank,
}

impl Moment {
    /// Before everything.
    pub(super) const ZERO: Self = Self { at: Timestamp::ZERO, rank: 0 };
}

/// How long a queue has been waiting to be served: since its last hindrance ended.
///
/// Queues that are reconsidered together share `since` and keep their former order, by the age they had before.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Age {
    pub(super) since: Moment,
    pub(super) former: Option<Arc<Age>>,
}

impl Age {
    /// So many reconsiderations in a row, without being served in between, are remembered.
    const FORMER_MAX: usize = 16;

    pub(super) fn since(since: Moment) -> Self {
        Self { since, former: None }
    }

    /// Whether it was not reconsidered with others.
    pub(super) fn is_simple(&self) -> bool {
        self.former.is_none()
    }

    /// The age of a queue that had this age and was reconsidered with others.
    pub(super) fn reconsidered(&self, since: Moment) -> Self {
        let former = if self.depth() < Self::FORMER_MAX { self.clone() } else { Self::since(self.since) };
        Self { since, former: Some(Arc::new(former)) }
    }

    fn depth(&self) -> usize {
        std::iter::successors(self.former.as_deref(), |age| age.former.as_deref()).count()
    }
}
