//! The loop of a crawl in the simulation: [`trapline_crawl::Crawl`] itself on a generated web in virtual time, several of
//! them on one store, paused, stopped and killed, while an oracle watches the store and hosts watch the crawl.
//!
//! One seed, one history. What the crawl has to reach is known from the walk: each page ends once, and as the web says.

mod ports;
mod watched;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::{Either, join_all, select};
use trapline_core::{IdentityKey, Timestamp};
use trapline_crawl::candidate::{Prospect, ScopeKind};
use trapline_crawl::disposition::{PaceOptions, RetryOptions};
use trapline_crawl::ports::World;
use trapline_crawl::{Crawl, CrawlEnd, CrawlHandle, CrawlOptions};
use trapline_frontier::{Frontier, MemoryStore, Settings, Store, StoreError};

use crate::oracle::Oracle;
use crate::politeness::Politeness;
use crate::random::Random;
use crate::simulation::hold_against;
use crate::virtual_world::VirtualWorld;
use crate::walk::walk;
use crate::web::{Web, WebSize};
use ports::WebPorts;
use watched::Watched;

/// When a simulated crawl begins.
const BEGIN: Timestamp = Timestamp::from_millis(1_000_000);

/// A crawl that takes longer will never end.
const LONGEST: Duration = Duration::from_secs(30 * 86_400);

/// What became of a simulated crawl.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CrawlRun {
    /// All that the store was asked and answered, a line each.
    pub history: Vec<String>,
    /// Pages that the web has, as far as they can be reached.
    pub pages: u64,
    /// Requests that hosts saw.
    pub requests: u64,
    /// How often the crawl was stopped or killed, and begun anew.
    pub restarts: u32,
    /// How often it was paused.
    pub pauses: u32,
    /// How long it took, in its own time.
    pub virtual_ms: u64,
    /// What went wrong, if anything did.
    pub breach: Option<String>,
}

/// What a seed decides.
struct Scene {
    random: Random,
    web: Web,
    options: CrawlOptions,
    settings: Settings,
    partitions: u32,
}

impl Scene {
    fn draw(seed: u64) -> Self {
        let mut random = Random::of(&[seed, 20]);
        let hosts = random.number(1..12);
        let web = Web::generate(seed, WebSize { hosts, pages: hosts + random.number(0..80) });
        let ms = Duration::from_millis;
        let delay = ms(*random.choose(&[0, 50, 1_000, 5_000]));
        let pace = PaceOptions {
            delay,
            factor: *random.choose(&[0.0, 0.0, 2.0]),
            jitter: ms(*random.choose(&[0, 0, 300])),
            ..PaceOptions::default()
        };
        // So many that no outage is taken for an end.
        let retry = RetryOptions { max: 12, wait: ms(30_000), wait_max: ms(60_000) };
        let lease = ms(*random.choose(&[2_000, 10_000, 60_000]));
        let concurrency = random.number(1..30) as usize;
        let options = CrawlOptions {
            scope: ScopeKind::Any,
            pace,
            retry,
            lease,
            concurrency,
            sitemaps: random.chance(1, 2),
            ..CrawlOptions::default()
        };
        let settings = Settings {
            delay,
            hold_queues: random.chance(1, 2),
            balance_replenish: *random.choose(&[5, 3_000]),
            max_deliveries: 0,
            ..Settings::default()
        };
        Self { partitions: random.number(1..4), random, web, options, settings }
    }
}

/// Crawls the web of a seed to its end.
///
/// # Errors
/// If the store in memory cannot be opened.
pub fn simulate_crawl(seed: u64) -> Result<CrawlRun, StoreError> {
    let Scene { random, web, options, settings, partitions } = Scene::draw(seed);
    let oracle = Oracle::new(settings.clone(), partitions);
    let store = Arc::new(Watched::new(Arc::new(MemoryStore::new()), oracle));
    let world = VirtualWorld::new(BEGIN, seed);
    let ports = WebPorts::new(web, world.clone(), options.pace.delay, seed);
    world.run(async {
        let shared = Arc::clone(&store) as Arc<dyn Store>;
        let frontier = Frontier::builder("sim")
            .key(IdentityKey::from_seed(seed))
            .partitions(partitions)
            .settings(settings)
            .open_shared(shared, BEGIN)
            .await?;
        let mut simulation = CrawlSimulation {
            random,
            world: world.clone(),
            options,
            frontier,
            ports,
            run: CrawlRun::default(),
        };
        let judged = match simulation.go().await {
            Ok(()) => simulation.judge(&store).await,
            // What went wrong first is more to the point.
            Err(error) => Err(store.watch().breach.as_ref().map_or(error, ToString::to_string)),
        };
        Ok(simulation.end(&store, judged.err()))
    })
}

struct CrawlSimulation {
    random: Random,
    world: VirtualWorld,
    options: CrawlOptions,
    frontier: Frontier,
    ports: WebPorts,
    run: CrawlRun,
}

/// How a run of the loops is cut short.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// What is in flight lands.
    Stop,
    /// What is in flight is given back.
    Abort,
    /// Nothing is given back.
    Kill,
}

