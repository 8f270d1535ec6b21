//! `trapline store check`: whether a database is ready to be a store.

use clap::Args;
use serde_json::{Value, json};
use trapline_stores::postgres::{self, Applied, Pool, Report};

use crate::ended::Ended;
use crate::output::Output;
use crate::{moment, store_url};

/// Tell whether a database is ready to be a store
///
/// Looks at the server's version, the database's encoding, the tables and what the role may do with them, and tells for everything that
/// is in the way what can be done about it. Nothing is changed.
///
/// Exit code 0: it is ready. 1: something is in the way. 2: it could not be looked at.
#[derive(Args)]
#[command(after_help = "\
Examples:
  trapline store check postgres://crawler@db.example/frontier
  trapline store check postgres://crawler@db.example/frontier --json | jq -r '.complaints[]'")]
pub(super) struct CheckStore {
    /// The store, such as postgres://USER@HOST/DATABASE
    url: String,
}

impl CheckStore {
    pub(super) fn run(&self, out: &mut Output) -> Result<Ended, String> {
        let pool = Pool::open(store_url::database(&self.url)?).map_err(|error| error.to_string())?;
        let report = pollster::block_on(postgres::check(&pool)).map_err(|error| error.to_string())?;
        show(&store_url::shown(&self.url), &report, out);
        if report.complaints.is_empty() {
            out.say("The database is ready.");
            return Ok(Ended::Well);
        }
        Ok(Ended::WithComplaints)
    }
}

fn show(url: &str, report: &Report, out: &mut Output) {
    let missing = report.missing.iter().map(|step| json!({"version": step.version, "name": step.name}));
    out.card(&vec![
        ("store", json!(url)),
        ("server", json!(format!("PostgreSQL {}", report.server.version))),
        ("encoding", json!(report.server.encoding)),
        ("schema", json!(report.schema)),
        ("version", json!(report.applied.iter().map(|applied| applied.version).max())),
        ("version_needed", json!(report.latest)),
        ("applied", report.applied.iter().map(applied).collect()),
        ("missing", missing.collect()),
        ("unknown", report.unknown.iter().map(applied).collect()),
        ("role", json!(report.role)),
        ("can_write", json!(report.can_write)),
        ("complaints", json!(report.complaints)),
    ]);
}

fn applied(applied: &Applied) -> Value {
    json!({"version": applied.version, "name": applied.name, "at": moment::write(applied.at)})
}
