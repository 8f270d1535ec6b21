//! What every store remembers of visits, and the notes it keeps.

use trapline_core::{Candidate, Statement};

use super::Harness;
use super::trial::{START, Trial, at, pages, secs, visit};
use crate::report::{Note, UrlState};
use crate::verbs::{Answer, NoteWrite, Outcome, PageRecord, Settlement, Visit};

/// A visit that found something of everything.
pub(super) fn full_visit() -> Visit {
    Visit {
        status: 203,
        bytes: 12_345,
        etag: Some("W/\"é\u{1}\"".to_owned()),
        last_modified: Some("Tue, 15 Nov 1994 12:45:26 GMT".to_owned()),
        digest: Some((0..=255).collect()),
        simhash: Some(u64::MAX),
    }
}

/// The first lease of a URL has no page record; the next one has all that the visit left.
pub fn validators_come_with_the_next_lease<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    let url = "http://a.example/1";
    trial.add(START, &[url]);
    let lease = trial.one(START);
    assert_eq!(lease.page, None);
    trial.end(at(5), &lease, Outcome::Done { visit: full_visit(), next: Some(at(50)) });
    let expected =
        PageRecord { visited: at(5), visit: full_visit(), visits: 1, changes: 0, next: Some(at(50)) };
    let report = trial.url(at(6), url);
    assert_eq!((report.state, report.due), (UrlState::Done, Some(at(50))));
    assert_eq!(report.page.as_deref(), Some(&expected));
    let lease = trial.one(at(50));
    assert_eq!(lease.page.as_deref(), Some(&expected));
    assert_eq!(trial.known(at(50), None, None, None, 9)[0].page.as_deref(), Some(&expected));
}

/// Visits are counted, and changes of the digest.
pub fn visits_and_changes_are_counted<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    trial.add(START, &pages("a", 1));
    let found = [Some("one"), Some("one"), Some("two"), Some("one"), None, None, Some("one")];
    let changes = [0, 0, 1, 2, 3, 3, 4];
    for (number, (digest, changes)) in (0..).zip(found.iter().zip(changes)) {
        let lease = trial.one(at(number));
        let visit =
            Visit { status: 200, digest: digest.map(|text| text.as_bytes().to_vec()), ..Visit::default() };
        trial.end(at(number), &lease, Outcome::Done { visit, next: Some(at(number + 1)) });
        let page = trial.url(at(number), "http://a.example/1").page.expect("a page record");
        assert_eq!((u64::from(page.visits), page.changes), (number + 1, changes), "visit {number}");
    }
    assert_eq!(trial.stats(at(6)).fetched, 7);
}

/// Failures, releases and expiries leave the page record as it was.
pub fn only_a_visit_changes_the_page_record<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0 lease=10s");
    let url = "http://a.example/1";
    trial.add(START, &[url]);
    let lease = trial.one(START);
    trial.end(START, &lease, Outcome::Done { visit: visit(b"x"), next: Some(START) });
    let record = trial.url(START, url).page.expect("a page record");
    let lease = trial.one(START);
    trial.end(START, &lease, Outcome::Release);
    let lease = trial.one(START);
    trial.end(START, &lease, Outcome::Retry { at: START });
    trial.one(START);
    let lease = trial.one(at(10));
    assert_eq!((lease.delivery, lease.page.as_ref()), (2, Some(&record)));
    trial.dead(at(10), &lease, "410");
    assert_eq!(trial.url(at(10), url).page, Some(record));
}

/// A next visit that is due makes the URL pending again, and stats tell of those that wait.
pub fn a_next_visit_comes_when_it_is_due<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    trial.add(START, &pages("a", 2));
    for _ in 0..2 {
        let lease = trial.one(START);
        trial.end(START, &lease, Outcome::Done { visit: visit(b"x"), next: Some(at(60)) });
    }
    let stats = trial.stats(at(59));
    assert_eq!((stats.visits_waiting, stats.urls_in(UrlState::Done)), (2, 2));
    assert!(!trial.report(at(59)).exhausted);
    let stats = trial.stats(at(60));
    assert_eq!((stats.visits_waiting, stats.urls_in(UrlState::Pending)), (0, 2));
    let lease = trial.one(at(60));
    assert_eq!(trial.end(at(60), &lease, Outcome::done()), Answer::Done);
    let page = trial.url(at(60), &lease.request.url).page.expect("a page record");
    assert_eq!((page.visits, page.next), (2, None));
}

