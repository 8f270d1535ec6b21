//! What hostile servers and idle connections cost in memory, each measured in a process of its own, in which nothing else happens: what one has
//! freed would hide what the next one takes.

use std::process::Command;

use trapline_fetch::{FetchRequest, Fetcher};

use crate::door::Server;
use crate::floods::{Flood, floods, h2_server};
use crate::hostile::{BROTLI_BOMB, gzip, outcome, zstd_bomb};
use crate::resting::resting;
use crate::web::{Certificate, Step, answering, leading_to, ok, options, page, request, scripted, send};

const ALONE: &str = "TRAPLINE_FETCH_MEASURED_ALONE";
const NAME: &str = "memory::hostile_servers_cost_no_more_memory_than_the_caps_allow";

/// Servers of HTTP/1.1, by name.
const PLAIN: [&str; 14] = [
    "gzip",
    "gzip in gzip",
    "brotli",
    "zstd",
    "window",
    "endless body",
    "endless header",
    "endless folded header",
    "endless trailers",
    "one trailer without end",
    "endless chunk extension",
    "endless chunks of one byte",
    "endless 1xx",
    "large length",
];
/// One of HTTP/2 with a page that is too long. All floods are measured as well.
const LONG_PAGE: &str = "a long page of HTTP/2";

/// Connections that rest, and those that come after them. A process may have 1024 files open, and both sides are here.
const IDLE: usize = 200;

/// The most the process ever had resident, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn hostile_servers_cost_no_more_memory_than_the_caps_allow() {
    if let Ok(name) = std::env::var(ALONE) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(measure(&name));
        println!("measured");
        return;
    }
    let endless = floods().into_iter().filter(Flood::is_endless).map(|flood| flood.name);
    for name in PLAIN.into_iter().chain([LONG_PAGE]).chain(endless) {
        run_alone(NAME, name);
    }
}

/// Runs a test once more, in a process of its own that is told what to measure.
fn run_alone(test: &str, name: &str) {
    let mut alone = Command::new(std::env::current_exe().unwrap());
    let output = alone.args(["--exact", test, "--nocapture"]).env(ALONE, name).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("measured"), "{name}: {out}\n{err}");
}

/// What connections had before they rested is there for others: twice as many need hardly more memory.
#[test]
fn connections_that_rest_cost_hardly_any_memory() {
    if std::env::var(ALONE).is_err() {
        return run_alone("memory::connections_that_rest_cost_hardly_any_memory", "idle connections");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let server = answering(|_| ok("", "x".repeat(20_000))).await;
        let fetcher = Fetcher::new(leading_to(options(), &server)).unwrap();
        let visit = async |hosts: std::ops::Range<usize>| {
            let idle = hosts.end;
            for host in hosts {
                let fetched = fetcher.fetch(&request(&format!("http://h{host}.example/"))).await;
                assert_eq!((outcome(&fetched).as_str(), fetched.reused), ("200", false));
            }
            assert_eq!(fetcher.idle_connections(), idle);
        };
        let start = peak_kib();
        visit(0..IDLE).await;
        let awake = peak_kib();
        resting(&fetcher, IDLE).await;
        visit(IDLE..2 * IDLE).await;
        let rested = peak_kib();
        println!("grew by {} KiB, then by {} KiB", awake - start, rested - awake);
        assert!(rested - awake < 12 * IDLE as u64, "{} KiB, then {} KiB", awake - start, rested - awake);
    });
    println!("measured");
}

async fn plain(name: &str) -> Server {
    let encoded = |coding: &'static str, body: Vec<u8>| {
        answering(move |_| ok(&format!("Content-Encoding: {coding}\r\n"), &body))
    };
    let endless = |rest: &str, again: &[u8]| {
        let head = format!("HTTP/1.1 200 OK\r\n{rest}");
        scripted(vec![Step::Read, send(head), Step::Endless(again.to_vec())])
    };
    let chunked = "Transfer-Encoding: chunked\r\n\r\n";
    let zeros = || vec![0; 64 << 20];
    let x = [b'x'; 9999];
    match name {
        "gzip" => encoded("gzip", gzip(&zeros())).await,
        "gzip in gzip" => encoded("gzip, gzip", gzip(&gzip(&zeros()))).await,
        "brotli" => encoded("br", BROTLI_BOMB.to_vec()).await,
        "zstd" => encoded("zstd", zstd_bomb()).await,
        "window" => encoded("zstd", vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 1, 0, 0]).await,
        "endless body" => endless("\r\n", &x).await,
        "endless header" => endless("A: ", &x).await,
        "endless folded header" => endless("A: b\r\n", &b" c\r\n".repeat(999)).await,
        "endless trailers" => {
            endless(&format!("{chunked}1\r\nx\r\n0\r\n"), &b"X-Name: value\r\n".repeat(999)).await
        }
        "one trailer without end" => endless(&format!("{chunked}1\r\nx\r\n0\r\nA: "), &x).await,
        "endless chunk extension" => endless(&format!("{chunked}1;"), &x).await,
        "endless chunks of one byte" => endless(chunked, &b"1\r\nx\r\n".repeat(999)).await,
        "endless 1xx" => {
            scripted(vec![Step::Read, Step::Endless(b"HTTP/1.1 100 C\r\n\r\n".repeat(99))]).await
        }
        "large length" => {
            let head = send("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n");
            scripted(vec![Step::Read, head, Step::Hold]).await
        }
        other => panic!("nobody is called {other}"),
    }
}

async fn measure(name: &str) {
    let mut options = options();
    options.keep_raw = true;
    // A chunk of one byte has five around it, and all are among what is kept.
    options.limits.raw_bytes_max = options.limits.decoded_bytes_max;
    let limits = options.limits;
    let caps = limits.decoded_bytes_max as u64 + limits.encoded_bytes_max;
    if PLAIN.contains(&name) {
        let fetcher = Fetcher::new(options).unwrap();
        // Everything that is made once is there before it is measured.
        fetcher.fetch(&page(&answering(|_| ok("", "x")).await, "/")).await;
        let server = plain(name).await;
        let brotli_window = if name == "brotli" { 16 << 20 } else { 0 };
        return compare(&fetcher, &page(&server, "/"), 2 * caps + brotli_window).await;
    }
    let certificate = Certificate::new(&["a.example"]);
    options.dial.roots = certificate.believed();
    let small = h2_server(&certificate, |_| (http::Response::builder(), "x".to_owned())).await;
    let before = Fetcher::new(leading_to(options.clone(), &small)).unwrap();
    assert_eq!(outcome(&before.fetch(&request("https://a.example/")).await), "200");
    let (server, most) = match floods().into_iter().find(|flood| flood.name == name) {
        Some(flood) => (flood.server(&certificate).await, 2 * caps),
        // The server lives in this process too, and holds its pages.
        None => {
            let page = |_: &_| (http::Response::builder(), "x".repeat(8 << 20));
            (h2_server(&certificate, page).await, 2 * caps + (24 << 20))
        }
    };
    let fetcher = Fetcher::new(leading_to(options, &server)).unwrap();
    compare(&fetcher, &request("https://a.example/"), most).await;
}

async fn compare(fetcher: &Fetcher, request: &FetchRequest, grown_bytes_max: u64) {
    let before = peak_kib();
    for _ in 0..3 {
        assert_ne!(outcome(&fetcher.fetch(request).await), "200");
    }
    let grown = (peak_kib() - before) << 10;
    println!("grew by {} KiB", grown >> 10);
    assert!(grown <= grown_bytes_max, "grew by {grown} bytes, {grown_bytes_max} allowed");
}
