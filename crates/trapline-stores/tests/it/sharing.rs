//! Snapshots that write only what has changed since the one before, and refer to that one's files for the rest.

use std::sync::Arc;

use trapline_core::{IdentityKey, Request, Timestamp};
use trapline_frontier::{
    CrawlChange, ErrorKind, Frontier, NoteWrite, Outcome, Query, QueueChange, Rows, Scan, Settings,
    Settlement, Store, Visit, Want,
};
use trapline_sim::Random;
use trapline_stores::disk::files::Files;
use trapline_stores::disk::{Damage, checkpoint, repair, verify_on};
use trapline_stores::{DiskOptions, DiskStore};

use crate::disk::{EAGER, SWAPPING};
use crate::faults::at;
use crate::folder::TestFolder;
use crate::lazy::ROOMY;
use crate::sim_files::{Fault, FaultKind, SimFiles};
use crate::snapshots::verified;

const CRAWLS: [&str; 2] = ["a", "b"];

/// What files of frames end with.
const KINDS: [&str; 4] = [".records", ".lives", ".mores", ".queues"];

const ROOMY_SWAPPING: DiskOptions = DiskOptions { segment_bytes: 4 << 20, ..SWAPPING };

fn open(files: &SimFiles, options: &DiskOptions) -> Arc<DiskStore> {
    Arc::new(DiskStore::open_on(files.clone(), options).unwrap_or_else(|error| panic!("it opens: {error}")))
}

fn crawl(store: &Arc<DiskStore>, name: &str) -> Frontier {
    let settings = Settings { delay: std::time::Duration::ZERO, concurrency: 0, ..Settings::default() };
    let builder = Frontier::builder(name).partitions(1).key(IdentityKey::from_seed(5)).settings(settings);
    let crawl = builder.open_shared(Arc::clone(store) as Arc<dyn Store>, Timestamp::ZERO);
    pollster::block_on(crawl).expect("the crawl opens")
}

fn page(host: u64, number: u64) -> Request {
    Request::get(format!("http://h{host}.example/{number}"))
}

/// Admits so many URLs of as many hosts, a thousand at once.
fn admit(crawl: &Frontier, now: u64, hosts: u64, pages: std::ops::Range<u64>) {
    let all: Vec<Request> = pages.map(|number| page(number % hosts, number)).collect();
    for some in all.chunks(1000) {
        pollster::block_on(crawl.admit(at(now), some.to_vec())).expect("it admits");
    }
}

/// All that a store knows of its crawls.
fn contents(files: &SimFiles, options: &DiskOptions) -> (Vec<Rows>, Option<u64>) {
    let store = open(&files.copy(), options);
    let mut rows = Vec::new();
    for name in CRAWLS {
        let crawl = crawl(&store, name);
        for query in [Query::Records, Query::Queues { keys: None, state: None }, Query::Leases] {
            let scan = Scan { limit: 1_000_000, ..Scan::new(query) };
            rows.push(pollster::block_on(crawl.scan(at(1_000_000), &scan)).expect("it answers").rows);
        }
    }
    (rows, store.recovered().0.snapshot)
}

/// The same without snapshots.
fn replayed(files: &SimFiles) -> Vec<Rows> {
    let copy = files.copy();
    for name in copy.names(".snapshot") {
        copy.take_away(&name);
    }
    let (rows, snapshot) = contents(&copy, &EAGER);
    assert_eq!(snapshot, None);
    rows
}

fn bytes(files: &SimFiles, name: &str) -> u64 {
    files.bytes(name).expect("it is there")
}

fn frames(files: &SimFiles) -> Vec<String> {
    KINDS.iter().flat_map(|kind| files.names(kind)).collect()
}

