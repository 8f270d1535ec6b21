//! The output folder: what lies where, and who has it.
//!
//! ```text
//! DIR/
//!   pages.jsonl  skipped.jsonl  report.txt  report.json    results
//!   store/                                                 the crawl itself, unless it is kept elsewhere
//!   inject/                                                seed files to be taken up while it runs
//!   status.json  control/                                  how it stands, and orders to it
//!   chronicle.json                                         what all runs add up to, and how they went: for reports
//!   crawl.lock                                             who crawls into it
//! ```

use std::fs::{self, File};
use std::io::{IsTerminal, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// What an earlier crawl may have left.
const LEFT: [&str; 7] = [
    "pages.jsonl",
    "skipped.jsonl",
    "report.txt",
    "report.json",
    "status.json",
    "output.id",
    crate::chronicle::FILE,
];

/// The output folder of a crawl that runs. Nobody else crawls into it.
pub(super) struct Folder {
    path: PathBuf,
    _lock: File,
    /// It was not there before.
    made: bool,
}

/// The URL of the store in a folder.
pub(crate) fn store_url(folder: &Path) -> String {
    format!("disk:{}", folder.join("store").display())
}

/// Whether there is a store in a folder.
pub(crate) fn has_store(folder: &Path) -> bool {
    folder.join("store").exists()
}

impl Folder {
    /// Makes the folder if it is not there, and keeps others out.
    pub(super) fn take(path: &Path) -> Result<Self, String> {
        let trouble =
            |what: &str, error: std::io::Error| format!("cannot {what} {}: {error}", path.display());
        let made = !path.exists();
        fs::create_dir_all(path).map_err(|error| trouble("make the folder", error))?;
        let lock_path = path.join("crawl.lock");
        let mut lock = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&lock_path)
            .map_err(|error| trouble("write into", error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = lock.read_to_string(&mut holder);
                return Err(format!(
                    "process {} already crawls into {}: look with `trapline status`, or choose another folder with --out",
                    holder.trim(),
                    path.display()
                ));
            }
            Err(fs::TryLockError::Error(error)) => return Err(trouble("lock", error)),
        }
        let written = lock
            .set_len(0)
            .and_then(|()| lock.seek(SeekFrom::Start(0)).map(drop))
            .and_then(|()| writeln!(lock, "{}", std::process::id()));
        written.map_err(|error| trouble("write into", error))?;
        Ok(Self { path: path.to_owned(), _lock: lock, made })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves no folder behind that was not there before, if nothing has come into it.
    pub(super) fn leave(&self) {
        if self.made {
            let _ = fs::remove_file(self.path.join("crawl.lock"));
            let _ = fs::remove_dir(&self.path);
        }
    }

    /// Whether there is something of an earlier crawl: results, or the crawl itself.
    fn is_used(&self, with_store: bool) -> bool {
        (with_store && has_store(&self.path)) || LEFT.iter().any(|name| self.path.join(name).exists())
    }

    /// Removes what an earlier crawl has left, with its store if that is what the crawl is kept in; on a terminal somebody has to agree.
    pub(super) fn clear(&self, agreed: bool, with_store: bool) -> Result<(), String> {
        if !self.is_used(with_store) {
            return Ok(());
        }
        if !agreed && std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
            let _ = write!(std::io::stderr(), "Remove the earlier crawl in {}? [y/N] ", self.path.display());
            let mut answer = String::new();
            let _ = std::io::stdin().read_line(&mut answer);
            if !matches!(answer.trim(), "y" | "Y" | "yes") {
                return Err("nothing was removed; leave out --fresh to go on where the crawl was".to_owned());
            }
        }
        let removed = |path: PathBuf, gone: std::io::Result<()>| match gone {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(format!("cannot remove {}: {error}", path.display()))
            }
            _ => Ok(()),
        };
        for name in LEFT {
            let path = self.path.join(name);
            let gone = fs::remove_file(&path);
            removed(path, gone)?;
        }
        if !with_store {
            return Ok(());
        }
        let store = self.path.join("store");
        let gone = fs::remove_dir_all(&store);
        removed(store, gone)
    }

    /// A name of this folder that no other has, for notes in a store that several crawlers share.
    pub(super) fn id(&self) -> Result<String, String> {
        let path = self.path.join("output.id");
        if let Ok(id) = fs::read_to_string(&path)
            && !id.trim().is_empty()
        {
            return Ok(id.trim().to_owned());
        }
        let id =
            format!("{:016x}", getrandom::u64().map_err(|error| format!("no source of chance: {error}"))?);
        fs::write(&path, &id).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(id)
    }
}
