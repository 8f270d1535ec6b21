//! What is done to many URLs: forgetting them, fetching them again, forgetting what is known of their pages. In the background,
//! where there are very many.

use super::Harness;
use super::trial::{START, Trial, at, pages, visit};
use crate::pattern::Pattern;
use crate::report::UrlState;
use crate::verbs::{Admission, Answer, CrawlChange, Outcome, Steer, Steered, UrlFilter, UrlsChange, Visit};
use trapline_core::Timestamp;

/// Too many for two steps of a job.
const MANY: usize = 10_000;

fn change<H: Harness>(
    trial: &Trial<'_, H>,
    now: Timestamp,
    (key, pattern): (Option<&str>, Option<&str>),
    change: UrlsChange,
) -> Steered {
    let filter = UrlFilter { key: key.map(str::to_owned), pattern: pattern.map(Pattern::new) };
    trial.steer(now, Steer::Urls(filter, change))
}

/// URLs of a queue in every state there is: pending, a retry to come, leased, done, done until its next visit, disregarded,
/// dead.
fn every_state<H: Harness>(trial: &Trial<'_, H>) -> Vec<String> {
    let urls = pages("a", 7);
    trial.add(START, &urls);
    let leases = trial.leases(START, 6);
    let outcomes = [
        Outcome::Retry { at: at(500) },
        Outcome::done(),
        Outcome::Done { visit: visit(b"1"), next: Some(at(300)) },
        Outcome::Disregard { reason: "no".to_owned() },
        Outcome::Dead { reason: "gone".to_owned() },
    ];
    for (lease, outcome) in leases.iter().zip(outcomes) {
        trial.end(START, lease, outcome);
    }
    urls
}

fn states<H: Harness>(trial: &Trial<'_, H>, now: Timestamp, urls: &[String]) -> Vec<UrlState> {
    urls.iter().map(|url| trial.state(now, url)).collect()
}

/// Whatever became of a URL, it is unknown afterwards; a lease of it is stale.
pub fn forgetting_forgets_whatever_its_state<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0 concurrency=0");
    let urls = every_state(&trial);
    trial.add(START, &pages("b", 1));
    let leased = trial.live(START, 9);
    assert_eq!(leased.len(), 1);
    assert_eq!(change(&trial, START, (Some("a.example"), None), UrlsChange::Forget).affected, 7);
    trial.finish_jobs(START);
    assert_eq!(states(&trial, START, &urls), [UrlState::Unknown; 7]);
    assert_eq!(trial.state(START, "http://b.example/1"), UrlState::Pending);
    let stats = trial.stats(START);
    assert_eq!((stats.urls, stats.visits_waiting), ([0, 1, 0, 0, 0, 0], 0));
    let settled = trial.settle_one(START, crate::Settlement::new(leased[0].id, Outcome::done()));
    assert_eq!(settled.answer, Answer::Stale);
    assert_eq!(trial.admit_url(START, &urls[2]), Admission::Added);
    // Nothing of what was to come does.
    assert_eq!(trial.urls(at(1000), 9), ["http://b.example/1", &*urls[2]]);
}

/// Of one queue or all, what matches as a whole and nothing else.
pub fn forgetting_goes_by_queue_and_pattern<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    let urls = ["http://a.example/x/1", "http://a.example/y/1", "http://b.example/x/1", "http://b.example/x"];
    trial.add(START, &urls);
    trial.done(START, &trial.one(START));
    let known = || urls.map(|url| trial.state(START, url) != UrlState::Unknown);
    assert_eq!(change(&trial, START, (Some("a.example"), Some("*/x/*")), UrlsChange::Forget).affected, 1);
    trial.finish_jobs(START);
    assert_eq!(known(), [false, true, true, true]);
    assert_eq!(change(&trial, START, (None, Some("*/x/*")), UrlsChange::Forget).affected, 1);
    trial.finish_jobs(START);
    assert_eq!(known(), [false, true, false, true]);
    assert_eq!(change(&trial, START, (Some("c.example"), None), UrlsChange::Forget), Steered::default());
    assert_eq!(trial.find_queue(START, "c.example"), None, "nobody made it");
    assert_eq!(change(&trial, START, (None, None), UrlsChange::Forget).affected, 2);
    assert_eq!(known(), [false; 4]);
}

