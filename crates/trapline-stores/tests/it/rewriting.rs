//! Segments with little alive are rewritten and go: nothing is lost by it, wherever it ends.

use std::sync::Arc;
use std::time::Duration;

use trapline_core::{Request, Timestamp};
use trapline_frontier::{
    CrawlChange, Frontier, Outcome, Query, Rows, Scan, Settlement, StoreError, Visit, Want,
};
use trapline_stores::disk::files::Files;
use trapline_stores::disk::{Rewrite, Rewritten, verify, verify_on};
use trapline_stores::{DiskOptions, DiskStore};

use crate::disk::SMALL;
use crate::faults::frontier;
use crate::folder::TestFolder;
use crate::sim_files::{Fault, FaultKind, SimFiles};

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn open(files: &SimFiles) -> (Arc<DiskStore>, Frontier) {
    let store = Arc::new(DiskStore::open_on(files.clone(), &SMALL).expect("it opens"));
    let crawl = pollster::block_on(frontier(Arc::clone(&store) as _)).expect("the crawl opens");
    (store, crawl)
}

fn open_at(folder: &TestFolder, options: &DiskOptions) -> (Arc<DiskStore>, Frontier) {
    let store = Arc::new(DiskStore::open(folder.path(), options).expect("it opens"));
    let crawl = pollster::block_on(frontier(Arc::clone(&store) as _)).expect("the crawl opens");
    (store, crawl)
}

/// Everything known, as it is told.
fn urls(crawl: &Frontier, now: Timestamp) -> Rows {
    let scan = Scan { limit: 100_000, ..Scan::new(Query::Urls { key: None, pattern: None, state: None }) };
    pollster::block_on(crawl.scan(now, &scan)).expect("it is listed").rows
}

fn admit(crawl: &Frontier, urls: u32) {
    let page = |number| Request::get(format!("http://{number}.example/a/page/with/a/path/{number}"));
    for begin in (0..urls).step_by(100) {
        let batch = (begin..urls.min(begin + 100)).map(page);
        pollster::block_on(crawl.admit(at(0), batch)).expect("it is admitted");
    }
}

/// Every other page is done with, as it lies among the others.
fn visit_half(crawl: &Frontier) {
    let want = Want { lease: Some(Duration::from_secs(50)), ..Want::urls(100_000) };
    let leases = pollster::block_on(crawl.claim(at(1), want)).expect("it is claimed").leases;
    let settle = |(number, lease): (usize, &trapline_frontier::Lease)| {
        let outcome = if number % 2 == 0 { Outcome::done() } else { Outcome::Release };
        Settlement::new(lease.id, outcome)
    };
    let batch: Vec<_> = leases.iter().enumerate().map(settle).collect();
    // A large batch would have a segment of its own.
    for batch in batch.chunks(10) {
        pollster::block_on(crawl.settle(at(1), batch.to_vec())).expect("it is settled");
    }
}

/// All pages are visited again and again, so that most of the log is about what is no more.
fn visit_all(crawl: &Frontier, rounds: std::ops::Range<u64>) {
    for round in rounds {
        let now = at(round * 100);
        let want = Want { lease: Some(Duration::from_secs(50)), ..Want::urls(100_000) };
        let leases = pollster::block_on(crawl.claim(now, want)).expect("it is claimed").leases;
        let next = Some(now + Duration::from_secs(60));
        let visit = Visit { status: 200, digest: Some(vec![round as u8; 32]), ..Visit::default() };
        let done = || Outcome::Done { visit: visit.clone(), next };
        let batch: Vec<_> = leases.iter().map(|lease| Settlement::new(lease.id, done())).collect();
        for batch in batch.chunks(10) {
            pollster::block_on(crawl.settle(now, batch.to_vec())).expect("it is settled");
        }
    }
}

fn clean(files: &SimFiles) {
    let files: Arc<dyn Files> = Arc::new(files.copy());
    let verified = verify_on(&files, &mut |_| {}).expect("it can be verified");
    assert_eq!(verified.damages, [], "{verified:?}");
    assert!(verified.urls > 0);
}

