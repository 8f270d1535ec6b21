//! Several crawls in one store, and what can be done to a whole crawl.

use trapline_core::{Identity, IdentityKey, Request};

use super::Harness;
use super::trial::{START, Trial, at, keys, pages, secs};
use crate::frontier::Frontier;
use crate::report::{CrawlState, Query, QueueState, Rows, Scan, Stats, UrlState};
use crate::store::{ErrorKind, StoreError};
use crate::verbs::{
    Admission, Answer, Claimed, CrawlChange, DeadChange, DeadLetters, NewCrawl, Outcome, QueueChange,
    Refusal, Settlement, Steer, Steered, UrlChange, Visit, Want,
};

/// What one crawl does is unknown to the other: URLs, queues, leases, notes, dead letters, counts, pause.
pub fn crawls_never_see_each_other<H: Harness>(mut harness: H) {
    let store = harness.open();
    let [busy, quiet] =
        ["busy", "quiet"].map(|name| Trial::named(&harness, store.clone(), name, 2, "delay=5s"));
    quiet.add(START, &pages("a", 2));
    // What the store takes of the disk is of all crawls.
    let stats = || Stats { disk: None, pressure: None, ..quiet.stats(START) };
    let before = (stats(), quiet.queues(START, None, 9), quiet.known(START, None, None, None, 9));
    busy.add(START, &pages("a", 3));
    busy.note(START, "k", Some(b"v"), None);
    busy.steer_queue(
        START,
        "a.example",
        QueueChange::Terms(trapline_core::Terms { precedence: Some(0), ..Default::default() }),
    );
    let lease = busy.one(START);
    busy.dead(START, &lease, "gone");
    busy.steer_crawl(START, CrawlChange::Pause);
    busy.set(START, "concurrency", "7");
    let after = (stats(), quiet.queues(START, None, 9), quiet.known(START, None, None, None, 9));
    assert_eq!(after, before);
    assert_eq!(
        (quiet.notes(START, "", 9), quiet.dead_letters(START, 9), quiet.live(START, 9)),
        (vec![], vec![], vec![])
    );
    assert_eq!(quiet.report(START).settings.concurrency, 1);
    assert_eq!(quiet.one(START).request.url, "http://a.example/1", "its own pace, its own pause");
    busy.steer_crawl(START, CrawlChange::Delete);
    assert_eq!(quiet.state(START, "http://a.example/1"), UrlState::Leased);
}

/// Names that differ in case, spaces or prefix are different crawls.
pub fn names_are_taken_as_they_are<H: Harness>(mut harness: H) {
    let store = harness.open();
    let names = ["a", "A", "a ", " a", "aa", "a/b", "a:b", "a%", "a_"];
    let trials = names.map(|name| Trial::named(&harness, store.clone(), name, 1, ""));
    for (number, trial) in trials.iter().enumerate() {
        trial.add(START, &pages("a", number));
    }
    for (number, trial) in trials.iter().enumerate() {
        assert_eq!(trial.stats(START).urls_in(UrlState::Pending), number as u64, "{:?}", names[number]);
        assert_eq!(&*trial.report(START).name, names[number]);
    }
}

/// By name, with their settings, whichever crawl is asked, and page by page.
pub fn a_store_lists_its_crawls<H: Harness>(mut harness: H) {
    let store = harness.open();
    let names = || {
        let crawls = harness.block_on(crate::frontier::crawls(&*store, START)).expect("crawls are listed");
        crawls.into_iter().map(|crawl| crawl.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(), [""; 0]);
    let trials = ["b", "a", "c"].map(|name| Trial::named(&harness, store.clone(), name, 1, ""));
    trials[1].set(START, "concurrency", "9");
    trials[2].steer_crawl(START, CrawlChange::Pause);
    assert_eq!(names(), ["a", "b", "c"]);
    for asked in ["a", "c", "nowhere"] {
        let mut scan = Scan { limit: 1, ..Scan::new(Query::Crawls) };
        let mut seen = Vec::new();
        loop {
            let page = harness.block_on(store.scan(asked, START, &scan)).expect("crawls are listed");
            let Rows::Crawls(crawls) = page.rows else { panic!("{:?}", page.rows) };
            assert!(crawls.len() <= 1);
            seen.extend(crawls);
            scan.cursor = page.cursor;
            if page.cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, ["a", "b", "c"].map(|name| find(&trials, name).report(START)), "{asked}");
    }
    trials[0].steer_crawl(START, CrawlChange::Delete);
    assert_eq!(names(), ["a", "c"]);
}

fn find<'t, 'h, H: Harness>(trials: &'t [Trial<'h, H>], name: &str) -> &'t Trial<'h, H> {
    trials.iter().find(|trial| trial.frontier.crawl() == name).expect("one of them is called so")
}