/// All entries of a URL that was admitted several times are forgotten.
pub fn forgetting_forgets_every_entry_of_a_url<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    let mut again = trapline_core::Request::get("http://a.example/1");
    again.dont_filter = true;
    for _ in 0..3 {
        assert_eq!(trial.admit_one(START, trial.candidate(again.clone())), Admission::Added);
    }
    trial.done(START, &trial.one(START));
    assert_eq!(change(&trial, START, (None, Some("*/1")), UrlsChange::Forget).affected, 3);
    assert_eq!(trial.stats(START).urls, [0; 6]);
    assert_eq!(trial.admit_url(START, "http://a.example/1"), Admission::Added);
}

/// What is done is pending again, with what is known of its page, and behind what waits already; nothing else changes, and a
/// next visit that was to come later has come.
pub fn a_revisit_fetches_what_is_done_again<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0 concurrency=0 lease=2h");
    let urls = every_state(&trial);
    trial.add(START, &pages("b", 1));
    trial.done(START, &trial.leases(START, 2)[1]);
    assert_eq!(change(&trial, at(10), (Some("a.example"), None), UrlsChange::Revisit).affected, 2);
    trial.finish_jobs(at(10));
    use UrlState::{Dead, Disregarded, Done, Leased, Pending};
    let after = [Pending, Pending, Pending, Disregarded, Dead, Leased, Leased];
    assert_eq!(states(&trial, at(10), &urls), after);
    assert_eq!(trial.state(at(10), "http://b.example/1"), Done);
    assert_eq!(trial.stats(at(10)).visits_waiting, 0);
    trial.add(at(10), &["http://a.example/later"]);
    let leases = trial.leases(at(10), 9);
    let granted: Vec<_> = leases.iter().map(|lease| &*lease.request.url).collect();
    assert_eq!(granted, [&*urls[1], &*urls[2], "http://a.example/later"]);
    assert_eq!(leases[1].page.as_ref().map(|page| page.visit.clone()), Some(visit(b"1")));
    for lease in &leases {
        trial.done(at(10), lease);
    }
    assert_eq!(trial.urls(at(400), 9), [] as [&str; 0], "its visit is not to come once more");
    assert_eq!(trial.url(at(400), &urls[2]).page.expect("it was visited").visits, 2);
}

/// Only what matches is fetched again, and nothing in a crawl that is over.
pub fn a_revisit_goes_by_pattern_and_not_after_the_end<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    trial.add(START, &pages("a", 12));
    for _ in 0..12 {
        trial.done(START, &trial.one(START));
    }
    assert_eq!(change(&trial, START, (None, Some("*/1*")), UrlsChange::Revisit).affected, 4);
    assert_eq!(trial.urls(START, 1), ["http://a.example/1"]);
    assert_eq!(trial.queue(START, "a.example").pending, 3);
    trial.steer_crawl(START, CrawlChange::Finish("enough".to_owned()));
    assert_eq!(change(&trial, START, (None, None), UrlsChange::Revisit).affected, 0);
    assert_eq!(trial.stats(START).urls_in(UrlState::Done), 8);
}

/// Pages that were last visited before a time are forgotten: a worker is told nothing of them. Their URLs stay done, their visits
/// counted and those to come.
pub fn pages_are_forgotten_by_age<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0 concurrency=0");
    let urls = pages("a", 3);
    trial.add(START, &urls);
    for (seconds, next) in [(10, Some(at(100))), (20, Some(at(101))), (30, None)] {
        let lease = trial.one(at(seconds));
        trial.end(at(seconds), &lease, Outcome::Done { visit: visit(b"1"), next });
    }
    let forget = |before| change(&trial, at(40), (None, None), UrlsChange::ForgetPages(before)).affected;
    assert_eq!(forget(at(10)), 0, "not what was visited then");
    assert_eq!(forget(at(20)), 1);
    assert_eq!(forget(at(20)), 0, "it is forgotten already");
    let known =
        |now| urls.iter().map(|url| trial.url(now, url).page.map(|page| page.visits)).collect::<Vec<_>>();
    assert_eq!(known(at(40)), [None, Some(1), Some(1)]);
    let url = trial.url(at(40), &urls[0]);
    assert_eq!((url.state, url.due), (UrlState::Done, Some(at(100))));
    assert_eq!(forget(at(1000)), 2);
    assert_eq!(known(at(40)), [None, None, None]);
    let leases: Vec<_> = [at(100), at(101)].map(|now| trial.one(now)).into();
    assert!(leases.iter().all(|lease| lease.page.is_none()), "{leases:?}");
    // A digest that is another than before is no change: nothing is known of before.
    trial.end(at(102), &leases[0], Outcome::Done { visit: visit(b"2"), next: None });
    let page = trial.url(at(102), &urls[0]).page.expect("it was visited");
    assert_eq!((page.visits, page.changes, page.visited), (2, 0, at(102)));
    trial.end(at(102), &leases[1], Outcome::Done { visit: Visit::default(), next: None });
    assert_eq!(trial.url(at(102), &urls[1]).page, None, "a visit that left nothing is not remembered");
}

