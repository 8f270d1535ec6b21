//! Faults planted on purpose are found: by the suite, by the model, or by both. The simulation's part is in its own
//! crate, and all of it in a table in docs/manual/proof.md.
//!
//! `cargo test -p trapline-frontier --test it planted -- --nocapture` prints who found what, and after how many seeds.

use std::panic::catch_unwind;
use std::sync::Arc;

use trapline_frontier::suite::Harness;
use trapline_frontier::{Fault, MemoryStore, Store};

use crate::model;

/// So many seeds the model gets to find a fault.
const SEEDS: u64 = 300;

/// Who finds a fault.
#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    Both,
    Suite,
    Model,
}

const FOUND: [(Fault, By); 20] = [
    (Fault::DelayOneShort, By::Both),
    (Fault::LeaseReused, By::Both),
    (Fault::LinkLost, By::Both),
    (Fault::BudgetAfterGrant, By::Both),
    (Fault::StaleAccepted, By::Both),
    (Fault::ExpiryEarly, By::Both),
    (Fault::RefundForgotten, By::Both),
    (Fault::WokenTwice, By::Both),
    (Fault::PrecedenceInverted, By::Both),
    (Fault::PauseForgotten, By::Both),
    (Fault::RetiredCounted, By::Both),
    (Fault::FilterBelieved, By::Both),
    (Fault::ReleasedLast, By::Both),
    (Fault::ExpiriesUncounted, By::Both),
    (Fault::GroupForgotten, By::Both),
    (Fault::BalanceUncharged, By::Both),
    (Fault::BlockForgotten, By::Both),
    (Fault::VisitForgotten, By::Both),
    (Fault::NextLate, By::Suite),
    (Fault::RetryLast, By::Both),
];

#[test]
fn every_planted_fault_is_found() {
    assert_eq!(FOUND.map(|(fault, _)| fault), Fault::ALL);
    let mut otherwise = Vec::new();
    for (fault, by) in FOUND {
        let in_suite = CASES.iter().find(|(_, case)| catch_unwind(|| case(Faulty(fault))).is_err());
        let in_model = (0..SEEDS).find(|seed| catch_unwind(|| model::finds(fault, *seed)).unwrap_or(true));
        println!(
            "{fault:?}: {}; {}",
            in_suite.map_or("not by the suite", |(name, _)| name),
            in_model.map_or("not by the model".to_owned(), |seed| format!("model, {} seeds", seed + 1)),
        );
        let found = match (in_suite, in_model) {
            (Some(_), Some(_)) => Some(By::Both),
            (Some(_), None) => Some(By::Suite),
            (None, Some(_)) => Some(By::Model),
            (None, None) => None,
        };
        if found != Some(by) {
            otherwise.push((fault, found));
        }
    }
    assert_eq!(otherwise, [], "these are found by others than the table says");
}

struct Faulty(Fault);

impl Harness for Faulty {
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        pollster::block_on(future)
    }

    fn open(&mut self) -> Arc<dyn Store> {
        Arc::new(MemoryStore::faulty(self.0))
    }

    fn reopen(&mut self, _crash: bool) -> Option<Arc<dyn Store>> {
        None
    }
}

macro_rules! cases {
    (() $($topic:ident { $($(#[$attribute:meta])* $case:ident,)* })*) => {
        &[$($((concat!(stringify!($topic), "::", stringify!($case)), trapline_frontier::suite::$topic::$case)),*),*]
    };
}

/// A case of the suite, by its name.
type Case = (&'static str, fn(Faulty));

/// The suite as a list.
const CASES: &[Case] = trapline_frontier::store_suite_cases! { [cases] () };
