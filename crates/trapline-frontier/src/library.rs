//! The seam to where requests are kept, for stores that have a better place for them than memory.

use std::fmt;
use std::sync::Arc;

use trapline_core::Request;

/// Keeps the requests of an engine's URLs. The engine remembers where each is, and nothing else of it.
///
/// Nothing here can answer an error. Whoever keeps the library notices what goes wrong in it, and does not give the answers
/// of the verb that was under way.
pub trait Library: fmt::Debug + Send + Sync {
    /// Keeps a request, and says where it is.
    fn put(&self, request: &Request) -> u64;

    /// The request that was put there.
    fn get(&self, place: u64) -> Arc<Request>;

    /// The request that was put there is needed no more.
    fn free(&self, place: u64);
}
