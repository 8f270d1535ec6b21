//! What a crawl does with its leases while fetches take long.

use std::time::Duration;

use trapline_crawl::{CrawlEnd, CrawlHandle};
use trapline_frontier::{Outcome, Settlement, Want};

use crate::sites::{Sites, page};

const MINUTES: fn(u64) -> Duration = |minutes| Duration::from_secs(60 * minutes);

#[test]
fn the_lease_of_a_long_fetch_is_renewed() {
    let sites = Sites::new().put("http://a.test/", [page(&["/1"]).taking(MINUTES(30))]);
    let watch = sites.clone();
    sites.crawl_while(&["http://a.test/"], |handle, frontier| async move {
        watch.sleep(MINUTES(20)).await;
        let claimed = frontier.claim(watch.world.now(), Want::urls(10)).await.unwrap();
        assert!(claimed.leases.is_empty());
        assert_eq!((handle.tally().in_flight, handle.tally().stale), (1, 0));
    });
    assert_eq!(sites.asked(), ["http://a.test/", "http://a.test/1"]);
}

#[test]
fn a_fetch_whose_lease_is_lost_is_aborted_and_nothing_of_it_is_settled() {
    let sites = Sites::new().put("http://a.test/", [page(&["/1"]).taking(MINUTES(30))]);
    let thief = sites.clone();
    let end = sites.crawl_while(&["http://a.test/"], |handle: CrawlHandle, frontier| async move {
        thief.sleep(MINUTES(5)).await;
        frontier.forget(thief.world.now(), "http://a.test/").await.unwrap();
        thief.sleep(MINUTES(1)).await;
        assert_eq!((handle.tally().stale, handle.tally().requests), (1, 0));
    });
    assert_eq!(end, CrawlEnd::Exhausted);
    assert_eq!((sites.seen().len(), sites.seen()[0].ended), (1, None));
    assert!(sites.pages().is_empty());
    assert!(sites.world.now().since(crate::sites::BEGIN) < MINUTES(7));
}

#[test]
fn what_lands_under_a_lease_that_somebody_else_has_settled_counts_for_nothing() {
    let sites = Sites::new().put("http://a.test/", [page(&["/1"]).taking(Duration::from_secs(10))]);
    let thief = sites.clone();
    sites.crawl_while(&["http://a.test/"], |_, frontier| async move {
        thief.sleep(Duration::from_secs(5)).await;
        let now = thief.world.now();
        let scan = trapline_frontier::Scan::new(trapline_frontier::Query::Leases);
        let trapline_frontier::Rows::Leases(leases) = frontier.scan(now, &scan).await.unwrap().rows else {
            panic!("leases")
        };
        let settlement = Settlement::new(leases[0].id, Outcome::done());
        frontier.settle(now, vec![settlement]).await.unwrap();
    });
    assert_eq!(sites.asked(), ["http://a.test/"], "its links were not admitted");
}
