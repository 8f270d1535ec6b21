//! The tables, step by step as versions of this program brought them, and how a database is taken from one to the next.
//!
//! A step is a file in `migrations/` and a line in [`MIGRATIONS`]. One that was released is never changed. Its SQL names no schema: the
//! session's `search_path` does.

use deadpool_postgres::{GenericClient, Transaction};
use tokio_postgres::Row;
use trapline_core::Timestamp;
use trapline_frontier::{ErrorKind, StoreError};

use super::pool::Pool;
use super::server::Server;

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Its place in the order, from 1 without gaps.
    pub version: i32,
    /// What it brings, in a few words.
    pub name: &'static str,
    sql: &'static str,
}

/// All steps, in order.
pub const MIGRATIONS: &[Migration] = &[
    Migration { version: 1, name: "the frontier", sql: include_str!("migrations/0001.sql") },
    Migration { version: 2, name: "jobs by age", sql: include_str!("migrations/0002.sql") },
];

/// Tables and indexes that all steps together leave, to tell when one is missing.
pub(super) const RELATIONS: &[&str] = &[
    "trapline_schema",
    "crawls",
    "crawls_by_name",
    "tallies",
    "queues",
    "queues_of_crawl",
    "turns",
    "turns_in_line",
    "turns_parked",
    "turns_over_budget",
    "groups",
    "groups_by_name",
    "groups_to_wake",
    "seen",
    "seen_0",
    "seen_1",
    "seen_2",
    "seen_3",
    "seen_4",
    "seen_5",
    "seen_6",
    "seen_7",
    "seen_8",
    "seen_9",
    "seen_10",
    "seen_11",
    "seen_12",
    "seen_13",
    "seen_14",
    "seen_15",
    "urls",
    "urls_by_queue",
    "pending",
    "pending_in_order",
    "waiting",
    "waiting_by_queue",
    "waiting_by_time",
    "leases",
    "leases_by_deadline",
    "leases_by_entry",
    "dead",
    "disregarded",
    "pages",
    "notes",
    "notes_by_key",
    "notes_in_order",
    "notes_by_expiry",
    "jobs",
    "jobs_under_way",
];

/// The sequences among them that one has to have a right to. (Those of columns go with their tables.)
pub(super) const SEQUENCES: &[&str] = &["ranks", "lease_numbers"];

/// A step that a database has taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Its place in the order.
    pub version: i32,
    /// What it brought.
    pub name: String,
    /// When, by the server's clock.
    pub at: Timestamp,
}

/// What a migration did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The version before; 0 if there was nothing.
    pub from: i32,
    /// The steps that were taken, in order; none if there was nothing to do.
    pub taken: Vec<Migration>,
}

/// How the tables of a database stand to this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// They are what this program expects.
    Current,
    /// There are none.
    Absent,
    /// They are of this version, and this program knows more.
    Older(i32),
    /// They are of this version, and this program knows less.
    Newer(i32),
}

/// The latest version that this program knows.
pub(super) fn latest() -> i32 {
    MIGRATIONS.last().map_or(0, |migration| migration.version)
}

impl Standing {
    pub(super) fn of(applied: &[Applied]) -> Self {
        Self::at(applied.iter().map(|applied| applied.version).max().unwrap_or(0), latest())
    }

    fn at(version: i32, latest: i32) -> Self {
        match version {
            0 => Self::Absent,
            version if version < latest => Self::Older(version),
            version if version > latest => Self::Newer(version),
            _ => Self::Current,
        }
    }
}

/// Brings the tables to this program's version, in one transaction: all of it is done, or nothing. Processes that do so at
/// once do it one after the other, and those that come later find nothing to do.
pub async fn migrate(pool: &Pool) -> Result<Migrated, StoreError> {
    pool.run(migrate_within(pool)).await
}

async fn migrate_within(pool: &Pool) -> Result<Migrated, StoreError> {
    let mut client = pool.client().await?;
    Server::ask(pool, &client).await?.fit(pool.address())?;
    let failed = |error| pool.trouble("migrate", &error);
    let transaction = client.transaction().await.map_err(failed)?;
    let applied = lock(&transaction, pool.address().schema()).await.map_err(failed)?;
    let from = applied.iter().map(|applied| applied.version).max().unwrap_or(0);
    refuse_newer(pool, Standing::of(&applied))?;
    let taken: Vec<_> = MIGRATIONS.iter().copied().filter(|migration| migration.version > from).collect();
    for migration in &taken {
        take(&transaction, migration).await.map_err(|error| {
            let step = format!("migrate to version {} ({})", migration.version, migration.name);
            pool.trouble(&step, &error)
        })?;
    }
    transaction.commit().await.map_err(failed)?;
    Ok(Migrated { from, taken })
}

