//! What a claim gets from every store: its bounds, its order, its turns, and when to ask again.

use trapline_core::{Candidate, Statement, Terms, Timestamp, partition_of};

use super::Harness;
use super::trial::{START, Trial, at, keys, pages, secs};
use super::workload::Dice;
use crate::report::Stats;
use crate::verbs::{CrawlChange, Lease, Outcome, QueueChange, Settlement, Want};

/// Three queues, a to c, with four URLs each, of which any number may be leased at a time.
fn three_queues<'h, H: Harness>(harness: &'h H, store: super::Arc<dyn super::Store>) -> Trial<'h, H> {
    let trial = Trial::new(harness, store, "concurrency=0 delay=0");
    for host in ["a", "b", "c"] {
        trial.add(START, &pages(host, 4));
    }
    trial
}

/// How many leases each of a, b and c gave.
fn shares(leases: &[Lease]) -> [usize; 3] {
    ["a.example", "b.example", "c.example"]
        .map(|key| leases.iter().filter(|lease| &*lease.key == key).count())
}

/// A lease says everything a worker needs.
pub fn a_lease_names_crawl_queue_and_deadline<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::named(&harness, store, "named", 16, "lease=45s");
    trial.add(at(1), &["http://a.example/1"]);
    let lease = trial.one(at(2));
    assert_eq!((&*lease.crawl, &*lease.key), ("named", "a.example"));
    assert_eq!((lease.deadline, lease.delivery, lease.cost), (at(47), 1, 1));
    assert_eq!(lease.page, None);
    assert_eq!(lease.identity, trial.get("http://a.example/1").identity);
}

/// `queues` bounds from how many queues a claim takes.
pub fn queues_bounds_how_many_supply<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = three_queues(&harness, store);
    let leases = trial.leases(START, Want { queues: Some(2), ..Want::urls(100) });
    assert_eq!(shares(&leases), [4, 4, 0]);
}

/// `per_queue` bounds how much one queue gives.
pub fn per_queue_bounds_what_each_supplies<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = three_queues(&harness, store);
    let leases = trial.leases(START, Want { per_queue: Some(3), ..Want::urls(100) });
    assert_eq!(shares(&leases), [3, 3, 3]);
    assert_eq!(shares(&trial.leases(START, 100)), [1, 1, 1], "a bound holds for its claim only");
}

/// Both bounds hold together, and the number wanted with them.
pub fn bounds_hold_together<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = three_queues(&harness, store);
    let want = Want { queues: Some(2), per_queue: Some(3), ..Want::urls(5) };
    assert_eq!(shares(&trial.leases(START, want)), [3, 2, 0]);
}

/// `min_queues` spreads a claim over so many queues.
pub fn min_queues_spreads_a_claim<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = three_queues(&harness, store);
    let leases = trial.leases(START, Want { min_queues: Some(3), ..Want::urls(6) });
    assert_eq!(shares(&leases), [2, 2, 2]);
}

/// Where there are not so many queues, the claim is filled up from those there are.
pub fn min_queues_fills_up_from_what_there_is<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = three_queues(&harness, store);
    let leases = trial.leases(START, Want { min_queues: Some(6), ..Want::urls(9) });
    assert_eq!(leases.len(), 9);
    assert_eq!(shares(&leases[..3]), [1, 1, 1], "first spread, then filled up");
    let rest = trial.leases(START, Want { min_queues: Some(100), ..Want::urls(100) });
    assert_eq!(rest.len(), 3, "a wish is no bound");
}

/// `keys` asks the queues named and no other.
pub fn keys_asks_only_the_queues_named<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = three_queues(&harness, store);
    let only = |names: &[&str]| {
        let keys = Some(names.iter().map(|name| (*name).to_owned()).collect());
        shares(&trial.leases(START, Want { keys, ..Want::urls(3) }))
    };
    assert_eq!(only(&[]), [0, 0, 0], "no queue is named");
    assert_eq!(only(&["unknown.example", "A.EXAMPLE"]), [0, 0, 0]);
    assert_eq!(only(&["c.example"]), [0, 0, 3]);
    assert_eq!(only(&["b.example", "b.example", "unknown.example"]), [0, 3, 0]);
    assert_eq!(only(&["c.example", "b.example"]), [0, 1, 1]);
}

