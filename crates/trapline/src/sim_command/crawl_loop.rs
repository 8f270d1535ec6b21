//! `trapline sim --crawl`: the loop of a crawl on generated webs, seed by seed.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use trapline_sim::{CrawlRun, simulate_crawl};

use super::{SEEDS, SimArgs, WRONG, print};

impl SimArgs {
    /// Runs one seed, or many on all cores until one goes wrong.
    pub(super) fn run_loops(&self) -> Result<ExitCode, String> {
        let started = Instant::now();
        let (from, count) = self.seed.map_or((self.from, self.seeds.unwrap_or(SEEDS)), |seed| (seed, 1));
        let (sum, wrong) = run_many(from, count)?;
        if self.history {
            print(&format!("{}\n", sum.history.join("\n")));
        }
        if let Some((seed, breach)) = wrong {
            print(&format!(
                "seed {seed} went wrong: {breach}\n  again: trapline sim --crawl --seed {seed} --history\n"
            ));
            return Ok(ExitCode::from(WRONG));
        }
        let CrawlRun { pages, requests, restarts, pauses, virtual_ms, .. } = sum;
        let told = format!(
            "{count} crawls of generated webs kept the contract: {pages} pages, {requests} requests, {restarts} restarts, \
             {pauses} pauses; {} of virtual time in {:.1} s\n",
            trapline_core::format_duration(std::time::Duration::from_millis(virtual_ms)),
            started.elapsed().as_secs_f64(),
        );
        if self.history {
            eprint!("{told}");
        } else {
            print(&told);
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What became of some seeds together, and the first found that went wrong.
fn run_many(from: u64, count: u64) -> Result<(CrawlRun, Option<(u64, String)>), String> {
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let found = Mutex::new((CrawlRun::default(), None, None));
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(seed) = from.checked_add(number).filter(|_| number < count) else { return };
            let ran = simulate_crawl(seed);
            let mut found = found.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            match ran {
                Ok(run) => {
                    let sum = &mut found.0;
                    sum.pages += run.pages;
                    sum.requests += run.requests;
                    sum.restarts += run.restarts;
                    sum.pauses += run.pauses;
                    sum.virtual_ms += run.virtual_ms;
                    // Only that of a single seed is ever shown.
                    sum.history = run.history;
                    if let Some(breach) = run.breach {
                        stop.store(true, Ordering::Relaxed);
                        found.1.get_or_insert((seed, breach));
                    }
                }
                Err(error) => {
                    stop.store(true, Ordering::Relaxed);
                    found.2 = Some(error.to_string());
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let (sum, wrong, error) = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    error.map_or(Ok((sum, wrong)), Err)
}
