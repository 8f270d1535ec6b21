//! What is known of pages: it lies in the log beside their requests, and memory knows only where.

use std::sync::Arc;
use std::time::Duration;

use trapline_core::{Request, Statement, Timestamp};
use trapline_frontier::{
    ErrorKind, Frontier, Lease, Outcome, PageRecord, Query, Rows, Scan, Settlement, Steer, UrlFilter,
    UrlsChange, Visit, Want,
};
use trapline_stores::DiskStore;
use trapline_stores::disk::files::Files;
use trapline_stores::disk::{Rewrite, verify_on};

use crate::disk::SMALL;
use crate::faults::{at, frontier};
use crate::sim_files::SimFiles;

fn open(files: &SimFiles) -> (Arc<DiskStore>, Frontier) {
    let store = Arc::new(DiskStore::open_on(files.clone(), &SMALL).expect("it opens"));
    let crawl = pollster::block_on(frontier(Arc::clone(&store) as _)).expect("the crawl opens");
    (store, crawl)
}

fn visit(number: u8) -> Visit {
    let etag = Some(format!("\"{number}\""));
    Visit { status: 200, bytes: 20_000, etag, digest: Some(vec![number; 32]), ..Visit::default() }
}

fn admit(crawl: &Frontier, urls: u32) {
    let page = |number| Request::get(format!("http://{number}.example/a/page/{number}"));
    pollster::block_on(crawl.admit(at(0), (0..urls).map(page))).expect("it is admitted");
}

fn claim(crawl: &Frontier, now: Timestamp, urls: usize) -> Vec<Lease> {
    let want = Want { lease: Some(Duration::from_secs(9)), ..Want::urls(urls) };
    pollster::block_on(crawl.claim(now, want)).expect("it is claimed").leases
}

fn settle(crawl: &Frontier, now: Timestamp, leases: &[Lease], visit: &Visit, next: Option<Timestamp>) {
    let done = || Outcome::Done { visit: visit.clone(), next };
    let batch = leases.iter().map(|lease| Settlement::new(lease.id, done())).collect();
    pollster::block_on(crawl.settle(now, batch)).expect("it is settled");
}

fn pages(crawl: &Frontier, now: Timestamp) -> Vec<(String, Option<PageRecord>)> {
    let scan = Scan { limit: 10_000, ..Scan::new(Query::Urls { key: None, pattern: None, state: None }) };
    let rows = pollster::block_on(crawl.scan(now, &scan)).expect("it is listed").rows;
    let Rows::Urls(rows) = rows else { panic!("{rows:?}") };
    let page = |page: Arc<PageRecord>| (*page).clone();
    rows.into_iter().map(|row| (row.request.expect("it is read").url.clone(), row.page.map(page))).collect()
}

#[test]
fn a_visited_page_takes_no_more_memory_than_a_known_url() {
    let files = SimFiles::default();
    let (store, crawl) = open(&files);
    admit(&crawl, 3000);
    let leases = claim(&crawl, at(1), 3000);
    assert_eq!(leases.len(), 3000);
    let memory =
        |crawl: &Frontier| pollster::block_on(crawl.stats(at(2))).expect("it counts").memory.unwrap();
    let before = memory(&crawl);
    settle(&crawl, at(1), &leases, &visit(7), None);
    let after = memory(&crawl);
    assert_eq!((after.rare, after.texts), (before.rare, 0), "of {before:?}");
    let seen = pages(&crawl, at(2));
    assert!(seen.len() == 3000 && seen.iter().all(|(_, page)| page.as_ref().unwrap().visit == visit(7)));
    // Replayed, and from a snapshot.
    store.abandon();
    let (store, crawl) = open(&files);
    assert_eq!((pages(&crawl, at(2)), memory(&crawl)), (seen.clone(), after));
    store.snapshot().expect("it is taken");
    store.abandon();
    let (_, crawl) = open(&files);
    assert_eq!((pages(&crawl, at(2)), memory(&crawl).rare), (seen, after.rare));
}

