//! Files in memory that do what real ones do on a bad day: they lose what was not synced, tear writes at any byte, and
//! fail, when they are written and when they are read.
//!
//! Simpler than a file system in one way: a write is lost, kept or torn in two, in an order of its own. That is worse
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
    /// Reads since a fault of theirs was set, and the one from which on they fail: that one, or it and all later ones.
    reads: u64,
    read_fault: Option<(u64, bool)>,
    /// What others do while a snapshot is being taken.
    meanwhile: Option<Meanwhile>,
    syncs: u64,
    /// Whether there is no room for another file.
    is_full: bool,
    /// Which files were made, and which of them synced, in that order.
    history: Vec<String>,
}

pub(crate) type Meanwhile = Arc<dyn Fn() + Send + Sync>;

/// The bytes of a file, shared by all names and handles it has.
type Content = Arc<Mutex<Bytes>>;

#[derive(Clone, Default)]
struct Bytes {
    seen: Vec<u8>,
    synced: Vec<u8>,
    /// What was done since the last sync, oldest first.
    unsynced: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    /// All bytes were cut off: the file was made once more.
    Cut,
    Write(usize, Vec<u8>),
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Cut => bytes.clear(),
            Self::Write(at, written) => put(bytes, *at, written),
        }
    }

    /// What is left of it without power.
    fn torn(self, random: &mut Random) -> Option<Self> {
        let Self::Write(at, mut written) = self else { return random.chance(1, 2).then_some(self) };
        let cut = random.range(0..written.len() as u64 + 1) as usize;
        match random.range(0..4) {
            0 => None,
            1 => Some(Self::Write(at, written)),
            2 => {
                written.truncate(cut);
                Some(Self::Write(at, written))
            }
            _ => Some(Self::Write(at + cut, written.split_off(cut))),
        }
    }
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

    /// Lets reads fail from now on: the one with this number, counting from 1, and with `for_ever` all after it.
    pub(crate) fn set_read_fault(&self, fault: Option<(u64, bool)>) {
        let mut disk = self.disk();
        disk.reads = 0;
        disk.read_fault = fault;
    }

    /// How many reads there were since a fault of theirs was set.
    pub(crate) fn reads(&self) -> u64 {
        self.disk().reads
    }

    /// How many syncs of files there were.
    pub(crate) fn syncs(&self) -> u64 {
        self.disk().syncs
    }

    /// How many writes are not on disk.
    pub(crate) fn unsynced(&self) -> usize {
        self.disk().files.values().map(|content| locked(content).unsynced.len()).sum()
    }

    /// Leaves room for what is in the files there are, and for no others.
    pub(crate) fn set_full(&self, is_full: bool) {
        self.disk().is_full = is_full;
    }

    /// Which files were `made` and `synced` so far, with their names.
    pub(crate) fn history(&self) -> Vec<String> {
        self.disk().history.clone()
    }

    /// Lets something be done each time that a snapshot was begun and is not written yet.
    pub(crate) fn set_meanwhile(&self, meanwhile: Option<Meanwhile>) {
        self.disk().meanwhile = meanwhile;
    }

    /// Another folder with the same in it.
    pub(crate) fn copy(&self) -> Self {
        let disk = self.disk();
        let mut copies = BTreeMap::new();
        let mut copy = |content: &Content| {
            let fresh = || Arc::new(Mutex::new(locked(content).clone()));
            Arc::clone(copies.entry(Arc::as_ptr(content)).or_insert_with(fresh))
        };
        let files = disk.files.iter().map(|(name, content)| (name.clone(), copy(content))).collect();
        let certain = disk.certain.iter().map(|(name, content)| (name.clone(), copy(content))).collect();
        Self { disk: Arc::new(Mutex::new(Disk { files, certain, ..Disk::default() })) }
    }

    /// The names that end so, in order.
    pub(crate) fn names(&self, ending: &str) -> Vec<String> {
        self.disk().files.keys().filter(|name| name.ends_with(ending)).cloned().collect()
    }

    /// Takes a file away, for certain.
    pub(crate) fn take_away(&self, name: &str) {
        let mut disk = self.disk();
        disk.files.remove(name);
        disk.certain.remove(name);
    }

    /// Changes the bytes of a file, for certain.
    pub(crate) fn change(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let content = Arc::clone(&self.disk().files[name]);
        let mut bytes = locked(&content);
        change(&mut bytes.seen);
        bytes.synced = bytes.seen.clone();
        bytes.unsynced.clear();
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
            for change in std::mem::take(&mut bytes.unsynced) {
                if let Some(left) = change.torn(&mut random) {
                    left.apply(&mut survived);
                }
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

    /// Counts a read; Err if it is one that fails.
    fn read(&mut self) -> io::Result<()> {
        self.reads += 1;
        match self.read_fault {
            Some((read, for_ever)) if read == self.reads || for_ever && read < self.reads => {
                Err(io::Error::other("simulated failure to read"))
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
        let mut disk = self.disk();
        disk.read()?;
        Ok(disk.files.keys().cloned().collect())
    }

    fn create(&self, name: &str, bytes: u64) -> io::Result<Arc<dyn LogFile>> {
        let mut disk = self.disk();
        let failed = disk.call().err().or(disk.is_full.then_some(FaultKind::NoSpace));
        if let Some(kind @ (FaultKind::Error | FaultKind::NoSpace)) = failed {
            return Err(error(kind));
        }
        // One that is there is the same file, without its bytes.
        let content = Arc::clone(disk.files.entry(name.to_owned()).or_default());
        {
            let mut made = locked(&content);
            if !made.seen.is_empty() {
                made.seen.clear();
                made.unsynced.push(Change::Cut);
            }
        }
        if let Some(kind) = failed {
            return Err(error(kind));
        }
        // Until it is synced, not even the length is certain.
        let zeros = vec![0; bytes as usize];
        locked(&content).seen.clone_from(&zeros);
        locked(&content).unsynced.push(Change::Write(0, zeros));
        disk.history.push(format!("made {name}"));
        let meanwhile = disk.meanwhile.clone().filter(|_| name.ends_with(".snapshot"));
        drop(disk);
        if let Some(meanwhile) = meanwhile {
            meanwhile();
        }
        Ok(Arc::new(SimFile { disk: Arc::clone(&self.disk), name: name.to_owned(), content }))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn LogFile>> {
        let mut disk = self.disk();
        disk.read()?;
        let content = disk.files.get(name).ok_or(io::ErrorKind::NotFound)?;
        let content = Arc::clone(content);
        Ok(Arc::new(SimFile { disk: Arc::clone(&self.disk), name: name.to_owned(), content }))
    }

    fn bytes(&self, name: &str) -> io::Result<u64> {
        let disk = self.disk();
        let content = disk.files.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(locked(content).seen.len() as u64)
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
    name: String,
    content: Content,
}

impl LogFile for SimFile {
    fn read(&self) -> io::Result<Vec<u8>> {
        locked(&self.disk).read()?;
        Ok(locked(&self.content).seen.clone())
    }

    fn bytes(&self) -> io::Result<u64> {
        locked(&self.disk).read()?;
        Ok(locked(&self.content).seen.len() as u64)
    }

    fn read_at(&self, at: u64, bytes: usize) -> io::Result<Vec<u8>> {
        locked(&self.disk).read()?;
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
        content.unsynced.push(Change::Write(at as usize, bytes.to_vec()));
        failed.map_or(Ok(()), |kind| Err(error(kind)))
    }

    fn sync(&self) -> io::Result<()> {
        let failed = {
            let mut disk = locked(&self.disk);
            disk.syncs += 1;
            disk.history.push(format!("synced {}", self.name));
            disk.call().err()
        };
        if failed.is_none_or(|kind| kind == FaultKind::Half) {
            let mut content = locked(&self.content);
            // Not all that is seen: what an earlier sync has given up on is not written by a later one.
            for change in std::mem::take(&mut content.unsynced) {
                change.apply(&mut content.synced);
            }
        } else {
            // What a kernel may do: it shows the bytes, and will not try again to write them.
            locked(&self.content).unsynced.clear();
        }
        failed.map_or(Ok(()), |kind| Err(error(kind)))
    }
}
