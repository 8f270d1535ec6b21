//! Whole crawls on the memory store: they reach what can be reached, once, politely, and the same way each time.

use std::sync::Arc;
use std::time::Duration;

use trapline_frontier::{MemoryStore, QueueState, UrlState};
use trapline_sim::{CrawlPlan, CrawlSummary, Ending, Web, WebSize, crawl, walk};

fn run(web: &Web, plan: &CrawlPlan) -> CrawlSummary {
    crawl(web, plan, Arc::new(MemoryStore::new()), &mut |_, _| ()).expect("memory does not fail")
}

/// Crawls a web and compares with the walk, with the frontier's own counts and with the rules of politeness.
fn check(size: WebSize, plan: &CrawlPlan) -> CrawlSummary {
    let web = Web::generate(plan.seed, size);
    let summary = run(&web, plan);
    let reach = walk(&web);
    let what = format!("{size:?} {plan:?}: {summary:#?}");

    // A crawl follows nothing but links, so equal counts without repetition mean the same pages.
    assert_eq!((summary.endings, summary.hosts_done), (reach.endings, reach.hosts), "{what}");
    assert_eq!(summary.repeated, 0, "{what}");

    let politeness = summary.politeness;
    assert_eq!(politeness.violations, 0, "{what}");
    assert!(politeness.concurrency_max <= 1, "{what}");
    assert!(politeness.gap_min.is_none_or(|gap| gap >= plan.delay), "{what}");

    let (endings, stats) = (&summary.endings, &summary.stats);
    assert_eq!(stats.urls_in(UrlState::Done), endings.of(Ending::Fetched) + endings.of(Ending::Redirected));
    assert_eq!(stats.urls_in(UrlState::Dead), endings.of(Ending::NotFound) + endings.of(Ending::Broken));
    assert_eq!(stats.urls_in(UrlState::Disregarded), endings.of(Ending::Disallowed));
    assert_eq!(stats.urls_in(UrlState::Pending) + stats.urls_in(UrlState::Leased), 0);
    assert_eq!(stats.queues_in(QueueState::Empty), summary.hosts_done);
    assert_eq!(stats.granted, summary.requests + endings.of(Ending::Disallowed), "{what}");
    assert_eq!(stats.expired, 0);
    assert_eq!(summary.links.new + summary.links.known, summary.links.found);
    summary
}

#[test]
fn every_page_within_reach_is_fetched_once_and_politely() {
    let summary = check(WebSize::default(), &CrawlPlan::default());
    assert!(summary.retries_unavailable > 0 && summary.retries_broken > 0, "{summary:#?}");
    assert_eq!(summary.politeness.gap_min, Some(Duration::from_secs(1)));
    // The largest host alone takes as long as its pages take, one after the other.
    assert!(summary.took > Duration::from_secs(1_500), "{summary:#?}");
}

#[test]
fn other_seeds_sizes_delays_and_workers_do_as_well() {
    let size = |hosts, pages| WebSize { hosts, pages };
    let plan = |seed, workers, delay| CrawlPlan { seed, workers, delay: Duration::from_millis(delay) };
    check(size(1, 1), &plan(1, 1, 1_000));
    check(size(1, 300), &plan(2, 50, 1_000));
    check(size(300, 300), &plan(3, 7, 1_000));
    check(size(30, 2_000), &plan(4, 1, 1_000));
    check(size(30, 2_000), &plan(5, 1_000, 0));
    check(size(30, 2_000), &plan(6, 10, 45_000));
    for seed in 10..20 {
        check(size(40, 1_000), &plan(seed, 20, 500));
    }
}

#[test]
fn one_seed_has_one_history() {
    let size = WebSize { hosts: 40, pages: 2_000 };
    let web = Web::generate(1, size);
    let plan = CrawlPlan::default();
    let summary = run(&web, &plan);
    assert_eq!(summary, run(&Web::generate(1, size), &plan));
    assert_ne!(summary, run(&web, &CrawlPlan { seed: 2, ..plan }));
}

#[test]
fn progress_is_told_while_the_crawl_goes_on() {
    let web = Web::generate(1, WebSize { hosts: 20, pages: 1_000 });
    let mut told = Vec::new();
    let mut progress = |now, stats: &trapline_frontier::Stats| {
        told.push((now, stats.urls_in(UrlState::Done)));
    };
    let plan = CrawlPlan::default();
    crawl(&web, &plan, Arc::new(MemoryStore::new()), &mut progress).unwrap();
    assert!(told.len() >= 3, "{told:?}");
    assert!(told.is_sorted() && told[0].1 > 0, "{told:?}");
}
