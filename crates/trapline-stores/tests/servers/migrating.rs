//! Migrations and checks: once, twice, at once, and of databases that are not ours to use.

use trapline_frontier::{ErrorKind, StoreError};
use trapline_stores::postgres::{MIGRATIONS, Pool, Report, check, migrate, require_current};
use trapline_testing::PostgresServer;

use super::{ask, empty_database, pool};

fn latest() -> i32 {
    MIGRATIONS.last().expect("there is a first step").version
}

fn checked(pool: &Pool) -> Report {
    pollster::block_on(check(pool)).expect("the server answers")
}

fn ends_with(error: &StoreError, told: &str) {
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().ends_with(told), "{error}");
}

#[test]
fn a_database_is_made_ready_once() {
    let pool = pool(&(empty_database() + "?schema=mine"));
    let before = checked(&pool);
    assert_eq!(
        before.complaints,
        ["there are no tables in the schema `mine`: run `trapline store migrate URL`"]
    );
    assert_eq!((before.missing.len(), before.can_write), (MIGRATIONS.len(), true));
    let error = pollster::block_on(require_current(&pool)).unwrap_err();
    ends_with(&error, ": the schema `mine` has no tables of ours: run `trapline store migrate URL`");

    let migrated = pollster::block_on(migrate(&pool)).unwrap();
    assert_eq!((migrated.from, migrated.taken.as_slice()), (0, MIGRATIONS));
    let again = pollster::block_on(migrate(&pool)).unwrap();
    assert_eq!((again.from, again.taken.len()), (latest(), 0));

    let after = checked(&pool);
    assert_eq!(after.complaints, [""; 0]);
    assert_eq!((after.applied.len(), after.missing.len(), after.unknown.len()), (MIGRATIONS.len(), 0, 0));
    assert!(after.can_write && after.role == "trapline");
    pollster::block_on(require_current(&pool)).unwrap();
    let elsewhere = "SELECT count(*)::text FROM pg_class WHERE relnamespace = 'public'::regnamespace";
    assert_eq!(pollster::block_on(ask(&pool, elsewhere)), "0");
}

#[test]
fn of_many_who_migrate_at_once_one_does_it() {
    let url = empty_database();
    let taken: usize = std::thread::scope(|scope| {
        let migrating: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| pollster::block_on(migrate(&pool(&url))).unwrap().taken.len()))
            .collect();
        migrating.into_iter().map(|migrated| migrated.join().unwrap()).sum()
    });
    assert_eq!(taken, MIGRATIONS.len());
}

#[test]
fn tables_of_a_newer_program_are_left_alone() {
    let pool = pool(&empty_database());
    pollster::block_on(async {
        migrate(&pool).await.unwrap();
        let client = pool.client().await.unwrap();
        client.batch_execute("INSERT INTO trapline_schema VALUES (1000, 'from the future')").await.unwrap();
    });
    let known = latest();
    let told = format!(
        ": the schema `trapline` is at version 1000, and this program knows only up to {known}; nothing was changed: use a newer \
         trapline, or another schema (`schema=NAME`)"
    );
    ends_with(&pollster::block_on(migrate(&pool)).unwrap_err(), &told);
    ends_with(&pollster::block_on(require_current(&pool)).unwrap_err(), &told);
    let report = checked(&pool);
    assert_eq!(
        report.unknown.iter().map(|applied| applied.name.as_str()).collect::<Vec<_>>(),
        ["from the future"]
    );
    assert_eq!(
        report.complaints,
        [format!(
            "the schema `trapline` is at version 1000, and this program knows only up to {known}: use a newer trapline"
        )]
    );
}

/// A step that fails leaves nothing behind.
#[test]
fn a_migration_is_done_as_a_whole_or_not_at_all() {
    let pool = pool(&empty_database());
    pollster::block_on(async {
        let client = pool.client().await.unwrap();
        client
            .batch_execute("CREATE SCHEMA trapline; CREATE TYPE trapline.trapline_schema AS (a int)")
            .await
            .unwrap();
        drop(client);
        migrate(&pool).await.unwrap_err();
        let tables = "SELECT count(*)::text FROM pg_class WHERE relnamespace = 'trapline'::regnamespace AND relkind <> 'c'";
        assert_eq!(ask(&pool, tables).await, "0");
    });
}

#[test]
fn a_role_that_may_not_write_is_told_what_to_grant() {
    let server = PostgresServer::shared();
    let database = server.create_database().unwrap();
    let owner = pool(&server.url(&database));
    let role = format!("reader_of_{database}");
    server.sql(&database, &format!("CREATE ROLE {role} LOGIN PASSWORD 'x'")).unwrap();
    let reader = pool(&server.url(&database).replace("trapline:for-tests-only", &format!("{role}:x")));

    let report = checked(&reader);
    assert_eq!(
        report.complaints,
        [format!(
            "there are no tables in the schema `trapline`, and the role `{role}` may not make them: run `trapline store migrate \
             URL` as a role that may, such as the database's owner"
        )]
    );
    assert!(!report.can_write);
    let error = pollster::block_on(migrate(&reader)).unwrap_err();
    assert!(error.to_string().contains("the role may not do this"), "{error}");

    pollster::block_on(migrate(&owner)).unwrap();
    let report = checked(&reader);
    assert!(!report.can_write);
    let [complaint] = &report.complaints[..] else { panic!("{:?}", report.complaints) };
    let (_, grants) = complaint.split_once("as its owner, run ").unwrap();
    // What it says to run is what helps.
    server.sql(&database, grants).unwrap();
    let report = checked(&reader);
    assert_eq!(report.complaints, [""; 0]);
    assert!(report.can_write);
}

