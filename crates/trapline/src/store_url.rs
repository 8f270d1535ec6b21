//! Stores by their URLs: `memory:`, `disk:PATH`, and those to come. Here alone it is known which stores exist.

mod disk_stores;

use std::sync::Arc;

use trapline_frontier::MemoryStore;
use trapline_sim::{MemoryStores, Opened, Stores};
use trapline_stores::{DiskOptions, DiskReopen};

use disk_stores::DiskStores;

/// What a URL names.
#[derive(Debug, PartialEq, Eq)]
enum StoreUrl<'a> {
    Memory,
    Disk(&'a str),
}

/// Opens the store that a URL names.
pub(crate) fn open(url: &str) -> Result<Opened, String> {
    match parse(url)? {
        StoreUrl::Memory => Ok(Opened { store: Arc::new(MemoryStore::new()), reopen: None }),
        StoreUrl::Disk(path) => {
            let reopen = DiskReopen::open(path, DiskOptions::default()).map_err(|error| error.to_string())?;
            Ok(Opened { store: reopen.store(), reopen: Some(Box::new(reopen)) })
        }
    }
}

/// The folder that a URL names, if it names one.
pub(crate) fn folder(url: &str) -> Option<&str> {
    match parse(url) {
        Ok(StoreUrl::Disk(path)) => Some(path),
        Ok(StoreUrl::Memory) | Err(_) => None,
    }
}

/// The stores that a simulation is to have, each like the one that a URL names, fresh and empty.
pub(crate) fn stores(url: &str) -> Result<Box<dyn Stores>, String> {
    match parse(url)? {
        StoreUrl::Memory => Ok(Box::new(MemoryStores)),
        StoreUrl::Disk(path) => Ok(Box::new(DiskStores::new(path)?)),
    }
}

fn parse(url: &str) -> Result<StoreUrl<'_>, String> {
    match url.split_once(':') {
        Some(("memory", "")) => Ok(StoreUrl::Memory),
        Some(("memory", _)) | None if url.starts_with("memory") => Err(format!(
            "`{url}` is not a store: the memory store is written `memory:`, with nothing behind it"
        )),
        Some(("disk", "")) => {
            Err(format!("`{url}` is not a store: write the folder behind it, such as `disk:crawl`"))
        }
        Some(("disk", path)) => Ok(StoreUrl::Disk(path)),
        Some((scheme @ ("postgres" | "postgresql" | "redis" | "rediss" | "grpc"), _)) => Err(format!(
            "`{url}`: stores of the kind `{scheme}:` are not built yet; this version has `memory:` and `disk:PATH`"
        )),
        _ => Err(format!("`{url}` is not a store: write `memory:` or `disk:PATH`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_named_by_urls() {
        assert_eq!(parse("memory:"), Ok(StoreUrl::Memory));
        assert_eq!(parse("disk:a/b:c"), Ok(StoreUrl::Disk("a/b:c")));
        assert_eq!(parse("disk:/tmp/x"), Ok(StoreUrl::Disk("/tmp/x")));
        for (url, message) in [
            (
                "memory",
                "`memory` is not a store: the memory store is written `memory:`, with nothing behind it",
            ),
            (
                "memory:x",
                "`memory:x` is not a store: the memory store is written `memory:`, with nothing behind it",
            ),
            ("disk:", "`disk:` is not a store: write the folder behind it, such as `disk:crawl`"),
            (
                "redis://x",
                "`redis://x`: stores of the kind `redis:` are not built yet; this version has `memory:` and `disk:PATH`",
            ),
            ("", "`` is not a store: write `memory:` or `disk:PATH`"),
            ("disk", "`disk` is not a store: write `memory:` or `disk:PATH`"),
            ("http://x", "`http://x` is not a store: write `memory:` or `disk:PATH`"),
        ] {
            assert_eq!(parse(url), Err(message.to_owned()));
        }
    }
}
