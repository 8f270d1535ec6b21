//! Whether a database is ready to be used: the server, the tables, and what the role may do. Nothing is changed.

use deadpool_postgres::Object;
use trapline_frontier::StoreError;

use super::migrations::{Applied, MIGRATIONS, Migration, RELATIONS, SEQUENCES, Standing, applied, latest};
use super::pool::Pool;
use super::server::Server;

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The server.
    pub server: Server,
    /// The schema that was looked at.
    pub schema: String,
    /// The latest version that this program knows.
    pub latest: i32,
    /// What was applied, in order.
    pub applied: Vec<Applied>,
    /// What this program knows and was not applied.
    pub missing: Vec<Migration>,
    /// What was applied and this program does not know.
    pub unknown: Vec<Applied>,
    /// The role that asked.
    pub role: String,
    /// Whether that role may do all that is needed; where there are no tables yet, whether it may make them.
    pub can_write: bool,
    /// What stands in the way, each with what can be done. Empty: the database is ready.
    pub complaints: Vec<String>,
}

/// Looks at the database that a pool is connected to.
pub async fn check(pool: &Pool) -> Result<Report, StoreError> {
    pool.run(async {
        let client = pool.client().await?;
        let server = Server::ask(pool, &client).await?;
        let asked = ask(&client, pool.address().schema()).await;
        let (applied, rights) = asked.map_err(|error| pool.trouble("check", &error))?;
        Ok(report(server, pool.address().schema(), applied, rights))
    })
    .await
}

/// What the role may do.
#[derive(Clone, Debug)]
struct Rights {
    role: String,
    /// The role and the schema as SQL takes them.
    quoted: (String, String),
    /// Make schemas in the database.
    can_create_schema: bool,
    /// None: there is no such schema.
    in_schema: Option<InSchema>,
}

#[derive(Clone, Debug)]
struct InSchema {
    can_use: bool,
    can_create: bool,
    /// What of ours the role may not read, change or draw from.
    forbidden: Vec<String>,
    /// What should be there and is not.
    lacking: Vec<String>,
}

async fn ask(client: &Object, schema: &str) -> Result<(Vec<Applied>, Rights), tokio_postgres::Error> {
    let database = "SELECT current_user::text, has_database_privilege(current_database(), 'CREATE'), \
                    quote_ident(current_user), quote_ident($1::text)";
    let database = client.query_one(database, &[&schema]).await?;
    // Only what is ours counts: a schema may be shared with others. To ask of a table what is asked of sequences is an error.
    let in_schema = "SELECT has_schema_privilege(oid, 'USAGE'), has_schema_privilege(oid, 'CREATE'), ARRAY( \
                         SELECT relname::text FROM pg_catalog.pg_class \
                         WHERE relnamespace = pg_namespace.oid AND relname::text = ANY($2::text[] || $3::text[]) AND NOT CASE \
                             WHEN relkind IN ('r', 'p') THEN \
                                 has_table_privilege(pg_class.oid, 'SELECT') AND has_table_privilege(pg_class.oid, 'INSERT') \
                                 AND has_table_privilege(pg_class.oid, 'UPDATE') AND has_table_privilege(pg_class.oid, 'DELETE') \
                             WHEN relkind = 'S' THEN has_sequence_privilege(pg_class.oid, 'USAGE') \
                             ELSE true END \
                         ORDER BY relname), ARRAY( \
                         SELECT name FROM unnest($2::text[] || $3::text[]) AS name WHERE NOT EXISTS ( \
                             SELECT 1 FROM pg_catalog.pg_class \
                             WHERE relnamespace = pg_namespace.oid AND relname::text = name)) \
                     FROM pg_catalog.pg_namespace WHERE nspname = $1";
    let in_schema = client.query_opt(in_schema, &[&schema, &RELATIONS, &SEQUENCES]).await?.map(|row| {
        Ok(InSchema {
            can_use: row.try_get(0)?,
            can_create: row.try_get(1)?,
            forbidden: row.try_get(2)?,
            lacking: row.try_get(3)?,
        })
    });
    let in_schema: Option<InSchema> = in_schema.transpose()?;
    let rights = Rights {
        role: database.try_get(0)?,
        can_create_schema: database.try_get(1)?,
        quoted: (database.try_get(2)?, database.try_get(3)?),
        in_schema,
    };
    // To look into a schema that one may not use is an error, and it will be complained about anyway.
    let is_open = rights.in_schema.as_ref().is_some_and(|schema| {
        schema.can_use && !schema.forbidden.iter().any(|table| table == "trapline_schema")
    });
    let applied = if is_open { applied(client, schema).await? } else { Vec::new() };
    Ok((applied, rights))
}

fn report(server: Server, schema: &str, applied: Vec<Applied>, rights: Rights) -> Report {
    let mut complaints = server.complaints();
    let standing = Standing::of(&applied);
    let role = rights.role;
    let is_open =
        rights.in_schema.as_ref().is_none_or(|schema| schema.can_use && schema.forbidden.is_empty());
    if !is_open {
        let (to, place) = &rights.quoted;
        complaints.push(format!(
            "the role `{role}` may not use all of the schema `{schema}`: as its owner, run GRANT USAGE ON SCHEMA {place} TO \
             {to}; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {place} TO {to}; GRANT USAGE ON ALL \
             SEQUENCES IN SCHEMA {place} TO {to}"
        ));
    }
    let lacking = rights.in_schema.as_ref().map_or(&[][..], |schema| &schema.lacking);
    if standing == Standing::Current && !lacking.is_empty() {
        let lacking: Vec<_> = lacking.iter().map(|name| format!("`{name}`")).collect();
        complaints.push(format!(
            "the schema `{schema}` is at version {}, and yet {} is not there: it was dropped, or the tables are those of a \
             version that was never released; restore a backup, or begin in another schema (`schema=NAME`)",
            latest(),
            lacking.join(", ")
        ));
    }
    let can_make = rights.in_schema.as_ref().map_or(rights.can_create_schema, |schema| schema.can_create);
    match standing {
        Standing::Current => {}
        Standing::Absent if !is_open => {}
        Standing::Absent if can_make => {
            complaints.push(format!("there are no tables in the schema `{schema}`: run `trapline store migrate URL`"));
        }
        Standing::Absent => complaints.push(format!(
            "there are no tables in the schema `{schema}`, and the role `{role}` may not make them: run `trapline store migrate \
             URL` as a role that may, such as the database's owner"
        )),
        Standing::Older(version) => complaints.push(format!(
            "the schema `{schema}` is at version {version}, and this program needs {}: run `trapline store migrate URL`",
            latest()
        )),
        Standing::Newer(version) => complaints.push(format!(
            "the schema `{schema}` is at version {version}, and this program knows only up to {}: use a newer trapline",
            latest()
        )),
    }
    let can_write = !server.is_read_only && is_open && (standing != Standing::Absent || can_make);
    let is_applied = |version| applied.iter().any(|applied| applied.version == version);
    let is_known = |version| MIGRATIONS.iter().any(|migration| migration.version == version);
    Report {
        schema: schema.to_owned(),
        latest: latest(),
        missing: MIGRATIONS.iter().copied().filter(|migration| !is_applied(migration.version)).collect(),
        unknown: applied.iter().filter(|applied| !is_known(applied.version)).cloned().collect(),
        server,
        applied,
        role,
        can_write,
        complaints,
    }
}
