//! Canonical URL solvers: under which of its URLs a page is told, where redirects or the page itself know several.
//!
//! It is a name in the results, no more: what is fetched, and what counts as seen, goes by URLs as they are. One a file.

mod declared;
mod first_url;
mod last_url;

use crate::candidate::without_fragment;
use crate::fetch::Visit;

/// Under which of its URLs a page is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CanonicalSolver {
    /// The one that was asked for first, before all redirects.
    FirstUrl,
    /// The one that they lead to.
    LastUrl,
    /// The one that the page itself declares, if it is of the same registrable domain; otherwise as `LastUrl`.
    Declared,
}

impl CanonicalSolver {
    /// Every solver, with the name it has in the configuration.
    pub const NAMES: [(&'static str, Self); 3] =
        [("first_url", Self::FirstUrl), ("last_url", Self::LastUrl), ("declared", Self::Declared)];

    /// What it answers to a visit.
    pub fn solve(self, visit: &Visit) -> String {
        let url = match self {
            Self::FirstUrl => first_url::solve(visit),
            Self::LastUrl => last_url::solve(visit),
            Self::Declared => declared::solve(visit),
        };
        without_fragment(url).to_owned()
    }
}
