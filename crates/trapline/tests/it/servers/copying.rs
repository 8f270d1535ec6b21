//! `trapline store copy` between folders and databases, in every direction.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use trapline_core::Request;
use trapline_frontier::{Frontier, Store};
use trapline_stores::PostgresStore;
use trapline_testing::{PostgresServer, Stop};

use crate::copying::{check_copied, check_killed, contents, copy, fill, filled, many, now, trapline};
use crate::folder::Folder;

/// The URL of a database with tables in it.
fn database(server: &PostgresServer) -> String {
    let url = server.url(&server.create_database().expect("a database"));
    let (_, error, code) = trapline(&["store", "migrate", &url]);
    assert_eq!(code, Some(0), "{error}");
    url
}

/// From a folder to a database, on to another, and back: it is the same everywhere.
#[test]
fn a_frontier_moves_there_and_back() {
    let server = PostgresServer::shared();
    let (one, four) = (filled("pg-from"), Folder::new("pg-back"));
    let (two, three) = (database(server), database(server));
    check_copied(&one.url(), &two);
    check_copied(&two, &three);
    check_copied(&three, &four.url());
    assert_eq!(contents(&four.url()), contents(&one.url()));
    let told = copy(&one.url(), &four.url(), &["--verify-only"], 0);
    assert!(told.iter().all(|told| told["differences"] == json!([])), "{told:?}");
}

/// What was filled in the database is the same in a folder, and claims of both get the same.
#[test]
fn a_crawl_goes_on_in_the_copy_as_it_would_have() {
    let server = PostgresServer::shared();
    let (one, two) = (database(server), Folder::new("pg-alike"));
    let store: Arc<dyn Store> = Arc::new(PostgresStore::open(&one).expect("it is done"));
    fill(&store, now());
    check_copied(&one, &two.url());
    let other: Arc<dyn Store> = Arc::new(
        trapline_stores::DiskStore::open(&two.path, &trapline_stores::DiskOptions::default())
            .expect("it is done"),
    );
    let [first, second] = [store, other].map(|store| {
        let frontier =
            pollster::block_on(Frontier::builder("default").attach(store, now())).expect("it is done");
        let resume = trapline_frontier::CrawlChange::Resume;
        pollster::block_on(frontier.steer_crawl(now(), resume)).expect("it is done");
        frontier
    });
    let mut at = now();
    for round in 0..60 {
        at = at + Duration::from_secs(1_777);
        let [one, two] = [&first, &second].map(|frontier| {
            let claimed = pollster::block_on(frontier.claim(at, 1)).expect("it is done");
            let urls: Vec<_> = claimed.leases.iter().map(|lease| lease.request.url.clone()).collect();
            for lease in claimed.leases {
                let done = trapline_frontier::Settlement::new(lease.id, trapline_frontier::Outcome::done());
                pollster::block_on(frontier.settle(at, vec![done])).expect("it is done");
            }
            urls
        });
        assert_eq!(two, one, "round {round}");
    }
}

#[test]
fn a_copy_to_and_from_a_database_that_was_killed_goes_on() {
    let server = PostgresServer::shared();
    let (one, two, three) = (many("pg-kill", 6_000, 300), database(server), Folder::new("pg-killed"));
    check_killed(&one.url(), &two);
    check_killed(&two, &three.url());
}

