//! The oracle: knows the commands and the answers, not the engine, and says when they do not fit the contract.
//!
//! It keeps books of its own and holds every answer against them. Where the contract leaves the store a choice (which of
//! several queues of the same age), it follows what the store did; where it does not, it knows what must come back.

mod admit;
mod audit;
mod books;
mod breach;
mod claim;
mod entry;
mod fairness;
mod passing;
mod queue;
mod settle;
mod steer;

use std::collections::{BTreeMap, BTreeSet};

use trapline_core::Timestamp;
use trapline_frontier::{LeaseId, Settings};

use books::Books;
use fairness::Fairness;

pub use breach::{Breach, Rule};
pub(crate) use settle::Given;

/// Watches one crawl.
#[derive(Clone)]
pub(crate) struct Oracle {
    books: Books,
    fairness: Fairness,
    /// The numbers of all leases ever granted.
    numbers: BTreeSet<LeaseId>,
    /// Queues of which it was asked whether the last claim has retired them, and whether it must have.
    asked: BTreeMap<usize, bool>,
}

impl Oracle {
    pub(crate) fn new(settings: Settings, partitions: u32) -> Self {
        Self {
            books: Books::new(settings, partitions),
            fairness: Fairness::default(),
            numbers: BTreeSet::new(),
            asked: BTreeMap::new(),
        }
    }

    /// A verb comes at this time: first happens what is due. Time never goes back.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        // Whoever was kept from being served by the last command, if only for a moment, has nothing to complain about.
        self.fairness.look(&self.books);
        self.books.advance(now);
        self.fairness.look(&self.books);
    }

    /// Whether a lease was granted, by its number.
    pub(crate) fn was_granted(&self, lease: LeaseId) -> bool {
        self.numbers.contains(&lease)
    }

    // What whoever generates commands may look at.

    /// The moments ahead at which something may happen.
    pub(crate) fn moments(&self) -> impl Iterator<Item = Timestamp> + '_ {
        self.books.moments.iter().map(|(at, _)| *at)
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.books.is_finished
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.books.is_paused
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.books.is_exhausted()
    }

    /// How many entries there are.
    pub(crate) fn entries(&self) -> usize {
        self.books.entries.len()
    }

    /// How many leases have expired.
    pub(crate) fn expired(&self) -> u64 {
        self.books.expired
    }

    /// The URLs of all dead letters.
    pub(crate) fn dead(&self) -> Vec<String> {
        let dead = self.books.entries.values().filter(|entry| entry.state == entry::State::Dead);
        dead.map(|entry| entry.url.clone()).collect()
    }

    /// A URL that is known, by a number.
    pub(crate) fn some_url(&self, number: u64) -> Option<String> {
        let count = self.books.entries.len() as u64;
        let index = usize::try_from(number.checked_rem(count)?).ok()?;
        self.books.entries.values().nth(index).map(|entry| entry.url.clone())
    }
}
