use std::sync::Arc;
use trapline_frontier::{MemoryStore, script};

fn check(text: &str) {
    let script = script::parse(text).unwrap();
    let mut out = String::new();
    let different = pollster::block_on(script::run(
        &script,
        Arc::new(MemoryStore::new()),
        None,
        |step, answer, verdict| {
            out += &format!("{:?} {step} => {answer}\n", verdict);
        },
    ))
    .unwrap();
    assert_eq!(different, 0, "\n{out}");
}

#[test]
fn example() {
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
fn rotation() {
    let mut text = "set delay 0\nset balance_replenish 2\n".to_string();
    for q in ["a", "b", "c"] {
        for i in 1..=5 {
            text += &format!("0 admit http://{q}.example/{i} -> added\n");
        }
    }
    for (q, i) in [
        ("a", 1),
        ("a", 2),
        ("b", 1),
        ("b", 2),
        ("c", 1),
        ("c", 2),
        ("a", 3),
        ("a", 4),
        ("b", 3),
        ("b", 4),
        ("c", 3),
        ("c", 4),
        ("a", 5),
        ("b", 5),
        ("c", 5),
    ] {
        text +=
            &format!("0 claim 1 -> http://{q}.example/{i}\n0 settle http://{q}.example/{i} done -> done\n");
    }
    text += "0 claim 1 ->\n0 crawl -> state=running exhausted=yes\n";
    check(&text);
}

#[test]
fn budget() {
    check(
        "
set delay 0
set queue_budget 3
0 admit http://a.example/1 -> added
0 admit http://a.example/2 -> added
0 admit http://a.example/3 -> added
0 admit http://a.example/4 -> added
0 admit http://a.example/5 -> added
0 admit http://b.example/1 -> added
0 admit http://b.example/2 -> added
0 claim 1 -> http://a.example/1
0 settle http://a.example/1 done -> done
0 claim 1 -> http://a.example/2
0 settle http://a.example/2 done -> done
0 claim 1 -> http://a.example/3
0 settle http://a.example/3 done -> done
0 claim 1 -> http://b.example/1
0 settle http://b.example/1 done -> done
0 claim 1 -> http://b.example/2
0 settle http://b.example/2 done -> done
0 claim 1 ->
0 queue a.example -> state=retired pending=2
0 crawl -> exhausted=yes
0 steer a.example queue_budget=5 -> ok
0 claim 1 -> http://a.example/4
0 settle http://a.example/4 done -> done
0 claim 1 -> http://a.example/5
",
    );
}

#[test]
fn leases() {
    check(
        "
set lease 60s
0 admit http://a.example/1 -> added
0 claim 1 -> http://a.example/1
59s claim 1 ->
60s claim 1 -> http://a.example/1
61s settle http://a.example/1 done lease=1 -> stale
",
    );
    check(
        "
set delay 500ms
0 admit http://a.example/1 -> added
0 admit http://a.example/2 -> added
0 claim 1 -> http://a.example/1
100ms settle http://a.example/1 done -> done
599ms claim 1 ->
600ms claim 1 -> http://a.example/2
",
    );
}
