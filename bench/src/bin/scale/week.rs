//! A week in an hour: all URLs are visited again and again, and what they take stays the same.

use std::time::{Duration, Instant};

use trapline_bench::stream::url;
use trapline_core::{Request, Timestamp};
use trapline_frontier::{Answer, Frontier, Outcome, Settlement, Visit, Want};

use super::{BATCH, HEAD, Tails, Wish, open, remove, row, stats};

pub fn run(wish: &Wish) {
    println!(
        "{} settlements on {} URLs over {} hosts, each with a page record and a next visit; claim + settle in batches of {BATCH}\n",
        wish.settlements, wish.urls, wish.hosts
    );
    let frontier = open(wish);
    for first in (0..wish.urls).step_by(BATCH) {
        let requests =
            (first..first + BATCH as u64).map(|number| Request::get(url(number % wish.hosts, number)));
        pollster::block_on(frontier.admit(Timestamp::ZERO, requests)).expect("the store admits");
    }
    println!("{HEAD}");
    // By the time all had their turn, the first is due again.
    let round = Duration::from_millis(wish.urls / BATCH as u64);
    let mut tails = Tails::default();
    let (mut settled, mut now) = (0, Timestamp::ZERO);
    let since = Instant::now();
    for tenth in 1..=10 {
        let (before, begun) = (settled, Instant::now());
        while settled < wish.settlements * tenth / 10 {
            now = now + Duration::from_millis(1);
            let claimed = tails.time(|| pollster::block_on(frontier.claim(now, Want::urls(BATCH))));
            let leases = claimed.expect("the store grants").leases;
            let visits = settled / wish.urls;
            let batch: Vec<_> = leases
                .iter()
                .map(|lease| {
                    let changed = (lease.id.0 + visits) % 5 == 0;
                    let digest = blake(lease.identity.0, if changed { visits } else { 0 });
                    let visit =
                        Visit { status: 200, bytes: 20_000, digest: Some(digest), ..Visit::default() };
                    Settlement::new(lease.id, Outcome::Done { visit, next: Some(now + round) })
                })
                .collect();
            settled += batch.len() as u64;
            let answers = tails.time(|| pollster::block_on(frontier.settle(now, batch)));
            let answers = answers.expect("the store settles");
            assert!(answers.iter().all(|answer| answer.answer == Answer::Done), "no lease is stale");
            let share = settled as f64 / wish.settlements as f64;
            // Not sooner than its part of the time.
            std::thread::sleep(wish.duration.mul_f64(share).saturating_sub(since.elapsed()));
        }
        let rate = (settled - before) as f64 / begun.elapsed().as_secs_f64();
        row(&format!("{tenth}"), rate, tails.take(), &stats(&frontier, now));
    }
    rest(&frontier, now);
    drop(frontier);
    remove(&wish.folder);
}

/// What is left on disk when nobody asks for anything any more.
fn rest(frontier: &Frontier, now: Timestamp) {
    const LONGEST: Duration = Duration::from_secs(300);
    let begun = Instant::now();
    let mut least = u64::MAX;
    let mut since = begun;
    while begun.elapsed() < LONGEST && since.elapsed() < Duration::from_secs(150) {
        let disk = stats(frontier, now).disk.expect("it is on disk");
        if disk.log_bytes < least {
            (least, since) = (disk.log_bytes, Instant::now());
        }
        // Nothing tells when the store has tidied up.
        std::thread::sleep(Duration::from_secs(1));
    }
    row("at rest", 0.0, [0.0; 4], &stats(frontier, now));
    println!("\nthe log was as small as it gets after {:.0} s of rest", (since - begun).as_secs_f64());
}

/// Something that looks like a digest.
fn blake(identity: u128, visits: u64) -> Vec<u8> {
    let mut digest = identity.to_le_bytes().to_vec();
    digest.extend(identity.wrapping_mul(0x9e37_79b9_7f4a_7c15 | u128::from(visits) << 64).to_le_bytes());
    digest
}
