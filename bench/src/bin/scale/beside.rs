//! One queue with very many URLs, and the others: what they cost when it is there, and when it is not.

use std::time::{Duration, Instant};

use trapline_bench::measure::cpu_time;
use trapline_bench::stream::url;
use trapline_core::{Request, Timestamp};
use trapline_frontier::{Admission, Answer, Frontier, Outcome, QueueChange, Settlement, Want};

use super::{BATCH, SEED, Tails, Wish, open, remove};

/// So often, in turns.
const ROUNDS: usize = 3;

/// The others: so many queues, and URLs.
const HOSTS: u64 = 1000;
const URLS: u64 = 200_000;

const HUGE: &str = "huge.example";

/// Microseconds of wall and of CPU time for each URL, and the slowest batch in milliseconds.
struct Cost {
    wall: f64,
    cpu: f64,
    slowest: f64,
}

/// What there is beside them.
#[derive(Clone, Copy)]
enum Beside {
    Nothing,
    /// One queue, which could be served and is not asked for.
    OneQueue,
    /// As many URLs of many queues: what the size of the store costs.
    ManyQueues,
}

pub fn run(wish: &Wish) {
    println!(
        "{URLS} URLs of {HOSTS} queues are offered, claimed and settled, with {} others beside them; batches of {BATCH}\n",
        wish.urls
    );
    println!("| beside | offers: us / CPU us / slowest batch ms | cycles: us / CPU us / slowest batch ms |");
    println!("|---|---|---|");
    let cases = [
        (Beside::Nothing, "nothing".to_owned()),
        (Beside::OneQueue, "one queue".to_owned()),
        (Beside::ManyQueues, format!("{} queues", wish.hosts)),
    ];
    // A snapshot that comes into one of them and not into another would be all the difference.
    let mut wish = wish.clone();
    wish.options.snapshot_bytes = u64::MAX;
    let mut best = [[f64::INFINITY; 2]; 3];
    for _ in 0..ROUNDS {
        for ((beside, name), best) in cases.iter().zip(&mut best) {
            let costs = others(&wish, *beside);
            let [offers, cycles] = costs
                .each_ref()
                .map(|Cost { wall, cpu, slowest }| format!("{wall:.2} / {cpu:.2} / {slowest:.1}"));
            println!("| {name} | {offers} | {cycles} |");
            for (best, cost) in best.iter_mut().zip(costs) {
                *best = best.min(cost.cpu);
            }
        }
    }
    let [nothing, one, many] = best;
    for (name, base) in [("many queues", many), ("nothing", nothing)] {
        let [offers, cycles] = [0, 1].map(|what| one[what] / base[what]);
        println!(
            "\nCPU time beside one queue against {name}, the best of {ROUNDS} each: offers {offers:.2}, cycles {cycles:.2}"
        );
    }
}

/// What offers and cycles of the others cost beside something.
fn others(wish: &Wish, beside: Beside) -> [Cost; 2] {
    let frontier = open(wish);
    fill(&frontier, wish, beside);
    rest();
    let batches = |number: u64| number * BATCH as u64..(number + 1) * BATCH as u64;
    let batch = |number: u64| batches(number).map(|number| url(number % HOSTS, SEED + number)).collect();
    let mut made: Vec<Vec<String>> = (0..URLS / BATCH as u64).map(batch).collect();
    let offers = cost(|| made.pop().map(|batch| admit(&frontier, batch)));
    let want = Want { except: vec![HUGE.to_owned()], ..Want::urls(BATCH) };
    let cycles = cost(|| cycle(&frontier, &want).then_some(()));
    drop(frontier);
    remove(&wish.folder);
    [offers, cycles]
}

fn fill(frontier: &Frontier, wish: &Wish, beside: Beside) {
    let host = |number: u64| match beside {
        Beside::Nothing => None,
        Beside::OneQueue => Some(HUGE.to_owned()),
        Beside::ManyQueues => Some(format!("{}.beside.example", number % wish.hosts)),
    };
    for first in (0..wish.urls).step_by(BATCH) {
        let numbers = first..wish.urls.min(first + BATCH as u64);
        let page = |number| host(number).map(|host| format!("http://{host}/page/{number}"));
        admit(frontier, numbers.filter_map(page).collect());
    }
    if let Beside::ManyQueues = beside {
        // A list of them all with each claim would cost more than what is measured.
        for number in 0..wish.hosts {
            let key = format!("{number}.beside.example");
            let blocked = frontier.steer_queue(Timestamp::ZERO, &key, QueueChange::Block(Timestamp::MAX));
            pollster::block_on(blocked).expect("the store steers");
        }
    }
}

/// Waits until nothing goes on in the background any more.
fn rest() {
    loop {
        let before = cpu_time();
        std::thread::sleep(Duration::from_millis(300));
        if cpu_time() - before < Duration::from_millis(3) {
            return;
        }
    }
}

fn admit(frontier: &Frontier, batch: Vec<String>) {
    let requests = batch.into_iter().map(Request::get);
    let admitted = pollster::block_on(frontier.admit(Timestamp::ZERO, requests)).expect("the store admits");
    assert!(admitted.iter().all(|admission| *admission == Admission::Added), "each URL is new");
}

/// Claims and settles a batch; answers whether there was one.
fn cycle(frontier: &Frontier, want: &Want) -> bool {
    let claimed = pollster::block_on(frontier.claim(Timestamp::ZERO, want.clone()));
    let leases = claimed.expect("the store grants").leases;
    assert!(leases.iter().all(|lease| &*lease.key != HUGE), "it was not asked for");
    let done: Vec<_> = leases.iter().map(|lease| Settlement::new(lease.id, Outcome::done())).collect();
    let is_some = !done.is_empty();
    let settled = pollster::block_on(frontier.settle(Timestamp::ZERO, done)).expect("the store settles");
    assert!(settled.iter().all(|settled| settled.answer == Answer::Done), "no lease is stale");
    is_some
}

/// What a batch costs that is done until there is none.
fn cost(mut batch: impl FnMut() -> Option<()>) -> Cost {
    let mut tails = Tails::default();
    let (begun, cpu) = (Instant::now(), cpu_time());
    while tails.time(&mut batch).is_some() {}
    let (wall, cpu) = (begun.elapsed(), cpu_time() - cpu);
    let [.., slowest] = tails.take();
    let each = |seconds: f64| seconds * 1e6 / URLS as f64;
    Cost { wall: each(wall.as_secs_f64()), cpu: each(cpu.as_secs_f64()), slowest }
}