#[test]
fn what_is_needed_moves_and_the_rest_goes() {
    let files = SimFiles::default();
    let (store, crawl) = open(&files);
    admit(&crawl, 3000);
    visit_half(&crawl);
    visit_all(&crawl, 1..4);
    let before = files.names(".segment");
    let gone = || before.iter().filter(|name| !files.names(".segment").contains(*name)).count();
    assert!(before.len() > 5, "{before:?}");
    let expected = urls(&crawl, at(800));
    // Without a snapshot nothing may go, so nothing is moved.
    assert_eq!(store.rewrite(Rewrite::All).expect("it is rewritten"), Rewritten::default());
    store.snapshot().expect("it is taken");
    let rewritten = store.rewrite(Rewrite::Unfit).expect("it is rewritten");
    assert!(rewritten.urls > 0 && rewritten.unreadable == 0 && rewritten.segments > 0, "{rewritten:?}");
    assert_eq!(urls(&crawl, at(800)), expected);
    clean(&files);
    // The snapshot before it needs what was moved; the second one after it does not.
    store.snapshot().expect("it is taken");
    let dead = gone();
    clean(&files);
    visit_all(&crawl, 8..9);
    let expected = urls(&crawl, at(800));
    store.snapshot().expect("it is taken");
    let gone = gone();
    assert!(gone > dead, "{dead} had nothing alive, {gone} are gone of {before:?}");
    clean(&files);
    store.abandon();
    let (store, crawl) = open(&files);
    assert_eq!(urls(&crawl, at(800)), expected);
    visit_all(&crawl, 9..10);
    let expected = urls(&crawl, at(900));
    store.abandon();
    files.lose_power(1);
    clean(&files);
    assert_eq!(urls(&open(&files).1, at(900)), expected);
}

/// However often it is killed in the middle of moving, snapshots and removing, all is there.
#[test]
fn every_call_of_a_rewriting_may_be_the_last() {
    let prepared = SimFiles::default();
    let (store, crawl) = open(&prepared);
    admit(&crawl, 150);
    visit_all(&crawl, 1..12);
    store.snapshot().expect("it is taken");
    let expected = urls(&crawl, at(1200));
    store.abandon();
    let rewrite = |files: &SimFiles| -> Result<(), StoreError> {
        let Ok(store) = DiskStore::open_on(files.clone(), &SMALL) else { return Ok(()) };
        let store = Arc::new(store);
        let crawl = pollster::block_on(frontier(Arc::clone(&store) as _))?;
        let done = || -> Result<(), StoreError> {
            store.rewrite(Rewrite::All)?;
            store.snapshot()?;
            pollster::block_on(crawl.stats(at(1200)))?;
            store.rewrite(Rewrite::All)?;
            pollster::block_on(
                crawl.admit(at(1200), [Request::get("http://0.example/a/page/with/a/path/0")]),
            )?;
            store.snapshot()?;
            Ok(())
        };
        let done = done();
        store.abandon();
        done
    };
    let files = prepared.copy();
    files.set_fault(None);
    rewrite(&files).expect("nothing fails");
    let calls = files.calls();
    let gone = prepared.names(".segment").len();
    assert!(files.names(".segment").len() < gone, "segments were removed");
    assert!(calls > 15, "{calls}");
    for call in 1..=calls {
        for for_ever in [false, true] {
            let files = prepared.copy();
            files.set_fault(Some(Fault { call, for_ever, kind: FaultKind::Half }));
            let _ = rewrite(&files);
            files.set_fault(None);
            files.lose_power(call);
            let (store, crawl) = open(&files);
            assert_eq!(urls(&crawl, at(1200)), expected, "call {call}");
            visit_all(&crawl, 9..10);
            // What is torn of a snapshot goes with the next.
            store.snapshot().expect("it is taken");
            store.abandon();
            clean(&files);
        }
    }
}

