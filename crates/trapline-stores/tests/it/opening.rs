//! What opening finds: torn ends, damage, folders that are held, newer, or no store's; and what it says of them.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use trapline_core::{Request, Timestamp};
use trapline_frontier::{Engine, ErrorKind, Frontier, Order, Settings, Store, StoreError};
use trapline_stores::disk::verify;
use trapline_stores::{DiskOptions, DiskStore, Durability};

use crate::disk::SMALL;
use crate::folder::TestFolder;

const NOW: Timestamp = Timestamp::ZERO;

fn open(folder: &TestFolder) -> Result<DiskStore, StoreError> {
    DiskStore::open(folder.path(), &SMALL)
}

fn crawl(store: impl Store) -> Frontier {
    pollster::block_on(Frontier::builder("c").open(store, NOW)).expect("a crawl can be opened")
}

fn admit(crawl: &Frontier, urls: std::ops::Range<u32>) {
    for number in urls {
        let request = Request::get(format!("http://a.example/{number}"));
        pollster::block_on(crawl.admit(NOW, [request])).expect("it is admitted");
    }
}

/// A store with so many URLs, closed. Each is a record; the creation of the crawl is the first.
fn filled(urls: u32) -> TestFolder {
    let folder = TestFolder::new();
    admit(&crawl(open(&folder).expect("the test can do this")), 0..urls);
    folder
}

fn change(file: &Path, at: u64, bytes: &[u8]) {
    let file = fs::OpenOptions::new().write(true).open(file).expect("the test can do this");
    file.write_all_at(bytes, at).expect("the test can do this");
}

/// Where each record of a segment begins, and where the last ends, by the layout in `record.rs`.
fn places(file: &Path) -> Vec<usize> {
    let bytes = fs::read(file).expect("the test can do this");
    let mut places = vec![64];
    loop {
        let at = *places.last().expect("the test can do this");
        let length = u32::from_le_bytes(bytes[at..at + 4].try_into().expect("the test can do this")) as usize;
        if bytes[at + 4] == 0 {
            return places;
        }
        places.push(at + 40 + length);
    }
}

fn message(folder: &TestFolder) -> (ErrorKind, String) {
    let error = open(folder).err().expect("it does not open");
    (error.kind(), error.to_string().replace(&folder.path().display().to_string(), "PATH"))
}

#[test]
fn what_was_recovered_is_told_with_the_log() {
    let folder = filled(5);
    let stats = pollster::block_on(crawl(open(&folder).unwrap()).stats(NOW)).unwrap();
    let found = stats.recovered.unwrap();
    assert_eq!((found.pending, found.seen, found.log_position, found.bytes_cut), (5, 5, 6, 0));
    assert!(found.took > Duration::ZERO);
}

/// Whoever only looks leaves the log as it was.
#[test]
fn opening_a_crawl_that_is_there_writes_nothing() {
    let folder = filled(2);
    for _ in 0..3 {
        let stats = pollster::block_on(crawl(open(&folder).unwrap()).stats(NOW)).unwrap();
        assert_eq!(stats.recovered.unwrap().log_position, 3);
    }
}

#[test]
fn a_torn_end_is_cut_wherever_it_is_torn() {
    let whole = filled(3);
    let segment = whole.segments().remove(0);
    let bytes = fs::read(&segment).unwrap();
    let places = places(&segment);
    let (last, end) = (places[3], places[4]);
    for cut in last..end {
        let mut torn = bytes.clone();
        torn[cut..end].fill(0);
        fs::write(&segment, &torn).unwrap();
        let store = open(&whole).unwrap();
        let stats = pollster::block_on(store.stats("c", NOW)).unwrap();
        let found = stats.recovered.unwrap();
        let is_whole = torn == bytes;
        assert_eq!((found.seen, found.log_position), if is_whole { (3, 4) } else { (2, 3) }, "torn at {cut}");
        let left = torn[last..].iter().rposition(|byte| *byte != 0).map_or(0, |place| place as u64 + 1);
        assert_eq!(found.bytes_cut, if is_whole { 0 } else { left });
        drop(store);
        if !is_whole {
            assert!(fs::read(&segment).unwrap()[last..].iter().all(|byte| *byte == 0), "it is blank");
        }
    }
}

