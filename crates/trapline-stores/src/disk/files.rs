//! The seam to the file system: all that the log asks of it, so that tests can put one in its place that fails, tears
//! and forgets.
//!
//! What is absent: what is in the files.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FallocateFlags, fallocate};

/// The folder that holds the segments.
pub trait Files: Send + Sync + 'static {
    /// The names in it.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes a file of so many zeros, for which there is room from then on. It is not there for certain before it was
    /// synced, and [`sync_folder`](Files::sync_folder) after that.
    fn create(&self, name: &str, bytes: u64) -> io::Result<Arc<dyn LogFile>>;

    /// Opens a file that is there.
    fn open(&self, name: &str) -> io::Result<Arc<dyn LogFile>>;

    /// How long a file is.
    fn bytes(&self, name: &str) -> io::Result<u64>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Removes a file that may be large, with rests in which the disk can do something else. Whoever has it open finds it cut short.
    /// `rest` answers whether there is time for that.
    fn remove_gently(&self, name: &str, rest: &dyn Fn(Duration) -> bool) -> io::Result<()> {
        let _ = rest;
        self.remove(name)
    }

    /// How many bytes more the disk has room for.
    fn free(&self) -> io::Result<u64>;

    /// Makes it certain which files there are.
    fn sync_folder(&self) -> io::Result<()>;

    /// What to call a file when talking to people.
    fn describe(&self, name: &str) -> String;
}

/// A file of the log. Written by one at a time, synced by another at the same time.
pub trait LogFile: Send + Sync {
    /// All of it.
    fn read(&self) -> io::Result<Vec<u8>>;

    /// How long it is.
    fn bytes(&self) -> io::Result<u64>;

    /// So many bytes from there on; fewer only where it ends.
    fn read_at(&self, at: u64, bytes: usize) -> io::Result<Vec<u8>>;

    /// The same into a buffer; answers how many bytes there were.
    fn read_into(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.read_at(at, buffer.len())?;
        buffer[..read.len()].copy_from_slice(&read);
        Ok(read.len())
    }

    /// Writes all these bytes from there on. A file of the log is never written beyond the length it was made with.
    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// When it returns, everything written before it was called is on disk.
    fn sync(&self) -> io::Result<()>;
}

/// So many zeros are written at once.
const ZEROS_AT_ONCE: u64 = 1 << 20;

/// So many bytes of a large file are freed at once, and so long is the rest after that: a disk that is told what it need not keep any more
/// does nothing else meanwhile. Freed as a whole, 600 MB let a sync of the log wait for 30 ms, and so for 3 ms at most.
const FREED_AT_ONCE: u64 = 16 << 20;
const FREED_REST: Duration = Duration::from_millis(5);

/// So many bytes are read without asking how many there are.
const READ_UNBOUNDED: usize = 64 << 10;

/// A real folder.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// A folder that is there.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }
}

impl Files for Folder {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        Ok(names)
    }

    fn create(&self, name: &str, bytes: u64) -> io::Result<Arc<dyn LogFile>> {
        let path = self.path.join(name);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path)?;
        if bytes > 0 {
            fallocate(&file, FallocateFlags::empty(), 0, bytes)?;
        }
        // What is only allocated must be noted in the file system when it is first written, with every sync: on ext4 that
        // takes thirty times as long.
        let zeros = vec![0; bytes.min(ZEROS_AT_ONCE) as usize];
        let mut at = 0;
        while at < bytes {
            let length = (bytes - at).min(ZEROS_AT_ONCE);
            file.write_all_at(&zeros[..length as usize], at)?;
            at += length;
            if at < bytes {
                // Whoever syncs the log meanwhile would wait for all of it otherwise. The rest is synced with the file.
                file.sync_data()?;
            }
        }
        Ok(Arc::new(RealFile(file)))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn LogFile>> {
        let file = OpenOptions::new().read(true).write(true).open(self.path.join(name))?;
        Ok(Arc::new(RealFile(file)))
    }

    fn bytes(&self, name: &str) -> io::Result<u64> {
        Ok(fs::metadata(self.path.join(name))?.len())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn remove_gently(&self, name: &str, rest: &dyn Fn(Duration) -> bool) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(self.path.join(name))?;
        self.remove(name)?;
        let known = file.metadata()?;
        // A checkpoint may have given it a second name. Once it has none, nobody can.
        let mut left = if known.nlink() == 0 { known.len() } else { 0 };
        while left > 0 && rest(FREED_REST) {
            left = left.saturating_sub(FREED_AT_ONCE);
            file.set_len(left)?;
        }
        Ok(())
    }

    fn free(&self) -> io::Result<u64> {
        let disk = rustix::fs::statvfs(&self.path)?;
        Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    fn sync_folder(&self) -> io::Result<()> {
        sync_folder(&self.path)
    }

    fn describe(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }
}

