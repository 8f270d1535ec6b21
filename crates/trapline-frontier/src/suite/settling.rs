//! What every store makes of settlements: answers, links, notes and waits, in one step each.

use std::time::Duration;

use trapline_core::{Candidate, Request, Statement, Timestamp};

use super::Harness;
use super::trial::{START, Trial, at, pages, secs, visit};
use crate::report::{QueueState, UrlState};
use crate::verbs::{Admission, Answer, LeaseId, NoteWrite, Outcome, QueueChange, Refusal, Settlement};

fn note(key: &str, value: &[u8]) -> NoteWrite {
    NoteWrite { key: key.to_owned(), value: Some(value.to_vec()), expires: None }
}

/// Each outcome has its answer and leaves the URL in its state.
pub fn every_outcome_has_its_answer<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    let check = |number: u32, outcome: Outcome, answer, state| {
        let url = format!("http://a.example/{number}");
        trial.add(START, &[&url]);
        let lease = trial.one(START);
        assert_eq!(lease.request.url, url);
        assert_eq!(trial.end(START, &lease, outcome.clone()), answer, "{outcome:?}");
        assert_eq!(trial.state(START, &url), state, "{outcome:?}");
    };
    let reason = || "because".to_owned();
    check(1, Outcome::done(), Answer::Done, UrlState::Done);
    check(2, Outcome::Done { visit: visit(b"x"), next: Some(at(9)) }, Answer::Done, UrlState::Done);
    check(3, Outcome::Retry { at: at(9) }, Answer::Retry, UrlState::Pending);
    check(4, Outcome::Dead { reason: reason() }, Answer::Dead, UrlState::Dead);
    check(5, Outcome::Disregard { reason: reason() }, Answer::Disregarded, UrlState::Disregarded);
    check(6, Outcome::Renew { lease: secs(9) }, Answer::Renewed, UrlState::Leased);
    let lease = &trial.live(START, 9)[0];
    let settled = trial.settle_one(START, Settlement::new(lease.id, Outcome::Release));
    assert_eq!(settled.answer, Answer::Released);
    assert_eq!(trial.state(START, "http://a.example/6"), UrlState::Pending);
    let queue = trial.queue(START, "a.example");
    assert_eq!((queue.pending, queue.leased, queue.done), (2, 0, 2));
    assert_eq!((queue.disregarded, queue.dead, queue.errors), (1, 1, 2));
}

/// Links are answered as `admit` answers them, in their order.
pub fn links_are_answered_in_their_order<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0 max_depth=1");
    trial.add(START, &["http://a.example/1"]);
    let lease = trial.one(START);
    let deep = trial.candidate(Request { depth: 2, ..Request::get("http://b.example/deep") });
    let done = Candidate { statement: Some(Statement::Done), ..trial.get("http://b.example/done") };
    let better = Candidate { improve: true, class: Some(1), ..trial.get("http://b.example/1") };
    let mut settlement = Settlement::new(lease.id, Outcome::done());
    settlement.links = vec![
        trial.get("http://b.example/1"),
        deep,
        trial.get("http://b.example/1"),
        trial.get("http://a.example/1"),
        done,
        better,
        trial.get("http://a.example/2"),
    ];
    let settled = trial.settle_one(START, settlement);
    use Admission::{Added, Known, Refused, Rescored, Restated};
    assert_eq!(settled.answer, Answer::Done);
    let expected = [Added, Refused(Refusal::TooDeep), Known, Known, Restated, Rescored, Added];
    assert_eq!(settled.links, expected);
}

/// A batch settles in its order, each settlement one step, the stale among them nothing.
pub fn a_batch_settles_in_its_order<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    for host in ["a", "b", "c"] {
        trial.add(START, &pages(host, 1));
    }
    let leases = trial.leases(START, 3);
    let with_link = |lease, outcome, url: &str| {
        let mut settlement = Settlement::new(lease, outcome);
        settlement.links = vec![trial.get(url)];
        settlement
    };
    let dead = || Outcome::Dead { reason: "gone".to_owned() };
    let settled = trial.settle(
        at(1),
        vec![
            with_link(leases[1].id, Outcome::done(), "http://d.example/"),
            with_link(leases[1].id, dead(), "http://e.example/"),
            with_link(leases[0].id, dead(), "http://d.example/"),
            with_link(LeaseId(u64::MAX), dead(), "http://e.example/"),
            with_link(leases[2].id, Outcome::Release, "http://f.example/"),
        ],
    );
    let answers: Vec<_> = settled.iter().map(|settled| settled.answer).collect();
    use Answer::{Dead, Done, Released, Stale};
    assert_eq!(answers, [Done, Stale, Dead, Stale, Released]);
    let links: Vec<_> = settled.iter().map(|settled| settled.links.clone()).collect();
    use Admission::{Added, Known};
    assert_eq!(links, [vec![Added], vec![], vec![Known], vec![], vec![Added]]);
    assert_eq!(trial.state(at(1), "http://e.example/"), UrlState::Unknown);
    assert_eq!(trial.state(at(1), "http://b.example/1"), UrlState::Done);
}

