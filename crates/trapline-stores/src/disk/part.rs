//! A folder in the making: a store's, under another name until it is complete. So what was left half-way is never taken for
//! a store, and the next attempt begins anew in its place.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::files::sync_folder;
use super::folder;

/// The end of the name until then.
pub(crate) const PART: &str = ".part";

/// A folder that is being made, by nobody else as long as this is kept. Dropped before it was finished, it is removed.
#[derive(Debug)]
pub(crate) struct Part {
    path: PathBuf,
    to: PathBuf,
    is_finished: bool,
    _lock: File,
}

/// Why a folder cannot be made.
#[derive(Debug)]
pub(crate) enum NoPart {
    /// It is there, and is not empty.
    Taken,
    Failed(io::Error),
}

impl From<io::Error> for NoPart {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

impl Part {
    /// Begins a folder, which must not be there yet, or be empty.
    pub(crate) fn begin(to: &Path) -> Result<Self, NoPart> {
        let is_taken = || fs::read_dir(to).is_ok_and(|mut entries| entries.next().is_some());
        if is_taken() {
            return Err(NoPart::Taken);
        }
        // Without a slash at its end: the part is to be beside it, not in it.
        let to: PathBuf = to.components().collect();
        let mut path = to.as_os_str().to_owned();
        path.push(PART);
        let path = PathBuf::from(path);
        let lock = begin(&path)?;
        // Somebody may have finished it before we had the lock.
        if is_taken() {
            let _ = fs::remove_dir(&path);
            return Err(NoPart::Taken);
        }
        let part = Self { path, to, is_finished: false, _lock: lock };
        fs::create_dir_all(part.segments())?;
        Ok(part)
    }

    /// Where its segments go, and snapshots.
    pub(crate) fn segments(&self) -> PathBuf {
        self.path.join(folder::SEGMENTS)
    }

    /// Gives it its name. What is in it must be on disk.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        sync_folder(&self.segments())?;
        sync_folder(&self.path)?;
        if self.to.exists() {
            fs::remove_dir(&self.to)?;
        }
        fs::rename(&self.path, &self.to)?;
        self.is_finished = true;
        match self.to.parent() {
            Some(above) if !above.as_os_str().is_empty() => sync_folder(above),
            _ => sync_folder(Path::new(".")),
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Makes the folder, empty, and locks it.
fn begin(path: &Path) -> io::Result<File> {
    fs::create_dir_all(path)?;
    let lock = File::open(path)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::Error(error)) => return Err(error),
        Err(TryLockError::WouldBlock) => {
            return Err(io::Error::other(format!(
                "another process is just making it in `{}`",
                path.display()
            )));
        }
    }
    for entry in fs::read_dir(path)? {
        if entry?.file_name() != folder::SEGMENTS {
            let why = format!("`{}` is in the way, and is no unfinished copy; move it away", path.display());
            return Err(io::Error::other(why));
        }
    }
    // What an earlier attempt has left.
    match fs::remove_dir_all(path.join(folder::SEGMENTS)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(lock),
    }
}
