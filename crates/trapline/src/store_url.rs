//! Stores by their URLs: `memory:`, `disk:PATH`, `postgres://…`, `grpc://…`, and those to come. Here alone it is known which stores exist.

mod disk_stores;
mod disk_url;
mod grpc_url;
mod postgres_url;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use trapline_core::Timestamp;
use trapline_frontier::{MemoryStore, Recovered, Store, nearest};
use trapline_sim::{MemoryStores, Opened, Stores};
use trapline_stores::{DiskReopen, DiskStore, SharedStore, without_password};

use crate::moment;
use disk_stores::DiskStores;
use disk_url::DiskUrl;
use grpc_url::GrpcUrl;

/// The stores that can be named.
const KINDS: &str = "`memory:`, `disk:PATH`, `postgres://USER@HOST/DATABASE` or `grpc://HOST:PORT`";

/// What their URLs begin with.
const SCHEMES: [&str; 6] = ["memory", "disk", "postgres", "postgresql", "grpc", "grpcs"];

/// What a URL names.
#[derive(Debug, PartialEq, Eq)]
enum StoreUrl<'a> {
    Memory,
    Disk(DiskUrl<'a>),
    Postgres(&'a str),
    Grpc(GrpcUrl<'a>),
}

/// Opens the store that a URL names, for this process alone.
pub(crate) fn open(url: &str) -> Result<Opened, String> {
    match parse(url)? {
        StoreUrl::Memory => Ok(Opened { store: Arc::new(MemoryStore::new()), reopen: None }),
        StoreUrl::Disk(disk) => {
            let reopen = DiskReopen::open(disk.path, disk.options()).map_err(|error| error.to_string())?;
            Ok(Opened { store: reopen.store(), reopen: Some(Box::new(reopen)) })
        }
        StoreUrl::Postgres(url) => {
            Ok(Opened { store: postgres_url::open(url)?, reopen: postgres_url::reopen(url) })
        }
        // How its service keeps it, and when it begins anew, is not ours to say.
        StoreUrl::Grpc(service) => Ok(Opened { store: service.open()?, reopen: None }),
    }
}

/// A store that other processes may use too.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    /// Nobody had it open: others can only come through this process, as long as it lasts.
    pub(crate) is_owner: bool,
}

/// Opens the store that a URL names together with other processes: whoever is first owns it, and serves the others.
fn share(url: &str) -> Result<Shared, String> {
    match parse(url)? {
        StoreUrl::Memory => Ok(Shared { store: Arc::new(MemoryStore::new()), is_owner: true }),
        StoreUrl::Disk(disk) => {
            let shared = SharedStore::open(disk.path, disk.options()).map_err(|error| error.to_string())?;
            if let Some(warning) = shared.recovered().and_then(warning) {
                eprintln!("disk store in {}: {warning}", disk.path);
            }
            Ok(Shared { is_owner: shared.is_owner(), store: Arc::new(shared) })
        }
        // Its server is there for everybody.
        StoreUrl::Postgres(url) => Ok(Shared { store: postgres_url::open(url)?, is_owner: false }),
        StoreUrl::Grpc(service) => Ok(Shared { store: service.open()?, is_owner: false }),
    }
}

/// What people should know of an opening at once: when the store is closed, another snapshot takes the place of those.
fn warning(found: Recovered) -> Option<String> {
    let (snapshots, them) = match found.snapshots_passed_over {
        0 => return None,
        1 => ("a snapshot is".to_owned(), "it"),
        many => (format!("{many} snapshots are"), "them"),
    };
    Some(format!(
        "{snapshots} damaged or could not be read. Nothing is lost: it was opened without {them}, which takes longer. \
         Unless the power has just gone, look after the disk: others of its files may be damaged too, which `verify` tells"
    ))
}

/// The same, and its clock is followed if it has one.
pub(crate) fn share_and_follow(url: &str) -> Result<Arc<dyn Store>, String> {
    take_and_follow(url).map(|shared| shared.store)
}

/// The same, for who wants to know whether the store is his.
pub(crate) fn take_and_follow(url: &str) -> Result<Shared, String> {
    let shared = share(url)?;
    if let Some(now) = pollster::block_on(shared.store.now()).map_err(|error| error.to_string())? {
        moment::follow(now);
    }
    Ok(shared)
}

/// What the clock of a server says that keeps the store; None if no server does. Tables may be missing.
pub(crate) fn server_clock(url: &str) -> Result<Option<Timestamp>, String> {
    let store = match parse(url)? {
        StoreUrl::Memory | StoreUrl::Disk(_) => return Ok(None),
        StoreUrl::Postgres(url) => postgres_url::open_unchecked(url)?,
        StoreUrl::Grpc(service) => service.open()?,
    };
    pollster::block_on(store.now()).map_err(|error| error.to_string())
}

/// Opens the store that a URL names as its owner, and serves other processes.
pub(crate) fn serve(url: &str) -> Result<Arc<DiskStore>, String> {
    match parse(url)? {
        StoreUrl::Memory => {
            Err(format!("`{url}` cannot be held for others; name a folder, such as disk:crawl"))
        }
        StoreUrl::Disk(disk) => {
            DiskStore::serve(disk.path, &disk.options()).map_err(|error| error.to_string())
        }
        StoreUrl::Postgres(url) => {
            Err(format!("`{}` need not be held for others: its server is there for everybody", shown(url)))
        }
        StoreUrl::Grpc(_) => {
            Err(format!("`{url}` need not be held for others: its service is there for everybody"))
        }
    }
}

/// Whether a URL names a store that survives nothing.
pub(crate) fn is_memory(url: &str) -> bool {
    matches!(parse(url), Ok(StoreUrl::Memory))
}

/// The folder that a URL names.
pub(crate) fn folder(url: &str) -> Result<&str, String> {
    match parse(url)? {
        StoreUrl::Disk(disk) => Ok(disk.path),
        StoreUrl::Memory | StoreUrl::Postgres(_) | StoreUrl::Grpc(_) => {
            Err(format!("`{}` is in no folder; name one, such as disk:crawl", shown(url)))
        }
    }
}

/// The folder of a store that is not there: there is nothing in it, or it is not there itself.
pub(crate) fn empty_folder(url: &str) -> Option<&str> {
    folder(url).ok().filter(|path| is_nothing(Path::new(path)))
}

/// Whether there is no folder, or nothing in it. What cannot be looked at is left to the store to complain about.
fn is_nothing(path: &Path) -> bool {
    match std::fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// Where a store is, however its URL is written: the same for two URLs means that they name one store.
pub(crate) fn place(url: &str) -> Result<String, String> {
    match parse(url)? {
        StoreUrl::Memory => Ok("memory:".to_owned()),
        StoreUrl::Disk(disk) => Ok(format!("disk:{}", full(Path::new(disk.path)).display())),
        StoreUrl::Postgres(url) => postgres_url::place(url),
        StoreUrl::Grpc(service) => Ok(service.place()),
    }
}

/// A path as seen from the root, without links and detours, as far as it is there.
fn full(path: &Path) -> PathBuf {
    if let Ok(full) = path.canonicalize() {
        return full;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) if parent.as_os_str().is_empty() => full(Path::new(".")).join(name),
        (Some(parent), Some(name)) => full(parent).join(name),
        _ => path.to_owned(),
    }
}

/// The folder that is meant, whether it is written as a folder or as the URL of a store in it.
pub(crate) fn folder_or_url(text: &str) -> Result<&str, String> {
    let is_url = text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("disk:"));
    if is_url { folder(text) } else { Ok(text) }
}