/// A crawl that is not there is an error of its own kind, and still not there afterwards.
pub fn attaching_makes_nothing<H: Harness>(mut harness: H) {
    let store = harness.open();
    let attach = |name: &str| harness.block_on(Frontier::builder(name).attach(store.clone(), START));
    let error = attach("c").err().expect("there is no crawl yet");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(harness.block_on(crate::frontier::crawls(&*store, START)).expect("a list").len(), 0);
    let trial = Trial::named(&harness, store.clone(), "c", 1, "");
    trial.add(START, &pages("a", 1));
    let attached = attach("c").expect("it is there now");
    let url = harness.block_on(attached.url(START, "http://a.example/1")).expect("a URL");
    assert_eq!(url.state, UrlState::Pending, "its identities are the crawl's");
}

fn claim_any<H: Harness>(harness: &H, store: &dyn super::Store, now: u64, want: impl Into<Want>) -> Claimed {
    let claimed = harness.block_on(store.claim(None, at(now), &want.into()));
    claimed.unwrap_or_else(|error| panic!("claim failed: {error}"))
}

/// A claim from any crawl lets them take turns, goes on where the last one ended, and names each lease's crawl.
pub fn a_claim_from_any_crawl_takes_turns<H: Harness>(mut harness: H) {
    let store = harness.open();
    let none = claim_any(&harness, &*store, 0, 5);
    assert_eq!((none.leases.len(), none.next), (0, None), "no crawl, no URL");
    let trials =
        ["x", "y", "z"].map(|name| Trial::named(&harness, store.clone(), name, 1, "delay=0 concurrency=0"));
    for (trial, count) in trials.iter().zip([4, 2, 3]) {
        trial.add(START, &pages("a", count));
    }
    let mut served = Vec::new();
    for want in [1, 2, 4, 9] {
        let claimed = claim_any(&harness, &*store, 0, want);
        served.extend(claimed.leases.iter().map(|lease| lease.crawl.to_string()));
    }
    assert_eq!(served.len(), 9);
    for round in [&served[0..3], &served[3..6]] {
        let mut round = round.to_vec();
        round.sort();
        assert_eq!(round, ["x", "y", "z"], "{served:?}");
    }
    for (trial, count) in trials.iter().zip([4, 2, 3]) {
        assert_eq!(trial.live(START, 9).len(), count);
    }
}

/// The bounds of a claim hold over all crawls together.
pub fn a_claim_from_any_crawl_keeps_its_bounds<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trials =
        ["x", "y"].map(|name| Trial::named(&harness, store.clone(), name, 1, "delay=0 concurrency=0"));
    for trial in &trials {
        for host in ["a", "b", "c"] {
            trial.add(START, &pages(host, 5));
        }
    }
    let claim = |want| claim_any(&harness, &*store, 0, want).leases;
    let leases = claim(Want { per_queue: Some(1), ..Want::urls(100) });
    assert_eq!(leases.len(), 6, "a queue belongs to its crawl");
    let leases = claim(Want { queues: Some(3), ..Want::urls(7) });
    let mut queues: Vec<_> = leases.iter().map(|lease| (lease.crawl.clone(), lease.key.clone())).collect();
    assert_eq!(queues.len(), 7);
    queues.sort();
    queues.dedup();
    assert!(queues.len() <= 3, "{queues:?}");
    let only = Want { keys: Some(vec!["b.example".to_owned()]), per_queue: Some(1), ..Want::urls(100) };
    assert_eq!(keys(&claim(only)), ["b.example"; 2]);
    let without = Want { except: vec!["a.example".to_owned(), "c.example".to_owned()], ..Want::urls(100) };
    assert!(claim(without).iter().all(|lease| &*lease.key == "b.example"));
    assert_eq!(claim(Want { per_queue: Some(0), ..Want::urls(9) }), []);
    assert_eq!(claim(Want { queues: Some(0), ..Want::urls(9) }), []);
    assert_eq!(claim(Want::urls(0)), []);
}

