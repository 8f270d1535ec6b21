//! Random crawls copied from one store in memory to another, with trouble at every step on the way.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use trapline_core::{Candidate, Request, Timestamp};
use trapline_frontier::{
    Admission, Claimed, CrawlChange, CrawlState, ErrorKind, Frontier, MemoryStore, Page, Scan, Settled,
    Settlement, Stats, Steer, Steered, Store, StoreError, Want,
};

use super::course::{Course, Outcome};
use super::mark::{COPY_NOTE, Mark, Part};
use super::progress::Progress;
use super::stop::Stop;
use crate::frontier_command::round_trip::{used_on, written};
use crate::moment;

const NAME: &str = "crawl\n💡";

/// A store that does so many verbs more, and is then away; the last one it does, and does not answer.
struct Failing {
    store: MemoryStore,
    left: AtomicI64,
}

impl Failing {
    fn new() -> Arc<Self> {
        Arc::new(Self { store: MemoryStore::new(), left: AtomicI64::new(i64::MAX) })
    }

    fn fail_after(&self, verbs: i64) {
        self.left.store(verbs, Ordering::Relaxed);
    }

    /// Whether it is there, whether it answers.
    fn count(&self) -> (bool, bool) {
        let left = self.left.fetch_sub(1, Ordering::Relaxed);
        (left > 0, left > 1)
    }
}

fn away() -> StoreError {
    StoreError::new(ErrorKind::Unavailable, "it is away")
}

#[async_trait]
impl Store for Failing {
    async fn admit(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: &[Candidate],
    ) -> Result<Vec<Admission>, StoreError> {
        self.store.admit(crawl, now, batch).await
    }

    async fn claim(&self, crawl: Option<&str>, now: Timestamp, want: &Want) -> Result<Claimed, StoreError> {
        self.store.claim(crawl, now, want).await
    }

    async fn settle(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: Vec<Settlement>,
    ) -> Result<Vec<Settled>, StoreError> {
        self.store.settle(crawl, now, batch).await
    }

    async fn steer(&self, crawl: &str, now: Timestamp, steer: Steer) -> Result<Steered, StoreError> {
        let (is_there, answers) = self.count();
        if !is_there {
            return Err(away());
        }
        let steered = self.store.steer(crawl, now, steer).await;
        if answers { steered } else { Err(away()) }
    }

    async fn scan(&self, crawl: &str, now: Timestamp, scan: &Scan) -> Result<Page, StoreError> {
        if !self.count().0 {
            return Err(away());
        }
        self.store.scan(crawl, now, scan).await
    }

    async fn stats(&self, crawl: &str, now: Timestamp) -> Result<Stats, StoreError> {
        if !self.count().0 {
            return Err(away());
        }
        self.store.stats(crawl, now).await
    }
}

/// Two stores and a clock.
struct Trial {
    source: Arc<Failing>,
    target: Arc<Failing>,
    now: AtomicU64,
}

/// What is chosen.
#[derive(Clone, Copy, Default)]
struct Choice {
    anew: bool,
    leaves_running: bool,
    stays_paused: bool,
}

impl Trial {
    fn new() -> Self {
        let now = AtomicU64::new(moment::now().as_millis());
        Self { source: Failing::new(), target: Failing::new(), now }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now.load(Ordering::Relaxed))
    }

    fn pass(&self, time: Duration) {
        self.now.fetch_add(time.as_millis() as u64, Ordering::Relaxed);
    }

    fn copy(&self, choice: Choice) -> Result<Outcome, String> {
        let source: Arc<dyn Store> = self.source.clone();
        let target: Arc<dyn Store> = self.target.clone();
        let course = Course {
            from: "FROM",
            to: "TO",
            place: "there",
            source: &source,
            target: &target,
            crawl: NAME,
            copy: "copy",
            wait: Duration::ZERO,
            stays_paused: choice.stays_paused || choice.leaves_running,
            leaves_running: choice.leaves_running,
            anew: choice.anew,
            clock: &|| self.now(),
            stop: &Stop::default(),
        };
        course.run(&mut Progress::new())
    }

    fn target(&self) -> Frontier {
        let store: Arc<dyn Store> = self.target.clone();
        pollster::block_on(Frontier::builder("copy").attach(store, Timestamp::ZERO)).expect("it is there")
    }

    fn source(&self) -> Frontier {
        let store: Arc<dyn Store> = self.source.clone();
        pollster::block_on(Frontier::builder(NAME).attach(store, Timestamp::ZERO)).expect("it is there")
    }

    /// All lines of both but those that name the crawl, in the order in which they are told.
    fn lines(&self) -> [Vec<String>; 2] {
        let now = self.now();
        [self.source(), self.target()].map(|frontier| {
            let file = written(&[frontier], now);
            let others = ["{\"format\"", "{\"crawl\"", "{\"end"];
            let told = |line: &&str| !others.iter().any(|other| line.starts_with(other));
            file.lines().filter(told).map(str::to_owned).collect()
        })
    }

    fn state_of(frontier: &Frontier) -> CrawlState {
        pollster::block_on(frontier.report(Timestamp::ZERO)).expect("it answers").state
    }
}

