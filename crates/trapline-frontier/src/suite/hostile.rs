//! What pages, callers and operators may throw at every store: strange text and huge numbers come back as they were or
//! are refused clearly, and nothing panics.

use std::sync::Arc;
use std::time::Duration;

use trapline_core::{Candidate, KEY_BYTES_MAX, Request, Statement, Terms, Timestamp, URL_BYTES_MAX};

use super::Harness;
use super::trial::{START, Trial, at, pages, secs};
use crate::pattern::Pattern;
use crate::report::{Query, QueueState, Scan, UrlState};
use crate::store::ErrorKind;
use crate::verbs::{
    Admission, Answer, CrawlChange, DeadChange, DeadLetters, LeaseId, Outcome, QueueChange, Refusal,
    Settlement, Steer, UrlChange, Visit, Want,
};

/// Strings that have broken programs.
const STRANGE: [&str; 20] = [
    "nul\0inside",
    "\u{1}\u{7}\u{1b}[31m\u{7f}\u{85}",
    "tab\tnew\nline\r\n",
    "'; DROP TABLE urls; --",
    "\"quoted\" \\ `ticks` $(echo) ${x} %s %n {0}",
    "{\"json\": [null]}",
    "👩‍👩‍👧‍👦🏳️‍🌈",
    "\u{202e}right to left\u{2066}",
    "עברית العربية",
    "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳",
    "e\u{301} is not é",
    "\u{feff}bom \u{200b}zero width\u{2028}\u{2029}",
    "\u{10ffff}\u{fffd}\u{e000}",
    "Ⱥ İıſ ß ǆ",
    "../../etc/passwd",
    "<script>alert(1)</script>&amp;",
    "%00%ff%zz",
    "*[a-z]?_%",
    "null",
    " ",
];

/// Strange text in every field of a request comes back as it was.
pub fn strange_text_in_a_request_comes_back<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0 concurrency=0");
    let request = |text: &str| Request {
        method: text.to_owned().into(),
        headers: vec![(text.to_owned(), text.as_bytes().to_vec())],
        cookies: vec![(text.to_owned(), text.to_owned())],
        body: text.as_bytes().to_vec(),
        metadata: [(text.to_owned(), vec![text.to_owned(), String::new(), text.to_owned()])].into(),
        opaque: text.as_bytes().to_vec(),
        via: Some(text.to_owned()),
        hop_path: text.to_owned(),
        redirects: vec![text.to_owned()],
        seed: Some(text.to_owned()),
        fingerprint: Some(text.as_bytes().to_vec()),
        ..Request::get(format!("http://a.example/{text}?{text}#{text}"))
    };
    let mut expected = Vec::new();
    for text in STRANGE {
        let answer = trial.admit_one(START, trial.candidate(request(text)));
        if answer == Admission::Added {
            expected.push(request(text));
        } else {
            assert_eq!(answer, Admission::Refused(Refusal::Malformed), "{text:?}");
        }
    }
    assert!(expected.len() >= STRANGE.len() / 2, "most of it is only text");
    let leases = trial.leases(START, usize::MAX);
    for (lease, expected) in leases.iter().zip(&expected) {
        assert_eq!(*lease.request, *expected);
        let link = Candidate { ..trial.get("http://a.example/link") };
        let mut settlement = Settlement::new(lease.id, Outcome::Dead { reason: expected.hop_path.clone() });
        settlement.links = vec![link];
        assert_eq!(trial.settle_one(START, settlement).answer, Answer::Dead);
    }
    assert_eq!(leases.len(), expected.len());
    expected.sort_by(|a, b| a.url.cmp(&b.url));
    for (dead, expected) in trial.dead_letters(START, 7).iter().zip(&expected) {
        assert_eq!((&*dead.request, &dead.reason), (expected, &expected.hop_path));
    }
}

/// Strange text names queues and groups; each is another one.
pub fn strange_text_names_queues_and_groups<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    let mut added = 0;
    for text in STRANGE {
        let terms = Terms { group: Some(Arc::from(text)), ..Terms::default() };
        let url = format!("http://a.example/{added}");
        let answer = trial.admit_one(START, Candidate { terms, ..trial.slot(&url, text) });
        if answer == Admission::Refused(Refusal::Malformed) {
            continue;
        }
        assert_eq!(answer, Admission::Added, "{text:?}");
        added += 1;
        let queue = trial.queue(START, text);
        assert_eq!((&*queue.key, queue.group.as_deref()), (text, Some(text)));
        assert_eq!(trial.known(START, Some(text), None, None, 9).len(), 1, "{text:?}");
        trial.steer_queue(START, text, QueueChange::Block(at(5)));
        assert_eq!(trial.queue(START, text).state, QueueState::Blocked);
        trial.steer_queue(START, text, QueueChange::Unblock);
        let keys = Some(vec![text.to_owned()]);
        let lease = trial.leases(START, Want { keys, ..Want::urls(9) });
        assert_eq!(lease.len(), 1, "{text:?}");
        assert_eq!(&*lease[0].key, text);
    }
    assert!(added >= STRANGE.len() / 2);
    assert_eq!(trial.queues(START, None, 7).len(), added);
}

