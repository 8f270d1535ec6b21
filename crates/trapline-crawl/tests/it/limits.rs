//! Where a crawl ends by itself.

use std::sync::Arc;
use std::time::Duration;

use trapline_crawl::CrawlEnd;
use trapline_frontier::{CrawlChange, QueueChange, Steer};

use crate::sites::{Sites, page, status};

fn wide(hosts: usize) -> (Sites, Vec<String>) {
    let links: Vec<_> = (0..10).map(|n| format!("/{n}")).collect();
    let links: Vec<_> = links.iter().map(String::as_str).collect();
    let seeds: Vec<_> = (0..hosts).map(|n| format!("http://h{n}.test/")).collect();
    let sites = seeds.iter().fold(Sites::new(), |sites, seed| sites.put(seed, [page(&links)]));
    (sites, seeds)
}

#[test]
fn there_is_never_one_page_more_than_was_wanted() {
    for most in [0, 1, 7, 25, 109, 110] {
        let (sites, seeds) = wide(10);
        // Some fail at first: they count only when they are done.
        let sites = (0..10)
            .fold(sites, |sites, n| sites.put(&format!("http://h{n}.test/3"), [status(500), page(&[])]));
        let sites = sites.with(|options| options.max_pages = Some(most));
        let seeds: Vec<_> = seeds.iter().map(String::as_str).collect();
        assert_eq!(sites.crawl(&seeds), CrawlEnd::MaxPages, "{most}");
        let done = sites.pages().iter().filter(|page| page.outcome == "done").count() as u64;
        assert_eq!(done, most);
    }
}

#[test]
fn pages_of_earlier_runs_count() {
    let (sites, seeds) = wide(3);
    let seeds: Vec<_> = seeds.iter().map(String::as_str).collect();
    let first = sites.clone().with(|options| options.max_pages = Some(10));
    let mut tally = None;
    first.crawl_while(&seeds, |handle, _| {
        tally = Some(handle);
        async {}
    });
    let done = tally.unwrap().tally();
    assert_eq!((done.pages, done.pages_ever()), (10, 10));
    let second = sites.clone().with(|options| options.max_pages = Some(15));
    let before = trapline_crawl::Tally { pages_before: 10, ..trapline_crawl::Tally::default() };
    assert_eq!(second.crawl_made(&[], |builder| builder.tally(before), async |_, _| ()), CrawlEnd::MaxPages);
    assert_eq!(sites.pages().len(), 15);
}

#[test]
fn bytes_and_time_have_limits_too() {
    let (sites, seeds) = wide(3);
    let seeds: Vec<_> = seeds.iter().map(String::as_str).collect();
    let few = sites.clone().with(|options| options.max_bytes = Some(1));
    assert_eq!(few.crawl(&seeds), CrawlEnd::MaxBytes);

    let (sites, _) = wide(3);
    let short = sites.with(|options| options.max_time = Some(Duration::from_secs(5)));
    assert_eq!(short.crawl(&seeds), CrawlEnd::MaxTime);
    let passed = short.world.now().since(crate::sites::BEGIN);
    assert!(passed >= Duration::from_secs(5) && passed < Duration::from_secs(7), "{passed:?}");
}

#[test]
fn a_host_has_a_budget() {
    let (sites, seeds) = wide(2);
    let seeds: Vec<_> = seeds.iter().map(String::as_str).collect();
    let sites = sites.with(|options| {
        options.queue.hosts = vec![trapline_crawl::candidate::HostTerms {
            hosts: crate::sites::hosts("h0.test"),
            budget: Some(4),
            ..trapline_crawl::candidate::HostTerms::default()
        }]
        .into();
    });
    assert_eq!(sites.crawl(&seeds), CrawlEnd::Retired);
    let of = |host: &str| sites.asked().iter().filter(|url| url.contains(host)).count();
    assert_eq!((of("h0.test"), of("h1.test")), (4, 11));
}

/// Crawls until a page is done, and then steers.
fn crawl_and_steer(change: Steer) -> (CrawlEnd, usize) {
    let (sites, seeds) = wide(1);
    let (later, store, world) = (sites.clone(), Arc::clone(&sites.store), sites.world.clone());
    let end = sites.crawl_while(&[&seeds[0]], |_, _| async move {
        later.sleep(Duration::from_millis(1500)).await;
        store.steer("test", world.now(), change).await.unwrap();
    });
    (end, sites.asked().len())
}

#[test]
fn what_waits_in_a_queue_that_was_retired_is_not_called_done() {
    let queue = Steer::Queue("h0.test".to_owned(), QueueChange::Retire);
    assert_eq!(crawl_and_steer(queue), (CrawlEnd::Retired, 2));
}

#[test]
fn a_crawl_that_was_finished_ends_whatever_is_pending() {
    let finish = Steer::Crawl(CrawlChange::Finish("enough".to_owned()));
    assert_eq!(crawl_and_steer(finish), (CrawlEnd::Finished, 2));
}

#[test]
fn the_number_of_fetches_at_once_can_be_changed_while_it_runs() {
    let (sites, seeds) = wide(20);
    let seeds: Vec<_> = seeds.iter().map(String::as_str).collect();
    let sites = sites.with(|options| options.concurrency = 3);
    let later = sites.clone();
    sites.crawl_while(&seeds, |handle, _| async move {
        later.sleep(Duration::from_millis(35)).await;
        handle.set_concurrency(8);
        assert_eq!(handle.concurrency(), 8);
    });
    let seen = sites.seen();
    let at_once = |from: usize, to: usize| {
        let in_flight = |at| seen.iter().filter(|seen| seen.began <= at && at < seen.ended.unwrap()).count();
        seen[from..to].iter().map(|seen| in_flight(seen.began)).max().unwrap()
    };
    assert_eq!((at_once(0, 9), at_once(20, seen.len())), (3, 8));
}
