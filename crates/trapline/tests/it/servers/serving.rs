//! `trapline serve` as clients see it that we did not write: Python with grpcio, its code generated from the protos.
#![allow(clippy::unwrap_used, reason = "helpers are parts of the tests")]

use std::path::Path;

use trapline_testing::grpc_python;

use crate::folder::Folder;
use crate::service::Service;

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
    let mut service = Service::start(&folder.url(), &[]);
    run("public_api.py", &[&service.grpc, "before"]);
    service.kill();
    service.start_again(&folder.url(), &[]);
    run("public_api.py", &[&service.grpc, "after"]);
}

#[test]
fn a_crawler_in_python_needs_nothing_but_urls() {
    let folder = Folder::new("serving-python");
    let service = Service::start(&folder.url(), &[]);
    run("own_api.py", &[&service.grpc]);
}

#[test]
fn a_program_in_python_tells_a_crawler_what_to_fetch_listens_and_steers() {
    let folder = Folder::new("serving-crawler");
    let service = Service::start_crawling(&folder, &[]);
    run("crawler_api.py", &[&service.grpc]);
}