/// A settlement that comes twice, with all that it carries, happens once.
pub fn settling_twice_happens_once<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    trial.add(START, &["http://a.example/1"]);
    let lease = trial.one(START);
    trial.done(START, &lease);
    let before = (trial.stats(START), trial.queue(START, "a.example"));
    for outcome in [
        Outcome::done(),
        Outcome::Release,
        Outcome::Retry { at: START },
        Outcome::Dead { reason: String::new() },
        Outcome::Disregard { reason: String::new() },
        Outcome::Renew { lease: secs(60) },
    ] {
        let mut settlement = Settlement::new(lease.id, outcome.clone());
        settlement.delay = Some(secs(100));
        settlement.links = vec![trial.get("http://a.example/2"), trial.get("http://b.example/2")];
        settlement.notes = vec![note("stale", b"1")];
        let settled = trial.settle_one(START, settlement);
        assert_eq!((settled.answer, settled.links), (Answer::Stale, Vec::new()), "{outcome:?}");
    }
    assert_eq!((trial.stats(START), trial.queue(START, "a.example")), before);
    assert_eq!(trial.notes(START, "", 10), []);
}

/// A number that no lease ever had is as stale as an old one.
pub fn a_lease_never_granted_is_stale<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "");
    for number in [0, 1, 2, u64::from(u32::MAX), i64::MAX as u64, u64::MAX] {
        let settled = trial.settle_one(START, Settlement::new(LeaseId(number), Outcome::done()));
        assert_eq!(settled.answer, Answer::Stale, "{number}");
    }
}

/// Links and notes are there when the parent is done, not later.
pub fn links_and_notes_come_with_the_settlement<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "");
    trial.add(START, &["http://a.example/1"]);
    let lease = trial.one(START);
    let mut settlement = Settlement::new(lease.id, Outcome::Done { visit: visit(b"1"), next: None });
    let link =
        Request { via: Some(lease.request.url.clone()), depth: 1, ..Request::get("http://b.example/") };
    settlement.links = vec![trial.candidate(link.clone())];
    settlement.notes = vec![note("robots/a.example", b"User-agent: *"), note("seen", b"")];
    assert_eq!(trial.settle_one(START, settlement).links, [Admission::Added]);
    let notes = trial.notes(START, "", 10);
    assert_eq!(notes.len(), 2);
    assert_eq!(notes[0].value, b"User-agent: *");
    assert_eq!(*trial.one(START).request, link);
}

/// Also what is not done may have found links: a redirect that is retried, a page out of scope.
pub fn any_outcome_may_carry_links_and_notes<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    let reason = || "because".to_owned();
    let outcomes = [
        Outcome::done(),
        Outcome::Retry { at: at(100) },
        Outcome::Dead { reason: reason() },
        Outcome::Disregard { reason: reason() },
        Outcome::Renew { lease: secs(60) },
        Outcome::Release,
    ];
    for (number, outcome) in outcomes.into_iter().enumerate() {
        trial.add(START, &[format!("http://a.example/{number}")]);
        let lease = trial.one(START);
        let link = format!("http://links.example/{number}");
        let mut settlement = Settlement::new(lease.id, outcome.clone());
        settlement.links = vec![Candidate { statement: Some(Statement::Next(at(500))), ..trial.get(&link) }];
        settlement.notes = vec![note(&link, b"x")];
        let settled = trial.settle_one(START, settlement);
        assert_eq!(settled.links, [Admission::Restated], "{outcome:?}");
        assert_eq!(trial.state(START, &link), UrlState::Pending, "{outcome:?}");
        assert_eq!(trial.notes(START, &link, 10).len(), 1, "{outcome:?}");
        if settled.answer == Answer::Renewed {
            assert_eq!(trial.end(START, &lease, Outcome::done()), Answer::Done);
        }
    }
}

