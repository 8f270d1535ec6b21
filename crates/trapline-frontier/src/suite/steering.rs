//! What operators change, on every store: in force for the very next claim, and work over many URLs in the background.

use std::sync::Arc;

use trapline_core::{Candidate, NO_BUDGET, Request, Statement, Terms, Timestamp};

use super::Harness;
use super::trial::{START, Trial, at, pages, secs};
use crate::pattern::Pattern;
use crate::report::{QueueState, UrlState};
use crate::verbs::{
    Admission, Answer, CrawlChange, DeadChange, DeadLetters, Lease, Outcome, QueueChange, Settlement, Steer,
    UrlChange,
};

/// Enough URLs that work over them goes on in the background.
const MANY: usize = 12_000;

/// Every term is reported as it was set, and the ones left open stay the crawl's.
pub fn every_term_is_in_force_and_reported<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    trial.add(START, &pages("a", 9));
    trial.terms(
        START,
        "a.example",
        Terms {
            precedence: Some(0),
            queue_budget: Some(5),
            balance_replenish: Some(7),
            delay: Some(secs(8)),
            concurrency: Some(2),
            group: Some(Arc::from("g")),
        },
    );
    let queue = trial.queue(START, "a.example");
    assert_eq!((queue.precedence, queue.budget, queue.balance), (0, Some(5), 0));
    assert_eq!((queue.delay, queue.concurrency, queue.group.as_deref()), (secs(8), 2, Some("g")));
    let leases = trial.leases(START, 9);
    assert_eq!(leases.len(), 2, "concurrency");
    assert_eq!(trial.queue(START, "a.example").balance, 5, "balance_replenish");
    trial.done(START, &leases[0]);
    assert_eq!(trial.queue(START, "a.example").next_fetch, Some(at(8)), "delay");
    trial.terms(START, "a.example", Terms { queue_budget: Some(NO_BUDGET), ..Terms::default() });
    let queue = trial.queue(START, "a.example");
    assert_eq!((queue.budget, queue.precedence), (None, 0));
    trial.terms(START, "a.example", Terms { group: Some(Arc::from("")), ..Terms::default() });
    assert_eq!(trial.queue(START, "a.example").group, None);
}

/// What an operator sets wins over terms that arrive later; terms the operator left open are still taken on.
pub fn an_operators_terms_win_over_later_candidates<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "");
    let bring = |number: u32, terms| {
        let url = format!("http://a.example/{number}");
        trial.add_candidates(START, &[Candidate { terms, ..trial.get(&url) }]);
    };
    let all = |number: u32| Terms {
        precedence: Some(number as u8),
        queue_budget: Some(number.into()),
        balance_replenish: Some(number.into()),
        delay: Some(secs(number.into())),
        concurrency: Some(number),
        group: Some(Arc::from(number.to_string())),
    };
    let shown = || {
        let queue = trial.queue(START, "a.example");
        (queue.precedence, queue.budget, queue.delay, queue.concurrency, queue.group)
    };
    bring(11, all(11));
    assert_eq!(shown(), (11, Some(11), secs(11), 11, Some(Arc::from("11"))));
    bring(12, all(12));
    assert_eq!(shown(), (12, Some(12), secs(12), 12, Some(Arc::from("12"))), "the later candidate");
    let half = Terms {
        precedence: Some(20),
        delay: Some(secs(20)),
        group: Some(Arc::from("20")),
        ..Terms::default()
    };
    trial.terms(START, "a.example", half);
    bring(13, all(13));
    assert_eq!(shown(), (20, Some(13), secs(20), 13, Some(Arc::from("20"))));
    trial.terms(START, "a.example", all(21));
    bring(14, all(14));
    assert_eq!(shown(), (21, Some(21), secs(21), 21, Some(Arc::from("21"))));
}

