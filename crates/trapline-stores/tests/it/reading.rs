//! Reads that fail, of requests and at opening: they are told, and nothing is lost by them.

use std::sync::Arc;
use std::time::Duration;

use trapline_core::{Request, Timestamp};
use trapline_frontier::{
    CrawlChange, ErrorKind, Frontier, Outcome, Pattern, Query, Rows, Scan, Settlement, Steer, Store,
    UrlFilter, UrlState, UrlsChange,
};
use trapline_stores::{DiskOptions, DiskStore};

use crate::disk::{EAGER, SMALL};
use crate::faults::{STEPS, at, everything, frontier, run_in};
use crate::sim_files::SimFiles;

const SEGMENT: &str = "0000000001.segment";

fn crawl(store: &Arc<DiskStore>) -> Frontier {
    pollster::block_on(frontier(Arc::clone(store) as _)).expect("the crawl opens")
}

fn open(files: &SimFiles) -> (Arc<DiskStore>, Frontier) {
    let store = Arc::new(DiskStore::open_on(files.clone(), &SMALL).expect("it opens"));
    let crawl = crawl(&store);
    (store, crawl)
}

fn contents(files: &SimFiles) -> Vec<Rows> {
    everything(&open(&files.copy()).1, at(STEPS))
}

fn worked() -> SimFiles {
    let files = SimFiles::default();
    assert_eq!(run_in(&files, DiskStore::open_on(files.clone(), &SMALL)).0, STEPS);
    files
}

/// An opening that cannot read something says so, or does without it; the next one finds all as it was.
#[test]
fn every_read_of_an_opening_may_fail() {
    check_reads_of_opening(&EAGER);
}

/// The same where a snapshot is not read whole at once.
#[test]
fn every_read_of_a_lazy_opening_may_fail() {
    check_reads_of_opening(&SMALL);
}

fn check_reads_of_opening(options: &DiskOptions) {
    let before = worked();
    let expected = contents(&before);
    let files = before.copy();
    files.set_read_fault(None);
    drop(DiskStore::open_on(files.clone(), options).expect("it opens"));
    let reads = files.reads();
    let mut refused = 0;
    for for_ever in [false, true] {
        for read in 1..=reads {
            let files = before.copy();
            files.set_read_fault(Some((read, for_ever)));
            match DiskStore::open_on(files.clone(), options) {
                // Without a snapshot it takes longer.
                Ok(store) => {
                    let found = store.recovered().0;
                    let passed_over =
                        before.names(".snapshot").len() as u64 - u64::from(found.snapshot.is_some());
                    // What cannot be read once may be read the second time, or be mended.
                    assert!((u64::from(for_ever)..=passed_over).contains(&found.snapshots_passed_over));
                    store.abandon();
                }
                Err(error) => {
                    refused += 1;
                    let text = error.to_string();
                    assert!(
                        text.starts_with("disk store: cannot open: ")
                            && text.contains("simulated failure to read"),
                        "{text}"
                    );
                }
            }
            files.set_read_fault(None);
            assert_eq!(files.names(".snapshot"), before.names(".snapshot"), "none is removed");
            files.lose_power(read);
            assert_eq!(contents(&files), expected, "read {read}");
        }
    }
    assert!(refused > reads, "{refused} of {}", 2 * reads);
}

/// Whoever claims nothing but what cannot be read is told; the lease ends by itself, and the URL comes again. Lists show
/// what is in memory.
#[test]
fn a_claim_that_cannot_be_read_costs_one_lease() {
    let files = SimFiles::default();
    let (store, crawl) = open(&files);
    let page = |number| Request::get(format!("http://{number}.example/"));
    pollster::block_on(crawl.admit(at(0), (0..3).map(page))).expect("it is admitted");
    files.set_read_fault(Some((1, true)));
    let error = pollster::block_on(crawl.claim(at(0), 1)).expect_err("it cannot be read");
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(
        error.to_string(),
        "disk store: cannot claim: reading simulated/0000000001.segment failed (simulated failure to read); the rest of the \
         store is not harmed: look after the disk, and see what `verify` says (docs/manual/disk.md)"
    );
    let rows = pollster::block_on(crawl.scan(at(0), &urls())).expect("it is listed").rows;
    let Rows::Urls(rows) = rows else { panic!("{rows:?}") };
    assert!(rows.len() == 3 && rows.iter().all(|row| row.request.is_none() && row.key.is_some()), "{rows:?}");
    let error =
        pollster::block_on(crawl.scan(at(0), &Scan::new(Query::Records))).expect_err("it is incomplete");
    assert!(
        error.to_string().starts_with("disk store: cannot scan: reading simulated/0000000001.segment"),
        "{error}"
    );
    files.set_read_fault(None);
    // The others are served, and it again after its time, also after a crash.
    assert_eq!(pollster::block_on(crawl.claim(at(0), 9)).expect("it goes on").leases.len(), 2);
    store.abandon();
    let (_, crawl) = open(&files);
    let later = at(0) + Duration::from_secs(60);
    let leases = pollster::block_on(crawl.claim(later, 9)).expect("it goes on").leases;
    assert_eq!(leases.len(), 3);
    assert!(leases.iter().all(|lease| lease.delivery == 2 && !lease.request.url.is_empty()));
}

