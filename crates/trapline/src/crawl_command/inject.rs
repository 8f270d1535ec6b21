//! The drop-in folder: seed files that are put into `inject/` while the crawl runs are taken up, and then moved to `inject/done/`.

use std::collections::BTreeMap;
use std::fs::{self, DirEntry, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use trapline_crawl::CrawlHandle;

use super::seeds::SeedFile;
use crate::ended::{complain, complain_of_crawl};

/// The drop-in folder of a crawl.
pub(super) struct Inject {
    folder: PathBuf,
    /// Files that were there when it was last looked at. One that has not changed since is complete.
    seen: BTreeMap<PathBuf, About>,
    /// Files that could not be taken up, as they were. They are not tried again unless they change.
    failed: BTreeMap<PathBuf, About>,
}

/// How long a file is, and when it was changed.
type About = (u64, Option<SystemTime>);

impl Inject {
    pub(super) fn new(folder: &Path) -> Result<Self, String> {
        let folder = folder.join("inject");
        fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        Ok(Self { folder, seen: BTreeMap::new(), failed: BTreeMap::new() })
    }

    /// Whether something waits there to be taken up.
    pub(super) fn has_files(folder: &Path) -> bool {
        let files = fs::read_dir(folder.join("inject")).into_iter().flatten().flatten();
        files.into_iter().any(|entry| entry.path().is_file() && !is_hidden(&entry))
    }

    /// Takes up the files that are complete. Answers whether nothing more waits there.
    pub(super) async fn look(&mut self, handle: &CrawlHandle) -> bool {
        let mut there = BTreeMap::new();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if let Ok(about) = entry.metadata()
                && about.is_file()
                && !is_hidden(&entry)
            {
                there.insert(entry.path(), (about.len(), about.modified().ok()));
            }
        }
        there.retain(|path, about| self.failed.get(path) != Some(about));
        let complete: Vec<_> = there
            .iter()
            .filter(|(path, about)| self.seen.get(*path) == Some(about))
            .map(|(path, _)| path.clone())
            .collect();
        self.seen = there;
        for path in complete {
            let about = self.seen.remove(&path);
            if let Err(error) = self.take(&path, handle).await {
                complain_of_crawl(&format!("cannot take up {}: {error}", path.display()));
                self.failed.extend(about.map(|about| (path, about)));
            }
        }
        self.seen.is_empty()
    }

    async fn take(&self, path: &Path, handle: &CrawlHandle) -> std::io::Result<()> {
        let mut file = SeedFile::new(File::open(path)?);
        let (mut taken, mut wrong) = (0, 0);
        while let Some(batch) = file.next_batch()? {
            for (line, complaint) in &batch.wrong {
                complain(&format!("{}:{line}: {complaint}", path.display()));
            }
            wrong += batch.wrong.len();
            taken += batch.seeds.len();
            if handle.seed(batch.seeds).await.is_none() {
                // The crawl has ended; the next one takes it up.
                return Ok(());
            }
        }
        let done = self.folder.join("done");
        fs::create_dir_all(&done)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut target = done.join(&name);
        let mut number = 1;
        while target.exists() {
            number += 1;
            target = done.join(format!("{name}.{number}"));
        }
        fs::rename(path, target)?;
        complain_of_crawl(&format!("took up {taken} seeds of inject/{name}, {wrong} lines were none"));
        Ok(())
    }
}

/// Whether a file is not meant to be seen, such as one that an editor keeps meanwhile.
fn is_hidden(entry: &DirEntry) -> bool {
    entry.file_name().to_string_lossy().starts_with('.')
}
