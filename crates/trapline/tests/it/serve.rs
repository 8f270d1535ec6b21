//! `trapline serve` from outside: it serves beside other commands, and ends in good order.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::folder::Folder;
use crate::operate::ask;

/// A child that does not outlive its test.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it is text");
    answer
}

#[test]
fn a_service_works_beside_commands_and_ends_when_it_is_told_to() {
    let folder = Folder::new("serve");
    let child = Command::new(env!("CARGO_BIN_EXE_trapline"))
        .args(["serve", "--json", "--store", &folder.url()])
        .args(["--grpc-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut child = Serving(child);
    let mut line = String::new();
    BufReader::new(child.0.stdout.as_mut().expect("it is piped")).read_line(&mut line).expect("it is text");
    let told: Value = serde_json::from_str(&line).expect("it is JSON");
    let http = told["http"].as_str().unwrap().strip_prefix("http://").unwrap();

    assert!(get(http, "/healthz").starts_with("HTTP/1.1 200 "));
    assert!(get(http, "/readyz").starts_with("HTTP/1.1 200 "));
    assert_eq!(ask(&folder, &["admit"], "http://a.example/\n", 0)[0]["added"], 1);
    assert_eq!(ask(&folder, &["stats"], "", 0)[0]["urls"]["pending"], 1);
    let metrics = get(http, "/metrics");
    assert!(metrics.contains("trapline_urls{state=\"pending\"} 1\n"), "{metrics}");

    let kill = format!("kill -TERM {}", child.0.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().expect("there is a shell").success());
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
    assert!(!folder.path.join("socket").exists(), "the folder is free");
    assert_eq!(ask(&folder, &["stats"], "", 0)[0]["urls"]["pending"], 1);
}

#[test]
fn an_open_door_is_refused_with_what_to_do() {
    let output = Command::new(env!("CARGO_BIN_EXE_trapline"))
        .args(["serve", "--store", "memory:", "--grpc-listen", "0.0.0.0:7071"])
        .output()
        .expect("the binary runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.starts_with("trapline serve: will not listen at 0.0.0.0:7071 (--grpc-listen): "), "{told}");
    assert!(told.contains("--tls-cert FILE --tls-key FILE") && told.contains("--tokens FILE"), "{told}");
    assert_eq!(output.status.code(), Some(2));
}
