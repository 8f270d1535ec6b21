//! Time is an argument on every store: it never goes back, and whatever is due has happened before a verb looks.

use trapline_core::Timestamp;

use super::Harness;
use super::trial::{START, Trial, at, pages, secs};
use crate::report::{QueueState, Stats, UrlState};
use crate::verbs::{Answer, Outcome, QueueChange};

/// An earlier `now` counts as the latest one seen.
pub fn an_earlier_now_counts_as_the_latest_seen<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "lease=60s delay=10s");
    trial.add(at(100), &pages("a", 2));
    let lease = trial.one(at(50));
    assert_eq!(lease.deadline, at(160));
    assert_eq!(trial.live(START, 9)[0].granted, at(100));
    trial.done(at(1), &lease);
    assert_eq!(trial.queue(START, "a.example").next_fetch, Some(at(110)));
    trial.one(at(110));
    assert_eq!(trial.queue(at(3), "a.example").state, QueueState::Busy);
}

/// Also a scan and a count move time on, for all that follow.
pub fn reading_moves_time_on<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "lease=60s");
    trial.add(START, &pages("a", 1));
    let lease = trial.one(START);
    trial.stats(at(60));
    assert_eq!(trial.end(at(1), &lease, Outcome::done()), Answer::Stale);
    let lease = trial.one(at(61));
    trial.report(lease.deadline);
    assert_eq!(trial.end(at(62), &lease, Outcome::done()), Answer::Stale);
}

/// Each verb first lets happen what is due: here an expiry, seen by each of them.
pub fn every_verb_lets_happen_what_is_due<H: Harness>(mut harness: H) {
    let store = harness.open();
    let due = |name: &str| {
        let trial = Trial::named(&harness, store.clone(), name, 1, "lease=10s delay=0 max_queue_length=1");
        trial.add(START, &pages("a", 1));
        let lease = trial.one(START);
        (trial, lease)
    };
    let refused = crate::verbs::Admission::Refused(crate::verbs::Refusal::QueueFull);
    let (trial, _) = due("admit");
    assert_eq!(trial.admit_url(at(10), "http://a.example/2"), refused, "the first is pending again");
    let (trial, _) = due("claim");
    assert_eq!(trial.one(at(10)).delivery, 2);
    let (trial, lease) = due("settle");
    assert_eq!(trial.end(at(10), &lease, Outcome::done()), Answer::Stale);
    let (trial, _) = due("steer");
    assert_eq!(trial.steer_queue(at(10), "a.example", QueueChange::Purge(None)).affected, 1);
    let (trial, _) = due("scan");
    assert_eq!(trial.state(at(10), "http://a.example/1"), UrlState::Pending);
    let (trial, _) = due("stats");
    assert_eq!(trial.stats(at(10)).expired, 1);
}

/// A crawl's time is its own.
pub fn crawls_do_not_share_their_time<H: Harness>(mut harness: H) {
    let store = harness.open();
    let [late, early] = ["late", "early"].map(|name| Trial::named(&harness, store.clone(), name, 1, ""));
    late.add(at(1000), &pages("a", 1));
    early.add(at(1), &pages("a", 1));
    assert_eq!(early.one(at(2)).deadline, at(62));
}

/// A long silence lets everything happen in the order of its times, as if somebody had looked.
pub fn a_long_silence_is_caught_up_in_order<H: Harness>(mut harness: H) {
    let stores = [harness.open(), harness.open()];
    let [asleep, awake] = stores.map(|store| {
        let trial = Trial::new(&harness, store, "lease=20s delay=1s concurrency=3 max_deliveries=2");
        for host in ["a", "b", "c"] {
            trial.add(START, &pages(host, 4));
        }
        let leases = trial.leases(START, 9);
        for (number, lease) in (0..).zip(&leases) {
            let outcome = match number % 3 {
                0 => Outcome::Retry { at: at(3 + number) },
                1 => Outcome::Done { visit: super::trial::visit(b"x"), next: Some(at(30 - number)) },
                _ => Outcome::Renew { lease: secs(5 + number) },
            };
            trial.end(START, lease, outcome);
        }
        trial.steer_queue(START, "b.example", QueueChange::Block(at(25)));
        trial
    });
    for millis in (0..60_000).step_by(500) {
        awake.stats(Timestamp::from_millis(millis));
    }
    for now in [60, 90, 120] {
        let [one, other] = [&asleep, &awake].map(|trial| {
            let leases = trial.leases(at(now), 100);
            leases.iter().map(|lease| (lease.request.url.clone(), lease.delivery)).collect::<Vec<_>>()
        });
        assert_eq!(one, other, "at {now}s");
        // How long it took to open them is not the crawls'.
        let counts = [&asleep, &awake].map(|trial| Stats {
            recovered: None,
            disk: None,
            pressure: None,
            ..trial.stats(at(now))
        });
        assert_eq!(counts[0], counts[1], "at {now}s");
        assert_eq!(asleep.queues(at(now), None, 9), awake.queues(at(now), None, 9), "at {now}s");
    }
}
