//! kumo 0.5.0 at work: its `MemoryFrontier`, and the `CrawlScheduler` its engine puts in front of it.
//!
//! `MemoryFrontier` hashes the bare string (or a key that the scheduler made) into a Bloom filter, twice where
//! it is new, and appends to one queue; a pop searches that whole queue. It knows no leases: nothing to settle.
//! The scheduler parses and normalizes the URL before a push, asks after a pop whether its host may be fetched
//! from, and is told when a fetch is finished.
//!
//! Its locks are tokio's, never contended here, and driven by the same executor as ours, without the budget that
//! tokio's runtime would count.

use std::hint::black_box;
use std::time::{Duration, Instant};

use kumo::frontier::{Frontier, MemoryFrontier};
use kumo::request::CrawlRequest;
use kumo::scheduler::{CrawlScheduler, FingerprintPolicy, PolitenessPolicy};
use pollster::block_on;

use crate::{ADMIT_BATCH, AdmitScale, SEED};
use trapline_bench::measure::{Sample, Stopwatch, resident};
use trapline_bench::stream::{Offers, priority, url};

/// Which way in.
#[derive(Clone, Copy)]
pub enum Push {
    /// `MemoryFrontier::push` of URL strings.
    Strings,
    /// `MemoryFrontier::push_request` of requests made before.
    Requests,
    /// `CrawlScheduler::push_request`, as its engine does: with a fingerprint of the parsed URL.
    Scheduler,
    /// Only that fingerprint.
    Fingerprint,
}

pub fn push(scale: AdmitScale, way: Push) -> Sample {
    let (before, _) = resident();
    // Its default: room for a million URLs with one false positive in a thousand.
    let frontier = MemoryFrontier::default();
    let scheduler = CrawlScheduler::new(MemoryFrontier::default(), PolitenessPolicy::default());
    let fingerprints = FingerprintPolicy::default();
    let mut offers = Offers::new(SEED, scale.offers, scale.hosts);
    let mut watch = Stopwatch::default();
    let mut added = 0;
    loop {
        let urls = offers.batch(ADMIT_BATCH);
        if urls.is_empty() {
            break;
        }
        added += match way {
            Push::Strings => watch.time(|| {
                block_on(async {
                    let mut added = 0;
                    for url in urls {
                        added += u64::from(frontier.push(url, 0).await);
                    }
                    added
                })
            }),
            Push::Requests => {
                let requests = urls.into_iter().map(CrawlRequest::get).collect::<Vec<_>>();
                watch.time(|| {
                    block_on(async {
                        let mut added = 0;
                        for request in requests {
                            added += u64::from(frontier.push_request(request, 0).await);
                        }
                        added
                    })
                })
            }
            Push::Scheduler => watch.time(|| {
                block_on(async {
                    let mut added = 0;
                    for url in urls {
                        added += u64::from(scheduler.push_request(CrawlRequest::get(url), 0).await);
                    }
                    added
                })
            }),
            Push::Fingerprint => watch.time(|| {
                for url in &urls {
                    let _ = black_box(fingerprints.fingerprint(url));
                }
                0
            }),
        };
    }
    let (after, peak) = resident();
    let new = scale.offers / 2;
    let note = match way {
        Push::Fingerprint => String::new(),
        _ => format!("{added} added of {new} new, {} lost to its Bloom filter", new.saturating_sub(added)),
    };
    Sample { operations: scale.offers, wall: watch.wall, cpu: watch.cpu, held: after - before, peak, note }
}

/// Pops from `pending` URLs for as long as `lasts`; few enough that about so many stay pending.
pub fn pop(pending: u64, hosts: u64, priorities: bool, lasts: Duration) -> Sample {
    let (before, _) = resident();
    let frontier = MemoryFrontier::default();
    for number in 0..pending {
        let priority = if priorities { priority(number).into() } else { 0 };
        let request = CrawlRequest::get(url(number % hosts, number)).priority(priority);
        assert!(block_on(frontier.push_request(request, 0)), "the Bloom filter has room");
    }
    let mut watch = Stopwatch::default();
    let operations = watch.time(|| {
        block_on(async {
            let (began, mut pops) = (Instant::now(), 0);
            while began.elapsed() < lasts && frontier.pop_request().await.is_some() {
                pops += 1;
            }
            pops
        })
    });
    sample(operations, watch, before)
}

/// The same through the scheduler: take one whose host may be fetched from, then say that it is finished.
pub fn next_and_finish(pending: u64, hosts: u64, delay: Option<Duration>, lasts: Duration) -> Sample {
    let (before, _) = resident();
    let policy = PolitenessPolicy::new().per_domain_concurrency(1);
    let policy = delay.map_or(policy.clone(), |delay| policy.per_domain_delay(delay));
    let scheduler = CrawlScheduler::new(MemoryFrontier::default(), policy);
    for number in 0..pending {
        let request = CrawlRequest::get(url(number % hosts, number));
        assert!(block_on(scheduler.push_request(request, 0)), "the Bloom filter has room");
    }
    let mut watch = Stopwatch::default();
    let operations = watch.time(|| {
        block_on(async {
            let (began, mut cycles) = (Instant::now(), 0);
            while began.elapsed() < lasts
                && let Some(request) = scheduler.try_next_ready().await
            {
                scheduler.finish(&request).await;
                cycles += 1;
            }
            cycles
        })
    });
    sample(operations, watch, before)
}

fn sample(operations: u64, watch: Stopwatch, before: u64) -> Sample {
    let (after, peak) = resident();
    let note = format!("{operations} in {:.1} s", watch.wall.as_secs_f64());
    Sample { operations, wall: watch.wall, cpu: watch.cpu, held: after - before, peak, note }
}