#[test]
fn whoever_comes_back_to_a_page_is_told_what_the_latest_visit_left() {
    let files = SimFiles::default();
    let (mut store, mut crawl) = open(&files);
    admit(&crawl, 20);
    let mut known: Option<PageRecord> = None;
    for round in 1..=5_u8 {
        let now = Timestamp::from_millis(u64::from(round) * 100_000);
        let leases = claim(&crawl, now, 20);
        assert_eq!(leases.len(), 20);
        for lease in &leases {
            assert_eq!(lease.page.as_deref(), known.as_ref(), "round {round}");
            assert!(lease.request.url.contains("/a/page/"));
        }
        // Every other round the same as before.
        let next = now + Duration::from_secs(50);
        settle(&crawl, now, &leases, &visit(round / 2), Some(next));
        let changes = u32::from(round / 2);
        let visits = u32::from(round);
        known = Some(PageRecord { visited: now, visit: visit(round / 2), visits, changes, next: Some(next) });
        match round {
            2 => store.abandon(),
            3 => drop(store.snapshot().expect("it is taken")),
            4 => store.close().expect("it closes"),
            _ => continue,
        }
        if round != 3 {
            (store, crawl) = open(&files);
        }
    }
}

/// Without its request there is no place for what is known of the page. The lease ends by itself.
#[test]
fn a_request_that_cannot_be_read_when_it_is_settled_is_told_and_nothing_is_done() {
    let files = SimFiles::default();
    let (store, crawl) = open(&files);
    admit(&crawl, 2);
    let leases = claim(&crawl, at(1), 2);
    files.set_read_fault(Some((1, true)));
    let outcome = Outcome::Done { visit: visit(1), next: None };
    let settlement = Settlement::new(leases[0].id, outcome);
    let error = pollster::block_on(crawl.settle(at(1), vec![settlement])).expect_err("it cannot be read");
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().starts_with("disk store: cannot settle: reading simulated/"), "{error}");
    files.set_read_fault(None);
    // The store goes on, and so does the lease.
    settle(&crawl, at(1), &leases, &visit(1), None);
    store.abandon();
    let (_, crawl) = open(&files);
    assert!(pages(&crawl, at(2)).iter().all(|(_, page)| page.as_ref().unwrap().visits == 1));
}

/// States all URLs anew, to be visited at once. What is known of their pages stays.
fn restate(crawl: &Frontier, now: Timestamp, urls: u32) -> Result<(), trapline_frontier::StoreError> {
    let stated = |number: u32| {
        let mut request = Request::get(format!("http://{number}.example/a/page/{number}"));
        // So that the visits of all do not fit behind these in a segment.
        request.opaque = vec![7; 2900];
        let mut candidate = crawl.prepare(request).expect("a URL");
        candidate.statement = Some(Statement::Next(now));
        candidate
    };
    let batch: Vec<_> = (0..urls).map(stated).collect();
    pollster::block_on(crawl.admit_candidates(now, &batch)).map(drop)
}

/// How much a visit puts into the log is known before, also where the visit itself says nothing.
#[test]
fn pages_that_were_stated_anew_are_visited_again_wherever_the_segment_ends() {
    let files = SimFiles::default();
    let (store, crawl) = open(&files);
    admit(&crawl, 12);
    for round in 1..30_u32 {
        let now = Timestamp::from_millis(u64::from(round) * 100_000);
        let leases = claim(&crawl, now, 12);
        assert_eq!(leases.len(), 12);
        let said = if round == 1 { visit(1) } else { Visit::default() };
        settle(&crawl, now, &leases, &said, None);
        restate(&crawl, now, 12).expect("it is stated");
    }
    let expected = pages(&crawl, Timestamp::from_millis(3_000_000));
    assert!(expected.iter().all(|(_, page)| page.as_ref().unwrap().visits == 29), "{expected:?}");
    store.abandon();
    assert_eq!(pages(&open(&files).1, Timestamp::from_millis(3_000_000)), expected);
}

/// A page that cannot be read costs the batch that states its URL anew, and nobody else.
#[test]
fn a_page_that_cannot_be_read_when_it_is_stated_anew_stops_nothing() {
    let files = SimFiles::default();
    let (_store, crawl) = open(&files);
    admit(&crawl, 3);
    settle(&crawl, at(1), &claim(&crawl, at(1), 3), &visit(1), None);
    files.set_read_fault(Some((1, true)));
    let error = restate(&crawl, at(2), 3).expect_err("it cannot be read");
    assert!(error.to_string().starts_with("disk store: cannot admit: reading simulated/"), "{error}");
    files.set_read_fault(None);
    restate(&crawl, at(2), 3).expect("it goes on");
    assert_eq!(claim(&crawl, at(2), 3).len(), 3);
}

