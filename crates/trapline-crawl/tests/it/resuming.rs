//! What a second run on the same store knows.

use std::time::Duration;

use trapline_crawl::CrawlEnd;
use trapline_crawl::candidate::Prospect;
use trapline_crawl::ports::World;

use crate::sites::{Sites, page, redirect};

fn site() -> Sites {
    Sites::of(&[("http://a.test/", &["/1", "/2"]), ("http://a.test/1", &["/3", "http://b.test/"])])
}

#[test]
fn a_second_run_knows_the_scope_before_its_first_claim() {
    let sites = site();
    let stopped = sites.clone();
    sites.crawl_while(&["http://a.test/"], |handle, _| async move {
        stopped.sleep(Duration::from_millis(500)).await;
        handle.stop().await;
    });
    assert_eq!(sites.asked(), ["http://a.test/"]);
    assert_eq!(sites.crawl(&[]), CrawlEnd::Exhausted);
    assert_eq!(sites.asked(), ["", "1", "2", "3"].map(|path| format!("http://a.test/{path}")));
    assert_eq!(sites.skipped()[0].0, "http://b.test/");
}

#[test]
fn a_second_run_knows_seeds_that_a_redirect_made() {
    let sites =
        Sites::of(&[("http://b.test/", &["/1", "/2"])]).put("http://a.test/", [redirect("http://b.test/")]);
    let stopped = sites.clone();
    sites.crawl_while(&["http://a.test/"], |handle, _| async move {
        stopped.sleep(Duration::from_millis(500)).await;
        handle.stop().await;
    });
    assert_eq!(sites.asked(), ["http://a.test/", "http://b.test/"]);
    sites.crawl(&[]);
    assert_eq!(sites.asked().len(), 4);
}

#[test]
fn a_run_after_the_end_fetches_nothing() {
    let sites = site();
    sites.crawl(&["http://a.test/"]);
    let asked = sites.asked();
    assert_eq!(sites.crawl(&["http://a.test/"]), CrawlEnd::Exhausted);
    assert_eq!(sites.asked(), asked);
}

#[test]
fn two_crawls_on_one_store_share_the_work_and_the_scope() {
    let hosts: Vec<_> = (0..6).map(|n| format!("http://h{n}.test/")).collect();
    let sites = hosts.iter().fold(Sites::new(), |sites, host| sites.put(host, [page(&["/1", "/2", "/3"])]));
    let one = sites.clone().with(|options| options.concurrency = 2);
    let seeds: Vec<_> = hosts.iter().map(|host| Prospect::seed(host).unwrap()).collect();
    sites.world.run(async {
        let crawls = [one.builder().await, one.builder().await];
        let [first, second] = crawls.map(|builder| builder.build(std::sync::Arc::new(one.clone())).unwrap());
        let (handle, other) = (first.handle(), second.handle());
        sites.world.spawn(Box::pin(async move {
            // Only one of them is told of the seeds.
            handle.seed(seeds).await;
            handle.end_seeding().await;
            other.end_seeding().await;
        }));
        let ends = futures_util::future::join(first.run(), second.run()).await;
        assert_eq!((ends.0.unwrap(), ends.1.unwrap()), (CrawlEnd::Exhausted, CrawlEnd::Exhausted));
    });
    assert_eq!(sites.asked().len(), 24);
    assert!(sites.skipped().is_empty());
}

#[test]
fn a_crash_costs_a_lease_and_no_page() {
    let sites = site();
    // The loop is dropped in the middle of a fetch: nothing is given back.
    sites.world.run(async {
        let crawl = sites.builder().await.build(std::sync::Arc::new(sites.clone())).unwrap();
        let handle = crawl.handle();
        let seed = async {
            handle.seed(vec![Prospect::seed("http://a.test/").unwrap()]).await;
            sites.sleep(Duration::from_millis(5)).await;
        };
        futures_util::future::select(Box::pin(crawl.run()), Box::pin(seed)).await;
    });
    assert_eq!((sites.seen().len(), sites.seen()[0].ended), (1, None));
    let crashed = sites.world.now();
    sites.crawl(&[]);
    assert_eq!(sites.asked(), ["", "", "1", "2", "3"].map(|path| format!("http://a.test/{path}")));
    let waited = sites.seen()[1].began.since(crashed);
    assert!(waited <= Duration::from_secs(60), "{waited:?}");
}
