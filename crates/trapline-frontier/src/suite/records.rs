//! Records: what one crawl remembers, restored in another.

use std::sync::Arc;

use trapline_core::{Candidate, Request, Terms, Timestamp};

use super::Harness;
use super::trial::{START, Trial, at, pages, secs};
use super::workload::Workload;
use crate::record::{CrawlRecord, QueueRecord, Record, UrlRecord, UrlStanding};
use crate::report::{QueueState, UrlState};
use crate::store::ErrorKind;
use crate::verbs::{Answer, CrawlChange, NoteWrite, Outcome, QueueChange, Settlement};

/// Settings under which queues change places often.
const SETTINGS: &str = "lease=8s delay=2s balance_replenish=4";

/// What a record is once it was restored: leases have expired, which may have ended a session.
fn restored(mut record: Record, now: Timestamp) -> Record {
    match &mut record {
        Record::Url(url) if url.standing == UrlStanding::Leased => url.standing = UrlStanding::Returned(now),
        Record::Queue(queue) => queue.active = false,
        _ => {}
    }
    record
}

/// In an order that does not depend on where leased URLs, and their queues, stand.
fn sorted(records: Vec<Record>) -> Vec<Record> {
    let mut records: Vec<_> = records
        .into_iter()
        .map(|record| {
            let place = match &record {
                Record::Url(url) => format!("{:?} {:?}", url.identity, url),
                record => format!("~{record:?}"),
            };
            (place, record)
        })
        .collect();
    records.sort_by(|a, b| a.0.cmp(&b.0));
    records.into_iter().map(|(_, record)| record).collect()
}

/// A crawl after many verbs, and a second one on the same store into which everything of it was restored.
fn pair<'h, H: Harness>(
    harness: &'h H,
    store: &Arc<dyn super::Store>,
    seed: u64,
    release: bool,
) -> (Trial<'h, H>, Trial<'h, H>, Timestamp) {
    let settings = format!("{SETTINGS} order={}", ["fifo", "lifo", "date"][seed as usize % 3]);
    let settings = format!("{settings} hold_queues={}", seed.is_multiple_of(2));
    let names = [format!("first {seed}"), format!("second {seed}")];
    let first = Trial::named(harness, store.clone(), &names[0], 1 + seed as u32 % 3, &settings);
    let mut work = Workload::new(seed);
    for _ in 0..200 {
        work.step(&first);
    }
    let now = work.now;
    first.finish_jobs(now);
    if release {
        for lease in first.live(now, 1000) {
            first.settle_one(now, Settlement::new(lease.id, Outcome::Release));
        }
    }
    // Settings were steered as well.
    let report = first.report(now);
    let second = Trial::named(harness, store.clone(), &names[1], report.partitions, "");
    second.steer_crawl(START, CrawlChange::Delete);
    let new = crate::verbs::NewCrawl {
        key: report.key,
        partitions: report.partitions,
        settings: report.settings.clone(),
    };
    second.steer_crawl(now, CrawlChange::Create(new));
    let records = first.records(now, 1000);
    for part in records.chunks(7) {
        assert_eq!(second.restore(now, part), part.len() as u64, "seed {seed}: all of it is new");
    }
    (first, second, now)
}

/// Every page size finds the same, and what was restored is told as it was.
pub fn records_restored_elsewhere_are_the_same<H: Harness>(mut harness: H) {
    let store = harness.open();
    for seed in 0..12 {
        let (first, second, now) = pair(&harness, &store, seed, false);
        let records = first.records(now, 1000);
        for limit in [1, 2, 7] {
            assert_eq!(first.records(now, limit), records, "seed {seed}, pages of {limit}");
        }
        let as_restored =
            |records: Vec<Record>| sorted(records.into_iter().map(|record| restored(record, now)).collect());
        let (expected, again) = (as_restored(records), as_restored(second.records(now, 3)));
        for (again, expected) in again.iter().zip(&expected) {
            assert_eq!(again, expected, "seed {seed}");
        }
        assert_eq!(again.len(), expected.len(), "seed {seed}");
    }
}

