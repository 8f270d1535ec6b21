//! The server behind an address: whether it is one that we can work with.

use deadpool_postgres::Object;
use trapline_frontier::{ErrorKind, StoreError};

use super::address::Address;
use super::pool::Pool;

/// The oldest PostgreSQL that is tested, as the server numbers its versions.
const OLDEST: i32 = 140_000;

/// What a server says of itself and of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Its version as it tells people, such as `16.4 (Debian 16.4-1.pgdg120+1)`.
    pub version: String,
    /// Its version as a number, such as 160004.
    pub version_number: i32,
    /// How the database keeps text. Must be `UTF8`.
    pub encoding: String,
    /// Whether it takes no writes: a replica, or one that is set to.
    pub is_read_only: bool,
}

impl Server {
    pub(super) async fn ask(pool: &Pool, client: &Object) -> Result<Self, StoreError> {
        let question = "SELECT current_setting('server_version'), current_setting('server_version_num')::integer, \
                        current_setting('server_encoding'), \
                        pg_is_in_recovery() OR current_setting('default_transaction_read_only')::boolean";
        let ask = async {
            let row = client.query_one(question, &[]).await?;
            Ok(Self {
                version: row.try_get(0)?,
                version_number: row.try_get(1)?,
                encoding: row.try_get(2)?,
                is_read_only: row.try_get(3)?,
            })
        };
        ask.await.map_err(|error| pool.trouble("ask for the server's version", &error))
    }

    /// Why this server cannot be worked with, each with what can be done.
    pub(super) fn complaints(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        if self.version_number < OLDEST {
            complaints.push(format!(
                "the server is PostgreSQL {}, and {} or newer is needed: upgrade it, or name another",
                self.version,
                OLDEST / 10_000
            ));
        }
        if self.encoding != "UTF8" {
            complaints.push(format!(
                "the database keeps text as {}, which cannot hold every URL: make one with `createdb --encoding=UTF8 \
                 --template=template0 NAME`",
                self.encoding
            ));
        }
        if self.is_read_only {
            complaints.push(
                "the server takes no writes (a replica, or default_transaction_read_only is on): name the one that does"
                    .to_owned(),
            );
        }
        complaints
    }

    /// Refuses a server that cannot be worked with.
    pub(super) fn fit(&self, address: &Address) -> Result<(), StoreError> {
        match self.complaints().first() {
            None => Ok(()),
            Some(complaint) => Err(StoreError::new(
                ErrorKind::Invalid,
                format!("postgres store: cannot use {address}: {complaint}"),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_do_not_fit_are_refused_with_what_to_do() {
        let fits = Server {
            version: "14.0".to_owned(),
            version_number: 140_000,
            encoding: "UTF8".to_owned(),
            is_read_only: false,
        };
        let address = Address::parse("postgres://u:hush@h/d").unwrap();
        assert!(fits.fit(&address).is_ok());
        let refused = |server: Server, problem: &str| {
            let error = server.fit(&address).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert_eq!(error.to_string(), format!("postgres store: cannot use postgres://u@h/d: {problem}"));
        };
        refused(
            Server { version: "13.18 (Debian)".to_owned(), version_number: 130_018, ..fits.clone() },
            "the server is PostgreSQL 13.18 (Debian), and 14 or newer is needed: upgrade it, or name another",
        );
        refused(
            Server { encoding: "SQL_ASCII".to_owned(), ..fits.clone() },
            "the database keeps text as SQL_ASCII, which cannot hold every URL: make one with `createdb --encoding=UTF8 \
             --template=template0 NAME`",
        );
        refused(
            Server { is_read_only: true, ..fits },
            "the server takes no writes (a replica, or default_transaction_read_only is on): name the one that does",
        );
    }
}
