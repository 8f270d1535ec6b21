//! Where a crawl is: its store and its name. Opens it, and tells people what to do where it is not there.

use std::path::Path;
use std::sync::Arc;

use trapline_core::Timestamp;
use trapline_frontier::{ErrorKind, Frontier, Store};

use super::moment;
use crate::store_url;

/// A crawl on a store, as the arguments name it.
#[derive(Clone, Copy)]
pub(super) struct Address<'a> {
    pub(super) store: Option<&'a str>,
    pub(super) crawl: &'a str,
}

impl<'a> Address<'a> {
    /// Opens a crawl that is there.
    pub(super) fn open(self) -> Result<Frontier, String> {
        let url = self.url()?;
        let make = || {
            let crawl =
                if self.crawl == "default" { String::new() } else { format!(" --crawl {}", self.crawl) };
            format!("`trapline frontier --store {url}{crawl} admit` makes it with its first URLs")
        };
        if let Some(path) = store_url::folder(url).filter(|path| is_nothing(Path::new(path))) {
            return Err(format!("there is no store in `{path}`; {}", make()));
        }
        let store = store_url::share(url)?;
        let now = moment::now();
        match pollster::block_on(store.stats(self.crawl, now)) {
            Ok(_) => self.enter(store, now),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(format!("there is no crawl `{}` in {url}; {}", self.crawl, make()))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Opens a crawl, and makes it and its store if they are not there.
    pub(super) fn open_or_make(self) -> Result<Frontier, String> {
        let store = store_url::share(self.url()?)?;
        self.enter(store, moment::now())
    }

    fn enter(self, store: Arc<dyn Store>, now: Timestamp) -> Result<Frontier, String> {
        let opened = Frontier::builder(self.crawl).open_shared(store, now);
        pollster::block_on(opened).map_err(|error| error.to_string())
    }

    pub(super) fn url(self) -> Result<&'a str, String> {
        match self.store {
            Some("memory:") => Err(
                "a store in memory keeps nothing from one command to the next; name one that does, such as \
                 --store disk:crawl"
                    .to_owned(),
            ),
            Some(url) => Ok(url),
            None => Err("which store? Name it, such as --store disk:crawl for the folder `crawl`".to_owned()),
        }
    }
}

/// Whether there is no folder, or nothing in it. What cannot be looked at is left to the store to complain about.
fn is_nothing(path: &Path) -> bool {
    match std::fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}
