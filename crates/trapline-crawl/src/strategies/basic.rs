//! Everything once, in the order of the crawl.

use std::sync::Arc;

use super::{ArgumentError, Arguments, Strategy};
use crate::tally::Tally;

/// Fetches everything once. `pages=N` makes so many pages the goal.
#[derive(Debug)]
struct Basic {
    pages: u64,
}

pub(super) fn make(arguments: &mut Arguments) -> Result<Arc<dyn Strategy>, ArgumentError> {
    Ok(Arc::new(Basic { pages: arguments.number("pages", 0)? }))
}

impl Strategy for Basic {
    fn name(&self) -> &'static str {
        "basic"
    }

    fn goal(&self, so_far: &Tally) -> Option<String> {
        let pages = so_far.pages_ever();
        (self.pages > 0 && pages >= self.pages).then(|| format!("{pages} pages are done"))
    }
}
