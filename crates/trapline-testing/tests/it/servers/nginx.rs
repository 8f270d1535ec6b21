//! An nginx of a test's own, and what its log says.

use std::io::{Read, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpStream};
use std::path::Path;

use trapline_testing::{Nginx, Site, Visits};

use super::is_gone;

/// A server of two sites without files.
pub(crate) fn small() -> Nginx {
    let nowhere = Path::new("/nonexistent");
    let first = Site::new("first.example", nowhere)
        .robots("User-agent: *\nDisallow: /closed/\n")
        .line("location = /old { return 301 /new; }")
        .line("location = /broken { return 500; }");
    Nginx::start(vec![first, Site::new("second.example", nowhere)]).expect("nginx starts")
}

fn get(address: SocketAddrV4, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("nginx listens");
    let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\nUser-Agent: test\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("nginx reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("nginx answers");
    answer
}

#[test]
fn sites_have_addresses_of_their_own_and_one_log() {
    let server = small();
    assert!(get(server.address(0), "/robots.txt").ends_with("Disallow: /closed/\n"));
    assert!(get(server.address(0), "/old").contains("\r\nLocation: /new\r\n"));
    assert!(get(server.address(0), "/broken").starts_with("HTTP/1.1 500 "));
    assert!(get(server.address(1), "/old?a=%7e").starts_with("HTTP/1.1 404 "));
    let visits = server.take_visits().unwrap();
    let seen: Vec<_> =
        visits.iter().map(|visit| (visit.site.as_str(), visit.path.as_str(), visit.status)).collect();
    let expected = [
        ("first.example", "/robots.txt", 200),
        ("first.example", "/old", 301),
        ("first.example", "/broken", 500),
        ("second.example", "/old?a=%7e", 404),
    ];
    assert_eq!(seen, expected);
    assert_eq!(visits[0].agent, "test");
    // What was taken is not told again.
    get(server.address(1), "/");
    let visits = server.take_visits().unwrap();
    assert_eq!(Visits::of(&visits, "second.example").all().len(), 1);
    assert_eq!(visits.len(), 1);
}

#[test]
fn it_is_stopped_and_started_with_other_sites_and_leaves_nothing() {
    let mut server = small();
    let address = server.address(0);
    server.stop().unwrap();
    assert!(TcpStream::connect(address).is_err());
    let slow = Site::new("slow.example", Path::new("/nonexistent")).line("return 200 ok;");
    server.start_again(vec![slow]).unwrap();
    assert!(get(address, "/").ends_with("ok"));
    assert_eq!(server.take_visits().unwrap()[0].site, "slow.example");
    let folder = server.folder().to_owned();
    drop(server);
    assert!(is_gone(&folder, SocketAddr::V4(address)));
}

#[test]
fn what_nginx_refuses_is_told() {
    let site = Site::new("bad.example", Path::new("/nonexistent")).line("nonsense on;");
    let problem = Nginx::start(vec![site]).unwrap_err();
    assert!(problem.contains("`start` answered `failed`") && problem.contains("nonsense"), "{problem}");
}