/// `except` passes over the queues named, also those that `keys` names.
pub fn except_passes_over_the_queues_named<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = three_queues(&harness, store);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let want = Want { except: names(&["a.example", "unknown.example"]), ..Want::urls(100) };
    assert_eq!(shares(&trial.leases(START, want)), [0, 4, 4]);
    let keys = Some(names(&["a.example"]));
    let want = Want { keys, except: names(&["a.example"]), ..Want::urls(100) };
    assert_eq!(shares(&trial.leases(START, want)), [0, 0, 0]);
    assert_eq!(shares(&trial.leases(START, 100)), [4, 0, 0]);
}

/// `partitions` asks only those; a queue's partition is the public hash of its site.
pub fn partitions_asks_only_those<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::named(&harness, store, "suite", 4, "");
    for host in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        trial.add(START, &pages(host, 1));
    }
    let queues = trial.queues(START, None, 100);
    assert!(queues.iter().all(|queue| queue.partition == partition_of(&queue.key, 4)));
    let from = |partitions: &[u32]| {
        trial.leases(START, Want { partitions: Some(partitions.to_vec()), ..Want::urls(100) })
    };
    assert_eq!(from(&[]), []);
    assert_eq!(from(&[4, u32::MAX]), []);
    for partition in [2, 0, 3, 1] {
        let expected = queues.iter().filter(|queue| queue.partition == partition).count();
        let leases = from(&[partition, partition]);
        assert_eq!(leases.len(), expected, "partition {partition}");
        assert!(leases.iter().all(|lease| partition_of(&lease.key, 4) == partition));
    }
}

/// A store with several partitions serves them in turn, however much one of them has.
pub fn partitions_take_turns<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::named(&harness, store, "suite", 2, "concurrency=0 delay=0");
    let hosts = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let of = |partition| {
        let mut hosts = hosts.iter().filter(|host| partition_of(&format!("{host}.example"), 2) == partition);
        hosts.next().unwrap_or_else(|| panic!("no host in partition {partition}"))
    };
    trial.add(START, &pages(of(0), 4));
    trial.add(START, &pages(of(1), 3));
    let served: Vec<_> = trial.leases(START, 7).iter().map(|lease| partition_of(&lease.key, 2)).collect();
    let mut turns = served[..6].to_vec();
    turns.dedup();
    assert_eq!(turns.len(), 6, "{served:?}");
    assert_eq!(served[6], 0, "{served:?}");
}

/// Nothing is granted before the time a claim names, and something is then.
pub fn next_tells_when_more_will_be<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "lease=60s delay=5s");
    let nothing: Vec<Lease> = Vec::new();
    let asks_again_at = |now, expected: Timestamp| {
        let claimed = trial.claim(now, 9);
        assert_eq!((claimed.leases, claimed.next), (nothing.clone(), Some(expected)), "at {now}");
        let before = Timestamp::from_millis(expected.as_millis() - 1);
        assert_eq!(trial.claim(before, 9).leases, nothing, "just before {expected}");
        let claimed = trial.leases(expected, 9);
        assert_eq!(claimed.len(), 1, "at {expected}");
        claimed
    };
    trial.add(START, &pages("a", 2));
    let claimed = trial.claim(START, 9);
    assert_eq!((claimed.leases.len(), claimed.next), (1, Some(at(60))));
    trial.done(at(1), &claimed.leases[0]);
    let lease = &asks_again_at(at(1), at(6))[0];
    assert_eq!(trial.end(at(7), lease, Outcome::Retry { at: at(30) }), crate::verbs::Answer::Retry);
    asks_again_at(at(20), at(30));
    asks_again_at(at(30), at(90));
    trial.add(at(91), &pages("b", 1));
    trial.steer_queue(at(91), "b.example", QueueChange::Block(at(100)));
    let lease = &asks_again_at(at(91), at(100))[0];
    let visit = crate::verbs::Visit::default();
    trial.end(at(100), lease, Outcome::Done { visit, next: Some(at(120)) });
    asks_again_at(at(101), at(120));
    let later = Statement::Next(at(130));
    trial.admit_one(at(121), Candidate { statement: Some(later), ..trial.get("http://c.example/") });
    asks_again_at(at(121), at(130));
}

