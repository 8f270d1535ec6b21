//! The seam to the file system, which tests put a bad one behind.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

/// Makes files.
pub(super) trait Files: Send + Sync {
    /// A file that was not there, and that nobody else writes to as long as this one is open.
    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;
}

/// A file that is written to.
pub(super) trait OpenFile: Send {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Until this has answered, what was written may be lost.
    fn sync(&mut self) -> io::Result<()>;

    /// Cuts off what is beyond, and goes on there.
    fn cut(&mut self, bytes: u64) -> io::Result<()>;
}

/// Files as they are.
pub(super) struct RealFiles;

impl Files for RealFiles {
    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        // Who completes files that others have left takes only those without a lock.
        file.try_lock().map_err(|_| io::Error::from(io::ErrorKind::AlreadyExists))?;
        Ok(Box::new(file))
    }
}

impl OpenFile for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        #[cfg(feature = "planted")]
        wait_as_planted();
        self.sync_data()
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)?;
        self.seek(SeekFrom::Start(bytes)).map(drop)
    }
}

/// Between writing and syncing, a test may want to look, or to kill: as long as the file is there that it names.
#[cfg(feature = "planted")]
fn wait_as_planted() {
    let Some(path) = std::env::var_os("TRAPLINE_PLANTED_WARC_SYNC") else { return };
    let path = Path::new(&path);
    if path.exists() {
        // So that it is known that it waits.
        let _ = File::create(path.with_extension("waiting"));
    }
    while path.exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Makes sure that the names in a folder are on disk.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
