//! What survives a restart and a crash, on stores that keep anything: whatever was answered.
//!
//! A store that keeps nothing says so in [`Harness::reopen`], and its cases end there.

use std::sync::Arc;

use trapline_core::{Candidate, IdentityKey, Statement, Terms};

use super::Harness;
use super::admission::full_request;
use super::pages::full_visit;
use super::trial::{START, Trial, at, pages, secs, visit};
use super::workload::Workload;
use crate::pattern::Pattern;
use crate::report::{CrawlState, QueueState, UrlState};
use crate::verbs::{
    Admission, Answer, CrawlChange, Lease, NoteWrite, Outcome, PageRecord, QueueChange, Settlement, Steer,
    UrlFilter, UrlsChange,
};

/// Does `before`, closes the store in good order or not at all, opens it again, and lets `after` see what is there.
fn survives<H: Harness, T>(
    mut harness: H,
    settings: &str,
    before: impl Fn(&Trial<'_, H>) -> T,
    after: impl Fn(&Trial<'_, H>, T),
) {
    for crash in [false, true] {
        let store = harness.open();
        let left = before(&Trial::new(&harness, store, settings));
        let Some(store) = harness.reopen(crash) else {
            eprintln!("skipped: this store keeps nothing");
            return;
        };
        // As whoever comes back does: with other settings, which must not count.
        after(&Trial::new(&harness, store, "delay=123s"), left);
    }
}

/// Requests survive whole, in their order.
pub fn pending_urls_survive_in_their_order<H: Harness>(harness: H) {
    survives(
        harness,
        "delay=0 concurrency=0",
        |trial| {
            trial.add(START, &pages("a", 3));
            trial.add_candidates(START, &[trial.candidate(full_request("http://a.example/full"))]);
            let first = Candidate { class: Some(1), ..trial.get("http://a.example/first") };
            trial.add_candidates(START, &[first]);
        },
        |trial, ()| {
            assert_eq!(trial.admit_url(at(1), "http://a.example/2"), Admission::Known);
            let leases = trial.leases(at(1), 9);
            let urls: Vec<_> = leases.iter().map(|lease| &lease.request.url[17..]).collect();
            assert_eq!(urls, ["first", "1", "2", "3", "full"]);
            assert_eq!(*leases[4].request, full_request("http://a.example/full"));
        },
    );
}

/// Which queue is served next survives: sessions, balances, ages, precedence.
pub fn turns_survive<H: Harness>(mut harness: H) {
    let settings = "delay=0 balance_replenish=2";
    let fill = |trial: &Trial<'_, H>| {
        for host in ["a", "b", "c"] {
            trial.add(START, &pages(host, 5));
        }
        for _ in 0..4 {
            let lease = trial.one(START);
            trial.done(START, &lease);
        }
        trial.terms(START, "c.example", Terms { precedence: Some(4), ..Terms::default() });
    };
    let rest = |trial: &Trial<'_, H>| -> Vec<String> {
        (0..11)
            .map(|_| {
                let lease = trial.one(at(1));
                trial.done(at(1), &lease);
                lease.request.url.clone()
            })
            .collect()
    };
    let store = harness.open();
    let undisturbed = Trial::new(&harness, store, settings);
    fill(&undisturbed);
    let expected = rest(&undisturbed);
    drop(undisturbed);
    survives(harness, settings, fill, |trial, ()| assert_eq!(rest(trial), expected));
}

/// A lease survives with its number and its deadline, and no number comes again.
pub fn leases_survive_with_number_and_deadline<H: Harness>(harness: H) {
    survives(
        harness,
        "delay=0 lease=60s",
        |trial| {
            for host in ["a", "b", "c"] {
                trial.add(START, &pages(host, 1));
            }
            let leases = trial.leases(START, 3);
            trial.end(at(1), &leases[1], Outcome::Renew { lease: secs(200) });
            trial.done(at(1), &leases[2]);
            leases
        },
        |trial, leases| {
            let live = trial.live(at(2), 9);
            let seen: Vec<_> = live.iter().map(|lease| (lease.id, lease.granted, lease.deadline)).collect();
            assert_eq!(seen, [(leases[0].id, START, at(60)), (leases[1].id, START, at(201))]);
            assert_eq!(trial.leases(at(59), 9), []);
            trial.done(at(59), &leases[1]);
            assert_eq!(trial.end(at(59), &leases[2], Outcome::done()), Answer::Stale);
            let again = trial.one(at(60));
            assert_eq!(again.delivery, 2);
            assert!(again.id > leases[2].id, "{:?} after {:?}", again.id, leases[2].id);
            assert_eq!(trial.end(at(61), &leases[0], Outcome::done()), Answer::Stale);
        },
    );
}

