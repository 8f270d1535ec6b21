//! A scripted workload in files that fail: at every call, once or for ever, in every way; then the power goes. Whatever was
//! acknowledged is there, nothing is half there, and the store opens again.

use std::sync::{Arc, Mutex};

use trapline_core::{Request, Timestamp};
use trapline_frontier::{
    Admission, Claimed, Frontier, MemoryStore, Outcome, Query, Rows, Scan, Settings, Settled, Settlement,
    Store, StoreError,
};
use trapline_stores::disk::Rewrite;
use trapline_stores::{DiskOptions, DiskStore};

use crate::disk::{SMALL, SWAPPING};
use crate::sim_files::{Fault, FaultKind, SimFiles};

pub(crate) const STEPS: u64 = 24;

/// After so many steps a snapshot is taken.
const SNAPSHOTS: [u64; 3] = [5, 11, 17];

/// What a step answered.
#[derive(Clone, Debug, PartialEq)]
enum Said {
    Admitted(Vec<Admission>),
    Claimed(Claimed),
    Settled(Vec<Settled>),
}

pub(crate) fn at(step: u64) -> Timestamp {
    Timestamp::from_millis(step * 10)
}

pub(crate) async fn frontier(store: Arc<dyn Store>) -> Result<Frontier, StoreError> {
    let settings = Settings { delay: std::time::Duration::ZERO, concurrency: 0, ..Settings::default() };
    let key = trapline_core::IdentityKey::from_seed(5);
    Frontier::builder("c").partitions(1).key(key).settings(settings).open_shared(store, Timestamp::ZERO).await
}

/// One step of the workload: admits, claims or settles what was claimed one step before. Large enough for several
/// segments.
async fn step(frontier: &Frontier, step: u64, before: Option<&Said>) -> Result<Said, StoreError> {
    let now = at(step);
    match (step % 3, before) {
        (0, _) => {
            let page = |number| {
                let mut request = Request::get(format!("http://{}.example/{step}/{number}", number % 3));
                request.body = vec![b'x'; 1500];
                request
            };
            Ok(Said::Admitted(frontier.admit(now, (0..10).map(page)).await?))
        }
        (1, _) => Ok(Said::Claimed(frontier.claim(now, 4).await?)),
        (_, Some(Said::Claimed(claimed))) => {
            let settle = |lease: &trapline_frontier::Lease| {
                let mut settlement = Settlement::new(lease.id, Outcome::done());
                settlement.links =
                    frontier.prepare(Request::get(format!("{}/l", lease.request.url))).into_iter().collect();
                settlement
            };
            Ok(Said::Settled(frontier.settle(now, claimed.leases.iter().map(settle).collect()).await?))
        }
        _ => panic!("a claim comes before"),
    }
}

/// Everything that can be asked, at the time of the last step.
pub(crate) fn everything(frontier: &Frontier, now: Timestamp) -> Vec<Rows> {
    let queries = [
        Query::Queues { keys: None, state: None },
        Query::Urls { key: None, pattern: None, state: None },
        Query::Leases,
    ];
    let ask = |query| {
        pollster::block_on(frontier.scan(now, &Scan::new(query))).expect("questions are answered").rows
    };
    queries.into_iter().map(ask).collect()
}

/// A memory store after so many steps, and what they said.
fn reference(steps: u64) -> (Frontier, Vec<Said>) {
    let reference = pollster::block_on(frontier(Arc::new(MemoryStore::new()))).expect("a memory store opens");
    let mut said = Vec::new();
    for number in 0..steps {
        said.push(
            pollster::block_on(step(&reference, number, said.last())).expect("a memory store does not fail"),
        );
    }
    (reference, said)
}

/// The workload on a store, as far as it has come.
struct Work {
    crawl: Frontier,
    expected: Vec<Said>,
    /// How many steps were acknowledged, and the error that ended it.
    came: Mutex<(u64, Option<StoreError>)>,
}

