//! The model test on the engine, and tests of the model itself.
//! `TRAPLINE_MODEL_SEEDS=from..to` runs other seeds than the usual ones, or one alone.

use std::sync::Arc;

use trapline_core::Timestamp;
use trapline_frontier::model::{Factory, Model, Subject, agrees_on, check_seed, check_seeds};
use trapline_frontier::script::{Player, Verb, parse};
use trapline_frontier::{Fault, MemoryStore, Store};

/// The engine under test.
fn engine(settings: &[(String, String)]) -> Box<dyn Subject> {
    play_on(MemoryStore::new(), settings)
}

/// The same, which goes on from an image of itself after every verb.
fn pictured(settings: &[(String, String)]) -> Box<dyn Subject> {
    play_on(crate::pictured::Pictured::default(), settings)
}

fn play_on(store: impl Store, settings: &[(String, String)]) -> Box<dyn Subject> {
    let store = Arc::new(store);
    Box::new(pollster::block_on(Player::start(store, "model", settings)).expect("the settings are valid"))
}

#[test]
fn the_engine_agrees_with_the_naive_model() {
    check_seeds(0..10_000, engine);
}

#[test]
fn images_of_the_engine_agree_with_the_naive_model() {
    check_seeds(0..1_000, pictured);
}

/// Whether a store with a fault answers the script of a seed otherwise than the model.
pub(crate) fn finds(fault: Fault, seed: u64) -> bool {
    !agrees_on(seed, |settings| play_on(MemoryStore::faulty(fault), settings))
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

impl Subject for Mistaken {
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
    assert!(find.contains("answered `done` on the store"), "{find}");
    let lines: Vec<_> = find.lines().skip(1).collect();
    assert_eq!(lines.len(), 3, "one admission, one claim, one settlement: {find}");
    assert!(lines[2].ends_with("disregard -> disregarded"), "{find}");
    check(&lines.join("\n"));
}