/// Of 20,000 URLs a few change, and as many are new.
#[test]
fn what_has_not_changed_is_not_written_again() {
    for options in [ROOMY, ROOMY_SWAPPING] {
        let files = SimFiles::default();
        let store = open(&files, &options);
        let crawl = crawl(&store, "a");
        admit(&crawl, 0, 3000, 0..20_000);
        store.snapshot().expect("it is taken");
        let [first] = &files.names(".records")[..] else { panic!("one: {:?}", files.names(".records")) };
        let whole = bytes(&files, first);
        assert!(whole > 20_000 * 16, "{whole}");
        admit(&crawl, 1, 3, 20_000..20_010);
        store.snapshot().expect("it is taken");
        let names = files.names(".records");
        assert_eq!((names.len(), &names[0]), (2, first), "the second one refers to it");
        assert!(bytes(&files, &names[1]) < whole / 10, "{} of {whole}", bytes(&files, &names[1]));
        let newest = files.names(".queues").pop().expect("some have changed");
        let queues: Vec<u64> = files.names(".queues").iter().map(|name| bytes(&files, name)).collect();
        assert!(bytes(&files, &newest) <= queues[0] / 2, "{queues:?}");
        drop((crawl, store));
        let found = contents(&files, &options);
        assert!(found.1.is_some() && found.0 == replayed(&files));
        assert_eq!(verified(&files).damages, []);

        // Whoever opens it goes on from there, and nothing is read of what is only referred to once more.
        let store = open(&files, &options);
        let crawl = self::crawl(&store, "a");
        admit(&crawl, 2, 3, 20_010..20_020);
        store.snapshot().expect("it is taken");
        let names = files.names(".records");
        assert_eq!((names.len(), &names[0]), (3, first));
        assert!(bytes(&files, &names[2]) < whole / 10);
    }
}

/// A small store has each of its snapshots whole.
#[test]
fn small_snapshots_refer_to_nothing() {
    let files = SimFiles::default();
    let store = open(&files, &EAGER);
    let crawl = crawl(&store, "a");
    for round in 0..3 {
        admit(&crawl, round, 3, 1000 * round..1000 * (round + 1));
        store.snapshot().expect("it is taken");
    }
    assert_eq!(frames(&files), [] as [String; 0]);
    // Opened as a large one it is written whole once, and grows small again.
    drop((crawl, store));
    for (options, files_of_frames) in [(ROOMY, true), (EAGER, true), (EAGER, false)] {
        let store = open(&files, &options);
        admit(&self::crawl(&store, "a"), 9, 3, 9000..9001);
        admit(&self::crawl(&store, "a"), 9, 3, 9001 + files.calls()..9002 + files.calls());
        store.snapshot().expect("it is taken");
        assert_eq!(!frames(&files).is_empty(), files_of_frames);
        assert_eq!(verified(&files).damages, []);
    }
}

/// Whatever is done to two crawls between snapshots, which may fail, with crashes of the process and the machine: what the newest
/// snapshot and the log behind it say is what the whole log says.
#[test]
fn a_snapshot_of_changes_is_as_good_as_a_whole_one() {
    let (mut from_snapshot, mut shared, mut failed) = (0, 0, 0);
    for seed in 0..10 {
        let mut random = Random::of(&[seed, 31]);
        let options = [ROOMY, ROOMY_SWAPPING][random.range(0..2) as usize];
        let files = SimFiles::default();
        let mut now = 0;
        let mut numbers = 0..0;
        for round in 0..5 {
            let store = open(&files, &options);
            for _ in 0..8 {
                let name = CRAWLS[random.range(0..2) as usize];
                let crawl = crawl(&store, name);
                now += random.range(0..3000);
                match random.range(0..9) {
                    0..=2 => {
                        numbers = numbers.end..numbers.end + random.range(0..4000);
                        admit(&crawl, now, 1 + random.range(0..1500), numbers.clone());
                    }
                    3..=5 => work(&crawl, now, &mut random),
                    6 => {
                        let key = format!("h{}.example", random.range(0..20));
                        let change = [QueueChange::Purge(None), QueueChange::Delete, QueueChange::Retire];
                        let change = change[random.range(0..3) as usize].clone();
                        pollster::block_on(crawl.steer_queue(at(now), &key, change)).expect("it is steered");
                    }
                    7 if random.chance(1, 3) => {
                        // Another one of that name is another one.
                        pollster::block_on(crawl.steer_crawl(at(now), CrawlChange::Delete))
                            .expect("it is deleted");
                    }
                    _ => {
                        files.set_fault(random.chance(1, 4).then(|| Fault {
                            call: 1 + random.range(0..14),
                            for_ever: false,
                            kind: FaultKind::NoSpace,
                        }));
                        failed += u32::from(store.snapshot().is_err());
                        files.set_fault(None);
                        if pollster::block_on(store.flush()).is_err() {
                            // It was the log that could not be synced: nothing is promised any more.
                            break;
                        }
                    }
                }
            }
            store.abandon();
            if random.chance(1, 2) {
                files.lose_power(seed * 100 + round);
            }
            let (rows, snapshot) = contents(&files, &options);
            assert!(rows == replayed(&files), "seed {seed}, round {round}");
            from_snapshot += u32::from(snapshot.is_some());
            shared += u32::from(frames(&files).len() > 8);
        }
        assert_eq!(verified(&files).damages, [], "seed {seed}");
    }
    assert!(from_snapshot > 40 && shared > 10 && failed > 3, "{from_snapshot}, {shared}, {failed}");
}

