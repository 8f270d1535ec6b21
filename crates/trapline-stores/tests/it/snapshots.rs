//! Snapshots that are cut short, damaged, old, or taken while the work goes on: opening gives what the log alone would
//! give.

use std::sync::Arc;

use trapline_core::{Request, Timestamp};
use trapline_frontier::{
    Admission, CrawlChange, ErrorKind, Frontier, NoteWrite, Outcome, Query, QueueChange, Rows, Scan,
    Settlement, Store,
};
use trapline_sim::Random;
use trapline_stores::DiskStore;
use trapline_stores::disk::files::Files;
use trapline_stores::disk::{Verified, verify_on};

use crate::disk::SMALL;
use crate::faults::{STEPS, at, everything, frontier, run_in};
use crate::sim_files::{Fault, FaultKind, SimFiles};

const LATE: Timestamp = Timestamp::from_millis(1_000_000);

fn open(files: &SimFiles) -> Arc<DiskStore> {
    Arc::new(DiskStore::open_on(files.clone(), &SMALL).unwrap_or_else(|error| panic!("it opens: {error}")))
}

fn crawl(store: &Arc<DiskStore>) -> Frontier {
    pollster::block_on(frontier(Arc::clone(store) as _)).expect("the crawl opens")
}

fn admit(crawl: &Frontier, name: &str) -> Vec<Admission> {
    let request = Request::get(format!("http://{name}.example/"));
    pollster::block_on(crawl.admit(at(STEPS), [request])).unwrap_or_default()
}

/// All that is in files, and the record that the snapshot goes up to from which it was made.
fn contents(files: &SimFiles) -> (Vec<Rows>, Option<u64>) {
    let store = open(&files.copy());
    let crawl = crawl(&store);
    let mut rows = everything(&crawl, LATE);
    let scan = Scan { limit: 100_000, ..Scan::new(Query::Records) };
    rows.push(pollster::block_on(crawl.scan(LATE, &scan)).expect("it answers").rows);
    (rows, store.recovered().0.snapshot)
}

/// The same without snapshots.
fn replayed(files: &SimFiles) -> Vec<Rows> {
    let copy = files.copy();
    for name in copy.names(".snapshot") {
        copy.take_away(&name);
    }
    let (rows, snapshot) = contents(&copy);
    assert_eq!(snapshot, None);
    rows
}

pub(crate) fn verified(files: &SimFiles) -> Verified {
    let files: Arc<dyn Files> = Arc::new(files.clone());
    verify_on(&files, &mut |_| ()).expect("it can be read")
}

/// The workload with its snapshots, done and closed.
fn worked() -> SimFiles {
    let files = SimFiles::default();
    let (steps, _) = run_in(&files, DiskStore::open_on(files.clone(), &SMALL));
    assert_eq!(steps, STEPS);
    assert_eq!(files.names(".snapshot").len(), 2, "the latest, and the one before it");
    files
}

/// A store whose snapshots take several writes.
fn large() -> SimFiles {
    let files = worked();
    let store = open(&files);
    let crawl = crawl(&store);
    for key in 0..5 {
        let note = NoteWrite { key: format!("{key}"), value: Some(vec![key; 500_000]), expires: None };
        pollster::block_on(crawl.steer_crawl(at(STEPS), CrawlChange::Note(note))).expect("it is noted");
    }
    store.close().expect("it closes");
    files
}

/// Whatever fails while a snapshot is taken, and others work meanwhile, costs at most the snapshot.
#[test]
fn a_snapshot_may_fail_anywhere() {
    let before = large();
    let take = |files: &SimFiles, fault| {
        let store = open(files);
        let worker = crawl(&store);
        let said = Arc::new(std::sync::Mutex::new(Vec::new()));
        let meanwhile = Arc::clone(&said);
        files.set_meanwhile(Some(Arc::new(move || {
            meanwhile.lock().expect("nothing panics").extend(admit(&worker, "meanwhile"));
        })));
        files.set_fault(fault);
        let taken = store.snapshot();
        let calls = files.calls();
        files.set_fault(None);
        files.set_meanwhile(None);
        store.abandon();
        let said = said.lock().expect("nothing panics").clone();
        (calls, taken, said)
    };
    let files = before.copy();
    let (calls, taken, said) = take(&files, None);
    assert!(calls >= 8 && taken.is_ok() && said == [Admission::Added], "{calls}, {taken:?}, {said:?}");
    assert_eq!(contents(&files).1, taken.ok(), "it is the one that is opened");
    assert_eq!(verified(&files).damages, []);
    let mut lost = 0;
    for kind in [FaultKind::Error, FaultKind::NoSpace, FaultKind::Half] {
        for for_ever in [false, true] {
            for call in 1..=calls {
                let case = format!("{kind:?} at call {call}, for ever: {for_ever}");
                let files = before.copy();
                let (_, taken, said) = take(&files, Some(Fault { call, for_ever, kind }));
                lost += u32::from(taken.is_err());
                files.lose_power(call);
                let (rows, _) = contents(&files);
                assert_eq!(rows, replayed(&files), "{case}");
                // What was acknowledged meanwhile is there.
                let expected = if said == [Admission::Added] { Admission::Known } else { Admission::Added };
                let answers = admit(&crawl(&open(&files)), "meanwhile");
                assert!(said.is_empty() || answers == [expected], "{case}: {answers:?}");
            }
        }
    }
    assert!(u64::from(lost) > calls * 3, "most faults are noticed: {lost}");
}

