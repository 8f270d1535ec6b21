//! Folders for stores.

use std::path::PathBuf;

/// A folder for a store, not there yet, and gone with its test.
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
}

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("trapline-it-{name}-{}", std::process::id());
        Self { path: std::env::temp_dir().join(name) }
    }

    pub(crate) fn url(&self) -> String {
        format!("disk:{}", self.path.display())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
