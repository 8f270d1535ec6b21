//! What every store makes of candidates: what it keeps of them, which of them are the same, and which it refuses.

use std::sync::Arc;

use trapline_core::{Candidate, Request, Statement, Terms};

use super::Harness;
use super::trial::{START, Trial, at};
use crate::report::UrlState;
use crate::verbs::{Admission, Answer, Outcome, Refusal, Want};

/// A request with something in every field.
pub(super) fn full_request(url: &str) -> Request {
    Request {
        url: url.to_owned(),
        method: "POST".into(),
        headers: vec![
            ("X-Binary".to_owned(), vec![0, 255, 128, b'\r', b'\n', 0xC3, 0x28]),
            ("accept".to_owned(), b"*/*".to_vec()),
            ("Accept".to_owned(), Vec::new()),
        ],
        cookies: vec![("id".to_owned(), "1; x".to_owned()), ("id".to_owned(), String::new())],
        body: (0..=255).collect(),
        metadata: [
            ("list".to_owned(), vec!["b".to_owned(), "a".to_owned(), "b".to_owned(), String::new()]),
            ("none".to_owned(), Vec::new()),
            (String::new(), vec!["ключ".to_owned()]),
        ]
        .into(),
        opaque: vec![0x80, 0x04, 0x00, 0xFF],
        priority: Some(-128),
        score: Some(0.1),
        depth: u32::MAX,
        depth_limit: Some(u32::MAX),
        via: Some("http://via.example/?q=1#f".to_owned()),
        hop_path: "LLEPR".to_owned(),
        redirects: vec!["http://r.example/1".to_owned(), "http://r.example/2".to_owned()],
        retries: u32::MAX,
        dont_filter: true,
        seed: Some("http://seed.example/".to_owned()),
        fingerprint: Some(vec![0, 1, 2, 255]),
    }
}

/// The frontier hands a request out again unchanged, with its lease and wherever it is listed.
pub fn everything_of_a_request_comes_back<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0 class=priority");
    let request = full_request("HTTP://A.Example:80/x/../p?b=2&a=1#top");
    let candidate = trial.candidate(request.clone());
    let identity = candidate.identity;
    trial.add_candidates(START, &[candidate]);
    let lease = trial.one(START);
    assert_eq!(*lease.request, request);
    assert_eq!(lease.identity, identity);
    assert_eq!(*trial.live(START, 10)[0].request, request);
    trial.dead(START, &lease, "gone");
    assert_eq!(*trial.dead_letters(START, 10)[0].request, request);
    let urls = trial.known(START, None, None, None, 10);
    assert_eq!(urls[0].request.as_deref(), Some(&request));
    assert_eq!(urls[0].class, 255);
}

/// What is not given stays not given: no empty strings for None, no zero for nothing.
pub fn nothing_is_added_to_a_plain_request<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "");
    let url = "http://a.example/plain";
    trial.add(START, &[url]);
    assert_eq!(*trial.one(START).request, Request::get(url));
    let report = trial.url(START, url);
    assert_eq!((report.class, report.cost, report.due, report.page), (127, 1, None, None));
    assert_eq!(report.key.as_deref(), Some("a.example"));
}

/// If the caller brings a fingerprint, nothing else counts.
pub fn own_fingerprint_decides_identity<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "");
    let printed = |url: &str, print: &[u8]| {
        trial.candidate(Request { fingerprint: Some(print.to_vec()), ..Request::get(url) })
    };
    let batch = [
        printed("http://a.example/1", b"x"),
        printed("http://b.example/2", b"x"),
        printed("http://a.example/1", b"y"),
        trial.get("http://a.example/1"),
    ];
    use Admission::{Added, Known};
    assert_eq!(trial.admit(START, &batch), [Added, Known, Added, Added]);
}

/// A GET and a POST of one URL are two, and so are two bodies.
pub fn method_and_body_are_part_of_the_identity<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "concurrency=0 delay=0");
    let post = |body: &[u8]| {
        let request = Request::get("http://a.example/form");
        trial.candidate(Request { method: "POST".into(), body: body.to_vec(), ..request })
    };
    let batch = [trial.get("http://a.example/form"), post(b""), post(b"a=1"), post(b"a=2"), post(b"a=1")];
    use Admission::{Added, Known};
    assert_eq!(trial.admit(START, &batch), [Added, Added, Added, Added, Known]);
    let leases = trial.leases(START, 9);
    let bodies: Vec<_> = leases.iter().map(|lease| &lease.request.body[..]).collect();
    assert_eq!(bodies, [&b""[..], b"", b"a=1", b"a=2"]);
}

