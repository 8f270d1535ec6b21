//! Crawls that are killed as `kill -9` does, and go on.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::{HTML, Running, command, crawl, error, paths, site, until};
use crate::fetch::{ok, serve};
use crate::folder::Folder;

#[test]
fn a_killed_crawl_goes_on_where_it_was() {
    let folder = Folder::new("crawl-kill");
    let (address, asked) = site(120, "");
    for kill in 0..4 {
        let mut crawl = command(address, &folder.path, &["--delay", "2ms", "-q"]);
        let mut crawl = crawl.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let wanted = 25 * (kill + 1);
        let begun = Instant::now();
        while asked.lock().unwrap().len() < wanted && begun.elapsed() < Duration::from_secs(20) {
            std::thread::yield_now();
        }
        // As `kill -9` does.
        crawl.kill().unwrap();
        crawl.wait().unwrap();
    }
    let output = crawl(address, &folder.path, &["--delay", "1ms"]);
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    let all = paths(&folder.path);
    let set: BTreeSet<_> = all.iter().collect();
    assert_eq!(set.len(), all.len(), "each visit that counts has one line");
    // All pages, two beyond the last, and the one with a query.
    assert_eq!(set.len(), 120 + 2 + 1, "{set:?}");
    let asked = asked.lock().unwrap();
    let pages = asked.iter().filter(|path| *path != "/robots.txt").count();
    assert!(pages <= 123 + 4, "at most the one in flight is fetched twice: {pages}");
}

/// What robots.txt asks for is known to whoever comes after the kill, before he asks for it himself.
#[test]
fn after_a_kill_a_host_is_left_alone_as_long_as_its_robots_txt_asks_for() {
    let folder = Folder::new("crawl-kill-delay");
    let asked: Arc<Mutex<Vec<(String, Instant)>>> = Arc::default();
    let log = Arc::clone(&asked);
    let address = serve(move |path, _| {
        let again = {
            let mut log = log.lock().expect("nobody panics with it");
            log.push((path.to_owned(), Instant::now()));
            log.iter().filter(|(asked, _)| asked == path).count() > 1
        };
        match path {
            "/robots.txt" => ok("Content-Type: text/plain\r\n", "User-agent: *\nCrawl-delay: 1\n"),
            "/" => ok(HTML, "<a href=/slow>1</a>"),
            // The first time there is no answer before the kill.
            _ if !again => loop {
                std::thread::park();
            },
            _ => ok(HTML, "there it is"),
        }
    });
    let seen = |path: &str| {
        let asked = asked.lock().unwrap();
        asked.iter().filter(|(asked, _)| asked == path).map(|(_, at)| *at).collect::<Vec<_>>()
    };
    let spawned = command(address, &folder.path, &["--delay", "0", "-q"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let killed = Running(spawned);
    until("the page is asked for", || !seen("/slow").is_empty());
    drop(killed);
    let gone = Instant::now();
    let output = crawl(address, &folder.path, &["--delay", "0", "-q"]);
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    assert_eq!((seen("/robots.txt").len(), seen("/slow").len()), (1, 2));
    let waited = seen("/slow")[1].duration_since(gone);
    assert!(waited >= Duration::from_secs(1), "{waited:?}");
}
