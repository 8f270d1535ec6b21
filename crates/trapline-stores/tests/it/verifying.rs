//! Verifying, repairing and copying stores: healthy ones, and ones with a byte turned at every place that matters.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trapline_core::{IdentityKey, Request, Timestamp};
use trapline_frontier::{
    Admission, Frontier, Lease, Outcome, Query, Rows, Scan, Settings, Settlement, Store, UrlState,
};
use trapline_stores::disk::{Verified, checkpoint, checkpoints, repair, restore, verify};
use trapline_stores::{DiskOptions, DiskStore};

use crate::disk::SMALL;
use crate::folder::TestFolder;

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn open(path: &Path) -> (Arc<DiskStore>, Frontier) {
    let store = Arc::new(DiskStore::open(path, &SMALL).expect("it opens"));
    let settings = Settings { delay: std::time::Duration::ZERO, concurrency: 0, ..Settings::default() };
    let builder = Frontier::builder("c").partitions(1).key(IdentityKey::from_seed(5)).settings(settings);
    let frontier =
        pollster::block_on(builder.open_shared(Arc::clone(&store) as Arc<dyn Store>, Timestamp::ZERO));
    (store, frontier.expect("the crawl opens"))
}

fn page(round: u64, number: u64) -> Request {
    let mut request = Request::get(format!("http://{}.example/{round}/{number}", number % 7));
    request.body = vec![b'x'; 300];
    request
}

/// Rounds of admissions, claims and settlements; a snapshot after some of them.
fn work(path: &Path, rounds: u64, snapshots: &[u64]) {
    let (store, frontier) = open(path);
    for round in 0..rounds {
        let now = at(round);
        pollster::block_on(frontier.admit(now, (0..20).map(|number| page(round, number))))
            .expect("the test can do this");
        let leases = pollster::block_on(frontier.claim(now, 5)).expect("the test can do this").leases;
        let settle = |lease: &Lease| {
            let mut settlement = Settlement::new(lease.id, Outcome::done());
            let link = Request::get(format!("{}/link", lease.request.url));
            settlement.links = frontier.prepare(link).into_iter().collect();
            settlement
        };
        pollster::block_on(frontier.settle(now, leases.iter().take(4).map(settle).collect()))
            .expect("the test can do this");
        if snapshots.contains(&round) {
            store.snapshot().expect("the test can do this");
        }
    }
    store.close().expect("the test can do this");
}

fn verified(path: &Path) -> Verified {
    verify(path, &mut |_| ()).expect("it can be read")
}

/// What is in a store, as far as it can be asked.
fn contents(path: &Path) -> Vec<Rows> {
    let (_, frontier) = open(path);
    let queries = [
        Query::Queues { keys: None, state: None },
        Query::Urls { key: None, pattern: None, state: None },
        Query::Leases,
        Query::Dead,
    ];
    let ask = |query| {
        let scan = Scan { limit: 100_000, ..Scan::new(query) };
        pollster::block_on(frontier.scan(at(1000), &scan)).expect("it answers").rows
    };
    queries.into_iter().map(ask).collect()
}

fn segment(path: &Path, number: u64) -> PathBuf {
    path.join(format!("segments/{number:010}.segment"))
}

/// Turns a byte of a file.
fn turn(file: &Path, at: usize) {
    let mut bytes = fs::read(file).expect("the test can do this");
    bytes[at] ^= 0xff;
    fs::write(file, bytes).expect("the test can do this");
}

#[test]
fn a_healthy_store_is_found_healthy_running_and_stopped() {
    let folder = TestFolder::new();
    work(folder.path(), 40, &[10, 25]);
    let found = verified(folder.path());
    assert_eq!(found.damages, [], "{found:?}");
    assert!(found.segments > 3 && found.snapshots == 2 && found.records > 100, "{found:?}");
    assert_eq!((found.crawls, found.urls), (1, 40 * 24));
    let (store, frontier) = open(folder.path());
    pollster::block_on(frontier.admit(at(50), [page(77, 1)])).unwrap();
    assert_eq!(verified(folder.path()).damages, []);
    drop((store, frontier));
}

