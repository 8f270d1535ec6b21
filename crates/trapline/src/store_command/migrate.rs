//! `trapline store migrate`: makes the tables of a store, or brings them to this version.

use clap::Args;
use serde_json::json;
use trapline_stores::postgres::{self, Pool};

use crate::ended::Ended;
use crate::output::Output;
use crate::store_url;

/// Make the tables of a store, or bring them to this version
///
/// They are in a schema of their own, which is made if it is not there. All is done in one transaction, or nothing; whoever does it
/// a second time, or at the same time, changes nothing. Tables of a newer version are refused and left as they are.
///
/// Needs a role that may make schemas in the database, such as its owner. Stop the workers of older versions first.
#[derive(Args)]
#[command(after_help = "\
Examples:
  trapline store migrate postgres://owner@db.example/frontier
  trapline store migrate 'postgres://owner@db.example/frontier?schema=second'")]
pub(super) struct MigrateStore {
    /// The store, such as postgres://USER@HOST/DATABASE
    url: String,
}

impl MigrateStore {
    pub(super) fn run(&self, out: &mut Output) -> Result<Ended, String> {
        let pool = Pool::open(store_url::database(&self.url)?).map_err(|error| error.to_string())?;
        let migrated = pollster::block_on(postgres::migrate(&pool)).map_err(|error| error.to_string())?;
        let version = migrated.taken.last().map_or(migrated.from, |taken| taken.version);
        let taken = migrated.taken.iter().map(|taken| json!({"version": taken.version, "name": taken.name}));
        out.card(&vec![
            ("store", json!(store_url::shown(&self.url))),
            ("schema", json!(pool.address().schema())),
            ("from", json!(migrated.from)),
            ("version", json!(version)),
            ("taken", taken.collect()),
        ]);
        if migrated.taken.is_empty() {
            out.say("There was nothing to do.");
        }
        Ok(Ended::Well)
    }
}