impl CrawlSimulation {
    async fn go(&mut self) -> Result<(), String> {
        for _ in 0..self.random.range(0..4) {
            let cut = *self.random.choose(&[Cut::Stop, Cut::Abort, Cut::Kill]);
            let after = Duration::from_millis(self.random.range(0..60_000));
            if self.run_loops(after, cut).await? {
                break;
            }
            self.run.restarts += 1;
        }
        if self.run_loops(LONGEST, Cut::Kill).await? { Ok(()) } else { Err("it never ends".to_owned()) }
    }

    /// Runs one loop or several beside each other, up to a time. True if they came to their end.
    async fn run_loops(&mut self, at_most: Duration, cut: Cut) -> Result<bool, String> {
        let loops = self.random.range(1..4);
        let mut handles = Vec::new();
        let mut runs = Vec::new();
        for _ in 0..loops {
            let ports = Arc::new(self.ports.clone());
            let crawl = Crawl::builder(self.frontier.clone(), Arc::new(self.world.clone()))
                .options(self.options.clone())
                .robots(Arc::clone(&ports) as _)
                .output(Arc::clone(&ports) as _)
                .build(ports)
                .map_err(|error| error.to_string())?;
            handles.push(crawl.handle());
            runs.push(Box::pin(crawl.run()));
        }
        for handle in &handles {
            self.bring_seeds(handle.clone());
        }
        let pauses = loops == 1 && self.random.chance(1, 2);
        if pauses {
            self.pause_at_times(handles[0].clone());
            self.run.pauses += 1;
        }
        let runs = join_all(runs);
        let ends = match select(runs, self.world.sleep_until(self.world.now() + at_most)).await {
            Either::Left((ends, _)) => ends,
            Either::Right(((), runs)) => {
                match cut {
                    Cut::Kill => {
                        self.kill(runs).await;
                        return Ok(false);
                    }
                    Cut::Stop => join_all(handles.iter().map(CrawlHandle::stop)).await,
                    Cut::Abort => join_all(handles.iter().map(CrawlHandle::abort)).await,
                };
                runs.await
            }
        };
        for end in &ends {
            match end {
                Ok(CrawlEnd::Exhausted | CrawlEnd::Stopped) => {}
                other => return Err(format!("it ended with {other:?}")),
            }
        }
        Ok(ends.iter().all(|end| matches!(end, Ok(CrawlEnd::Exhausted))))
    }

    /// The loops are gone, and what they had in flight.
    async fn kill<T>(&self, runs: T) {
        self.ports.dying.store(true, Ordering::Relaxed);
        drop(runs);
        self.world.sleep_until(self.world.now() + Duration::from_millis(1)).await;
        self.ports.dying.store(false, Ordering::Relaxed);
    }

    fn bring_seeds(&self, handle: CrawlHandle) {
        let seeds: Vec<_> = self.ports.web.seeds().filter_map(|seed| Prospect::seed(&seed)).collect();
        self.world.spawn(Box::pin(async move {
            // The last run may have been cut short while it paused.
            handle.resume().await;
            handle.seed(seeds).await;
            handle.end_seeding().await;
        }));
    }

    /// Pauses the crawl for a while. Nothing may begin meanwhile.
    fn pause_at_times(&mut self, handle: CrawlHandle) {
        let (world, ports) = (self.world.clone(), self.ports.clone());
        let [after, during] = [20_000, 100_000].map(|most| Duration::from_millis(self.random.range(0..most)));
        self.world.spawn(Box::pin(async move {
            world.sleep_until(world.now() + after).await;
            if !matches!(handle.pause().await, Some(Ok(()))) {
                return;
            }
            let begun = ports.seen().requests;
            world.sleep_until(world.now() + during).await;
            let since = ports.seen().requests - begun;
            // Unless it was cut short meanwhile, and another run has begun.
            if handle.resume().await.is_some() {
                ports.seen().begun_while_paused += since;
            }
        }));
    }

    /// What everybody has seen, held against what had to be.
    async fn judge(&self, store: &Watched) -> Result<(), String> {
        let oracle = store.watch().oracle.clone();
        if let Some(breach) = store.watch().breach.clone() {
            return Err(breach.to_string());
        }
        let audit = hold_against(&self.frontier, self.world.now(), &oracle).await;
        audit.map_err(|breach| breach.to_string())?;
        let seen = self.ports.seen();
        if let Some((url, times)) = seen.told.iter().find(|(_, times)| **times > 1) {
            return Err(format!("{url} was told to have ended {times} times"));
        }
        let Politeness { violations, concurrency_max, .. } = seen.meter.found();
        if violations > 0 || concurrency_max > 1 {
            return Err(format!(
                "hosts were asked too soon {violations} times, {concurrency_max} at once at most"
            ));
        }
        if seen.begun_while_paused > 0 {
            return Err(format!("{} requests began while the crawl was paused", seen.begun_while_paused));
        }
        let reach = walk(&self.ports.web).endings;
        if seen.endings != reach {
            return Err(format!("pages ended as {:?}, but the web has {reach:?}", seen.endings));
        }
        Ok(())
    }

    fn end(self, store: &Watched, breach: Option<String>) -> CrawlRun {
        let history = store.watch().history.clone();
        let seen = self.ports.seen();
        CrawlRun {
            history,
            pages: seen.endings.total(),
            requests: seen.requests,
            virtual_ms: u64::try_from(self.world.now().since(BEGIN).as_millis()).unwrap_or(u64::MAX),
            breach,
            ..self.run.clone()
        }
    }
}
