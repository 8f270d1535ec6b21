//! Counts are kept as things change, on every store; here they are compared with counting.

use std::collections::BTreeMap;

use super::Harness;
use super::trial::{START, Trial, at, pages, visit};
use super::workload::Workload;
use crate::report::{QueueReport, QueueState, UrlState};
use crate::verbs::{Answer, Outcome};

/// Compares every count of a crawl with what can be listed.
fn compare<H: Harness>(trial: &Trial<'_, H>, now: trapline_core::Timestamp, told: &str) {
    let stats = trial.stats(now);
    let urls = trial.known(now, None, None, None, 1000);
    let queues = trial.queues(now, None, 1000);
    for state in UrlState::ALL {
        let listed = urls.iter().filter(|url| url.state == state).count() as u64;
        assert_eq!(stats.urls_in(state), listed, "{told}: URLs {state}");
    }
    for state in QueueState::ALL {
        let listed = queues.iter().filter(|queue| queue.state == state).count() as u64;
        assert_eq!(stats.queues_in(state), listed, "{told}: queues {state}");
    }
    assert_eq!(stats.queues.iter().sum::<u64>(), queues.len() as u64, "{told}: a queue has one state");
    assert_eq!(stats.urls_in(UrlState::Leased), trial.live(now, 1000).len() as u64, "{told}: leases");
    assert_eq!(
        stats.urls_in(UrlState::Dead),
        trial.dead_letters(now, 1000).len() as u64,
        "{told}: dead letters"
    );
    let waiting = urls.iter().filter(|url| url.state == UrlState::Done && url.due.is_some()).count();
    assert_eq!(stats.visits_waiting, waiting as u64, "{told}: visits");

    let mut by_queue: BTreeMap<_, BTreeMap<UrlState, u64>> = BTreeMap::new();
    for url in &urls {
        let key = url.key.clone().unwrap_or_else(|| panic!("{told}: a URL without a queue"));
        *by_queue.entry(key).or_default().entry(url.state).or_default() += 1;
    }
    for queue in &queues {
        let QueueReport { key, pending, leased, done, disregarded, dead, .. } = queue;
        let listed =
            |state| by_queue.get(key).and_then(|states| states.get(&state)).copied().unwrap_or_default();
        let counted = [*pending, *leased, *done, *disregarded, *dead];
        use UrlState::{Dead, Disregarded, Done, Leased, Pending};
        assert_eq!(counted, [Pending, Leased, Done, Disregarded, Dead].map(listed), "{told}: {key}");
        assert!(!queue.why.is_empty(), "{told}: {key} has no reason");
    }
}

/// Whatever is done to a crawl, its counts are what its lists have.
pub fn counts_are_what_lists_have<H: Harness>(mut harness: H) {
    let store = harness.open();
    for seed in 0..6 {
        let partitions = if seed % 2 == 0 { 1 } else { 16 };
        let name = format!("seed {seed}");
        let settings = "lease=8s delay=2s balance_replenish=4 max_deliveries=3";
        let trial = Trial::named(&harness, store.clone(), &name, partitions, settings);
        let mut work = Workload::new(seed);
        for step in 0..300 {
            work.step(&trial);
            if step % 20 == 0 || step > 280 {
                compare(&trial, work.now, &format!("seed {seed}, after {step} steps"));
            }
        }
    }
}

/// What happened since the beginning is counted once for each time it happened.
pub fn fetches_bytes_and_grants_are_counted<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0 lease=10s error_penalty=5");
    trial.add(START, &pages("a", 1));
    let lease = trial.one(START);
    trial.end(START, &lease, Outcome::Release);
    trial.one(START);
    let lease = trial.one(at(10));
    trial.end(at(10), &lease, Outcome::Retry { at: at(10) });
    for _ in 0..2 {
        let lease = trial.one(at(10));
        let visit = crate::verbs::Visit { bytes: 1000, ..visit(b"x") };
        let outcome = Outcome::Done { visit, next: Some(at(10)) };
        assert_eq!(trial.end(at(10), &lease, outcome), Answer::Done);
    }
    let stats = trial.stats(at(10));
    assert_eq!((stats.fetched, stats.bytes, stats.granted, stats.expired), (2, 2000, 5, 1));
    assert_eq!(stats.spent, 4 + 5, "four that were not released, and a penalty");
    let queue = trial.queue(at(10), "a.example");
    assert_eq!((queue.spent, queue.errors), (9, 1));
}

/// An empty crawl counts nothing.
pub fn an_empty_crawl_counts_nothing<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "");
    let stats = trial.stats(START);
    assert_eq!((stats.queues, stats.urls), ([0; 7], [0; 6]));
    assert_eq!((stats.fetched, stats.bytes, stats.spent, stats.granted, stats.expired), (0, 0, 0, 0, 0));
    compare(&trial, START, "empty");
}