/// One that cannot be read is left to its deadline, and the others of its claim are given out.
#[test]
fn a_request_that_cannot_be_read_holds_up_no_other() {
    let files = SimFiles::default();
    let (_store, crawl) = open(&files);
    let page = |number| Request::get(format!("http://{number}.example/"));
    pollster::block_on(crawl.admit(at(0), (0..3).map(page))).expect("it is admitted");
    // The first is opening the segment.
    files.set_read_fault(Some((3, false)));
    let leases = pollster::block_on(crawl.claim(at(0), 9)).expect("two can be read").leases;
    let claimed: Vec<_> = leases.iter().map(|lease| lease.request.url.as_str()).collect();
    assert_eq!(claimed, ["http://0.example/", "http://2.example/"]);
    let leased = pollster::block_on(crawl.stats(at(0))).expect("it counts").urls_in(UrlState::Leased);
    assert_eq!(leased, 3);
    let done = leases.iter().map(|lease| Settlement::new(lease.id, Outcome::done())).collect();
    pollster::block_on(crawl.settle(at(0), done)).expect("they are settled");
    let later = at(0) + Duration::from_secs(60);
    let leases = pollster::block_on(crawl.claim(later, 9)).expect("it comes again").leases;
    let claimed: Vec<_> = leases.iter().map(|lease| (lease.request.url.as_str(), lease.delivery)).collect();
    assert_eq!(claimed, [("http://1.example/", 2)]);
}

/// What is damaged stays so: the URL is dead, for a reason that says where its request was. It still is when the store is
/// opened again, even if the segment was put back as it had been.
#[test]
fn a_damaged_request_becomes_a_dead_letter_that_says_where_it_was() {
    let files = SimFiles::default();
    let (store, crawl) = open(&files);
    let page = |number| Request::get(format!("http://{number}.example/"));
    pollster::block_on(crawl.admit(at(0), (0..3).map(page))).expect("it is admitted");
    let mut found = 0;
    files.change(SEGMENT, |bytes| {
        let url = b"http://1.example/";
        found = bytes.windows(url.len()).position(|window| window == url).expect("it is in the log");
    });
    let flip = || files.change(SEGMENT, |bytes| bytes[found + 7] ^= 1);
    flip();
    // Before it are its check and two lengths.
    let begin = found - 6;
    let claimed = pollster::block_on(crawl.claim(at(1), 9)).expect("two can be read");
    let urls_of: Vec<_> = claimed.leases.iter().map(|lease| lease.request.url.as_str()).collect();
    assert_eq!(urls_of, ["http://0.example/", "http://2.example/"]);
    assert_eq!(claimed.next, Some(at(1)), "its queue may have others");
    let check = |crawl: &Frontier, url: &str| {
        let page = pollster::block_on(crawl.scan(at(2), &Scan::new(Query::Dead))).expect("they are listed");
        let Rows::Dead(dead) = page.rows else { panic!("{:?}", page.rows) };
        let [letter] = &dead[..] else { panic!("{dead:?}") };
        assert_eq!((&*letter.key, letter.request.url.as_str(), letter.at), ("1.example", url, at(1)));
        assert_eq!(
            letter.reason,
            format!(
                "its request cannot be read: reading simulated/{SEGMENT} failed (the request at byte {begin} is damaged)"
            )
        );
        let page = pollster::block_on(crawl.scan(at(2), &urls())).expect("they are listed");
        let Rows::Urls(rows) = page.rows else { panic!("{:?}", page.rows) };
        let dead: Vec<_> = rows.iter().filter(|row| row.state == UrlState::Dead).collect();
        assert!(rows.len() == 3 && dead.len() == 1, "{rows:?}");
        assert_eq!(dead[0].request.as_ref().map_or("", |request| request.url.as_str()), url);
    };
    check(&crawl, "");
    store.abandon();
    flip();
    check(&open(&files).1, "http://1.example/");
}

