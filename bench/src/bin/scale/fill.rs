//! Many URLs: how fast they come in as there are more of them, what they take, and how long opening takes after `kill -9`.

use std::process::{Command, Stdio};
use std::time::Instant;

use trapline_bench::measure::{cpu_time, resident};
use trapline_bench::stream::Offers;
use trapline_core::{Candidate, IdentityKey, Preparer, Request, Timestamp};
use trapline_frontier::{Admission, QueueState, UrlState};

use super::{BATCH, HEAD, SEED, Tails, Wish, open as open_store, remove, row, stats};

/// Offers twice as many as there will be, half of them known, in tenths; then somebody else opens what is there.
pub fn run(wish: &Wish) {
    let offers = 2 * wish.urls;
    println!(
        "offers of {} URLs over {} hosts, batches of {BATCH}, one client, prepared off the clock\n",
        wish.urls, wish.hosts
    );
    println!("{HEAD}");
    let frontier = open_store(wish);
    let preparer = Preparer::new(IdentityKey::from_seed(SEED));
    let mut stream = Offers::new(SEED, offers, wish.hosts);
    let mut tails = Tails::default();
    let (mut done, mut now) = (0, 0);
    // The first tenth is looked at in tenths of its own: there it begins.
    let marks = (1..10).map(|part| offers * part / 100).chain((1..=10).map(|part| offers * part / 10));
    let mut all = [0.0_f64; 2];
    for mark in marks {
        let before = done;
        let mut wall = 0.0;
        while done < mark {
            let urls = stream.batch(BATCH);
            let batch: Vec<Candidate> =
                urls.into_iter().map(|url| preparer.prepare(Request::get(url)).expect("a URL")).collect();
            done += batch.len() as u64;
            now += 1;
            let begun = Instant::now();
            let admitted = tails
                .time(|| pollster::block_on(frontier.admit_candidates(Timestamp::from_millis(now), &batch)));
            wall += begun.elapsed().as_secs_f64();
            drop(admitted.expect("the store admits"));
        }
        let rate = (done - before) as f64 / wall;
        let took = tails.take();
        all = [all[0].max(took[2]), all[1].max(took[3])];
        row(&format!("{} M", done as f64 / 2e6), rate, took, &stats(&frontier, Timestamp::from_millis(now)));
    }
    let known = stats(&frontier, Timestamp::from_millis(now));
    let memory = known.memory.expect("it is here");
    let urls = known.urls.iter().sum::<u64>() as f64;
    let pending = known.urls_in(UrlState::Pending) as f64;
    let queues: u64 = QueueState::ALL.iter().map(|state| known.queues_in(*state)).sum();
    println!("\nslowest 999th of 1,000 of a row {:.1} ms, slowest of all {:.1} ms", all[0], all[1]);
    println!(
        "memory by its own account: {:.1} bytes a known URL, {:.1} more a pending one, {:.0} a queue; resident {} MiB, {:.1} bytes a URL",
        (memory.seen + memory.records) as f64 / urls,
        memory.pending as f64 / pending,
        memory.queues as f64 / queues as f64,
        resident().0 / 1024,
        resident().0 as f64 * 1024.0 / urls
    );
    // Nothing is closed: what is there is what a process leaves that is killed.
    std::mem::forget(frontier);
    if wish.keep {
        println!("left in {}", wish.folder.display());
        return;
    }
    let program = std::env::current_exe().expect("this program");
    let mut child = Command::new(program);
    child.args(["open", "--urls", &wish.urls.to_string(), "--hosts", &wish.hosts.to_string()]);
    child.args(["--lazy-bytes", &wish.options.lazy_bytes.to_string()]);
    if let Some(most) = wish.options.max_memory {
        child.args(["--max-memory", &most.to_string()]);
    }
    child.arg("--dir").arg(&wish.folder).stdin(Stdio::null());
    // Both would own the folder. The lock goes with the process, so this one becomes the other.
    let error = std::os::unix::process::CommandExt::exec(&mut child);
    panic!("cannot go on: {error}");
}

/// So many batches are offered after opening.
const FIRST_BATCHES: usize = 500;

/// Opens what one left that was as good as killed, and offers URLs that it knows.
pub fn open(wish: &Wish) {
    let (begun, cpu) = (Instant::now(), cpu_time());
    let frontier = open_store(wish);
    let took = begun.elapsed();
    let found = stats(&frontier, Timestamp::ZERO);
    println!(
        "opening: {:.2} s, CPU {:.2} s; {} known; resident {} MiB",
        took.as_secs_f64(),
        (cpu_time() - cpu).as_secs_f64(),
        found.urls.iter().sum::<u64>(),
        resident().0 / 1024
    );
    assert_eq!(found.urls.iter().sum::<u64>(), wish.urls, "all that was acknowledged is there");
    let preparer = Preparer::new(IdentityKey::from_seed(SEED));
    let mut stream = Offers::new(SEED, 2 * wish.urls, wish.hosts);
    let mut tails = Tails::default();
    let begun = Instant::now();
    for _ in 0..FIRST_BATCHES {
        let urls = stream.batch(BATCH);
        let batch: Vec<Candidate> =
            urls.into_iter().map(|url| preparer.prepare(Request::get(url)).expect("a URL")).collect();
        let admitted = tails.time(|| pollster::block_on(frontier.admit_candidates(Timestamp::ZERO, &batch)));
        assert!(admitted.expect("the store admits").iter().all(|admission| *admission == Admission::Known));
    }
    let [half, most, nearly, all] = tails.take();
    println!(
        "the first {FIRST_BATCHES} batches, all known, in {:.2} s: ms {half:.2} / {most:.1} / {nearly:.1} / {all:.1}",
        begun.elapsed().as_secs_f64()
    );
    if wish.keep {
        std::mem::forget(frontier);
        return;
    }
    drop(frontier);
    remove(&wish.folder);
}
