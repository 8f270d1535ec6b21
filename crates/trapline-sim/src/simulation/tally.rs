//! What happened in one run of the simulation, or in many.

use std::ops::AddAssign;

use trapline_frontier::{Admission, Answer, Lease, Settled};

/// Counts of what happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Runs.
    pub seeds: u64,
    /// Commands given: each candidate and each settlement of a batch is one.
    pub commands: u64,
    /// URLs added.
    pub added: u64,
    /// Leases granted.
    pub grants: u64,
    /// Leases of pages that had been visited before.
    pub revisits: u64,
    /// Leases renewed.
    pub renewals: u64,
    /// Settlements that were answered by something else than `stale`.
    pub settlements: u64,
    /// Settlements answered `stale`.
    pub stale: u64,
    /// Leases that expired.
    pub expiries: u64,
    /// Times the store was opened again.
    pub restarts: u64,
    /// Calls that a crash cut short.
    pub cuts: u64,
    /// Times everything was held against the oracle's books.
    pub audits: u64,
    /// Runs whose crawl was drained to its end.
    pub drained: u64,
    /// Runs done twice, to see that nothing differs.
    pub repeated: u64,
    /// Virtual time that passed, in milliseconds.
    pub virtual_ms: u64,
}

impl Tally {
    pub(crate) fn count_admissions(&mut self, answers: &[Admission]) {
        self.added += answers.iter().filter(|answer| **answer == Admission::Added).count() as u64;
    }

    pub(crate) fn count_grants(&mut self, leases: &[Lease]) {
        self.grants += leases.len() as u64;
        self.revisits += leases.iter().filter(|lease| lease.page.is_some()).count() as u64;
    }

    pub(crate) fn count_settlement(&mut self, settled: &Settled) {
        self.count_admissions(&settled.links);
        self.renewals += u64::from(settled.answer == Answer::Renewed);
        if settled.answer == Answer::Stale {
            self.stale += 1;
        } else {
            self.settlements += 1;
        }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.commands += other.commands;
        self.added += other.added;
        self.grants += other.grants;
        self.revisits += other.revisits;
        self.renewals += other.renewals;
        self.settlements += other.settlements;
        self.stale += other.stale;
        self.expiries += other.expiries;
        self.restarts += other.restarts;
        self.cuts += other.cuts;
        self.audits += other.audits;
        self.drained += other.drained;
        self.repeated += other.repeated;
        self.virtual_ms = self.virtual_ms.saturating_add(other.virtual_ms);
    }
}
