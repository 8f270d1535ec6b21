//! The candidate: a request prepared for a frontier, so that the frontier only has to store and order it.

use std::sync::Arc;
use std::time::Duration;

use crate::{Identity, Request, Timestamp};

/// A URL somebody wants fetched, already prepared. Made by [`Preparer`](crate::Preparer).
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The request itself. A lease hands out an equal one.
    pub request: Arc<Request>,
    /// Which URL this is, for the seen set.
    pub identity: Identity,
    /// The queue it belongs to.
    pub key: Arc<str>,
    /// Its class, lower first. None lets the crawl's class policy decide.
    pub class: Option<u8>,
    /// What a fetch of it costs. None lets the crawl's cost policy decide.
    pub cost: Option<u32>,
    /// Terms its queue takes on, unless an operator set them.
    pub terms: Terms,
    /// If the URL is known and pending, move it to this class if that is better.
    pub improve: bool,
    /// Skip the seen check, as the request says: kept here so that a known URL is recognized without its request.
    pub dont_filter: bool,
    /// If set, this is no wish but a statement about the URL.
    pub statement: Option<Statement>,
}

/// What a caller knows of a URL, known to the frontier or not. It ends any lease of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statement {
    /// It is done.
    Done,
    /// It is to be visited at this time: pending, due then, as if admitted then.
    Next(Timestamp),
}

/// Terms of a queue; those not given stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// Which queues are served first: lower first, 3 unless set.
    pub precedence: Option<u8>,
    /// What may be spent on the queue in total (or in a period); [`NO_BUDGET`] lifts the limit.
    pub queue_budget: Option<u64>,
    /// The session balance given at activation; 0 retires the queue.
    pub balance_replenish: Option<u64>,
    /// How long the queue waits after a settlement.
    pub delay: Option<Duration>,
    /// How many leases at a time; 0 means no limit.
    pub concurrency: Option<u32>,
    /// The group whose pace the queue shares; the empty string leaves the group.
    pub group: Option<Arc<str>>,
}

/// A `queue_budget` that never ends.
pub const NO_BUDGET: u64 = u64::MAX;