#[track_caller]
fn same(outcome: Result<Outcome, String>, told: &str) {
    let outcome = outcome.unwrap_or_else(|problem| panic!("{told}: {problem}"));
    assert_eq!(outcome.compared.differences, [], "{told}");
}

#[test]
fn a_random_crawl_is_the_same_in_the_copy() {
    for seed in 0..60 {
        let trial = Trial::new();
        used_on(trial.source.clone(), seed, trial.now(), true);
        same(trial.copy(Choice::default()), &format!("seed {seed}"));
        let [one, two] = trial.lines();
        for (two, one) in two.iter().zip(&one) {
            assert_eq!(two, one, "seed {seed}");
        }
        assert_eq!(two.len(), one.len(), "seed {seed}");
        assert_eq!(Trial::state_of(&trial.source()), CrawlState::Paused);
        assert_eq!(Trial::state_of(&trial.target()), CrawlState::Running);
        let again = trial.copy(Choice::default()).expect("it is there");
        assert_eq!((again.done, again.compared.differences.len()), ("there already", 0));
    }
}

/// Wherever either store goes away, before or after it did what it was told, the same command brings the copy to its end.
#[test]
fn a_copy_that_was_interrupted_goes_on_where_it_was() {
    let mut parts = BTreeSet::new();
    for seed in 0..6 {
        for verbs in 0.. {
            let trial = Trial::new();
            used_on(trial.source.clone(), seed, trial.now(), true);
            let failing = if verbs % 2 == 0 { &trial.source } else { &trial.target };
            failing.fail_after(verbs / 2);
            let interrupted = trial.copy(Choice::default());
            failing.fail_after(i64::MAX);
            if let Err(problem) = &interrupted {
                assert!(problem.starts_with("it is away"), "{problem}");
            } else if verbs % 2 == 1 {
                break;
            }
            if pollster::block_on(trial.target.stats("copy", Timestamp::ZERO)).is_ok() {
                let claimed = pollster::block_on(trial.target().claim(trial.now(), 9)).expect("claimed");
                let mark = super::ask::note_of(&trial.target(), COPY_NOTE).expect("it answers");
                let part = mark.and_then(|mark| Mark::read(&mark)).map(|mark| mark.part);
                assert!(
                    claimed.leases.is_empty() || part.is_none_or(|part| part == Part::Compared),
                    "seed {seed}, {verbs} verbs: it is paused until all of it is there"
                );
                parts.extend(part);
                if !claimed.leases.is_empty() {
                    // It was whole, and somebody has begun to work.
                    continue;
                }
            }
            trial.pass(Duration::from_millis(1));
            same(trial.copy(Choice::default()), &format!("seed {seed}, {verbs} verbs"));
            assert_eq!(Trial::state_of(&trial.target()), CrawlState::Running, "seed {seed}, {verbs} verbs");
            assert_eq!(Trial::state_of(&trial.source()), CrawlState::Paused, "seed {seed}, {verbs} verbs");
            let [one, two] = trial.lines();
            assert_eq!(two, one, "seed {seed}, {verbs} verbs");
        }
    }
    assert_eq!(parts.len(), 6, "it was interrupted everywhere: {parts:?}");
}

/// Time may pass in the original between two commands, or while one is at work: what is due moves, and still nothing is lost.
#[test]
fn time_that_passes_in_the_original_loses_nothing() {
    for seed in 0..24 {
        for verbs in (4..).step_by(3) {
            let trial = Trial::new();
            used_on(trial.source.clone(), seed, trial.now(), true);
            trial.target.fail_after(verbs);
            let interrupted = trial.copy(Choice::default());
            trial.target.fail_after(i64::MAX);
            if interrupted.is_ok() {
                break;
            }
            trial.pass(Duration::from_secs(15 * 3600));
            pollster::block_on(trial.source().claim(trial.now(), 9)).expect("it answers");
            same(trial.copy(Choice::default()), &format!("seed {seed}, {verbs} verbs"));
        }
    }
}

