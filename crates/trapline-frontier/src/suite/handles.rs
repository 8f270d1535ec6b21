//! Several handles of one crawl on several threads, on every store.
//!
//! Threads meet as the scheduler lets them, so these tests prove nothing by passing once; they hold what must hold
//! under every meeting.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Barrier, Mutex, PoisonError};

use trapline_core::Request;

use super::Harness;
use super::trial::{START, Trial, pages};
use super::workload::Dice;
use crate::report::UrlState;
use crate::verbs::{Admission, Answer, Outcome, Settlement, Want};

const THREADS: u64 = 4;

/// Runs the same on several threads, which start together, and answers what each came to.
fn together<'h, H: Harness, T: Send>(
    trial: &Trial<'h, H>,
    work: impl Fn(u64, &Trial<'h, H>) -> T + Sync,
) -> Vec<T> {
    let barrier = Barrier::new(THREADS as usize);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let (trial, work, barrier) = (trial.clone(), &work, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    work(number, &trial)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// The same URLs from all sides: each is new to exactly one.
pub fn a_url_is_added_to_exactly_one<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::named(&harness, store, "suite", 8, "");
    let urls: Vec<_> = ["a", "b", "c", "d", "e"].iter().flat_map(|host| pages(host, 100)).collect();
    let added = together(&trial, |number, trial| {
        let mut dice = Dice::new(number);
        let mut added = Vec::new();
        for batch in urls.chunks(20) {
            let mut batch = batch.to_vec();
            batch.rotate_left(dice.below(20) as usize);
            let requests: Vec<_> = batch.iter().map(Request::get).collect();
            let answers = trial.wait(trial.frontier.admit(START, requests)).expect("admit");
            for (url, answer) in batch.into_iter().zip(answers) {
                match answer {
                    Admission::Added => added.push(url),
                    answer => assert_eq!(answer, Admission::Known, "{url}"),
                }
            }
        }
        added
    });
    let mut all: Vec<_> = added.into_iter().flatten().collect();
    all.sort();
    let mut expected = urls;
    expected.sort();
    assert_eq!(all, expected);
    assert_eq!(trial.stats(START).urls_in(UrlState::Pending), 500);
}

/// Everything is handed out exactly once, and the counts add up.
pub fn a_url_is_handed_out_to_exactly_one<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::named(&harness, store, "suite", 8, "delay=0 concurrency=0");
    for host in ["a", "b", "c", "d", "e"] {
        trial.add(START, &pages(host, 80));
    }
    let fetched = together(&trial, |number, trial| {
        let mut fetched = Vec::new();
        loop {
            let leases = trial.leases(START, 1 + number as usize * 3);
            if leases.is_empty() {
                return fetched;
            }
            let done = |lease: &crate::verbs::Lease| Settlement::new(lease.id, Outcome::done());
            let answers = trial.settle(START, leases.iter().map(done).collect());
            assert!(answers.iter().all(|settled| settled.answer == Answer::Done));
            fetched.extend(leases);
        }
    });
    let fetched: Vec<_> = fetched.into_iter().flatten().collect();
    let urls: BTreeSet<_> = fetched.iter().map(|lease| lease.request.url.clone()).collect();
    let ids: BTreeSet<_> = fetched.iter().map(|lease| lease.id).collect();
    assert_eq!((fetched.len(), urls.len(), ids.len()), (400, 400, 400));
    let stats = trial.stats(START);
    assert_eq!((stats.fetched, stats.granted, stats.spent), (400, 400, 400));
    assert_eq!(stats.urls_in(UrlState::Done), 400);
}

/// What workers hold at this moment, all together.
#[derive(Default)]
struct Held {
    urls: BTreeSet<String>,
    by_key: BTreeMap<String, usize>,
}