/// Claims of a crawl and of its copy get the same, at the same times.
pub fn a_restored_crawl_goes_on_alike<H: Harness>(mut harness: H) {
    let store = harness.open();
    for seed in 0..24 {
        let (first, second, now) = pair(&harness, &store, seed, true);
        for (again, record) in second.records(now, 1000).iter().zip(first.records(now, 1000)) {
            assert_eq!(*again, record, "seed {seed}: nothing is leased");
        }
        let mut now = now;
        let mut claimed = 0;
        for round in 0..400 {
            now = now + std::time::Duration::from_millis(137);
            let [one, two] = [&first, &second].map(|trial| trial.leases(now, 1));
            let told = |leases: &[crate::verbs::Lease]| {
                leases
                    .iter()
                    .map(|lease| {
                        (
                            lease.request.url.clone(),
                            lease.cost,
                            lease.delivery,
                            lease.retries,
                            lease.page.clone(),
                        )
                    })
                    .collect::<Vec<_>>()
            };
            assert_eq!(told(&two), told(&one), "seed {seed}, round {round}");
            for (trial, lease) in [(&first, one.first()), (&second, two.first())] {
                let Some(lease) = lease else { continue };
                claimed += 1;
                let outcome = match round % 5 {
                    0 => Outcome::Retry { at: now + secs(3) },
                    1 => Outcome::Release,
                    2 => Outcome::Dead { reason: "enough".to_owned() },
                    _ => Outcome::done(),
                };
                assert_ne!(trial.end(now, lease, outcome), Answer::Stale);
            }
        }
        assert!(claimed > 0 || first.claim(now, 1).next.is_none(), "seed {seed}");
        let queues = |trial: &Trial<'_, H>| {
            let mut queues = trial.queues(now, None, 1000);
            queues.sort_by(|a, b| a.key.cmp(&b.key));
            queues
        };
        assert_eq!(queues(&second), queues(&first), "seed {seed}");
    }
}

/// Restored twice, nothing happens the second time; and what a crawl has, it keeps.
pub fn what_is_known_is_not_restored<H: Harness>(mut harness: H) {
    let store = harness.open();
    let first = Trial::named(&harness, store.clone(), "first", 1, "delay=0");
    first.add(START, &pages("a", 3));
    let lease = first.one(START);
    first.dead(START, &lease, "410");
    let records = first.records(START, 9);
    let second = Trial::named(&harness, store, "second", 1, "delay=0");
    second.add(START, &pages("a", 1));
    let urls: Vec<_> = records.iter().filter(|record| matches!(record, Record::Url(_))).cloned().collect();
    assert_eq!(second.restore(START, &urls), 2, "one of three was known");
    assert_eq!(second.restore(START, &urls), 0);
    assert_eq!(
        second.state(START, "http://a.example/1"),
        UrlState::Pending,
        "not dead, as in the first crawl"
    );
    assert_eq!(second.urls(START, 1), ["http://a.example/1"]);
}

/// A URL may have several entries through `dont_filter`: all are restored, and once only.
pub fn entries_of_one_url_are_all_restored<H: Harness>(mut harness: H) {
    let store = harness.open();
    let first = Trial::named(&harness, store.clone(), "first", 1, "delay=0 concurrency=0");
    let again = || first.candidate(Request { dont_filter: true, ..Request::get("http://a.example/1") });
    first.add(START, &pages("a", 1));
    let lease = first.one(START);
    first.done(START, &lease);
    first.add_candidates(START, &[again(), again()]);
    let records = first.records(START, 2);
    let second = Trial::named(&harness, store, "second", 1, "delay=0 concurrency=0");
    second.restore(START, &records);
    second.restore(START, &records);
    assert_eq!(second.stats(START).urls, first.stats(START).urls);
    assert_eq!(second.leases(START, 9).len(), 2);
}

/// Its lease is the other crawl's. It goes first in its class, and has not been delivered once more.
pub fn a_leased_url_is_restored_as_pending<H: Harness>(mut harness: H) {
    let store = harness.open();
    let first = Trial::named(&harness, store.clone(), "first", 1, "delay=0");
    first.add(START, &pages("a", 2));
    let lease = first.one(START);
    let second = Trial::named(&harness, store, "second", 1, "delay=0");
    second.restore(START, &first.records(START, 9));
    let again = second.one(START);
    assert_eq!((&*again.request.url, again.delivery), ("http://a.example/1", 1));
    assert_ne!(again.id, lease.id);
    first.done(START, &lease);
    second.done(START, &again);
}

/// A queue that was served here, or has terms, goes its own way.
pub fn a_queue_in_use_is_not_restored<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    let record = |key: &str| {
        let steered = Terms { precedence: Some(1), ..Terms::default() };
        Record::Queue(Box::new(QueueRecord {
            key: key.into(),
            steered,
            spent: 7,
            grants: 7,
            ..QueueRecord::default()
        }))
    };
    for host in ["a", "b", "c"] {
        trial.add(START, &pages(host, 2));
    }
    trial.one(START);
    trial.terms(START, "b.example", Terms { delay: Some(secs(9)), ..Terms::default() });
    let restored =
        ["a", "b", "c", "d"].map(|host| trial.restore(START, &[record(&format!("{host}.example"))]));
    assert_eq!(restored, [0, 0, 1, 1]);
    let told = |key: &str| (trial.queue(START, key).precedence, trial.queue(START, key).spent);
    assert_eq!([told("a.example"), told("b.example")], [(3, 1), (3, 0)]);
    assert_eq!([told("c.example"), told("d.example")], [(1, 7), (1, 7)]);
    trial.steer_queue(START, "c.example", QueueChange::Retire);
    assert_eq!(trial.restore(START, &[record("c.example")]), 0);
    assert_eq!(trial.queue(START, "c.example").state, QueueState::Retired);
}