/// What deleted crawls had is needed by nobody.
#[test]
fn a_crawl_that_is_deleted_leaves_nothing_behind() {
    let files = SimFiles::default();
    let (store, crawl) = open(&files);
    admit(&crawl, 3000);
    let before = files.names(".segment").len();
    pollster::block_on(crawl.steer_crawl(at(1), CrawlChange::Delete)).expect("it is deleted");
    let crawl = pollster::block_on(frontier(Arc::clone(&store) as _)).expect("another is made");
    for round in 0..2 {
        admit(&crawl, round + 1);
        store.snapshot().expect("it is taken");
    }
    let after = files.names(".segment").len();
    assert!(before > 3 && after == 1, "{before} segments before, {after} after");
    clean(&files);
    let expected = urls(&crawl, at(2));
    store.abandon();
    assert_eq!(urls(&open(&files).1, at(2)), expected);
}

/// A text that cannot be read stays where it is, and so does its segment; the others move.
#[test]
fn what_is_damaged_is_not_moved_and_not_tried_for_ever() {
    let files = SimFiles::default();
    let (store, crawl) = open(&files);
    admit(&crawl, 3000);
    visit_half(&crawl);
    visit_all(&crawl, 1..4);
    store.snapshot().expect("it is taken");
    let name = "0000000002.segment".to_owned();
    files.change(&name, |bytes| bytes[10_000..10_400].fill(7));
    let rewritten = store.rewrite(Rewrite::All).expect("it is rewritten");
    assert!(rewritten.unreadable > 0 && rewritten.unreadable < 20, "{rewritten:?}");
    assert_eq!(store.rewrite(Rewrite::Unfit).expect("it is rewritten"), Rewritten::default());
    for round in 8..10 {
        visit_all(&crawl, round..round + 1);
        store.snapshot().expect("it is taken");
    }
    assert!(files.names(".segment").contains(&name), "it is still needed");
}

/// The thread does it by itself.
#[test]
fn a_store_that_is_used_stays_small() {
    let folder = TestFolder::new();
    let options = DiskOptions { snapshot_bytes: 256 << 10, background: true, ..SMALL };
    let store = Arc::new(DiskStore::open(folder.path(), &options).expect("it opens"));
    let crawl = pollster::block_on(frontier(Arc::clone(&store) as _)).expect("the crawl opens");
    admit(&crawl, 200);
    visit_all(&crawl, 1..150);
    let expected = urls(&crawl, at(15_000));
    store.close().expect("it closes");
    let folder_bytes = || -> u64 {
        let files = std::fs::read_dir(folder.path().join("segments")).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
    };
    // Some 6 MB were written.
    let bytes = folder_bytes();
    assert!(bytes < 2 << 20, "{bytes} bytes");
    let verified = verify(folder.path(), &mut |_| {}).expect("it can be verified");
    assert_eq!((verified.damages.len(), verified.urls), (0, 200), "{verified:?}");
    let store = Arc::new(DiskStore::open(folder.path(), &options).expect("it opens"));
    let crawl = pollster::block_on(frontier(store as _)).expect("the crawl opens");
    assert_eq!(urls(&crawl, at(15_000)), expected);
}

/// A busy hour leaves much of the log behind: what came since the older of two snapshots. When hardly anything is asked for
/// any more, it goes too.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the thread tells nobody when it has tidied up, and then nothing is to happen"
)]
fn a_store_at_rest_gives_back_what_it_has_too_much() {
    let folder = TestFolder::new();
    let busy = DiskOptions { background: true, ..SMALL };
    let log = |crawl: &Frontier| {
        let stats = pollster::block_on(crawl.stats(at(15_000))).expect("it counts");
        stats.disk.expect("it is on disk")
    };
    let (store, crawl) = open_at(&folder, &busy);
    admit(&crawl, 2000);
    visit_all(&crawl, 1..40);
    let expected = urls(&crawl, at(15_000));
    let disk = log(&crawl);
    assert!(disk.log_bytes > 4 * disk.needed_bytes, "{disk:?}");
    store.close().expect("it closes");

    let (store, crawl) = open_at(&folder, &DiskOptions { quiet: Duration::from_millis(20), ..busy });
    let most = |needed: u64| needed / 2 * 3 + 3 * busy.segment_bytes;
    // Small, and then at rest.
    let (mut last, mut alike) = (log(&crawl), 0);
    let looks = (0..6000).take_while(|_| {
        std::thread::sleep(Duration::from_millis(10));
        let before = std::mem::replace(&mut last, log(&crawl));
        alike = if last == before { alike + 1 } else { 0 };
        last.log_bytes > most(last.needed_bytes) || alike < 20
    });
    assert!(looks.count() < 6000, "{:?}", log(&crawl));
    assert_eq!(urls(&crawl, at(15_000)), expected);
    store.abandon();
    let verified = verify(folder.path(), &mut |_| {}).expect("it can be verified");
    assert_eq!((verified.damages.len(), verified.urls), (0, 2000), "{verified:?}");
    assert_eq!(urls(&open_at(&folder, &busy).1, at(15_000)), expected);
}