/// The server goes away in the middle, and comes back.
#[test]
fn a_server_that_goes_away_costs_nothing() {
    let server = PostgresServer::builder().start().expect("a server");
    let (one, two) = (many("pg-away", 40_000, 500), format!("{}?connect_timeout=1s", database(&server)));
    for until in [2_000, 9_000] {
        let process = Command::new(env!("CARGO_BIN_EXE_trapline"))
            .args(["store", "copy", &one.url(), &two])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it is done");
        let begun = Instant::now();
        let store: Arc<dyn Store> = Arc::new(PostgresStore::open(&two).expect("it is done"));
        // Once so many URLs are there.
        loop {
            let there = pollster::block_on(store.stats("default", trapline_core::Timestamp::ZERO));
            if there.is_ok_and(|stats| stats.urls.iter().sum::<u64>() >= until) {
                break;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "it does not get on");
        }
        server.stop(Stop::Immediate).expect("it is done");
        let ran = process.wait_with_output().expect("it is done");
        let error = String::from_utf8(ran.stderr).expect("it is done");
        assert_eq!(ran.status.code(), Some(2), "{error}");
        assert!(error.contains("The same command goes on where it is."), "{error}");
        assert!(!error.contains("for-tests-only"), "{error}");
        server.start_again().expect("it is done");
    }
    check_copied(&one.url(), &two);
}

/// One database under two names is found out before anything is done.
#[test]
fn a_database_is_not_copied_onto_itself() {
    let server = PostgresServer::shared();
    let url = database(server);
    let store: Arc<dyn Store> = Arc::new(PostgresStore::open(&url).expect("it opens"));
    let frontier =
        pollster::block_on(Frontier::builder("default").open_shared(store, now())).expect("it is done");
    pollster::block_on(frontier.admit(now(), [Request::get("http://a.example/")])).expect("it is done");
    let other = url.replace("127.0.0.1", "localhost");
    for other in [&other, &url] {
        let (_, error, code) = trapline(&["store", "copy", &url, other]);
        assert_eq!(code, Some(2), "{error}");
        assert!(error.contains("`default` would be copied onto itself"), "{error}");
        assert!(!error.contains("for-tests-only"), "{error}");
    }
    let (out, _, _) = trapline(&["frontier", "--store", &url, "crawls", "--json"]);
    assert!(out.contains("\"running\""), "it was not paused: {out}");
    let (_, error, code) =
        trapline(&["store", "copy", &url, &server.url(&server.create_database().expect("a database"))]);
    assert_eq!(code, Some(2));
    assert!(error.contains("run `trapline store migrate URL`"), "{error}");
}

/// Two hundred thousand URLs, in memory that does not grow with them. `TRAPLINE_COPY_URLS` says how many; it takes a minute.
#[test]
#[ignore = "it takes a minute; the manual has its figures"]
fn many_urls_are_copied_in_little_memory() {
    let urls =
        std::env::var("TRAPLINE_COPY_URLS").ok().and_then(|count| count.parse().ok()).unwrap_or(200_000);
    let server = PostgresServer::builder().start().expect("a server");
    let (one, two, three) = (many("pg-many", urls, urls / 20), database(&server), database(&server));
    let (four, five) = (Folder::new("pg-many-back"), Folder::new("pg-many-beside"));
    for (from, to) in [(&one.url(), &two), (&two, &three), (&two, &four.url()), (&one.url(), &five.url())] {
        let begun = Instant::now();
        let process = Command::new(env!("CARGO_BIN_EXE_trapline"))
            .args(["store", "copy", from, to, "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it is done");
        let status = format!("/proc/{}/status", process.id());
        let mut most = 0;
        let mut child = process;
        while child.try_wait().expect("it is done").is_none() {
            let status = std::fs::read_to_string(&status).unwrap_or_default();
            let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
            let kib = line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(0_u64);
            most = most.max(kib);
            std::thread::sleep(Duration::from_millis(50));
        }
        let ran = child.wait_with_output().expect("it is done");
        let (out, error) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert_eq!(ran.status.code(), Some(0), "{out}{error}");
        let took = begun.elapsed().as_secs_f64();
        let kind = |url: &str| url.split(':').next().unwrap_or_default().to_owned();
        let rate = urls as f64 / took;
        println!(
            "{} to {}: {urls} URLs in {took:.1} s, {rate:.0} a second, {} MiB",
            kind(from),
            kind(to),
            most >> 10
        );
        if kind(from) == "postgres" && kind(to) == "postgres" {
            assert!(most < 300 << 10, "{most} KiB");
        }
    }
}