#[test]
fn every_damaged_place_is_named() {
    let healthy = TestFolder::new();
    work(healthy.path(), 12, &[6]);
    let first = segment(healthy.path(), 1);
    let length = fs::read(&first).unwrap().iter().rposition(|byte| *byte != 0).unwrap();
    for place in (0..length).step_by(251) {
        let folder = TestFolder::new();
        restore(healthy.path(), folder.path()).unwrap();
        turn(&segment(folder.path(), 1), place);
        let found = verified(folder.path());
        let named = found.damages.iter().any(|damage| {
            damage.file.ends_with("0000000001.segment")
                && damage.bytes.as_ref().is_some_and(|bytes| bytes.contains(&(place as u64)))
        });
        assert!(named, "byte {place}: {:?}", found.damages);
    }
    let snapshot = fs::read_dir(healthy.path().join("segments")).unwrap();
    let snapshot = snapshot.map(|entry| entry.unwrap().path());
    let snapshot = snapshot.into_iter().find(|path| path.to_string_lossy().ends_with(".snapshot")).unwrap();
    turn(&snapshot, 200);
    let found = verified(healthy.path());
    assert!(found.damages.len() == 1 && found.damages[0].file.ends_with(".snapshot"), "{found:?}");
}

#[test]
fn a_repair_saves_all_that_is_readable_and_names_the_rest() {
    for snapshots in [&[][..], &[20]] {
        let folder = TestFolder::new();
        work(folder.path(), 40, snapshots);
        let whole = contents(folder.path());
        // In the middle of the first segments, long before a snapshot.
        turn(&segment(folder.path(), 2), 9000);
        let (store, _) = match std::panic::catch_unwind(|| open(folder.path())) {
            Ok(opened) => opened,
            Err(_) => {
                assert!(snapshots.is_empty(), "a later snapshot needs no earlier record");
                repaired(folder.path(), &whole, false);
                continue;
            }
        };
        store.close().unwrap();
        repaired(folder.path(), &whole, true);
    }
}

fn urls(rows: &[Rows]) -> Vec<(Option<String>, UrlState)> {
    let Rows::Urls(urls) = &rows[1] else { panic!("URLs were asked for") };
    let mut urls: Vec<_> =
        urls.iter().map(|url| (url.request.as_ref().map(|request| request.url.clone()), url.state)).collect();
    urls.sort_by(|a, b| a.0.cmp(&b.0));
    urls
}

/// Repairs a store, and holds what came of it against what there was.
fn repaired(from: &Path, whole: &[Rows], has_snapshot: bool) {
    let to = TestFolder::new();
    let found = repair(from, to.path(), &mut |_| ()).expect("it is repaired");
    assert_eq!(found.damages.len(), 1, "{found:?}");
    let left = contents(to.path());
    let (before, after) = (urls(whole), urls(&left));
    let missing = before.iter().filter(|(url, _)| !after.iter().any(|(other, _)| other == url)).count();
    assert!(missing <= 20, "one record is lost, not {missing} URLs");
    let invented = after.iter().filter(|(url, _)| !before.iter().any(|(other, _)| other == url)).count();
    assert_eq!(invented, 0);
    if has_snapshot {
        assert_eq!(found.lost_urls.len(), missing, "each is named");
        assert_eq!((found.claims_left_out, found.settlements_left_out), (0, 0));
    } else {
        assert!(found.claims_left_out > 0 && found.settlements_left_out > 0, "{found:?}");
    }
    // It is whole, goes on, and stays whole.
    assert_eq!(verified(to.path()).damages, []);
    let (store, frontier) = open(to.path());
    let leases = pollster::block_on(frontier.claim(at(2000), 3)).expect("the test can do this").leases;
    assert!(leases.iter().all(|lease| lease.id.0 > 1 << 32), "no number is given out twice");
    pollster::block_on(frontier.admit(at(2000), [page(99, 9)])).expect("the test can do this");
    store.close().expect("the test can do this");
    assert_eq!(verified(to.path()).damages, []);
    // A second repair has nothing to mend, and loses nothing.
    let again = TestFolder::new();
    assert_eq!(repair(to.path(), again.path(), &mut |_| ()).expect("the test can do this").damages, []);
    assert_eq!(urls(&contents(again.path())), urls(&contents(to.path())));
}