/// The power goes in the middle of a snapshot, or right after it.
#[test]
fn a_torn_snapshot_is_passed_over() {
    let before = large();
    let mut used = [0; 2];
    for seed in 0..40 {
        let files = before.copy();
        let store = open(&files);
        // From this call on nothing reaches the disk, and the power is gone.
        let fault = Fault { call: 1 + seed % 8, for_ever: true, kind: FaultKind::Half };
        files.set_fault(Some(fault));
        let _ = store.snapshot();
        files.set_fault(None);
        store.abandon();
        files.lose_power(seed);
        let (rows, snapshot) = contents(&files);
        assert_eq!(rows, replayed(&files), "seed {seed}");
        used[usize::from(snapshot > contents(&before).1)] += 1;
        // It is removed at opening, and another one taken.
        let store = open(&files);
        let newest = store.snapshot().expect("it is taken");
        store.close().expect("it closes");
        assert_eq!(contents(&files).1, Some(newest));
        assert_eq!(verified(&files).damages, [], "seed {seed}");
    }
    assert!(used[0] > 0, "{used:?}");
}

/// Of two snapshots the newer one may have any damage: then the older one is used; if both have, none.
#[test]
fn a_damaged_snapshot_is_passed_over() {
    let files = worked();
    let names = files.names(".snapshot");
    let number = |name: &str| name.trim_end_matches(".snapshot").parse::<u64>().map(|next| next - 1).ok();
    let expected = replayed(&files);
    assert_eq!(contents(&files), (expected.clone(), number(&names[1])));
    let mut length = 0;
    files.change(&names[1], |bytes| length = bytes.len());
    let mut random = Random::of(&[8]);
    let damage = |files: &SimFiles, name: &str, random: &mut Random| {
        let (place, kind) = (random.range(0..length as u64) as usize, random.range(0..3));
        files.change(name, |bytes| match kind {
            0 => bytes[place] ^= 1 << (place % 8),
            1 => bytes.truncate(place),
            _ => bytes[place..].fill(0),
        });
        // A bit turned in the number of the format may make it a newer one: that is refused, and its own test.
        !(kind == 0 && (8..12).contains(&place))
    };
    for round in 0..150 {
        let copy = files.copy();
        if !damage(&copy, &names[1], &mut random) {
            continue;
        }
        if verified(&copy).damages.is_empty() {
            // Cut at the end of what is written, or the zeros that were zeros: none at all, or unfinished.
            let is_whole = verified(&copy).leftovers.is_empty();
            assert_eq!(is_whole, contents(&copy).1 == number(&names[1]), "round {round}");
        }
        let (rows, snapshot) = contents(&copy);
        assert_eq!(rows, expected, "round {round}");
        assert!(snapshot == number(&names[0]) || verified(&copy).damages.is_empty(), "round {round}");
        copy.change(&names[0], |bytes| bytes[100] ^= 1);
        copy.change(&names[1], |bytes| bytes.truncate(100));
        assert_eq!(contents(&copy), (expected.clone(), None), "round {round}");
    }
}

