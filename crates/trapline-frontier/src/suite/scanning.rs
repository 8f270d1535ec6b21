//! What can be listed on every store: the right rows, each exactly once, in pages of any size.

use std::collections::BTreeSet;

use trapline_core::{Terms, Timestamp};

use super::Harness;
use super::trial::{START, Trial, at, pages, secs};
use super::workload::Workload;
use crate::report::{CrawlState, Query, QueueState, Rows, Scan, UrlState};
use crate::verbs::{CrawlChange, Outcome, QueueChange};

/// A crawl with a queue in each state, named after it, at `at(10)`.
fn one_queue_in_each_state<'h, H: Harness>(
    harness: &'h H,
    store: super::Arc<dyn super::Store>,
) -> Trial<'h, H> {
    let trial = Trial::new(harness, store, "delay=0 lease=1000s");
    let only = |key: &str| crate::verbs::Want { keys: Some(vec![key.to_owned()]), ..5.into() };
    let lease = |host: &str| trial.leases(at(10), only(&format!("{host}.example"))).remove(0);
    for host in ["retired", "blocked", "empty", "busy", "snoozed", "ready", "inactive"] {
        trial.add(START, &pages(host, 2));
    }
    trial.steer_queue(at(10), "retired.example", QueueChange::Retire);
    trial.steer_queue(at(10), "blocked.example", QueueChange::Block(at(100)));
    trial.steer_queue(at(10), "empty.example", QueueChange::Purge(None));
    lease("busy");
    trial.done(at(10), &lease("ready"));
    trial.terms(at(10), "snoozed.example", Terms { delay: Some(secs(90)), ..Terms::default() });
    trial.done(at(10), &lease("snoozed"));
    trial.finish_jobs(at(10));
    trial
}

/// Queues are listed by their state, and each says in words why it is as it is.
pub fn queues_are_listed_by_state_with_reasons<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = one_queue_in_each_state(&harness, store);
    for state in QueueState::ALL {
        let queues = trial.queues(at(10), Some(state), 10);
        assert_eq!(queues.len(), 1, "{state}");
        assert_eq!(*queues[0].key, format!("{state}.example"));
        assert_eq!(queues[0].state, state);
        assert!(queues[0].why.contains(' '), "{state}: a reason in words, not `{}`", queues[0].why);
        assert_eq!(trial.stats(at(10)).queues_in(state), 1, "{state}");
    }
    assert_eq!(trial.queues(at(10), None, 10).len(), 7);
}

/// A ready queue of a paused or finished crawl says that the crawl is the reason.
pub fn reasons_name_a_crawl_that_does_not_run<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "");
    trial.add(START, &pages("a", 1));
    trial.steer_crawl(START, CrawlChange::Pause);
    let why = trial.queue(START, "a.example").why;
    assert!(why.contains("paused"), "{why}");
    trial.steer_crawl(START, CrawlChange::Finish("seen enough".to_owned()));
    let why = trial.queue(START, "a.example").why;
    assert!(why.contains("finished") && why.contains("seen enough"), "{why}");
}

/// Queues asked for by name come as they are asked for, the unknown left out.
pub fn named_queues_leave_out_the_unknown<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = one_queue_in_each_state(&harness, store);
    let names = ["busy.example", "unknown.example", "empty.example", ""];
    let keys = Some(names.map(str::to_owned).to_vec());
    let found = |state| match trial.scan(at(10), &Scan::new(Query::Queues { keys: keys.clone(), state })).rows
    {
        Rows::Queues(queues) => queues.iter().map(|queue| queue.key.to_string()).collect::<BTreeSet<_>>(),
        rows => panic!("{rows:?}"),
    };
    assert_eq!(found(None), ["busy.example", "empty.example"].map(str::to_owned).into());
    assert_eq!(found(Some(QueueState::Busy)), ["busy.example".to_owned()].into());
    assert_eq!(found(Some(QueueState::Ready)), BTreeSet::new());
    assert!(trial.find_queue(at(10), "unknown.example").is_none(), "asking does not make it");
}