/// `DefaultTerms` forgets what operators and candidates set; candidates may set again.
pub fn default_terms_are_the_crawls_again<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=3s queue_budget=100");
    trial.add(START, &pages("a", 1));
    trial.terms(
        START,
        "a.example",
        Terms {
            precedence: Some(1),
            queue_budget: Some(NO_BUDGET),
            delay: Some(secs(9)),
            concurrency: Some(4),
            group: Some(Arc::from("g")),
            ..Terms::default()
        },
    );
    trial.steer_queue(START, "a.example", QueueChange::DefaultTerms);
    let queue = trial.queue(START, "a.example");
    assert_eq!((queue.precedence, queue.budget, queue.delay), (3, Some(100), secs(3)));
    assert_eq!((queue.concurrency, queue.group), (1, None));
    let terms = Terms { precedence: Some(9), ..Terms::default() };
    trial.add_candidates(START, &[Candidate { terms, ..trial.get("http://a.example/2") }]);
    assert_eq!(trial.queue(START, "a.example").precedence, 9);
}

/// A block holds until its time, or until it is lifted.
pub fn a_block_holds_until_its_time<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    trial.add(START, &pages("a", 2));
    trial.steer_queue(START, "a.example", QueueChange::Block(at(10)));
    let queue = trial.queue(START, "a.example");
    assert_eq!(queue.state, QueueState::Blocked);
    assert!(queue.why.contains("10s"), "{}", queue.why);
    assert_eq!(trial.leases(at(9), 1), []);
    let lease = trial.one(at(10));
    trial.steer_queue(at(11), "a.example", QueueChange::Block(Timestamp::MAX));
    trial.done(at(12), &lease);
    assert_eq!(trial.leases(at(1_000_000), 1), []);
    trial.steer_queue(at(1_000_000), "a.example", QueueChange::Unblock);
    trial.one(at(1_000_000));
}

/// A queue retired by hand keeps its URLs, takes new ones, and is served again once reinstated.
pub fn a_retired_queue_waits_to_be_reinstated<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    trial.add(START, &pages("a", 1));
    trial.steer_queue(START, "a.example", QueueChange::Retire);
    trial.add(START, &["http://a.example/late"]);
    let queue = trial.queue(START, "a.example");
    assert_eq!((queue.state, queue.is_over_budget()), (QueueState::Retired, false), "{}", queue.why);
    let claimed = trial.claim(START, 9);
    assert_eq!((claimed.leases.len(), claimed.exhausted), (0, true));
    trial.set(START, "queue_budget", "1000");
    assert_eq!(trial.leases(START, 9), [], "a budget does not reinstate");
    trial.steer_queue(START, "a.example", QueueChange::Reinstate);
    assert_eq!(trial.one(START).request.url, "http://a.example/1");
}

/// A budget that was raised lets the queue go on at the next claim.
pub fn a_raised_budget_is_in_force_at_once<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0 queue_budget=1");
    trial.add(START, &pages("a", 3));
    trial.done(START, &trial.one(START));
    assert_eq!(trial.leases(START, 1), []);
    let queue = trial.queue(START, "a.example");
    assert_eq!((queue.state, queue.pending, queue.spent), (QueueState::Retired, 2, 1));
    assert!(queue.is_over_budget(), "{}", queue.why);
    trial.terms(START, "a.example", Terms { queue_budget: Some(2), ..Terms::default() });
    trial.done(START, &trial.one(START));
    assert_eq!(trial.leases(START, 1), []);
    trial.steer_queue(START, "a.example", QueueChange::DefaultTerms);
    trial.set(START, "queue_budget", "none");
    trial.one(START);
}

/// A queue nobody knew comes to be, empty, and keeps what it was told.
pub fn an_unknown_queue_can_be_steered_ahead<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "");
    trial.terms(START, "a.example", Terms { precedence: Some(1), ..Terms::default() });
    let queue = trial.queue(START, "a.example");
    assert_eq!((queue.state, queue.precedence, queue.pending), (QueueState::Empty, 1, 0));
    trial.steer_queue(START, "b.example", QueueChange::Retire);
    trial.add(START, &["http://b.example/1", "http://c.example/1", "http://a.example/1"]);
    let leases = trial.leases(START, 9);
    assert_eq!(super::trial::keys(&leases), ["a.example", "c.example"]);
}

