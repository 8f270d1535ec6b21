//! What a crawl does when something goes wrong: on the other side, and on this one.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use trapline_crawl::disposition::Disposition;
use trapline_crawl::fetch::Visit;
use trapline_crawl::{CrawlEnd, Flow, Processor};
use trapline_frontier::UrlState;

use crate::sites::{Sites, page, silence, status};

#[test]
fn a_page_that_fails_is_retried_later_each_time_then_a_dead_letter() {
    for (reply, reason, detail) in [
        (status(500), "status 500", "after 4 tries"),
        (silence(), "timeout", "nobody answered, after 4 tries"),
    ] {
        let sites = Sites::new().put("http://a.test/", [reply]);
        assert_eq!(sites.crawl(&["http://a.test/"]), CrawlEnd::Exhausted);
        assert_eq!(sites.gaps(), [30_000, 60_000, 120_000]);
        let outcomes: Vec<_> = sites.pages().iter().map(|page| (page.outcome, page.retries)).collect();
        assert_eq!(outcomes, [("retry", 0), ("retry", 1), ("retry", 2), ("dead", 3)]);
        assert_eq!(sites.skipped(), [("http://a.test/".into(), reason.into(), detail.into())]);
    }
}

#[test]
fn who_waits_for_a_retry_knows_when_it_comes() {
    let sites = Sites::new().put("http://a.test/", [status(500).taking(Duration::from_secs(2)), page(&[])]);
    let later = sites.clone();
    sites.crawl_while(&["http://a.test/"], |handle, _| async move {
        later.sleep(Duration::from_secs(1)).await;
        assert_eq!(handle.tally().next, None, "it is being fetched");
        later.sleep(Duration::from_secs(4)).await;
        let retry = crate::sites::BEGIN + Duration::from_secs(32);
        assert_eq!((handle.tally().in_flight, handle.tally().next), (0, Some(retry)));
    });
    assert_eq!(sites.asked().len(), 2);
}

#[test]
fn a_page_that_comes_back_is_fetched() {
    let sites = Sites::new().put("http://a.test/", [silence(), status(503), page(&["/1"])]);
    sites.crawl(&["http://a.test/"]);
    assert_eq!(sites.asked().len(), 4);
    assert_eq!(sites.pages()[2].outcome, "done");
    assert!(sites.skipped().is_empty());
}

/// Panics at one URL.
struct Clumsy;

#[async_trait]
impl Processor<Visit> for Clumsy {
    fn name(&self) -> &'static str {
        "clumsy"
    }

    async fn process(&self, visit: &mut Visit) -> Flow {
        assert!(!visit.url().path().contains("fetch"), "stumbled over {}", visit.url());
        Flow::Next
    }
}

#[async_trait]
impl Processor<Disposition> for Clumsy {
    fn name(&self) -> &'static str {
        "clumsy too"
    }

    async fn process(&self, disposition: &mut Disposition) -> Flow {
        assert!(!disposition.visit.url().path().contains("disposition"), "stumbled again");
        Flow::Next
    }
}

#[test]
fn a_panic_in_a_processor_costs_one_dead_letter_and_the_crawl_goes_on() {
    let sites =
        Sites::of(&[("http://a.test/", &["/fetch", "/disposition", "/1"]), ("http://a.test/1", &["/2"])]);
    trapline_sim::watch_panics();
    let make = |builder: trapline_crawl::CrawlBuilder| {
        builder.fetch_processor(Arc::new(Clumsy)).disposition_processor(Arc::new(Clumsy))
    };
    let ended = sites.crawl_made(&["http://a.test/"], make, async |_, _| ());
    assert_eq!(ended, CrawlEnd::Exhausted);
    assert_eq!(sites.asked().len(), 5);
    let mut skipped = sites.skipped();
    skipped.sort();
    let words = |url: &str, detail: &str| (url.to_owned(), "panic".to_owned(), detail.to_owned());
    assert_eq!(
        skipped,
        [
            words("http://a.test/disposition", "in the processor `clumsy too`: stumbled again"),
            words("http://a.test/fetch", "in the processor `clumsy`: stumbled over http://a.test/fetch"),
        ]
    );
    sites.world.run(async {
        let frontier = sites.frontier().await;
        let state = frontier.url(sites.world.now(), "http://a.test/fetch").await.unwrap().state;
        assert_eq!(state, UrlState::Dead);
    });
}

#[test]
fn a_host_that_is_down_does_not_hold_up_the_others() {
    let links: Vec<_> = (0..50).map(|n| format!("/{n}")).collect();
    let links: Vec<_> = links.iter().map(String::as_str).collect();
    let sites = Sites::of(&[("http://good.test/", &links)])
        .put("http://down.test/", [silence().taking(Duration::from_secs(20))]);
    let end = sites.clone();
    sites.crawl_while(&["http://down.test/", "http://good.test/"], |handle, _| async move {
        end.sleep(Duration::from_secs(53)).await;
        assert_eq!(handle.tally().pages, 51);
    });
    assert_eq!(sites.asked().len(), 51 + 4);
}