/// A claim from any crawl passes over paused and finished ones, and says when the others will have more.
pub fn a_claim_from_any_crawl_passes_over_paused_ones<H: Harness>(mut harness: H) {
    let store = harness.open();
    let [paused, waiting] =
        ["paused", "waiting"].map(|name| Trial::named(&harness, store.clone(), name, 1, "delay=0"));
    for trial in [&paused, &waiting] {
        trial.add(START, &pages("a", 1));
    }
    paused.steer_crawl(START, CrawlChange::Pause);
    waiting.steer_queue(START, "a.example", QueueChange::Block(at(7)));
    let claimed = claim_any(&harness, &*store, 0, 9);
    assert_eq!((claimed.leases.len(), claimed.next, claimed.exhausted), (0, Some(at(7)), false));
    let claimed = claim_any(&harness, &*store, 7, 9);
    assert_eq!(&*claimed.leases[0].crawl, "waiting");
    assert_eq!(claimed.leases.len(), 1);
}

/// After a pause no lease is granted until it is resumed; settling and admitting go on.
pub fn a_pause_holds_until_it_is_resumed<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    trial.add(START, &pages("a", 2));
    let lease = trial.one(START);
    for _ in 0..2 {
        trial.steer_crawl(START, CrawlChange::Pause);
        assert_eq!(trial.report(START).state, CrawlState::Paused);
        assert_eq!(trial.leases(START, 9), []);
    }
    trial.done(START, &lease);
    trial.add(START, &pages("b", 1));
    for _ in 0..2 {
        trial.steer_crawl(START, CrawlChange::Resume);
        assert_eq!(trial.report(START).state, CrawlState::Running);
    }
    assert_eq!(trial.leases(START, 9).len(), 2);
}

/// `finish` is final, keeps its first reason, and lets what is out come in.
pub fn finish_is_final<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    trial.add(START, &pages("a", 2));
    let lease = trial.one(START);
    trial.steer_crawl(START, CrawlChange::Finish("seen enough".to_owned()));
    trial.steer_crawl(START, CrawlChange::Finish("another reason".to_owned()));
    trial.steer_crawl(START, CrawlChange::Pause);
    trial.steer_crawl(START, CrawlChange::Resume);
    assert_eq!(trial.report(START).state, CrawlState::Finished("seen enough".to_owned()));
    assert_eq!(trial.leases(START, 9), []);
    let refused = Admission::Refused(Refusal::Finished);
    assert_eq!(trial.admit_url(START, "http://b.example/1"), refused);
    assert_eq!(trial.admit_url(START, "http://a.example/1"), refused, "known or not");
    let mut settlement = Settlement::new(lease.id, Outcome::done());
    settlement.links = vec![trial.get("http://c.example/1")];
    let settled = trial.settle_one(START, settlement);
    assert_eq!((settled.answer, settled.links), (Answer::Done, vec![refused]));
    assert_eq!(trial.stats(START).fetched, 1);
}

/// Reaching a limit on URLs, bytes or time finishes the crawl, and the reason names it.
pub fn a_limit_reached_finishes_the_crawl<H: Harness>(mut harness: H) {
    let store = harness.open();
    let check = |limit: &str, bytes, now| {
        let settings = format!("delay=0 {limit}");
        let trial = Trial::named(&harness, store.clone(), limit, 1, &settings);
        trial.add(START, &pages("a", 3));
        for _ in 0..2 {
            assert_eq!(trial.report(now).state, CrawlState::Running, "{limit}");
            let lease = trial.one(now);
            let visit = Visit { bytes, ..Visit::default() };
            assert_eq!(trial.end(now, &lease, Outcome::Done { visit, next: None }), Answer::Done);
        }
        trial
    };
    let name = |limit: &str| limit.split_once('=').map_or("", |(name, _)| name).to_owned();
    for (limit, bytes) in [("max_urls=2", 0), ("max_bytes=200", 100)] {
        let trial = check(limit, bytes, at(1));
        assert_eq!(trial.report(at(1)).state, CrawlState::Finished(name(limit)));
        assert_eq!(trial.leases(at(1), 1), []);
    }
    let trial = check("max_time=60s", 0, at(59));
    assert_eq!(trial.leases(at(60), 1), []);
    assert_eq!(trial.report(at(60)).state, CrawlState::Finished("max_time".to_owned()));
}

