//! `postgres://…` as a store's URL, and what is said where this program was built without it.

use std::sync::Arc;

use trapline_frontier::Store;

/// Checks a URL, and answers it as it is.
#[cfg(feature = "postgres")]
pub(super) fn parse(url: &str) -> Result<&str, String> {
    trapline_stores::postgres::Address::parse(url).map(|_| url).map_err(|error| error.to_string())
}

#[cfg(not(feature = "postgres"))]
pub(super) fn parse(_: &str) -> Result<&str, String> {
    Err("this trapline was built without PostgreSQL (its feature `postgres`); it has `memory:` and `disk:PATH`".to_owned())
}

/// Opens the store.
pub(super) fn open(url: &str) -> Result<Arc<dyn Store>, String> {
    Err(format!(
        "{}: this version cannot open a store in PostgreSQL yet; it has `trapline store check` and `trapline store migrate`",
        shown(url)
    ))
}

/// The URL without its password.
#[cfg(feature = "postgres")]
pub(super) fn shown(url: &str) -> String {
    trapline_stores::postgres::without_password(url)
}

#[cfg(not(feature = "postgres"))]
pub(super) fn shown(_: &str) -> String {
    "postgres:".to_owned()
}
