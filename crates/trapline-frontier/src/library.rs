//! The seam to where requests, page records and notes are kept, for stores that have a better place for them than memory.

use std::fmt;
use std::sync::Arc;

use trapline_core::Request;

use crate::verbs::PageRecord;

/// Keeps the requests of an engine's URLs, what is known of their pages, and what notes say. The engine remembers where each is, and nothing
/// else of it.
///
/// Nothing here can answer an error. Whoever keeps the library notices what goes wrong in it, and does not give the answers
/// of the verb that was under way.
pub trait Library: fmt::Debug + Send + Sync {
    /// Keeps a request, and says where it is.
    fn put(&self, request: &Request) -> u64;

    /// The request that was put there.
    fn get(&self, place: u64) -> Arc<Request>;

    /// Requests that will probably be handed out soon, mostly in this order, for whoever has the time to read them ahead.
    fn expect(&self, places: &mut dyn Iterator<Item = u64>) {
        let _ = places;
    }

    /// Keeps what is known of a page with the request that was put there, and says where both are from now on; whatever was
    /// known of it before is forgotten. None leaves the page record to the engine, and the request where it is.
    fn put_page(&self, place: u64, page: &PageRecord) -> Option<u64>;

    /// Puts what is there once more, a request with what is known of the page or without, or a note, and says where, and how
    /// many bytes it takes; it is not needed there any more.
    fn copy(&self, place: u64, with_page: bool) -> (u64, u32);

    /// What is known of the page whose record was put there.
    fn page(&self, place: u64) -> Option<Arc<PageRecord>>;

    /// The same for somebody who is about to put another one, made of this one and a visit. A library that knows already what
    /// will be put may answer that: nothing else depends on what was known before.
    fn last_page(&self, place: u64) -> Option<Arc<PageRecord>> {
        self.page(place)
    }

    /// What is known of the page there is needed no more, but the request is.
    fn free_page(&self, place: u64, page: &PageRecord);

    /// Keeps what a note says, and says where it is, and how many bytes it takes. None leaves it to the engine.
    fn put_note(&self, key: &str, value: &[u8]) -> Option<(u64, u32)>;

    /// What the note says that was put there; None if that cannot be read any more.
    fn note(&self, place: u64) -> Option<Vec<u8>>;

    /// The note that was put there, and takes so many bytes, is needed no more.
    fn free_note(&self, place: u64, bytes: u32);

    /// What was put there is needed no more.
    fn free(&self, place: u64);

    /// The same for very many places at once.
    fn free_all(&self, places: &mut dyn Iterator<Item = u64>) {
        for place in places {
            self.free(place);
        }
    }
}