#[test]
fn damage_in_the_middle_is_told_with_its_place_and_never_skipped() {
    let folder = filled(5);
    let segment = folder.segments().remove(0);
    let places = places(&segment);
    let bytes = fs::read(&segment).unwrap();
    for (record, at) in [(2, places[1]), (3, places[2])] {
        for damage in [at, at + 9, at + 33, at + 50] {
            change(&segment, damage as u64, &[bytes[damage] ^ 0x20]);
            let expected = format!(
                "disk store: cannot open: PATH/segments/0000000001.segment is damaged at byte {at}: record {record} was on disk \
                 and is not whole any more; nothing was changed: see what `verify` says, which can save the rest into a new folder, or restore a checkpoint \
                 (docs/manual/disk.md says more)"
            );
            assert_eq!(message(&folder), (ErrorKind::Corrupt, expected));
            change(&segment, damage as u64, &bytes[damage..=damage]);
        }
        // A page of zeros is damage too.
        change(&segment, at as u64, &vec![0; places[3] - at]);
        assert_eq!(message(&folder).0, ErrorKind::Corrupt);
        fs::write(&segment, &bytes).unwrap();
    }
    assert!(open(&folder).is_ok(), "once it is restored");
}

#[test]
fn damage_in_an_older_segment_is_never_a_torn_end() {
    let folder = filled(800);
    let segments = folder.segments();
    assert!(segments.len() > 1);
    let last = *places(&segments[0]).iter().rev().nth(1).unwrap();
    let bytes = fs::read(&segments[0]).unwrap();
    change(&segments[0], last as u64 + 45, &[bytes[last + 45] ^ 1]);
    let (kind, text) = message(&folder);
    assert_eq!(kind, ErrorKind::Corrupt);
    assert!(text.contains(&format!("0000000001.segment is damaged at byte {last}")), "{text}");
    fs::remove_file(&segments[0]).unwrap();
    let (_, text) = message(&folder);
    assert!(
        text.contains("segments/0000000001.segment is missing, although there are later segments"),
        "{text}"
    );
}

#[test]
fn a_segment_of_another_store_is_noticed() {
    let (folder, other) = (filled(800), filled(800));
    fs::copy(&other.segments()[1], &folder.segments()[1]).unwrap();
    let (kind, text) = message(&folder);
    assert_eq!(kind, ErrorKind::Corrupt);
    assert!(text.contains("0000000002.segment does not belong there"), "{text}");
}

#[test]
fn a_segment_that_was_only_begun_is_removed() {
    let folder = filled(3);
    let begun = folder.path().join("segments/0000000002.segment");
    for content in [&[][..], &[0; 5000], b"trapl"] {
        fs::write(&begun, content).unwrap();
        let store = open(&folder).unwrap();
        assert_eq!(pollster::block_on(store.stats("c", NOW)).unwrap().recovered.unwrap().seen, 3);
        assert!(!begun.exists());
    }
}

#[test]
fn a_newer_format_is_refused() {
    let folder = filled(1);
    change(&folder.segments()[0], 8, &[2]);
    let expected = "disk store: cannot open PATH/segments/0000000001.segment: it has format 2, and this version of Trapline \
                    knows formats up to 1; nothing was changed: open it with the version that wrote it, or a later one";
    assert_eq!(message(&folder), (ErrorKind::Unsupported, expected.to_owned()));
}

/// Changes a byte in the header of a record, counting from 0, which is whole afterwards. Answers where it begins.
fn forge(segment: &Path, record: usize, byte: usize, by: u8) -> usize {
    let (bytes, places) = (fs::read(segment).expect("the test can do this"), places(segment));
    let at = places[record];
    let mut record = bytes[at..places[record + 1]].to_vec();
    record[byte] ^= by;
    // Checksums are seeded with the store's number, from the segment's header.
    let seal = xxhash_rust::xxh3::xxh3_64(&bytes[16..32]);
    let body = xxhash_rust::xxh3::xxh3_64_with_seed(&record[40..], seal);
    let checksum = xxhash_rust::xxh3::xxh3_64_with_seed(&record[..32], body);
    record[32..40].copy_from_slice(&checksum.to_le_bytes());
    change(segment, at as u64, &record);
    at
}

/// An engine that answers otherwise than the one that wrote the log must not go on with another history.
#[test]
fn another_history_is_refused() {
    let folder = filled(2);
    // As if the URL had been known: another answer, in a record that is whole.
    let at = forge(&folder.segments()[0], 2, 24, 1);
    let expected = format!(
        "disk store: cannot open PATH/segments/0000000001.segment: record 3 at byte {at} answered otherwise when it was \
         written than it does now; nothing was changed: open the folder with the version of Trapline that wrote it, and \
         report this"
    );
    assert_eq!(message(&folder), (ErrorKind::Corrupt, expected));
}

/// Where the engine's version is in a record.
const RULES: usize = 6;

