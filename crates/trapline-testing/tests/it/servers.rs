//! A server ends with whoever started it, however that ends.

mod nginx;
mod real_sites;

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use trapline_testing::{PostgresServer, Stop};

/// Set for the process that is to be killed.
const VICTIM: &str = "TRAPLINE_TESTING_VICTIM";

fn is_gone(folder: &Path, address: SocketAddr) -> bool {
    !folder.exists() && TcpStream::connect(address).is_err()
}

#[test]
fn a_dropped_server_leaves_nothing() {
    let server = PostgresServer::builder().careless().setting("max_connections = 7").start().unwrap();
    assert_eq!(server.sql("postgres", "SHOW max_connections").unwrap(), "7");
    let database = server.create_database().unwrap();
    server.sql(&database, "CREATE TABLE t (a int); INSERT INTO t VALUES (1)").unwrap();
    let copy = server.create_database_like(&database).unwrap();
    assert_eq!(server.sql(&copy, "SELECT a FROM t").unwrap(), "1");
    let (folder, address) = (server.folder().to_owned(), SocketAddr::from(([127, 0, 0, 1], server.port())));
    assert!(!is_gone(&folder, address));
    drop(server);
    assert!(is_gone(&folder, address));
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
    let nginx = nginx::small();
    println!("\nvictim {} {}", nginx.address(0), nginx.folder().display());
    let server = PostgresServer::shared();
    println!("victim 127.0.0.1:{} {}", server.port(), server.folder().display());
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
    let lines: Vec<_> = lines.filter(|line| line.starts_with("victim ")).take(2).collect();
    assert_eq!(lines.len(), 2, "it says where its servers are");
    victim.kill().unwrap();
    victim.wait().unwrap();
    let patience = Instant::now() + Duration::from_secs(20);
    for line in lines {
        let mut words = line.splitn(3, ' ').skip(1);
        let address: SocketAddr = words.next().unwrap().parse().unwrap();
        let folder = PathBuf::from(words.next().unwrap());
        while !is_gone(&folder, address) {
            assert!(Instant::now() < patience, "{} is still there", folder.display());
            std::thread::yield_now();
        }
    }
}
