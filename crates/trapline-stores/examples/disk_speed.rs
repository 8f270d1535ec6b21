//! How fast a disk store is on this machine: admitting, claiming and settling in batches, each synced; then closing and
//! opening again.
//!
//! `cargo run --release -p trapline-stores --example disk_speed -- FOLDER [URLS] [batch|explicit]`. The folder is removed
//! afterwards.

use std::error::Error;
use std::time::Instant;

use trapline_core::{IdentityKey, Request, Timestamp};
use trapline_frontier::{Frontier, Outcome, Settings, Settlement};
use trapline_stores::{DiskOptions, DiskStore, Durability};

const BATCH: u64 = 1000;
const HOSTS: u64 = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let folder = arguments.first().ok_or("name a folder that is not there yet")?;
    let urls: u64 = arguments.get(1).map_or(Ok(1_000_000), |urls| urls.parse())?;
    let durability = match arguments.get(2).map(String::as_str) {
        None | Some("batch") => Durability::Batch,
        Some("explicit") => Durability::Explicit,
        Some(other) => return Err(format!("`{other}` is neither batch nor explicit").into()),
    };
    let options = DiskOptions { durability, ..DiskOptions::default() };
    let now = Timestamp::ZERO;
    let settings = Settings { delay: std::time::Duration::ZERO, concurrency: 0, ..Settings::default() };
    let builder = Frontier::builder("speed").settings(settings).key(IdentityKey::from_seed(1));

    let frontier = pollster::block_on(builder.clone().open(DiskStore::open(folder, &options)?, now))?;
    // Half of the offers are known, as links are.
    let mut batches = Vec::new();
    for first in (0..urls).step_by(BATCH as usize / 2) {
        let page = |number: u64| {
            let url = format!("https://host{}.example/section/{}/page-{number}", number % HOSTS, number / 77);
            frontier.prepare(Request::get(url))
        };
        let batch: Result<Vec<_>, _> =
            (0..BATCH).map(|place| page(first.saturating_sub(BATCH / 2) + place)).collect();
        batches.push(batch?);
    }
    let started = Instant::now();
    for batch in &batches {
        pollster::block_on(frontier.admit_candidates(now, batch))?;
    }
    let offers = batches.len() as u64 * BATCH;
    rate("offers", offers, started);
    drop(batches);

    let started = Instant::now();
    let mut cycles = 0;
    while cycles < urls / 2 {
        let leases = pollster::block_on(frontier.claim(now, BATCH as usize))?.leases;
        cycles += leases.len() as u64;
        let done = leases.iter().map(|lease| Settlement::new(lease.id, Outcome::done())).collect();
        pollster::block_on(frontier.settle(now, done))?;
    }
    rate("claim + settle", cycles, started);
    let started = Instant::now();
    drop(frontier);
    println!("closed in {:?}", started.elapsed());

    let store = DiskStore::open(folder, &options)?;
    let frontier = pollster::block_on(builder.open(store, now))?;
    let found =
        pollster::block_on(frontier.stats(now))?.recovered.ok_or("a disk store tells what it found")?;
    println!("opened again in {:?}: {} URLs, {} records", found.took, found.seen, found.log_position);
    drop(frontier);
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

fn rate(what: &str, count: u64, started: Instant) {
    let seconds = started.elapsed().as_secs_f64();
    println!("{count} {what} in {seconds:.2} s: {:.0} a second", count as f64 / seconds);
}