/// `purge` forgets what is pending, at once, and counts it; what is leased, done or dead stays.
pub fn a_purge_forgets_what_is_pending<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    trial.add(START, &pages("a", 6));
    trial.add(START, &pages("b", 1));
    trial.done(START, &trial.one(START));
    trial.dead(START, &trial.one(START), "gone");
    let retried = trial.one(START);
    trial.end(START, &retried, Outcome::Retry { at: at(100) });
    let leased = trial.one(START);
    let steered = trial.steer_queue(START, "a.example", QueueChange::Purge(None));
    assert_eq!(steered.affected, 3, "two fresh and a retry");
    assert_eq!(super::trial::keys(&trial.leases(START, 9)), ["b.example"]);
    trial.finish_jobs(START);
    let states: Vec<_> = pages("a", 6).iter().map(|url| trial.state(START, url)).collect();
    use UrlState::{Dead, Done, Leased, Unknown};
    assert_eq!(states, [Done, Dead, Unknown, Leased, Unknown, Unknown]);
    trial.done(START, &leased);
    assert_eq!(trial.admit_url(START, "http://a.example/3"), Admission::Added);
    assert_eq!(trial.queue(at(200), "a.example").pending, 1);
}

/// `purge` by pattern forgets the pending URLs of its queue that match, and no other.
pub fn a_purge_by_pattern_forgets_what_matches<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    let urls = [
        "http://a.example/calendar/1",
        "http://a.example/page",
        "http://a.example/calendar/2?x=[a]",
        "http://a.example/Calendar/3",
        "http://b.example/calendar/1",
    ];
    trial.add(START, &urls);
    let lease = trial.one(START);
    let pattern = Pattern::new("*/calendar/*");
    let steered = trial.steer_queue(START, "a.example", QueueChange::Purge(Some(pattern)));
    trial.finish_jobs(START);
    if steered.job.is_none() {
        assert_eq!(steered.affected, 1);
    }
    let states = urls.map(|url| trial.state(START, url));
    use UrlState::{Leased, Pending, Unknown};
    assert_eq!(states, [Leased, Pending, Unknown, Pending, Pending]);
    trial.done(START, &lease);
}

/// Half of very many pending URLs are purged by pattern, while the crawl goes on.
pub fn a_purge_of_many_goes_on_in_the_background<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    trial.add(START, &many());
    let pattern = Pattern::new("*/odd/*");
    let steered = trial.steer_queue(START, "a.example", QueueChange::Purge(Some(pattern)));
    let fetched = trial.one(START);
    let seen = trial.finish_jobs(START);
    if let Some(job) = steered.job {
        assert!(seen.iter().all(|report| report.id == job && report.passed <= report.total));
        assert!(seen.iter().all(|report| report.affected <= report.passed));
        assert!(seen.iter().all(|report| report.what.contains("*/odd/*")), "{:?}", seen.first());
        assert!(seen.is_sorted_by_key(|report| (report.passed, report.affected)));
        let ended = trial.ended_jobs(START);
        assert_eq!((ended.len(), ended[0].id, ended[0].affected), (1, job, MANY as u64 / 2));
        assert_eq!(ended[0].passed, ended[0].total);
    }
    let left = trial.known(START, Some("a.example"), None, None, 5000);
    assert_eq!(left.len(), MANY / 2);
    assert!(left.iter().all(|url| !url.request.as_ref().expect("known").url.contains("/odd/")));
    assert_eq!(trial.stats(START).urls_in(UrlState::Pending), MANY as u64 / 2 - 1);
    trial.done(START, &fetched);
}

/// Of all queues, what matches and is pending: not what is leased, waits for its next visit, or came later.
pub fn a_purge_of_the_crawl_forgets_what_matches_everywhere<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    let urls: Vec<_> = ["a", "b", "c"]
        .iter()
        .flat_map(|host| [1, 2].map(|n| format!("http://{host}.example/x/{n}")))
        .collect();
    trial.add(START, &urls);
    trial.add(START, &pages("a", 2));
    let leased = trial.one(START);
    assert_eq!(leased.request.url, urls[0]);
    let pattern = || CrawlChange::Purge(Pattern::new("*/x/*"));
    assert_eq!(trial.steer_crawl(START, pattern()).affected, 5);
    trial.finish_jobs(START);
    let left = trial.known(START, None, None, None, 9);
    let left: Vec<_> = left.iter().map(|url| &*url.request.as_ref().expect("known").url).collect();
    assert_eq!(left, [&*urls[0], "http://a.example/1", "http://a.example/2"]);
    trial.add(START, &urls[1..2]);
    trial.done(START, &leased);
    assert_eq!(trial.steer_crawl(START, pattern()).affected, 1);
    assert_eq!(trial.steer_crawl(START, pattern()).affected, 0);
    assert_eq!(trial.state(START, &urls[0]), UrlState::Done);
}