/// What was restored is there after opening the store again.
pub fn a_restored_crawl_survives<H: Harness>(mut harness: H) {
    for seed in 0..2 {
        let store = harness.open();
        let (first, second, now) = pair(&harness, &store, seed, false);
        let name = second.frontier.crawl().to_owned();
        let records = second.records(now, 1000);
        drop((first, second, store));
        let Some(store) = harness.reopen(seed % 2 == 1) else {
            eprintln!("skipped: this store keeps nothing");
            return;
        };
        let trial = Trial::named(&harness, store, &name, 1, "");
        assert_eq!(trial.records(now, 1000), records, "seed {seed}");
    }
}

/// What cannot be a record is refused as a whole; extremes are kept as they are; a crawl that is over takes nothing.
pub fn restoring_nonsense_is_refused_or_harmless<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    let url = |candidate: Candidate, standing| {
        Record::Url(Box::new(UrlRecord {
            request: candidate.request,
            identity: candidate.identity,
            key: candidate.key,
            class: 255,
            cost: u32::MAX,
            standing,
            page: None,
            visits: u32::MAX,
            retries: u32::MAX,
            expiries: u32::MAX,
            entries: u32::MAX,
        }))
    };
    let good = url(trial.get("http://a.example/1"), UrlStanding::Pending(None));
    let no_key = Candidate { key: "".into(), ..trial.get("http://a.example/2") };
    let long_key = Candidate { key: "x".repeat(9_999).into(), ..trial.get("http://a.example/3") };
    let long_url = Request::get(format!("http://a.example/{}", "x".repeat(99_999)));
    let long_url = Candidate { request: Arc::new(long_url), ..trial.get("http://a.example/4") };
    for bad in [no_key, long_key, long_url] {
        let records = vec![good.clone(), url(bad, UrlStanding::Pending(None))];
        let steer = crate::verbs::Steer::Crawl(CrawlChange::Restore(records));
        let error = trial.wait(trial.frontier.steer(START, steer)).expect_err("it is no record");
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains("record 1 has a key of"), "{error}");
    }
    assert_eq!(trial.stats(START).urls, [0; 6]);

    let standings = [
        UrlStanding::Pending(Some(Timestamp::MAX)),
        UrlStanding::Returned(Timestamp::MAX),
        UrlStanding::Retry(Timestamp::MAX),
        UrlStanding::Scheduled(Timestamp::MAX),
        UrlStanding::Done(Some(Timestamp::MAX)),
        UrlStanding::Dead { reason: "\0".to_owned(), at: Timestamp::MAX },
    ];
    for (number, standing) in standings.into_iter().enumerate() {
        trial.restore(START, &[url(trial.get(&format!("http://b.example/{number}")), standing)]);
    }
    trial.restore(
        START,
        &[
            good,
            Record::Queue(Box::new(QueueRecord {
                key: "b.example".into(),
                active: true,
                balance: i64::MIN,
                spent: u64::MAX,
                grants: u32::MAX,
                charged: u64::MAX,
                errors: u64::MAX,
                next_fetch: Some(Timestamp::MAX),
                group_next_fetch: Some(Timestamp::MAX),
                ..QueueRecord::default()
            })),
            Record::Note(NoteWrite { key: String::new(), value: Some(Vec::new()), expires: Some(START) }),
            Record::Crawl(CrawlRecord {
                started: Timestamp::MAX,
                fetched: u64::MAX / 2,
                bytes: u64::MAX,
                spent: u64::MAX,
                granted: u64::MAX / 2,
                expired: u64::MAX / 2,
                turn: u32::MAX,
            }),
        ],
    );
    assert_eq!(trial.urls(at(1), 9), ["http://a.example/1"]);
    // However counts are kept, there is room to count on.
    for page in 0..100 {
        trial.admit_url(at(1), &format!("http://c{page}.example/"));
        assert_eq!(trial.urls(at(1), 9).len(), 1);
    }
    trial.steer_crawl(at(1), CrawlChange::Finish("enough".to_owned()));
    let steer = crate::verbs::Steer::Crawl(CrawlChange::Restore(Vec::new()));
    let error = trial.wait(trial.frontier.steer(at(1), steer)).expect_err("the crawl is over");
    assert!(
        error.to_string().ends_with("it is finished and takes nothing more; choose another crawl"),
        "{error}"
    );
}
