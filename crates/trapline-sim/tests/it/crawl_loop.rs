//! The loop of a crawl on generated webs in virtual time, with restarts, under the oracle.

use trapline_sim::{CrawlRun, simulate_crawl};

fn run(seed: u64) -> CrawlRun {
    let run = simulate_crawl(seed).expect("a store in memory can be opened");
    assert_eq!(run.breach, None, "seed {seed}, after {:?}", run.history.last());
    run
}

#[test]
fn three_hundred_webs_are_crawled_to_their_ends_and_the_contract_is_kept() {
    let mut all = CrawlRun::default();
    for seed in 0..300 {
        let run = run(seed);
        all.pages += run.pages;
        all.requests += run.requests;
        all.restarts += run.restarts;
        all.pauses += run.pauses;
    }
    assert!(all.pages > 10_000 && all.requests > all.pages, "{all:?}");
    assert!(all.restarts > 200 && all.pauses > 50, "{all:?}");
}

#[test]
fn one_seed_is_one_history_of_the_loop() {
    for seed in 1_000..1_010 {
        let once = run(seed);
        assert_eq!(once, run(seed), "seed {seed}");
        assert_ne!(once.history, run(seed + 100).history);
    }
}