/// Claims some URLs, and settles most of them in different ways.
fn work(crawl: &Frontier, now: u64, random: &mut Random) {
    let most = random.range(1..800) as usize;
    let leases = pollster::block_on(crawl.claim(at(now), Want::urls(most))).expect("it claims").leases;
    let outcome = |random: &mut Random| match random.range(0..7) {
        0 => Outcome::Release,
        1 => Outcome::Retry { at: at(now + random.range(0..9000)) },
        2 => Outcome::Dead { reason: "gone".to_owned() },
        3 => Outcome::Done { next: Some(at(now + random.range(0..9000))), visit: Visit::default() },
        _ => Outcome::done(),
    };
    let settled: Vec<Settlement> =
        leases.iter().skip(3).map(|lease| Settlement::new(lease.id, outcome(random))).collect();
    pollster::block_on(crawl.settle(at(now), settled)).expect("it settles");
}

/// Whoever is killed while a large snapshot is written leaves what was never finished, and nothing that looks damaged; and it goes.
#[test]
fn a_snapshot_that_was_not_finished_is_no_damage() {
    let files = SimFiles::default();
    let store = open(&files, &ROOMY);
    let first = crawl(&store, "a");
    admit(&first, 0, 300, 0..3000);
    // So many that references are written before the frames they refer to.
    for key in 0..20_000 {
        let note = NoteWrite { key: format!("{key:020}"), value: Some(vec![7; 60]), expires: None };
        pollster::block_on(first.steer_crawl(at(0), CrawlChange::Note(note))).expect("it is noted");
    }
    store.snapshot().expect("it is taken");
    drop((first, store));
    let take = |files: &SimFiles, fault| {
        let store = open(files, &ROOMY);
        admit(&crawl(&store, "a"), 1, 300, 3000..6000);
        files.set_fault(fault);
        let _ = store.snapshot();
        let calls = files.calls();
        files.set_fault(None);
        store.abandon();
        calls
    };
    let calls = take(&files.copy(), None);
    let expected = replayed(&{
        let copy = files.copy();
        take(&copy, None);
        copy
    });
    let mut unfinished = 0;
    for call in 1..=calls {
        let copy = files.copy();
        take(&copy, Some(Fault { call, for_ever: true, kind: FaultKind::Half }));
        if call % 2 == 0 {
            copy.lose_power(call);
        }
        let found = verified(&copy);
        assert_eq!(found.damages, [], "call {call} of {calls}");
        unfinished += found.leftovers.iter().filter(|what| what.contains("never finished")).count();
        let before = frames(&copy).len();
        let store = open(&copy, &ROOMY);
        assert_eq!(store.recovered().0.snapshots_passed_over, 0, "call {call} of {calls}");
        let after = frames(&copy).len();
        assert!(found.leftovers.is_empty() || after < before || before <= 4, "{before} files, then {after}");
        drop(store);
        assert!(contents(&copy, &ROOMY).0 == expected, "call {call} of {calls}");
    }
    assert!(unfinished > 3, "{unfinished} of {calls}");
}

/// What nobody refers to any more is left behind, and many small files become one.
#[test]
fn files_of_frames_stay_few_and_hold_little_that_is_needed_no_more() {
    let files = SimFiles::default();
    let store = open(&files, &ROOMY);
    let crawl = crawl(&store, "a");
    let mut random = Random::of(&[7]);
    let mut most_files = 0;
    for round in 0..60 {
        // Most of it is for ever; the last few thousand change.
        admit(&crawl, round, 40, 2048 * round..2048 * (round + 1));
        if round % 3 == 0 {
            work(&crawl, round, &mut random);
        }
        store.snapshot().expect("it is taken");
        most_files = most_files.max(files.names(".records").len());
        if round % 30 == 29 {
            assert_eq!(verified(&files).damages, []);
        }
    }
    assert!((3..=40).contains(&most_files), "{most_files} files of records");
    let take = |files: &SimFiles| -> u64 {
        let names = frames(files).into_iter().chain(files.names(".snapshot"));
        names.map(|name| bytes(files, &name)).sum()
    };
    // A copy that was written whole, once.
    let whole = files.copy();
    for name in whole.names(".snapshot") {
        whole.take_away(&name);
    }
    for name in frames(&whole) {
        whole.take_away(&name);
    }
    let other = open(&whole, &ROOMY);
    other.snapshot().expect("it is taken");
    let (shared, alone) = (take(&files), take(&whole));
    assert!(shared < alone * 2, "{shared} bytes for two, {alone} for one");
    drop((crawl, store));
    assert!(contents(&files, &ROOMY).0 == replayed(&files));
}