/// Polling when told to gets everything, however the URLs wait.
pub fn polling_when_told_to_gets_everything<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::named(&harness, store, "suite", 8, "delay=3s queue_budget=3 queue_budget_period=40s");
    for host in ["a", "b", "c", "d"] {
        trial.add(START, &pages(host, 7));
    }
    let (mut now, mut fetched) = (START, 0);
    for _ in 0..200 {
        let claimed = trial.claim(now, 2);
        for lease in &claimed.leases {
            trial.done(now, lease);
            fetched += 1;
        }
        if claimed.leases.len() == 2 {
            continue;
        }
        match claimed.next {
            Some(next) => {
                assert!(next > now, "told at {now} to ask again at {next}");
                now = next;
            }
            None => break,
        }
    }
    assert_eq!(fetched, 28);
    assert!(trial.claim(now, 1).exhausted);
}

/// Nothing is foreseen where nothing waits, and while the crawl is paused.
pub fn next_is_nothing_when_nothing_is_foreseen<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "");
    let claimed = trial.claim(START, 5);
    assert_eq!((claimed.leases.len(), claimed.next, claimed.exhausted), (0, None, true));
    trial.add(START, &pages("a", 1));
    trial.steer_queue(START, "a.example", QueueChange::Block(at(10)));
    trial.steer_crawl(START, CrawlChange::Pause);
    let claimed = trial.claim(START, 5);
    assert_eq!((claimed.leases.len(), claimed.next, claimed.exhausted), (0, None, false));
    trial.steer_crawl(START, CrawlChange::Resume);
    assert_eq!(trial.claim(START, 5).next, Some(at(10)));
    assert_eq!(trial.claim(at(10), 1).next, None, "all that was wanted was granted");
}

/// A claim of N answers what N claims of one would, in that order, whatever the queues look like.
pub fn a_claim_of_many_equals_many_claims_of_one<H: Harness>(mut harness: H) {
    let stores = [harness.open(), harness.open()];
    for seed in 0..12 {
        let partitions = if seed % 3 == 0 { 5 } else { 1 };
        let settings = format!(
            "concurrency={} delay={}s balance_replenish={} queue_budget={} hold_queues={}",
            seed % 4,
            seed % 2,
            1 + seed % 5,
            if seed % 2 == 0 { "none" } else { "6" },
            seed % 3 != 1,
        );
        let trials = stores
            .clone()
            .map(|store| Trial::named(&harness, store, &format!("seed {seed}"), partitions, &settings));
        let mut dice = Dice::new(seed);
        let mut now = START;
        for _ in 0..20 {
            let batch: Vec<_> = (0..dice.below(12))
                .map(|_| {
                    let url = format!(
                        "http://{}.example/{}",
                        ["a", "b", "c", "d", "e"][dice.below(5) as usize],
                        dice.below(1000)
                    );
                    let terms = Terms {
                        precedence: (dice.below(4) == 0).then(|| dice.below(3) as u8),
                        ..Terms::default()
                    };
                    Candidate { cost: Some(dice.below(3) as u32), terms, ..trials[0].get(&url) }
                })
                .collect();
            let count = dice.below(9) as usize;
            let bounds = match dice.below(3) {
                0 => Want {
                    keys: Some(vec!["b.example".to_owned(), "a.example".to_owned()]),
                    ..Want::default()
                },
                1 => Want { except: vec!["c.example".to_owned()], ..Want::default() },
                _ => Want::default(),
            };
            for trial in &trials {
                trial.admit(now, &batch);
            }
            let many = trials[0].leases(now, Want { urls: count, ..bounds.clone() });
            let ones: Vec<_> =
                (0..count).flat_map(|_| trials[1].leases(now, Want { urls: 1, ..bounds.clone() })).collect();
            let urls = |leases: &[Lease]| -> Vec<_> {
                leases.iter().map(|lease| lease.request.url.clone()).collect()
            };
            assert_eq!(urls(&many), urls(&ones), "seed {seed}, {settings}, {bounds:?} at {now}");
            let settled = dice.below(1 + many.len() as u64) as usize;
            for (trial, leases) in trials.iter().zip([&many, &ones]) {
                let batch = leases
                    .iter()
                    .take(settled)
                    .map(|lease| Settlement::new(lease.id, Outcome::done()))
                    .collect();
                trial.settle(now, batch);
            }
            now = now + secs(dice.below(3));
        }
    }
}

