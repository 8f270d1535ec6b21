//! The simulation on the disk store, restarts and crashes among its faults.

use std::sync::Arc;

use async_trait::async_trait;
use trapline_frontier::script::Reopen;
use trapline_frontier::{Store, StoreError};
use trapline_sim::{Faults, Opened, SeedRange, SimPlan, Stores, Tally, run_seeds};
use trapline_stores::{DiskOptions, DiskReopen, DiskStore, Durability};

use crate::disk::SMALL;
use crate::folder::TestFolder;
use crate::sim_files::SimFiles;

fn check(stores: &dyn Stores, faults: &str, seeds: SeedRange) -> Tally {
    let plan = SimPlan { faults: Faults::parse(faults).expect("faults there are"), ..SimPlan::default() };
    match run_seeds(&plan, seeds, 2, stores, &|_| ()).expect("stores can be opened") {
        Ok(tally) => tally,
        Err(failure) => {
            let find =
                failure.find.map_or_else(String::new, |find| format!("# {}\n{}", find.breach, find.script));
            panic!("seed {} with faults {faults}: {}\n{find}", failure.plan.seed, failure.breach)
        }
    }
}

/// Stores in simulated files. A crash kills the process, or takes the power.
struct InMemory {
    loses_power: bool,
}

struct Reopened {
    files: SimFiles,
    store: Arc<DiskStore>,
    loses_power: bool,
    crashes: u64,
    opened: u64,
}

impl Stores for InMemory {
    fn open(&self) -> Result<Opened, StoreError> {
        let files = SimFiles::default();
        let store = Arc::new(DiskStore::open_on(files.clone(), &SMALL)?);
        let reopened = Reopened {
            files,
            store: Arc::clone(&store),
            loses_power: self.loses_power,
            crashes: 0,
            opened: 0,
        };
        Ok(Opened { store, reopen: Some(Box::new(reopened)) })
    }
}

impl Reopened {
    fn again(&mut self) -> Result<Arc<dyn Store>, StoreError> {
        self.store = Arc::new(DiskStore::open_on(self.files.clone(), &SMALL)?);
        self.opened += 1;
        // Now from a snapshot and what came after it, now from an older one, now from none.
        if self.opened % 4 < 2 {
            self.store.snapshot()?;
        }
        Ok(Arc::clone(&self.store) as _)
    }
}

#[async_trait]
impl Reopen for Reopened {
    async fn restart(&mut self) -> Result<Arc<dyn Store>, StoreError> {
        self.store.close()?;
        self.again()
    }

    async fn crash(&mut self) -> Result<Arc<dyn Store>, StoreError> {
        self.store.abandon();
        if self.loses_power {
            self.crashes += 1;
            self.files.lose_power(self.crashes);
        }
        self.again()
    }
}

/// Stores in real folders, gone with their run.
struct InFolders;

struct FolderReopen {
    reopen: DiskReopen,
    _folder: TestFolder,
}

impl Stores for InFolders {
    fn open(&self) -> Result<Opened, StoreError> {
        let folder = TestFolder::new();
        let options = DiskOptions { durability: Durability::Explicit, ..SMALL };
        let reopen = DiskReopen::open(folder.path(), options)?;
        Ok(Opened { store: reopen.store(), reopen: Some(Box::new(FolderReopen { reopen, _folder: folder })) })
    }
}

#[async_trait]
impl Reopen for FolderReopen {
    async fn restart(&mut self) -> Result<Arc<dyn Store>, StoreError> {
        self.reopen.restart().await
    }

    async fn crash(&mut self) -> Result<Arc<dyn Store>, StoreError> {
        self.reopen.crash().await
    }
}

#[test]
fn killed_processes_keep_the_contract() {
    let tally = check(&InMemory { loses_power: false }, "all", SeedRange { from: 40_000, count: 300 });
    assert!(tally.restarts > 500, "{tally:?}");
}

/// Questions are not promised: the time they let pass may be lost with the power, so clocks do not go back here.
#[test]
fn machines_without_power_keep_the_contract() {
    let seeds = SeedRange { from: 50_000, count: 200 };
    let tally = check(&InMemory { loses_power: true }, "all,-jumps", seeds);
    assert!(tally.restarts > 300, "{tally:?}");
}

#[test]
fn real_folders_keep_the_contract() {
    let tally = check(&InFolders, "all", SeedRange { from: 60_000, count: 60 });
    assert!(tally.restarts > 80, "{tally:?}");
}