/// Waits survive: of queues, of groups, of retries, of visits, of blocks.
pub fn waits_survive<H: Harness>(harness: H) {
    survives(
        harness,
        "delay=10s",
        |trial| {
            let group = Terms { group: Some(Arc::from("g")), ..Terms::default() };
            for host in ["a", "b", "c", "d", "f"] {
                trial.add(START, &pages(host, 2));
            }
            trial.terms(START, "b.example", group.clone());
            trial.terms(START, "f.example", group);
            let leases = trial.leases(START, 9);
            trial.done(START, &leases[0]);
            let long = Settlement { delay: Some(secs(20)), ..Settlement::new(leases[1].id, Outcome::done()) };
            trial.settle_one(START, long);
            trial.end(START, &leases[2], Outcome::Retry { at: at(30) });
            let next = Some(at(40));
            trial.end(START, &leases[3], Outcome::Done { visit: full_visit(), next });
            trial.end(START, &leases[4], Outcome::Release);
            trial.steer_queue(START, "d.example", QueueChange::Block(at(50)));
            let later = Some(Statement::Next(at(60)));
            trial.admit_one(START, Candidate { statement: later, ..trial.get("http://e.example/") });
        },
        |trial, ()| {
            let next = |key| trial.queue(at(1), key).next_fetch;
            assert_eq!((next("a.example"), next("b.example")), (Some(at(10)), Some(at(20))));
            assert_eq!(next("f.example"), Some(at(20)), "with its group");
            assert_eq!(trial.queue(at(1), "d.example").state, QueueState::Blocked);
            assert_eq!(trial.url(at(1), "http://c.example/1").due, Some(at(30)));
            assert_eq!(trial.url(at(1), "http://d.example/1").due, Some(at(40)));
            assert_eq!(trial.leases(at(9), 99), []);
            let mut served = Vec::new();
            for now in [10, 20, 30, 40, 50, 60] {
                for lease in trial.leases(at(now), 99) {
                    served.push((now, lease.key.to_string()));
                }
            }
            let expected = [(10, "a"), (10, "c"), (20, "b"), (20, "f"), (50, "d"), (60, "e")];
            let expected: Vec<_> = expected.map(|(now, host)| (now, format!("{host}.example"))).into();
            served.sort();
            assert_eq!(served, expected);
        },
    );
}

/// Terms survive, and who set them.
pub fn terms_survive_with_who_set_them<H: Harness>(harness: H) {
    survives(
        harness,
        "",
        |trial| {
            trial.terms(
                START,
                "a.example",
                Terms { precedence: Some(1), delay: Some(secs(7)), ..Terms::default() },
            );
            let terms = Terms { queue_budget: Some(5), group: Some(Arc::from("g")), ..Terms::default() };
            trial.add_candidates(START, &[Candidate { terms, ..trial.get("http://a.example/1") }]);
            trial.steer_queue(START, "b.example", QueueChange::Retire);
        },
        |trial, ()| {
            let terms = Terms { precedence: Some(9), queue_budget: Some(6), ..Terms::default() };
            trial.add_candidates(at(1), &[Candidate { terms, ..trial.get("http://a.example/2") }]);
            let queue = trial.queue(at(1), "a.example");
            assert_eq!((queue.precedence, queue.delay), (1, secs(7)));
            assert_eq!((queue.budget, queue.group.as_deref()), (Some(6), Some("g")));
            assert_eq!(trial.queue(at(1), "b.example").state, QueueState::Retired);
        },
    );
}

/// What was spent survives, and a queue over its budget stays so.
pub fn budgets_survive<H: Harness>(harness: H) {
    survives(
        harness,
        "delay=0 queue_budget=2 error_penalty=1",
        |trial| {
            trial.add(START, &pages("a", 3));
            trial.add(START, &pages("b", 3));
            let lease = trial.one(START);
            trial.end(START, &lease, Outcome::Retry { at: START });
            assert_eq!(trial.one(START).request.url, "http://b.example/1");
        },
        |trial, ()| {
            let queue = trial.queue(at(1), "a.example");
            assert_eq!((queue.state, queue.spent, queue.errors), (QueueState::Retired, 2, 1));
            let queue = trial.queue(at(1), "b.example");
            assert_eq!((queue.spent, queue.balance, queue.latest_cost), (1, 2999, 1));
            trial.set(at(1), "queue_budget", "3");
            assert_eq!(trial.one(at(1)).request.url, "http://a.example/1");
        },
    );
}