/// Whatever of it is damaged, cut short or missing, nothing is made up.
#[test]
fn damaged_frames_are_told_and_never_believed() {
    let (files, expected, newest) = shared();
    let mut random = Random::of(&[4]);
    let mut passed = [0; 3];
    for round in 0..120 {
        let copy = files.copy();
        let names = frames(&copy);
        let name = &names[random.range(0..names.len() as u64) as usize];
        let place = random.range(0..bytes(&copy, name)) as usize;
        match round % 3 {
            0 => copy.take_away(name),
            1 => copy.change(name, |bytes| bytes.truncate(place)),
            _ => copy.change(name, |bytes| bytes[place..].fill(0)),
        }
        let found = verified(&copy);
        let (rows, snapshot) = contents(&copy, &ROOMY);
        assert!(rows == expected, "round {round}");
        passed[usize::from(snapshot != newest) + usize::from(snapshot.is_none())] += 1;
        // The older one may have need of it, and not the newer one.
        assert!(snapshot == newest || !found.damages.is_empty(), "round {round}");
        for damage in &found.damages {
            assert!(format!("{} {}", damage.file, damage.what).contains(name), "{name}: {damage:?}");
        }
    }
    // Nobody has need of it, the older one did without it, or both had need of it.
    assert!(passed[1] > 10 && passed[2] > 5, "{passed:?}");
}

/// Two snapshots, of which the newer one refers to the older one's files; what they say, and which the newer one is.
fn shared() -> (SimFiles, Vec<Rows>, Option<u64>) {
    let files = SimFiles::default();
    let store = open(&files, &ROOMY);
    let crawl = crawl(&store, "a");
    admit(&crawl, 0, 300, 0..30_000);
    work(&crawl, 1, &mut Random::of(&[3]));
    store.snapshot().expect("it is taken");
    admit(&crawl, 2, 300, 30_000..30_100);
    store.snapshot().expect("it is taken");
    drop((crawl, store));
    let (expected, newest) = (replayed(&files), contents(&files, &ROOMY).1);
    (files, expected, newest)
}

/// A place of the disk that goes bad, as large as it may be and wherever it is: both snapshots do without it, `verify` tells, and the next
/// snapshot leaves it behind.
#[test]
fn one_damaged_place_costs_nothing() {
    let (files, expected, newest) = shared();
    let mut random = Random::of(&[5]);
    let mut told = 0;
    for round in 0..20 {
        let copy = files.copy();
        let names = frames(&copy);
        let name = &names[random.range(0..names.len() as u64) as usize];
        let sector = random.range(0..bytes(&copy, name).div_ceil(4096)) as usize * 4096;
        copy.change(name, |bytes| {
            let end = bytes.len().min(sector + 4096);
            bytes[sector..end].iter_mut().for_each(|byte| *byte = !*byte);
        });
        let found = verified(&copy);
        let (rows, snapshot) = contents(&copy, &ROOMY);
        assert!(rows == expected && snapshot == newest, "round {round}: {name} from {sector} on");
        for damage in &found.damages {
            assert_eq!(damage.file, format!("simulated/{name}"));
            assert!(damage.what.contains("nothing is lost"), "{}", damage.what);
        }
        told += found.damages.len();
        // Wherever it is wanted: by the keeper, by callers, and by what is copied from it.
        for options in [ROOMY, EAGER, ROOMY_SWAPPING] {
            let store = open(&copy, &options);
            admit(&crawl(&store, "a"), 3, 3, 40_000 + 10 * round..40_010 + 10 * round);
            store.snapshot().expect("it is taken");
        }
        assert_eq!(verified(&copy).damages, [], "round {round}");
        assert!(contents(&copy, &ROOMY).0 == replayed(&copy));
    }
    assert!(told >= 12, "{told} of 20 told");
}

