//! Stores by their URLs: `memory:`, and those to come. Here alone it is known which stores exist.

use std::sync::Arc;

use trapline_frontier::{MemoryStore, Store};
use trapline_sim::{MemoryStores, Stores};

/// Opens the store that a URL names.
pub(crate) fn open(url: &str) -> Result<Arc<dyn Store>, String> {
    let scheme = url.split(':').next().unwrap_or_default();
    match scheme {
        "memory" if url == "memory:" => Ok(Arc::new(MemoryStore::new())),
        "memory" => Err(format!(
            "`{url}` is not a store: the memory store is written `memory:`, with nothing behind it"
        )),
        "disk" | "postgres" | "postgresql" | "redis" | "rediss" | "grpc" => Err(format!(
            "`{url}`: stores of the kind `{scheme}:` are not built yet; this version has `memory:`"
        )),
        _ => Err(format!("`{url}` is not a store: write `memory:`")),
    }
}

/// The stores that a simulation is to have, each like the one that a URL names, fresh and empty.
pub(crate) fn stores(url: &str) -> Result<Box<dyn Stores>, String> {
    open(url).map(|_| Box::new(MemoryStores) as Box<dyn Stores>)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_named_by_urls() {
        assert!(open("memory:").is_ok());
        for (url, message) in [
            (
                "memory",
                "`memory` is not a store: the memory store is written `memory:`, with nothing behind it",
            ),
            (
                "memory:x",
                "`memory:x` is not a store: the memory store is written `memory:`, with nothing behind it",
            ),
            (
                "disk:/tmp/x",
                "`disk:/tmp/x`: stores of the kind `disk:` are not built yet; this version has `memory:`",
            ),
            ("", "`` is not a store: write `memory:`"),
            ("http://x", "`http://x` is not a store: write `memory:`"),
        ] {
            assert_eq!(open(url).err().as_deref(), Some(message));
        }
    }
}
