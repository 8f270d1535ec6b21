//! All URLs of a crawl, gone through once, and what those of one kind add up to.

use serde_json::{Value, json};
use trapline_core::SplitUrl;
use trapline_frontier::{Frontier, Query, Rows, UrlReport, UrlState};

use crate::frontier_command::listing;
use crate::output::Row;

/// How many names of a kind are told apart; further ones are counted together, without a name.
pub(super) const NAMES_MAX: usize = 500_000;

/// What some URLs add up to.
#[derive(Clone, Debug, Default)]
pub(super) struct UrlSum {
    /// By state, in the order of [`UrlState::ALL`].
    states: [u64; 6],
    /// Done, with a status of 400 and above.
    refused: u64,
    bytes: u64,
}

impl UrlSum {
    pub(super) fn count(&mut self, url: &UrlReport) {
        self.states[url.state as usize] += 1;
        if let Some(page) = &url.page {
            self.bytes += page.visit.bytes;
            self.refused += u64::from(page.visit.status >= 400);
        }
    }

    /// How many there are.
    pub(super) fn urls(&self) -> u64 {
        self.states.iter().sum()
    }

    /// The values of a row.
    pub(super) fn row(&self) -> Row {
        let of = |state: UrlState| json!(self.states[state as usize]);
        vec![
            ("urls", json!(self.urls())),
            ("pending", of(UrlState::Pending)),
            ("leased", of(UrlState::Leased)),
            ("done", of(UrlState::Done)),
            ("refused", json!(self.refused)),
            ("disregarded", of(UrlState::Disregarded)),
            ("dead", of(UrlState::Dead)),
            ("bytes", json!(self.bytes)),
        ]
    }
}

/// Goes through all URLs, or those in one state.
pub(super) fn each_url(
    frontier: &Frontier,
    state: Option<UrlState>,
    mut each: impl FnMut(&UrlReport),
) -> Result<(), String> {
    listing::each_page(frontier, Query::Urls { key: None, pattern: None, state }, |rows| {
        if let Rows::Urls(urls) = rows {
            urls.iter().for_each(&mut each);
        }
        true
    })
}

/// The host and port of a URL.
pub(super) fn host_of(url: &UrlReport) -> String {
    let split = url.request.as_ref().and_then(|request| SplitUrl::parse(&request.url).ok());
    split.map(|url| url.host_and_port().to_owned()).unwrap_or_default()
}

/// A name in a row; what has none was too much to be told apart.
pub(super) fn name(name: &str) -> Value {
    if name.is_empty() { json!("(others)") } else { json!(name) }
}