/// `known` changes nothing: the first request is the one that is fetched.
pub fn a_known_url_keeps_its_first_request<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "");
    let first = Request { opaque: b"first".to_vec(), ..Request::get("http://a.example/1") };
    let mut second = trial.candidate(Request {
        opaque: b"second".to_vec(),
        depth: 9,
        ..Request::get("http://a.example/1#2")
    });
    second.terms = Terms { precedence: Some(1), ..Terms::default() };
    second.class = Some(0);
    second.cost = Some(99);
    trial.add_candidates(START, &[trial.candidate(first.clone())]);
    assert_eq!(trial.admit_one(START, second), Admission::Known);
    let report = trial.url(START, "http://a.example/1");
    assert_eq!((report.class, report.cost), (127, 1));
    assert_eq!(trial.queue(START, "a.example").precedence, 3);
    assert_eq!(*trial.one(START).request, first);
}

/// One answer each, in order, and later candidates of a batch see what earlier ones did.
pub fn a_batch_is_answered_in_its_order<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "max_depth=3");
    let get = |url: &str| trial.get(url);
    let better = Candidate { improve: true, class: Some(5), ..get("http://a.example/1") };
    let done = Candidate { statement: Some(Statement::Done), ..get("http://a.example/2") };
    let deep = trial.candidate(Request { depth: 4, ..Request::get("http://a.example/deep") });
    let batch =
        [get("http://a.example/1"), get("http://a.example/1"), better, done, get("http://a.example/2"), deep];
    use Admission::{Added, Known, Refused, Rescored, Restated};
    let expected = [Added, Known, Rescored, Restated, Known, Refused(Refusal::TooDeep)];
    assert_eq!(trial.admit(START, &batch), expected);
    assert_eq!(trial.url(START, "http://a.example/1").class, 5);
}

/// The handle answers for each request, also for those between others that no queue can be found for.
pub fn what_is_not_a_url_is_refused_in_its_place<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "");
    let urls = [
        "http://a.example/1",
        "no url",
        "mailto:a@b.example",
        "",
        "http://a.example/2",
        "http://a.example/1",
    ];
    let admitted = trial.wait(trial.frontier.admit(START, urls.map(Request::get))).expect("admit");
    use Admission::{Added, Known, Refused};
    let malformed = Refused(Refusal::Malformed);
    assert_eq!(admitted, [Added, malformed.clone(), malformed.clone(), malformed, Added, Known]);
}

/// A batch of nothing is answered with nothing.
pub fn an_empty_batch_changes_nothing<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "");
    let before = trial.stats(START);
    assert_eq!(trial.admit(START, &[]), []);
    assert_eq!(trial.settle(START, Vec::new()), []);
    assert_eq!(trial.stats(START), before);
}

/// The crawl's limit and the request's own: the stricter one holds.
pub fn depth_is_limited_by_crawl_and_request<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "max_depth=5");
    let check = |number: u32, depth, depth_limit, expected: Admission| {
        let url = format!("http://a.example/{number}");
        let candidate = trial.candidate(Request { depth, depth_limit, ..Request::get(&url) });
        assert_eq!(trial.admit_one(START, candidate), expected, "depth {depth} within {depth_limit:?}");
        let state = if expected == Admission::Added { UrlState::Pending } else { UrlState::Unknown };
        assert_eq!(trial.state(START, &url), state);
    };
    let refused = Admission::Refused(Refusal::TooDeep);
    check(1, 5, None, Admission::Added);
    check(2, 6, None, refused.clone());
    check(3, 2, Some(2), Admission::Added);
    check(4, 3, Some(2), refused.clone());
    check(5, 6, Some(9), refused.clone());
    check(6, 0, Some(0), Admission::Added);
    check(7, u32::MAX, Some(u32::MAX), refused);
}

/// What was refused leaves no trace, not even a queue.
pub fn a_refused_url_stays_unknown<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "admission=blocked");
    let refused = Admission::Refused(Refusal::Blocked);
    assert_eq!(trial.admit_url(START, "http://a.example/1"), refused);
    assert_eq!(trial.state(START, "http://a.example/1"), UrlState::Unknown);
    assert!(trial.find_queue(START, "a.example").is_none());
    trial.set(at(1), "admission", "open");
    assert_eq!(trial.admit_url(at(1), "http://a.example/1"), Admission::Added);
}

