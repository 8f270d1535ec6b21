//! Where a crawl is: its store and its name. Opens it, and tells people what to do where it is not there.

use std::path::Path;
use std::sync::Arc;

use trapline_frontier::{ErrorKind, Frontier, Store};

use super::moment;
use crate::{output, store_url};

/// A crawl on a store, as the arguments name it.
#[derive(Clone, Copy)]
pub(crate) struct Address<'a> {
    pub(crate) store: Option<&'a str>,
    pub(crate) crawl: &'a str,
    /// Whether somebody named the crawl, or it is the usual one.
    pub(crate) is_named: bool,
}

/// The store that is meant where none is named.
pub(crate) const DEFAULT_STORE: &str = "disk:trapline-data";

/// So many crawls are named where one is not there.
const NAMED_MAX: usize = 10;

impl<'a> Address<'a> {
    /// Opens a crawl that is there. Nothing is made.
    pub(crate) fn open(self) -> Result<Frontier, String> {
        let store = self.store()?;
        self.enter(&store)
    }

    /// Opens a crawl, and makes it and its store if they are not there.
    pub(super) fn open_or_make(self) -> Result<Frontier, String> {
        let store = self.store_or_new()?;
        let opened = Frontier::builder(self.crawl).open_shared(store, moment::now());
        pollster::block_on(opened).map_err(|error| error.to_string())
    }

    /// Opens a store that is there.
    pub(super) fn store(self) -> Result<Arc<dyn Store>, String> {
        let url = self.url()?;
        if let Some(path) = store_url::empty_folder(url) {
            let meant = match self.store {
                Some(_) => "",
                None => ", which is meant where none is named; name yours with --store disk:PATH",
            };
            return Err(format!("there is no store in `{path}`{meant}; {}", self.how_to_make(url)));
        }
        store_url::share_and_follow(url)
    }

    /// Opens a store, and makes it if it is not there.
    pub(super) fn store_or_new(self) -> Result<Arc<dyn Store>, String> {
        store_url::share_and_follow(self.url()?)
    }

    /// Opens the crawl on its store, if it is there.
    pub(super) fn enter(self, store: &Arc<dyn Store>) -> Result<Frontier, String> {
        let attached = Frontier::builder(self.crawl).attach(Arc::clone(store), moment::now());
        match pollster::block_on(attached) {
            Err(error) if error.kind() == ErrorKind::NotFound => Err(self.no_crawl(&**store)?),
            attached => attached.map_err(|error| error.to_string()),
        }
    }

    /// What is told where the crawl is not there.
    pub(crate) fn no_crawl(self, store: &dyn Store) -> Result<String, String> {
        let url = self.url()?;
        let crawls = pollster::block_on(trapline_frontier::crawls(store, moment::now()));
        let crawls = crawls.map_err(|error| error.to_string())?;
        let mut names: Vec<_> =
            crawls.iter().take(NAMED_MAX).map(|crawl| format!("`{}`", output::plain(&crawl.name))).collect();
        if crawls.len() > NAMED_MAX {
            names.push(format!("{} more", crawls.len() - NAMED_MAX));
        }
        let there = match names.len() {
            0 => "nor any other".to_owned(),
            1 => format!("there is {}", names[0]),
            _ => format!("there are {}", names.join(", ")),
        };
        let url = store_url::shown(url);
        let crawl = output::plain(self.crawl);
        Ok(format!("there is no crawl `{crawl}` in {url}; {there}\n  {}", self.how_to_make(&url)))
    }

    fn how_to_make(self, url: &str) -> String {
        let crawl = if self.crawl == "default" {
            String::new()
        } else {
            format!(" --crawl {}", output::pasted(self.crawl))
        };
        let url = output::pasted(url);
        format!("`trapline frontier --store {url}{crawl} admit` makes it with its first URLs")
    }

    pub(super) fn url(self) -> Result<&'a str, String> {
        match self.store {
            Some("memory:") => Err(
                "a store in memory keeps nothing from one command to the next; name one that does, such as \
                 --store disk:crawl"
                    .to_owned(),
            ),
            Some(url) => Ok(url),
            None => Ok(DEFAULT_STORE),
        }
    }

    /// The folder of the store, for what is done with folders. It need not be there.
    pub(super) fn folder(self) -> Result<&'a Path, String> {
        store_url::folder(self.url()?).map(Path::new)
    }
}
