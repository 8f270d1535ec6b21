//! What long notes say lies in the log: it is found there, moved with the rest, and goes when nobody needs it.

use std::cell::Cell;
use std::sync::Arc;

use trapline_core::{Request, Timestamp};
use trapline_frontier::{
    CrawlChange, ErrorKind, Frontier, Note, NoteWrite, Outcome, Query, Rows, Scan, Settlement, StoreError,
};
use trapline_stores::disk::files::{Files, Folder};
use trapline_stores::disk::{Rewrite, repair, verify_on};
use trapline_stores::{DiskOptions, DiskStore};

use crate::disk::SMALL;
use crate::faults::frontier;
use crate::folder::TestFolder;
use crate::sim_files::{Fault, FaultKind, SimFiles};

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn open_with(files: &SimFiles, options: &DiskOptions) -> (Arc<DiskStore>, Frontier) {
    let store = Arc::new(DiskStore::open_on(files.clone(), options).expect("it opens"));
    let crawl = pollster::block_on(frontier(Arc::clone(&store) as _)).expect("the crawl opens");
    (store, crawl)
}

fn open(files: &SimFiles) -> (Arc<DiskStore>, Frontier) {
    open_with(files, &SMALL)
}

/// What the robots.txt of a host may say, and what nothing else says.
fn robots(host: u32, round: u32) -> Vec<u8> {
    format!("User-agent: *\nDisallow: /{host}/{round}\n").repeat(30).into_bytes()
}

fn key(host: u32) -> String {
    format!("robots:{host}.example")
}

fn write(crawl: &Frontier, note: NoteWrite) -> Result<(), StoreError> {
    pollster::block_on(crawl.steer_crawl(at(1), CrawlChange::Note(note))).map(drop)
}

fn write_all(crawl: &Frontier, hosts: u32, round: u32) {
    for host in 0..hosts {
        let note = NoteWrite { key: key(host), value: Some(robots(host, round)), expires: Some(at(100)) };
        write(crawl, note).expect("it is written");
    }
}

fn notes(crawl: &Frontier, now: Timestamp) -> Vec<Note> {
    let scan = Scan { limit: 100_000, ..Scan::new(Query::Notes { prefix: String::new() }) };
    match pollster::block_on(crawl.scan(now, &scan)).expect("they are listed").rows {
        Rows::Notes(notes) => notes,
        rows => panic!("{rows:?}"),
    }
}

fn all_of(hosts: u32, round: u32) -> Vec<Note> {
    let note = |host| Note { key: key(host), value: robots(host, round), expires: Some(at(100)) };
    let mut notes: Vec<_> = (0..hosts).map(note).collect();
    notes.sort_by(|one, other| one.key.cmp(&other.key));
    notes
}

fn clean(files: &SimFiles) {
    let files: Arc<dyn Files> = Arc::new(files.copy());
    let verified = verify_on(&files, &mut |_| {}).expect("it can be verified");
    assert_eq!(verified.damages, [], "{verified:?}");
}

/// In its snapshots it says only where they are.
#[test]
fn what_notes_say_is_not_in_memory() {
    let files = SimFiles::default();
    let (store, crawl) = open(&files);
    write_all(&crawl, 100, 1);
    store.snapshot().expect("it is taken");
    let disk = pollster::block_on(crawl.stats(at(1))).expect("it counts").disk.expect("it is on disk");
    let said: u64 = (0..100).map(|host| robots(host, 1).len() as u64).sum();
    assert!(disk.snapshot_bytes < said / 10, "{disk:?}, and they say {said} bytes");
    // They are needed, with their keys, and not much more than that.
    assert!((said..said * 11 / 10).contains(&disk.needed_bytes), "{disk:?}, and they say {said} bytes");
    assert_eq!(notes(&crawl, at(1)), all_of(100, 1));
    // What was replaced, taken away or is over is needed no more.
    write_all(&crawl, 50, 2);
    write(&crawl, NoteWrite { key: key(7), value: None, expires: None }).expect("it is taken away");
    let disk = pollster::block_on(crawl.stats(at(1))).expect("it counts").disk.expect("it is on disk");
    assert!((said * 98 / 100..said * 11 / 10).contains(&disk.needed_bytes), "{disk:?}");
    clean(&files);
    assert_eq!(notes(&crawl, at(100)), []);
    let disk = pollster::block_on(crawl.stats(at(100))).expect("it counts").disk.expect("it is on disk");
    assert_eq!(disk.needed_bytes, 0);
    clean(&files);
}

