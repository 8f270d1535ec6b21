//! How pages end: counted by a crawl, and by the walk that says what the crawl has to reach.

use std::fmt;

/// How a page ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was there.
    Fetched,
    /// It led elsewhere.
    Redirected,
    /// There was no such page.
    NotFound,
    /// It failed each time.
    Broken,
    /// Robots said no.
    Disallowed,
}

impl Ending {
    /// Every ending.
    pub const ALL: [Self; 5] =
        [Self::Fetched, Self::Redirected, Self::NotFound, Self::Broken, Self::Disallowed];
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fetched => "fetched",
            Self::Redirected => "redirected",
            Self::NotFound => "not found",
            Self::Broken => "broken",
            Self::Disallowed => "disallowed",
        })
    }
}

/// How many pages ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Endings([u64; 5]);

impl Endings {
    /// How many ended so.
    pub fn of(&self, ending: Ending) -> u64 {
        self.0[ending as usize]
    }

    /// How many ended.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(crate) fn count(&mut self, ending: Ending) {
        self.0[ending as usize] += 1;
    }
}