/// The stores that a simulation is to have, each like the one that a URL names, fresh and empty.
pub(crate) fn stores(url: &str) -> Result<Box<dyn Stores>, String> {
    match parse(url)? {
        StoreUrl::Memory => Ok(Box::new(MemoryStores)),
        StoreUrl::Disk(disk) if disk == (DiskUrl { path: disk.path, ..DiskUrl::default() }) => {
            Ok(Box::new(DiskStores::new(disk.path)?))
        }
        StoreUrl::Postgres(url) => Err(format!(
            "`{}`: there are no simulations on a server; write `memory:` or `disk:PATH`",
            shown(url)
        )),
        StoreUrl::Grpc(_) => {
            Err(format!("`{url}`: there are no simulations on a service; write `memory:` or `disk:PATH`"))
        }
        StoreUrl::Disk(_) => Err(format!(
            "`{url}`: simulated stores choose for themselves how they are kept; leave out what follows the `?`"
        )),
    }
}

/// Whether a URL names a store at all. Nothing is opened.
pub(crate) fn check(url: &str) -> Result<(), String> {
    parse(url).map(drop)
}

/// A URL as people may see it, without a password.
pub(crate) fn shown(url: &str) -> String {
    without_password(url)
}

/// The URL of a database, for what is done with databases.
#[cfg(feature = "postgres")]
pub(crate) fn database(url: &str) -> Result<&str, String> {
    match parse(url)? {
        StoreUrl::Postgres(url) => Ok(url),
        StoreUrl::Memory | StoreUrl::Disk(_) | StoreUrl::Grpc(_) => {
            Err(format!("`{url}` is in no database; name one, such as postgres://USER@HOST/DATABASE"))
        }
    }
}

