//! Files in memory that do what real ones do on a bad day: they lose what was not synced, tear writes at any byte, and
//! fail.
//!
//! Simpler than a file system in one way: a write is lost, kept or torn as a whole, in an order of its own. That is worse
//! than pages, which keep some order.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use trapline_sim::Random;
use trapline_stores::disk::files::{Files, LogFile};

/// A folder of simulated files. Clones are the same folder, before and after a crash.
#[derive(Clone, Default)]
pub(crate) struct SimFiles {
    disk: Arc<Mutex<Disk>>,
}

#[derive(Default)]
struct Disk {
    /// What a running process sees.
    files: BTreeMap<String, Content>,
    /// Which files are certain to be there after a crash.
    certain: BTreeMap<String, Content>,
    calls: u64,
    fault: Option<Fault>,
}

/// The bytes of a file, shared by all names and handles it has.
type Content = Arc<Mutex<Bytes>>;

#[derive(Default)]
struct Bytes {
    seen: Vec<u8>,
    synced: Vec<u8>,
    /// What was written since the last sync, oldest first.
    unsynced: Vec<(usize, Vec<u8>)>,
}

/// What fails.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    /// The first call that fails, counting those that change something from 1.
    pub(crate) call: u64,
    pub(crate) for_ever: bool,
    pub(crate) kind: FaultKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// Nothing of the write happens, nothing is synced.
    Error,
    /// There is no room for files, and none for what is written to them.
    NoSpace,
    /// Half of a write happens. A sync syncs, and fails all the same.
    Half,
}

impl SimFiles {
    fn disk(&self) -> MutexGuard<'_, Disk> {
        locked(&self.disk)
    }

    /// Lets something fail from now on, counting calls anew.
    pub(crate) fn set_fault(&self, fault: Option<Fault>) {
        let mut disk = self.disk();
        disk.calls = 0;
        disk.fault = fault;
    }

    /// How many calls changed something since the last fault was set.
    pub(crate) fn calls(&self) -> u64 {
        self.disk().calls
    }

    /// The machine stops and starts again: of what was not synced, each write is there, lost or torn, as the seed says.
    pub(crate) fn lose_power(&self, seed: u64) {
        let mut random = Random::of(&[seed, 99]);
        let mut disk = self.disk();
        // Files whose names were not synced may be there or not.
        let Disk { files, certain, .. } = &mut *disk;
        let mut left = BTreeMap::new();
        for (name, content) in files.iter().chain(certain.iter()) {
            let is_certain = certain.get(name).is_some_and(|known| Arc::ptr_eq(known, content));
            if is_certain && files.contains_key(name) || random.chance(1, 2) {
                left.insert(name.clone(), Arc::clone(content));
            }
        }
        for content in left.values() {
            let mut bytes = locked(content);
            let mut survived = std::mem::take(&mut bytes.synced);
            for (at, written) in std::mem::take(&mut bytes.unsynced) {
                let length = match random.range(0..3) {
                    0 => 0,
                    1 => written.len(),
                    _ => random.range(0..written.len() as u64 + 1) as usize,
                };
                put(&mut survived, at, &written[..length]);
            }
            bytes.seen.clone_from(&survived);
            bytes.synced = survived;
        }
        disk.certain.clone_from(&left);
        disk.files = left;
    }
}

impl Disk {
    /// Counts a call that changes something; Err if it is one that fails.
    fn call(&mut self) -> Result<(), FaultKind> {
        self.calls += 1;
        match self.fault {
            Some(fault) if fault.call == self.calls || fault.for_ever && fault.call < self.calls => {
                Err(fault.kind)
            }
            _ => Ok(()),
        }
    }
}

fn error(kind: FaultKind) -> io::Error {
    match kind {
        FaultKind::NoSpace => io::ErrorKind::StorageFull.into(),
        FaultKind::Error | FaultKind::Half => io::Error::other("simulated failure"),
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nothing fails while it holds the lock")
}

fn put(bytes: &mut Vec<u8>, at: usize, written: &[u8]) {
    if bytes.len() < at + written.len() {
        bytes.resize(at + written.len(), 0);
    }
    bytes[at..at + written.len()].copy_from_slice(written);
}

impl Files for SimFiles {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.disk().files.keys().cloned().collect())
    }

    fn create(&self, name: &str, bytes: u64) -> io::Result<Arc<dyn LogFile>> {
        let mut disk = self.disk();
        let failed = disk.call().err();
        if let Some(kind @ (FaultKind::Error | FaultKind::NoSpace)) = failed {
            return Err(error(kind));
        }
        let content: Content = Arc::default();
        disk.files.insert(name.to_owned(), Arc::clone(&content));
        if let Some(kind) = failed {
            return Err(error(kind));
        }
        // Until it is synced, not even the length is certain.
        let zeros = vec![0; bytes as usize];
        locked(&content).seen.clone_from(&zeros);
        locked(&content).unsynced.push((0, zeros));
        Ok(Arc::new(SimFile { disk: Arc::clone(&self.disk), content }))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn LogFile>> {
        let disk = self.disk();
        let content = disk.files.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Arc::new(SimFile { disk: Arc::clone(&self.disk), content: Arc::clone(content) }))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut disk = self.disk();
        disk.call().map_err(error)?;
        disk.files.remove(name).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn free(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }

    fn sync_folder(&self) -> io::Result<()> {
        let mut disk = self.disk();
        disk.call().map_err(error)?;
        disk.certain = disk.files.clone();
        Ok(())
    }

    fn describe(&self, name: &str) -> String {
        format!("simulated/{name}")
    }
}

struct SimFile {
    disk: Arc<Mutex<Disk>>,
    content: Content,
}

impl LogFile for SimFile {
    fn read(&self) -> io::Result<Vec<u8>> {
        Ok(locked(&self.content).seen.clone())
    }

    fn read_at(&self, at: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let content = locked(&self.content);
        let begin = (at as usize).min(content.seen.len());
        let end = (begin + bytes).min(content.seen.len());
        Ok(content.seen[begin..end].to_vec())
    }

    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let failed = locked(&self.disk).call().err();
        let bytes = match failed {
            None => bytes,
            Some(FaultKind::Half) => &bytes[..bytes.len() / 2],
            Some(kind) => return Err(error(kind)),
        };
        let mut content = locked(&self.content);
        put(&mut content.seen, at as usize, bytes);
        content.unsynced.push((at as usize, bytes.to_vec()));
        failed.map_or(Ok(()), |kind| Err(error(kind)))
    }

    fn sync(&self) -> io::Result<()> {
        let failed = locked(&self.disk).call().err();
        if failed.is_none_or(|kind| kind == FaultKind::Half) {
            let mut content = locked(&self.content);
            // Not all that is seen: what an earlier sync has given up on is not written by a later one.
            for (at, written) in std::mem::take(&mut content.unsynced) {
                put(&mut content.synced, at, &written);
            }
        } else {
            // What a kernel may do: it shows the bytes, and will not try again to write them.
            locked(&self.content).unsynced.clear();
        }
        failed.map_or(Ok(()), |kind| Err(error(kind)))
    }
}
