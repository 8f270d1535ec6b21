//! The model test: random scripts on the engine and on a naive second implementation of its specification.
//!
//! Where the two differ, the script is made as small as possible and printed, ready to be kept as a trace.
//! `TRAPLINE_MODEL_SEEDS=from..to` runs other seeds than the usual ones, or one alone.

mod generate;
mod naive;

use std::ops::Range;
use std::sync::Arc;

use trapline_core::Timestamp;
use trapline_frontier::script::{Player, Script, Verb, parse, shrink};
use trapline_frontier::{Fault, MemoryStore, Query, QueueState, Rows, Scan, Store, StoreError, UrlState};

use naive::Model;

/// An implementation of the frontier that answers scripts.
trait Engine {
    /// Plays one line and says what comes back.
    fn play(&mut self, at: Timestamp, verb: &Verb) -> String;
    /// What does not add up in its counts, if anything: scripts do not show them.
    fn miscount(&self, at: Timestamp) -> Option<String>;
}

/// Makes a fresh crawl with these settings.
type Factory = fn(settings: &[(String, String)]) -> Box<dyn Engine>;

impl Engine for Model {
    fn play(&mut self, at: Timestamp, verb: &Verb) -> String {
        Model::play(self, at, verb)
    }

    fn miscount(&self, _: Timestamp) -> Option<String> {
        None
    }
}

/// The engine under test.
fn engine(settings: &[(String, String)]) -> Box<dyn Engine> {
    play_on(MemoryStore::new(), settings)
}

/// The same, which goes on from an image of itself after every verb.
fn pictured(settings: &[(String, String)]) -> Box<dyn Engine> {
    play_on(crate::pictured::Pictured::default(), settings)
}

fn play_on(store: impl Store, settings: &[(String, String)]) -> Box<dyn Engine> {
    let store = Arc::new(store);
    Box::new(pollster::block_on(Player::start(store, "model", settings)).expect("the settings are valid"))
}

impl Engine for Player {
    fn play(&mut self, at: Timestamp, verb: &Verb) -> String {
        pollster::block_on(Player::play(self, at, verb)).expect("a memory store does not fail")
    }

    fn miscount(&self, at: Timestamp) -> Option<String> {
        pollster::block_on(async {
            let stats = self.frontier().stats(at).await?;
            let scan = Scan::new(Query::Queues { keys: None, state: None });
            let Rows::Queues(queues) = self.frontier().scan(at, &scan).await?.rows else {
                unreachable!("queues were asked for")
            };
            let counted = QueueState::ALL
                .map(|state| queues.iter().filter(|queue| queue.state == state).count() as u64);
            let pending: u64 = queues.iter().map(|queue| queue.pending).sum();
            let leased: u64 = queues.iter().map(|queue| queue.leased).sum();
            // A queue reconsidered with all others counts as inactive until it is touched, also if its group waits.
            let blurred = |mut counts: [u64; 7]| {
                counts[QueueState::Inactive as usize] +=
                    std::mem::take(&mut counts[QueueState::Snoozed as usize]);
                counts
            };
            let same = blurred(stats.queues) == blurred(counted)
                && stats.urls_in(UrlState::Pending) == pending
                && stats.urls_in(UrlState::Leased) == leased;
            Ok::<_, StoreError>((!same).then(|| format!("{stats:?}, but the queues are {queues:?}")))
        })
        .expect("a memory store does not fail")
    }
}

#[test]
fn the_engine_agrees_with_the_naive_model() {
    check_seeds(0..10_000, engine);
}

#[test]
fn images_of_the_engine_agree_with_the_naive_model() {
    check_seeds(0..1_000, pictured);
}

/// Checks these seeds, or those that are asked for.
fn check_seeds(seeds: Range<u64>, engine: Factory) {
    let seeds = match std::env::var("TRAPLINE_MODEL_SEEDS") {
        Ok(range) => read_range(&range).expect("TRAPLINE_MODEL_SEEDS must be two numbers, such as 0..10000"),
        Err(_) => seeds,
    };
    assert!(!seeds.is_empty(), "TRAPLINE_MODEL_SEEDS names no seed");
    // One thread takes the even seeds, the other the odd ones.
    let halves: [Vec<u64>; 2] = [0, 1].map(|odd| seeds.clone().filter(|seed| seed % 2 == odd).collect());
    let find = std::thread::scope(|scope| {
        let threads =
            halves.map(|half| scope.spawn(move || half.into_iter().find_map(|s| check_seed(s, engine))));
        threads.map(|thread| thread.join().expect("neither side panics")).into_iter().flatten().next()
    });
    if let Some(find) = find {
        panic!("{find}");
    }
}

