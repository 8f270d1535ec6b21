//! `trapline serve` from outside: it serves beside other commands, and ends in good order.

use std::process::Command;

use crate::folder::Folder;
use crate::operate::ask;
use crate::service::Service;

#[test]
fn a_service_works_beside_commands_and_ends_when_it_is_told_to() {
    let folder = Folder::new("serve");
    let mut service = Service::start(&folder.url(), &[]);
    assert!(service.get("/healthz").starts_with("HTTP/1.1 200 "));
    assert!(service.get("/readyz").starts_with("HTTP/1.1 200 "));
    assert_eq!(ask(&folder, &["admit"], "http://a.example/\n", 0)[0]["added"], 1);
    assert_eq!(ask(&folder, &["stats"], "", 0)[0]["urls"]["pending"], 1);
    let metrics = service.get("/metrics");
    assert!(metrics.contains("trapline_urls{state=\"pending\"} 1\n"), "{metrics}");

    assert_eq!(service.end().code(), Some(0));
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