/// Of a batch, other URLs may be new than were: a loss before it has taken one that was known. Each keeps its own request.
#[test]
fn a_repair_gives_no_url_the_request_of_another() {
    let folder = TestFolder::new();
    let (store, frontier) = open(folder.path());
    let url = |name: &str| format!("http://{name}.example/page");
    let admit = |names: &[&str]| {
        let better = |name: &&str| {
            let mut candidate = frontier.prepare(Request::get(url(name))).expect("a URL");
            (candidate.improve, candidate.class) = (true, Some(1));
            candidate
        };
        let batch: Vec<_> = names.iter().map(better).collect();
        pollster::block_on(frontier.admit_candidates(at(1), &batch)).expect("they are admitted")
    };
    pollster::block_on(frontier.admit(at(0), [Request::get(url("lost"))])).expect("it is admitted");
    // Known, so that its text comes behind those of the others.
    assert_eq!(admit(&["lost", "one", "other"])[0], Admission::Rescored);
    store.abandon();
    let file = segment(folder.path(), 1);
    let bytes = fs::read(&file).expect("the test can do this");
    let lost = bytes.windows(url("lost").len()).position(|bytes| bytes == url("lost").as_bytes());
    turn(&file, lost.expect("it is there"));
    let to = TestFolder::new();
    let to = to.path().join("repaired");
    let repaired = repair(folder.path(), &to, &mut |_| ()).expect("it is repaired");
    assert_eq!((repaired.urls, repaired.damages.len()), (3, 1), "{repaired:?}");
    let (_store, frontier) = open(&to);
    for name in ["lost", "one", "other"] {
        let identity = frontier.prepare(Request::get(url(name))).expect("a URL").identity;
        let scan = Scan::new(Query::UrlList(vec![identity]));
        match pollster::block_on(frontier.scan(at(2), &scan)).expect("it is listed").rows {
            Rows::Urls(urls) => {
                assert_eq!(urls[0].request.as_ref().map(|request| &*request.url), Some(&*url(name)));
            }
            rows => panic!("{rows:?}"),
        }
    }
}

#[test]
fn a_checkpoint_is_the_store_as_it_was_however_often_it_is_restored() {
    let folder = TestFolder::new();
    work(folder.path(), 30, &[15]);
    let (store, frontier) = open(folder.path());
    let before = contents_of(&frontier);
    // In use, and used further.
    let copy = checkpoint(folder.path(), "before").unwrap();
    pollster::block_on(frontier.claim(at(1000), 50)).unwrap();
    pollster::block_on(frontier.admit(at(1000), (0..500).map(|number| page(500, number)))).unwrap();
    assert_eq!(checkpoints(folder.path()).unwrap(), ["before"]);
    for _ in 0..2 {
        let restored = TestFolder::new();
        restore(&copy, restored.path()).unwrap();
        let (restored_store, restored) = open(restored.path());
        assert_eq!(contents_of(&restored), before);
        // What is done there is not seen in the checkpoint.
        pollster::block_on(restored.claim(at(1000), 50)).unwrap();
        restored_store.close().unwrap();
    }
    let error = checkpoint(folder.path(), "before").unwrap_err().to_string();
    assert!(error.contains("is there already; choose another name"), "{error}");
    for bad in ["", "../x", "a/b", ".hidden", "x.part", "ä"] {
        assert!(
            checkpoint(folder.path(), bad).unwrap_err().to_string().contains("a name has letters"),
            "{bad}"
        );
    }
    drop((store, frontier));
    let error = verify("/nowhere/at/all", &mut |_| ()).unwrap_err().to_string();
    assert_eq!(error, "disk store: cannot verify `/nowhere/at/all`: there is no store in that folder");
}