/// Refuses tables that are not this program's, for whoever wants to use them.
pub async fn require_current(pool: &Pool) -> Result<(), StoreError> {
    pool.run(async {
        let client = pool.client().await?;
        let applied = applied(&client, pool.address().schema()).await;
        let standing = Standing::of(&applied.map_err(|error| pool.trouble("open", &error))?);
        refuse_newer(pool, standing)?;
        let lacking = match standing {
            Standing::Current | Standing::Newer(_) => return Ok(()),
            Standing::Absent => "has no tables of ours".to_owned(),
            Standing::Older(version) => format!("is at version {version}, and this program needs {}", latest()),
        };
        let schema = pool.address().schema();
        Err(StoreError::new(
            ErrorKind::Invalid,
            format!(
                "postgres store: cannot open {}: the schema `{schema}` {lacking}: run `trapline store migrate URL`",
                pool.address()
            ),
        ))
    })
    .await
}

fn refuse_newer(pool: &Pool, standing: Standing) -> Result<(), StoreError> {
    let Standing::Newer(version) = standing else { return Ok(()) };
    let (address, schema) = (pool.address(), pool.address().schema());
    Err(StoreError::new(
        ErrorKind::Invalid,
        format!(
            "postgres store: cannot open {address}: the schema `{schema}` is at version {version}, and this program knows only up to \
             {}; nothing was changed: use a newer trapline, or another schema (`schema=NAME`)",
            latest()
        ),
    ))
}

/// Waits until nobody else migrates this schema, makes it if it is not there, and tells what was applied.
async fn lock(transaction: &Transaction<'_>, schema: &str) -> Result<Vec<Applied>, tokio_postgres::Error> {
    // Indexes of large tables take their time, and so may whoever is before us.
    transaction.batch_execute("SET LOCAL statement_timeout TO 0; SET LOCAL lock_timeout TO 0").await?;
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended('trapline.migrate.' || $1, 0))";
    transaction.query(lock, &[&schema]).await?;
    // Asked first: to say CREATE SCHEMA IF NOT EXISTS one has to be allowed to, also where it does exist.
    let exists = "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1";
    if transaction.query_opt(exists, &[&schema]).await?.is_none() {
        transaction.batch_execute(&format!("CREATE SCHEMA \"{schema}\"")).await?;
    }
    applied(transaction, schema).await
}

async fn take(transaction: &Transaction<'_>, migration: &Migration) -> Result<(), tokio_postgres::Error> {
    transaction.batch_execute(migration.sql).await?;
    let note = "INSERT INTO trapline_schema (version, name) VALUES ($1, $2)";
    transaction.execute(note, &[&migration.version, &migration.name]).await?;
    Ok(())
}

/// What was applied to a schema, in order; nothing if it is not there.
pub(super) async fn applied(
    client: &impl GenericClient,
    schema: &str,
) -> Result<Vec<Applied>, tokio_postgres::Error> {
    let table = format!("\"{schema}\".trapline_schema");
    let there = client.query_one("SELECT pg_catalog.to_regclass($1) IS NOT NULL", &[&table]).await?;
    if !there.try_get::<_, bool>(0)? {
        return Ok(Vec::new());
    }
    let list = format!(
        "SELECT version, name, (extract(epoch FROM applied_at) * 1000)::bigint FROM {table} ORDER BY version"
    );
    client.query(&list, &[]).await?.iter().map(applied_of).collect()
}

fn applied_of(row: &Row) -> Result<Applied, tokio_postgres::Error> {
    let at = u64::try_from(row.try_get::<_, i64>(2)?).unwrap_or_default();
    Ok(Applied { version: row.try_get(0)?, name: row.try_get(1)?, at: Timestamp::from_millis(at) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_numbered_without_gaps() {
        for (migration, version) in MIGRATIONS.iter().zip(1..) {
            assert_eq!(migration.version, version);
            assert!(!migration.name.is_empty() && !migration.sql.is_empty());
        }
    }

    /// Whoever has taken a step has what it was then: a change to it would never reach them. Write another step.
    #[test]
    fn a_step_is_never_changed() {
        let written = [0x0278_c8d8_1812_b5e5_c613_c48d_b761_53e9, 0x967c_75ef_3454_d692_8f4b_b00c_d3e1_d613];
        let read: Vec<u128> =
            MIGRATIONS.iter().map(|step| xxhash_rust::xxh3::xxh3_128(step.sql.as_bytes())).collect();
        assert_eq!(read, written, "{read:#x?}");
    }

    #[test]
    fn a_database_stands_before_at_or_behind_this_program() {
        assert_eq!(Standing::at(0, 3), Standing::Absent);
        assert_eq!(Standing::at(2, 3), Standing::Older(2));
        assert_eq!(Standing::at(3, 3), Standing::Current);
        assert_eq!(Standing::at(4, 3), Standing::Newer(4));
    }
}