fn read_range(text: &str) -> Option<Range<u64>> {
    let (from, to) = text.split_once("..")?;
    Some(from.trim().parse().ok()?..to.trim().parse().ok()?)
}

/// Whether a store with a fault answers the script of a seed otherwise than the model.
pub(crate) fn finds(fault: Fault, seed: u64) -> bool {
    let script = generate::script(seed);
    let tested = play_on(MemoryStore::faulty(fault), &script.settings);
    !agrees(&script, tested)
}

/// Whether an engine answers a generated script as the model does, whose answers are its expectations already.
fn agrees(script: &Script, mut tested: Box<dyn Engine>) -> bool {
    script.steps.iter().all(|step| {
        step.expected.as_deref() == Some(&*tested.play(step.at, &step.verb))
            && tested.miscount(step.at).is_none()
    })
}

/// A report if the engine and the model differ on the script of a seed.
fn check_seed(seed: u64, engine: Factory) -> Option<String> {
    let script = generate::script(seed);
    let differs = |script: &Script| first_difference(script, engine).map(|(step, _)| step);
    if agrees(&script, engine(&script.settings)) {
        return None;
    }
    let smallest = shrink(script, differs);
    let (expected, (_, answer)) = (expectations(&smallest), first_difference(&smallest, engine)?);
    Some(format!(
        "seed {seed}: the last line answered `{answer}` on the engine, the model expects:\n{expected}"
    ))
}

/// Where the engine first answers otherwise than the model, and what.
fn first_difference(script: &Script, engine: Factory) -> Option<(usize, String)> {
    let mut model = Model::new(&script.settings);
    let mut tested = engine(&script.settings);
    for (index, step) in script.steps.iter().enumerate() {
        let answer = tested.play(step.at, &step.verb);
        if answer != model.play(step.at, &step.verb) {
            return Some((index, answer));
        }
        if let Some(miscount) = tested.miscount(step.at) {
            return Some((index, format!("{answer}` and counts `{miscount}")));
        }
    }
    None
}

/// The script with the model's answers as its expectations.
fn expectations(script: &Script) -> Script {
    let mut model = Model::new(&script.settings);
    let mut script = script.clone();
    for step in &mut script.steps {
        step.expected = Some(model.play(step.at, &step.verb));
    }
    script
}

/// Plays a script on the model; a queue's expectation may name any of its values.
fn check(text: &str) {
    let script = parse(text).expect("a script");
    let mut model = Model::new(&script.settings);
    for step in &script.steps {
        let answer = model.play(step.at, &step.verb);
        let Some(expected) = &step.expected else { continue };
        let agrees = match &step.verb {
            Verb::Queue(_) => expected.split(' ').all(|pair| answer.split(' ').any(|shown| shown == pair)),
            _ => answer == *expected,
        };
        assert!(agrees, "line {}: {step}\nanswered {answer}", step.line);
    }
}

/// What one worker that claims and settles one URL at a time is handed out, at one moment.
fn serve(text: &str) -> Vec<String> {
    let script = parse(text).expect("a script");
    let mut model = Model::new(&script.settings);
    for step in &script.steps {
        model.play(step.at, &step.verb);
    }
    serve_on(&mut model)
}

fn serve_on(model: &mut Model) -> Vec<String> {
    let line = |text: &str| parse(text).expect("a line").steps.remove(0).verb;
    let mut urls = Vec::new();
    loop {
        let url = model.play(Timestamp::ZERO, &line("0 claim 1"));
        if url.is_empty() {
            return urls;
        }
        assert_eq!(model.play(Timestamp::ZERO, &line(&format!("0 settle {url} done"))), "done");
        urls.push(url.trim_start_matches("http://").replace(".example/", ""));
    }
}

/// Settings, then so many URLs of each host.
fn admitting(settings: &str, hosts: &[(&str, usize)]) -> String {
    let mut text = format!("set delay 0\n{settings}\n");
    for (host, urls) in hosts {
        for url in 1..=*urls {
            text.push_str(&format!("0 admit http://{host}.example/{url} -> added\n"));
        }
    }
    text
}

#[test]
fn the_example_script_holds() {
    check(
        "
        set lease 60s                      # any crawl setting by its name in the configuration
        set delay 0
        set balance_replenish 2
        0   admit  http://a.example/1                                   -> added
        0   admit  http://a.example/2 class=200 cost=2 depth=1          -> added
        0   admit  http://a.example/1                                   -> known
        0   claim  2 per_queue=1                                        -> http://a.example/1
        1s  settle http://a.example/1 done links=http://b.example/x     -> done
        1s  settle http://a.example/1 done                              -> stale
        2s  steer  a.example queue_budget=5                             -> ok
        2s  queue  a.example                                            -> state=ready pending=1 spent=1
        2s  url    http://a.example/1                                   -> done
        3s  crawl  pause                                                -> ok
        3s  claim  1                                                    ->
        ",
    );
}

