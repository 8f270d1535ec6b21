//! Where a report comes from: the folder of a crawl, its store, or both.

use std::path::{Path, PathBuf};

use trapline_frontier::{Frontier, Note, Query, Rows};

use super::ReportArgs;
use crate::chronicle::{self, Chronicle};
use crate::control_command::runs;
use crate::crawl_command::{OUTPUT, has_store, noted_pages, store_url as store_in};
use crate::frontier_command::address::Address;
use crate::frontier_command::listing;
use crate::store_url;

/// The folder that is meant where nothing is named.
const DEFAULT_FOLDER: &str = "trapline-crawl";

/// A crawl that is reported on.
pub(super) struct Origin {
    pub(super) folder: Option<PathBuf>,
    /// The crawl itself, unless it is kept where nobody named it, or nowhere.
    frontier: Option<Frontier>,
    pub(super) crawl: String,
}

impl Origin {
    /// Opens what the arguments name.
    pub(super) fn open(args: &ReportArgs) -> Result<Self, String> {
        let folder = match (&args.dir, &args.store) {
            (Some(dir), _) => Some(dir.clone()),
            (None, None) => Some(DEFAULT_FOLDER.into()),
            (None, Some(_)) => None,
        };
        if let Some(folder) = &folder {
            // Says what to do if there is none.
            runs(folder)?;
        }
        let in_folder = folder.as_deref().filter(|folder| has_store(folder)).map(store_in);
        let url = args.store.clone().or(in_folder);
        if let Some(path) = url.as_deref().and_then(store_url::empty_folder) {
            return Err(format!(
                "there is no store in `{path}`: name one with --store, or the crawl's folder"
            ));
        }
        if url.as_deref().is_some_and(store_url::is_memory) {
            return Err(
                "a store in memory is gone with its process; name the crawl's folder instead".to_owned()
            );
        }
        let frontier = url
            .as_deref()
            .map(|url| Address { store: Some(url), crawl: &args.crawl, is_named: true }.open())
            .transpose()?;
        Ok(Self { folder, frontier, crawl: args.crawl.clone() })
    }

    /// The crawl itself.
    pub(super) fn frontier(&self) -> Result<&Frontier, String> {
        self.frontier.as_ref().ok_or_else(|| {
            let folder = self.folder.as_deref().unwrap_or(Path::new(DEFAULT_FOLDER));
            format!(
                "the crawl in {} is kept elsewhere, or was only in memory: name its store with --store URL",
                folder.display()
            )
        })
    }

    /// The same, for what can be told without it.
    pub(super) fn known_frontier(&self) -> Option<&Frontier> {
        self.frontier.as_ref()
    }

    /// What all crawlers have done together, as far as they have told; None if no crawler has ever.
    pub(super) fn chronicle(&self) -> Result<Option<Chronicle>, String> {
        let of_folder = |folder: &PathBuf| std::fs::read_to_string(folder.join("output.id")).ok();
        let id = self.folder.as_ref().and_then(of_folder).unwrap_or_default();
        let own = format!("{}{}", chronicle::NOTES, id.trim());
        let mut kept = self.folder.as_deref().and_then(Chronicle::of_folder);
        let mut all = Vec::new();
        self.each_note(chronicle::NOTES, |note| {
            let Some(noted) = Chronicle::read(&note.value) else { return };
            if self.folder.is_some() && note.key == own {
                kept = Some(kept.take().map_or_else(|| noted.clone(), |kept| noted.clone().better(kept)));
            } else {
                all.push(noted);
            }
        })?;
        if let Some(folder) = &self.folder {
            kept = self.caught_up(folder, id.trim(), kept)?;
        }
        all.extend(kept);
        Ok((!all.is_empty()).then(|| Chronicle::together(all)))
    }

    /// What a folder has kept, with the visits that were written down since. What was written and never settled does not count.
    fn caught_up(
        &self,
        folder: &Path,
        id: &str,
        kept: Option<Chronicle>,
    ) -> Result<Option<Chronicle>, String> {
        let pages = folder.join("pages.jsonl");
        let Ok(about) = std::fs::metadata(&pages) else { return Ok(kept) };
        let mut bytes = about.len();
        self.each_note(&format!("{OUTPUT}{id}"), |note| {
            bytes = noted_pages(&note.value).map_or(bytes, |noted| noted.min(bytes));
        })?;
        let mut chronicle = kept.filter(|kept| kept.pages_bytes <= about.len()).unwrap_or_default();
        chronicle
            .catch_up(&pages, bytes)
            .map_err(|error| format!("cannot read {}: {error}", pages.display()))?;
        Ok(Some(chronicle))
    }

    fn each_note(&self, prefix: &str, mut each: impl FnMut(&Note)) -> Result<(), String> {
        let Some(frontier) = &self.frontier else { return Ok(()) };
        listing::each_page(frontier, Query::Notes { prefix: prefix.to_owned() }, |rows| {
            if let Rows::Notes(notes) = rows {
                notes.iter().for_each(&mut each);
            }
            true
        })
    }
}