/// A statement speaks of when, not of what was found: the page record stays. Forgetting takes it along.
pub fn a_page_record_is_lost_only_with_its_url<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    let url = "http://a.example/1";
    trial.add(START, &[url]);
    let lease = trial.one(START);
    trial.end(START, &lease, Outcome::Done { visit: visit(b"x"), next: None });
    trial.admit_one(START, Candidate { statement: Some(Statement::Next(at(9))), ..trial.get(url) });
    let lease = trial.one(at(9));
    assert_eq!(lease.page.as_ref().map(|page| page.visits), Some(1));
    trial.wait(trial.frontier.forget(at(9), url)).expect("forget");
    trial.add(at(9), &[url]);
    assert_eq!(trial.one(at(9)).page, None);
}

/// A note stands under its key until it is replaced or removed.
pub fn a_note_is_written_replaced_and_removed<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "");
    let values = || -> Vec<_> { trial.notes(START, "", 10).into_iter().map(|note| note.value).collect() };
    trial.note(START, "k", Some(b"one"), None);
    assert_eq!(values(), [b"one"]);
    trial.note(START, "k", Some(&[0, 255, 10, 0]), Some(at(5)));
    let note = Note { key: "k".to_owned(), value: vec![0, 255, 10, 0], expires: Some(at(5)) };
    assert_eq!(trial.notes(START, "", 10), [note]);
    trial.note(START, "k", Some(b""), None);
    assert_eq!(values(), [b""], "empty is a value, and the expiry is gone");
    trial.note(START, "k", None, None);
    trial.note(START, "never written", None, None);
    assert_eq!(values(), Vec::<Vec<u8>>::new());
}

/// From the moment of its expiry on a note is gone.
pub fn a_note_expires_at_its_time<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "");
    trial.note(START, "brief", Some(b"x"), Some(at(10)));
    trial.note(START, "kept", Some(b"x"), None);
    let keys = |now| -> Vec<_> { trial.notes(now, "", 10).into_iter().map(|note| note.key).collect() };
    assert_eq!(keys(at(9)), ["brief", "kept"]);
    assert_eq!(keys(at(10)), ["kept"]);
    trial.note(at(10), "late", Some(b"x"), Some(at(10)));
    assert_eq!(keys(at(10)), ["kept"], "written too late to be seen");
    trial.note(at(10), "brief", Some(b"y"), Some(at(20)));
    assert_eq!(keys(at(19)), ["brief", "kept"]);
}

/// Notes are found by how their key begins, byte by byte.
pub fn notes_are_found_by_prefix<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "");
    let written = ["a", "a/1", "a/2", "a/é", "a/ü", "a0", "b%", "b_", "bx", "é", "A/1"];
    for key in written {
        trial.note(START, key, Some(key.as_bytes()), None);
    }
    let found = |prefix: &str| {
        let notes = trial.notes(START, prefix, 3);
        assert!(notes.iter().all(|note| note.value == note.key.as_bytes()));
        let mut keys: Vec<_> = notes.into_iter().map(|note| note.key).collect();
        keys.sort();
        keys
    };
    assert_eq!(found("a/"), ["a/1", "a/2", "a/é", "a/ü"]);
    assert_eq!(found("a"), ["a", "a/1", "a/2", "a/é", "a/ü", "a0"]);
    assert_eq!(found("b%"), ["b%"], "no wildcards");
    assert_eq!(found("b_"), ["b_"]);
    assert_eq!(found("é"), ["é"]);
    assert_eq!(found("a/é/x"), Vec::<String>::new());
    assert_eq!(found("").len(), written.len());
}

/// Notes of a settlement are written in their order, and removed too.
pub fn a_settlement_writes_notes_in_order<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    trial.note(START, "old", Some(b"x"), None);
    trial.add(START, &pages("a", 1));
    let lease = trial.one(START);
    let write = |key: &str, value: Option<&[u8]>| NoteWrite {
        key: key.to_owned(),
        value: value.map(<[u8]>::to_vec),
        expires: None,
    };
    let mut settlement = Settlement::new(lease.id, Outcome::Renew { lease: secs(60) });
    settlement.notes = vec![
        write("k", Some(b"1")),
        write("k", Some(b"2")),
        write("old", None),
        write("gone", Some(b"1")),
        write("gone", None),
    ];
    trial.settle_one(START, settlement);
    let note = Note { key: "k".to_owned(), value: b"2".to_vec(), expires: None };
    assert_eq!(trial.notes(START, "", 10), [note]);
}
