//! The store's folder: made where there is none, and held by one process at a time.
//!
//! ```text
//! PATH/lock                          locked by the owner, whose process id is in it
//! PATH/segments/0000000001.segment   the log
//! ```

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;

use trapline_frontier::{ErrorKind, StoreError};

use super::files::sync_folder;

/// Where the log is.
pub(crate) const SEGMENTS: &str = "segments";
/// Where its copies are.
pub(crate) const CHECKPOINTS: &str = "checkpoints";
const LOCK: &str = "lock";

/// The right to use a folder, until it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    lock: File,
}

impl Drop for Held {
    fn drop(&mut self) {
        // Closing the file would do, were there no copy of it in a child process that is just being started.
        let _ = self.lock.unlock();
    }
}

/// Makes the folder if there is none, and takes hold of it.
pub(crate) fn hold(path: &Path) -> Result<Held, StoreError> {
    let failed = |error| cannot(path, &format!("{error}; choose a folder that can be written to"));
    if path.as_os_str().is_empty() {
        return Err(cannot(path, "no folder is named"));
    }
    if let Some(stranger) = stranger(path).map_err(failed)? {
        return Err(cannot(
            path,
            &format!("it is no store, but has `{stranger}` in it; choose an empty folder or a new one"),
        ));
    }
    fs::create_dir_all(path.join(SEGMENTS)).map_err(failed)?;
    let mut lock = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path.join(LOCK))
        .map_err(failed)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::Error(error)) => return Err(failed(error)),
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            let _ = lock.read_to_string(&mut holder);
            let holder = holder.trim();
            let holder =
                if holder.is_empty() { "another process".to_owned() } else { format!("process {holder}") };
            return Err(cannot(path, &format!("{holder} holds it; stop that one first")));
        }
    }
    let signed =
        lock.set_len(0).and_then(|()| lock.write_all(format!("{}\n", std::process::id()).as_bytes()));
    signed.and_then(|()| sync_folder(path)).map_err(failed)?;
    // The folder itself is an entry of the one above it.
    if let Some(above) = path.canonicalize().map_err(failed)?.parent() {
        sync_folder(above).map_err(failed)?;
    }
    Ok(Held { lock })
}

/// Something that is in a folder which is no store's.
fn stranger(path: &Path) -> io::Result<Option<String>> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut stranger = None;
    for entry in entries {
        let name = entry?.file_name();
        if name == SEGMENTS {
            return Ok(None);
        }
        if name != LOCK {
            stranger = Some(name.to_string_lossy().into_owned());
        }
    }
    Ok(stranger)
}

fn cannot(path: &Path, why: &str) -> StoreError {
    let message = format!("disk store: cannot open `{}`: {why}", path.display());
    StoreError::new(ErrorKind::Unavailable, message)
}