/// Zero of anything is nothing, and changes nothing.
pub fn zero_asks_for_nothing<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = three_queues(&harness, store);
    let stats = || Stats { pressure: None, ..trial.stats(START) };
    let before = stats();
    let none: Vec<Lease> = Vec::new();
    assert_eq!(trial.leases(START, 0), none);
    assert_eq!(trial.leases(START, Want { queues: Some(0), ..Want::urls(9) }), none);
    assert_eq!(trial.leases(START, Want { per_queue: Some(0), ..Want::urls(9) }), none);
    assert_eq!(stats(), before);
    assert_eq!(trial.leases(START, Want { min_queues: Some(0), ..Want::urls(9) }).len(), 9, "a wish");
}

/// Huge numbers get what there is.
pub fn more_than_there_is_gets_all_there_is<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = three_queues(&harness, store);
    let most = Some(usize::MAX);
    let want = Want { queues: most, per_queue: most, min_queues: most, ..Want::urls(usize::MAX) };
    let claimed = trial.claim(START, want);
    assert_eq!(shares(&claimed.leases), [4, 4, 4]);
    assert_eq!(claimed.next, Some(at(60)), "when the leases expire");
}

/// A claim may say for how long.
pub fn a_claim_may_ask_for_a_longer_lease<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "lease=10s delay=0");
    trial.add(START, &pages("a", 1));
    let lease = &trial.leases(START, Want { lease: Some(secs(100)), ..Want::urls(1) })[0];
    assert_eq!(lease.deadline, at(100));
    assert_eq!(trial.leases(at(99), 1), []);
    assert_eq!(trial.leases(at(100), 1).len(), 1);
}

/// Concurrency holds also inside one claim.
pub fn a_claim_never_breaks_concurrency<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "concurrency=2 delay=0");
    trial.add(START, &pages("a", 5));
    trial.add(START, &pages("b", 1));
    let first = trial.leases(START, 100);
    assert_eq!(keys(&first), ["a.example", "a.example", "b.example"]);
    assert_eq!(trial.leases(START, 100), []);
    trial.done(START, &first[0]);
    assert_eq!(trial.leases(START, 100).len(), 1);
}

/// A claim says whether there is anything left to wait for.
pub fn a_claim_tells_when_the_crawl_is_exhausted<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    trial.add(START, &pages("a", 1));
    let claimed = trial.claim(START, 5);
    assert!(!claimed.exhausted, "a lease is out: links may come");
    trial.done(START, &claimed.leases[0]);
    assert!(trial.claim(START, 1).exhausted);
    assert!(trial.report(START).exhausted);
    trial.add(START, &pages("b", 1));
    assert!(!trial.report(START).exhausted);
}
