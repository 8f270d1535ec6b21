//! What hostile servers cost in memory, measured in a process of its own, in which nothing else happens.

use std::process::Command;
use std::sync::Arc;

use trapline_fetch::Fetcher;

use crate::door::Server;
use crate::floods::h2_server;
use crate::hostile::{BROTLI_BOMB, gzip, outcome, zstd_bomb};
use crate::web::{Certificate, Step, answering, leading_to, ok, options, page, request, scripted, send};

const ALONE: &str = "TRAPLINE_FETCH_MEASURED_ALONE";
const NAME: &str = "memory::hostile_servers_cost_no_more_memory_than_the_caps_allow";

/// The most the process ever had resident, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn hostile_servers_cost_no_more_memory_than_the_caps_allow() {
    if std::env::var_os(ALONE).is_none() {
        let program = std::env::current_exe().unwrap();
        let output =
            Command::new(program).args(["--exact", NAME, "--nocapture"]).env(ALONE, "yes").output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && out.contains("all servers measured"), "{out}\n{err}");
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(measure());
    println!("all servers measured");
}

async fn measure() {
    let encoded = |coding: &'static str, body: Vec<u8>| {
        answering(move |_| ok(&format!("Content-Encoding: {coding}\r\n"), &body))
    };
    let bomb = gzip(&vec![0; 64 << 20]);
    let head = "HTTP/1.1 200 OK\r\n";
    let servers: Vec<(&str, Server)> = vec![
        ("gzip", encoded("gzip", bomb.clone()).await),
        ("gzip in gzip", encoded("gzip, gzip", gzip(&bomb)).await),
        ("brotli", encoded("br", BROTLI_BOMB.to_vec()).await),
        ("zstd", encoded("zstd", zstd_bomb()).await),
        ("window", encoded("zstd", vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 1, 0, 0]).await),
        (
            "endless body",
            scripted(vec![Step::Read, send(format!("{head}\r\n")), Step::Endless(vec![b'x'; 9999])]).await,
        ),
        (
            "endless header",
            scripted(vec![Step::Read, send(format!("{head}A: ")), Step::Endless(vec![b'x'; 9999])]).await,
        ),
        (
            "endless 1xx",
            scripted(vec![Step::Read, Step::Endless(b"HTTP/1.1 100 C\r\n\r\n".repeat(99))]).await,
        ),
        (
            "large length",
            scripted(vec![
                Step::Read,
                send(format!("{head}Content-Length: 9223372036854775807\r\n\r\n")),
                Step::Hold,
            ])
            .await,
        ),
    ];
    let certificate = Certificate::new(&["a.example"]);
    let h2 = h2_server(&certificate, |_| (http::Response::builder(), "x".repeat(8 << 20))).await;
    let mut options = options();
    options.keep_raw = true;
    let fetcher = Fetcher::new(options.clone()).unwrap();
    let mut of_h2 = leading_to(options.clone(), &h2);
    of_h2.dial.roots = certificate.believed();
    let h2_fetcher = Fetcher::new(of_h2).unwrap();
    // Everything that is made once is there before it is measured.
    let small = answering(|_| ok("", "x")).await;
    fetcher.fetch(&page(&small, "/")).await;
    let servers = Arc::new(servers);
    let limits = options.limits;
    let (caps, brotli_window) = (limits.decoded_bytes_max as u64 + limits.encoded_bytes_max, 16 << 20);
    for (name, server) in servers.iter() {
        let before = peak_kib();
        for _ in 0..3 {
            let fetched = fetcher.fetch(&page(server, "/")).await;
            assert_ne!(outcome(&fetched), "200", "{name}");
        }
        let grown = (peak_kib() - before) << 10;
        let window = if *name == "brotli" { brotli_window } else { 0 };
        println!("{name}: grew by {} KiB", grown >> 10);
        assert!(grown <= 2 * caps + window, "{name} grew by {grown} bytes");
    }
    let before = peak_kib();
    for _ in 0..3 {
        let fetched = h2_fetcher.fetch(&request("https://a.example/")).await;
        assert_eq!(outcome(&fetched), "200 truncated=encoded_bytes", "{:?}", fetched.error);
    }
    let grown = (peak_kib() - before) << 10;
    println!("h2: grew by {} KiB", grown >> 10);
    // The server lives in this process too, and holds its pages.
    assert!(grown <= 2 * caps + (24 << 20), "h2 grew by {grown} bytes");
}
