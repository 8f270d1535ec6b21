//! How politely: the time between requests, how many at once, how many at most, and none when it is paused.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use trapline_testing::{HostileServer, Manner, Nginx, Site, Visits, documentation};

use super::{crawl, run_to_budgets};
use crate::folder::Folder;

/// A clock may be read this much too late or too early.
const TOLERANCE_MS: i64 = 5;

#[test]
fn hosts_are_left_alone_for_the_delay_and_give_no_page_beyond_the_budget() {
    let server = Nginx::start(documentation().unwrap()).unwrap();
    let folder = Folder::new("pace");
    run_to_budgets(crawl(&server, &folder.path).args(["--delay", "150ms", "--budget", "25"]));
    let visits = server.take_visits().unwrap();
    for site in server.sites() {
        let visits = Visits::of(&visits, site.name());
        let (gap, after) = visits.shortest_gap_ms().unwrap();
        println!("{}: at least {gap} ms", site.name());
        assert!(gap >= 150 - TOLERANCE_MS, "{}: {gap} ms before {after:?}", site.name());
        assert_eq!((visits.paths().len(), visits.repeated()), (25, BTreeMap::new()), "{}", site.name());
    }
}

#[test]
fn no_more_requests_at_once_than_a_host_is_to_have() {
    // Slow enough that requests overlap as much as they may.
    let sites = documentation().unwrap().into_iter().filter(|site| site.name() == "sqlite.example");
    let server = Nginx::start(sites.map(|site| site.line("limit_rate 200k;")).collect()).unwrap();
    let folder = Folder::new("at-once");
    run_to_budgets(crawl(&server, &folder.path).args(["--delay", "0", "--per-host", "3", "--budget", "60"]));
    let visits = Visits::of(&server.take_visits().unwrap(), "sqlite.example");
    assert_eq!((visits.most_at_once(), visits.paths().len()), (3, 60));
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    u64::try_from(now.as_millis()).expect("it is not the end of time")
}

/// Waits until a server has answered so many requests.
pub(super) fn wait_for(server: &Nginx, answered: usize) {
    let patience = Instant::now() + Duration::from_secs(120);
    while server.answered() < answered {
        assert!(Instant::now() < patience, "{} of {answered} requests have come", server.answered());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn nothing_is_asked_for_after_a_pause_is_acknowledged() {
    let server = Nginx::start(documentation().unwrap()).unwrap();
    let folder = Folder::new("pause");
    let steer = |verb: &str| {
        let done = Command::new(env!("CARGO_BIN_EXE_trapline")).arg(verb).arg(&folder.path).output().unwrap();
        let said = [done.stdout, done.stderr].concat();
        assert_eq!(done.status.code(), Some(0), "{verb}: {}", String::from_utf8_lossy(&said));
    };
    let mut flags = crawl(&server, &folder.path);
    let mut crawling = flags.args(["--delay", "10ms", "--budget", "100"]).spawn().unwrap();
    for pause in 1..=3 {
        wait_for(&server, pause * 60);
        steer("pause");
        let paused_ms = now_ms();
        // Long enough for each host to have had its turn thirty times.
        std::thread::sleep(Duration::from_millis(300));
        let resumed_ms = now_ms();
        steer("resume");
        let visits = server.take_visits().unwrap();
        let late: Vec<_> =
            visits.iter().filter(|visit| visit.began_ms > paused_ms && visit.began_ms < resumed_ms).collect();
        assert!(late.is_empty(), "paused at {paused_ms}: {late:?}");
    }
    assert_eq!(crawling.wait().unwrap().code(), Some(3), "budgets hold back the rest");
}

/// Sites of pages that link to the next ones.
fn generated(folder: &Path, count: usize, pages: usize) -> Vec<Site> {
    std::fs::create_dir_all(folder).expect("a folder can be made");
    let links: String = (1..pages).map(|page| format!("<a href=/{page}.html>{page}</a>\n")).collect();
    std::fs::write(folder.join("index.html"), links).expect("a page can be written");
    for page in 1..pages {
        std::fs::write(folder.join(format!("{page}.html")), "<p>A page").expect("a page can be written");
    }
    (0..count).map(|site| Site::new(&format!("good-{site}.example"), folder)).collect()
}

#[test]
fn hostile_hosts_take_nothing_from_the_good_ones() {
    const SITES: usize = 20;
    const PAGES: usize = 40;
    const ROUNDS: usize = 4;
    let web = Folder::new("good-sites");
    let server = Nginx::start(generated(&web.path, SITES, PAGES)).unwrap();
    // How long the good ones take, with company.
    let took_ms = |name: &str, company: &[HostileServer]| {
        let folder = Folder::new(name);
        let mut command = crawl(&server, &folder.path);
        command.args(company.iter().map(HostileServer::url)).args([
            "--delay",
            "100ms",
            "--concurrency",
            "100",
        ]);
        let mut crawling = command.spawn().unwrap();
        // Pages and robots.txt of each. The hostile ones may go on for longer.
        let before = server.answered();
        wait_for(&server, before + SITES * (PAGES + 1));
        let visits = server.take_visits().unwrap();
        let pages = visits.iter().filter(|visit| visit.path != "/robots.txt").count();
        assert_eq!(pages, SITES * PAGES);
        crawling.kill().unwrap();
        crawling.wait().unwrap();
        let first = visits.iter().map(|visit| visit.began_ms).min().unwrap();
        visits.iter().map(|visit| visit.ended_ms).max().unwrap() - first
    };
    let company: Vec<_> = (0..30)
        .map(|number| {
            let manner = Manner::ALL[number % Manner::ALL.len()];
            HostileServer::start(Ipv4Addr::new(127, 0, 50, u8::try_from(number).unwrap() + 1), manner)
                .unwrap()
        })
        .collect();
    // What else this machine has to do can only make it worse, and not each time.
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let alone_ms = took_ms("good-alone", &[]);
        let beside_ms = took_ms("good-beside", &company);
        assert!(company.iter().all(|server| server.requests() > 0), "each was asked");
        rounds.push(format!("{alone_ms} ms alone, {beside_ms} ms beside hostile hosts"));
        println!("{}", rounds[rounds.len() - 1]);
        if beside_ms * 100 <= alone_ms * 105 {
            return;
        }
    }
    panic!("never within 5 %: {rounds:?}");
}