/// Strange text names crawls, or is refused with a sentence.
pub fn strange_text_names_crawls<H: Harness>(mut harness: H) {
    let store = harness.open();
    let mut opened = 0;
    for text in STRANGE {
        let builder = crate::frontier::Frontier::builder(text).partitions(1);
        match harness.block_on(builder.open_shared(store.clone(), START)) {
            Ok(_) => {
                let trial = Trial::named(&harness, store.clone(), text, 1, "");
                trial.add(START, &pages("a", 1));
                assert_eq!(&*trial.report(START).name, text);
                assert_eq!(&*trial.one(START).crawl, text);
                assert_eq!(trial.stats(START).urls.iter().sum::<u64>(), 1, "{text:?}");
                opened += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Invalid, "{text:?}: {error}");
                assert!(error.to_string().len() > 20, "{text:?}: {error}");
            }
        }
    }
    assert!(opened >= STRANGE.len() / 2);
}

/// Strange text in notes, validators, reasons and patterns comes back as it was.
pub fn strange_text_in_notes_and_visits_comes_back<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    for (number, text) in STRANGE.iter().enumerate() {
        trial.note(START, text, Some(text.as_bytes()), None);
        let notes = trial.notes(START, text, 9);
        assert!(notes.iter().any(|note| note.key == *text && note.value == text.as_bytes()), "{text:?}");
        let url = format!("http://a.example/{number}");
        trial.add(START, &[&url]);
        let lease = trial.one(START);
        let visit = Visit {
            etag: Some((*text).to_owned()),
            last_modified: Some((*text).to_owned()),
            ..Visit::default()
        };
        trial.end(START, &lease, Outcome::Done { visit: visit.clone(), next: None });
        let page = trial.url(START, &url).page.expect("a page record");
        assert_eq!(page.visit, visit);
        trial.known(START, Some(text), Some(text), None, 9);
        trial.steer_queue(START, "a.example", QueueChange::Purge(Some(Pattern::new(*text))));
    }
    assert_eq!(trial.notes(START, "", 7).len(), STRANGE.len());
    trial.steer_crawl(START, CrawlChange::Finish(STRANGE[0].to_owned()));
    let finished = crate::report::CrawlState::Finished(STRANGE[0].to_owned());
    assert_eq!(trial.report(START).state, finished);
}

/// The longest URL and the longest key are taken; longer ones are refused as malformed, also past the handle.
pub fn what_is_too_long_is_refused<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0 concurrency=0");
    let start = "http://a.example/";
    let url = |bytes: usize| start.to_owned() + &"a".repeat(bytes - start.len());
    let longest = trial.get(&url(URL_BYTES_MAX));
    trial.add_candidates(START, std::slice::from_ref(&longest));
    assert_eq!(trial.one(START).request.url.len(), URL_BYTES_MAX);
    let refused = [Admission::Refused(Refusal::Malformed)];
    let too_long = Request::get(url(URL_BYTES_MAX + 1));
    let by_handle = trial.wait(trial.frontier.admit(START, [too_long.clone()])).expect("admit");
    assert_eq!(by_handle, refused);
    let other = trial.get("http://b.example/");
    let past_the_handle = Candidate { request: Arc::new(too_long), ..other.clone() };
    assert_eq!(trial.admit(START, &[past_the_handle]), refused);
    let key = |bytes: usize| Candidate { key: Arc::from("k".repeat(bytes)), ..other.clone() };
    assert_eq!(trial.admit(START, &[key(KEY_BYTES_MAX + 1)]), refused);
    assert_eq!(trial.admit(START, &[key(0)]), refused);
    assert_eq!(trial.admit(START, &[key(KEY_BYTES_MAX)]), [Admission::Added]);
    assert_eq!(trial.queue(START, &"k".repeat(KEY_BYTES_MAX)).pending, 1);
}

/// A large request is a request.
pub fn a_large_request_comes_back<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "");
    let request = Request {
        body: (0..1_000_000_u32).map(|number| (number % 251) as u8).collect(),
        metadata: (0..500).map(|number| (number.to_string(), vec!["x".repeat(100); 3])).collect(),
        headers: (0..500).map(|number| (format!("h{number}"), vec![b'v'; 200])).collect(),
        ..Request::get("http://a.example/large")
    };
    trial.add_candidates(START, &[trial.candidate(request.clone())]);
    assert_eq!(*trial.one(START).request, request);
}