/// The settlement's own delay wins, shorter or longer; the queue's holds where a wait is due and none was given.
pub fn a_settlements_own_delay_wins<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=10s");
    trial.add(START, &pages("a", 9));
    let wait = |now, outcome, delay: Option<Duration>| {
        let lease = trial.one(now);
        trial.settle_one(now, Settlement { delay, ..Settlement::new(lease.id, outcome) });
        trial.queue(now, "a.example").next_fetch
    };
    assert_eq!(wait(START, Outcome::done(), None), Some(at(10)));
    assert_eq!(wait(at(10), Outcome::done(), Some(secs(3))), Some(at(13)));
    assert_eq!(wait(at(13), Outcome::done(), Some(secs(30))), Some(at(43)));
    assert_eq!(trial.queue(at(42), "a.example").state, QueueState::Snoozed);
    assert_eq!(wait(at(43), Outcome::Release, None), None);
    assert_eq!(wait(at(43), Outcome::Release, Some(secs(7))), Some(at(50)));
    assert_eq!(wait(at(50), Outcome::done(), Some(Duration::ZERO)), None);
    let half = Some(Duration::from_micros(1500));
    assert_eq!(wait(at(50), Outcome::done(), half), Some(Timestamp::from_millis(50_002)), "never shorter");
}

/// What no request was made for costs nothing.
pub fn release_and_disregard_give_the_cost_back<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0 balance_replenish=10");
    trial.add_candidates(START, &[Candidate { cost: Some(4), ..trial.get("http://a.example/1") }]);
    let money = || {
        let queue = trial.queue(START, "a.example");
        (queue.spent, queue.balance, trial.stats(START).spent)
    };
    let lease = trial.one(START);
    assert_eq!(money(), (4, 6, 4));
    assert_eq!(trial.end(START, &lease, Outcome::Release), Answer::Released);
    assert_eq!(money(), (0, 10, 0));
    let lease = trial.one(START);
    trial.end(START, &lease, Outcome::Disregard { reason: String::new() });
    assert_eq!(money(), (0, 10, 0));
    let granted = trial.stats(START).granted;
    assert_eq!(granted, 2);
}

/// What a release gives back is the cost of its lease, also if its links restate the very URL at another price.
pub fn a_refund_is_what_the_lease_cost<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    trial.add(START, &pages("a", 2));
    let spent = trial.one(START);
    trial.done(START, &spent);
    let lease = trial.one(START);
    let url = lease.request.url.clone();
    let mut settlement = Settlement::new(lease.id, Outcome::Release);
    settlement.links =
        vec![Candidate { statement: Some(Statement::Done), cost: Some(100), ..trial.get(&url) }];
    trial.settle_one(START, settlement);
    assert_eq!(trial.queue(START, "a.example").spent, 1);
}

/// What ended without success says why, as long as that is its state.
pub fn a_url_that_ended_says_why<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    let end = |url: &str, outcome: Outcome| {
        trial.add(START, &[url]);
        trial.end(START, &trial.one(START), outcome);
        trial.url(START, url).reason
    };
    let dead = |reason: &str| Outcome::Dead { reason: reason.to_owned() };
    let disregard = |reason: &str| Outcome::Disregard { reason: reason.to_owned() };
    let why = |reason: &str| Some(reason.to_owned());
    assert_eq!(end("http://a.example/1", dead("404")), why("404"));
    assert_eq!(end("http://a.example/2", disregard("robots.txt")), why("robots.txt"));
    assert_eq!(end("http://a.example/3", disregard("")), None);
    assert_eq!(end("http://a.example/4", Outcome::done()), None);
    let mut listed: Vec<_> =
        trial.known(START, None, None, None, 9).into_iter().map(|url| url.reason).collect();
    listed.sort();
    assert_eq!(listed, [None, None, why("404"), why("robots.txt")]);
    // Whatever takes its place begins without a reason.
    for url in ["http://a.example/1", "http://a.example/2"] {
        trial.wait(trial.frontier.forget(START, url)).expect("forget");
        trial.add(START, &[url]);
        assert_eq!(trial.url(START, url).reason, None, "{url}");
        trial.end(START, &trial.one(START), disregard("again"));
    }
    let restated = Candidate { statement: Some(Statement::Done), ..trial.get("http://a.example/1") };
    trial.admit_one(START, restated);
    assert_eq!(trial.url(START, "http://a.example/1").reason, None);
    trial.steer_queue(START, "a.example", QueueChange::Delete);
    trial.finish_jobs(START);
    for number in 1..5 {
        let reason = end(&format!("http://b.example/{number}"), disregard(""));
        assert_eq!(reason, None, "{number}");
    }
}

/// A retry at a time that has passed is due at once, and goes first.
pub fn a_retry_in_the_past_is_due_at_once<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    trial.add(at(5), &pages("a", 2));
    let lease = trial.one(at(5));
    assert_eq!(trial.end(at(5), &lease, Outcome::Retry { at: START }), Answer::Retry);
    assert_eq!(trial.urls(at(5), 1), ["http://a.example/1"]);
}
