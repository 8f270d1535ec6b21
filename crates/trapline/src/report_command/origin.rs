//! Where a report comes from: the folder of a crawl, its store, or both.

use std::path::{Path, PathBuf};

use trapline_frontier::{Frontier, Query, Rows};

use super::ReportArgs;
use crate::chronicle::{self, Chronicle};
use crate::control_command::runs;
use crate::crawl_command::{has_store, store_url as store_in};
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
        let own =
            self.folder.as_deref().and_then(|folder| std::fs::read_to_string(folder.join("output.id")).ok());
        let own = own.map(|id| format!("{}{}", chronicle::NOTES, id.trim()));
        let mut of_folder = self.folder.as_deref().and_then(Chronicle::of_folder);
        let mut all = Vec::new();
        if let Some(frontier) = &self.frontier {
            let query = Query::Notes { prefix: chronicle::NOTES.to_owned() };
            listing::each_page(frontier, query, |rows| {
                let Rows::Notes(notes) = rows else { return false };
                for note in notes {
                    let Some(noted) = Chronicle::read(&note.value) else { continue };
                    if own.as_ref() == Some(&note.key) {
                        of_folder = Some(
                            of_folder.take().map_or_else(|| noted.clone(), |file| noted.clone().better(file)),
                        );
                    } else {
                        all.push(noted);
                    }
                }
                true
            })?;
        }
        if let Some(folder) = &self.folder {
            let pages = folder.join("pages.jsonl");
            if let Ok(about) = std::fs::metadata(&pages) {
                let mut one = of_folder.take().unwrap_or_default();
                one.catch_up(&pages, about.len())
                    .map_err(|error| format!("cannot read {}: {error}", pages.display()))?;
                of_folder = Some(one);
            }
        }
        all.extend(of_folder);
        Ok((!all.is_empty()).then(|| Chronicle::together(all)))
    }
}
