//! What needs a real server: `trapline store` on PostgreSQL, seen from outside.

mod archives;
mod away;
mod copying;
mod knowing;
mod real_web;
mod serving;
mod sizing;

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use trapline_testing::{PostgresServer, Stop};

/// What `trapline store` printed, what it complained of, and its exit code.
fn store(arguments: &[&str]) -> (String, String, Option<i32>) {
    trapline(&[&["store"], arguments].concat(), "")
}

fn trapline(arguments: &[&str], input: &str) -> (String, String, Option<i32>) {
    let mut process = Command::new(env!("CARGO_BIN_EXE_trapline"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    // A command that needs no input may be gone already.
    let _ = process.stdin.take().expect("it is piped").write_all(input.as_bytes());
    let ran = process.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("it is text");
    (text(ran.stdout), text(ran.stderr), ran.status.code())
}

fn ask(arguments: &[&str]) -> (Value, Option<i32>) {
    let (out, error, code) = store(&[arguments, &["--json"]].concat());
    (serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{error}")), code)
}

#[test]
fn a_database_becomes_a_store() {
    let server = PostgresServer::shared();
    let url = server.url(&server.create_database().unwrap());

    let (checked, code) = ask(&["check", &url]);
    assert_eq!(code, Some(1));
    let complaint = "there are no tables in the schema `trapline`: run `trapline store migrate URL`";
    assert_eq!(checked["complaints"], json!([complaint]));
    assert_eq!((&checked["version"], &checked["can_write"]), (&Value::Null, &json!(true)));

    let (migrated, code) = ask(&["migrate", &url]);
    assert_eq!((code, &migrated["from"]), (Some(0), &json!(0)));
    assert_eq!(migrated["taken"][0]["version"], json!(1));
    let (out, error, code) = store(&["migrate", &url]);
    assert_eq!((code, error.as_str()), (Some(0), ""));
    assert!(out.ends_with("There was nothing to do.\n") && !out.contains("for-tests-only"), "{out}");

    let (out, _, code) = store(&["check", &url]);
    assert_eq!(code, Some(0));
    assert!(out.ends_with("The database is ready.\n") && !out.contains("for-tests-only"), "{out}");
    let (checked, _) = ask(&["check", &url]);
    assert_eq!((&checked["version"], &checked["missing"]), (&checked["version_needed"], &json!([])));
}

#[test]
fn what_cannot_be_done_is_told() {
    let server = PostgresServer::shared();
    let nowhere = server.url("nowhere");
    let port = server.port();
    let check = |arguments: &[&str], message: &str| {
        let (out, error, code) = store(arguments);
        assert_eq!((out.as_str(), code), ("", Some(2)));
        assert_eq!(error, format!("trapline store {message}\n"));
    };
    check(
        &["check", &nowhere],
        &format!(
            "check: postgres store: cannot reach postgres://trapline@127.0.0.1:{port}/nowhere: database \"nowhere\" does not exist \
             [SQLSTATE 3D000]; create the database first: `createdb NAME`"
        ),
    );
    check(
        &["migrate", "disk:crawl"],
        "migrate: `disk:crawl` is in no database; name one, such as postgres://USER@HOST/DATABASE",
    );
}

#[test]
fn a_frontier_is_looked_after_in_a_database_as_in_a_folder() {
    let server = PostgresServer::shared();
    let database = server.create_database().unwrap();
    let url = server.url(&database);
    let shown = format!("postgres://trapline@127.0.0.1:{}/{database}", server.port());
    let frontier =
        |arguments: &[&str], input| trapline(&[&["frontier", "--store", &url], arguments].concat(), input);
    let (_, error, code) = frontier(&["stats"], "");
    assert_eq!(code, Some(2));
    assert_eq!(
        error,
        format!(
            "trapline frontier stats: postgres store: cannot open {shown}: the schema `trapline` has no tables of ours: run \
             `trapline store migrate URL`\n"
        )
    );
    assert_eq!(store(&["migrate", &url]).2, Some(0));
    let (_, error, code) = frontier(&["stats"], "");
    assert_eq!(code, Some(2));
    assert_eq!(
        error,
        format!(
            "trapline frontier stats: there is no crawl `default` in {shown}; nor any other\n  `trapline frontier --store \
             {shown} admit` makes it with its first URLs\n"
        )
    );
    let (_, error, code) = frontier(&["admit"], "http://a.example/1\nhttp://a.example/2\n");
    assert_eq!((code, error.as_str()), (Some(0), ""));
    let (out, error, code) = frontier(&["claim", "--json"], "");
    assert_eq!((code, error.as_str()), (Some(0), ""));
    let claimed: Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    assert_eq!(claimed["url"], json!("http://a.example/1"));
    // Nothing can be claimed now: one who waits for it is told when it comes.
    std::thread::scope(|scope| {
        let begun = std::time::Instant::now();
        let waiting = scope.spawn(|| frontier(&["claim", "--wait", "50s"], ""));
        std::thread::sleep(std::time::Duration::from_millis(500));
        assert_eq!(frontier(&["admit"], "http://b.example/1\n").2, Some(0));
        let (out, error, code) = waiting.join().unwrap();
        assert_eq!((code, error.as_str()), (Some(0), ""));
        let claimed: Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
        assert_eq!(claimed["url"], json!("http://b.example/1"));
        assert!(begun.elapsed() < std::time::Duration::from_secs(40), "{:?}", begun.elapsed());
    });
    let (out, error, code) = frontier(&["claim", "--wait", "300ms"], "");
    assert_eq!((code, out.as_str()), (Some(0), ""));
    assert!(error.contains("0 of 1 claimed"), "{error}");
}

/// The URL of a database with tables in it.
fn database(server: &PostgresServer) -> String {
    let url = server.url(&server.create_database().expect("a database"));
    let (_, error, code) = store(&["migrate", &url]);
    assert_eq!(code, Some(0), "{error}");
    url
}

#[test]
fn one_who_waits_waits_for_the_server_as_well() {
    let server = PostgresServer::builder().careless().start().expect("a server");
    let url = database(&server) + "?connect_timeout=1s";
    let frontier =
        |arguments: &[&str], input| trapline(&[&["frontier", "--store", &url], arguments].concat(), input);
    assert_eq!(frontier(&["admit"], "http://a.example/\n").2, Some(0));
    assert_eq!(frontier(&["claim"], "").2, Some(0));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| frontier(&["claim", "--wait", "50s"], ""));
        // Time to open it; if that took longer, it would say so and the rest would not hold.
        std::thread::sleep(std::time::Duration::from_secs(2));
        server.stop(Stop::Fast).expect("it stops");
        std::thread::sleep(std::time::Duration::from_secs(4));
        server.start_again().expect("it starts");
        assert_eq!(frontier(&["admit"], "http://b.example/\n").2, Some(0));
        let (out, error, code) = waiting.join().expect("it ends");
        assert_eq!(code, Some(0), "{error}");
        assert!(out.contains("http://b.example/"), "{out}{error}");
        assert_eq!(error.matches("It is tried again until the wait is over.").count(), 1, "{error}");
    });
    // Patience ends.
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| frontier(&["claim", "--wait", "5s"], ""));
        std::thread::sleep(std::time::Duration::from_secs(2));
        server.stop(Stop::Fast).expect("it stops");
        let (out, error, code) = waiting.join().expect("it ends");
        assert_eq!((out.as_str(), code), ("", Some(2)), "{error}");
        assert!(error.contains("trapline frontier claim: postgres store: cannot "), "{error}");
    });
}

