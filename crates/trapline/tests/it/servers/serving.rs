//! `trapline serve` as clients see it that we did not write: Python with grpcio, its code generated from the protos.
#![allow(clippy::unwrap_used, reason = "helpers are parts of the tests")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use trapline_testing::grpc_python;

use crate::crawl::Running;
use crate::folder::Folder;

/// A service on ports that were free, killed with its test; and where gRPC is spoken.
fn serve(store: &str) -> (Running, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_trapline"))
        .args([
            "serve",
            "--json",
            "--store",
            store,
            "--grpc-listen",
            "127.0.0.1:0",
            "--http-listen",
            "127.0.0.1:0",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let running = Running(child);
    let told: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
    let address = told["grpc"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
    (running, address)
}

fn run(script: &str, arguments: &[&str]) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let protos = here.join("../trapline-server/proto");
    let script = here.join("tests/it/servers/serving").join(script);
    let ran = grpc_python(&script).unwrap().arg(protos).args(arguments).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn clients_of_urlfrontier_find_all_they_know_also_after_a_kill() {
    let folder = Folder::new("serving-urlfrontier");
    let store = format!("disk:{}", folder.path.display());
    let (running, address) = serve(&store);
    run("public_api.py", &[&address, "before"]);
    // As `kill -9` does.
    drop(running);
    let (_running, address) = serve(&store);
    run("public_api.py", &[&address, "after"]);
}

#[test]
fn a_crawler_in_python_needs_nothing_but_urls() {
    let folder = Folder::new("serving-python");
    let (_running, address) = serve(&format!("disk:{}", folder.path.display()));
    run("own_api.py", &[&address]);
}