/// URLs are listed by queue, pattern and state; every filter given must fit.
pub fn urls_are_listed_by_key_pattern_and_state<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    let urls = [
        "http://a.example/x/1",
        "http://a.example/y/2",
        "http://b.example/x/1",
        "http://b.example/x/%25_",
        "http://b.example/ü*",
    ];
    trial.add(START, &urls);
    let lease = trial.one(START);
    trial.done(START, &lease);
    let found = |key, pattern, state| {
        let mut found: Vec<_> = trial
            .known(START, key, pattern, state, 2)
            .into_iter()
            .map(|report| report.request.expect("what is known has a request"))
            .map(|request| urls.iter().position(|url| *url == request.url).expect("one of these"))
            .collect();
        found.sort_unstable();
        found
    };
    assert_eq!(found(None, None, None), [0, 1, 2, 3, 4]);
    assert_eq!(found(Some("a.example"), None, None), [0, 1]);
    assert_eq!(found(Some("unknown.example"), None, None), []);
    assert_eq!(found(None, Some("*/x/*"), None), [0, 2, 3]);
    assert_eq!(found(None, Some("/x/"), None), [], "the whole URL must match");
    assert_eq!(found(None, Some("*%*"), None), [3], "% is no wildcard");
    assert_eq!(found(None, Some("*_*"), None), [3], "nor is _");
    assert_eq!(found(None, Some("*ü*"), None), [4]);
    assert_eq!(found(None, Some("*X*"), None), []);
    assert_eq!(found(None, Some("http://b.example/x/1"), None), [2]);
    assert_eq!(found(None, None, Some(UrlState::Done)), [0]);
    assert_eq!(found(None, None, Some(UrlState::Unknown)), []);
    assert_eq!(found(Some("a.example"), Some("*"), Some(UrlState::Pending)), [1]);
}

/// An exact list is answered in its order, the unknown and the repeated among it.
pub fn an_exact_list_is_answered_in_its_order<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    trial.add(START, &pages("a", 2));
    trial.done(START, &trial.one(START));
    let list = ["http://a.example/2", "http://a.example/9", "http://a.example/1", "http://a.example/2"]
        .map(|url| trial.get(url).identity);
    let Rows::Urls(urls) = trial.scan(START, &Scan::new(Query::UrlList(list.to_vec()))).rows else {
        panic!("rows of another kind")
    };
    let identities: Vec<_> = urls.iter().map(|url| url.identity).collect();
    assert_eq!(identities, list);
    let states: Vec<_> = urls.iter().map(|url| url.state).collect();
    assert_eq!(states, [UrlState::Pending, UrlState::Unknown, UrlState::Done, UrlState::Pending]);
    assert_eq!((&urls[1].request, &urls[1].key, urls[1].due), (&None, &None, None));
    let empty = trial.scan(START, &Scan::new(Query::UrlList(Vec::new())));
    assert_eq!(empty.rows, Rows::Urls(Vec::new()));
}

/// A due time is shown as long as it lies ahead.
pub fn what_is_due_later_says_when<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    let url = "http://a.example/1";
    trial.add(START, &[url]);
    let lease = trial.one(START);
    trial.end(START, &lease, Outcome::Retry { at: at(9) });
    assert_eq!(trial.url(at(8), url).due, Some(at(9)));
    assert_eq!(trial.url(at(9), url).due, None);
}

/// Live leases are listed, and no others.
pub fn live_leases_are_listed<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0 lease=10s");
    for host in ["a", "b", "c"] {
        trial.add(START, &pages(host, 1));
    }
    let leases = trial.leases(at(1), 3);
    trial.done(at(2), &leases[1]);
    trial.end(at(2), &leases[2], Outcome::Renew { lease: secs(100) });
    let live = trial.live(at(3), 10);
    let ids: Vec<_> = live.iter().map(|lease| lease.id).collect();
    assert_eq!(ids, [leases[0].id, leases[2].id]);
    assert_eq!((live[0].granted, live[0].deadline, &*live[0].key), (at(1), at(11), "a.example"));
    assert_eq!(trial.live(at(11), 10).len(), 1);
}

