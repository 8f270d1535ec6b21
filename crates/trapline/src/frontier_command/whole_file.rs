//! A file that is there as a whole or not at all: written under another name beside its own, synced, and renamed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file that is being written. Dropped before it is finished, nothing is left of it.
pub(super) struct WholeFile {
    path: PathBuf,
    partial: PathBuf,
    out: Option<BufWriter<File>>,
}

impl WholeFile {
    /// Begins to write a file. What stands under its name stays there until it is finished.
    pub(super) fn begin(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or_else(|| io::Error::other("it is not the name of a file"))?;
        if path.is_dir() {
            return Err(io::Error::other("it is a folder"));
        }
        let mut partial = name.to_os_string();
        partial.push(format!(".partial-{}", std::process::id()));
        let partial = path.with_file_name(partial);
        let file = OpenOptions::new().write(true).create_new(true).open(&partial)?;
        let out = Some(BufWriter::with_capacity(1 << 18, file));
        Ok(Self { path: path.to_owned(), partial, out })
    }

    /// Gives the file its name, once all of it is on disk.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let Some(out) = self.out.take() else { return Ok(()) };
        let file = out.into_inner().map_err(io::IntoInnerError::into_error);
        let finished =
            file.and_then(|file| file.sync_all()).and_then(|()| fs::rename(&self.partial, &self.path));
        if finished.is_err() {
            let _ = fs::remove_file(&self.partial);
            return finished;
        }
        // The name is on disk with its folder.
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all())
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.as_mut().map_or(Ok(0), |out| out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if self.out.take().is_some() {
            let _ = fs::remove_file(&self.partial);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_as_a_whole_or_not_at_all() {
        let folder = std::env::temp_dir().join(format!("trapline-whole-file-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let path = folder.join("out");
        let names =
            || fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();

        let mut file = WholeFile::begin(&path).unwrap();
        file.write_all(b"half").unwrap();
        assert!(!path.exists());
        drop(file);
        assert_eq!(names(), [""; 0]);

        let mut file = WholeFile::begin(&path).unwrap();
        file.write_all(b"whole").unwrap();
        file.finish().unwrap();
        assert_eq!((fs::read(&path).unwrap(), names()), (b"whole".to_vec(), vec!["out".into()]));

        let mut file = WholeFile::begin(&path).unwrap();
        file.write_all(b"another").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert!(WholeFile::begin(&folder).is_err());
        assert!(WholeFile::begin(&folder.join("no/where")).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }
}