#[test]
fn what_an_engine_of_other_rules_did_is_not_done_again() {
    let folder = filled(2);
    forge(&folder.segments()[0], 2, RULES, 5);
    let expected = |attempted: &str| {
        format!(
            "disk store: cannot {attempted} PATH/segments/0000000001.segment: from record 3 on it was written by an engine with \
             rules {}, and this version of Trapline has rules {}, which may decide otherwise; nothing was changed: open it \
             once with the version that wrote it and close it in good order (`trapline frontier stats` does), then this one \
             can go on",
            Engine::RULES ^ 5,
            Engine::RULES
        )
    };
    assert_eq!(message(&folder), (ErrorKind::Unsupported, expected("open")));
    let error = verify(folder.path(), &mut |_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let told = error.to_string().replace(&folder.path().display().to_string(), "PATH");
    assert_eq!(told, expected("verify"));
}

/// What an engine of earlier rules did is done again by its rules, and what comes then by those of the crawl: one ordered by date keeps
/// what has a date in trees, as it did.
#[test]
fn what_an_engine_of_earlier_rules_did_is_done_again_as_it_did_it() {
    let folder = TestFolder::new();
    let open = || {
        let store: Arc<dyn Store> = Arc::new(open(&folder).expect("it opens"));
        let settings = Settings { order: Order::Date, ..Settings::default() };
        let crawl = Frontier::builder("c").settings(settings).open_shared(store, NOW);
        pollster::block_on(crawl).expect("a crawl can be opened")
    };
    let rare = |crawl: &Frontier| pollster::block_on(crawl.stats(NOW)).unwrap().memory.unwrap().rare;
    let crawl = open();
    admit(&crawl, 0..20);
    let in_lanes = rare(&crawl);
    drop(crawl);
    let records = places(&folder.segments()[0]).len() - 1;
    for record in 0..records {
        forge(&folder.segments()[0], record, RULES, 1);
    }
    let crawl = open();
    let in_trees = rare(&crawl);
    assert!(in_trees > in_lanes, "{in_trees} bytes, and {in_lanes} in lanes");
    admit(&crawl, 20..40);
    assert!(rare(&crawl) > in_trees);
    drop(crawl);
    let found = verify(folder.path(), &mut |_| ()).unwrap();
    assert_eq!((found.damages, found.urls), (vec![], 40));
}

/// As stores are opened by programs.
const USUAL: DiskOptions = DiskOptions { background: true, ..SMALL };

/// A store with so many URLs, closed in good order, as it usually is.
fn closed(urls: u32, options: &DiskOptions) -> TestFolder {
    let folder = TestFolder::new();
    let store = Arc::new(DiskStore::open(folder.path(), options).expect("it opens"));
    let crawl = Frontier::builder("c").open_shared(Arc::clone(&store) as _, NOW);
    admit(&pollster::block_on(crawl).expect("a crawl can be opened"), 0..urls);
    store.close().expect("it closes");
    folder
}

fn snapshots(folder: &TestFolder) -> Vec<PathBuf> {
    folder
        .segments()
        .into_iter()
        .filter(|file| file.extension().is_some_and(|end| end == "snapshot"))
        .collect()
}

/// Whatever an upgrade changes in the engine, a store that was closed before it goes on after it.
#[test]
fn a_store_closed_in_good_order_opens_with_other_rules() {
    let folder = closed(3, &USUAL);
    for record in 0..4 {
        forge(&folder.segments()[0], record, RULES, 5);
    }
    for _ in 0..3 {
        let found = verify(folder.path(), &mut |_| ()).unwrap();
        assert_eq!((found.damages, found.leftovers), (vec![], vec![]));
        let crawl = crawl(DiskStore::open(folder.path(), &USUAL).unwrap());
        let stats = pollster::block_on(crawl.stats(NOW)).unwrap();
        assert_eq!(stats.recovered.unwrap().pending, found.urls);
        admit(&crawl, found.urls as u32..found.urls as u32 + 1);
    }
}

/// Closing leaves a snapshot however little was done, and none where nothing was: who only looks writes nothing at all.
#[test]
fn closing_leaves_a_snapshot_of_what_was_done() {
    let folder = TestFolder::new();
    drop(DiskStore::open(folder.path(), &USUAL).unwrap());
    assert_eq!(snapshots(&folder), [] as [PathBuf; 0]);
    let folder = closed(1, &USUAL);
    assert_eq!(snapshots(&folder), [folder.path().join("segments/0000000003.snapshot")]);
    let before: Vec<_> =
        folder.segments().iter().map(|file| fs::metadata(file).unwrap().modified().unwrap()).collect();
    for _ in 0..3 {
        let crawl = crawl(DiskStore::open(folder.path(), &USUAL).unwrap());
        let found = pollster::block_on(crawl.stats(NOW)).unwrap().recovered.unwrap();
        assert_eq!((found.seen, found.log_position, found.snapshot), (1, 2, Some(2)));
    }
    let after: Vec<_> =
        folder.segments().iter().map(|file| fs::metadata(file).unwrap().modified().unwrap()).collect();
    assert_eq!(before, after);
}

/// Those who go on until the last moment are told that it is over; what they were told to be done is in the snapshot.
#[test]
fn nothing_comes_after_the_closing_snapshot() {
    for _ in 0..10 {
        let folder = TestFolder::new();
        let store = Arc::new(DiskStore::open(folder.path(), &USUAL).unwrap());
        let crawl = Frontier::builder("c").open_shared(Arc::clone(&store) as _, NOW);
        let crawl = pollster::block_on(crawl).unwrap();
        let (begun, has_begun) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            for worker in 0..4 {
                let (crawl, begun) = (&crawl, begun.clone());
                scope.spawn(move || {
                    for number in 0.. {
                        let request = Request::get(format!("http://{worker}.example/{number}"));
                        if pollster::block_on(crawl.admit(NOW, [request])).is_err() {
                            break;
                        }
                        let _ = begun.send(());
                    }
                });
            }
            for _ in 0..10 {
                has_begun.recv().unwrap();
            }
            store.close().unwrap();
        });
        let (found, _) = DiskStore::open(folder.path(), &USUAL).unwrap().recovered();
        assert_eq!(found.snapshot, Some(found.log_position));
    }
}