/// Replaying a visit does not need what was known of the page before it.
#[test]
fn opening_does_not_read_what_is_known_no_more() {
    let files = SimFiles::default();
    let (store, crawl) = open(&files);
    admit(&crawl, 10);
    let now = Timestamp::from_millis;
    settle(&crawl, now(1000), &claim(&crawl, now(1000), 10), &visit(1), Some(now(2000)));
    let mut filling = Request::get("http://filling.example/");
    for number in 0..2 {
        filling.url = format!("http://filling.example/{number}");
        filling.opaque = vec![7; 60_000];
        pollster::block_on(crawl.admit(now(1000), [filling.clone()])).expect("it is admitted");
    }
    store.snapshot().expect("it is taken");
    let want = Want { keys: Some((0..10).map(|host| format!("{host}.example")).collect()), ..Want::urls(10) };
    let leases = pollster::block_on(crawl.claim(now(3000), want)).expect("it is claimed").leases;
    assert_eq!(leases.len(), 10);
    settle(&crawl, now(3000), &leases, &visit(2), None);
    let expected = pages(&crawl, now(3000));
    store.abandon();
    // Of the first visits nothing is left that could be read.
    files.change("0000000001.segment", |bytes| bytes[200..].fill(0xff));
    assert_eq!(pages(&open(&files).1, now(3000)), expected);
}

/// A job takes its steps with whatever verb comes, one that brings pages among them: what it looks at are its own.
#[test]
fn pages_are_forgotten_by_steps_in_the_midst_of_visits() {
    let files = SimFiles::default();
    let (store, crawl) = open(&files);
    admit(&crawl, 3000);
    let leases = claim(&crawl, at(1), 3000);
    let (first, last) = leases.split_at(2990);
    for some in first.chunks(100) {
        settle(&crawl, at(1), some, &visit(1), None);
    }
    let forget = Steer::Urls(UrlFilter::default(), UrlsChange::ForgetPages(at(5)));
    let steered = pollster::block_on(crawl.steer(at(6), forget)).expect("it begins");
    assert!(steered.job.is_some() && steered.affected < 2990, "{steered:?}");
    for some in last.chunks(2) {
        settle(&crawl, at(6), some, &visit(2), None);
    }
    let known = pages(&crawl, at(7));
    assert_eq!(known.iter().filter(|(_, page)| page.is_some()).count(), 10);
    store.abandon();
    assert_eq!(pages(&open(&files).1, at(7)), known, "replayed");
}

/// Pages that were forgotten by age are gone from the log once it was rewritten, which they make worth it.
#[test]
fn forgotten_pages_give_their_space_back() {
    let files = SimFiles::default();
    let (store, crawl) = open(&files);
    admit(&crawl, 3000);
    let leases = claim(&crawl, at(1), 3000);
    let large = Visit { etag: Some("e".repeat(300)), ..visit(1) };
    for some in leases.chunks(50) {
        settle(&crawl, at(1), some, &large, None);
    }
    let needed = |crawl: &Frontier| {
        pollster::block_on(crawl.stats(at(9))).expect("it counts").disk.expect("it has files").needed_bytes
    };
    let before = needed(&crawl);
    store.snapshot().expect("it is taken");
    let all = UrlFilter::default();
    let forget = Steer::Urls(all, UrlsChange::ForgetPages(at(5)));
    pollster::block_on(crawl.steer(at(9), forget)).expect("it begins");
    let is_done = |_: &i32| pages(&crawl, at(9)).iter().all(|(_, page)| page.is_none());
    assert!((0..100).find(is_done).is_some(), "it comes to its end");
    let after = needed(&crawl);
    assert!(after < before / 3, "{before} bytes before, {after} after");
    let rewritten = store.rewrite(Rewrite::Unfit).expect("it is rewritten");
    assert!(rewritten.urls > 0 && rewritten.bytes / rewritten.urls < 150, "{rewritten:?}");
    store.abandon();
    let (store, crawl) = open(&files);
    let known = pages(&crawl, at(9));
    assert!(known.len() == 3000 && known.iter().all(|(_, page)| page.is_none()));
    store.close().expect("it closes");
    let files: Arc<dyn Files> = Arc::new(files);
    assert_eq!(verify_on(&files, &mut |_| {}).expect("it can be verified").damages, []);
}