/// No URL is leased twice at a time and no queue beyond its concurrency, while URLs come and go.
pub fn concurrency_holds_across_handles<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::named(&harness, store, "suite", 8, "delay=0 concurrency=2");
    for host in ["a", "b", "c"] {
        trial.add(START, &pages(host, 30));
    }
    let held = Mutex::new(Held::default());
    let held = || held.lock().unwrap_or_else(PoisonError::into_inner);
    let done = together(&trial, |number, trial| {
        let mut dice = Dice::new(number);
        let mut done = 0;
        for _ in 0..150 {
            let leases = trial.leases(START, Want::urls(1 + dice.below(3) as usize));
            for lease in &leases {
                let mut held = held();
                assert!(
                    held.urls.insert(lease.request.url.clone()),
                    "{} was leased twice",
                    lease.request.url
                );
                let of_queue = held.by_key.entry(lease.key.to_string()).or_default();
                *of_queue += 1;
                assert!(*of_queue <= 2, "{} leases of {}", of_queue, lease.key);
            }
            for lease in &leases {
                {
                    // Before the settlement: once it is settled, somebody else may hold it.
                    let mut held = held();
                    held.urls.remove(&lease.request.url);
                    *held.by_key.entry(lease.key.to_string()).or_default() -= 1;
                }
                let outcome = if dice.below(3) == 0 { Outcome::done() } else { Outcome::Release };
                done += u64::from(trial.end(START, lease, outcome) == Answer::Done);
            }
        }
        done
    });
    let stats = trial.stats(START);
    assert_eq!(stats.fetched, done.iter().sum::<u64>());
    assert_eq!(stats.urls.iter().sum::<u64>(), 90);
    assert_eq!(stats.urls_in(UrlState::Leased), 0);
}

/// Of many who settle one lease, exactly one does.
pub fn a_lease_is_settled_by_exactly_one<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0 concurrency=0");
    trial.add(START, &pages("a", 50));
    let leases = trial.leases(START, 50);
    let done = together(&trial, |_, trial| {
        let ends = |lease| trial.end(START, lease, Outcome::done()) == Answer::Done;
        leases.iter().filter(|lease| ends(lease)).count()
    });
    assert_eq!(done.iter().sum::<usize>(), 50);
    assert_eq!(trial.stats(START).fetched, 50);
}

/// Links that many parents share are new to exactly one of them.
pub fn a_link_is_added_by_exactly_one_parent<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::named(&harness, store, "suite", 8, "delay=0 concurrency=0");
    trial.add(START, &pages("a", 40));
    let links: Vec<_> = pages("b", 30).iter().chain(&pages("c", 30)).map(|url| trial.get(url)).collect();
    let added = together(&trial, |_, trial| {
        let mut added = 0;
        let mine = |lease: &crate::verbs::Lease| lease.request.url.starts_with("http://a.");
        for _ in 0..10 {
            for lease in
                trial.leases(START, Want { keys: Some(vec!["a.example".to_owned()]), ..Want::urls(1) })
            {
                assert!(mine(&lease));
                let mut settlement = Settlement::new(lease.id, Outcome::done());
                settlement.links = links.clone();
                let settled = trial.settle_one(START, settlement);
                added += settled.links.iter().filter(|link| **link == Admission::Added).count();
            }
        }
        added
    });
    assert_eq!(added.iter().sum::<usize>(), 60);
    assert_eq!(trial.stats(START).urls_in(UrlState::Pending), 60);
}

/// Whoever opens a crawl first makes it; all others hold the same one.
pub fn a_crawl_is_created_by_exactly_one<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::named(&harness, store.clone(), "another", 1, "");
    let keys = together(&trial, |number, trial| {
        let key = trapline_core::IdentityKey::from_seed(number);
        let builder = crate::frontier::Frontier::builder("contested").key(key);
        let frontier = trial.wait(builder.open_shared(store.clone(), START)).expect("open");
        let report = trial.wait(frontier.report(START)).expect("report");
        trial.wait(frontier.admit(START, [Request::get("http://a.example/1")])).expect("admit");
        *report.key.as_bytes()
    });
    assert!(keys.iter().all(|key| *key == keys[0]), "one key for all");
    let stats = harness.block_on(store.stats("contested", START)).expect("stats");
    assert_eq!(stats.urls_in(UrlState::Pending), 1);
}