/// A purge of everything holds at once, however much there is.
pub fn a_purge_of_everything_holds_at_once<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0 concurrency=0");
    trial.add(START, &many());
    assert_eq!(trial.steer_queue(START, "a.example", QueueChange::Purge(None)).affected, MANY as u64);
    assert_eq!(trial.leases(START, 9), []);
    assert_eq!(trial.stats(START).urls, [0; 6]);
    assert_eq!(trial.queue(START, "a.example").pending, 0);
    let again = many();
    trial.add(START, &again[..100]);
    trial.finish_jobs(START);
    assert_eq!(trial.leases(START, usize::MAX).len(), 100);
}

/// What comes after a purge was asked for is none of its business.
pub fn a_purge_leaves_alone_what_came_later<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    begin_purge_of_later(&trial);
    assert_eq!(trial.admit_url(START, "http://a.example/later/1"), Admission::Added);
    trial.finish_jobs(START);
    assert_eq!(trial.state(START, "http://a.example/later/1"), UrlState::Pending);
}

/// The same for a URL that is to be visited later for the first time.
pub fn a_purge_leaves_alone_what_was_scheduled_later<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    begin_purge_of_later(&trial);
    let later = Some(Statement::Next(at(100)));
    let candidate = Candidate { statement: later, ..trial.get("http://a.example/later/1") };
    assert_eq!(trial.admit_one(START, candidate), Admission::Restated);
    trial.finish_jobs(START);
    assert_eq!(trial.state(START, "http://a.example/later/1"), UrlState::Pending);
}

/// Begins to purge what matches `*/later/*` from very many URLs, none of which does. Where a store might put a new
/// URL among the old ones, there is room near the end, which the job reaches last.
fn begin_purge_of_later<H: Harness>(trial: &Trial<'_, H>) {
    let urls = many();
    trial.add(START, &urls);
    let last = &urls[urls.len() - 1];
    trial.wait(trial.frontier.forget(START, last)).expect("forget");
    let pattern = Pattern::new("*/later/*");
    let steered = trial.steer_queue(START, "a.example", QueueChange::Purge(Some(pattern)));
    assert_eq!(steered.affected, 0);
}

/// A cancelled job stops where it is, and is gone.
pub fn a_cancelled_job_stops_where_it_is<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "");
    trial.add(START, &many());
    let pattern = Pattern::new("*");
    let steered = trial.steer_queue(START, "a.example", QueueChange::Purge(Some(pattern)));
    let Some(job) = steered.job else {
        // A store that is done at once has nothing to cancel.
        assert_eq!(steered.affected, MANY as u64);
        return;
    };
    assert_eq!(trial.steer_crawl(START, CrawlChange::Cancel(job)).affected, 1);
    let left = trial.stats(START).urls_in(UrlState::Pending);
    assert!(left > 0, "the pattern fits everything, and the job was not done");
    for _ in 0..5 {
        assert_eq!(trial.jobs(START), []);
    }
    assert_eq!(trial.stats(START).urls_in(UrlState::Pending), left);
    assert_eq!(trial.queue(START, "a.example").pending, left);
    assert_eq!(trial.steer_crawl(START, CrawlChange::Cancel(job)).affected, 0);
    let ended = trial.ended_jobs(START);
    assert_eq!((ended.len(), ended[0].id, ended[0].affected), (1, job, MANY as u64 - left));
}

/// There is nothing to cancel where no job is.
pub fn cancelling_no_job_concerns_nothing<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "");
    for job in [0, 1, u64::MAX] {
        assert_eq!(trial.steer_crawl(START, CrawlChange::Cancel(job)).affected, 0);
    }
}

