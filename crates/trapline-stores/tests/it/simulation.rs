//! The simulation on the disk store, restarts and crashes among its faults.

use std::sync::Arc;

use async_trait::async_trait;
use trapline_frontier::script::Reopen;
use trapline_frontier::{Store, StoreError};
use trapline_sim::{Faults, Opened, SeedRange, SimPlan, Stores, Tally, run_seeds};
use trapline_stores::disk::Rewrite;
use trapline_stores::{DiskOptions, DiskReopen, DiskStore, Durability, Fault};

use crate::disk::{SMALL, SWAPPING};
use crate::folder::TestFolder;
use crate::overlapping::Overlapping;
use crate::sim_files::SimFiles;

pub(crate) fn plan(faults: &str) -> SimPlan {
    SimPlan { faults: Faults::parse(faults).expect("faults there are"), ..SimPlan::default() }
}

fn check(stores: &dyn Stores, faults: &str, seeds: SeedRange) -> Tally {
    match run_seeds(&plan(faults), seeds, 2, stores, &|_| ()).expect("stores can be opened") {
        Ok(tally) => tally,
        Err(failure) => {
            let find =
                failure.find.map_or_else(String::new, |find| format!("# {}\n{}", find.breach, find.script));
            panic!("seed {} with faults {faults}: {}\n{find}", failure.plan.seed, failure.breach)
        }
    }
}

/// Stores in simulated files, which take snapshots while they work. A crash kills the process, or takes the power: then there is
/// no memory either for what can be put on disk.
pub(crate) struct InMemory {
    pub(crate) loses_power: bool,
    /// One that is planted.
    pub(crate) fault: Option<Fault>,
}

fn open(files: &SimFiles, swaps: bool, fault: Option<Fault>) -> Result<Arc<DiskStore>, StoreError> {
    let options = if swaps { SWAPPING } else { SMALL };
    let store = match fault {
        None => DiskStore::open_on(files.clone(), &options),
        Some(fault) => DiskStore::faulty(files.clone(), &options, fault),
    };
    store.map(Arc::new)
}

struct Reopened {
    files: SimFiles,
    store: Arc<DiskStore>,
    loses_power: bool,
    fault: Option<Fault>,
    crashes: u64,
    opened: u64,
}

impl Stores for InMemory {
    fn open(&self) -> Result<Opened, StoreError> {
        let files = SimFiles::default();
        let store = open(&files, self.loses_power, self.fault)?;
        let reopened = Reopened {
            files,
            store,
            loses_power: self.loses_power,
            fault: self.fault,
            crashes: 0,
            opened: 0,
        };
        Ok(Opened { store: reopened.overlapping(), reopen: Some(Box::new(reopened)) })
    }
}

impl Reopened {
    fn overlapping(&self) -> Arc<dyn Store> {
        Arc::new(Overlapping::new(&self.store, &self.files))
    }

    fn again(&mut self) -> Result<Arc<dyn Store>, StoreError> {
        self.store = open(&self.files, self.loses_power, self.fault)?;
        self.opened += 1;
        // Now from a snapshot and what came after it, now from an older one, now from none.
        if self.opened % 4 < 2 {
            self.store.snapshot()?;
            self.store.rewrite(Rewrite::All)?;
        }
        Ok(self.overlapping())
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
    let tally =
        check(&InMemory { loses_power: false, fault: None }, "all", SeedRange { from: 40_000, count: 300 });
    assert!(tally.restarts > 500, "{tally:?}");
}

/// Questions are not promised: the time they let pass may be lost with the power, so clocks do not go back here.
#[test]
fn machines_without_power_keep_the_contract() {
    let seeds = SeedRange { from: 50_000, count: 200 };
    let tally = check(&InMemory { loses_power: true, fault: None }, "all,-jumps", seeds);
    assert!(tally.restarts > 300, "{tally:?}");
}

#[test]
fn real_folders_keep_the_contract() {
    let tally = check(&InFolders, "all", SeedRange { from: 60_000, count: 60 });
    assert!(tally.restarts > 80, "{tally:?}");
}