impl Work {
    /// Does the next step; answers whether there are more.
    fn go_on(&self) -> bool {
        let mut came = self.came.lock().expect("no step panics");
        let (number, error) = &mut *came;
        if *number == STEPS || error.is_some() {
            return false;
        }
        let before = number.checked_sub(1).map(|before| &self.expected[before as usize]);
        match pollster::block_on(step(&self.crawl, *number, before)) {
            Ok(said) => assert_eq!(said, self.expected[*number as usize], "step {number}"),
            Err(failure) => {
                // Once in doubt, nothing is promised any more; questions are answered.
                if failure.kind() == trapline_frontier::ErrorKind::Corrupt {
                    let again = pollster::block_on(self.crawl.claim(at(*number), 1));
                    assert!(again.is_err(), "step {number}: {failure}");
                    everything(&self.crawl, at(*number));
                }
                *error = Some(failure);
                return false;
            }
        }
        *number += 1;
        true
    }
}

/// Runs the workload until it ends or fails; how many steps were acknowledged, and which error came.
fn run(files: &SimFiles, options: &DiskOptions) -> (u64, Option<StoreError>) {
    run_and_keep(files, DiskStore::open_on(files.clone(), options), |store| drop(store.rewrite(Rewrite::All)))
}

/// The same in a store that was opened on these files, or not, and without rewriting.
pub(crate) fn run_in(files: &SimFiles, opened: Result<DiskStore, StoreError>) -> (u64, Option<StoreError>) {
    run_and_keep(files, opened, |_| ())
}

/// After each snapshot the store is kept somehow.
fn run_and_keep(
    files: &SimFiles,
    opened: Result<DiskStore, StoreError>,
    keep: impl Fn(&DiskStore),
) -> (u64, Option<StoreError>) {
    let store = match opened {
        Ok(store) => Arc::new(store),
        Err(error) => return (0, Some(error)),
    };
    let crawl = match pollster::block_on(frontier(Arc::clone(&store) as _)) {
        Ok(crawl) => crawl,
        Err(error) => {
            store.abandon();
            return (0, Some(error));
        }
    };
    let (_, expected) = reference(STEPS);
    let work = Arc::new(Work { crawl, expected, came: Mutex::default() });
    // While a snapshot is taken, the work goes on.
    let meanwhile = Arc::clone(&work);
    files.set_meanwhile(Some(Arc::new(move || {
        meanwhile.go_on();
    })));
    while work.go_on() {
        if SNAPSHOTS.contains(&work.came.lock().expect("no step panics").0) {
            // If it fails, nothing is lost by that.
            let _ = store.snapshot();
            keep(&store);
        }
    }
    files.set_meanwhile(None);
    store.abandon();
    work.came.lock().expect("no step panics").clone()
}

/// Opens what is left, and holds it against memory stores that did as many steps as were acknowledged, or one more.
pub(crate) fn check_left(files: &SimFiles, acknowledged: u64, case: &str) {
    let store = DiskStore::open_on(files.clone(), &SMALL)
        .unwrap_or_else(|error| panic!("{case}: it does not open again: {error}"));
    let crawl = pollster::block_on(frontier(Arc::new(store))).expect("the crawl opens");
    let now = at(STEPS);
    let left = everything(&crawl, now);
    let possible = acknowledged..=(acknowledged + 1).min(STEPS);
    let matches = possible.into_iter().any(|steps| everything(&reference(steps).0, now) == left);
    assert!(matches, "{case}: after {acknowledged} acknowledged steps neither those nor one more are there");
}

/// What is left goes on as if nothing had happened.
fn check_goes_on(files: &SimFiles, case: &str) {
    let mut answers = Vec::new();
    for _ in 0..2 {
        let store = DiskStore::open_on(files.clone(), &SMALL).expect("it opens");
        let crawl = pollster::block_on(frontier(Arc::new(store))).expect("the crawl opens");
        answers.extend(
            pollster::block_on(crawl.admit(at(STEPS), [Request::get("http://new.example/")]))
                .expect("it goes on"),
        );
    }
    assert_eq!(answers, [Admission::Added, Admission::Known], "{case}");
}

#[test]
fn whatever_fails_nothing_acknowledged_is_lost_and_nothing_is_half_there() {
    check_all_faults(&SMALL, [FaultKind::Error, FaultKind::NoSpace, FaultKind::Half].as_slice());
}