/// Page records, notes and dead letters survive whole.
pub fn page_records_notes_and_dead_letters_survive<H: Harness>(harness: H) {
    survives(
        harness,
        "delay=0",
        |trial| {
            trial.add(START, &pages("a", 2));
            let lease = trial.one(START);
            let mut done =
                Settlement::new(lease.id, Outcome::Done { visit: full_visit(), next: Some(at(9)) });
            let note = |key: &str, times, expires| NoteWrite {
                key: key.to_owned(),
                value: Some([0, 255].repeat(times)),
                expires,
            };
            done.notes = vec![
                note("brief", 1, Some(at(5))),
                note("gone", 1, None),
                note("kept", 1, None),
                note("long", 500, None),
                note("long and brief", 500, Some(at(5))),
                note("long and gone", 500, None),
            ];
            trial.settle_one(START, done);
            trial.note(START, "gone", None, None);
            trial.note(START, "long and gone", None, None);
            trial.dead(START, &trial.one(START), "410 Gone");
        },
        |trial, ()| {
            let record =
                PageRecord { visited: START, visit: full_visit(), visits: 1, changes: 0, next: Some(at(9)) };
            assert_eq!(trial.url(at(1), "http://a.example/1").page.as_deref(), Some(&record));
            let keys = |now| -> Vec<_> { trial.notes(now, "", 9).into_iter().map(|note| note.key).collect() };
            assert_eq!(keys(at(4)), ["brief", "kept", "long", "long and brief"]);
            assert_eq!(keys(at(5)), ["kept", "long"]);
            assert_eq!(trial.notes(at(5), "", 9)[0].value, [0, 255]);
            assert_eq!(trial.notes(at(5), "", 9)[1].value, [0, 255].repeat(500));
            let dead = trial.dead_letters(at(5), 9);
            assert_eq!((dead.len(), &*dead[0].reason, dead[0].at), (1, "410 Gone", START));
            assert_eq!(trial.one(at(9)).page.as_deref(), Some(&record));
        },
    );
}

/// Counts of retries and deliveries survive, and the reasons why URLs ended.
pub fn counts_and_reasons_survive<H: Harness>(harness: H) {
    survives(
        harness,
        "delay=0 lease=10s",
        |trial| {
            trial.add(START, &["http://a.example/", "http://b.example/", "http://c.example/"]);
            let leases = trial.leases(START, 3);
            trial.end(START, &leases[0], Outcome::Retry { at: START });
            trial.end(START, &leases[1], Outcome::Disregard { reason: "robots.txt".to_owned() });
            trial.dead(START, &leases[2], "404");
            trial.one(START);
        },
        |trial, ()| {
            let reason = |url| trial.url(at(1), url).reason;
            assert_eq!(reason("http://b.example/").as_deref(), Some("robots.txt"));
            assert_eq!(reason("http://c.example/").as_deref(), Some("404"));
            let lease = trial.one(at(10));
            assert_eq!((lease.delivery, lease.retries), (2, 1));
        },
    );
}

/// The crawl survives: its key, its settings, its pause, when it started.
pub fn the_crawl_survives_with_its_settings<H: Harness>(harness: H) {
    survives(
        harness,
        "lease=7s order=lifo queue_budget=77 max_time=100s",
        |trial| {
            trial.set(at(1), "concurrency", "9");
            trial.steer_crawl(at(1), CrawlChange::Pause);
            trial.report(at(1))
        },
        |trial, before| {
            assert_eq!(trial.report(at(2)), before);
            assert_eq!((before.state, before.key), (CrawlState::Paused, IdentityKey::from_seed(7)));
            trial.steer_crawl(at(2), CrawlChange::Resume);
            assert_eq!(trial.report(at(100)).state, CrawlState::Finished("max_time".to_owned()));
        },
    );
}

/// A crawl that was finished or deleted stays so.
pub fn the_end_of_a_crawl_survives<H: Harness>(mut harness: H) {
    for crash in [false, true] {
        let store = harness.open();
        let [over, gone] = ["over", "gone"].map(|name| Trial::named(&harness, store.clone(), name, 1, ""));
        over.steer_crawl(START, CrawlChange::Finish("seen enough".to_owned()));
        gone.add(START, &pages("a", 1));
        gone.steer_crawl(START, CrawlChange::Delete);
        drop((over, gone, store));
        let Some(store) = harness.reopen(crash) else {
            eprintln!("skipped: this store keeps nothing");
            return;
        };
        let error = harness.block_on(store.stats("gone", START)).expect_err("it is deleted");
        assert_eq!(error.kind(), crate::store::ErrorKind::NotFound);
        let over = Trial::named(&harness, store, "over", 1, "");
        assert_eq!(over.report(START).state, CrawlState::Finished("seen enough".to_owned()));
    }
}

