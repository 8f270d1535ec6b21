//! Where the requests of all entries are: in memory, or in a library of the store's.

use std::borrow::Cow;
use std::sync::Arc;

use trapline_core::Request;

use super::texts::{TextId, Texts};
use crate::library::Library;
use crate::verbs::PageRecord;

/// The requests of a crawl.
#[derive(Debug)]
pub(super) enum Payloads {
    Here(Texts),
    Elsewhere(Arc<dyn Library>),
}

/// Where a request is. In two halves, so that what holds it needs no more than four bytes of alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place([u32; 2]);

impl Place {
    pub(super) fn new(place: u64) -> Self {
        Self([place as u32, (place >> 32) as u32])
    }

    pub(super) fn get(self) -> u64 {
        u64::from(self.0[0]) | u64::from(self.0[1]) << 32
    }

    fn text(self) -> TextId {
        TextId(self.0[0])
    }
}

/// A request on its way to a worker.
pub(super) enum Handed {
    Read(Arc<Request>),
    /// It is there, to be read by whoever has the time.
    Unread(u64),
}

/// Where a library has the request of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreadRequest {
    /// The place.
    pub place: u64,
    /// Whether what is known of the page there still counts.
    pub has_page: bool,
}

impl Payloads {
    pub(super) fn new(library: Option<Arc<dyn Library>>) -> Self {
        library.map_or_else(|| Self::Here(Texts::default()), Self::Elsewhere)
    }

    pub(super) fn put(&mut self, request: &Request) -> Place {
        Place::new(match self {
            Self::Here(texts) => texts.put(request).0.into(),
            Self::Elsewhere(library) => library.put(request),
        })
    }

    /// Keeps what is known of a page with its request; answers where both are from now on, if it is kept here.
    pub(super) fn put_page(&self, place: Place, page: &PageRecord) -> Option<Place> {
        match self {
            Self::Here(_) => None,
            Self::Elsewhere(library) => library.put_page(place.get(), page).map(Place::new),
        }
    }

    /// Lets a library put what it has at a place elsewhere, and answers where.
    pub(super) fn copy(&self, place: Place, with_page: bool) -> Place {
        match self {
            Self::Here(_) => place,
            Self::Elsewhere(library) => Place::new(library.copy(place.get(), with_page).0),
        }
    }

    /// What was kept of a page with its request.
    pub(super) fn page(&self, place: Place) -> Option<Arc<PageRecord>> {
        match self {
            Self::Here(_) => None,
            Self::Elsewhere(library) => library.page(place.get()),
        }
    }

    /// The same before a visit: see [`Library::last_page`].
    pub(super) fn last_page(&self, place: Place) -> Option<Arc<PageRecord>> {
        match self {
            Self::Here(_) => None,
            Self::Elsewhere(library) => library.last_page(place.get()),
        }
    }

    /// What is known of the page there is needed no more.
    pub(super) fn free_page(&self, place: Place, page: &PageRecord) {
        if let Self::Elsewhere(library) = self {
            library.free_page(place.get(), page);
        }
    }

    pub(super) fn free(&mut self, place: Place) {
        match self {
            Self::Here(texts) => texts.free(place.text()),
            Self::Elsewhere(library) => library.free(place.get()),
        }
    }

    /// Lets a library free all of these. What is here goes by itself.
    pub(super) fn free_all(&self, places: &mut dyn Iterator<Item = u64>) {
        if let Self::Elsewhere(library) = self {
            library.free_all(places);
        }
    }

    pub(super) fn request(&self, place: Place) -> Arc<Request> {
        match self {
            Self::Here(texts) => texts.request(place.text()),
            Self::Elsewhere(library) => library.get(place.get()),
        }
    }

    pub(super) fn hand(&self, place: Place) -> Handed {
        match self {
            Self::Here(texts) => Handed::Read(texts.request(place.text())),
            Self::Elsewhere(_) => Handed::Unread(place.get()),
        }
    }

    pub(super) fn url(&self, place: Place) -> Cow<'_, str> {
        match self {
            Self::Here(texts) => Cow::Borrowed(texts.url(place.text())),
            Self::Elsewhere(library) => Cow::Owned(library.get(place.get()).url.clone()),
        }
    }

    /// Looks at a text ahead of time, so that it is in the cache when it is wanted.
    pub(super) fn touch(&self, place: Place) -> u8 {
        match self {
            Self::Here(texts) => texts.touch(place.text()),
            Self::Elsewhere(_) => 0,
        }
    }

    /// Tells a library which requests will probably be wanted soon.
    pub(super) fn expect(&self, places: &mut dyn Iterator<Item = Place>) {
        if let Self::Elsewhere(library) = self {
            library.expect(&mut places.map(Place::get));
        }
    }

    /// How many more certainly fit.
    pub(super) fn room(&self) -> usize {
        match self {
            Self::Here(texts) => texts.room(),
            Self::Elsewhere(_) => usize::MAX,
        }
    }

    /// How much memory they take.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Here(texts) => texts.bytes(),
            Self::Elsewhere(_) => 0,
        }
    }
}