/// What cannot be put on disk for want of memory stays in memory.
#[test]
fn whatever_fails_without_memory_nothing_is_lost_either() {
    check_all_faults(&SWAPPING, &[FaultKind::Half]);
}

fn check_all_faults(options: &DiskOptions, kinds: &[FaultKind]) {
    let files = SimFiles::default();
    assert_eq!(run(&files, options).0, STEPS);
    let calls = files.calls();
    assert!(calls > 2 * STEPS, "{calls} calls");
    let segments = trapline_stores::disk::files::Files::list(&files).expect("they are listed").len();
    assert!(segments > 1, "the workload fills several segments");
    let mut failed = 0;
    for kind in kinds.iter().copied() {
        for for_ever in [false, true] {
            for call in 1..=calls {
                let files = SimFiles::default();
                files.set_fault(Some(Fault { call, for_ever, kind }));
                let (acknowledged, error) = run(&files, options);
                failed += u64::from(error.is_some());
                files.set_fault(None);
                // Once the kernel's memory is all that is left, once the disk's.
                let case = format!("{kind:?} at call {call}, for ever: {for_ever}");
                if call % 2 == 0 {
                    files.lose_power(call);
                }
                check_left(&files, acknowledged, &case);
                files.lose_power(call);
                check_left(&files, acknowledged, &format!("{case}, then without power"));
                check_goes_on(&files, &case);
            }
        }
    }
    let most = calls * 2 * kinds.len() as u64;
    // What cannot be put on disk for want of memory is not worth an error, nor is what cannot be removed that nobody needs.
    let least = if options.max_memory.is_none() { most * 3 / 4 } else { most / 4 };
    assert!(failed > least, "faults are noticed: {failed} of {most}");
}

/// Crashes while an opening mends what the crash before has left.
#[test]
fn opening_may_fail_anywhere_and_be_tried_again() {
    for seed in 0..40 {
        let files = SimFiles::default();
        // Stops in the middle, with a torn write.
        files.set_fault(Some(Fault { call: 20 + seed, for_ever: true, kind: FaultKind::Half }));
        let (acknowledged, _) = run(&files, &SWAPPING);
        files.set_fault(None);
        files.lose_power(seed);
        for call in 1..=4 {
            files.set_fault(Some(Fault { call, for_ever: true, kind: FaultKind::Half }));
            if let Ok(store) = DiskStore::open_on(files.clone(), &SMALL) {
                store.abandon();
            }
            files.set_fault(None);
            files.lose_power(seed * 7 + call);
        }
        check_left(&files, acknowledged, &format!("seed {seed}"));
    }
}

/// Without room for another segment admissions stop, and go on by themselves when there is some.
#[test]
fn a_full_disk_stops_admissions_and_nothing_else_is_lost() {
    let files = SimFiles::default();
    let store: Arc<dyn Store> = Arc::new(DiskStore::open_on(files.clone(), &SMALL).unwrap());
    let crawl = pollster::block_on(frontier(store)).unwrap();
    let mut request = Request::get("http://a.example/");
    request.opaque = vec![7; 40_000];
    pollster::block_on(crawl.admit(at(0), [request.clone()])).unwrap();
    files.set_fault(Some(Fault { call: 1, for_ever: true, kind: FaultKind::NoSpace }));
    request.url = "http://b.example/".to_owned();
    let error = pollster::block_on(crawl.admit(at(1), [request.clone()])).unwrap_err();
    assert_eq!(error.kind(), trapline_frontier::ErrorKind::Full);
    assert_eq!(
        error.to_string(),
        "disk store: cannot admit: cannot make room for more in simulated/0000000002.segment: no storage space; nothing was \
         done and nothing is lost: free some space, then try again"
    );
    files.set_fault(None);
    let lease = pollster::block_on(crawl.claim(at(2), 9)).unwrap().leases.remove(0);
    assert_eq!(lease.request.url, "http://a.example/");
    let admitted = pollster::block_on(crawl.admit(at(3), [request])).unwrap();
    assert_eq!(admitted, [Admission::Added]);
}