fn urls() -> Scan {
    Scan { limit: 100_000, ..Scan::new(Query::Urls { key: None, pattern: None, state: None }) }
}

/// A job that reads what it is about does not go on with something else: whatever it would have made of it would not be
/// what the log leads to.
#[test]
fn a_job_that_cannot_read_stops_the_store_and_is_done_after_opening() {
    const URLS: u32 = 9000;
    let options = trapline_stores::DiskOptions { segment_bytes: 1 << 20, ..SMALL };
    for asks in [true, false] {
        let files = SimFiles::default();
        let store = Arc::new(DiskStore::open_on(files.clone(), &options).expect("it opens"));
        let worker = crawl(&store);
        let page = |number| Request::get(format!("http://{}.example/{number}", number % 5));
        pollster::block_on(worker.admit(at(0), (0..URLS).map(page))).expect("it is admitted");
        let purge = CrawlChange::Purge(Pattern::new("*7"));
        let steered = pollster::block_on(worker.steer_crawl(at(1), purge)).expect("it begins");
        assert!(steered.job.is_some(), "it takes several steps");
        files.set_read_fault(Some((5, false)));
        let error = if asks {
            pollster::block_on(worker.stats(at(1))).expect_err("it cannot be read")
        } else {
            pollster::block_on(worker.claim(at(1), 0)).expect_err("it cannot be read")
        };
        assert!(error.to_string().contains("simulated failure to read"), "{error}");
        files.set_read_fault(None);
        let error = pollster::block_on(worker.claim(at(1), 1)).expect_err("nothing is promised any more");
        assert!(error.to_string().contains("open the store again"), "{error}");
        store.abandon();
        let store = Arc::new(DiskStore::open_on(files.clone(), &options).expect("it opens again"));
        let worker = crawl(&store);
        let mut stats = None;
        for _ in 0..4 {
            stats = Some(pollster::block_on(worker.stats(Timestamp::from_millis(50))).expect("it counts"));
        }
        let pending = stats.expect("it was asked").urls_in(UrlState::Pending);
        assert_eq!(pending, u64::from(URLS - URLS / 10), "every tenth URL ends so");
        store.close().expect("it closes");
        drop(DiskStore::open_on(files, &options).expect("what it did can be done again"));
    }
}

/// A text that is damaged for good stops a job that reads it, and the store with it; but the store opens again, and the job can be
/// cancelled without another look at it.
#[test]
fn a_job_that_meets_damage_can_be_cancelled() {
    const URLS: u32 = 3000;
    /// Neither among those that the first step looks at, nor in a segment that opening reads.
    const DAMAGED: u32 = 1299;
    for asks in [true, false] {
        let files = SimFiles::default();
        let open = || Arc::new(DiskStore::open_on(files.clone(), &SMALL).expect("it opens"));
        let store = open();
        let worker = crawl(&store);
        let page = |number| Request::get(format!("http://{}.example/{number}", number % 5));
        for first in (0..URLS).step_by(100) {
            let batch = (first..first + 100).map(page);
            pollster::block_on(worker.admit(at(0), batch)).expect("it is admitted");
        }
        store.snapshot().expect("it is taken");
        let filter = UrlFilter { key: None, pattern: Some(Pattern::new("*7")) };
        let steered = pollster::block_on(worker.steer(at(1), Steer::Urls(filter, UrlsChange::Forget)));
        let job = steered.expect("it begins").job.expect("it takes several steps");
        let url = page(DAMAGED).url;
        let place = |bytes: &[u8]| bytes.windows(url.len()).position(|bytes| bytes == url.as_bytes());
        let mut is_there = false;
        files.change("0000000002.segment", |bytes| {
            if let Some(found) = place(bytes) {
                is_there = true;
                bytes[found + 9] ^= 1;
            }
        });
        assert!(is_there, "the segments are of another size");
        let mut steps = (0..9).map(|_| {
            if asks {
                pollster::block_on(worker.stats(at(1))).map(drop)
            } else {
                pollster::block_on(worker.claim(at(1), 0)).map(drop)
            }
        });
        assert!(steps.any(|step| step.is_err()), "it meets the damage");
        store.abandon();
        let store = open();
        // Not through the crawl: whoever opens it asks something, and a step is taken.
        let cancel = Steer::Crawl(CrawlChange::Cancel(job));
        let cancelled = pollster::block_on(store.steer("c", at(2), cancel));
        assert_eq!(cancelled.expect("it is cancelled").affected, 1);
        pollster::block_on(crawl(&store).claim(at(2), 1)).expect("the store works on");
        store.close().expect("it closes");
        drop(open());
    }
}
