//! Thousands of fetches at once, against a server that answers nobody before all are there.

use std::fmt::Write;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::folder::Folder;

const FETCHES: usize = 5000;

/// How long the last one may take to arrive.
const PATIENCE: Duration = Duration::from_secs(90);

/// A server that answers when so many requests wait at once, or when its patience is over.
struct Gathering {
    waiting: AtomicUsize,
    most: AtomicUsize,
    all_there: Semaphore,
}

async fn serve(listener: TcpListener, gathering: Arc<Gathering>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let gathering = Arc::clone(&gathering);
        tokio::spawn(async move {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                if stream.read_buf(&mut head).await.unwrap_or(0) == 0 {
                    return;
                }
            }
            let waiting = gathering.waiting.fetch_add(1, Ordering::SeqCst) + 1;
            gathering.most.fetch_max(waiting, Ordering::SeqCst);
            if waiting == FETCHES {
                gathering.all_there.add_permits(FETCHES);
            }
            let _ = tokio::time::timeout(PATIENCE, gathering.all_there.acquire()).await;
            gathering.waiting.fetch_sub(1, Ordering::SeqCst);
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
                .await;
        });
    }
}

#[test]
fn five_thousand_fetches_are_in_flight_at_once() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })
        .expect("it may be as high as it may be");
    let folder = Folder::new("crawl-in-flight");
    fs::create_dir_all(&folder.path).expect("a folder can be made");
    let seeds = folder.path.join("seeds.txt");
    let hosts = (0..FETCHES).fold(String::new(), |mut lines, host| {
        let _ = writeln!(lines, "http://h{host}.test/");
        lines
    });
    fs::write(&seeds, hosts).expect("a file can be written");

    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime starts");
    let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).expect("a port is free");
    let address: SocketAddr = listener.local_addr().expect("it has an address");
    let gathering = Arc::new(Gathering {
        waiting: AtomicUsize::new(0),
        most: AtomicUsize::new(0),
        all_there: Semaphore::new(0),
    });
    runtime.spawn(serve(listener, Arc::clone(&gathering)));

    let output = Command::new(env!("CARGO_BIN_EXE_trapline"))
        .args([
            "crawl",
            "--quiet",
            "--ignore-robots",
            "--contact",
            "a@b.test",
            "--allow-network",
            "127.0.0.0/8",
        ])
        .args(["--concurrency", "5000", "--resolve", &format!("*={address}"), "--seeds"])
        .arg(&seeds)
        .arg("--out")
        .arg(&folder.path)
        .args(["--set", "crawl.adaptive=false", "--set", "limits.first_byte_timeout=3m"])
        .stdin(Stdio::null())
        .output()
        .expect("the binary was built and runs");
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{complaints}");
    assert_eq!(gathering.most.load(Ordering::SeqCst), FETCHES, "{complaints}");
    let lines = fs::read_to_string(folder.path.join("pages.jsonl")).expect("there are results");
    assert_eq!(lines.lines().filter(|line| line.contains("\"status\":200")).count(), FETCHES);
}