/// Questions are answered on a full disk whatever comes. When there is no room even to write that time has passed, none has.
#[test]
fn a_full_disk_never_stops_questions() {
    let files = SimFiles::default();
    let store = Arc::new(DiskStore::open_on(files.clone(), &SMALL).unwrap());
    let crawl = pollster::block_on(frontier(Arc::clone(&store) as _)).unwrap();
    pollster::block_on(crawl.admit(at(0), [Request::get("http://a.example/")])).unwrap();
    let mut large = Request::get("http://b.example/");
    large.opaque = vec![7; 40_000];
    pollster::block_on(crawl.admit(at(0), [large])).unwrap();
    files.set_full(true);
    let mut lease = None;
    for moment in 1.. {
        match pollster::block_on(crawl.claim(at(moment), 1)) {
            Ok(claimed) => lease = claimed.leases.into_iter().next().or(lease),
            Err(error) => {
                assert_eq!(error.kind(), trapline_frontier::ErrorKind::Full);
                break;
            }
        }
    }
    let asked: Vec<_> = (0..200).map(|hours| at(100_000 + hours * 7200)).collect();
    let counted = |now| pollster::block_on(crawl.stats(now)).expect("it counts").expired;
    for now in &asked {
        counted(*now);
        everything(&crawl, *now);
    }
    files.set_full(false);
    let (last, before) = (asked[199], counted(Timestamp::ZERO));
    pollster::block_on(crawl.claim(last, 0)).expect("there is room again");
    assert_eq!(counted(last), before, "what had expired is not told twice");
    let rows = everything(&crawl, last);
    store.abandon();
    let crawl = pollster::block_on(frontier(Arc::new(DiskStore::open_on(files, &SMALL).unwrap()))).unwrap();
    assert_eq!(everything(&crawl, last), rows);
    assert!(lease.is_some(), "something was claimed");
}

/// The keeper takes long for a large snapshot. The segment that is needed meanwhile is made all the same.
#[test]
fn segments_are_made_ahead_while_a_snapshot_is_taken() {
    let files = SimFiles::default();
    let options = trapline_stores::DiskOptions { background: true, snapshot_bytes: 4000, ..SMALL };
    let store = Arc::new(DiskStore::open_on(files.clone(), &options).unwrap());
    let crawl = pollster::block_on(frontier(Arc::clone(&store) as _)).unwrap();
    let page = |name: &str, bytes| {
        let mut request = Request::get(format!("http://{name}.example/"));
        request.opaque = vec![7; bytes];
        request
    };
    let (meanwhile, once) = (crawl.clone(), std::sync::Once::new());
    files.set_meanwhile(Some(Arc::new(move || {
        once.call_once(|| {
            pollster::block_on(meanwhile.admit(at(0), [page("b", 33_000)])).expect("it is admitted");
        });
    })));
    pollster::block_on(crawl.admit(at(0), [page("a", 5000)])).unwrap();
    let is_taken = |done: &String| done.starts_with("synced") && done.ends_with(".snapshot");
    while !files.history().iter().any(is_taken) {
        std::thread::yield_now();
    }
    files.set_meanwhile(None);
    store.abandon();
    let history = files.history();
    let place =
        |what: &str| history.iter().position(|done| done.starts_with(what) && done.ends_with(".snapshot"));
    let ahead = history.iter().position(|done| done == "made 0000000002.segment");
    assert!(place("made") < ahead && ahead < place("synced"), "{history:?}");
}

