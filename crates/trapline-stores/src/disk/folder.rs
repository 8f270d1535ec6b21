//! The store's folder: made where there is none, and held by one process at a time.
//!
//! ```text
//! PATH/lock                          locked by the owner, whose process id is in it
//! PATH/socket                        where the owner serves others, if it does
//! PATH/segments/0000000001.segment   the log
//! PATH/segments/0000000099.snapshot  the engine before record 99
//! PATH/segments/0000000099.records   frames of that snapshot, if it is large: of `records`, `lives`, `mores` and `queues`
//! PATH/checkpoints/NAME              copies of the store
//! ```

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use trapline_frontier::{ErrorKind, StoreError};

use super::files::sync_folder;
use super::socket::{Listening, SOCKET};

/// Where the log is.
pub(crate) const SEGMENTS: &str = "segments";
/// Where its copies are.
pub(crate) const CHECKPOINTS: &str = "checkpoints";
const LOCK: &str = "lock";

/// The right to use a folder, until it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    lock: File,
    /// As it is found from everywhere.
    path: PathBuf,
    /// The folder's socket, if it is served.
    listening: Option<Listening>,
}

/// Who holds a folder.
pub(crate) enum Hold {
    /// We do.
    Ours(Held),
    /// Another process does: the error that says so.
    Theirs(StoreError),
}

impl Held {
    /// Makes the folder's socket. It goes when the folder is let go of.
    pub(crate) fn listen(&mut self) -> io::Result<UnixListener> {
        let listening = Listening::bind(&self.path)?;
        self.listening.insert(listening).listener()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Once it is unlocked the socket may be another owner's.
        self.listening = None;
        // Closing the file would do, were there no copy of it in a child process that is just being started.
        let _ = self.lock.unlock();
    }
}

/// Makes the folder if there is none, and takes hold of it.
pub(crate) fn hold(path: &Path) -> Result<Held, StoreError> {
    match hold_or_holder(path)? {
        Hold::Ours(held) => Ok(held),
        Hold::Theirs(error) => Err(error),
    }
}

/// Makes the folder if there is none, and takes hold of it unless another process has it.
pub(crate) fn hold_or_holder(path: &Path) -> Result<Hold, StoreError> {
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
            let why = format!("{} holds it; stop that one first", holder(path));
            return Ok(Hold::Theirs(cannot(path, &why)));
        }
    }
    let signed =
        lock.set_len(0).and_then(|()| lock.write_all(format!("{}\n", std::process::id()).as_bytes()));
    signed.and_then(|()| sync_folder(path)).map_err(failed)?;
    // The folder itself is an entry of the one above it.
    let path = path.canonicalize().map_err(failed)?;
    if let Some(above) = path.parent() {
        sync_folder(above).map_err(failed)?;
    }
    Ok(Hold::Ours(Held { lock, path, listening: None }))
}

/// Who holds a folder that is held, in words.
pub(crate) fn holder(path: &Path) -> String {
    let mut holder = String::new();
    // What is no number was not written by an owner.
    let _ = File::open(path.join(LOCK)).and_then(|lock| lock.take(32).read_to_string(&mut holder));
    holder.trim().parse::<u32>().map_or("another process".to_owned(), |holder| format!("process {holder}"))
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
        if name != LOCK && name != SOCKET {
            stranger = Some(name.to_string_lossy().into_owned());
        }
    }
    Ok(stranger)
}

fn cannot(path: &Path, why: &str) -> StoreError {
    let message = format!("disk store: cannot open `{}`: {why}", path.display());
    StoreError::new(ErrorKind::Unavailable, message)
}
