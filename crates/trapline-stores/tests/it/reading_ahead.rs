//! What large claims hand out is read while the engine decides, by a thread that guesses what it will be. Whatever it guesses, each URL
//! comes with its own request.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use trapline_core::{Request, Timestamp};
use trapline_frontier::{
    Frontier, Lease, Outcome, Query, Rows, Scan, Settings, Settlement, Store, Visit, Want,
};
use trapline_stores::{DiskOptions, DiskStore};

use crate::disk::SMALL;
use crate::sim_files::SimFiles;

const URLS: u32 = 6000;
const HOSTS: u32 = 1500;
const BATCH: usize = 500;

const WITH_THREADS: DiskOptions = DiskOptions { background: true, segment_bytes: 1 << 20, ..SMALL };

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn page(number: u32) -> Request {
    let mut request = Request::get(format!("http://{}.example/{number}", number % HOSTS));
    request.depth = number;
    request
}

fn crawl(files: &SimFiles, concurrency: u32) -> Frontier {
    let store = Arc::new(DiskStore::open_on(files.clone(), &WITH_THREADS).expect("it opens"));
    let settings = Settings {
        delay: Duration::ZERO,
        lease: Duration::from_secs(100_000),
        concurrency,
        ..Settings::default()
    };
    let builder = Frontier::builder("docs").settings(settings);
    let crawl =
        pollster::block_on(builder.open_shared(store as Arc<dyn Store>, at(0))).expect("the crawl opens");
    pollster::block_on(crawl.admit(at(0), (0..URLS).map(page))).expect("they are admitted");
    crawl
}

/// The number of the page whose lease this is, all of which belongs together.
fn number_of(crawl: &Frontier, lease: &Lease) -> u32 {
    let number = lease.request.depth;
    assert_eq!(*lease.request, page(number));
    assert_eq!(*lease.key, format!("{}.example", number % HOSTS));
    assert_eq!(lease.identity, crawl.prepare(page(number)).expect("a URL").identity);
    number
}

/// What a visit finds.
fn visit(number: u32) -> Visit {
    Visit { status: 200, bytes: number.into(), ..Visit::default() }
}

/// Claims and settles until so many are done by all who do this.
fn work(crawl: &Frontier, seconds: u64, seen: &Mutex<BTreeSet<u32>>, is_second_round: bool) {
    let locked = || seen.lock().expect("nobody else has failed");
    let mut in_vain = 0;
    loop {
        let claimed = pollster::block_on(crawl.claim(at(seconds), Want::urls(BATCH))).expect("it is granted");
        if claimed.leases.is_empty() {
            if locked().len() == URLS as usize {
                return;
            }
            in_vain += 1;
            assert!(in_vain < 1_000_000, "{} of {URLS} were handed out", locked().len());
        }
        let settle = |lease: &Lease| {
            let number = number_of(crawl, lease);
            assert!(locked().insert(number), "{number} is handed out once");
            let known = lease.page.as_ref().map(|page| page.visit.clone());
            assert_eq!(known, is_second_round.then(|| visit(number)));
            let next = Some(at(1000)).filter(|_| !is_second_round);
            Settlement::new(lease.id, Outcome::Done { visit: visit(number), next })
        };
        let batch: Vec<_> = claimed.leases.iter().map(settle).collect();
        pollster::block_on(crawl.settle(at(seconds), batch)).expect("they are settled");
    }
}

#[test]
fn each_url_comes_with_its_own_request_whoever_claims() {
    // With one URL of a queue at a time it is easy to guess which come; with any number of them it is not.
    for concurrency in [1, 0] {
        for clients in [1, 3] {
            let crawl = crawl(&SimFiles::default(), concurrency);
            for (seconds, is_second_round) in [(1, false), (1001, true)] {
                let seen = Mutex::default();
                thread::scope(|scope| {
                    for _ in 0..clients {
                        scope.spawn(|| work(&crawl, seconds, &seen, is_second_round));
                    }
                });
            }
        }
    }
}

/// Reading what is not wanted costs those who want something.
#[test]
fn what_is_guessed_in_vain_is_not_guessed_for_long() {
    const ALL: u64 = URLS as u64;
    // Where the guess is wrong, what was read in vain shows that there was one.
    for (concurrency, expected) in [(1, ALL..ALL * 11 / 10), (0, ALL + 1..ALL * 5 / 4)] {
        let files = SimFiles::default();
        let crawl = crawl(&files, concurrency);
        files.set_read_fault(None);
        let mut claimed = 0;
        while claimed < URLS as usize {
            let leases = pollster::block_on(crawl.claim(at(1), Want::urls(BATCH))).expect("granted").leases;
            claimed += leases.len();
            let done = leases.iter().map(|lease| Settlement::new(lease.id, Outcome::done())).collect();
            pollster::block_on(crawl.settle(at(1), done)).expect("they are settled");
        }
        let reads = files.reads();
        assert!(expected.contains(&reads), "{reads} reads with a concurrency of {concurrency}");
    }
}

/// One of many that was read ahead is damaged: it is dead, and all others are handed out.
#[test]
fn a_damaged_request_among_many_holds_up_no_other() {
    let files = SimFiles::default();
    let crawl = crawl(&files, 1);
    for segment in files.names(".segment") {
        files.change(&segment, |bytes| {
            let url = b"http://77.example/77";
            let found = bytes
                .windows(url.len() + 1)
                .position(|window| window.starts_with(url) && !window[url.len()].is_ascii_digit());
            if let Some(found) = found {
                bytes[found + 9] ^= 1;
            }
        });
    }
    let mut numbers = BTreeSet::new();
    while let leases = pollster::block_on(crawl.claim(at(1), Want::urls(BATCH))).expect("granted").leases
        && !leases.is_empty()
    {
        numbers.extend(leases.iter().map(|lease| number_of(&crawl, lease)));
        let done = leases.iter().map(|lease| Settlement::new(lease.id, Outcome::done())).collect();
        pollster::block_on(crawl.settle(at(1), done)).expect("they are settled");
    }
    assert!(numbers.iter().copied().eq((0..URLS).filter(|number| *number != 77)));
    let page = pollster::block_on(crawl.scan(at(1), &Scan::new(Query::Dead))).expect("they are listed");
    let Rows::Dead(dead) = page.rows else { panic!("{:?}", page.rows) };
    assert!(dead.len() == 1 && dead[0].reason.contains("is damaged"), "{dead:?}");
}
