//! What every store promises of leases: numbers that never repeat, deadlines that hold, one live lease a URL.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Harness;
use super::trial::{START, Trial, at, pages, secs};
use crate::report::UrlState;
use crate::verbs::{Answer, CrawlChange, DeadChange, DeadLetters, Outcome, Settlement, Steer, Want};

/// A lease's number is a fencing token: later ones of a URL are higher, and none comes twice in a store.
pub fn numbers_never_repeat<H: Harness>(mut harness: H) {
    let store = harness.open();
    let crawls = ["one", "two", "three"]
        .map(|name| Trial::named(&harness, store.clone(), name, 4, "lease=1s delay=0 max_deliveries=0"));
    for trial in &crawls {
        trial.add(START, &pages("a", 1));
        trial.add(START, &pages("b", 1));
    }
    let mut seen = BTreeSet::new();
    let mut latest = std::collections::BTreeMap::new();
    for second in 0..20 {
        for trial in &crawls {
            for lease in trial.leases(at(second), 9) {
                assert!(seen.insert(lease.id), "{:?} came twice", lease.id);
                let before = latest.insert((lease.crawl.clone(), lease.identity), lease.id);
                assert!(before < Some(lease.id), "{before:?} before {:?}", lease.id);
                if second % 3 == 0 {
                    trial.end(at(second), &lease, Outcome::Release);
                }
            }
        }
    }
    assert_eq!(seen.len(), 20 * 6);
}

/// Also a crawl that was deleted and made again gives no number twice.
pub fn numbers_outlive_their_crawl<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store.clone(), "");
    trial.add(START, &pages("a", 1));
    let old = trial.one(START);
    trial.steer_crawl(START, CrawlChange::Delete);
    let trial = Trial::new(&harness, store, "");
    trial.add(START, &pages("a", 1));
    let new = trial.one(START);
    assert!(new.id > old.id);
    assert_eq!(trial.end(START, &old, Outcome::done()), Answer::Stale);
    trial.done(START, &new);
}

/// A lease has expired when now is its deadline: until then it can be settled, from then on it is stale.
pub fn a_lease_expires_at_its_deadline<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "lease=10s delay=0");
    trial.add(START, &pages("a", 2));
    let first = trial.one(START);
    let before = trapline_core::Timestamp::from_millis(9_999);
    trial.done(before, &first);
    let second = trial.one(before);
    assert_eq!(trial.state(at(19), "http://a.example/2"), UrlState::Leased);
    let deadline = second.deadline;
    assert_eq!(trial.end(deadline, &second, Outcome::done()), Answer::Stale);
    assert_eq!(trial.state(deadline, "http://a.example/2"), UrlState::Pending);
    assert_eq!(trial.stats(deadline).expired, 1);
}

/// Each expiry counts a delivery more; too many make a dead letter that says so.
pub fn deliveries_are_counted<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "lease=10s delay=0 max_deliveries=3");
    trial.add(START, &pages("a", 1));
    for delivery in 1..=3 {
        let now = at(10 * u64::from(delivery));
        let lease = trial.one(now);
        assert_eq!(lease.delivery, delivery);
        assert_eq!(trial.live(now, 10)[0].delivery, delivery);
    }
    assert_eq!(trial.leases(at(40), 1), []);
    let dead = &trial.dead_letters(at(40), 10)[0];
    assert!(dead.reason.contains("max_deliveries") && dead.reason.contains('3'), "{}", dead.reason);
    assert_eq!(dead.at, at(40));
}

/// Every settlement but a release or a renewal clears the count.
pub fn a_retry_clears_the_count_of_deliveries<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "lease=10s delay=0");
    trial.add(START, &pages("a", 1));
    trial.one(START);
    let lease = trial.one(at(10));
    assert_eq!(lease.delivery, 2);
    trial.end(at(10), &lease, Outcome::Release);
    let lease = trial.one(at(10));
    assert_eq!(lease.delivery, 2, "a release does not clear it");
    trial.end(at(10), &lease, Outcome::Retry { at: at(10) });
    assert_eq!(trial.one(at(10)).delivery, 1);
}

/// Retries in a row are counted; a release, a renewal and an expiry leave the count, any other end clears it.
pub fn retries_in_a_row_are_counted<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "lease=10s delay=0");
    trial.add(START, &pages("a", 1));
    let again = |now, retries, outcome| {
        let lease = trial.one(now);
        assert_eq!(lease.retries, retries, "before {outcome:?}");
        trial.end(now, &lease, outcome);
    };
    again(START, 0, Outcome::Retry { at: START });
    again(START, 1, Outcome::Retry { at: at(1) });
    again(at(1), 2, Outcome::Release);
    assert_eq!(trial.one(at(1)).retries, 2);
    let visit = crate::verbs::Visit::default();
    again(at(11), 2, Outcome::Done { visit, next: Some(at(11)) });
    again(at(11), 0, Outcome::Retry { at: at(11) });
    again(at(11), 1, Outcome::Dead { reason: "gone".to_owned() });
    trial.steer(at(11), Steer::Dead(DeadLetters::All, DeadChange::Replay));
    again(at(11), 0, Outcome::done());
}

