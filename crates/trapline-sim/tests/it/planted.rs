//! Faults planted in the engine are found by the oracle, which knows nothing of them. Who else finds them is in a
//! table in docs/manual/proof.md.
//!
//! `cargo test -p trapline-sim --test it planted -- --nocapture` prints which rule was broken, and after how many seeds.

use std::sync::Arc;

use trapline_frontier::{Fault, MemoryStore, StoreError};
use trapline_sim::{Opened, SimPlan, Stores, simulate};

/// So many seeds the simulation gets to find a fault.
const SEEDS: u64 = 1000;

struct Faulty(Fault);

impl Stores for Faulty {
    fn open(&self) -> Result<Opened, StoreError> {
        Ok(Opened { store: Arc::new(MemoryStore::faulty(self.0)), reopen: None })
    }
}

#[test]
fn the_oracle_finds_every_planted_fault() {
    let mut missed = Vec::new();
    for fault in Fault::ALL {
        let found = (0..SEEDS).find_map(|seed| {
            let run = simulate(&SimPlan { seed, ..SimPlan::default() }, &Faulty(fault));
            run.expect("a store in memory can be opened").breach.map(|breach| (seed + 1, breach))
        });
        println!(
            "{fault:?}: {}",
            match &found {
                Some((seeds, breach)) => format!("simulation, {seeds} seeds, {breach}"),
                None => "not by the simulation".to_owned(),
            }
        );
        if found.is_none() {
            missed.push(fault);
        }
    }
    assert_eq!(missed, [], "not found in {SEEDS} seeds");
}