#[test]
fn text_has_to_be_utf8() {
    let server = PostgresServer::shared();
    server.sql("postgres", "CREATE DATABASE plain TEMPLATE template0 ENCODING 'SQL_ASCII'").unwrap();
    let pool = pool(&server.url("plain"));
    let told = "the database keeps text as SQL_ASCII, which cannot hold every URL: make one with `createdb --encoding=UTF8 \
                --template=template0 NAME`";
    ends_with(&pollster::block_on(migrate(&pool)).unwrap_err(), told);
    assert_eq!(checked(&pool).complaints[0], told);
}

fn run(pool: &Pool, sql: &str) {
    let client = pollster::block_on(pool.client()).expect("the server is there");
    pollster::block_on(client.batch_execute(sql)).expect("it is done");
}

/// What is looked for is what the steps make, neither more nor less: each of it that is gone is told.
#[test]
fn a_database_from_which_something_was_dropped_is_not_ready() {
    let url = super::fresh_database();
    let whole = pool(&url);
    let made = "SELECT relname::text, relkind::text FROM pg_class WHERE relnamespace = 'trapline'::regnamespace \
                AND (relkind IN ('r', 'p') OR relkind = 'i' AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = pg_class.oid) \
                     OR relkind = 'S' AND NOT EXISTS (SELECT 1 FROM pg_depend WHERE objid = pg_class.oid AND deptype = 'i')) \
                ORDER BY relname";
    let client = pollster::block_on(whole.client()).unwrap();
    let made: Vec<(String, String)> = pollster::block_on(client.query(made, &[]))
        .unwrap()
        .iter()
        .map(|row| (row.get(0), row.get(1)))
        .collect();
    drop(client);
    assert!(made.len() >= 50, "{made:?}");
    for (name, kind) in &made {
        if name == "trapline_schema" {
            continue;
        }
        let rename = match &**kind {
            "S" => "SEQUENCE",
            "i" => "INDEX",
            _ => "TABLE",
        };
        run(&whole, &format!("ALTER {rename} trapline.{name} RENAME TO elsewhere"));
        assert_eq!(
            checked(&whole).complaints,
            [format!(
                "the schema `trapline` is at version {}, and yet `{name}` is not there: it was dropped, or the tables are those \
                 of a version that was never released; restore a backup, or begin in another schema (`schema=NAME`)",
                latest()
            )]
        );
        run(&whole, &format!("ALTER {rename} trapline.elsewhere RENAME TO {name}"));
    }
    assert_eq!(checked(&whole).complaints, [""; 0]);
}

/// To draw from sequences is a right of its own, and a name may need quotes.
#[test]
fn a_role_that_may_not_draw_numbers_is_told_what_to_grant() {
    let server = PostgresServer::shared();
    let url = super::fresh_database();
    let database = url.rsplit_once('/').unwrap().1;
    let role = format!("my-worker of {database}");
    let grant = format!(
        "CREATE ROLE \"{role}\" LOGIN PASSWORD 'x'; GRANT USAGE ON SCHEMA trapline TO \"{role}\"; \
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA trapline TO \"{role}\""
    );
    server.sql(database, &grant).unwrap();
    let credentials = format!("{}:x", role.replace(' ', "%20"));
    let worker = pool(&url.replace("trapline:for-tests-only", &credentials));
    let report = checked(&worker);
    let [complaint] = &report.complaints[..] else { panic!("{:?}", report.complaints) };
    assert!(!report.can_write);
    let (_, grants) = complaint.split_once("as its owner, run ").unwrap();
    server.sql(database, grants).unwrap();
    assert_eq!(checked(&worker).complaints, [""; 0]);
}

/// Tables of others in the same schema are nobody's business here.
#[test]
fn what_is_not_ours_is_not_complained_of() {
    let server = PostgresServer::shared();
    let url = super::fresh_database();
    let database = url.rsplit_once('/').unwrap().1;
    let role = format!("neighbour_of_{database}");
    let grant = format!(
        "CREATE ROLE {role} LOGIN PASSWORD 'x'; GRANT USAGE ON SCHEMA trapline TO {role}; \
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA trapline TO {role}; \
         GRANT USAGE ON ALL SEQUENCES IN SCHEMA trapline TO {role}; \
         CREATE TABLE trapline.of_others (a int); CREATE SEQUENCE trapline.numbers_of_others"
    );
    server.sql(database, &grant).unwrap();
    let worker = pool(&url.replace("trapline:for-tests-only", &format!("{role}:x")));
    assert_eq!(checked(&worker).complaints, [""; 0]);
}