/// Sizes and times that no store can have are made such as it can.
#[test]
fn options_without_bounds_do_no_harm() {
    for (segment_bytes, quiet) in [(0, Duration::ZERO), (u64::MAX, Duration::MAX), (u64::MAX, Duration::ZERO)]
    {
        let folder = TestFolder::new();
        let options = DiskOptions { segment_bytes, quiet, background: true, ..SMALL };
        let (store, crawl) = open_at(&folder, &options);
        admit(&crawl, 300);
        visit_all(&crawl, 1..20);
        let expected = urls(&crawl, at(15_000));
        store.close().expect("it closes");
        assert_eq!(urls(&open_at(&folder, &options).1, at(15_000)), expected);
    }
}

/// A pending URL of 70 characters takes at most 60 bytes of the log, all in, once it was moved.
#[test]
fn moved_urls_take_little_room() {
    const WORDS: [&str; 12] = [
        "garden", "winter", "market", "report", "camera", "history", "travel", "school", "energy", "kitchen",
        "museum", "bicycle",
    ];
    const URLS: usize = 20_000;
    let files = SimFiles::default();
    let (store, crawl) = open(&files);
    let url = |number: usize| {
        let word = |nth: usize| WORDS[(number / 12_usize.pow(nth as u32 % 4) + nth * 5) % 12];
        let host = number * 7919 % 5000;
        let start = format!("https://www.{}-{}{host}.example.com/{}/", word(0), word(1), word(2));
        let end = format!("{}-{number}.html", word(3));
        let between = "abcdefghijklmnopqrstuvwxyz-0123456789".chars().cycle().skip(number % 37);
        let between: String = between.take(70 - start.len() - end.len()).collect();
        start + &between + &end
    };
    for begin in (0..URLS).step_by(500) {
        let batch = (begin..begin + 500).map(|number| Request::get(url(number)));
        pollster::block_on(crawl.admit(at(0), batch)).expect("it is admitted");
    }
    assert!((0..URLS).all(|number| url(number).len() == 70));
    let before = urls(&crawl, at(1));
    store.snapshot().expect("it is taken");
    let rewritten = store.rewrite(Rewrite::All).expect("it is rewritten");
    assert!(rewritten.urls as usize > URLS - 1000, "{rewritten:?}");
    let each = rewritten.bytes as f64 / rewritten.urls as f64;
    assert!(each <= 60.0, "{each} bytes each");
    assert_eq!(urls(&crawl, at(1)), before);
    store.abandon();
    assert_eq!(urls(&open(&files).1, at(1)), before);
    clean(&files);
}

/// However short the URLs and small the segments: what was moved is not worth moving again.
#[test]
fn rewriting_ends_with_short_urls_too() {
    let files = SimFiles::default();
    let (store, crawl) = open(&files);
    let page = |number: u32| Request::get(format!("http://a.bc/{number}"));
    for begin in (0..12_000).step_by(500) {
        pollster::block_on(crawl.admit(at(0), (begin..begin + 500).map(page))).expect("it is admitted");
    }
    let mut moved = Vec::new();
    for _ in 0..12 {
        store.snapshot().expect("it is taken");
        moved.push(store.rewrite(Rewrite::Unfit).expect("it is rewritten").urls);
        if moved.last() == Some(&0) {
            return clean(&files);
        }
    }
    panic!("it goes on for ever: {moved:?}");
}