/// A cursor walks over everything exactly once, whatever the size of the pages and of the filter.
pub fn cursors_walk_over_everything_once<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::named(&harness, store, "suite", 4, "lease=10s");
    let mut work = Workload::new(1);
    for _ in 0..400 {
        work.step(&trial);
    }
    let now = work.now;
    for number in 0..23 {
        trial.note(now, &format!("n{number}"), Some(b"x"), None);
    }
    trial.finish_jobs(now);
    /// Pages of 1 and 7 must give the rows of one large page, in the same order.
    fn check<T: PartialEq + std::fmt::Debug>(what: &str, walk: impl Fn(usize) -> Vec<T>) {
        let whole = walk(10_000);
        assert!(whole.len() > 7 || what == "dead letters" || what == "leases", "{what}: {}", whole.len());
        for limit in [1, 7] {
            assert_eq!(walk(limit), whole, "{what} in pages of {limit}");
        }
    }
    trial.steer_queue(now, "z.example", QueueChange::Retire);
    trial.steer_queue(now, "y.example", QueueChange::Retire);
    check("queues", |limit| trial.queues(now, None, limit));
    check("URLs", |limit| trial.known(now, None, None, None, limit));
    check("URLs that match", |limit| trial.known(now, None, Some("*1*"), None, limit));
    check("leases", |limit| trial.live(now, limit));
    check("dead letters", |limit| trial.dead_letters(now, limit));
    check("notes", |limit| trial.notes(now, "n", limit));
    let urls = trial.known(now, None, None, None, 7);
    let distinct: BTreeSet<_> = urls.iter().map(|url| url.identity).collect();
    assert!(distinct.len() <= urls.len());
    let keys: BTreeSet<_> = trial.queues(now, None, 1).into_iter().map(|queue| queue.key).collect();
    assert_eq!(keys.len(), 8);
}

/// The crawl is one row, with everything that was fixed and everything that was set.
pub fn the_crawl_describes_itself<H: Harness>(mut harness: H) {
    let store = harness.open();
    let text = "lease=7s delay=250ms concurrency=9 order=lifo pace=claim hold_queues=false balance_replenish=8 \
                queue_budget=77 queue_budget_period=1d cost=wag class=depth error_penalty=2 max_deliveries=0 \
                pause_at_finish=true max_urls=1000 max_bytes=99999 max_time=3d max_depth=12 max_queue_length=55 \
                admission=blocked";
    let trial = Trial::named(&harness, store, "all of it", 12, text);
    let report = trial.report(at(5));
    assert_eq!((&*report.name, report.partitions, report.started), ("all of it", 12, START));
    assert_eq!(report.key, trapline_core::IdentityKey::from_seed(7));
    assert_eq!(report.settings, super::trial::settings(text));
    assert_eq!((report.state, report.exhausted), (CrawlState::Running, true));
}

/// A cursor from nowhere finds nothing, and no error.
pub fn a_cursor_past_the_end_finds_nothing<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0 concurrency=0");
    trial.add(START, &pages("a", 3));
    let leases = trial.leases(START, 2);
    trial.dead(START, &leases[0], "gone");
    trial.note(START, "n", Some(b"x"), None);
    let queries = [
        Query::Queues { keys: None, state: None },
        Query::Urls { key: None, pattern: None, state: None },
        Query::Leases,
        Query::Dead,
        Query::Notes { prefix: String::new() },
    ];
    for query in queries {
        for cursor in [1 << 32, i64::MAX as u64, u64::MAX] {
            let page = trial.scan(START, &Scan { cursor: Some(cursor), ..Scan::new(query.clone()) });
            let empty = match &page.rows {
                Rows::Queues(rows) => rows.is_empty(),
                Rows::Urls(rows) => rows.is_empty(),
                Rows::Leases(rows) => rows.is_empty(),
                Rows::Dead(rows) => rows.is_empty(),
                Rows::Notes(rows) => rows.is_empty(),
                rows => panic!("{rows:?}"),
            };
            assert!(empty && page.cursor.is_none(), "{query:?} from {cursor}: {page:?}");
        }
    }
}

/// A page of no rows would never end; it has one.
pub fn a_page_has_room_for_one_row_at_least<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "");
    trial.add(START, &pages("a", 2));
    let query = Query::Urls { key: None, pattern: None, state: None };
    let page = trial.scan(START, &Scan { limit: 0, ..Scan::new(query) });
    let Rows::Urls(urls) = page.rows else { panic!("rows of another kind") };
    assert_eq!(urls.len(), 1);
    assert!(page.cursor.is_some());
    assert_eq!(trial.known(Timestamp::ZERO, None, None, None, usize::MAX).len(), 2);
}
