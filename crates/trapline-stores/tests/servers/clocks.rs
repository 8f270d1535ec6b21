//! Workers whose clocks differ: nobody's lease is expired before its time, nobody's delay is shortened.
//!
//! A handle knows the time from the server. What is left to see is that a clock of a machine has no part in it, and that a verb
//! that brings a time of long ago, as one did that was on its way for an hour, does no harm.

use std::sync::Arc;
use std::time::Duration;

use trapline_core::Timestamp;
use trapline_frontier::{Answer, Frontier, Lease, Outcome, QueueState, Settings, Settlement, UrlState};

use super::crawls::{add, crawl, queue, state, store};
use super::fresh_database;

fn polite() -> Settings {
    Settings { delay: Duration::from_secs(10), lease: Duration::from_mins(1), ..Settings::default() }
}

fn settle(frontier: &Frontier, now: Timestamp, lease: &Lease, outcome: Outcome) -> Answer {
    let batch = vec![Settlement::new(lease.id, outcome)];
    pollster::block_on(frontier.settle(now, batch)).expect("it is settled")[0].answer
}

fn claimed(frontier: &Frontier, now: Timestamp) -> Vec<Lease> {
    super::crawls::claim(frontier, now, 9)
}

/// Two stores, as two processes have them: they share nothing but the server.
fn pair() -> (Frontier, Frontier) {
    let url = fresh_database();
    (crawl(&store(&url), "c", polite()), crawl(&store(&url), "c", polite()))
}

#[test]
fn a_verb_from_an_hour_ago_expires_nothing_and_shortens_nothing() {
    let (right, slow) = pair();
    let now = Timestamp::from_millis(100_000_000);
    let ago = Timestamp::from_millis(100_000_000 - 3_600_000);
    add(
        &right,
        now,
        &["http://a.example/1", "http://a.example/2", "http://b.example/1", "http://c.example/1"],
    );
    let leases = claimed(&right, now);
    assert_eq!(leases.len(), 3);

    // The one behind sees what is leased as leased, until the same time as the others.
    assert_eq!(claimed(&slow, ago), []);
    assert_eq!(state(&slow, ago, "http://a.example/1"), UrlState::Leased);
    // Its settlement counts from the time that it is, not from when it thinks it is.
    assert_eq!(settle(&slow, ago, &leases[0], Outcome::done()), Answer::Done);
    let report = queue(&right, now, "a.example");
    assert_eq!((report.state, report.next_fetch), (QueueState::Snoozed, Some(now + Duration::from_secs(10))));
    for at in [ago, now, now + Duration::from_millis(9_999)] {
        assert_eq!(claimed(&slow, at), [], "at {at}");
        assert_eq!(claimed(&right, at), [], "at {at}");
    }
    // Its lease lasts as long as anybody's, and so does a renewal.
    let now = now + Duration::from_secs(10);
    let lease = claimed(&slow, ago + Duration::from_secs(10));
    assert_eq!(lease, [], "an hour behind, it does not know yet that ten seconds are over");
    let lease = claimed(&right, now).remove(0);
    assert_eq!(lease.deadline, now + Duration::from_mins(1));
    assert_eq!(
        settle(&slow, ago, &leases[1], Outcome::Renew { lease: Duration::from_mins(1) }),
        Answer::Renewed
    );
    let over = now + Duration::from_millis(59_999);
    assert_eq!(settle(&right, over, &leases[2], Outcome::done()), Answer::Stale, "its minute is over");
    assert_eq!(
        settle(&right, over, &leases[1], Outcome::done()),
        Answer::Done,
        "renewed as of the time it was"
    );
    assert_eq!(settle(&right, over, &lease, Outcome::done()), Answer::Done);
}

/// An hour behind by its own clock, it grants leases that end when they should.
#[test]
fn a_grant_from_an_hour_ago_lasts_as_long_as_any() {
    let (right, slow) = pair();
    let now = Timestamp::from_millis(100_000_000);
    let ago = Timestamp::from_millis(100_000_000 - 3_600_000);
    add(&right, now, &["http://a.example/1"]);
    let lease = claimed(&slow, ago).remove(0);
    assert_eq!(lease.deadline, now + Duration::from_mins(1));
    assert_eq!(claimed(&right, now + Duration::from_millis(59_999)), []);
    assert_eq!(settle(&slow, ago, &lease, Outcome::done()), Answer::Done);
}

/// Handles follow the server, and so agree on the time as far as the network lets them. (What machines take the time for is
/// seen in [`workers`](super::workers), where it is an hour off.)
#[test]
fn handles_agree_on_the_time() {
    let url = fresh_database();
    let workers = [(); 3].map(|()| {
        let store = store(&url);
        let clock = Arc::new(store.pool().clock());
        (crawl(&store, "c", polite()), clock)
    });
    let now = |worker: usize| pollster::block_on(workers[worker].1.now()).expect("the server is there");
    let spread = |times: [Timestamp; 3]| {
        let times = times.map(Timestamp::as_millis);
        times.iter().max().unwrap() - times.iter().min().unwrap()
    };
    let best = (0..20).map(|_| spread([now(0), now(1), now(2)])).min().unwrap();
    assert!(best <= 25, "{best} ms apart at best");

    add(&workers[0].0, now(0), &["http://a.example/1", "http://a.example/2"]);
    let lease = claimed(&workers[0].0, now(0)).remove(0);
    for worker in [1, 2, 0] {
        assert_eq!(claimed(&workers[worker].0, now(worker)), [], "the lease lives");
    }
    let settled = now(1);
    assert_eq!(settle(&workers[1].0, settled, &lease, Outcome::done()), Answer::Done);
    for worker in [1, 2, 0] {
        assert_eq!(claimed(&workers[worker].0, now(worker)), [], "the queue waits");
    }
    let next = queue(&workers[2].0, now(2), "a.example").next_fetch.expect("it waits");
    assert!(next >= settled + Duration::from_secs(10) && next <= now(0) + Duration::from_secs(10));
}