#[test]
fn they_move_with_the_rest_and_their_segments_go() {
    let files = SimFiles::default();
    let (store, crawl) = open(&files);
    for round in 0..5 {
        // Some are of an earlier round than others.
        write_all(&crawl, 100 - round * 10, round);
    }
    let expected = notes(&crawl, at(1));
    let before = files.names(".segment");
    assert!(before.len() > 5, "{before:?}");
    store.snapshot().expect("it is taken");
    let rewritten = store.rewrite(Rewrite::All).expect("it is rewritten");
    assert!(rewritten.urls > 80 && rewritten.unreadable == 0, "{rewritten:?}");
    assert_eq!(notes(&crawl, at(1)), expected);
    clean(&files);
    for _ in 0..2 {
        write(&crawl, NoteWrite { key: "seen".to_owned(), value: Some(vec![1]), expires: None })
            .expect("it is written");
        store.snapshot().expect("it is taken");
        clean(&files);
    }
    let after = files.names(".segment");
    let gone = before.iter().filter(|name| !after.contains(*name)).count();
    assert!(gone > before.len() / 2, "{gone} of {before:?} are gone");
    // A crash later it is as it was, from the snapshot and the log.
    let seen = Note { key: "seen".to_owned(), value: vec![1], expires: None };
    let expected: Vec<_> = expected.into_iter().chain([seen]).collect();
    store.abandon();
    let (store, crawl) = open(&files);
    assert_eq!(notes(&crawl, at(1)), expected);
    store.abandon();
}

/// Notes that come with a settlement are there when it is, and never without it, whichever call is the last.
#[test]
fn every_call_may_be_the_last() {
    let told = Cell::new(0);
    let workload = |files: &SimFiles| -> Result<(), StoreError> {
        told.set(0);
        let store = Arc::new(DiskStore::open_on(files.clone(), &SMALL)?);
        let work = || {
            let crawl = pollster::block_on(frontier(Arc::clone(&store) as _))?;
            for round in 0..4 {
                pollster::block_on(crawl.admit(at(1), [Request::get(format!("http://{round}.example/"))]))?;
                let leases = pollster::block_on(crawl.claim(at(1), 1))?.leases;
                let value = Some(robots(round, round));
                let note = NoteWrite { key: "rounds".to_owned(), value, expires: None };
                let settlement =
                    Settlement { notes: vec![note], ..Settlement::new(leases[0].id, Outcome::done()) };
                pollster::block_on(crawl.settle(at(1), vec![settlement]))?;
                told.set(round + 1);
                if round % 2 == 1 {
                    store.snapshot()?;
                    store.rewrite(Rewrite::All)?;
                }
            }
            Ok(())
        };
        let worked = work();
        store.abandon();
        worked
    };
    let files = SimFiles::default();
    workload(&files).expect("nothing fails");
    let calls = files.calls();
    assert!(calls > 15, "{calls}");
    for call in 1..=calls {
        let files = SimFiles::default();
        files.set_fault(Some(Fault { call, for_ever: true, kind: FaultKind::Half }));
        let _ = workload(&files);
        files.set_fault(None);
        files.lose_power(call);
        let (store, crawl) = open(&files);
        let fetched = pollster::block_on(crawl.stats(at(1))).expect("it counts").fetched as u32;
        let expected = fetched.checked_sub(1).map(|last| robots(last, last));
        let found = notes(&crawl, at(1)).pop().map(|note| note.value);
        assert_eq!(found, expected, "call {call}");
        assert!(fetched >= told.get(), "{fetched} were fetched, {} were told, call {call}", told.get());
        store.snapshot().expect("it is taken");
        store.abandon();
        clean(&files);
    }
}

