//! What others may do to a crawl that runs.

use std::time::Duration;

use trapline_core::Terms;
use trapline_crawl::CrawlEnd;
use trapline_crawl::candidate::{HostTerms, Prospect};
use trapline_frontier::{Admission, CrawlChange, CrawlState, QueueChange, UrlState};

use crate::sites::{RobotsTxt, Sites, hosts, page};

const SECONDS: fn(u64) -> Duration = Duration::from_secs;

/// Two hosts with pages that take 2 s each.
fn slow() -> Sites {
    ["a", "b"].into_iter().fold(Sites::new(), |sites, host| {
        let links = ["/1", "/2", "/3", "/4"];
        let sites = sites.put(&format!("http://{host}.test/"), [page(&links).taking(SECONDS(2))]);
        links.iter().fold(sites, |sites, path| {
            sites.put(&format!("http://{host}.test{path}"), [page(&[]).taking(SECONDS(2))])
        })
    })
}

const SEEDS: [&str; 2] = ["http://a.test/", "http://b.test/"];

async fn state(sites: &Sites, url: &str) -> UrlState {
    sites.frontier().await.url(sites.world.now(), url).await.unwrap().state
}

#[test]
fn a_stop_lands_what_is_in_flight() {
    let sites = slow();
    let watch = sites.clone();
    let end = sites.crawl_while(&SEEDS, |handle, _| async move {
        watch.sleep(SECONDS(4)).await;
        handle.stop().await;
    });
    assert_eq!(end, CrawlEnd::Stopped);
    assert_eq!((sites.seen().len(), sites.pages().len()), (4, 4));
    sites.world.run(async {
        assert_eq!(state(&sites, "http://a.test/1").await, UrlState::Done);
        assert_eq!(state(&sites, "http://a.test/2").await, UrlState::Pending);
    });
    // The next run does the rest.
    assert_eq!(sites.crawl(&[]), CrawlEnd::Exhausted);
    assert_eq!((sites.seen().len(), sites.pages().len()), (10, 10));
}

#[test]
fn an_abort_gives_back_what_is_in_flight() {
    let sites = slow();
    let watch = sites.clone();
    let end = sites.crawl_while(&SEEDS, |handle, _| async move {
        watch.sleep(SECONDS(4)).await;
        handle.abort().await;
    });
    assert_eq!(end, CrawlEnd::Stopped);
    assert_eq!(sites.world.now().since(crate::sites::BEGIN), SECONDS(4));
    assert_eq!((sites.seen().len(), sites.pages().len()), (4, 2));
    sites.world.run(async {
        assert_eq!(state(&sites, "http://a.test/1").await, UrlState::Pending);
    });
    assert_eq!(sites.crawl(&[]), CrawlEnd::Exhausted);
    let given_up = sites.seen().iter().filter(|seen| seen.ended.is_none()).count();
    assert_eq!((given_up, sites.seen().len(), sites.pages().len()), (2, 12, 10));
    // They were asked, if in vain: so they are left alone.
    assert_eq!(sites.seen()[4].began.since(crate::sites::BEGIN), SECONDS(5));
}

#[test]
fn after_an_abort_hosts_are_left_alone_as_their_robots_txt_or_the_operator_says() {
    let robots = RobotsTxt { crawl_delay: Some(SECONDS(7)), ..RobotsTxt::default() };
    let sites = slow().robots("a.test", robots).with(|options| {
        let terms = HostTerms { hosts: hosts("b.test"), delay: Some(SECONDS(5)), ..HostTerms::default() };
        options.queue.hosts = vec![terms].into();
    });
    let watch = sites.clone();
    sites.crawl_while(&SEEDS, |handle, _| async move {
        watch.sleep(SECONDS(8)).await;
        handle.abort().await;
    });
    let (stopped, before) = (sites.world.now(), sites.seen().len());
    assert_eq!(sites.seen().iter().filter(|seen| seen.ended.is_none()).count(), 2, "{:?}", sites.seen());
    sites.crawl(&[]);
    let first = |host: &str| {
        let seen = sites.seen().into_iter().skip(before).find(|seen| seen.url.contains(host)).unwrap();
        seen.began.since(stopped)
    };
    assert_eq!((first("a.test"), first("b.test")), (SECONDS(7), SECONDS(5)));
}

#[test]
fn after_an_abort_hosts_are_left_alone_as_somebody_has_set_while_it_ran() {
    let sites = slow();
    let watch = sites.clone();
    sites.crawl_while(&SEEDS, |handle, frontier| async move {
        watch.sleep(SECONDS(8)).await;
        let terms = Terms { delay: Some(SECONDS(20)), ..Terms::default() };
        frontier.steer_queue(watch.world.now(), "a.test", QueueChange::Terms(terms)).await.unwrap();
        handle.abort().await;
    });
    let (stopped, before) = (sites.world.now(), sites.seen().len());
    sites.crawl(&[]);
    let again = sites.seen().into_iter().skip(before).find(|seen| seen.url.contains("a.test")).unwrap();
    assert_eq!(again.began.since(stopped), SECONDS(20));
}

