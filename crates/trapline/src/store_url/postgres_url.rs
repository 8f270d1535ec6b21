//! `postgres://…` as a store's URL, and what is said where this program was built without it.

use std::sync::Arc;

#[cfg(feature = "postgres")]
use async_trait::async_trait;
use trapline_frontier::Store;
#[cfg(feature = "postgres")]
use trapline_frontier::StoreError;
use trapline_frontier::script::Reopen;

#[cfg(not(feature = "postgres"))]
const ABSENT: &str =
    "this trapline was built without PostgreSQL (its feature `postgres`); it has `memory:` and `disk:PATH`";

/// Checks a URL, and answers it as it is.
#[cfg(feature = "postgres")]
pub(super) fn parse(url: &str) -> Result<&str, String> {
    trapline_stores::postgres::Address::parse(url).map(|_| url).map_err(|error| error.to_string())
}

#[cfg(not(feature = "postgres"))]
pub(super) fn parse(_: &str) -> Result<&str, String> {
    Err(ABSENT.to_owned())
}

/// Opens the store. Tables that are missing or not of this version are told now, and not by the first verb.
#[cfg(feature = "postgres")]
pub(super) fn open(url: &str) -> Result<Arc<dyn Store>, String> {
    let open = async {
        let store = trapline_stores::PostgresStore::open(url)?;
        trapline_stores::postgres::require_current(store.pool()).await?;
        Ok(store)
    };
    match pollster::block_on(open) {
        Ok(store) => Ok(Arc::new(store)),
        Err::<_, StoreError>(error) => Err(error.to_string()),
    }
}

#[cfg(not(feature = "postgres"))]
pub(super) fn open(_: &str) -> Result<Arc<dyn Store>, String> {
    Err(ABSENT.to_owned())
}

/// Opens the store, whether its tables are there or not.
#[cfg(feature = "postgres")]
pub(super) fn open_unchecked(url: &str) -> Result<Arc<dyn Store>, String> {
    match trapline_stores::PostgresStore::open(url) {
        Ok(store) => Ok(Arc::new(store)),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(not(feature = "postgres"))]
pub(super) fn open_unchecked(_: &str) -> Result<Arc<dyn Store>, String> {
    Err(ABSENT.to_owned())
}

#[cfg(not(feature = "postgres"))]
pub(super) fn reopen(_: &str) -> Option<Box<dyn Reopen>> {
    None
}

/// Opens the store again. Whether its process was killed or not makes no difference to the server.
#[cfg(feature = "postgres")]
struct OpenAgain(String);

#[cfg(feature = "postgres")]
#[async_trait]
impl Reopen for OpenAgain {
    async fn restart(&mut self) -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(trapline_stores::PostgresStore::open(&self.0)?))
    }

    async fn crash(&mut self) -> Result<Arc<dyn Store>, StoreError> {
        self.restart().await
    }
}

/// How the store is opened again.
#[cfg(feature = "postgres")]
pub(super) fn reopen(url: &str) -> Option<Box<dyn Reopen>> {
    Some(Box::new(OpenAgain(url.to_owned())))
}

/// Where the tables are, whoever asks for them.
#[cfg(feature = "postgres")]
pub(super) fn place(url: &str) -> Result<String, String> {
    let address = trapline_stores::postgres::Address::parse(url).map_err(|error| error.to_string())?;
    let shown = address.to_string();
    let server = shown.split_once("://").map_or(&*shown, |(_, rest)| rest);
    let server = server.rsplit_once('@').map_or(server, |(_, server)| server);
    Ok(format!("postgres://{server}?schema={}", address.schema()))
}

#[cfg(not(feature = "postgres"))]
pub(super) fn place(_: &str) -> Result<String, String> {
    Err(ABSENT.to_owned())
}