#[test]
fn queues_rotate_when_their_balance_is_used_up() {
    let three = [("a", 5), ("b", 5), ("c", 5)];
    assert_eq!(
        serve(&admitting("set balance_replenish 2", &three)).join(" "),
        "a1 a2 b1 b2 c1 c2 a3 a4 b3 b4 c3 c4 a5 b5 c5"
    );
    assert_eq!(
        serve(&admitting("set cost zero", &three)).join(" "),
        "a1 a2 a3 a4 a5 b1 b2 b3 b4 b5 c1 c2 c3 c4 c5"
    );
}

#[test]
fn a_total_budget_retires_a_queue_until_it_is_raised() {
    let script = parse(&admitting("set queue_budget 3", &[("a", 5), ("b", 2)])).expect("a script");
    let mut model = Model::new(&script.settings);
    let play = |model: &mut Model, text: &str| {
        let step = parse(text).expect("a line").steps.remove(0);
        model.play(step.at, &step.verb)
    };
    for step in &script.steps {
        model.play(step.at, &step.verb);
    }
    assert_eq!(serve_on(&mut model).join(" "), "a1 a2 a3 b1 b2");
    assert!(play(&mut model, "0 queue a.example").starts_with("state=retired pending=2 "));
    assert_eq!(play(&mut model, "0 crawl"), "state=running exhausted=yes");
    assert_eq!(play(&mut model, "0 steer a.example queue_budget=5"), "ok");
    assert_eq!(serve_on(&mut model).join(" "), "a4 a5");
}

#[test]
fn wag_orders_by_cost() {
    let text = "
        set delay 0
        set cost wag
        set class cost
        0 admit http://a.example/p?x=1 via=http://a.example/q -> added
        0 admit http://a.example/p                            -> added
        0 admit http://a.example/p?x=2 via=http://a.example/p -> added
    ";
    assert_eq!(serve(text).join(" "), "ap ap?x=1 ap?x=2");
}

#[test]
fn a_better_queue_that_arrives_late_is_served_next() {
    let text = "
        set delay 0
        0 admit http://l.example/1              -> added
        0 admit http://l.example/2              -> added
        0 admit http://l.example/3              -> added
        0 claim 1                               -> http://l.example/1
        0 admit http://h.example/1 precedence=1 -> added
        0 admit http://h.example/2 precedence=1 -> added
        0 settle http://l.example/1 done        -> done
    ";
    check(text);
    assert_eq!(serve(text).join(" "), "h1 h2 l2 l3");
}

#[test]
fn a_lease_expires_at_its_deadline() {
    check(
        "
        set lease 60s
        0   admit  http://a.example/1              -> added
        0   claim  10                              -> http://a.example/1
        59s claim  10                              ->
        60s claim  10                              -> http://a.example/1
        61s settle http://a.example/1 done lease=1 -> stale
        ",
    );
}

#[test]
fn a_queue_waits_after_a_settlement() {
    check(
        "
        set delay 500ms
        0     admit  http://a.example/1      -> added
        0     admit  http://a.example/2      -> added
        0     claim  1                       -> http://a.example/1
        100ms settle http://a.example/1 done -> done
        599ms claim  1                       ->
        600ms claim  1                       -> http://a.example/2
        ",
    );
}

/// A model with a mistake, to see that the test would find one.
struct Mistaken(Model);

impl Engine for Mistaken {
    fn play(&mut self, at: Timestamp, verb: &Verb) -> String {
        let answer = self.0.play(at, verb);
        if answer == "disregarded" { "done".to_owned() } else { answer }
    }

    fn miscount(&self, _: Timestamp) -> Option<String> {
        None
    }
}

#[test]
fn a_difference_is_found_and_made_small() {
    let mistaken: Factory = |settings| Box::new(Mistaken(Model::new(settings)));
    let find = (0..100).find_map(|seed| check_seed(seed, mistaken)).expect("a script with a disregard");
    assert!(find.contains("answered `done` on the engine"), "{find}");
    let lines: Vec<_> = find.lines().skip(1).collect();
    assert_eq!(lines.len(), 3, "one admission, one claim, one settlement: {find}");
    assert!(lines[2].ends_with("disregard -> disregarded"), "{find}");
    check(&lines.join("\n"));
}