/// With `Explicit` no record knows of another on disk; a store that was closed in good order is not cut all the same.
#[test]
fn damage_in_a_store_that_was_closed_is_never_a_torn_end() {
    for durability in [Durability::Explicit, Durability::Interval(Duration::from_secs(3600))] {
        let folder = closed(3, &DiskOptions { durability, ..USUAL });
        let segment = folder.segments().remove(0);
        let last = places(&segment)[3];
        let bytes = fs::read(&segment).unwrap();
        change(&segment, last as u64 + 45, &[bytes[last + 45] ^ 1]);
        let (kind, text) = message(&folder);
        assert_eq!(kind, ErrorKind::Corrupt);
        assert!(text.contains(&format!("damaged at byte {last}: record 4 was on disk")), "{text}");
        assert_eq!(fs::read(&segment).unwrap()[last + 45], bytes[last + 45] ^ 1, "nothing is changed");
    }
}

#[test]
fn a_second_owner_is_told_who_holds_the_folder() {
    let folder = filled(1);
    let first = open(&folder).unwrap();
    let expected = format!(
        "disk store: cannot open `PATH`: process {} holds it; stop that one first",
        std::process::id()
    );
    assert_eq!(message(&folder), (ErrorKind::Unavailable, expected));
    first.close().unwrap();
    let error = pollster::block_on(first.stats("c", NOW)).unwrap_err();
    assert_eq!(error.to_string(), "disk store: cannot count: the store was closed; open it again");
    assert!(open(&folder).is_ok());
}

#[test]
fn a_folder_of_something_else_is_left_alone() {
    let folder = TestFolder::new();
    fs::create_dir(folder.path()).unwrap();
    fs::write(folder.path().join("thesis.txt"), "precious").unwrap();
    let expected = "disk store: cannot open `PATH`: it is no store, but has `thesis.txt` in it; choose an empty folder or a new \
                    one";
    assert_eq!(message(&folder), (ErrorKind::Unavailable, expected.to_owned()));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let error = DiskStore::open(folder.path().join("thesis.txt"), &SMALL).err().unwrap().to_string();
    assert!(error.contains("Not a directory"), "{error}");
    let error = DiskStore::open("", &SMALL).err().unwrap().to_string();
    assert_eq!(error, "disk store: cannot open ``: no folder is named");
}

/// The laxer durabilities keep everything too when only the process dies.
#[test]
fn every_durability_survives_the_process() {
    for durability in
        [Durability::Batch, Durability::Interval(Duration::from_millis(1)), Durability::Explicit]
    {
        let folder = TestFolder::new();
        let options = DiskOptions { durability, ..SMALL };
        let store = Arc::new(DiskStore::open(folder.path(), &options).unwrap());
        let handle =
            pollster::block_on(Frontier::builder("c").open_shared(Arc::clone(&store) as _, NOW)).unwrap();
        admit(&handle, 0..10);
        pollster::block_on(handle.flush()).unwrap();
        admit(&handle, 10..20);
        store.abandon();
        let stats = pollster::block_on(crawl(open(&folder).unwrap()).stats(NOW)).unwrap();
        assert_eq!(stats.recovered.unwrap().seen, 20, "{durability:?}");
    }
}

/// A batch that no segment holds gets one of its own.
#[test]
fn a_large_batch_is_one_record() {
    let folder = TestFolder::new();
    let handle = crawl(open(&folder).unwrap());
    let mut request = Request::get("http://a.example/");
    request.opaque = vec![1; 300_000];
    pollster::block_on(handle.admit(NOW, [request])).unwrap();
    admit(&handle, 0..10);
    drop(handle);
    let stats = pollster::block_on(crawl(open(&folder).unwrap()).stats(NOW)).unwrap();
    assert_eq!(stats.recovered.unwrap().seen, 11);
}