/// The ends of time and of durations are ordinary values that do not wrap around.
pub fn the_end_of_time_does_not_wrap_around<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "concurrency=0 delay=0");
    trial.add(START, &pages("a", 6));
    let leases = trial.leases(START, Want { lease: Some(Duration::MAX), ..Want::urls(5) });
    assert_eq!(leases[0].deadline, Timestamp::MAX);
    let ends = [
        Outcome::Retry { at: Timestamp::MAX },
        Outcome::Done { visit: Visit { bytes: u64::MAX, ..Visit::default() }, next: Some(Timestamp::MAX) },
        Outcome::Renew { lease: Duration::MAX },
    ];
    for (lease, outcome) in leases.iter().zip(ends) {
        assert_ne!(trial.end(START, lease, outcome), Answer::Stale);
    }
    let visit = Visit { bytes: u64::MAX, ..Visit::default() };
    trial.end(START, &leases[3], Outcome::Done { visit, next: None });
    assert_eq!(trial.stats(START).bytes, u64::MAX);
    let mut settlement = Settlement::new(leases[4].id, Outcome::done());
    settlement.delay = Some(Duration::MAX);
    trial.settle_one(START, settlement);
    assert_eq!(trial.queue(at(1), "a.example").next_fetch, Some(Timestamp::MAX));
    assert_eq!(trial.leases(at(1_000_000_000), 9), []);
    trial.note(START, "k", Some(b"v"), Some(Timestamp::MAX));
    assert_eq!(trial.notes(at(1_000_000_000), "", 9).len(), 1);
    let later = Some(Statement::Next(Timestamp::MAX));
    trial.admit_one(START, Candidate { statement: later, ..trial.get("http://b.example/") });
    trial.steer_queue(START, "c.example", QueueChange::Block(Timestamp::MAX));
    assert_eq!(trial.queue(START, "c.example").state, QueueState::Blocked);
    // Now the end has come: everything is due.
    let end = Timestamp::MAX;
    assert_eq!(trial.queue(end, "c.example").state, QueueState::Empty);
    assert_eq!(trial.notes(end, "", 9), []);
    trial.leases(end, 2);
    trial.stats(end);
    trial.add(end, &["http://d.example/"]);
    assert_eq!(trial.leases(START, 1).len(), 1, "and work goes on");
}

/// Settings may be as large as their kind.
pub fn settings_may_be_huge<H: Harness>(mut harness: H) {
    let store = harness.open();
    let most = u64::MAX.to_string();
    let forever = format!("{most}ms");
    for (number, (name, value)) in [
        ("lease", &*forever),
        ("delay", &forever),
        ("queue_budget_period", &forever),
        ("queue_budget_period", "1ms"),
        ("max_time", &forever),
        ("concurrency", "4294967295"),
        ("balance_replenish", &most),
        ("queue_budget", &most),
        ("error_penalty", &most),
        ("max_deliveries", "4294967295"),
        ("max_bytes", &most),
        ("max_depth", "4294967295"),
        ("max_queue_length", &most),
    ]
    .into_iter()
    .enumerate()
    {
        let trial = Trial::named(&harness, store.clone(), &number.to_string(), 1, &format!("{name}={value}"));
        trial.set(START, name, value);
        assert_eq!(trial.report(START).settings.get(name).as_deref(), Some(value), "{name}");
        trial.add(START, &pages("a", 3));
        let lease = trial.one(at(1));
        assert_eq!(trial.end(at(1), &lease, Outcome::Retry { at: at(2) }), Answer::Retry, "{name}");
        trial.leases(at(3), 9);
        trial.stats(at(u64::from(u32::MAX)));
        trial.queue(at(u64::from(u32::MAX)), "a.example");
    }
}

/// Terms and prices may be as large as their kind.
pub fn terms_and_costs_may_be_huge<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    let priced =
        |url: &str, cost, class| Candidate { cost: Some(cost), class: Some(class), ..trial.get(url) };
    let batch = [
        priced("http://a.example/1", u32::MAX, 255),
        priced("http://a.example/2", u32::MAX, 0),
        priced("http://a.example/3", 0, 255),
    ];
    trial.add_candidates(START, &batch);
    let lease = trial.one(START);
    assert_eq!((&*lease.request.url, lease.cost), ("http://a.example/2", u32::MAX));
    let queue = trial.queue(START, "a.example");
    assert_eq!((queue.spent, queue.latest_cost), (u64::from(u32::MAX), u32::MAX));
    assert_eq!(queue.balance, 3000 - i64::from(u32::MAX));
    trial.end(START, &lease, Outcome::Release);
    let huge = Terms {
        precedence: Some(255),
        queue_budget: Some(u64::MAX - 1),
        balance_replenish: Some(u64::MAX),
        delay: Some(Duration::MAX),
        concurrency: Some(u32::MAX),
        group: Some(Arc::from("g".repeat(1000))),
    };
    trial.terms(START, "a.example", huge);
    let queue = trial.queue(START, "a.example");
    assert_eq!((queue.precedence, queue.budget), (255, Some(u64::MAX - 1)));
    assert_eq!((queue.concurrency, queue.group.map(|group| group.len())), (u32::MAX, Some(1000)));
    let leases = trial.leases(START, 9);
    assert_eq!(leases.len(), 3);
    trial.done(START, &leases[0]);
    assert_eq!(trial.queue(START, "a.example").next_fetch, Some(Timestamp::MAX));
}

