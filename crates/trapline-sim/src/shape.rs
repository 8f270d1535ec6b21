//! The shape of a host: which of its pages leads to which.
//!
//! A host's pages are numbered. Page 0 is the home page, which leads to the topics and to the start of each archive;
//! a topic leads to its leaves; an archive is a chain in which every page leads to the next. So each page has exactly one
//! place in a tree, and the links that make it a web are drawn elsewhere.

use std::iter::successors;

/// How many archives a large host has.
const ARCHIVES: u32 = 4;

/// An archive shorter than this is not begun while another can be longer.
const ARCHIVE_PAGES_MIN: u32 = 25;

/// The place of a page on its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Home,
    Topic,
    Leaf,
    Archive,
}

/// The shape of a host with so many pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pages: u32,
    /// Topics are pages `1..=topics`: about as many as each has leaves.
    topics: u32,
    /// Pages from here on are archives: a tenth of all.
    archive: u32,
    archive_pages: u32,
}

impl Shape {
    pub(crate) fn new(pages: u32) -> Self {
        let in_archives = pages / 10;
        Self {
            pages,
            topics: pages.saturating_sub(1).isqrt(),
            archive: pages - in_archives,
            archive_pages: in_archives.div_ceil(ARCHIVES).max(ARCHIVE_PAGES_MIN),
        }
    }

    pub(crate) fn role(self, number: u32) -> Role {
        match number {
            0 => Role::Home,
            _ if number <= self.topics => Role::Topic,
            _ if number < self.archive => Role::Leaf,
            _ => Role::Archive,
        }
    }

    /// The pages below a page.
    pub(crate) fn children(self, number: u32) -> Vec<u32> {
        let steps = |from: u32, to: u32, step: u32| {
            successors(Some(from), move |last| last.checked_add(step)).take_while(move |page| *page < to)
        };
        match self.role(number) {
            Role::Home => {
                (1..=self.topics).chain(steps(self.archive, self.pages, self.archive_pages)).collect()
            }
            Role::Topic => steps(self.topics + number, self.archive, self.topics).collect(),
            Role::Leaf => Vec::new(),
            Role::Archive => {
                let next = number + 1;
                let goes_on = next < self.pages && !(next - self.archive).is_multiple_of(self.archive_pages);
                goes_on.then_some(next).into_iter().collect()
            }
        }
    }

    /// The page above a page; the home page's is itself.
    pub(crate) fn parent(self, number: u32) -> u32 {
        match self.role(number) {
            Role::Home | Role::Topic => 0,
            Role::Leaf => 1 + (number - self.topics - 1) % self.topics,
            Role::Archive if (number - self.archive).is_multiple_of(self.archive_pages) => 0,
            Role::Archive => number - 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_below_exactly_one_other() {
        for pages in (1..300).chain([1_000, 20_011]) {
            let shape = Shape::new(pages);
            let mut above = vec![None; pages as usize];
            for number in 0..pages {
                for child in shape.children(number) {
                    let seat = &mut above[child as usize];
                    assert_eq!(*seat, None, "{child} of {pages} hangs below two pages");
                    *seat = Some(number);
                }
            }
            assert_eq!(above[0], None);
            for (number, parent) in (0..pages).zip(&above).skip(1) {
                assert_eq!(*parent, Some(shape.parent(number)), "{number} of {pages}");
            }
        }
    }

    #[test]
    fn archives_are_few_and_deep() {
        let shape = Shape::new(2_000);
        let starts = shape.children(0).into_iter().filter(|page| shape.role(*page) == Role::Archive);
        assert_eq!(starts.collect::<Vec<_>>(), [1_800, 1_850, 1_900, 1_950]);
        let chain = successors(Some(1_800), |page| shape.children(*page).first().copied());
        assert_eq!(chain.count(), 50);
    }
}
