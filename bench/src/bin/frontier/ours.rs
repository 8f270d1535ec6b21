//! Trapline's memory store at work.

use std::time::Duration;

use pollster::block_on;
use trapline_core::{Candidate, IdentityKey, Request, Timestamp};
use trapline_frontier::{
    Admission, Answer, Frontier, Lease, MemoryStore, Outcome, Settings, Settlement, UrlState,
};

use crate::{ADMIT_BATCH, AdmitScale, Cycle, Refill, SEED};
use trapline_bench::measure::{Sample, Stopwatch, resident};
use trapline_bench::stream::{Offers, priority, sibling, url};

fn open(settings: Settings, partitions: u32) -> Frontier {
    let builder = Frontier::builder("bench").key(IdentityKey::from_seed(SEED));
    let open = builder.settings(settings).partitions(partitions).open(MemoryStore::new(), Timestamp::ZERO);
    block_on(open).expect("a memory store opens")
}

fn prepare(frontier: &Frontier, url: String) -> Candidate {
    frontier.prepare(Request::get(url)).expect("the stream has only good URLs")
}

/// How much of `admit` is on the clock.
#[derive(Clone, Copy, PartialEq)]
pub enum Part {
    /// From URL strings: request, parse, canonical form, identity, then the store.
    Everything,
    /// Only what comes before the store.
    Preparation,
    /// Only the store: `admit_candidates`, and freeing the candidates.
    Store,
}

pub fn admit(scale: AdmitScale, part: Part) -> Sample {
    let (before, _) = resident();
    let frontier = open(Settings::default(), 256);
    let mut offers = Offers::new(SEED, scale.offers, scale.hosts);
    let mut watch = Stopwatch::default();
    let mut added = 0;
    for batch in 0.. {
        let urls = offers.batch(ADMIT_BATCH);
        if urls.is_empty() {
            break;
        }
        let now = Timestamp::from_millis(batch);
        let answers = match part {
            Part::Everything => {
                watch.time(|| block_on(frontier.admit(now, urls.into_iter().map(Request::get))))
            }
            Part::Preparation => {
                let candidates =
                    watch.time(|| urls.into_iter().map(|url| prepare(&frontier, url)).collect::<Vec<_>>());
                block_on(frontier.admit_candidates(now, &candidates))
            }
            Part::Store => {
                let candidates = urls.into_iter().map(|url| prepare(&frontier, url)).collect::<Vec<_>>();
                watch.time(|| {
                    let answers = block_on(frontier.admit_candidates(now, &candidates));
                    drop(candidates);
                    answers
                })
            }
        };
        let answers = answers.expect("a memory store admits");
        added += answers.iter().filter(|answer| **answer == Admission::Added).count() as u64;
    }
    assert_eq!(added, scale.offers / 2, "exactly the new ones are added");
    let (after, peak) = resident();
    let note = format!("{added} added of {} new", scale.offers / 2);
    Sample { operations: scale.offers, wall: watch.wall, cpu: watch.cpu, held: after - before, peak, note }
}

/// Leases out at a time: claimed in batches, then settled in batches. Long enough that reading the clocks costs
/// nothing, short enough for a thousand queues with one lease each.
const WINDOW: u64 = 500;

pub fn cycle(cycle: Cycle) -> Sample {
    let (before, _) = resident();
    let Cycle { queues, per_queue, batch, delay, partitions, hold_queues, refill, priorities, cycles } =
        cycle;
    let frontier = open(Settings { delay, hold_queues, ..Settings::default() }, partitions);
    let mut numbers = 0..;
    let mut number = || numbers.next().expect("numbers do not end");
    let prepare = |url: String, number: u64| {
        let priority = priorities.then(|| priority(number));
        let request = Request { priority, ..Request::get(url) };
        frontier.prepare(request).expect("the stream has only good URLs")
    };
    let mut now = Timestamp::ZERO;
    for _ in 0..per_queue {
        let mut hosts = 0..queues;
        while !hosts.is_empty() {
            let some = hosts.by_ref().take(ADMIT_BATCH);
            let candidates = some
                .map(|host| {
                    let number = number();
                    prepare(url(host, number), number)
                })
                .collect::<Vec<_>>();
            block_on(frontier.admit_candidates(now, &candidates)).expect("a memory store admits");
        }
    }
    let (filled, _) = resident();

    // With a delay, time goes so fast that half of the queues wait at any time.
    let step = Duration::from_millis((delay.as_millis() as u64 * WINDOW * 2).div_ceil(queues));
    let (mut claiming, mut settling) = (Stopwatch::default(), Stopwatch::default());
    let mut done = 0;
    while done < cycles {
        now = now + step;
        let claims: Vec<Vec<Lease>> = claiming.time(|| {
            block_on(async {
                let mut claims = Vec::new();
                for _ in 0..WINDOW / batch {
                    let claimed = frontier.claim(now, batch as usize).await.expect("a memory store claims");
                    claims.push(claimed.leases);
                }
                claims
            })
        });
        // Links are new every time, so they are prepared every time, but not on this clock.
        let link = |lease: &Lease, number| prepare(sibling(&lease.request.url, number), number);
        let links: Vec<Candidate> = claims.iter().flatten().map(|lease| link(lease, number())).collect();
        assert_eq!(links.len() as u64, WINDOW, "every claim gets what it wants");
        let mut to_admit = Vec::new();
        let mut settlements: Vec<Vec<Settlement>> = claims
            .iter()
            .map(|leases| leases.iter().map(|lease| Settlement::new(lease.id, Outcome::done())).collect())
            .collect();
        match refill {
            Refill::Apart => to_admit = links,
            Refill::Links => {
                for (settlement, link) in settlements.iter_mut().flatten().zip(links) {
                    settlement.links = vec![link];
                }
            }
        }
        let good = settling.time(|| {
            let good = block_on(async {
                let mut good = 0;
                for settlements in settlements {
                    let settled = frontier.settle(now, settlements).await.expect("a memory store settles");
                    good += settled
                        .iter()
                        .filter(|settled| {
                            settled.answer == Answer::Done
                                && settled.links.iter().all(|link| *link == Admission::Added)
                        })
                        .count() as u64;
                }
                good
            });
            drop(claims);
            good
        });
        assert_eq!(good, WINDOW, "every settlement counts, and every link is new");
        block_on(frontier.admit_candidates(now, &to_admit)).expect("a memory store admits");
        done += WINDOW;
    }
    let stats = block_on(frontier.stats(now)).expect("a memory store counts");
    assert_eq!(
        stats.urls_in(UrlState::Pending),
        queues * per_queue,
        "as much is pending as at the beginning"
    );
    assert_eq!(stats.fetched, done);

    let (after, peak) = resident();
    let micros = |watch: Stopwatch| watch.cpu.as_secs_f64() * 1e6 / done as f64;
    let note = format!(
        "claim {:.2} + settle {:.2} us; {} MiB when filled",
        micros(claiming),
        micros(settling),
        (filled - before) / 1024
    );
    Sample {
        operations: done,
        wall: claiming.wall + settling.wall,
        cpu: claiming.cpu + settling.cpu,
        held: after - before,
        peak,
        note,
    }
}