/// `delete` forgets everything of a queue but its terms and its next fetch time.
pub fn a_deleted_queue_keeps_terms_and_pace<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=30s concurrency=2");
    trial.terms(START, "a.example", Terms { precedence: Some(1), ..Terms::default() });
    trial.add(START, &pages("a", 5));
    let leases = trial.leases(START, 2);
    trial.dead(START, &leases[0], "gone");
    let steered = trial.steer_queue(at(1), "a.example", QueueChange::Delete);
    assert_eq!(steered.affected, 5);
    assert_eq!(trial.end(at(1), &leases[1], Outcome::done()), Answer::Stale);
    trial.finish_jobs(at(1));
    assert_eq!(trial.stats(at(1)).urls, [0; 6]);
    assert_eq!(trial.dead_letters(at(1), 10), []);
    assert_eq!(trial.known(at(1), None, None, None, 10), []);
    assert_eq!(trial.admit_url(at(1), "http://a.example/1"), Admission::Added);
    let queue = trial.queue(at(1), "a.example");
    assert_eq!((queue.state, queue.precedence, queue.next_fetch), (QueueState::Snoozed, 1, Some(at(30))));
    assert_eq!(trial.leases(at(29), 9), []);
    trial.one(at(30));
}

/// Three queues with two dead letters each.
fn with_dead_letters<'h, H: Harness>(harness: &'h H, store: Arc<dyn super::Store>) -> Trial<'h, H> {
    let trial = Trial::new(harness, store, "delay=0 concurrency=0");
    for host in ["a", "b", "c"] {
        trial.add(START, &pages(host, 2));
    }
    for lease in trial.leases(START, 9) {
        trial.dead(at(1), &lease, &format!("404 of {}", lease.request.url));
    }
    trial
}

fn dead_urls<H: Harness>(trial: &Trial<'_, H>) -> Vec<String> {
    trial.dead_letters(at(9), 10).iter().map(|dead| dead.request.url.clone()).collect()
}

/// A dead letter says what, why and when.
pub fn dead_letters_are_listed_with_their_reason<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = with_dead_letters(&harness, store);
    let dead = trial.dead_letters(at(9), 10);
    assert_eq!(dead.len(), 6);
    for letter in dead {
        let url = &letter.request.url;
        assert_eq!((letter.reason, letter.at), (format!("404 of {url}"), at(1)));
        assert_eq!(letter.identity, trial.get(url).identity);
        assert_eq!(letter.key, trial.get(url).key);
    }
}

/// A replay is as if admitted now: of a URL, of a queue, of all.
pub fn dead_letters_are_replayed_by_url_queue_and_all<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = with_dead_letters(&harness, store);
    let replay = |which| {
        let steered = trial.steer(at(9), Steer::Dead(which, DeadChange::Replay));
        trial.finish_jobs(at(9));
        if steered.job.is_none() { Some(steered.affected) } else { None }
    };
    let one = trial.get("http://b.example/1").identity;
    assert_eq!(replay(DeadLetters::Url(one)), Some(1));
    assert_eq!(trial.urls(at(9), 9), ["http://b.example/1"]);
    assert_eq!(replay(DeadLetters::Url(one)), Some(0), "it is leased now");
    assert_eq!(replay(DeadLetters::Queue("unknown.example".to_owned())), Some(0));
    replay(DeadLetters::Queue("a.example".to_owned()));
    let mut urls = trial.urls(at(9), 9);
    urls.sort();
    assert_eq!(urls, pages("a", 2));
    assert_eq!(dead_urls(&trial), ["http://b.example/2", "http://c.example/1", "http://c.example/2"]);
    replay(DeadLetters::All);
    assert_eq!(trial.urls(at(9), 9).len(), 3);
    assert_eq!(dead_urls(&trial), Vec::<String>::new());
    assert_eq!(trial.stats(at(9)).urls_in(UrlState::Dead), 0);
}

/// A purged dead letter is as if never seen.
pub fn dead_letters_are_purged_by_url_queue_and_all<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = with_dead_letters(&harness, store);
    let purge = |which| {
        trial.steer(at(9), Steer::Dead(which, DeadChange::Purge));
        trial.finish_jobs(at(9));
        dead_urls(&trial).len()
    };
    let url = "http://b.example/1";
    assert_eq!(purge(DeadLetters::Url(trial.get(url).identity)), 5);
    assert_eq!(trial.state(at(9), url), UrlState::Unknown);
    assert_eq!(purge(DeadLetters::Queue("a.example".to_owned())), 3);
    trial.add(at(9), &["http://a.example/1", url]);
    assert_eq!(purge(DeadLetters::All), 0);
    assert_eq!(trial.stats(at(9)).urls_in(UrlState::Dead), 0);
    assert_eq!(trial.urls(at(9), 9), ["http://a.example/1", url]);
}