fn parse(url: &str) -> Result<StoreUrl<'_>, String> {
    let (scheme, rest) = match url.split_once(':') {
        // Schemes may be written in any case.
        Some((scheme, rest)) => (scheme.to_ascii_lowercase(), Some(rest)),
        None => (url.to_ascii_lowercase(), None),
    };
    let not_a_store = |problem: &str| format!("`{}` is not a store: {problem}", shown(url));
    match (&*scheme, rest) {
        ("memory", Some("")) => Ok(StoreUrl::Memory),
        ("memory", _) => Err(not_a_store("the memory store is written `memory:`, with nothing behind it")),
        ("disk", Some(rest)) => {
            disk_url::parse(rest).map(StoreUrl::Disk).map_err(|problem| not_a_store(&problem))
        }
        ("postgres" | "postgresql", Some(_)) => postgres_url::parse(url).map(StoreUrl::Postgres),
        ("grpc" | "grpcs", Some(_)) => grpc_url::parse(url).map(StoreUrl::Grpc),
        ("redis" | "rediss", Some(_)) => {
            Err(format!("stores of the kind `{scheme}:` are not built yet: write {KINDS}"))
        }
        ("pg" | "psql" | "pgsql", Some(_)) => Err(not_a_store("did you mean `postgres:`?")),
        (_, Some(_)) => Err(match nearest(&scheme, &SCHEMES) {
            Some(near) => not_a_store(&format!("did you mean `{near}:`?")),
            None => not_a_store(&format!("write {KINDS}")),
        }),
        (_, None) => Err(not_a_store(&format!("write {KINDS}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_place_has_many_urls() {
        let here = place("disk:.").unwrap();
        for url in ["disk:./", "disk:src/..", "disk:.?durability=explicit"] {
            assert_eq!(place(url), Ok(here.clone()), "{url}");
        }
        assert_eq!(place("disk:not-there/x"), Ok(format!("{here}/not-there/x")));
        assert_eq!(place("disk:src/../not-there"), Ok(format!("{here}/not-there")));
        #[cfg(feature = "postgres")]
        {
            let place = |url| place(url).unwrap();
            assert_eq!(place("postgresql://a:hush@h/d?pool=2"), "postgres://h/d?schema=trapline");
            assert_eq!(place("postgres://b@h:5432/d"), place("postgres://h/d"));
            assert_ne!(place("postgres://b@h/d?schema=x"), place("postgres://b@h/d"));
        }
    }

    #[test]
    fn stores_are_named_by_urls() {
        assert_eq!(parse("memory:"), Ok(StoreUrl::Memory));
        let disk = |path| Ok(StoreUrl::Disk(DiskUrl { path, ..DiskUrl::default() }));
        assert_eq!(parse("disk:a/b:c"), disk("a/b:c"));
        assert_eq!(parse("disk:/tmp/x"), disk("/tmp/x"));
        assert_eq!(
            (parse("Memory:"), parse("DISK:X")),
            (Ok(StoreUrl::Memory), disk("X")),
            "schemes have no case"
        );
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
                "redis://u:hush@x",
                "stores of the kind `redis:` are not built yet: write `memory:`, `disk:PATH`, \
                 `postgres://USER@HOST/DATABASE` or `grpc://HOST:PORT`",
            ),
            (
                "",
                "`` is not a store: write `memory:`, `disk:PATH`, `postgres://USER@HOST/DATABASE` or `grpc://HOST:PORT`",
            ),
            (
                "disk",
                "`disk` is not a store: write `memory:`, `disk:PATH`, `postgres://USER@HOST/DATABASE` or `grpc://HOST:PORT`",
            ),
            (
                "http://x",
                "`http://x` is not a store: write `memory:`, `disk:PATH`, `postgres://USER@HOST/DATABASE` or `grpc://HOST:PORT`",
            ),
            ("dsk:x", "`dsk:x` is not a store: did you mean `disk:`?"),
            ("postgre://u:hush@h/d", "`postgre://u@h/d` is not a store: did you mean `postgres:`?"),
            ("postgress://u:hush@h/d", "`postgress://u@h/d` is not a store: did you mean `postgres:`?"),
            ("pg://u:hush@h/d", "`pg://u@h/d` is not a store: did you mean `postgres:`?"),
            (
                "u:hush@h/d",
                "`u:…@h/d` is not a store: write `memory:`, `disk:PATH`, `postgres://USER@HOST/DATABASE` or `grpc://HOST:PORT`",
            ),
        ] {
            assert_eq!(parse(url), Err(message.to_owned()));
        }
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn a_database_is_named_by_a_url_whose_password_nobody_sees() {
        let url = "postgres://u:hush@h/d?schema=two";
        assert_eq!(parse(url), Ok(StoreUrl::Postgres(url)));
        assert_eq!(parse("postgresql://h/d"), Ok(StoreUrl::Postgres("postgresql://h/d")));
        let shouted = "Postgres://u:hush@h/d";
        assert_eq!(parse(shouted), Ok(StoreUrl::Postgres(shouted)));
        assert_eq!(shown(url), "postgres://u@h/d?schema=two");
        for told in [
            parse("postgres://u:hush@h").map(drop),
            serve(url).map(drop),
            folder(url).map(drop),
            stores(url).map(drop),
        ] {
            let told = told.unwrap_err();
            assert!(!told.contains("hush") && told.contains("postgres://u@h"), "{told}");
        }
        assert_eq!(
            database("disk:x"),
            Err("`disk:x` is in no database; name one, such as postgres://USER@HOST/DATABASE".to_owned())
        );
    }

    #[test]
    fn simulations_choose_for_themselves() {
        for url in ["disk:x?durability=batch", "disk:x?min_free_disk=0"] {
            let message = format!(
                "`{url}`: simulated stores choose for themselves how they are kept; leave out what follows the `?`"
            );
            assert_eq!(stores(url).err(), Some(message));
        }
    }
}
