//! A server ends with whoever started it, however that ends.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use trapline_testing::{PostgresServer, Stop};

/// Set for the process that is to be killed.
const VICTIM: &str = "TRAPLINE_TESTING_VICTIM";

fn is_gone(folder: &Path, port: u16) -> bool {
    !folder.exists() && TcpStream::connect(("127.0.0.1", port)).is_err()
}

#[test]
fn a_dropped_server_leaves_nothing() {
    let server = PostgresServer::builder().careless().setting("max_connections = 7").start().unwrap();
    assert_eq!(server.sql("postgres", "SHOW max_connections").unwrap(), "7");
    let database = server.create_database().unwrap();
    server.sql(&database, "CREATE TABLE t (a int); INSERT INTO t VALUES (1)").unwrap();
    let copy = server.create_database_like(&database).unwrap();
    assert_eq!(server.sql(&copy, "SELECT a FROM t").unwrap(), "1");
    let (folder, port) = (server.folder().to_owned(), server.port());
    assert!(!is_gone(&folder, port));
    drop(server);
    assert!(is_gone(&folder, port));
}

#[test]
fn a_stopped_server_comes_back_with_what_it_had() {
    let server = PostgresServer::builder().start().unwrap();
    server.sql("postgres", "CREATE TABLE t (a int)").unwrap();
    for (how, a) in [(Stop::Fast, 1), (Stop::Immediate, 2)] {
        server.sql("postgres", &format!("INSERT INTO t VALUES ({a})")).unwrap();
        server.stop(how).unwrap();
        server.sql("postgres", "SELECT 1").unwrap_err();
        server.start_again().unwrap();
        assert_eq!(server.sql("postgres", "SELECT max(a) FROM t").unwrap(), a.to_string());
    }
}

/// Not a test by itself: it is what the next one kills.
#[test]
fn victim() {
    if std::env::var_os(VICTIM).is_none() {
        return;
    }
    let server = PostgresServer::shared();
    println!("\nvictim {} {}", server.port(), server.folder().display());
    std::thread::park_timeout(Duration::from_secs(60));
}

#[test]
fn a_killed_process_leaves_no_server() {
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["servers::victim", "--exact", "--nocapture"])
        .env(VICTIM, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines().map_while(Result::ok);
    let line =
        lines.into_iter().find(|line| line.starts_with("victim ")).expect("it says where its server is");
    let mut words = line.splitn(3, ' ').skip(1);
    let port: u16 = words.next().unwrap().parse().unwrap();
    let folder = PathBuf::from(words.next().unwrap());
    assert!(!is_gone(&folder, port));
    victim.kill().unwrap();
    victim.wait().unwrap();
    let patience = Instant::now() + Duration::from_secs(20);
    while !is_gone(&folder, port) {
        assert!(Instant::now() < patience, "{} is still there", folder.display());
        std::thread::yield_now();
    }
}
