//! The scenarios in `docs/scenarios`, each as it is read from its file, on a generated web in virtual time: in which order are hosts
//! served?

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use trapline_core::{IdentityKey, Timestamp};
use trapline_crawl::candidate::Prospect;
use trapline_crawl::ports::{Fetch, World};
use trapline_crawl::{Crawl, CrawlEnd, CrawlHandle, Response, WebRequest};
use trapline_frontier::{CrawlChange, Frontier, MemoryStore, QueueChange};
use trapline_sim::{Random, Response as Found, VirtualWorld, Web, WebSize};

use super::plan;
use crate::config::{self, FileConfig, Flags};

const BEGIN: Timestamp = Timestamp::from_millis(1_000_000);

/// A generated web, and who was asked, in order.
#[derive(Clone)]
struct Asked {
    web: Arc<Web>,
    world: VirtualWorld,
    hosts: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Fetch for Asked {
    async fn fetch(&self, request: &WebRequest) -> Response {
        self.hosts
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .push(host_of(request.url.as_str()));
        let found = self.web.fetch(request.url.as_str(), self.world.now(), &mut Random::of(&[1]));
        self.world.sleep_until(self.world.now() + found.took).await;
        let html = vec![("content-type".to_owned(), "text/html".into())];
        match found.response {
            Found::Page { links, .. } => {
                let body: String = links.iter().map(|link| format!("<a href='{link}'>x</a>")).collect();
                Response { status: Some(200), headers: html, body: body.into(), ..Response::default() }
            }
            // What goes wrong is not there: the order is not about retries.
            _ => Response { status: Some(404), ..Response::default() },
        }
    }
}

fn host_of(url: &str) -> String {
    url.split('/').nth(2).unwrap_or_default().to_owned()
}

/// Reads a scenario, with a fetch at a time and no pause, so that nothing but the scenario decides.
fn scenario(file: &str) -> FileConfig {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenarios").join(file);
    let flags = Flags::default().text("--delay", "pace.delay", Some("0")).text(
        "--concurrency",
        "crawl.concurrency",
        Some("1"),
    );
    let loaded = config::load(Some(&path), [], &flags);
    loaded.unwrap_or_else(|refused| panic!("{file}: {refused}")).config
}

/// Crawls a web of four hosts as a scenario says, while somebody does something. Answers whom it asked, in order, and the names of the
/// hosts in the order in which they were named.
fn crawl<F>(
    config: &FileConfig,
    pages: u32,
    drive: impl FnOnce(CrawlHandle, Frontier, Asked) -> F,
) -> (Vec<String>, Vec<String>, CrawlEnd)
where
    F: Future<Output = ()> + Send + 'static,
{
    let web = Arc::new(Web::generate(3, WebSize { hosts: 4, pages }));
    let world = VirtualWorld::new(BEGIN, 1);
    let asked = Asked { web: Arc::clone(&web), world: world.clone(), hosts: Arc::default() };
    let names: Vec<_> = web.hosts().iter().map(trapline_sim::Host::name).collect();
    let seeds: Vec<_> = names.iter().filter_map(|name| Prospect::seed(&format!("https://{name}/"))).collect();
    let end = world.run(async {
        let builder =
            plan::frontier(config).expect("a frontier can be made of it").key(IdentityKey::from_seed(1));
        let frontier = builder.open(MemoryStore::new(), world.now()).await.expect("memory is there");
        let options = plan::crawl_options(config).expect("a crawl can be made of it");
        let crawl = Crawl::builder(frontier.clone(), Arc::new(world.clone())).options(options);
        let crawl = crawl.build(Arc::new(asked.clone())).expect("chains that exist");
        let handle = crawl.handle();
        let driver = drive(handle.clone(), frontier, asked.clone());
        world.spawn(Box::pin(async move {
            handle.seed(seeds).await;
            handle.end_seeding().await;
            driver.await;
        }));
        crawl.run().await.expect("a crawl without trouble of its own")
    });
    let hosts = asked.hosts.lock().expect("nobody panics with it").clone();
    (hosts, names, end)
}

/// Who was asked how often in a row.
fn runs(asked: &[String]) -> Vec<(&str, usize)> {
    asked.chunk_by(|before, after| before == after).map(|run| (run[0].as_str(), run.len())).collect()
}

fn count(asked: &[String], host: &str) -> usize {
    asked.iter().filter(|other| *other == host).count()
}

#[test]
fn round_robin_gives_each_host_its_turn() {
    let (asked, names, end) = crawl(&scenario("round-robin.toml"), 400, async |_, _, _| ());
    assert_eq!(end, CrawlEnd::Exhausted);
    // Until the smallest host runs out of pages.
    for turn in asked.chunks(names.len()).take(30) {
        assert_eq!(turn, names);
    }
    assert!(asked.len() > 300, "{}", asked.len());
}

#[test]
fn site_first_works_through_one_host_after_the_other() {
    let (asked, names, end) = crawl(&scenario("site-first.toml"), 400, async |_, _, _| ());
    assert_eq!(end, CrawlEnd::Exhausted);
    let runs = runs(&asked);
    assert_eq!(runs[..4].iter().map(|(host, _)| *host).collect::<Vec<_>>(), names);
    assert!(runs[..4].iter().all(|(_, pages)| *pages > 40), "{runs:?}");
    // Some pages are linked to by hosts alone that come later.
    let found_later: usize = runs[4..].iter().map(|(_, pages)| pages).sum();
    assert!(found_later < asked.len() / 50, "{runs:?}");
}

#[test]
fn budgeted_rotation_changes_hosts_after_a_hundred_pages() {
    let (asked, names, end) = crawl(&scenario("budgeted-rotation.toml"), 2000, async |_, _, _| ());
    assert_eq!(end, CrawlEnd::Exhausted);
    let runs = runs(&asked);
    let first: Vec<_> = names.iter().map(|name| (name.as_str(), 100)).collect();
    assert_eq!([&runs[..4], &runs[4..8]], [&first[..], &first[..]], "{runs:?}");
    // Who has nothing more is left out, and the others go on in turn, until one is alone.
    assert!(runs.len() > 16 && runs[..16].iter().all(|(_, pages)| *pages <= 100), "{runs:?}");
}

#[test]
fn capped_effort_ends_with_the_budget_and_goes_on_when_it_is_raised() {
    let config = scenario("capped-effort.toml");
    let marks: Arc<Mutex<Vec<Vec<String>>>> = Arc::default();
    let noted = Arc::clone(&marks);
    let (asked, names, end) = crawl(&config, 4000, |handle, frontier, asked| async move {
        let note = || {
            let asked = asked.hosts.lock().unwrap().clone();
            noted.lock().unwrap().push(asked);
        };
        let a_while = || {
            // Longer than all that could be fetched until then.
            let until = asked.world.now() + Duration::from_secs(24 * 3600);
            asked.world.sleep_until(until)
        };
        let set = |budget: &str| CrawlChange::Set(vec![("queue_budget".to_owned(), budget.to_owned())]);
        a_while().await;
        note();
        frontier.steer_crawl(asked.world.now(), set("700")).await.unwrap();
        a_while().await;
        note();
        let first = asked.web.hosts()[0].name();
        let terms = trapline_core::Terms { queue_budget: Some(800), ..trapline_core::Terms::default() };
        frontier.steer_queue(asked.world.now(), &first, QueueChange::Terms(terms)).await.unwrap();
        a_while().await;
        note();
        handle.stop().await;
    });
    assert_eq!(end, CrawlEnd::Stopped);
    let marks = marks.lock().unwrap().clone();
    let counts: Vec<Vec<usize>> =
        marks.iter().map(|asked| names.iter().map(|name| count(asked, name)).collect()).collect();
    assert!(
        counts.iter().all(|counts| counts[3] < 500),
        "the last host has less than its budget: {counts:?}"
    );
    assert_eq!(counts[0][..3], [500, 500, 500], "the budget is a cap");
    let all = counts[1][2];
    assert!((501..700).contains(&all), "the third has all its pages now: {all}");
    assert_eq!(counts[1][..2], [700, 700], "a larger one brings them back");
    assert_eq!(counts[2][..3], [800, 700, all], "one host alone may have more");
    let first: Vec<_> = names.iter().map(|name| (name.as_str(), 100)).collect();
    assert_eq!(runs(&asked)[..3], first[..3], "in turns of a hundred");
}
