//! Several threads at once: the same offers, made and prepared and admitted by one thread, and by two.

use std::sync::Mutex;
use std::time::Instant;

use trapline_bench::measure::cpu_time;
use trapline_bench::stream::Offers;
use trapline_core::{Request, Timestamp};
use trapline_frontier::Admission;

use super::{BATCH, SEED, Wish, open, remove};

/// So often, in turns.
const ROUNDS: usize = 3;

pub fn run(wish: &Wish) {
    let mut best = [0.0_f64; 2];
    println!("{} offers from URL strings, half of them known, batches of {BATCH}\n", 2 * wish.urls);
    for _ in 0..ROUNDS {
        for (threads, best) in (1..).zip(&mut best) {
            let (rate, cpu) = offers(wish, threads);
            println!("{threads} thread(s): {rate:.0} offers/s, {cpu:.2} CPU us each");
            *best = best.max(rate);
        }
    }
    println!("\ntwo threads against one, the best of {ROUNDS} each: {:.2}", best[1] / best[0]);
}

/// Offers a second, and CPU microseconds each.
fn offers(wish: &Wish, threads: usize) -> (f64, f64) {
    let frontier = open(wish);
    let total = 2 * wish.urls;
    // All is made ahead, so that the threads have nothing to share but the store.
    let stream: Vec<Vec<String>> = {
        let mut offers = Offers::new(SEED, total, wish.hosts);
        std::iter::from_fn(|| Some(offers.batch(BATCH)).filter(|batch| !batch.is_empty())).collect()
    };
    let batches = Mutex::new(stream.into_iter());
    let added = Mutex::new(0);
    let (begun, cpu) = (Instant::now(), cpu_time());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut mine = 0;
                loop {
                    let Some(batch) = batches.lock().expect("nobody panics").next() else { break };
                    let requests = batch.into_iter().map(Request::get);
                    let admitted = pollster::block_on(frontier.admit(Timestamp::from_millis(1), requests));
                    let answers = admitted.expect("the store admits");
                    mine += answers.iter().filter(|answer| **answer == Admission::Added).count() as u64;
                }
                *added.lock().expect("nobody panics") += mine;
            });
        }
    });
    let took = begun.elapsed().as_secs_f64();
    let cpu = (cpu_time() - cpu).as_secs_f64();
    assert_eq!(*added.lock().expect("nobody panics"), wish.urls, "each URL is new once, whoever brings it");
    drop(frontier);
    remove(&wish.folder);
    (total as f64 / took, cpu * 1e6 / total as f64)
}