#[test]
fn after_a_pause_is_acknowledged_no_request_begins_until_it_is_resumed() {
    for millis in [0, 5, 1_005, 1_500, 4_000, 5_000, 5_030] {
        let sites = slow().robots("a.test", RobotsTxt::default()).robots("b.test", RobotsTxt::default());
        let watch = sites.clone();
        let end = sites.crawl_while(&SEEDS, |handle, frontier| async move {
            watch.sleep(Duration::from_millis(millis)).await;
            handle.pause().await.unwrap().unwrap();
            let (paused, begun) = (watch.world.now(), watch.seen().len());
            assert!(watch.seen().iter().all(|seen| seen.ended.is_some()), "{millis}");
            assert_eq!(handle.tally().in_flight, 0);
            assert_eq!(frontier.report(paused).await.unwrap().state, CrawlState::Paused);
            watch.sleep(SECONDS(1_000)).await;
            assert_eq!(watch.seen().len(), begun, "{millis}");
            handle.resume().await.unwrap().unwrap();
        });
        assert_eq!(end, CrawlEnd::Exhausted);
        assert_eq!(sites.seen().len(), 12, "{millis}");
    }
}

#[test]
fn a_pause_that_is_resumed_before_all_have_landed_is_not_acknowledged() {
    let sites = slow();
    let watch = sites.clone();
    let end = sites.crawl_while(&SEEDS, |handle, _| async move {
        watch.sleep(Duration::from_millis(500)).await;
        let pausing = handle.pause();
        let resuming = async {
            watch.sleep(Duration::from_millis(500)).await;
            handle.resume().await.unwrap().unwrap();
        };
        let (paused, ()) = tokio::join!(pausing, resuming);
        assert_eq!(paused.unwrap().unwrap_err(), "the crawl was resumed before all had landed");
    });
    assert_eq!(end, CrawlEnd::Exhausted);
    assert_eq!(sites.seen().len(), 10);
}

/// Several crawlers may share a store, and any of them may be told to go on.
#[test]
fn a_crawl_that_somebody_else_resumes_goes_on() {
    let sites = slow();
    let watch = sites.clone();
    let end = sites.crawl_while(&SEEDS, |handle, frontier| async move {
        handle.pause().await.unwrap().unwrap();
        let now = watch.world.now();
        frontier.steer_crawl(now, CrawlChange::Resume).await.unwrap();
    });
    assert_eq!(end, CrawlEnd::Exhausted);
    assert!(sites.seen().len() < 20, "{} requests", sites.seen().len());
    assert_eq!(sites.pages().len(), 10);
}

#[test]
fn seeds_may_come_while_it_runs_and_widen_the_scope() {
    let sites = Sites::of(&[("http://a.test/", &["/1"]), ("http://b.test/", &["/1"])])
        .with(|options| options.end_when_exhausted = false);
    let watch = sites.clone();
    let end = sites.crawl_while(&["http://a.test/"], |handle, _| async move {
        watch.sleep(SECONDS(100)).await;
        let seeds = ["http://b.test/", "http://a.test/", "ftp://c.test/"];
        let seeds = seeds.iter().map(|seed| Prospect::seed(seed).unwrap()).collect();
        let answers = handle.seed(seeds).await.unwrap();
        assert_eq!(answers[..2], [Ok(Admission::Added), Ok(Admission::Known)]);
        assert_eq!(answers[2].as_ref().unwrap_err().reason, "scheme");
        watch.sleep(SECONDS(100)).await;
        assert_eq!(handle.tally().seeds, 2);
        handle.stop().await;
    });
    assert_eq!(end, CrawlEnd::Stopped);
    assert_eq!(sites.asked(), ["http://a.test/", "http://a.test/1", "http://b.test/", "http://b.test/1"]);
    assert_eq!(sites.skipped()[0].0, "ftp://c.test/");
}

#[test]
fn orders_after_the_end_come_to_nothing() {
    let sites = Sites::of(&[("http://a.test/", &[])]);
    let mut held = None;
    sites.crawl_while(&["http://a.test/"], |handle, _| {
        held = Some(handle);
        async {}
    });
    let handle = held.unwrap();
    sites.world.run(async {
        assert!(handle.seed(vec![Prospect::seed("http://b.test/").unwrap()]).await.is_none());
        assert!(handle.pause().await.is_none());
        handle.stop().await;
    });
    assert_eq!(handle.tally().pages, 1);
}