/// `dont_filter` makes an entry of its own, with a request of its own.
pub fn dont_filter_makes_the_url_pending_once_more<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "concurrency=0 delay=0");
    let again = |opaque: &[u8]| {
        let request = Request::get("http://a.example/1");
        trial.candidate(Request { dont_filter: true, opaque: opaque.to_vec(), ..request })
    };
    trial.add(START, &["http://a.example/1"]);
    trial.add_candidates(START, &[again(b"2"), again(b"3")]);
    let leases = trial.leases(START, 9);
    let opaque: Vec<_> = leases.iter().map(|lease| &lease.request.opaque[..]).collect();
    assert_eq!(opaque, [&b""[..], b"2", b"3"]);
    assert!(leases.iter().all(|lease| lease.identity == leases[0].identity));
    for lease in &leases {
        trial.done(START, lease);
    }
    assert_eq!(trial.stats(START).urls_in(UrlState::Done), 3);
    assert_eq!(trial.admit_url(START, "http://a.example/1"), Admission::Known);
}

/// A statement holds for URLs known or not, and ends a lease.
pub fn a_statement_ends_a_lease<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    let state = |url: &str, statement| Candidate { statement: Some(statement), ..trial.get(url) };
    trial.add(START, &["http://a.example/leased"]);
    let lease = trial.one(START);
    let batch = [
        state("http://a.example/new", Statement::Done),
        state("http://a.example/leased", Statement::Done),
        state("http://a.example/later", Statement::Next(at(10))),
    ];
    assert_eq!(trial.admit(START, &batch), vec![Admission::Restated; 3]);
    assert_eq!(trial.end(START, &lease, Outcome::done()), Answer::Stale);
    assert_eq!(trial.state(START, "http://a.example/new"), UrlState::Done);
    assert_eq!(trial.state(START, "http://a.example/leased"), UrlState::Done);
    assert_eq!(trial.url(START, "http://a.example/later").due, Some(at(10)));
    assert_eq!(trial.urls(at(9), 9), Vec::<String>::new());
    assert_eq!(trial.urls(at(10), 9), ["http://a.example/later"]);
}

/// The class is what the candidate says, else what the crawl's policy makes of the request.
pub fn a_class_of_its_own_wins_over_the_policy<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "concurrency=0 delay=0");
    let request = |number: u32, priority| {
        trial.candidate(Request { priority, ..Request::get(format!("http://a.example/{number}")) })
    };
    let own = Candidate { class: Some(0), ..request(5, Some(-128)) };
    let batch = [request(1, None), request(2, Some(-1)), request(3, Some(127)), request(4, Some(0)), own];
    trial.add_candidates(START, &batch);
    let numbers: Vec<_> = trial
        .urls(START, 9)
        .iter()
        .map(|url| url.trim_start_matches("http://a.example/").to_owned())
        .collect();
    assert_eq!(numbers, ["3", "5", "1", "4", "2"]);
}

/// A cost is fixed at admission, and the lease names it.
pub fn a_cost_of_its_own_is_charged<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0 cost=wag");
    let costly = Candidate { cost: Some(700), ..trial.get("http://a.example/1") };
    trial.add_candidates(START, &[costly, trial.get("http://a.example/2?q")]);
    let lease = trial.one(START);
    assert_eq!(lease.cost, 700);
    trial.done(START, &lease);
    assert_eq!(trial.one(START).cost, 2);
    let queue = trial.queue(START, "a.example");
    assert_eq!((queue.spent, queue.latest_cost, queue.average_cost), (702, 2, 351.0));
    assert_eq!(trial.stats(START).spent, 702);
}

/// A slot is a queue like any other, with its own pace, whatever hosts are in it.
pub fn a_slot_is_a_queue_of_the_callers_own<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "");
    let batch = [trial.slot("http://a.example/1", "mine"), trial.slot("http://b.example/1", "mine")];
    trial.add_candidates(START, &batch);
    assert_eq!(trial.admit_url(START, "http://a.example/1"), Admission::Known, "the queue is no identity");
    let leases = trial.leases(START, 9);
    assert_eq!(leases.len(), 1);
    assert_eq!(&*leases[0].key, "mine");
    let keys = Some(vec!["mine".to_owned()]);
    trial.done(START, &leases[0]);
    assert_eq!(trial.urls(at(1), Want { keys, ..Want::urls(9) }), ["http://b.example/1"]);
}

/// Terms come with a candidate that is added; those it leaves open stay as they are.
pub fn terms_are_taken_on_by_the_queue<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "");
    let terms = Terms { precedence: Some(1), group: Some(Arc::from("slow")), ..Terms::default() };
    let more = Terms { queue_budget: Some(10), ..Terms::default() };
    trial.add_candidates(
        START,
        &[
            Candidate { terms, ..trial.get("http://a.example/1") },
            Candidate { terms: more, ..trial.get("http://a.example/2") },
        ],
    );
    let queue = trial.queue(START, "a.example");
    assert_eq!((queue.precedence, queue.budget, queue.group.as_deref()), (1, Some(10), Some("slow")));
}