/// Who finds no note writes another one, so nobody is told that there is none.
#[test]
fn a_note_that_cannot_be_read_now_is_not_said_to_be_none() {
    let files = SimFiles::default();
    let (_store, crawl) = open(&files);
    write_all(&crawl, 3, 1);
    let scan = Scan::new(Query::Notes { prefix: key(1) });
    let scan = || pollster::block_on(crawl.scan(at(1), &scan));
    files.set_read_fault(Some((1, true)));
    let error = scan().expect_err("it cannot be read");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let expected = "disk store: cannot scan: reading simulated/0000000001.segment failed";
    assert!(error.to_string().starts_with(expected) && error.to_string().contains("try again"), "{error}");
    // Once is not for ever.
    files.set_read_fault(Some((1, false)));
    assert!(scan().is_ok());
    files.set_read_fault(None);
    assert_eq!(notes(&crawl, at(1)), all_of(3, 1));
    write_all(&crawl, 1, 2);
    clean(&files);
}

/// Notes are longer than requests and sooner gone: what is needed of a segment with both is not a share of all that it had.
#[test]
fn notes_that_are_over_are_not_counted_with_requests() {
    let files = SimFiles::default();
    let options = DiskOptions { segment_bytes: 1 << 20, ..SMALL };
    let (_store, crawl) = open_with(&files, &options);
    let pages = (0..1000).map(|page| Request::get(format!("http://{}.example/{page}", page % 10)));
    pollster::block_on(crawl.admit(at(1), pages)).expect("they are admitted");
    let needed = |now| {
        let stats = pollster::block_on(crawl.stats(now)).expect("it counts");
        stats.disk.expect("it is on disk").needed_bytes
    };
    let requests = needed(at(1));
    write_all(&crawl, 50, 1);
    assert!(needed(at(1)) > requests + 50 * robots(1, 1).len() as u64 * 9 / 10);
    assert_eq!(needed(at(100)), requests);
    clean(&files);
}

/// Where one cannot be read, that is told, and it is nobody else's trouble.
#[test]
fn a_note_that_cannot_be_read_is_named_and_left_out() {
    let folder = TestFolder::new();
    let options = DiskOptions { background: false, ..DiskOptions::default() };
    let store = Arc::new(DiskStore::open(folder.path(), &options).expect("it opens"));
    let crawl = pollster::block_on(frontier(Arc::clone(&store) as _)).expect("the crawl opens");
    write_all(&crawl, 3, 1);
    store.snapshot().expect("it is taken");
    let segments = folder.path().join("segments");
    let segment = Folder::new(&segments).list().expect("it is listed");
    let segment = segment.into_iter().find(|name| name.ends_with(".segment")).expect("there is one");
    let mut bytes = std::fs::read(segments.join(&segment)).expect("it is read");
    let said = b"Disallow: /1/1";
    // In its text, which comes before the message.
    let place = bytes.windows(said.len()).position(|window| window == said).expect("it is there");
    bytes[place] ^= 1;
    std::fs::write(segments.join(&segment), &bytes).expect("it is written");
    let others: Vec<_> = all_of(3, 1).into_iter().filter(|note| note.key != key(1)).collect();
    assert_eq!(notes(&crawl, at(1)), others);
    store.abandon();
    let files: Arc<dyn Files> = Arc::new(Folder::new(&segments));
    let damages = verify_on(&files, &mut |_| {}).expect("it can be verified").damages;
    assert_eq!(damages.len(), 1, "{damages:?}");
    let to = TestFolder::new();
    let repaired = repair(folder.path(), to.path().join("new"), &mut |_| {}).expect("it is repaired");
    assert_eq!(repaired.lost_notes.len(), 1, "{repaired:?}");
    assert!(repaired.lost_notes[0].starts_with("note `robots:1.example` in crawl"), "{repaired:?}");
    let store = Arc::new(DiskStore::open(to.path().join("new"), &options).expect("it opens"));
    let crawl = pollster::block_on(frontier(Arc::clone(&store) as _)).expect("the crawl opens");
    assert_eq!(notes(&crawl, at(1)), others);
}