#[test]
fn leases_come_over_as_pending() {
    let mut leases = 0;
    for seed in 0..20 {
        let trial = Trial::new();
        used_on(trial.source.clone(), seed, trial.now(), false);
        let outcome = trial.copy(Choice::default()).expect("it is copied");
        assert_eq!(outcome.compared.differences, [], "seed {seed}");
        leases += outcome.leased;
        // They expire in the original meanwhile.
        let trial = Trial::new();
        used_on(trial.source.clone(), seed, trial.now(), false);
        trial.target.fail_after(20);
        let interrupted = trial.copy(Choice::default());
        trial.target.fail_after(i64::MAX);
        trial.pass(Duration::from_secs(3600));
        if interrupted.is_err() {
            pollster::block_on(trial.source().claim(trial.now(), 9)).expect("it answers");
            same(trial.copy(Choice::default()), &format!("seed {seed}"));
        }
    }
    assert!(leases > 20, "{leases}");
}

#[test]
fn a_crawl_that_was_used_meanwhile_is_begun_anew() {
    let trial = Trial::new();
    let from = used_on(trial.source.clone(), 3, trial.now(), true);
    trial.target.fail_after(25);
    assert!(trial.copy(Choice::default()).is_err());
    trial.target.fail_after(i64::MAX);
    pollster::block_on(from.admit(trial.now(), [Request::get("http://new.example/")])).expect("admitted");
    let problem = trial.copy(Choice::default()).err().expect("it was used");
    assert!(problem.contains("was used since this copy was begun"), "{problem}");
    assert!(problem.contains("--anew throws away what was copied and begins again"), "{problem}");
    same(trial.copy(Choice { anew: true, ..Choice::default() }), "anew");
    let [one, two] = trial.lines();
    assert_eq!(two, one);
    assert_eq!(
        Trial::state_of(&trial.target()),
        CrawlState::Running,
        "as before it was paused the first time"
    );
}

#[test]
fn states_are_taken_on_as_was_chosen() {
    let check = |state: CrawlChange, choice: Choice, from: CrawlState, to: CrawlState| {
        let trial = Trial::new();
        let frontier = used_on(trial.source.clone(), 5, trial.now(), true);
        pollster::block_on(frontier.steer_crawl(trial.now(), state)).expect("steered");
        same(trial.copy(choice), "states");
        assert_eq!(Trial::state_of(&trial.source()), from);
        assert_eq!(Trial::state_of(&trial.target()), to);
    };
    let enough = CrawlState::Finished("enough\n".to_owned());
    let running = Choice { leaves_running: true, ..Choice::default() };
    let paused = Choice { stays_paused: true, ..Choice::default() };
    check(CrawlChange::Resume, Choice::default(), CrawlState::Paused, CrawlState::Running);
    check(CrawlChange::Resume, running, CrawlState::Running, CrawlState::Paused);
    check(CrawlChange::Resume, paused, CrawlState::Paused, CrawlState::Paused);
    check(CrawlChange::Pause, Choice::default(), CrawlState::Paused, CrawlState::Paused);
    check(CrawlChange::Finish("enough\n".to_owned()), Choice::default(), enough.clone(), enough);
}

/// What was changed on either side is found, wherever it is.
#[test]
fn a_copy_that_differs_is_not_let_go() {
    let trial = Trial::new();
    used_on(trial.source.clone(), 9, trial.now(), true);
    // It is interrupted when all is there, before it is compared.
    let to = (20..)
        .find_map(|verbs| {
            if pollster::block_on(trial.target.stats("copy", Timestamp::ZERO)).is_ok() {
                pollster::block_on(trial.target.steer(
                    "copy",
                    trial.now(),
                    Steer::Crawl(CrawlChange::Delete),
                ))
                .expect("deleted");
            }
            trial.target.fail_after(verbs);
            assert!(trial.copy(Choice::default()).is_err(), "it was never at that point");
            trial.target.fail_after(i64::MAX);
            let to = trial.target();
            let mark = super::ask::note_of(&to, COPY_NOTE).expect("it answers")?;
            (Mark::read(&mark)?.part == Part::Copied).then_some(to)
        })
        .expect("it was there");
    let [one, _] = trial.lines();
    let line = one.iter().find(|line| line.starts_with("{\"url\"") && line.contains("\"state\":\"pending\""));
    let url: serde_json::Value = serde_json::from_str(line.expect("something is pending")).expect("JSON");
    let url = url["url"].as_str().expect("a URL");
    pollster::block_on(to.forget(trial.now(), url)).expect("forgotten");
    let outcome = trial.copy(Choice::default()).expect("it is compared");
    let told: Vec<_> = outcome.compared.differences.iter().map(|one| (&*one.name, &*one.what)).collect();
    assert!(told.contains(&(url, "is missing in the copy")), "{told:?}");
    assert_eq!(Trial::state_of(&to), CrawlState::Paused);
    assert!(!trial.copy(Choice::default()).expect("it is compared").compared.differences.is_empty());
    same(trial.copy(Choice { anew: true, ..Choice::default() }), "anew");
    assert_eq!(
        Trial::state_of(&trial.target()),
        CrawlState::Paused,
        "the original was paused by the first command"
    );
}
