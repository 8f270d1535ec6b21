//! Traces, taken by a receiver that reads them with OpenTelemetry's own messages; and collectors that take nothing.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::crawl::{Running, command, crawl, error, lines};
use crate::fetch::{ok, serve};
use crate::folder::Folder;

/// A receiver, and what it prints, which is read while it runs.
struct Receiver {
    running: Running,
    told: JoinHandle<Vec<Value>>,
}

/// A receiver that refuses so many requests first, and its address.
fn receiver(refusals: u32) -> (Receiver, String) {
    let package = Path::new(env!("CARGO_TARGET_TMPDIR")).join("otlp").join("package");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/report/otlp_receiver.py");
    let mut child = Command::new("python3")
        .arg(script)
        .arg(package)
        .arg(refusals.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python is installed: ./test does it");
    let mut told = BufReader::new(child.stdout.take().expect("it was asked for"));
    let running = Running(child);
    let mut port = String::new();
    told.read_line(&mut port).expect("it says its port");
    assert!(
        !port.trim().is_empty(),
        "the receiver has started: ./test brings the package opentelemetry-proto"
    );
    let read =
        |line: std::io::Result<String>| serde_json::from_str(&line.expect("it is text")).expect("it is JSON");
    let told = std::thread::spawn(move || told.lines().map(read).collect());
    (Receiver { running, told }, format!("http://127.0.0.1:{}", port.trim()))
}

impl Receiver {
    fn spans(self) -> Vec<Value> {
        drop(self.running);
        self.told.join().expect("all it printed was read")
    }
}

/// 200 good pages and one that is not there.
fn web() -> std::net::SocketAddr {
    serve(|path, _| match path {
        "/robots.txt" => ok("Content-Type: text/plain\r\n", ""),
        "/" => {
            let links: String = (0..200).map(|number| format!("<a href=/p{number}>x</a>")).collect();
            ok("Content-Type: text/html\r\n", &format!("{links}<a href=/gone>x</a>"))
        }
        "/gone" => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
        _ => ok("Content-Type: text/plain\r\n", "hello"),
    })
}

#[test]
fn a_receiver_of_the_protocol_reads_every_span() {
    let folder = Folder::new("traces");
    // The first answer is that it is overloaded, and what it refused comes again.
    let (receiver, endpoint) = receiver(1);
    let address = web();
    let output =
        crawl(address, &folder.path, &["--delay", "20ms", "--otlp", &endpoint, "--set", "log.otlp_sample=1"]);
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    let spans = receiver.spans();
    let pages = lines(&folder.path, "pages.jsonl");
    let visits: Vec<_> = spans.iter().filter(|span| span["name"] == "visit").collect();
    assert_eq!(visits.len(), pages.len(), "{}", error(&output));
    let traces: BTreeSet<_> = visits.iter().map(|span| span["trace"].as_str()).collect();
    assert_eq!(traces.len(), visits.len(), "each visit is a trace of its own");
    for span in &spans {
        assert_eq!(
            (span["path"].as_str(), span["content_type"].as_str()),
            (Some("/v1/traces"), Some("application/x-protobuf"))
        );
        assert_eq!(span["unknown_bytes"], 0, "nothing is sent that the protocol does not know: {span}");
        assert_eq!(
            (span["resource"]["service.name"].as_str(), span["scope"].as_str()),
            (Some("trapline"), Some("trapline"))
        );
        assert!(span["start"].as_u64() <= span["end"].as_u64(), "{span}");
        let parent = span["parent"].as_str().unwrap();
        let known = parent.is_empty()
            || spans.iter().any(|other| other["span"] == parent && other["trace"] == span["trace"]);
        assert!(known, "{span}");
    }
    let gone = format!("http://{address}/gone");
    let gone: Vec<_> = spans.iter().filter(|span| span["attributes"]["url.full"] == gone).collect();
    let request = gone.iter().find(|span| span["name"] == "GET").unwrap();
    assert_eq!((request["kind"].as_u64(), request["status"].as_u64()), (Some(3), Some(2)));
    assert_eq!(request["attributes"]["http.response.status_code"], 404);
    assert_eq!(request["attributes"]["error.type"], "404");
    assert_eq!(request["attributes"]["server.address"], "127.0.0.1");
    assert_eq!(
        gone.iter().find(|span| span["name"] == "visit").unwrap()["attributes"]["trapline.outcome"],
        "done"
    );
    assert!(spans.iter().any(|span| span["name"] == "first byte"));
}

#[test]
fn what_went_well_is_told_of_by_chance_and_errors_always() {
    let folder = Folder::new("traces-sampled");
    let (receiver, endpoint) = receiver(0);
    let output = crawl(web(), &folder.path, &["--delay", "0", "--otlp", &endpoint]);
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    let spans = receiver.spans();
    let visits: Vec<_> = spans.iter().filter(|span| span["name"] == "visit").collect();
    assert!(
        visits.iter().any(|span| span["attributes"]["url.full"].as_str().unwrap().ends_with("/gone")),
        "{visits:?}"
    );
    // Two in 201 are to be expected; that there are more than 20 would be a wonder.
    assert!(visits.len() <= 20, "{}", visits.len());
}

#[test]
fn a_collector_that_takes_nothing_keeps_nobody_waiting() {
    // Nobody listens; somebody listens and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let silent = (silent.local_addr().unwrap(), silent);
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port is free").local_addr().unwrap();
    let time = |name: &str, more: &[&str]| {
        let folder = Folder::new(name);
        let begun = Instant::now();
        let output =
            command(web(), &folder.path, &[&["--delay", "0", "--set", "log.otlp_sample=1"], more].concat())
                .output()
                .expect("the binary runs");
        assert_eq!(output.status.code(), Some(0), "{}", error(&output));
        assert_eq!(lines(&folder.path, "pages.jsonl").len(), 202);
        (begun.elapsed(), error(&output))
    };
    let (without, _) = time("traces-none", &[]);
    let (away, told) = time("traces-closed", &["--otlp", &format!("http://{closed}")]);
    assert!(told.contains("traces are dropped: the collector does not take them"), "{told}");
    let (mute, told) = time("traces-silent", &["--otlp", &format!("http://{}", silent.0)]);
    assert!(told.contains("did not take the last traces in time"), "{told}");
    // Who waited for an answer of the one would do so for ten seconds, and who waited to try the other again for seven. Nobody does:
    // the crawl waits two seconds at its end. (Machines have their moods, so that there is some room.)
    assert!(away < 2 * without + Duration::from_secs(4), "{away:?} instead of {without:?}");
    assert!(mute < 2 * without + Duration::from_secs(6), "{mute:?} instead of {without:?}");
    let wrong = crawl(closed, &Folder::new("traces-wrong").path, &["--otlp", "grpc://x"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(error(&wrong).contains("traces are sent over http or https"), "{}", error(&wrong));
}