/// Very many URLs are visited again while the crawl goes on, and the job says how far it is.
pub fn a_revisit_of_many_goes_on_in_the_background<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    done_already(&trial, MANY);
    trial.add(START, &pages("b", 2));
    let steered = change(&trial, START, (Some("a.example"), None), UrlsChange::Revisit);
    let other = trial.one(START);
    let seen = trial.finish_jobs(START);
    if let Some(job) = steered.job {
        assert!(seen.iter().all(|report| report.id == job && report.passed <= report.total), "{seen:?}");
        assert!(seen.iter().all(|report| report.what == "fetch done URLs of queue a.example again"));
        assert!(seen.is_sorted_by_key(|report| (report.passed, report.affected)));
        let ended = trial.ended_jobs(START);
        assert_eq!((ended.len(), ended[0].id, ended[0].affected), (1, job, MANY as u64));
    }
    trial.done(START, &other);
    let stats = trial.stats(START);
    assert_eq!((stats.urls_in(UrlState::Pending), stats.urls_in(UrlState::Done)), (MANY as u64 + 1, 1));
}

/// A job that forgets very many stops where it is when it is cancelled.
pub fn forgetting_many_can_be_cancelled<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "");
    done_already(&trial, MANY);
    let steered = change(&trial, START, (None, Some("*")), UrlsChange::Forget);
    let Some(job) = steered.job else {
        assert_eq!(steered.affected, MANY as u64);
        return;
    };
    assert_eq!(trial.steer_crawl(START, CrawlChange::Cancel(job)).affected, 1);
    let left = trial.stats(START).urls_in(UrlState::Done);
    assert!(left > 0 && left < MANY as u64, "{left} are left");
    assert_eq!(trial.jobs(START), []);
    assert_eq!(trial.stats(START).urls_in(UrlState::Done), left);
}

/// What comes after a job began is left alone, also if it is done at once and takes the place of something that was forgotten.
pub fn what_came_later_is_not_forgotten<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    done_already(&trial, MANY);
    let urls = pages("a", MANY);
    change(&trial, START, (None, None), UrlsChange::Forget);
    // The last of them is stated anew, others are forgotten by hand, and new ones come and are done.
    let done = Some(trapline_core::Statement::Done);
    let again = trapline_core::Candidate { statement: done, ..trial.get(&urls[MANY - 1]) };
    trial.admit(START, &[again]);
    for url in &urls[MANY - 9..MANY - 4] {
        trial.wait(trial.frontier.forget(START, url)).expect("forget");
    }
    let later = trapline_core::Candidate { statement: done, ..trial.get("http://a.example/later") };
    trial.admit(START, &[later]);
    trial.finish_jobs(START);
    let left = trial.known(START, None, None, None, 100);
    let mut left: Vec<_> = left.iter().map(|url| &*url.request.as_ref().expect("known").url).collect();
    left.sort_unstable();
    assert_eq!(left, [&*urls[MANY - 1], "http://a.example/later"]);
}

/// What another job makes pending meanwhile is forgotten all the same.
pub fn what_is_visited_again_meanwhile_is_forgotten<H: Harness>(mut harness: H) {
    let store = harness.open();
    let trial = Trial::new(&harness, store, "delay=0");
    done_already(&trial, MANY);
    change(&trial, START, (None, None), UrlsChange::Revisit);
    change(&trial, START, (None, Some("*7")), UrlsChange::Forget);
    trial.finish_jobs(START);
    let stats = trial.stats(START);
    assert_eq!((stats.urls_in(UrlState::Pending), stats.urls_in(UrlState::Done)), (MANY as u64 * 9 / 10, 0));
}

/// URLs of a queue that are done.
fn done_already<H: Harness>(trial: &Trial<'_, H>, count: usize) {
    let done = Some(trapline_core::Statement::Done);
    let batch: Vec<_> = pages("a", count)
        .iter()
        .map(|url| trapline_core::Candidate { statement: done, ..trial.get(url) })
        .collect();
    trial.admit(START, &batch);
    assert_eq!(trial.stats(START).urls_in(UrlState::Done), count as u64);
}