/// It is told of, stays for `verify` to see, and goes when there is another one; what goes on from is never the damaged one's
/// to take the place of.
#[test]
fn a_damaged_snapshot_is_told_of_and_kept_until_there_is_another() {
    let files = worked();
    let names = files.names(".snapshot");
    files.change(&names[1], |bytes| bytes[100] ^= 1);
    let passed_over = |store: &DiskStore| store.recovered().0.snapshots_passed_over;
    for _ in 0..2 {
        let store = open(&files);
        assert_eq!(passed_over(&store), 1);
        assert_eq!(files.names(".snapshot"), names);
        let damaged = verified(&files).damages.remove(0);
        assert_eq!(damaged.file, format!("simulated/{}", names[1]));
    }
    let store = open(&files);
    assert_eq!(admit(&crawl(&store), "more"), [Admission::Added]);
    let newest = store.snapshot().expect("it is taken") + 1;
    assert_eq!(files.names(".snapshot"), [names[0].clone(), format!("{newest:010}.snapshot")]);
    drop(store);
    assert_eq!(passed_over(&open(&files)), 0);
    assert_eq!(verified(&files).damages, []);
}

/// What cannot be read may be whole: then the log was on disk up to there, and what looks like a torn end is none.
#[test]
fn a_snapshot_that_cannot_be_read_is_not_done_without_if_the_log_ends_before_it() {
    let files = worked();
    let store = open(&files);
    store.snapshot().expect("it is taken");
    store.close().expect("it closes");
    let newest = files.names(".snapshot").remove(1);
    let segment = files.names(".segment").pop().expect("there are some");
    files.change(&segment, |bytes| {
        let end = bytes.iter().rposition(|byte| *byte != 0).expect("there are records");
        bytes[end] ^= 1;
    });
    // Names are listed, the newest segment is looked at in two reads, then the snapshot is opened, and read.
    files.set_read_fault(Some((4, false)));
    let error = DiskStore::open_on(files.clone(), &SMALL).err().expect("it does not open");
    assert_eq!(
        (error.kind(), error.to_string()),
        (
            ErrorKind::Unavailable,
            format!(
                "disk store: cannot open: cannot do without simulated/{newest}, before which the log ends: it cannot be read: \
                 simulated failure to read"
            )
        )
    );
    files.set_read_fault(None);
    let error = DiskStore::open_on(files, &SMALL).err().expect("it does not open");
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

/// Random work with snapshots at random moments, crashes of the process and of the machine: at each opening the newest
/// snapshot and the log behind it say what the whole log says.
#[test]
fn a_snapshot_with_the_rest_of_the_log_is_the_whole_log() {
    let mut from_snapshot = 0;
    for seed in 0..12 {
        let mut random = Random::of(&[seed, 3]);
        let files = SimFiles::default();
        for round in 0..6 {
            let store = open(&files);
            let crawl = crawl(&store);
            for step in 0..20 {
                let now = Timestamp::from_millis(round * 30_000 + step * 500);
                let page = |n: u64| Request::get(format!("http://{}.example/{round}/{step}/{n}", n % 4));
                pollster::block_on(crawl.admit(now, (0..random.range(0..30)).map(page)))
                    .expect("it is admitted");
                let leases = pollster::block_on(crawl.claim(now, 5)).expect("it is claimed").leases;
                let settlements = leases.iter().map(|lease| {
                    let outcome = match random.range(0..6) {
                        0 => Outcome::Release,
                        1 => Outcome::Retry { at: now + std::time::Duration::from_secs(7) },
                        2 => Outcome::Dead { reason: "dead".to_owned() },
                        3 => Outcome::Disregard { reason: "no".to_owned() },
                        _ => Outcome::done(),
                    };
                    Settlement::new(lease.id, outcome)
                });
                let settlements: Vec<_> = settlements.skip(1).collect();
                pollster::block_on(crawl.settle(now, settlements)).expect("it is settled");
                if random.chance(1, 12) {
                    store.snapshot().expect("it is taken");
                }
            }
            store.abandon();
            if random.chance(1, 2) {
                files.lose_power(seed * 100 + round);
            }
            let (rows, snapshot) = contents(&files);
            assert_eq!(rows, replayed(&files), "seed {seed}, round {round}");
            from_snapshot += u32::from(snapshot.is_some());
        }
        assert_eq!(verified(&files).damages, [], "seed {seed}");
    }
    assert!(from_snapshot > 30, "{from_snapshot}");
}

/// Once a store is closed, its folder is another's: a snapshot that was under way has ended by then.
#[test]
fn closing_waits_for_a_snapshot_that_is_too_late() {
    for _ in 0..20 {
        let files = SimFiles::default();
        let store = open(&files);
        admit(&crawl(&store), "a");
        let (begun, has_begun) = std::sync::mpsc::channel();
        let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
        let ends = std::sync::Mutex::new((begun, may_go_on));
        files.set_meanwhile(Some(Arc::new(move || {
            let (begun, may_go_on) = &*ends.lock().expect("nothing panics");
            let _ = begun.send(());
            let _ = may_go_on.recv();
        })));
        std::thread::scope(|scope| {
            let snapshot = scope.spawn(|| store.snapshot());
            has_begun.recv().expect("it begins");
            let closing = scope.spawn(|| {
                store.close().expect("it closes");
                files.names(".snapshot")
            });
            while pollster::block_on(store.stats("c", at(0))).is_ok() {
                std::thread::yield_now();
            }
            go_on.send(()).expect("it waits");
            assert_eq!(closing.join().expect("nothing panics"), [] as [String; 0], "nothing is left of it");
            let error = snapshot.join().expect("nothing panics").expect_err("it is given up");
            assert_eq!(
                error.to_string(),
                "disk store: cannot take a snapshot: the store was closed; open it again"
            );
        });
    }
}

/// What a question changes must be in the log. URLs that are gone and not swept yet are not swept by being asked for.
#[test]
fn asking_for_urls_that_are_gone_changes_nothing() {
    let files = SimFiles::default();
    let options = trapline_stores::DiskOptions { segment_bytes: 1 << 20, ..SMALL };
    let store = Arc::new(DiskStore::open_on(files.clone(), &options).expect("it opens"));
    let crawl = crawl(&store);
    let page = |number: u32| Request::get(format!("http://{}.example/{number}", number % 2));
    pollster::block_on(crawl.admit(at(0), (0..20_000).map(page))).expect("it is admitted");
    pollster::block_on(crawl.steer_queue(at(0), "1.example", QueueChange::Delete)).expect("it is deleted");
    let gone = (19_000..20_000).map(|number| crawl.prepare(page(number)).expect("a URL").identity).collect();
    let scan = Scan::new(Query::UrlList(gone));
    pollster::block_on(crawl.scan(at(0), &scan)).expect("it answers");
    pollster::block_on(crawl.admit(at(0), (30_000..30_100).map(page))).expect("it is admitted");
    store.snapshot().expect("it is taken");
    assert_eq!(verified(&files).damages, []);
}

/// What a verb leaves for the next one to do, a question does, and the log knows.
#[test]
fn what_a_question_finishes_is_in_the_log() {
    let files = SimFiles::default();
    let store = open(&files);
    let crawl = crawl(&store);
    admit(&crawl, "a");
    let late = NoteWrite { key: "late".to_owned(), value: Some(vec![1]), expires: Some(at(0)) };
    pollster::block_on(crawl.steer_crawl(at(STEPS), CrawlChange::Note(late))).expect("it is noted");
    pollster::block_on(crawl.stats(at(STEPS))).expect("it counts");
    store.snapshot().expect("it is taken");
    let lease = pollster::block_on(crawl.claim(at(STEPS), 1)).expect("it is claimed").leases.remove(0);
    let limit = CrawlChange::Set(vec![("max_urls".to_owned(), "1".to_owned())]);
    pollster::block_on(crawl.steer_crawl(at(STEPS), limit)).expect("it is set");
    let done = Settlement::new(lease.id, Outcome::done());
    pollster::block_on(crawl.settle(at(STEPS), vec![done])).expect("it is settled");
    pollster::block_on(crawl.stats(at(STEPS))).expect("it counts");
    store.snapshot().expect("it is taken");
    assert_eq!(verified(&files).damages, []);
}

/// One that is there is not written again: a crash would leave none, and a repaired store cannot do without.
#[test]
fn a_snapshot_of_the_same_record_is_left_alone() {
    let files = worked();
    let store = open(&files);
    let taken = store.snapshot().expect("it is taken");
    files.set_fault(None);
    assert_eq!(store.snapshot().expect("it is there"), taken);
    assert_eq!(files.calls(), 0);
    drop(store);
    let store = open(&files);
    files.set_fault(None);
    assert_eq!(store.snapshot().expect("it is there"), taken);
    assert_eq!(files.calls(), 0);
}

#[test]
fn a_newer_snapshot_is_refused() {
    let files = worked();
    let newest = files.names(".snapshot").remove(1);
    files.change(&newest, |bytes| bytes[8] = 7);
    let error = DiskStore::open_on(files.clone(), &SMALL).err().expect("it does not open");
    let expected = format!(
        "disk store: cannot open simulated/{newest}: it has format 7, and this version of Trapline knows snapshots up to \
         format 6; nothing was changed: open it with the version that wrote it, or a later one"
    );
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Unsupported, expected));
}