/// The server survives whatever becomes of a command; and nothing of the trace is left in it.
#[test]
fn a_trace_with_restarts_is_played_in_a_database() {
    let url = database(PostgresServer::shared());
    let trace = "set lease 60s\n0 admit http://a.example/1 -> added\n0 claim 1 -> http://a.example/1\n\
                 1s restart -> ok\n2s crash -> ok\n3s claim 1 ->\n60s claim 1 -> http://a.example/1\n";
    let (out, error, code) = trapline(&["frontier", "--store", &url, "replay", "-"], trace);
    assert_eq!(code, Some(0), "{out}{error}");
    assert!(error.contains("6 lines played"), "{error}");
    let (crawls, _, code) = trapline(&["frontier", "--store", &url, "crawls", "--json"], "");
    assert_eq!((crawls.as_str(), code), ("", Some(0)));
}

#[test]
fn a_crawl_that_cannot_be_read_can_be_deleted() {
    let server = PostgresServer::shared();
    let url = database(server);
    let frontier =
        |arguments: &[&str], input| trapline(&[&["frontier", "--store", &url], arguments].concat(), input);
    assert_eq!(frontier(&["admit"], "http://a.example/\n").2, Some(0));
    let name = url.rsplit_once('/').expect("it has a name").1;
    server.sql(name, "UPDATE trapline.crawls SET settings = '\\xffffff'").expect("it is spoilt");
    assert_eq!(frontier(&["stats"], "").2, Some(2));
    let (out, error, code) = frontier(&["steer", "crawl", "delete", "--yes"], "");
    assert_eq!(code, Some(0), "{out}{error}");
    assert_eq!(server.sql(name, "SELECT count(*) FROM trapline.urls").expect("it is asked"), "0");
}

