//! References as they were written, one behind the other, until the page's base is known and they can be resolved.

use std::ops::Range;

use crate::css::{CssLink, css_links};
use crate::fault::{FaultKind, Faults};
use crate::limits::Limits;
use crate::link::LinkKind;

/// A reference that was found, before it is resolved.
#[derive(Debug)]
pub(crate) struct Found {
    reference: Range<usize>,
    pub(crate) tag: &'static str,
    pub(crate) attribute: &'static str,
    pub(crate) kind: LinkKind,
    /// What few links have.
    pub(crate) more: Option<Box<(Option<String>, Option<String>)>>,
}

/// References one behind the other in one text, which costs less than a text for each.
#[derive(Debug)]
pub(crate) struct References {
    text: String,
    found: Vec<Found>,
    links_max: usize,
    bytes_max: usize,
    pub(crate) faults: Faults,
}

/// A reference on its way to the others.
pub(crate) struct Reference<'r> {
    pub(crate) reference: &'r str,
    pub(crate) tag: &'static str,
    pub(crate) attribute: &'static str,
    pub(crate) kind: LinkKind,
    pub(crate) rel: Option<String>,
    pub(crate) hreflang: Option<String>,
}

impl References {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            text: String::new(),
            found: Vec::new(),
            links_max: limits.links_max,
            bytes_max: limits.reference_bytes_max,
            faults: Faults::default(),
        }
    }

    pub(crate) fn add(&mut self, new: Reference<'_>) {
        let Reference { reference, tag, attribute, kind, rel, hreflang } = new;
        if reference.len() > self.bytes_max {
            self.faults.count(FaultKind::LongReferences, 1);
            return;
        }
        if self.found.len() >= self.links_max {
            self.faults.count(FaultKind::LinksLeftOut, 1);
            return;
        }
        let start = self.text.len();
        self.text.push_str(reference);
        let more = (rel.is_some() || hreflang.is_some()).then(|| Box::new((rel, hreflang)));
        self.found.push(Found { reference: start..self.text.len(), tag, attribute, kind, more });
    }

    /// Adds a reference that has nothing but its place.
    pub(crate) fn plain(
        &mut self,
        reference: &str,
        tag: &'static str,
        attribute: &'static str,
        kind: LinkKind,
    ) {
        self.add(Reference { reference, tag, attribute, kind, rel: None, hreflang: None });
    }

    /// Adds the references of a style sheet or attribute.
    pub(crate) fn css(&mut self, css: &str, tag: &'static str, attribute: Option<&'static str>) {
        css_links(css, |link, reference| {
            let named = if link == CssLink::Import { "import" } else { "url" };
            self.plain(reference, tag, attribute.unwrap_or(named), LinkKind::Embed);
        });
    }

    pub(crate) fn held_bytes(&self) -> usize {
        let more = self.found.iter().filter_map(|found| found.more.as_deref());
        let more = more.map(|(rel, hreflang)| {
            [rel, hreflang].into_iter().flatten().map(String::capacity).sum::<usize>()
        });
        self.text.capacity() + self.found.capacity() * size_of::<Found>() + more.sum::<usize>()
    }

    /// All of them in order, each with its reference.
    pub(crate) fn take(&mut self) -> (String, Vec<Found>) {
        (std::mem::take(&mut self.text), std::mem::take(&mut self.found))
    }
}

impl Found {
    pub(crate) fn reference<'t>(&self, text: &'t str) -> &'t str {
        text.get(self.reference.clone()).unwrap_or_default()
    }
}
