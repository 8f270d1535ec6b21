//! Snapshots that are not read whole when the store is opened: what is in them is there all the same, comes when it is wanted, and
//! is never guessed.

use std::sync::Arc;

use trapline_core::{Request, Timestamp};
use trapline_frontier::{ErrorKind, Frontier, Outcome, Settings, Settlement, Store, Visit, Want};
use trapline_stores::{DiskOptions, DiskStore};

use crate::disk::{EAGER, SMALL, SWAPPING};
use crate::faults::{at, everything};
use crate::sim_files::SimFiles;

/// More than some frames have.
const URLS: usize = 5000;

pub(crate) const ROOMY: DiskOptions = DiskOptions { segment_bytes: 4 << 20, ..SMALL };

fn open(files: &SimFiles, options: &DiskOptions) -> (Arc<DiskStore>, Frontier) {
    let store = Arc::new(DiskStore::open_on(files.clone(), options).expect("it opens"));
    let settings = Settings { delay: std::time::Duration::ZERO, concurrency: 0, ..Settings::default() };
    let key = trapline_core::IdentityKey::from_seed(5);
    let builder = Frontier::builder("c").partitions(1).key(key).settings(settings);
    let crawl = builder.open_shared(Arc::clone(&store) as Arc<dyn Store>, Timestamp::ZERO);
    (store, pollster::block_on(crawl).expect("the crawl opens"))
}

fn request(number: usize) -> Request {
    Request::get(format!("http://h{}.example/{number}", number % 7))
}

fn admit(crawl: &Frontier) {
    for begin in (0..URLS).step_by(1000) {
        pollster::block_on(crawl.admit(at(0), (begin..begin + 1000).map(request))).expect("it admits");
    }
}

/// URLs in every state, in lanes and in trees, some with several entries.
fn fill(crawl: &Frontier) {
    admit(crawl);
    let again = |number: usize| Request { dont_filter: true, ..request(number) };
    pollster::block_on(crawl.admit(at(0), (0..3000).step_by(500).map(again))).expect("it admits");
    let claimed = pollster::block_on(crawl.claim(at(1), Want::urls(2500))).expect("it claims").leases;
    let outcome = |number: usize| match number % 9 {
        0 => None,
        1 => Some(Outcome::Retry { at: at(2) }),
        2 => Some(Outcome::Retry { at: at(9000) }),
        3 => Some(Outcome::Release),
        4 => Some(Outcome::Dead { reason: "gone".to_owned() }),
        5 => Some(Outcome::Disregard { reason: "a rule".to_owned() }),
        6 => Some(Outcome::Done { next: Some(at(500)), visit: Visit::default() }),
        _ => Some(Outcome::done()),
    };
    let settle = claimed.iter().enumerate();
    let settle = settle.filter_map(|(number, lease)| Some(Settlement::new(lease.id, outcome(number)?)));
    pollster::block_on(crawl.settle(at(1), settle.collect())).expect("it settles");
}

/// What is handed out from a time on, until there is no more.
fn drain(crawl: &Frontier, now: Timestamp) -> Vec<String> {
    let mut urls = Vec::new();
    loop {
        let leases = pollster::block_on(crawl.claim(now, Want::urls(100))).expect("it claims").leases;
        if leases.is_empty() {
            return urls;
        }
        urls.extend(leases.iter().map(|lease| lease.request.url.clone()));
        let done = leases.iter().map(|lease| Settlement::new(lease.id, Outcome::done())).collect();
        pollster::block_on(crawl.settle(now, done)).expect("it settles");
    }
}

