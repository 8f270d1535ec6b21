//! What the oracle knows of one entry: a URL, or one of several of it through `dont_filter`.

use std::cmp::Ordering;
use std::sync::Arc;

use trapline_core::{Identity, Request, Timestamp};
use trapline_frontier::{LeaseId, Order, PageRecord, UrlState, Visit};

/// One entry.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) identity: Identity,
    pub(super) url: String,
    /// What a lease must hand out.
    pub(super) request: Arc<Request>,
    /// The index of its queue.
    pub(super) queue: usize,
    pub(super) class: u8,
    pub(super) cost: u32,
    /// It was found on a page that was settled with it.
    pub(super) is_link: bool,
    pub(super) state: State,
    /// Its number among admissions and what counts as one.
    pub(super) admitted: i64,
    /// Its place in `fifo` and `lifo`: its number, unless improving made it the last.
    pub(super) place: i64,
    /// Its place in `date`.
    pub(super) scheduled: Timestamp,
    /// It goes first in its class, by this time: a retry's time or an expired deadline.
    pub(super) first: Option<Timestamp>,
    /// Leases that expired in a row.
    pub(super) expiries: u32,
    /// Retries in a row.
    pub(super) retries: u32,
    /// The command that set the time at which it is due: visits due together keep that order.
    pub(super) set_by: u64,
    /// How often it was visited, also where nothing was recorded.
    pub(super) visits: u32,
    /// What its visits left.
    pub(super) page: Option<Arc<PageRecord>>,
}

/// Where an entry stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum State {
    Pending,
    /// A retry that is due later.
    Retry(Timestamp),
    /// Stated to be visited later.
    Visit(Timestamp),
    Leased(Grant),
    Done(Option<Timestamp>),
    Disregarded,
    Dead,
}

/// A live lease.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Grant {
    pub(super) id: LeaseId,
    pub(super) granted: Timestamp,
    pub(super) deadline: Timestamp,
    /// No budget period has ended since: a refund reaches what is spent.
    pub(super) in_period: bool,
}

impl State {
    /// What a report says.
    pub(super) fn shown(self) -> UrlState {
        match self {
            Self::Pending | Self::Retry(_) | Self::Visit(_) => UrlState::Pending,
            Self::Leased(_) => UrlState::Leased,
            Self::Done(_) => UrlState::Done,
            Self::Disregarded => UrlState::Disregarded,
            Self::Dead => UrlState::Dead,
        }
    }

    /// For people.
    pub(super) fn in_words(self) -> String {
        match self {
            Self::Retry(at) => format!("to be tried again at {at}"),
            Self::Visit(at) => format!("to be visited at {at}"),
            Self::Leased(grant) => format!("leased until {}", grant.deadline),
            Self::Done(Some(next)) => format!("done until its next visit at {next}"),
            Self::Pending | Self::Done(None) | Self::Disregarded | Self::Dead => self.shown().to_string(),
        }
    }

    /// When something happens to it by itself.
    pub(super) fn due(self) -> Option<Timestamp> {
        match self {
            Self::Retry(at) | Self::Visit(at) => Some(at),
            Self::Done(next) => next,
            Self::Leased(grant) => Some(grant.deadline),
            Self::Pending | Self::Disregarded | Self::Dead => None,
        }
    }
}

impl Entry {
    /// Records a visit. One that left nothing and will not be repeated leaves no record.
    pub(super) fn record(&mut self, now: Timestamp, visit: &Visit, next: Option<Timestamp>) {
        self.visits += 1;
        let last = self.page.as_deref();
        if last.is_none() && next.is_none() && *visit == Visit::default() {
            return;
        }
        let changed = last.is_some_and(|last| last.visit.digest != visit.digest);
        let changes = last.map_or(0, |last| last.changes) + u32::from(changed);
        let page = PageRecord { visited: now, visit: visit.clone(), visits: self.visits, changes, next };
        self.page = Some(Arc::new(page));
    }

    /// Which of two pending entries of a queue goes first.
    pub(super) fn compare(&self, other: &Self, order: Order) -> Ordering {
        let returned = |entry: &Self| entry.first.is_none();
        self.class.cmp(&other.class).then(returned(self).cmp(&returned(other))).then_with(|| {
            if self.first.is_some() {
                return (self.first, self.admitted).cmp(&(other.first, other.admitted));
            }
            match order {
                Order::Fifo => self.place.cmp(&other.place),
                Order::Lifo => other.place.cmp(&self.place),
                Order::Date => {
                    (self.scheduled, &self.url, self.place).cmp(&(other.scheduled, &other.url, other.place))
                }
            }
        })
    }
}