/// Very many dead letters are replayed in the background, none twice.
pub fn a_replay_of_many_goes_on_in_the_background<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0 concurrency=0");
    trial.add(START, &many());
    let dead = |lease: &Lease| Settlement::new(lease.id, Outcome::Dead { reason: "500".to_owned() });
    let batch = trial.leases(START, usize::MAX).iter().map(dead).collect();
    trial.settle(START, batch);
    assert_eq!(trial.stats(START).urls_in(UrlState::Dead), MANY as u64);
    let steered = trial.steer(at(1), Steer::Dead(DeadLetters::All, DeadChange::Replay));
    // Those that come back at once and die again are not replayed once more.
    let early = trial.leases(at(1), 10);
    for lease in &early {
        trial.dead(at(1), lease, "again");
    }
    trial.finish_jobs(at(1));
    assert!(steered.affected <= MANY as u64);
    assert_eq!(trial.dead_letters(at(1), 5000).len(), early.len());
    assert_eq!(trial.leases(at(1), usize::MAX).len(), MANY - early.len());
}

/// `forget` makes a URL unknown and says whether it was known.
pub fn forget_says_whether_it_was_known<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "");
    trial.add(START, &pages("a", 1));
    let forget = || trial.wait(trial.frontier.forget(START, "http://a.example/1")).expect("forget").affected;
    assert_eq!(forget(), 1);
    assert_eq!(forget(), 0);
    assert_eq!(trial.state(START, "http://a.example/1"), UrlState::Unknown);
    assert_eq!(trial.leases(START, 1), []);
}

/// `class` moves a pending URL, better or worse, behind what waits there.
pub fn a_url_is_moved_to_a_class<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "concurrency=0 delay=0");
    trial.add(START, &pages("a", 5));
    let class = |number: u32, class| {
        let identity = trial.get(&format!("http://a.example/{number}")).identity;
        trial.steer(START, Steer::Url(identity, UrlChange::Class(class))).affected
    };
    assert_eq!([class(1, 255), class(4, 0), class(3, 0), class(2, 127)], [1, 1, 1, 0]);
    assert_eq!(class(99, 0), 0, "nobody knows it");
    let expected = [4, 3, 2, 5, 1].map(|number| format!("http://a.example/{number}"));
    assert_eq!(trial.urls(START, 9), expected);
    assert_eq!(class(1, 0), 0, "it is leased");
}

/// Steering one queue leaves the others alone.
pub fn steering_concerns_its_queue_only<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    for host in ["a", "b"] {
        trial.add(START, &pages(host, 2));
    }
    let before = trial.queue(START, "b.example");
    for change in [
        QueueChange::Terms(Terms { precedence: Some(9), delay: Some(secs(1)), ..Terms::default() }),
        QueueChange::DefaultTerms,
        QueueChange::Block(at(5)),
        QueueChange::Unblock,
        QueueChange::Retire,
        QueueChange::Reinstate,
        QueueChange::Purge(Some(Pattern::new("*"))),
        QueueChange::Purge(None),
        QueueChange::Delete,
    ] {
        trial.steer_queue(START, "a.example", change.clone());
        assert_eq!(trial.queue(START, "b.example"), before, "{change:?}");
    }
}

/// Very many URLs of one queue, every other one odd.
fn many() -> Vec<String> {
    let kind = |number| if number % 2 == 0 { "even" } else { "odd" };
    (0..MANY).map(|number| format!("http://a.example/{}/{number}", kind(number))).collect()
}

/// The operator's act on a URL is by its identity, whatever made it: here a POST.
pub fn a_url_is_steered_by_its_identity<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "");
    let post = Request { method: "POST".into(), ..Request::get("http://a.example/form") };
    let candidate = trial.candidate(post);
    trial.add_candidates(START, &[candidate.clone(), trial.get("http://a.example/form")]);
    assert_eq!(trial.steer(START, Steer::Url(candidate.identity, UrlChange::Forget)).affected, 1);
    assert_eq!(trial.known(START, None, None, None, 9).len(), 1);
    assert_eq!(trial.state(START, "http://a.example/form"), UrlState::Pending);
}