/// While the newest segment has no record, its header may not be on disk: if the power goes, the one before it goes on, and a
/// checkpoint must not change by that.
#[test]
fn a_checkpoint_shares_no_segment_that_may_be_written_again() {
    use std::os::unix::fs::MetadataExt;
    let folder = TestFolder::new();
    work(folder.path(), 30, &[]);
    let newest = folder.segments().len() as u64;
    assert!(newest > 2);
    let names = |number| fs::metadata(segment(folder.path(), number)).unwrap().nlink();
    checkpoint(folder.path(), "full").unwrap();
    assert_eq!((1..=newest).map(names).collect::<Vec<_>>()[newest as usize - 2..], [2, 1]);
    // The header of another one is written, and nothing else.
    let mut next = fs::read(segment(folder.path(), newest)).unwrap();
    let mut header = next[..64].to_vec();
    let records = fs::read(segment(folder.path(), newest)).unwrap();
    let (mut end, mut last) = (64, 0);
    while records[end + 4] != 0 {
        last = u64::from_le_bytes(records[end + 8..end + 16].try_into().unwrap());
        end += 40 + u32::from_le_bytes(records[end..end + 4].try_into().unwrap()) as usize;
    }
    header[32..40].copy_from_slice(&(newest + 1).to_le_bytes());
    header[40..48].copy_from_slice(&(last + 1).to_le_bytes());
    let checksum = xxhash_rust::xxh3::xxh3_64(&header[..56]);
    header[56..].copy_from_slice(&checksum.to_le_bytes());
    next.fill(0);
    next[..64].copy_from_slice(&header);
    fs::write(segment(folder.path(), newest + 1), &next).unwrap();
    let copy = checkpoint(folder.path(), "begun").unwrap();
    assert_eq!((names(newest - 1), names(newest), names(newest + 1)), (3, 1, 1));
    // The power goes, and the store goes on in the segment before.
    fs::write(segment(folder.path(), newest + 1), vec![0; next.len()]).unwrap();
    let before = contents(folder.path());
    let (store, frontier) = open(folder.path());
    pollster::block_on(frontier.admit(at(1000), [page(99, 99)])).unwrap();
    store.close().unwrap();
    let again = TestFolder::new();
    restore(&copy, again.path()).unwrap();
    assert_eq!(verified(again.path()).damages, []);
    assert_eq!(contents(again.path()), before);
}

/// What a killed repair has left is never taken for a store, and not in the way of the next.
#[test]
fn a_repair_that_was_killed_is_begun_anew() {
    let (folder, new) = (TestFolder::new(), TestFolder::new());
    work(folder.path(), 3, &[]);
    let mut part = new.path().as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    fs::create_dir_all(part.join("segments")).unwrap();
    fs::write(part.join("segments/0000000009.segment"), "half of it").unwrap();
    let was_there = std::cell::Cell::new(false);
    repair(folder.path(), new.path(), &mut |_| was_there.set(part.exists() && !new.path().exists())).unwrap();
    assert!(was_there.get() && !part.exists(), "it has its name when it is complete");
    assert_eq!(verified(new.path()).damages, []);
    assert_eq!(contents(new.path()), contents(folder.path()));
    let error = repair(folder.path(), new.path(), &mut |_| ()).unwrap_err().to_string();
    assert!(error.contains("the second is not empty; choose a new folder"), "{error}");
}

fn contents_of(frontier: &Frontier) -> Rows {
    let scan = Scan { limit: 100_000, ..Scan::new(Query::Urls { key: None, pattern: None, state: None }) };
    pollster::block_on(frontier.scan(at(999), &scan)).expect("it answers").rows
}

/// Opening with other sizes than those it was made with.
#[test]
fn options_may_change_between_openings() {
    let folder = TestFolder::new();
    work(folder.path(), 10, &[]);
    let store = DiskStore::open(folder.path(), &DiskOptions::default()).unwrap();
    store.close().unwrap();
    work(folder.path(), 10, &[]);
    assert_eq!(verified(folder.path()).damages, []);
}
