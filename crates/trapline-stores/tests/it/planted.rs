//! Faults planted in the store are found: by files that lose power, by the simulation, by `verify`. What `strace` finds is in
//! `trapline`'s tests, and all of it in a table in docs/manual/proof.md.
//!
//! `cargo test -p trapline-stores --test it planted -- --nocapture` prints who found what, and after how many tries.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use trapline_sim::{SimPlan, simulate};
use trapline_stores::disk::files::Files;
use trapline_stores::disk::verify_on;
use trapline_stores::{DiskStore, Fault};

use crate::disk::SMALL;
use crate::faults::{check_left, run_in};
use crate::sim_files::{Fault as Call, FaultKind, SimFiles};
use crate::simulation::{InMemory, plan};

/// So many tries everybody gets.
const TRIES: u64 = 100;

/// Who finds a fault: the workload, cut short at each call to the file system, in files that lose power then; the same in
/// files that keep all, as when a process is killed; the simulation with power loss; `verify` after the workload.
const FOUND: [(Fault, [bool; 4]); 3] = [
    (Fault::SyncSkipped, [true, false, true, false]),
    (Fault::AnsweredBeforeWrite, [true, true, true, false]),
    (Fault::SnapshotMisplaced, [true, true, true, true]),
];

#[test]
fn every_planted_fault_is_found() {
    assert_eq!(FOUND.map(|(fault, _)| fault), Fault::ALL);
    let mut otherwise = Vec::new();
    for (fault, expected) in FOUND {
        let run = |call| {
            let files = SimFiles::default();
            files.set_fault(call);
            let worked = catch_unwind(AssertUnwindSafe(|| {
                run_in(&files, DiskStore::faulty(files.clone(), &SMALL, fault)).0
            }));
            files.set_fault(None);
            (files, worked)
        };
        let is_found = |call: u64, loses_power: bool| {
            let (files, worked) = run(Some(Call { call, for_ever: true, kind: FaultKind::Error }));
            let Ok(acknowledged) = worked else { return true };
            if loses_power {
                files.lose_power(call);
            }
            catch_unwind(AssertUnwindSafe(|| check_left(&files, acknowledged, "planted"))).is_err()
        };
        let without_power = (1..=TRIES).find(|call| is_found(*call, true));
        let killed = (1..=TRIES).find(|call| is_found(*call, false));
        let simulated = (1..=TRIES).find(|tries| {
            let plan = SimPlan { seed: tries - 1, ..plan("all,-jumps") };
            let stores = InMemory { loses_power: true, fault: Some(fault) };
            simulate(&plan, &stores).is_ok_and(|run| run.breach.is_some())
        });
        let verified = {
            let files: Arc<dyn Files> = Arc::new(run(None).0);
            let found = verify_on(&files, &mut |_| ()).expect("it can be read");
            (!found.damages.is_empty()).then_some(1)
        };
        let found = [without_power, killed, simulated, verified];
        println!("{fault:?}: without power, killed, simulated, verified after {found:?}");
        if found.map(|by| by.is_some()) != expected {
            otherwise.push((fault, found));
        }
    }
    assert_eq!(otherwise, [], "these are found by others than the table says");
}