/// `max_queue_length` only refuses, and only while the queue is that long.
pub fn a_full_queue_refuses_until_there_is_room<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0 max_queue_length=2");
    trial.add(START, &pages("a", 2));
    let refused = Admission::Refused(Refusal::QueueFull);
    assert_eq!(trial.admit_url(START, "http://a.example/3"), refused);
    assert_eq!(trial.admit_url(START, "http://a.example/1"), Admission::Known);
    assert_eq!(trial.admit_url(START, "http://b.example/3"), Admission::Added);
    trial.one(START);
    assert_eq!(trial.admit_url(START, "http://a.example/3"), Admission::Added);
}

/// With `pause_at_finish` the claim that finds nothing left pauses the crawl.
pub fn an_exhausted_crawl_may_pause_itself<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0 pause_at_finish=true");
    trial.add(START, &pages("a", 1));
    let lease = trial.one(START);
    assert_eq!(trial.leases(START, 1), []);
    assert_eq!(trial.report(START).state, CrawlState::Running, "a lease is out");
    trial.done(START, &lease);
    assert_eq!(trial.leases(START, 1), []);
    assert_eq!(trial.report(START).state, CrawlState::Paused);
}

/// A deleted crawl is gone with everything in it, and its name is free.
pub fn a_deleted_crawl_is_gone<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store.clone(), "");
    trial.add(START, &pages("a", 2));
    trial.note(START, "k", Some(b"v"), None);
    trial.terms(START, "a.example", trapline_core::Terms { precedence: Some(1), ..Default::default() });
    trial.one(START);
    trial.steer_crawl(START, CrawlChange::Delete);
    let error = trial.wait(trial.frontier.stats(START)).expect_err("it is deleted");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(claim_any(&harness, &*store, 0, 9).leases, []);
    let trial = Trial::new(&harness, store, "concurrency=3");
    assert_eq!(trial.report(START).settings.concurrency, 3);
    assert_eq!((trial.stats(START).urls, trial.stats(START).queues), ([0; 6], [0; 7]));
    assert_eq!((trial.notes(START, "", 9), trial.live(START, 9)), (vec![], vec![]));
    trial.add(START, &pages("a", 2));
    assert_eq!(trial.queue(START, "a.example").precedence, 3);
}

/// Every verb on a crawl that is not there says so: what was attempted, on what, and what to do.
pub fn an_unknown_crawl_is_an_error_with_a_sentence<H: Harness>(mut harness: H) {
    fn check<T: std::fmt::Debug>(verb: &str, answer: Result<T, StoreError>) {
        let error = answer.expect_err(verb);
        assert_eq!(error.kind(), ErrorKind::NotFound, "{verb}");
        let message = error.to_string();
        assert!(message.contains("nowhere"), "{verb} does not name the crawl: {message}");
        assert!(message.contains(verb), "{verb} is not named: {message}");
        assert!(message.contains("create"), "{verb} does not say what to do: {message}");
    }
    let store = harness.open();
    let trial = Trial::new(&harness, store.clone(), "");
    let candidate = trial.get("http://a.example/1");
    let wait = |steer| harness.block_on(store.steer("nowhere", START, steer));
    check("admit", harness.block_on(store.admit("nowhere", START, &[candidate])));
    check("admit", harness.block_on(store.admit("nowhere", START, &[])));
    check("claim", harness.block_on(store.claim(Some("nowhere"), START, &Want::urls(1))));
    check("settle", harness.block_on(store.settle("nowhere", START, Vec::new())));
    check("steer", wait(Steer::Queue("a".to_owned(), QueueChange::Retire)));
    check("steer", wait(Steer::Url(Identity(1), UrlChange::Forget)));
    check("steer", wait(Steer::Dead(DeadLetters::All, DeadChange::Purge)));
    check("steer", wait(Steer::Crawl(CrawlChange::Pause)));
    check("steer", wait(Steer::Crawl(CrawlChange::Delete)));
    check("scan", harness.block_on(store.scan("nowhere", START, &Scan::new(Query::Crawl))));
    check("count", harness.block_on(store.stats("nowhere", START)));
}

