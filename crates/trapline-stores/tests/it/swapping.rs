//! Stores that may take only so much memory: the rest is put on disk, comes back when it is wanted, and leaves nothing behind.

use std::sync::Arc;

use trapline_core::{Request, Timestamp};
use trapline_frontier::{
    Admission, ErrorKind, Frontier, Outcome, Pressure, QueueChange, Settings, Settlement, Stats, Store,
};
use trapline_stores::disk::{Rewrite, verify_on};
use trapline_stores::{DiskOptions, DiskStore};

use crate::disk::{SMALL, SWAPPING};
use crate::faults::{at, everything};
use crate::folder::TestFolder;
use crate::sim_files::SimFiles;

const URLS: usize = 40_000;

/// Much less than the entries of so many URLs take, some 68 bytes each; the seen set takes 10 of them, and stays.
const MOST: u64 = 1 << 20;

const TIGHT: DiskOptions = DiskOptions { max_memory: Some(MOST), segment_bytes: 4 << 20, ..SMALL };

async fn frontier(store: Arc<dyn Store>) -> Frontier {
    let settings = Settings { delay: std::time::Duration::ZERO, concurrency: 0, ..Settings::default() };
    let key = trapline_core::IdentityKey::from_seed(5);
    let builder = Frontier::builder("c").partitions(1).key(key).settings(settings);
    builder.open_shared(store, Timestamp::ZERO).await.expect("the crawl opens")
}

fn crawl(store: &Arc<DiskStore>) -> Frontier {
    pollster::block_on(frontier(Arc::clone(store) as _))
}

fn open(files: &SimFiles, options: &DiskOptions) -> (Arc<DiskStore>, Frontier) {
    let store = Arc::new(DiskStore::open_on(files.clone(), options).expect("it opens"));
    let crawl = crawl(&store);
    (store, crawl)
}

fn url(number: usize) -> String {
    format!("http://one.example/{number}")
}

fn admit(crawl: &Frontier, numbers: std::ops::Range<usize>) -> Vec<Admission> {
    pollster::block_on(crawl.admit(at(0), numbers.map(|number| Request::get(url(number)))))
        .expect("it admits")
}

fn stats(crawl: &Frontier) -> Stats {
    pollster::block_on(crawl.stats(at(0))).expect("it counts")
}

fn pressure(crawl: &Frontier) -> Pressure {
    stats(crawl).pressure.expect("it has a bound")
}

/// Claims so many, and settles them; answers their URLs.
fn fetch(crawl: &Frontier, count: usize) -> Vec<String> {
    let leases = pollster::block_on(crawl.claim(at(1), count)).expect("it claims").leases;
    let settle = leases.iter().map(|lease| Settlement::new(lease.id, Outcome::done())).collect();
    pollster::block_on(crawl.settle(at(2), settle)).expect("it settles");
    leases.iter().map(|lease| lease.request.url.clone()).collect()
}

/// A long queue costs memory for its head, and is served in its order; known URLs are known; snapshots, rewriting and openings
/// keep within the same bound.
#[test]
fn a_long_queue_takes_no_more_memory_than_it_may() {
    let files = SimFiles::default();
    let (store, crawl) = open(&files, &TIGHT);
    for begin in (0..URLS).step_by(1000) {
        admit(&crawl, begin..begin + 1000);
        let pressure = pressure(&crawl);
        assert!(pressure.in_memory <= MOST, "after {begin}: {pressure:?}");
    }
    let filled = pressure(&crawl);
    assert!(filled.paged > MOST && filled.percent() > 50, "{filled:?}");
    assert_eq!(filled.paged_in, 0, "nothing was wanted again");

    let known = admit(&crawl, 7000..8000);
    assert!(known.iter().all(|admission| *admission == Admission::Known));
    let asked = pressure(&crawl);
    assert!(
        asked.looked_up >= 1000 && asked.paged_in == 0,
        "what is known is looked up where it is: {asked:?}"
    );

    store.snapshot().expect("a snapshot is taken");
    store.rewrite(Rewrite::All).expect("it is rewritten");
    assert!(pressure(&crawl).in_memory <= MOST);
    for begin in (0..URLS / 2).step_by(1000) {
        let expected: Vec<String> = (begin..begin + 1000).map(url).collect();
        assert_eq!(fetch(&crawl, 1000), expected);
    }
    let fetched = pressure(&crawl);
    assert!(fetched.paged_in > 0 && fetched.in_memory <= MOST, "{fetched:?}");
    let rows = everything(&crawl, at(3));

    store.abandon();
    files.lose_power(1);
    let (store, crawl) = open(&files, &TIGHT);
    let opened = pressure(&crawl);
    assert!(opened.in_memory <= MOST && opened.paged > MOST, "{opened:?}");
    assert_eq!(everything(&crawl, at(3)), rows);
    assert_eq!(fetch(&crawl, 1), [url(URLS / 2)]);
    store.close().expect("it closes");
    let (_store, crawl) = open(&files, &SMALL);
    assert_eq!(stats(&crawl).pressure, None);
}