#[test]
fn no_message_has_a_password_in_it() {
    for url in [
        "postgre://u:hush@h/d",
        "Postgress://u:hush@h/d",
        "pg://u:hush@h/d",
        "u:hush@h/d",
        "postgres:u:hush@h/d",
    ] {
        for arguments in [
            &["frontier", "--store", url, "stats"][..],
            &["frontier", "--store", url, "replay", "-"],
            &["frontier", "--store", url, "hold"],
            &["frontier", "--store", url, "verify"],
            &["store", "check", url],
            &["store", "migrate", url],
            &["store", "copy", url, "disk:x"],
            &["sim", "--store", url],
        ] {
            let (out, error, code) = trapline(arguments, "");
            assert_eq!(code, Some(2), "{arguments:?}: {out}{error}");
            assert!(!out.contains("hush") && !error.contains("hush"), "{arguments:?}: {out}{error}");
        }
    }
}

#[test]
fn a_password_that_is_missing_is_asked_for_with_all_the_ways_to_give_it() {
    let server = PostgresServer::shared();
    let url = format!("postgres://trapline@127.0.0.1:{}/postgres", server.port());
    let (_, error, code) = store(&["check", &url]);
    assert_eq!(code, Some(2));
    let told = "password missing; the server asks for a password: write it in the URL, or keep it in the environment as PGPASSWORD\n";
    assert!(error.ends_with(told), "{error}");
}

#[test]
fn the_doctor_compares_clocks_with_the_server() {
    let server = PostgresServer::shared();
    let url = server.url(&server.create_database().unwrap());
    let (out, error, _) = trapline(&["doctor", "--json", "--store", &url], "");
    let findings: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{out}{error}")))
        .collect();
    let of = |what: &str| findings.iter().filter(|finding| finding["what"] == what).collect::<Vec<_>>();
    let clocks = of("clock");
    assert_eq!(clocks.len(), 2, "{out}");
    let detail = clocks[1]["detail"].as_str().unwrap();
    assert!(
        clocks[1]["state"] == "ok" && detail.ends_with(" agrees") && !detail.contains("for-tests-only"),
        "{out}"
    );
    // Whoever begins a crawl there has to make tables first.
    let stores = of("store");
    assert!(stores.len() == 1 && stores[0]["state"] == "fail", "{out}");
    assert!(stores[0]["detail"].as_str().unwrap().contains("run `trapline store migrate"), "{out}");
}
