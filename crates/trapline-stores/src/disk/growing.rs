//! A file that is written from its beginning to its end: a megabyte at once, and brought to disk on the way.

use std::io;
use std::sync::Arc;

use super::files::{Files, LogFile};

/// So much is written at once.
const WRITTEN_AT_ONCE: usize = 1 << 20;
/// After so much it is brought to disk: whoever waits for the log would wait for all of it otherwise.
const SYNCED_AT_ONCE: u64 = 4 << 20;

pub(crate) struct Growing {
    file: Arc<dyn LogFile>,
    /// Where the next bytes go, and those that are to go there.
    at: u64,
    bytes: Vec<u8>,
    /// Up to where it is on disk.
    synced: u64,
}

impl Growing {
    pub(crate) fn create(files: &dyn Files, name: &str) -> io::Result<Self> {
        // What may be left of an attempt under that name may have another name in a checkpoint.
        let _ = files.remove(name);
        Ok(Self { file: files.create(name, 0)?, at: 0, bytes: Vec::new(), synced: 0 })
    }

    /// How long it is.
    pub(crate) fn len(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }

    pub(crate) fn put(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        if self.bytes.len() >= WRITTEN_AT_ONCE { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> io::Result<()> {
        self.file.write(self.at, &self.bytes)?;
        self.at += self.bytes.len() as u64;
        self.bytes.clear();
        if self.at - self.synced >= SYNCED_AT_ONCE {
            self.file.sync()?;
            self.synced = self.at;
        }
        Ok(())
    }

    /// Brings all of it to disk.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.write()?;
        self.file.sync()
    }
}