/// Where there are many queues, the URL before a new one is on disk, and hears of it later. Meanwhile snapshots are taken, queues
/// are served, and some of them emptied: all is as it is in a store with room for everything.
#[test]
fn many_queues_are_as_they_would_be_with_room_for_all() {
    const HOSTS: usize = 1000;
    const MOST: u64 = 3 << 19;
    let files = SimFiles::default();
    let tight = DiskOptions { max_memory: Some(MOST), ..TIGHT };
    let (store, within) = open(&files, &tight);
    let (_roomy, without) = open(&SimFiles::default(), &SMALL);
    let work = |crawl: &Frontier, round: usize| {
        let page = |host: usize| format!("http://{host}.example/{round}");
        let requests = (0..HOSTS).map(|host| Request::get(page(host)));
        pollster::block_on(crawl.admit(at(0), requests)).expect("it admits");
        let key = format!("{}.example", round * 7);
        let empty = crawl.steer_queue(at(0), &key, QueueChange::Purge(None));
        pollster::block_on(empty).expect("it is emptied");
        // The last of its queue.
        pollster::block_on(crawl.forget(at(0), &page(round * 3))).expect("it is forgotten");
        fetch(crawl, round * 10)
    };
    for round in 0..60 {
        let served = std::thread::scope(|scope| {
            let snapshot = (round % 3 == 0).then(|| scope.spawn(|| store.snapshot()));
            let served = work(&within, round);
            if let Some(snapshot) = snapshot {
                snapshot.join().expect("it ends").expect("a snapshot is taken");
            }
            served
        });
        assert_eq!(served, work(&without, round), "round {round}");
    }
    let rows = everything(&without, at(3));
    assert_eq!(everything(&within, at(3)), rows);
    // What was purged is swept with each question, and what that brings goes with the next.
    let rests = (0..1000).any(|_| pressure(&within).in_memory <= MOST);
    assert!(rests && pressure(&within).paged > MOST, "{:?}", pressure(&within));

    store.abandon();
    files.lose_power(1);
    let (_store, within) = open(&files, &tight);
    let verified = verify_on(&(Arc::new(files.copy()) as _), &mut |_| {}).expect("it can be verified");
    assert_eq!(verified.damages, [], "snapshots say what the log does");
    assert_eq!(everything(&within, at(3)), rows);
    for _ in 0..20 {
        assert_eq!(fetch(&within, 1000), fetch(&without, 1000));
    }
}

/// Nothing is decided without what cannot be read; the log has it.
#[test]
fn what_cannot_be_read_back_ends_the_store_and_loses_nothing() {
    let files = SimFiles::default();
    let (store, crawl) = open(&files, &SWAPPING);
    admit(&crawl, 0..10);
    files.set_read_fault(Some((1, true)));
    let error = pollster::block_on(crawl.claim(at(1), 1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let said = |attempted| {
        format!(
            "disk store: cannot {attempted}: reading simulated/swap failed (simulated failure to read), where it was put for want of \
             memory (max_memory), so what is in memory cannot be trusted any more; what was answered before is safe: look after \
             the disk, then open the store again"
        )
    };
    assert_eq!(error.to_string(), said("claim"));
    files.set_read_fault(None);
    assert_eq!(pollster::block_on(crawl.stats(at(1))).unwrap_err().to_string(), said("count"));
    assert_eq!(store.snapshot().unwrap_err().to_string(), said("take a snapshot"));
    drop((crawl, store));
    let (_, crawl) = open(&files, &SWAPPING);
    assert_eq!(fetch(&crawl, 100).len(), 10);
}

/// One read that fails may do better a moment later.
#[test]
fn one_read_that_fails_is_tried_again() {
    let files = SimFiles::default();
    let (_store, crawl) = open(&files, &SWAPPING);
    admit(&crawl, 0..10);
    files.set_read_fault(Some((1, false)));
    assert_eq!(fetch(&crawl, 10).len(), 10);
}

#[test]
fn without_room_on_disk_it_stays_in_memory_until_there_is_some() {
    let files = SimFiles::default();
    let (_store, crawl) = open(&files, &SWAPPING);
    files.set_full(true);
    admit(&crawl, 0..10);
    let full = pressure(&crawl);
    assert!(full.is_full && full.paged == 0 && full.in_memory > full.fixed, "{full:?}");
    files.set_full(false);
    for _ in 0..300 {
        pressure(&crawl);
    }
    let relieved = pressure(&crawl);
    assert!(!relieved.is_full && relieved.paged > 0 && relieved.in_memory == relieved.fixed, "{relieved:?}");
    assert_eq!(fetch(&crawl, 100).len(), 10);
}

/// A killed process leaves no file with what it had put on disk; one that was just being made goes with the next opening.
#[test]
fn nothing_is_left_behind() {
    let folder = TestFolder::new();
    let open = || Arc::new(DiskStore::open(folder.path(), &SWAPPING).expect("it opens"));
    let names = || {
        let entries = std::fs::read_dir(folder.path().join("segments")).expect("it is there");
        entries
            .map(|entry| entry.expect("it is there").file_name().into_string().expect("a name"))
            .collect::<Vec<_>>()
    };
    let store = open();
    let crawl = crawl(&store);
    admit(&crawl, 0..10);
    assert!(pressure(&crawl).paged > 0);
    assert_eq!(names(), ["0000000001.segment"]);
    store.abandon();
    std::fs::write(folder.path().join("segments/swap"), "left").expect("it is written");
    drop(open());
    assert!(!names().contains(&"swap".to_owned()), "{:?}", names());
}