/// Makes it certain which files a folder has.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

struct RealFile(File);

impl LogFile for RealFile {
    fn read(&self) -> io::Result<Vec<u8>> {
        let length = self.bytes()?;
        let length = usize::try_from(length).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let mut bytes = vec![0; length];
        self.0.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, at: u64, bytes: usize) -> io::Result<Vec<u8>> {
        // A length that was read from a damaged file may be any: no more memory is taken for it than there are bytes.
        let bytes = if bytes > READ_UNBOUNDED {
            let left = self.bytes()?.saturating_sub(at);
            bytes.min(usize::try_from(left).unwrap_or(usize::MAX))
        } else {
            bytes
        };
        let mut buffer = vec![0; bytes];
        let read = self.read_into(at, &mut buffer)?;
        buffer.truncate(read);
        Ok(buffer)
    }

    fn read_into(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut read = 0;
        while read < buffer.len() {
            match self.0.read_at(&mut buffer[read..], at + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_removed_gently_stays_whole_under_its_other_names() {
        let path = std::env::temp_dir().join(format!("trapline-gently-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let folder = Folder::new(&path);
        let bytes = 3 * FREED_AT_ONCE + 1;
        let rests = std::cell::Cell::new(0);
        let rest = |_| {
            rests.set(rests.get() + 1);
            true
        };
        for name in ["linked", "alone", "hurried"] {
            folder.create(name, bytes).unwrap();
        }
        fs::hard_link(path.join("linked"), path.join("other")).unwrap();
        folder.remove_gently("linked", &rest).unwrap();
        let unlinked = rests.get();
        let open = folder.open("alone").unwrap();
        folder.remove_gently("alone", &rest).unwrap();
        let left = open.read_at(0, 1).unwrap().len();
        folder.remove_gently("hurried", &|_| false).unwrap();
        let missing = folder.remove_gently("missing", &rest).is_err();
        let (names, whole) = (folder.list().unwrap(), folder.bytes("other").unwrap());
        fs::remove_dir_all(&path).unwrap();
        assert_eq!((unlinked, rests.get(), left), (0, 4, 0));
        assert_eq!((names, whole, missing), (vec!["other".to_owned()], bytes, true));
    }

    /// Lengths in files can be damaged; no memory is taken for what is not there.
    #[test]
    fn no_more_is_read_than_there_is_whatever_a_length_says() {
        let path = std::env::temp_dir().join(format!("trapline-read-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let file = Folder::new(&path).create("file", 100_000).unwrap();
        let lengths =
            [(0, usize::MAX / 2), (99_990, 1 << 45), (100_000, 1 << 45), (1 << 60, 1 << 45), (0, 70_000)];
        let read =
            lengths.map(|(at, bytes)| file.read_at(at, bytes).map(|bytes| (bytes.len(), bytes.capacity())));
        fs::remove_dir_all(&path).unwrap();
        assert_eq!(read.map(Result::unwrap), [100_000, 10, 0, 0, 70_000].map(|length| (length, length)));
    }
}
