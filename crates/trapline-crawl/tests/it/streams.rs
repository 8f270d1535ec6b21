//! Results as a stream.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join;
use trapline_crawl::candidate::Prospect;
use trapline_crawl::ports::World;
use trapline_crawl::{CrawlEnd, CrawlError, CrawlHandle, ResultStream};
use trapline_frontier::UrlState;

use crate::sites::Sites;

fn site() -> Sites {
    Sites::of(&[("http://a.test/", &["/1", "/2", "/3", "/4", "ftp://a.test/"])])
        .with(|options| options.pace.delay = Duration::ZERO)
}

/// Crawls, while somebody reads.
fn read<T>(
    sites: &Sites,
    waiting_max: usize,
    reader: impl AsyncFnOnce(ResultStream) -> T,
) -> (Result<CrawlEnd, CrawlError>, T) {
    sites.world.run(async {
        let (output, results) = ResultStream::new(waiting_max);
        let crawl = sites.builder().await.output(output).build(Arc::new(sites.clone())).unwrap();
        bring_seed(sites, &crawl.handle());
        join(crawl.run(), reader(results)).await
    })
}

fn bring_seed(sites: &Sites, handle: &CrawlHandle) {
    let handle = handle.clone();
    sites.world.spawn(Box::pin(async move {
        handle.seed(vec![Prospect::seed("http://a.test/").unwrap()]).await;
        handle.end_seeding().await;
    }));
}

#[test]
fn every_result_comes_once_and_the_stream_ends_with_the_crawl() {
    let (end, results) = read(&site(), 100, async |results| results.collect::<Vec<_>>().await);
    assert_eq!(end.unwrap(), CrawlEnd::Exhausted);
    let urls: Vec<_> = results.iter().map(|result| result.page.as_ref().unwrap().url.to_string()).collect();
    assert_eq!(urls, ["", "1", "2", "3", "4"].map(|path| format!("http://a.test/{path}")));
    assert_eq!(results[0].skipped[0].reason, "scheme");
}

#[test]
fn a_crawl_waits_for_its_reader() {
    let sites = site();
    let (end, asked) = read(&sites, 1, async |mut results| {
        sites.sleep(Duration::from_secs(1_000)).await;
        let asked = sites.asked().len();
        while results.next().await.is_some() {}
        asked
    });
    // One waits to be read, one to be told, and one may be in flight.
    assert!(asked <= 3, "{asked}");
    assert_eq!(end.unwrap(), CrawlEnd::Exhausted);
    // Its leases were renewed meanwhile: nothing was asked for twice.
    assert_eq!(sites.asked().len(), 5);
}

#[test]
fn who_is_told_to_stop_now_waits_a_moment_for_his_reader_and_gives_back_the_rest() {
    // Who reads after half a second is waited for, and who reads never is not.
    for (reads, done, lease) in [(true, 2, 60), (false, 1, 60), (false, 1, 2)] {
        let mut sites = site();
        sites.options.lease = Duration::from_secs(lease);
        let end = sites.world.run(async {
            let (output, mut results) = ResultStream::new(1);
            let crawl = sites.builder().await.output(output).build(Arc::new(sites.clone())).unwrap();
            let handle = crawl.handle();
            bring_seed(&sites, &handle);
            let later = sites.clone();
            let read = async {
                later.sleep(Duration::from_secs(100)).await;
                handle.abort().await;
                later.sleep(Duration::from_millis(500)).await;
                if reads {
                    results.next().await;
                }
            };
            let (end, ()) = join(crawl.run(), read).await;
            end.unwrap()
        });
        assert_eq!(end, CrawlEnd::Stopped);
        let stats = sites.world.run(async { sites.frontier().await.stats(sites.world.now()).await.unwrap() });
        let of = |state| stats.urls_in(state);
        // The page that was named, and its four links.
        assert_eq!(
            (of(UrlState::Done), of(UrlState::Leased), of(UrlState::Pending)),
            (done, 0, 5 - done),
            "{reads}"
        );
    }
}

#[test]
fn a_crawl_whose_results_nobody_reads_stops() {
    let (end, ()) = read(&site(), 1, async |results| drop(results));
    assert_eq!(
        end.unwrap_err().to_string(),
        "the results of the crawl cannot be told: nobody reads the stream any more"
    );
}
