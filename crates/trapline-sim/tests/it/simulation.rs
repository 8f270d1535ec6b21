//! The simulation on the memory store, on one that survives its reopening, and on stores that cheat.

use trapline_frontier::script::{self, Verdict};
use trapline_sim::{Faults, MemoryStores, Rule, SeedRange, SimPlan, Stores, Tally, run_seeds, simulate};

use crate::kept::KeptStores;

fn check(stores: &dyn Stores, faults: Faults, seeds: SeedRange) -> Tally {
    let plan = SimPlan { faults, ..SimPlan::default() };
    let ran = run_seeds(&plan, seeds, 2, stores, &|_| ()).expect("stores in memory can be opened");
    match ran {
        Ok(tally) => tally,
        Err(failure) => {
            let (seed, breach) = (failure.plan.seed, failure.breach);
            let find =
                failure.find.map_or_else(String::new, |find| format!("# {}\n{}", find.breach, find.script));
            panic!("trapline sim --seed {seed} --faults {faults}\n{breach}\n{find}")
        }
    }
}

#[test]
fn two_thousand_seeds_keep_the_contract() {
    let tally = check(&MemoryStores, Faults::ALL, SeedRange { from: 0, count: 2_000 });
    assert_eq!((tally.seeds, tally.restarts, tally.repeated), (2_000, 0, 250));
    assert!(tally.grants > 50_000 && tally.expiries > 20_000 && tally.stale > 20_000, "{tally:?}");
    assert!(tally.renewals > 2_000 && tally.revisits > 5_000, "{tally:?}");
    assert!(tally.drained > 1_600, "{tally:?}");
}

#[test]
fn a_store_that_is_opened_again_goes_on_as_if_nothing_had_happened() {
    let tally = check(&KeptStores, Faults::ALL, SeedRange { from: 10_000, count: 300 });
    assert!(tally.restarts > 500, "{tally:?}");
    // A store that answers at once cannot be cut short.
    assert_eq!(tally.cuts, 0);
}

#[test]
fn without_faults_no_lease_expires_and_everything_drains() {
    let tally = check(&MemoryStores, Faults::NONE, SeedRange { from: 20_000, count: 300 });
    assert_eq!(tally.expiries, 0, "{tally:?}");
    assert!(tally.drained > 280 && tally.settlements >= tally.added && tally.renewals > 0, "{tally:?}");
}

#[test]
fn one_seed_has_one_history_byte_by_byte() {
    for seed in 0..20 {
        let plan = SimPlan { seed, ..SimPlan::default() };
        let history = |plan| simulate(plan, &MemoryStores).unwrap().history.to_string();
        let once = history(&plan);
        assert_eq!(once, history(&plan), "seed {seed}");
        assert_ne!(once, history(&SimPlan { seed: seed + 100, ..plan }));
    }
}

/// Batches and clocks that are behind mean what their lines mean one by one.
#[test]
fn a_history_is_a_trace_that_holds() {
    let mut played = 0;
    for seed in 0..200 {
        let run = simulate(&SimPlan { seed, ..SimPlan::default() }, &MemoryStores).unwrap();
        if run.partitions > 1 {
            continue;
        }
        let written = script::parse(&run.history.to_string()).unwrap();
        let store = MemoryStores.open().unwrap().store;
        let differs = pollster::block_on(script::run(&written, store, None, |step, answer, verdict| {
            assert_ne!(*verdict, Verdict::Different, "seed {seed}: {}", step.describe(answer));
        }));
        assert_eq!(differs.unwrap(), 0);
        played += 1;
    }
    assert!(played > 80);
}

#[test]
fn the_troubles_asked_for_happen_and_no_others() {
    let run = |faults: &str| {
        check(&KeptStores, Faults::parse(faults).unwrap(), SeedRange { from: 30_000, count: 40 })
    };
    assert!(run("restarts").restarts > 0);
    assert_eq!(run("all,-restarts").restarts, 0);
    assert!(run("deaths").expiries > 0);
    assert!(run("stalls").stale > run("none").stale);
    assert!(run("doubles").stale > run("none").stale);
}

#[test]
fn rules_are_called_as_the_contract_calls_them() {
    assert_eq!((Rule::N4.to_string(), Rule::Drain.to_string()), ("N4".to_owned(), "drain".to_owned()));
}
