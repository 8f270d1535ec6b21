//! Crawls that are killed as `kill -9` does, and go on.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::{HTML, Running, command, crawl, error, paths, site, until};
use crate::fetch::{ok, serve};
use crate::folder::Folder;

#[test]
fn a_killed_crawl_goes_on_where_it_was() {
    let folder = Folder::new("crawl-kill");
    let (address, asked) = site(120, "");
    let mut in_flight = BTreeMap::new();
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
        for url in leased(&store_in(&folder)) {
            *in_flight.entry(path_of(&url)).or_insert(0) += 1;
        }
    }
    assert!(in_flight.values().sum::<usize>() <= 4, "one at a time: {in_flight:?}");
    let output = crawl(address, &folder.path, &["--delay", "1ms"]);
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    let all = paths(&folder.path);
    let set: BTreeSet<_> = all.iter().collect();
    assert_eq!(set.len(), all.len(), "each visit that counts has one line");
    // All pages, two beyond the last, and the one with a query.
    assert_eq!(set.len(), 120 + 2 + 1, "{set:?}");
    assert_asked_once(&asked.lock().unwrap(), &in_flight);
}

/// Each page once, and once more for each kill at which it was in flight.
pub(super) fn assert_asked_once(asked: &[String], in_flight: &BTreeMap<String, usize>) {
    let mut counts = BTreeMap::new();
    for path in asked.iter().filter(|path| *path != "/robots.txt") {
        *counts.entry(path.clone()).or_insert(0) += 1;
    }
    for (path, count) in counts {
        let lost = in_flight.get(&path).copied().unwrap_or(0);
        assert!(count <= 1 + lost, "{path} was asked for {count} times, and in flight at {lost} kills");
    }
}

/// What is in flight in a store whose crawler is dead: granted, and not settled.
pub(crate) fn leased(store: &str) -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_trapline"))
        .args(["frontier", "--store", store, "--json", "leases"])
        .output()
        .expect("the binary runs");
    assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    let text = String::from_utf8(output.stdout).expect("it is text");
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("it is JSON"));
    lines.map(|lease| lease["url"].as_str().expect("a lease has a URL").to_owned()).collect()
}

/// The store in the folder of a crawl.
fn store_in(folder: &Folder) -> String {
    format!("disk:{}", folder.path.join("store").display())
}

pub(super) fn path_of(url: &str) -> String {
    url[url[8..].find('/').expect("a path") + 8..].to_owned()
}

/// Sitemaps are found through robots.txt, which is asked for once: who dies at any moment after that must not forget them.
#[test]
fn a_killed_crawl_reads_its_sitemaps_to_the_end() {
    let folder = Folder::new("crawl-kill-sitemaps");
    let asked = super::Asked::default();
    let log = Arc::clone(&asked);
    let address = serve(move |path, head| {
        log.lock().expect("nobody panics with it").push(path.to_owned());
        let host =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("host: ").map(str::to_owned));
        let base = format!("http://{}", host.unwrap_or_default());
        let list = |what: &str, item: &str, paths: Vec<String>| {
            let items: String =
                paths.iter().map(|path| format!("<{item}><loc>{base}{path}</loc></{item}>")).collect();
            let space = "http://www.sitemaps.org/schemas/sitemap/0.9";
            ok("Content-Type: application/xml\r\n", &format!("<{what} xmlns='{space}'>{items}</{what}>"))
        };
        match path {
            "/robots.txt" => ok("Content-Type: text/plain\r\n", &format!("Sitemap: {base}/index.xml\n")),
            "/index.xml" => list("sitemapindex", "sitemap", (0..3).map(|n| format!("/map{n}.xml")).collect()),
            "/map0.xml" | "/map1.xml" | "/map2.xml" => {
                list("urlset", "url", (0..10).map(|n| format!("/{}{n}", &path[4..5])).collect())
            }
            _ => ok(HTML, "a page"),
        }
    });
    let crawling = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trapline"));
        command.args([
            "crawl",
            &format!("http://{address}/"),
            "--allow-network",
            "127.0.0.0/8",
            "--delay",
            "5ms",
        ]);
        // The first page is in flight at more kills than a URL survives otherwise.
        command.args(["--set", "crawl.max_deliveries=0"]);
        command.args(["-q", "--contact", "a@b.test", "--out"]).arg(&folder.path);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let mut in_flight = BTreeMap::new();
    let mut kills = 0;
    // At each of the first requests, and then now and then.
    for wanted in [1, 2, 3, 4, 5, 6, 7, 8, 12, 20, 30] {
        if asked.lock().unwrap().len() >= wanted {
            continue;
        }
        let killed = Running(crawling().spawn().unwrap());
        until("so many requests", || asked.lock().unwrap().len() >= wanted);
        drop(killed);
        kills += 1;
        for url in leased(&store_in(&folder)) {
            *in_flight.entry(path_of(&url)).or_insert(0) += 1;
        }
    }
    assert!(kills >= 5 && in_flight.values().sum::<usize>() <= kills, "{kills} kills: {in_flight:?}");
    let output = crawling().output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let visited: BTreeSet<_> = paths(&folder.path).into_iter().collect();
    // The page that was named, the index, three sitemaps, and ten pages of each.
    assert_eq!(visited.len(), 1 + 1 + 3 + 30, "{visited:?}");
    assert_asked_once(&asked.lock().unwrap(), &in_flight);
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

/// A disk store has one owner: what a dead one had in flight is nobody's, unless there is another crawler.
#[test]
fn after_a_kill_a_disk_store_elsewhere_waits_for_leases_only_of_others() {
    for company in [false, true] {
        let name = format!("crawl-kill-elsewhere-{company}");
        let (folder, store) = (Folder::new(&name), Folder::new(&format!("{name}-store")));
        let asked: Arc<Mutex<Vec<(String, Instant)>>> = Arc::default();
        let log = Arc::clone(&asked);
        let address = serve(move |path, _| {
            let mut log = log.lock().expect("nobody panics with it");
            let again = log.iter().any(|(asked, _)| asked == path);
            log.push((path.to_owned(), Instant::now()));
            drop(log);
            match path {
                "/" => ok(HTML, "<a href=/slow>1</a>"),
                // The first time there is no answer before the kill.
                "/slow" if !again => loop {
                    std::thread::park();
                },
                _ => ok(HTML, "there it is"),
            }
        });
        let slow = || {
            let asked = asked.lock().unwrap();
            asked.iter().filter(|(asked, _)| asked == "/slow").map(|(_, at)| *at).collect::<Vec<_>>()
        };
        let lease = if company { "crawl.lease=4s" } else { "crawl.lease=10m" };
        let url = format!("disk:{}", store.path.display());
        let flags = ["--delay", "0", "-q", "--store", &url, "--set", lease];
        let other = Folder::new(&format!("{name}-other"));
        if company {
            // It has done its part, and may have something in flight, for all one knows.
            let output = crawl(address, &other.path, &[&flags[..], &["--max-pages", "1"]].concat());
            assert_eq!(output.status.code(), Some(3), "{}", error(&output));
        }
        let mut first = command(address, &folder.path, &flags);
        let killed = Running(first.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        until("the page is asked for", || !slow().is_empty());
        drop(killed);
        let output = crawl(address, &folder.path, &flags);
        assert_eq!(output.status.code(), Some(0), "{}", error(&output));
        let waited = slow()[1].duration_since(slow()[0]);
        let expected = if company { 3..60 } else { 0..60 };
        assert!(expected.contains(&waited.as_secs()), "{company}: {waited:?}");
    }
}