/// Time does not go back with the process: an earlier `now` counts as the latest the store has acted on.
pub fn time_does_not_go_back<H: Harness>(harness: H) {
    survives(
        harness,
        "lease=60s",
        |trial| {
            trial.add(at(100), &pages("a", 1));
        },
        |trial, ()| assert_eq!(trial.one(START).deadline, at(160)),
    );
}

/// A job goes on after it was interrupted, and finishes.
pub fn jobs_go_on<H: Harness>(harness: H) {
    const MANY: usize = 12_000;
    survives(
        harness,
        "",
        |trial| {
            let urls = pages("a", MANY);
            trial.add(START, &urls);
            trial.steer_queue(START, "a.example", QueueChange::Purge(Some(Pattern::new("*7"))));
        },
        |trial, ()| {
            trial.finish_jobs(at(1));
            assert_eq!(trial.stats(at(1)).urls_in(UrlState::Pending), (MANY - MANY / 10) as u64);
        },
    );
}

/// So do jobs that forget, fetch again, or forget pages.
pub fn jobs_over_many_urls_go_on<H: Harness>(harness: H) {
    const MANY: usize = 5000;
    survives(
        harness,
        "delay=0 concurrency=0",
        |trial| {
            trial.add(START, &pages("a", MANY));
            let done = |lease: &Lease| {
                Settlement::new(lease.id, Outcome::Done { visit: visit(b"1"), next: Some(at(900)) })
            };
            let leases = trial.leases(START, MANY);
            trial.settle(START, leases.iter().map(done).collect());
            let change = |pattern: &str, change| {
                let filter = UrlFilter { key: None, pattern: Some(Pattern::new(pattern)) };
                trial.steer(at(2), Steer::Urls(filter, change));
            };
            change("*7", UrlsChange::Forget);
            change("*5", UrlsChange::Revisit);
            change("*3", UrlsChange::ForgetPages(at(1)));
        },
        |trial, ()| {
            trial.finish_jobs(at(2));
            let stats = trial.stats(at(2));
            let tenth = MANY as u64 / 10;
            assert_eq!(stats.urls_in(UrlState::Pending), tenth);
            assert_eq!((stats.urls_in(UrlState::Done), stats.visits_waiting), (8 * tenth, 8 * tenth));
            let known = trial.known(at(2), None, None, None, 1000);
            let without_page = known.iter().filter(|url| url.page.is_none());
            assert_eq!(without_page.count() as u64, tenth);
        },
    );
}

/// The store tells what it found.
pub fn what_was_recovered_is_told<H: Harness>(harness: H) {
    survives(
        harness,
        "delay=0",
        |trial| {
            trial.add(START, &pages("a", 5));
            trial.done(START, &trial.one(START));
            trial.dead(START, &trial.one(START), "gone");
            trial.one(START);
        },
        |trial, ()| {
            let found = trial.stats(at(1)).recovered.expect("a store that keeps something says what");
            assert_eq!((found.pending, found.leased, found.seen, found.dead), (2, 1, 5, 1));
        },
    );
}

/// After a workload of everything, all that can be asked has the same answer as before.
pub fn everything_survives_a_workload<H: Harness>(mut harness: H) {
    for seed in 0..4 {
        let crash = seed % 2 == 1;
        let store = harness.open();
        let trial = Trial::new(&harness, store, "lease=8s delay=2s balance_replenish=4");
        let mut work = Workload::new(seed);
        for _ in 0..200 {
            work.step(&trial);
        }
        let now = work.now;
        trial.finish_jobs(now);
        let all = |trial: &Trial<'_, H>| {
            let mut urls = trial.known(now, None, None, None, 1000);
            urls.sort_by_key(|url| (url.identity, url.state, url.class, url.cost, url.due));
            let mut queues = trial.queues(now, None, 1000);
            queues.sort_by(|a, b| a.key.cmp(&b.key));
            let stats = crate::report::Stats {
                recovered: None,
                memory: None,
                disk: None,
                pressure: None,
                ..trial.stats(now)
            };
            (urls, queues, trial.live(now, 1000), trial.notes(now, "", 1000), stats, trial.report(now))
        };
        let before = all(&trial);
        drop(trial);
        let Some(store) = harness.reopen(crash) else {
            eprintln!("skipped: this store keeps nothing");
            return;
        };
        let trial = Trial::new(&harness, store, "");
        let after = all(&trial);
        assert_eq!(after.0, before.0, "seed {seed}: URLs");
        assert_eq!(after.1, before.1, "seed {seed}: queues");
        assert_eq!(after.2, before.2, "seed {seed}: leases");
        assert_eq!(after.3, before.3, "seed {seed}: notes");
        assert_eq!((after.4, after.5), (before.4, before.5), "seed {seed}: counts and crawl");
    }
}