/// A renewal sets the deadline anew, counted from now, and nothing else.
pub fn a_renewal_moves_the_deadline<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "lease=10s delay=0");
    trial.add(START, &pages("a", 1));
    let lease = trial.one(START);
    let renew = |now, lasts| trial.end(now, &lease, Outcome::Renew { lease: secs(lasts) });
    assert_eq!(renew(at(9), 20), Answer::Renewed);
    let live = &trial.live(at(9), 10)[0];
    assert_eq!((live.id, live.granted, live.deadline), (lease.id, START, at(29)));
    assert_eq!(renew(at(28), 5), Answer::Renewed);
    assert_eq!(trial.leases(at(32), 1), []);
    assert_eq!(renew(at(33), 5), Answer::Stale);
    assert_eq!(trial.one(at(33)).delivery, 2);
}

/// A lease of one crawl means nothing to another, and stays good.
pub fn a_lease_belongs_to_its_crawl<H: Harness>(mut harness: H) {
    let store = harness.open();
    let [one, two] = ["one", "two"].map(|name| Trial::named(&harness, store.clone(), name, 1, "delay=0"));
    for trial in [&one, &two] {
        trial.add(START, &pages("a", 1));
    }
    let (lease_of_one, lease_of_two) = (one.one(START), two.one(START));
    for outcome in [Outcome::done(), Outcome::Release, Outcome::Renew { lease: Duration::ZERO }] {
        assert_eq!(two.end(START, &lease_of_one, outcome), Answer::Stale);
    }
    assert_eq!(one.state(START, "http://a.example/1"), UrlState::Leased);
    one.done(START, &lease_of_one);
    two.done(START, &lease_of_two);
}

/// Leases belong to a crawl, not to a connection: whoever holds the number may settle.
pub fn any_handle_may_settle<H: Harness>(mut harness: H) {
    let store = harness.open();
    let granted = Trial::new(&harness, store.clone(), "");
    granted.add(START, &pages("a", 1));
    let lease = granted.one(START);
    drop(granted);
    Trial::new(&harness, store, "").done(START, &lease);
}

/// At most one live lease for a URL, by whatever way it comes back.
pub fn a_url_has_one_live_lease<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "concurrency=0 delay=0 lease=10s");
    trial.add(START, &pages("a", 1));
    trial.one(START);
    assert_eq!(trial.leases(START, 9), []);
    trial.one(at(10));
    assert_eq!(trial.leases(at(10), 9), []);
    let live = trial.live(at(10), 9);
    assert_eq!(live.len(), 1);
    trial.settle_one(at(11), Settlement::new(live[0].id, Outcome::Retry { at: at(11) }));
    trial.one(at(11));
    assert_eq!(trial.leases(at(11), 9), []);
    assert_eq!(trial.live(at(11), 9).len(), 1);
}

/// Whatever ends a lease makes it stale: forgetting its URL, deleting its queue.
pub fn forgetting_a_url_ends_its_lease<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    trial.add(START, &["http://a.example/1", "http://b.example/1"]);
    let leases = trial.leases(START, 2);
    trial.wait(trial.frontier.forget(START, "http://a.example/1")).expect("forget");
    trial.steer_queue(START, "b.example", crate::verbs::QueueChange::Delete);
    for lease in &leases {
        assert_eq!(trial.end(START, lease, Outcome::done()), Answer::Stale, "{}", lease.key);
    }
    assert_eq!(trial.live(START, 9), []);
    assert_eq!(trial.stats(START).urls, [0; 6]);
}

/// A lease for no time has expired when it is granted.
pub fn a_lease_for_no_time_has_expired<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0 max_deliveries=2");
    trial.add(START, &pages("a", 1));
    let want = |urls| Want { lease: Some(Duration::ZERO), ..Want::urls(urls) };
    let lease = &trial.leases(START, want(1))[0];
    assert_eq!(trial.end(START, lease, Outcome::done()), Answer::Stale);
    assert_eq!(trial.leases(START, want(9)).len(), 1, "as nine claims of one would");
    assert_eq!(trial.state(START, "http://a.example/1"), UrlState::Dead);
}