/// Things that make no sense are harmless.
pub fn nonsense_is_harmless<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "");
    let nobody = trapline_core::Identity(0);
    for steer in [
        Steer::Url(nobody, UrlChange::Forget),
        Steer::Url(nobody, UrlChange::Class(0)),
        Steer::Dead(DeadLetters::Url(nobody), DeadChange::Replay),
        Steer::Dead(DeadLetters::Queue("nobody".to_owned()), DeadChange::Purge),
        Steer::Dead(DeadLetters::All, DeadChange::Replay),
        Steer::Crawl(CrawlChange::Set(Vec::new())),
        Steer::Crawl(CrawlChange::Resume),
    ] {
        let steered = trial.steer(START, steer.clone());
        assert!(steered.affected <= 1, "{steer:?}: {steered:?}");
    }
    let want = Want {
        lease: Some(Duration::ZERO),
        keys: Some(vec![String::new()]),
        except: vec![String::new()],
        partitions: Some(vec![u32::MAX]),
        ..Want::urls(usize::MAX)
    };
    assert_eq!(trial.leases(START, want), []);
    for id in [0, u64::MAX] {
        let settlement = Settlement::new(LeaseId(id), Outcome::Renew { lease: Duration::MAX });
        assert_eq!(trial.settle_one(START, settlement).answer, Answer::Stale);
    }
    trial.scan(START, &Scan { limit: usize::MAX, ..Scan::new(Query::Jobs) });
    assert_eq!(trial.stats(START).urls, [0; 6]);
    trial.add(START, &pages("a", 1));
    trial.one(START);
}

/// A link of a page to itself, in any number, changes nothing.
pub fn a_page_may_link_to_itself_a_thousand_times<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    trial.add(START, &pages("a", 1));
    let lease = trial.one(START);
    let mut settlement = Settlement::new(lease.id, Outcome::Retry { at: at(5) });
    settlement.links = vec![trial.get("http://a.example/1"); 1000];
    let settled = trial.settle_one(START, settlement);
    assert_eq!(settled.links, vec![Admission::Known; 1000]);
    assert_eq!(trial.queue(START, "a.example").pending, 1);
}

/// A link that restates its own parent wins: it comes after.
pub fn a_page_may_restate_itself<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0 lease=10s");
    for (number, outcome) in [
        Outcome::done(),
        Outcome::Release,
        Outcome::Retry { at: at(5) },
        Outcome::Dead { reason: String::new() },
        Outcome::Disregard { reason: String::new() },
        Outcome::Renew { lease: secs(60) },
    ]
    .into_iter()
    .enumerate()
    {
        let url = format!("http://h{number}.example/");
        trial.add(START, &[&url]);
        let lease = trial.one(START);
        let mut settlement = Settlement::new(lease.id, outcome.clone());
        settlement.links = vec![Candidate { statement: Some(Statement::Next(at(100))), ..trial.get(&url) }];
        assert_eq!(trial.settle_one(START, settlement).links, [Admission::Restated]);
        assert_eq!(trial.url(START, &url).due, Some(at(100)), "{outcome:?}");
        assert_eq!(trial.end(START, &lease, Outcome::done()), Answer::Stale, "{outcome:?}");
    }
    assert_eq!(trial.stats(START).urls_in(UrlState::Pending), 6);
    assert_eq!(trial.leases(at(99), 9), []);
    assert_eq!(trial.leases(at(100), 9).len(), 6);
}

/// A store of many crawls, queues and notes with little in them is still a store.
pub fn many_small_things_are_kept<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::named(&harness, store, "suite", 256, "");
    let urls: Vec<_> = (0..3000).map(|number| format!("http://h{number}.example/")).collect();
    trial.add(START, &urls);
    assert_eq!(trial.queues(START, None, 700).len(), 3000);
    let leases = trial.leases(START, 5000);
    assert_eq!(leases.len(), 3000);
    let batch = leases.iter().map(|lease| Settlement::new(lease.id, Outcome::done())).collect();
    assert!(trial.settle(START, batch).iter().all(|settled| settled.answer == Answer::Done));
    assert_eq!(trial.stats(START).queues_in(QueueState::Empty), 3000);
}
