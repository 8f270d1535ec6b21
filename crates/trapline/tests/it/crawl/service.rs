//! Crawls whose store is a service: `trapline crawl --store grpc://…`, one, several at once, and while the service is killed.
#![allow(clippy::unwrap_used, reason = "helpers are parts of the tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::net::SocketAddr;
use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use super::killed::{assert_asked_once, path_of};
use super::{Asked, Running, command, crawl, error, leased, paths, site, site_that, trapline, until};
use crate::folder::Folder;
use crate::operate::ask;
use crate::service::Service;

const PAGES: usize = 120;

/// All of the site, two pages beyond its last, and the one with a query.
fn expected() -> BTreeSet<String> {
    let pages = (1..PAGES + 2).map(|number| format!("/p{number}"));
    pages.chain(["/".to_owned(), "/p1?sort=up".to_owned()]).collect()
}

/// Each crawler fetches one page at a time, and the host is asked for three.
fn flags(store: &str) -> [&str; 8] {
    ["--delay", "2ms", "--concurrency", "1", "--per-host", "3", "--store", store]
}

/// How many connections of gRPC are open.
fn callers(service: &Service) -> usize {
    let metrics = service.get("/metrics");
    let line = metrics.lines().find_map(|line| line.strip_prefix("trapline_connections{port=\"grpc\"} "));
    line.unwrap().parse().unwrap()
}

/// Crawlers of one site that share a service, each with a folder of its own.
struct Crawlers {
    folders: Vec<Folder>,
    running: Vec<Running>,
}

impl Crawlers {
    fn start(name: &str, count: usize, address: SocketAddr, more: &[&str]) -> Self {
        let folders: Vec<_> = (0..count).map(|number| Folder::new(&format!("{name}-{number}"))).collect();
        let start = |folder: &Folder| {
            let mut command = command(address, &folder.path, more);
            Running(command.arg("-q").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
        };
        Self { running: folders.iter().map(start).collect(), folders }
    }

    /// Waits until all have ended by themselves.
    fn end(&mut self) {
        for running in &mut self.running {
            until("it ends", || running.0.try_wait().unwrap().is_some());
            let status = running.0.wait().unwrap();
            let mut told = String::new();
            running.0.stderr.take().unwrap().read_to_string(&mut told).unwrap();
            assert_eq!(status.code(), Some(0), "{told}");
        }
    }

    /// What each of them says it has fetched.
    fn pages(&self) -> Vec<Vec<String>> {
        self.folders.iter().map(|folder| paths(&folder.path)).collect()
    }
}

#[test]
fn a_crawl_keeps_all_it_knows_with_a_service() {
    let (folder, store) = (Folder::new("crawl-service"), Folder::new("crawl-service-store"));
    let service = Service::start(&store.url(), &[]);
    let (address, asked) = site(PAGES, "");
    let url = format!("grpc://{}", service.grpc);
    let more = ["--delay", "0", "--store", &url, "-q"];
    let crawled = |output: Output| assert_eq!(output.status.code(), Some(0), "{}", error(&output));
    crawled(crawl(address, &folder.path, &more));
    let visited = paths(&folder.path);
    assert_eq!((visited.len(), visited.into_iter().collect()), (PAGES + 3, expected()));
    assert_asked_once(&asked.lock().unwrap(), &BTreeMap::new());
    assert!(!folder.path.join("store").exists(), "nothing of it is kept here");

    // Once more: all is known.
    let before = asked.lock().unwrap().len();
    crawled(crawl(address, &folder.path, &more));
    assert_eq!(asked.lock().unwrap().len(), before);
    let reported = trapline(&["report", "crawl"], &folder.path);
    assert!(reported.status.success(), "{}", error(&reported));
}

#[test]
fn three_crawlers_of_one_service_fetch_each_page_once() {
    let store = Folder::new("crawl-three-store");
    let service = Service::start(&store.url(), &[]);
    let asked = Asked::default();
    let log = Arc::clone(&asked);
    // The first pages that the home page leads to are answered when all three are asked for at once: each by another crawler.
    let (meeting, waiting) = (Arc::new(Barrier::new(3)), Arc::new(AtomicUsize::new(0)));
    let address = site_that(PAGES, "", move |path| {
        log.lock().unwrap().push(path.to_owned());
        if !["/", "/robots.txt"].contains(&path) && waiting.fetch_add(1, Ordering::SeqCst) < 3 {
            meeting.wait();
        }
    });
    let url = format!("grpc://{}", service.grpc);
    let mut crawlers = Crawlers::start("crawl-three", 3, address, &flags(&url));
    crawlers.end();
    let pages = crawlers.pages();
    let all: Vec<_> = pages.concat();
    assert_eq!((all.len(), all.into_iter().collect()), (PAGES + 3, expected()));
    assert!(pages.iter().all(|pages| !pages.is_empty()), "{pages:?}");
    let asked = asked.lock().unwrap();
    assert_asked_once(&asked, &BTreeMap::new());
    assert_eq!(asked.iter().filter(|path| *path != "/robots.txt").count(), PAGES + 3);
    assert_eq!(leased(&url), Vec::<String>::new());
}

/// Who crawls waits until the service is back, and tells it then what it could not.
#[test]
fn crawlers_go_on_by_themselves_when_their_service_is_killed_and_comes_back() {
    const KILLS: usize = 3;
    let store = Folder::new("crawl-service-killed-store");
    let mut service = Service::start(&store.url(), &[]);
    let (asked, is_open) = (Asked::default(), Arc::new(AtomicBool::new(false)));
    let (log, may_answer) = (Arc::clone(&asked), Arc::clone(&is_open));
    // Nothing comes before all are there, however late the last one is.
    let address = site_that(PAGES, "", move |path| {
        log.lock().unwrap().push(path.to_owned());
        while !may_answer.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
    });
    let url = format!("grpc://{}", service.grpc);
    let flags = [&flags(&url)[..], &["--set", "crawl.lease=3s"]].concat();
    let mut crawlers = Crawlers::start("crawl-service-killed", 3, address, &flags);
    until("all are there", || callers(&service) == 3);
    is_open.store(true, Ordering::Relaxed);
    let mut in_flight = BTreeMap::new();
    for kill in 1..=KILLS {
        let goal = kill * PAGES / (KILLS + 1);
        until("so many pages", || asked.lock().unwrap().len() >= goal);
        service.kill();
        for url in leased(&store.url()) {
            *in_flight.entry(path_of(&url)).or_insert(0) += 1;
        }
        service.start_again(&store.url(), &[]);
    }
    crawlers.end();
    let all: BTreeSet<_> = crawlers.pages().concat().into_iter().collect();
    assert_eq!(all, expected());
    assert_asked_once(&asked.lock().unwrap(), &in_flight);
    assert_eq!(leased(&url), Vec::<String>::new());
    let stats = &ask(&store, &["stats"], "", 0)[0];
    assert_eq!(stats["urls"]["done"], PAGES + 3, "{stats}");
}
