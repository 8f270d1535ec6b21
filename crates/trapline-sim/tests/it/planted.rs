//! Faults planted in the engine are found by the oracle, which knows nothing of them. Who else finds them is in a
//! table in docs/manual/proof.md.
//!
//! `cargo test -p trapline-sim --test it planted -- --nocapture` prints which rule was broken, and after how many seeds.

use std::sync::Arc;

use trapline_frontier::script::{self, Script, Step, Verdict};
use trapline_frontier::{Fault, MemoryStore, StoreError};
use trapline_sim::{MemoryStores, Opened, SimPlan, Stores, check_seed, simulate};

/// So many seeds the simulation gets to find a fault.
const SEEDS: u64 = 1000;

/// So many faults are first seen by something that no answer of a trace says, such as when to come again.
const UNSHOWN_MAX: usize = 3;

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
                Some((seeds, breach)) => format!("simulation, after {seeds} seeds, {breach}"),
                None => "not by the simulation".to_owned(),
            }
        );
        if found.is_none() {
            missed.push(fault);
        }
    }
    assert_eq!(missed, [], "not found in {SEEDS} seeds");
}

/// What is made small breaks the same rule; and where a trace can show it, playing the trace does, and on an engine without
/// the fault it holds.
#[test]
fn finds_are_small_traces_of_the_same_rule() {
    let differ = |script: &Script, stores: &dyn Stores| {
        let store = stores.open().expect("a store in memory can be opened").store;
        let mut differing = Vec::new();
        let watch = |step: &Step, answer: &str, verdict: &Verdict| {
            differing.extend((*verdict == Verdict::Different).then(|| step.describe(answer)));
        };
        pollster::block_on(script::run(script, store, None, watch)).expect("it was played before");
        differing
    };
    let mut unshown = Vec::new();
    for fault in Fault::ALL {
        let found = (0..SEEDS).find_map(|seed| {
            let plan = SimPlan { seed, ..SimPlan::default() };
            check_seed(&plan, &Faulty(fault), false).expect("a store in memory can be opened").err()
        });
        let failure = found.expect("found, as the test above sees");
        let find = failure.find.expect("lines of a run show what a fault of the engine does");
        println!("{fault:?}: {}\n{}", find.breach, find.script);
        assert_eq!(
            find.breach.rule, failure.breach.rule,
            "{fault:?}: {}, and {}",
            failure.breach, find.breach
        );
        assert!(find.script.steps.len() <= 12, "{fault:?}:\n{}", find.script);
        let is_shown = find.script.steps.last().is_some_and(|last| last.expected.is_some());
        if !is_shown {
            unshown.push(fault);
        }
        // Traces are played on one partition.
        if find.partitions == 1 {
            assert_eq!(differ(&find.script, &MemoryStores), [""; 0], "{fault:?}:\n{}", find.script);
            let differing = differ(&find.script, &Faulty(fault));
            assert_eq!(differing.len(), usize::from(is_shown), "{fault:?}:\n{}", find.script);
        }
    }
    println!("No trace can show {unshown:?}");
    assert!(unshown.len() <= UNSHOWN_MAX, "{unshown:?}");
}

/// The example of the manual is what really comes.
#[test]
fn the_manual_shows_a_find_as_it_is() {
    let manual = include_str!("../../../../docs/manual/simulation.md");
    let found = (0..SEEDS).find_map(|seed| {
        let plan = SimPlan { seed, ..SimPlan::default() };
        check_seed(&plan, &Faulty(Fault::PauseForgotten), false).unwrap().err()
    });
    let failure = found.expect("it is found within a few seeds");
    let (seed, breach, lines) = (failure.plan.seed, failure.breach, failure.run.history.steps.len());
    let find = failure.find.expect("it is made small");
    for part in [
        format!("Seed {seed} went wrong after {lines} lines. {breach}\n"),
        format!("trapline sim --seed {seed} --steps 250 "),
        format!("# {}\n{}```", find.breach, find.script),
    ] {
        assert!(manual.contains(&part), "the manual has not:\n{part}");
    }
}