/// When all snapshots have need of what is damaged, and the beginning of the log is gone, the message says what it is, and a repair has
/// what the log has.
#[test]
fn a_store_that_cannot_do_without_damaged_frames_says_so() {
    let files = SimFiles::default();
    let options = DiskOptions { segment_bytes: 256 << 10, ..ROOMY };
    let store = open(&files, &options);
    let crawl = crawl(&store, "a");
    admit(&crawl, 0, 300, 0..20_000);
    for round in 0..3 {
        admit(&crawl, 1 + round, 3, 20_000 + 10 * round..20_010 + 10 * round);
        store.snapshot().expect("it is taken");
    }
    drop((crawl, store));
    let first = files.names(".records").remove(0);
    files.change(&first, |bytes| bytes[1000..].fill(0));
    files.take_away(&files.names(".segment")[0]);
    let error = DiskStore::open_on(files.clone(), &options).err().expect("it does not open");
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(
        error.to_string().contains(&format!("{first}, where some of it is, is damaged at byte 8")),
        "{error}"
    );
    assert!(error.to_string().contains("verify"), "{error}");
    let files: Arc<dyn Files> = Arc::new(files);
    assert!(!verify_on(&files, &mut |_| ()).expect("it can be read").damages.is_empty());
}

/// Where no snapshot can be read and the beginning of the log is gone, a repair says what is lost, and a checkpoint is none.
#[test]
fn what_is_lost_with_all_snapshots_is_told() {
    let folder = TestFolder::new();
    let options = DiskOptions { segment_bytes: 256 << 10, ..ROOMY };
    let store = Arc::new(DiskStore::open(folder.path(), &options).expect("it opens"));
    let crawl = crawl(&store, "a");
    admit(&crawl, 0, 300, 0..20_000);
    for round in 0..2 {
        admit(&crawl, 1 + round, 3, 20_000 + 10 * round..20_010 + 10 * round);
        store.snapshot().expect("it is taken");
    }
    drop(crawl);
    store.close().expect("it closes");
    drop(store);
    let segments = folder.path().join("segments");
    let names =
        std::fs::read_dir(&segments).expect("it is there").map(|entry| entry.expect("it is listed").path());
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    let ends = |ending: &str| {
        names.iter().find(|name| name.to_string_lossy().ends_with(ending)).expect("there is one")
    };
    let (first, records) = (ends(".segment"), ends(".records"));
    std::fs::remove_file(first).expect("it is removed");
    std::fs::remove_file(records).expect("it is removed");
    let to = TestFolder::new();
    let repaired = repair(folder.path(), to.path().join("saved"), &mut |_| ()).expect("it is repaired");
    let missing =
        |damage: &Damage| damage.file == first.display().to_string() && damage.what.contains("missing");
    assert!(repaired.damages.iter().any(missing), "{:?}", repaired.damages);
    assert_eq!(repaired.lost_crawls.len(), 1, "{repaired:?}");
    let error = checkpoint(folder.path(), "monday").expect_err("it would be worth nothing").to_string();
    let name = records.file_name().expect("it has one").to_string_lossy();
    assert!(error.contains(&*name) && error.contains("is missing"), "{error}");
}

/// What is to be copied and is damaged costs that snapshot. The engine has all of it, and the next one is whole again.
#[test]
fn a_snapshot_that_cannot_refer_to_the_one_before_it_is_followed_by_a_whole_one() {
    let files = SimFiles::default();
    let store = open(&files, &ROOMY);
    let crawl = crawl(&store, "a");
    admit(&crawl, 0, 1, 0..10_000);
    store.snapshot().expect("it is taken");
    let first = files.names(".lives").remove(0);
    files.change(&first, |bytes| {
        let end = bytes.len() - 16;
        bytes[1000..end].fill(0);
    });
    let mut failed = None;
    for round in 0..20 {
        // Little by little it is worn.
        let leases = pollster::block_on(crawl.claim(at(round), Want::urls(500))).expect("it claims").leases;
        let done = leases.iter().map(|lease| Settlement::new(lease.id, Outcome::done())).collect();
        pollster::block_on(crawl.settle(at(round), done)).expect("it settles");
        if let Err(error) = store.snapshot() {
            failed = Some(error);
            break;
        }
    }
    assert_eq!(verified(&files).damages.len(), 2, "both snapshots have need of it");
    let error = failed.expect("the first files are worn some time");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(
        error.to_string().contains(&format!("{first}, where some of it is, is damaged at byte")),
        "{error}"
    );
    assert!(error.to_string().contains("nothing is lost"), "{error}");
    store.snapshot().expect("it is taken, whole");
    drop((crawl, store));
    let (rows, snapshot) = contents(&files, &ROOMY);
    assert!(snapshot.is_some() && rows == replayed(&files));
}