/// Each failure has its sentence.
#[test]
fn failures_are_told_with_what_to_do() {
    let files = SimFiles::default();
    let store: Arc<dyn Store> = Arc::new(DiskStore::open_on(files.clone(), &SMALL).unwrap());
    let crawl = pollster::block_on(frontier(store)).unwrap();
    // The write succeeds, its sync does not.
    files.set_fault(Some(Fault { call: 2, for_ever: false, kind: FaultKind::Error }));
    let error = pollster::block_on(crawl.claim(at(0), 1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "disk store: cannot claim for certain: syncing simulated/0000000001.segment failed (simulated failure); whether this \
         batch is there will be seen when the store is opened again, whole or not at all: look after the disk, then open it \
         and try again"
    );
    let error = pollster::block_on(crawl.claim(at(0), 1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "disk store: cannot claim: syncing simulated/0000000001.segment failed (simulated failure), so nothing more is \
         promised; what was answered before is safe, and questions are still answered: look after the disk, then open the \
         store again"
    );
    assert!(pollster::block_on(crawl.stats(at(5))).is_ok());
    assert!(pollster::block_on(crawl.flush()).is_err());
}

/// With `Explicit`, the power takes only what came after the last flush, and only from the end.
#[test]
fn what_was_flushed_is_safe_and_the_rest_is_lost_from_the_end() {
    let options = trapline_stores::DiskOptions { durability: trapline_stores::Durability::Explicit, ..SMALL };
    let page = |number: u64| Request::get(format!("http://a.example/{number}"));
    let mut lost = 0;
    for seed in 0..50 {
        let files = SimFiles::default();
        let store = Arc::new(DiskStore::open_on(files.clone(), &options).unwrap());
        let crawl = pollster::block_on(frontier(Arc::clone(&store) as _)).unwrap();
        for number in 0..20 {
            if number == 10 {
                pollster::block_on(crawl.flush()).unwrap();
            }
            pollster::block_on(crawl.admit(at(0), [page(number)])).unwrap();
        }
        store.abandon();
        files.lose_power(seed);
        let store = Arc::new(DiskStore::open_on(files, &options).unwrap());
        let crawl = pollster::block_on(frontier(store)).unwrap();
        let answers = pollster::block_on(crawl.admit(at(0), (0..20).map(page))).unwrap();
        let known = answers.iter().filter(|answer| **answer == Admission::Known).count();
        assert!(known >= 10, "seed {seed}: {known}");
        assert!(answers[..known].iter().all(|answer| *answer == Admission::Known), "seed {seed}: a hole");
        lost += 20 - known;
    }
    assert!(lost > 0, "the power does take something");
}

/// With `Interval`, what was answered is on disk once its time has passed, though nobody asks for it; not before.
#[test]
fn an_interval_brings_to_disk_what_was_answered() {
    let period = std::time::Duration::from_millis(20);
    let interval = |period| trapline_stores::DiskOptions {
        durability: trapline_stores::Durability::Interval(period),
        ..SMALL
    };
    let page = |number: u64| Request::get(format!("http://a.example/{number}"));
    let files = SimFiles::default();
    let store = Arc::new(DiskStore::open_on(files.clone(), &interval(period)).unwrap());
    let crawl = pollster::block_on(frontier(Arc::clone(&store) as _)).unwrap();
    for number in 0..5 {
        let (synced, begun) = (files.syncs(), std::time::Instant::now());
        pollster::block_on(crawl.admit(at(0), [page(number)])).unwrap();
        // A sync may be under way that came too early for this one; the second cannot.
        while files.syncs() < synced + 2 && begun.elapsed() < 100 * period {
            if files.syncs() > synced && files.unsynced() == 0 {
                break;
            }
            std::thread::yield_now();
        }
        assert_eq!(files.unsynced(), 0, "URL {number} is not on disk after a hundred periods");
    }
    // All of it is there without a flush, a further verb or an orderly end.
    store.abandon();
    files.lose_power(1);
    let store = Arc::new(DiskStore::open_on(files, &interval(period)).unwrap());
    let crawl = pollster::block_on(frontier(store)).unwrap();
    let answers = pollster::block_on(crawl.admit(at(0), (0..5).map(page))).unwrap();
    assert!(answers.iter().all(|answer| *answer == Admission::Known), "{answers:?}");
    // With a period that does not come to its end, nothing is synced.
    let files = SimFiles::default();
    let hour = interval(std::time::Duration::from_secs(3600));
    let store = Arc::new(DiskStore::open_on(files.clone(), &hour).unwrap());
    let crawl = pollster::block_on(frontier(Arc::clone(&store) as _)).unwrap();
    let synced = files.syncs();
    pollster::block_on(crawl.admit(at(0), [page(1)])).unwrap();
    pollster::block_on(crawl.claim(at(0), 1)).unwrap();
    assert_eq!((files.syncs(), files.unsynced() > 0), (synced, true));
    store.abandon();
}
