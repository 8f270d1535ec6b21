//! What a crash has left in a folder: files that nobody writes to any more. Their torn ends are cut off, and they are completed.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::file::{OPEN, complete};
use super::scan::scan_warc;

/// Completes the files in a folder that nobody writes to any more.
pub(super) fn complete_what_is_left(folder: &Path) -> io::Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        names.extend(name.to_str().and_then(|name| name.strip_suffix(OPEN)).map(str::to_owned));
    }
    names.sort();
    for name in names {
        complete_one(folder, &name)?;
    }
    Ok(())
}

fn complete_one(folder: &Path, name: &str) -> io::Result<()> {
    let path = folder.join(format!("{name}{OPEN}"));
    let file = match OpenOptions::new().read(true).write(true).open(&path) {
        Ok(file) => file,
        // Somebody else was faster.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if file.try_lock().is_err() || !is_still(&file, &path)? {
        return Ok(());
    }
    let scan = scan_warc(&path)?;
    let bytes = file.metadata()?.len();
    if scan.whole_bytes < bytes {
        let lost = bytes - scan.whole_bytes;
        let why = scan.torn.as_deref().unwrap_or_default();
        tracing::warn!(file = %path.display(), bytes = lost, why, "cut off the end of a WARC file that a crash has left half-written");
        file.set_len(scan.whole_bytes)?;
    }
    // What a dead process has written may be in memory only.
    file.sync_all()?;
    complete(folder, name, &scan.entries)
}

/// Whether a name still stands for the file that was opened by it.
fn is_still(file: &File, path: &Path) -> io::Result<bool> {
    let opened = file.metadata()?;
    match fs::metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (opened.dev(), opened.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