/// What was opened lazily goes on as what was read whole does, with and without memory, and what is photographed of it is the same.
#[test]
fn a_store_goes_on_alike_however_much_of_its_snapshot_it_has_read() {
    let mut expected = None;
    for options in [EAGER, ROOMY, DiskOptions { segment_bytes: 4 << 20, ..SWAPPING }] {
        let files = SimFiles::default();
        let (store, crawl) = open(&files, &options);
        fill(&crawl);
        store.snapshot().expect("a snapshot is taken");
        drop((crawl, store));
        // Lent as it is, and photographed without being brought here.
        let (store, crawl) = open(&files, &options);
        pollster::block_on(crawl.claim(at(1), Want::urls(1))).expect("it claims");
        store.snapshot().expect("a snapshot is taken");
        drop((crawl, store));

        let (store, crawl) = open(&files, &options);
        let known = pollster::block_on(crawl.admit(at(1), [Request::get("http://h3.example/3")]));
        let rows = everything(&crawl, at(2));
        let drained = drain(&crawl, at(2));
        let later = drain(&crawl, at(10_000));
        let found = (known.expect("it admits"), rows, drained, later, everything(&crawl, at(10_000)));
        store.close().expect("it closes");
        match &expected {
            None => expected = Some(found),
            Some(expected) => assert!(found == *expected, "with {options:?}"),
        }
    }
}

/// What stays in a snapshot when it is opened is not read, but for what must be known at once.
#[test]
fn opening_reads_no_more_than_it_must() {
    let files = SimFiles::default();
    let (store, crawl) = open(&files, &ROOMY);
    admit(&crawl);
    store.snapshot().expect("a snapshot is taken");
    drop((crawl, store));
    let in_memory = |options: &DiskOptions| {
        let (_store, crawl) = open(&files, options);
        let stats = pollster::block_on(crawl.stats(at(1))).expect("it counts");
        stats.memory.expect("it is known").records
    };
    let (eager, lazy) = (in_memory(&EAGER), in_memory(&ROOMY));
    assert!(lazy < eager / 2, "{lazy} bytes of records, and {eager} when all was read");
}

/// The thread in the background reads the rest, whatever is wanted.
#[test]
fn the_rest_is_read_in_the_background() {
    let files = SimFiles::default();
    let (store, crawl) = open(&files, &ROOMY);
    admit(&crawl);
    store.snapshot().expect("a snapshot is taken");
    drop((crawl, store));
    let entries = |crawl: &Frontier| {
        let stats = pollster::block_on(crawl.stats(at(1))).expect("it counts");
        let memory = stats.memory.expect("it is known");
        (memory.records, memory.pending)
    };
    let (store, crawl) = open(&files, &EAGER);
    let all = entries(&crawl);
    drop((crawl, store));
    let (_store, crawl) = open(&files, &DiskOptions { background: true, ..ROOMY });
    let begun = std::time::Instant::now();
    while entries(&crawl) != all {
        assert!(begun.elapsed().as_secs() < 60, "the keeper reads it");
        std::thread::yield_now();
    }
    // Nothing is wanted of the snapshot any more.
    files.set_read_fault(Some((1, true)));
    let known = pollster::block_on(crawl.admit(at(1), [Request::get("http://h4.example/4")]));
    assert_eq!(known.expect("it admits"), [trapline_frontier::Admission::Known]);
}

/// Nothing is decided without what cannot be read; the log has it.
#[test]
fn a_frame_that_cannot_be_read_ends_the_store_and_loses_nothing() {
    let files = SimFiles::default();
    let (store, crawl) = open(&files, &ROOMY);
    admit(&crawl);
    let position = store.snapshot().expect("a snapshot is taken") + 1;
    let rows = everything(&crawl, at(1));
    drop((crawl, store));
    let (store, crawl) = open(&files, &ROOMY);
    files.set_read_fault(Some((1, true)));
    let error = pollster::block_on(crawl.claim(at(1), Want::urls(1))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let said = |attempted| {
        format!(
            "disk store: cannot {attempted}: reading simulated/{position:010}.records failed (simulated failure to read), which was whole when the store went on from it, so what is in memory cannot be trusted any more; what was \
             answered before is safe: look after the disk, then open the store again"
        )
    };
    assert_eq!(error.to_string(), said("claim"));
    files.set_read_fault(None);
    let error = pollster::block_on(crawl.stats(at(1))).unwrap_err();
    assert_eq!(error.to_string(), said("count"));
    drop((crawl, store));
    let (store, crawl) = open(&files, &ROOMY);
    assert!(everything(&crawl, at(1)) == rows);
    // One that fails once is tried again.
    drop((crawl, store));
    let (_store, crawl) = open(&files, &ROOMY);
    files.set_read_fault(Some((1, false)));
    pollster::block_on(crawl.claim(at(1), Want::urls(1))).expect("it claims");
}
