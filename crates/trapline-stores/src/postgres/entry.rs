//! An entry as a step of work sees it: a URL of a queue, its place and its state.

use std::sync::Arc;

use trapline_core::Identity;
use trapline_frontier::{PageRecord, UrlState};

use super::moment::{Moment, Rank};

/// One entry. It knows what its rows were, so that only what changed is written.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) id: i64,
    pub(super) identity: Identity,
    /// Which of the URL's entries it is: 0, unless `dont_filter` made more.
    pub(super) nth: i64,
    pub(super) queue: i64,
    pub(super) class: u8,
    pub(super) cost: u32,
    pub(super) spot: Spot,
    pub(super) state: State,
    /// Leases that expired in a row, and retries in a row.
    pub(super) expiries: u32,
    pub(super) retries: u32,
    pub(super) visits: u32,
    pub(super) page: Option<Arc<PageRecord>>,
    pub(super) url: Vec<u8>,
    /// The rest of the request, of an entry that is new.
    pub(super) rest: Option<Vec<u8>>,
    /// Nothing for an entry that is new.
    pub(super) stored: Option<Stored>,
}

/// Where an entry stands among those of its queue, after its class.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    pub(super) band: i64,
    pub(super) place: i64,
    /// Of several at one place: the URL's text, in `date` order.
    pub(super) tie: Vec<u8>,
    /// When it was admitted.
    pub(super) rank: Rank,
}

/// What came back goes before the rest of its class.
pub(super) const RETURNED: i64 = 0;
pub(super) const FRESH: i64 = 1;

/// No more of a URL's text than this decides its place, because it has to fit an index.
pub(super) const TIE_BYTES: usize = 1024;

/// The state of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Pending and due.
    Pending,
    /// Due at a moment.
    Waiting(Wait, Moment),
    Leased(Grant),
    Done,
    Disregarded {
        reason: Vec<u8>,
    },
    Dead {
        reason: Vec<u8>,
        at: i64,
        rank: Rank,
    },
    /// Forgotten.
    Gone,
}

/// What an entry waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    Retry = 0,
    Schedule = 1,
    /// Its next visit: it is done until then.
    Visit = 2,
}

impl Wait {
    pub(super) fn read(column: i64) -> Self {
        match column {
            0 => Self::Retry,
            1 => Self::Schedule,
            _ => Self::Visit,
        }
    }
}

/// A lease of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) lease: i64,
    pub(super) granted: i64,
    pub(super) deadline: Moment,
}

/// What is in the tables of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) state: State,
    pub(super) class: u8,
    pub(super) spot: Spot,
    pub(super) troubles: (u32, u32),
    pub(super) visits: u32,
    pub(super) page: Option<Arc<PageRecord>>,
    /// Whether there is a row for the last two.
    pub(super) has_page: bool,
}

impl State {
    /// Pending, due now or later.
    pub(super) fn is_pending(&self) -> bool {
        matches!(self, Self::Pending | Self::Waiting(Wait::Retry | Wait::Schedule, _))
    }

    pub(super) fn public(&self) -> UrlState {
        match self {
            Self::Pending | Self::Waiting(Wait::Retry | Wait::Schedule, _) => UrlState::Pending,
            Self::Leased(_) => UrlState::Leased,
            Self::Done | Self::Waiting(Wait::Visit, _) => UrlState::Done,
            Self::Disregarded { .. } => UrlState::Disregarded,
            Self::Dead { .. } => UrlState::Dead,
            Self::Gone => UrlState::Unknown,
        }
    }
}

impl Entry {
    /// Its place among all of its queue.
    pub(super) fn key(&self) -> (u8, &Spot) {
        (self.class, &self.spot)
    }

    /// Remembers its rows as they are now.
    pub(super) fn remember(&mut self, has_page: bool) {
        self.stored = Some(Stored {
            has_page,
            state: self.state.clone(),
            class: self.class,
            spot: self.spot.clone(),
            troubles: (self.expiries, self.retries),
            visits: self.visits,
            page: self.page.clone(),
        });
    }

    /// Whether what is known of its visits takes a row: not for a URL that was visited once and left nothing.
    pub(super) fn needs_page(&self) -> bool {
        self.page.is_some() || self.visits != u32::from(self.state == State::Done)
    }

    pub(super) fn clear_troubles(&mut self) {
        (self.expiries, self.retries) = (0, 0);
    }
}
