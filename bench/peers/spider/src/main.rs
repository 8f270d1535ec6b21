//! A crawl of the benchmark's web by spider: follows every link, keeps nothing.
//!
//!     trapline-bench-spider SEEDS CONCURRENCY PER_HOST DELAY_MS ROBOTS
//!
//! spider crawls a website at a time: each host is one, and as many are crawled at once as the concurrency allows. Links to other hosts
//! are not followed; they lead nowhere that the hosts themselves do not.

use std::sync::Arc;

use spider::website::Website;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [seeds, concurrency, per_host, delay_ms, robots] = &words[..] else { return Err("five words are needed".into()) };
    let seeds = std::fs::read_to_string(seeds)?;
    let (concurrency, per_host): (usize, usize) = (concurrency.parse()?, per_host.parse()?);
    let delay_ms: u64 = delay_ms.parse()?;
    let obeys = robots == "on";
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let room = Arc::new(Semaphore::new((concurrency / per_host).max(1)));
        let mut all = JoinSet::new();
        for seed in seeds.lines() {
            let room = Arc::clone(&room).acquire_owned().await.expect("nobody closes it");
            let mut website = Website::new(seed);
            website
                .with_respect_robots_txt(obeys)
                .with_delay(delay_ms)
                .with_depth(0)
                .with_retry(0)
                .with_no_control_thread(true)
                .with_concurrency_limit(Some(per_host));
            all.spawn(async move {
                website.crawl_raw().await;
                drop(room);
            });
        }
        while all.join_next().await.is_some() {}
    });
    Ok(())
}