/// Creating a crawl that is there changes nothing: not its key, not its partitions, not its settings.
pub fn creating_twice_changes_nothing<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::named(&harness, store.clone(), "suite", 4, "delay=3s");
    trial.add(START, &pages("a", 1));
    let before = trial.report(START);
    let new = NewCrawl {
        key: IdentityKey::from_seed(99),
        partitions: 9,
        settings: super::trial::settings("delay=9s"),
    };
    let create = Steer::Crawl(CrawlChange::Create(new));
    assert_eq!(trial.steer(at(5), create), Steered::default());
    assert_eq!(trial.report(START), before);
    // A second handle learns the key of the first, or it would take known URLs for new ones.
    let again = Frontier::builder("suite").key(IdentityKey::from_seed(100)).partitions(1);
    let again = trial.wait(again.open_shared(store, at(5))).expect("open");
    let admitted = trial.wait(again.admit(at(5), [Request::get("http://a.example/1")])).expect("admit");
    assert_eq!(admitted, [Admission::Known]);
}

/// Settings change all together or not at all, and a mistake names the setting.
pub fn settings_change_all_or_none<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "");
    let set = |pairs: &[(&str, &str)]| {
        let changes = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        trial.wait(trial.frontier.steer_crawl(START, CrawlChange::Set(changes)))
    };
    let before = trial.report(START).settings;
    for (mistake, named) in [
        (("delai", "1s"), "`delay`"),
        (("delay", "soon"), "`delay`"),
        (("concurrency", "-1"), "`concurrency`"),
        (("order", "lifo"), "`order`"),
        (("pause_at_finish", "yes"), "`pause_at_finish`"),
        (("queue_budget", ""), "`queue_budget`"),
    ] {
        let error = set(&[("lease", "5s"), mistake, ("error_penalty", "3")]).expect_err(mistake.0);
        assert_eq!(error.kind(), ErrorKind::Invalid, "{mistake:?}");
        assert!(error.to_string().contains(named), "{mistake:?}: {error}");
        assert_eq!(trial.report(START).settings, before, "{mistake:?}");
    }
    set(&[("lease", "5s"), ("error_penalty", "3"), ("order", "fifo")]).expect("settings");
    let after = trial.report(START).settings;
    assert_eq!((after.lease, after.error_penalty), (secs(5), 3));
    set(&[]).expect("no settings");
}

/// A setting is in force for the very next claim.
pub fn settings_are_in_force_at_once<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    trial.add(START, &pages("a", 5));
    assert_eq!(trial.leases(START, 9).len(), 1);
    assert_eq!(trial.queue(START, "a.example").state, QueueState::Busy);
    trial.set(START, "concurrency", "3");
    assert_eq!(trial.leases(START, 9).len(), 2);
    trial.set(START, "queue_budget", "3");
    trial.set(START, "concurrency", "0");
    assert_eq!(trial.leases(START, 9), []);
    assert_eq!(trial.queue(START, "a.example").state, QueueState::Retired);
    trial.set(START, "queue_budget", "4");
    assert_eq!(trial.leases(START, 9).len(), 1);
}

/// A crawl needs a number of partitions that makes sense.
pub fn partitions_must_make_sense<H: Harness>(mut harness: H) {
    let store = harness.open();
    for partitions in [0, u32::MAX] {
        let opening = Frontier::builder("odd").partitions(partitions).open_shared(store.clone(), START);
        let Err(error) = harness.block_on(opening) else { panic!("{partitions} partitions were taken") };
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("partitions"), "{error}");
        assert!(error.to_string().contains("odd"), "{error}");
    }
    let error = harness.block_on(store.stats("odd", START)).expect_err("it was refused");
    assert_eq!(error.kind(), ErrorKind::NotFound, "nothing was created");
}
