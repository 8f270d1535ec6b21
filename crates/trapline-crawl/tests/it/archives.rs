//! Archives that cannot keep anything for a while: nothing is fetched, nothing is done, nothing is lost.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use trapline_core::Timestamp;
use trapline_crawl::fetch::Visit;
use trapline_crawl::ports::{Archive, ArchiveError, World};
use trapline_crawl::{ArchivePlace, CrawlEnd, CrawlOptions};
use trapline_frontier::UrlState;
use trapline_sim::VirtualWorld;

use crate::sites::{BEGIN, Sites, page, silence};

const SECONDS: fn(u64) -> Duration = Duration::from_secs;

/// An archive with no room between two moments, which takes its time.
struct Shelf {
    world: VirtualWorld,
    full: (Timestamp, Timestamp),
    kept: Mutex<Vec<String>>,
    attempts: AtomicU64,
}

#[async_trait]
impl Archive for Shelf {
    fn name(&self) -> &str {
        "shelf:"
    }

    async fn keep(&self, visit: &Visit) -> Result<Option<String>, ArchiveError> {
        self.world.sleep_until(self.world.now() + SECONDS(2)).await;
        self.attempts.fetch_add(1, Ordering::Relaxed);
        if (self.full.0..self.full.1).contains(&self.world.now()) {
            return Err(ArchiveError("there is no room".to_owned()));
        }
        self.kept.lock().unwrap().push(visit.url().to_string());
        Ok(Some(format!("shelf:{}", visit.url().path())))
    }
}

fn shelf(sites: &Sites, from: u64, until: u64) -> Arc<Shelf> {
    let full = (BEGIN + SECONDS(from), BEGIN + SECONDS(until));
    Arc::new(Shelf { world: sites.world.clone(), full, kept: Mutex::default(), attempts: AtomicU64::new(0) })
}

/// A hundred hosts with a page each.
fn hosts() -> (Sites, Vec<String>) {
    let urls: Vec<_> = (0..100).map(|number| format!("http://h{number}.test/")).collect();
    let sites = urls.iter().fold(Sites::new(), |sites, url| sites.put(url, [page(&[])]));
    (sites.with(|options: &mut CrawlOptions| options.concurrency = 10), urls)
}

#[test]
fn a_page_is_done_when_it_is_kept_in_either_chain() {
    for place in [ArchivePlace::Fetch, ArchivePlace::Disposition] {
        let sites = Sites::of(&[("http://a.test/", &["/1"]), ("http://a.test/1", &[])])
            .put("http://b.test/", [silence()])
            .with(|options: &mut CrawlOptions| options.retry.max = 0);
        let shelf = shelf(&sites, 0, 0);
        let archive = Arc::clone(&shelf);
        let seen = sites.clone();
        let end = sites.crawl_made(
            &["http://a.test/", "http://b.test/"],
            move |builder| builder.archive(place, archive),
            async move |_, frontier| {
                // It has come, and is not kept yet.
                seen.sleep(SECONDS(1)).await;
                let stats = frontier.stats(seen.world.now()).await.unwrap();
                assert_eq!((seen.asked().len(), stats.urls_in(UrlState::Done)), (2, 0));
            },
        );
        assert_eq!(end, CrawlEnd::Exhausted);
        assert_eq!(*shelf.kept.lock().unwrap(), ["http://a.test/", "http://a.test/1"]);
        let pages = sites.pages();
        let archived = |url: &str| pages.iter().find(|page| &*page.url == url).unwrap().archived.clone();
        assert_eq!(archived("http://a.test/1"), ["shelf:/1"]);
        assert!(archived("http://b.test/").is_empty(), "nothing came");
    }
}

#[test]
fn nothing_is_fetched_while_an_archive_has_no_room() {
    for place in [ArchivePlace::Fetch, ArchivePlace::Disposition] {
        let (sites, urls) = hosts();
        let seeds: Vec<_> = urls.iter().map(String::as_str).collect();
        // Far longer than a lease.
        let shelf = shelf(&sites, 1, 600);
        let archive = Arc::clone(&shelf);
        let seen = sites.clone();
        let end = sites.crawl_made(
            &seeds,
            move |builder| builder.archive(place, archive),
            async move |handle, _| {
                seen.sleep(SECONDS(300)).await;
                let trouble = handle.tally().archive_trouble.expect("there is no room");
                assert_eq!(trouble.why, "the archive shelf: cannot keep pages: there is no room");
                assert!(trouble.since < BEGIN + SECONDS(5));
                assert_eq!(seen.asked().len(), 10, "those that were in flight");
                assert_eq!(handle.tally().pages, 0);
                seen.sleep(SECONDS(400)).await;
                assert_eq!(handle.tally().archive_trouble, None);
            },
        );
        assert_eq!(end, CrawlEnd::Exhausted);
        let mut kept = shelf.kept.lock().unwrap().clone();
        kept.sort();
        let mut all = urls.clone();
        all.sort();
        assert_eq!(kept, all, "each once");
        assert_eq!(sites.asked_sorted(), all, "each asked for once");
        // Ten that wait ever longer, not ten that ask all the time.
        assert!(shelf.attempts.load(Ordering::Relaxed) < 100 + 10 * 70);
    }
}

#[test]
fn a_crawl_that_is_over_does_not_wait_for_an_archive() {
    for place in [ArchivePlace::Fetch, ArchivePlace::Disposition] {
        let (sites, urls) = hosts();
        let seeds: Vec<_> = urls.iter().map(String::as_str).collect();
        let sites = sites.with(|options: &mut CrawlOptions| options.max_time = Some(SECONDS(60)));
        let shelf = shelf(&sites, 5, 100_000);
        let archive = Arc::clone(&shelf);
        let end = sites.crawl_made(&seeds, move |builder| builder.archive(place, archive), async |_, _| ());
        assert_eq!(end, CrawlEnd::MaxTime);
        assert!(sites.world.now() < BEGIN + SECONDS(80));
        let kept = shelf.kept.lock().unwrap().len();
        let done = sites.pages().len();
        assert_eq!(done, kept, "what was not kept is not done");
        let stats = sites.world.run(async {
            let frontier = sites.frontier().await;
            frontier.stats(sites.world.now()).await.unwrap()
        });
        assert_eq!(stats.urls_in(UrlState::Done) as usize, kept);
        assert_eq!(stats.urls_in(UrlState::Pending) as usize, 100 - kept, "the rest is for another time");

        // And somebody who stops it need not wait either.
        let (sites, urls) = hosts();
        let seeds: Vec<_> = urls.iter().map(String::as_str).collect();
        let archive = self::shelf(&sites, 5, 100_000);
        let seen = sites.clone();
        let end = sites.crawl_made(
            &seeds,
            move |builder| builder.archive(place, archive),
            async move |handle, _| {
                seen.sleep(SECONDS(30)).await;
                handle.stop().await;
            },
        );
        assert_eq!(end, CrawlEnd::Stopped);
        assert!(sites.world.now() < BEGIN + SECONDS(50));
    }
}
