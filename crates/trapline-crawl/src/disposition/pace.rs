//! How long a host is left alone after a fetch.
//!
//! The frontier keeps the wait; here is only how long it is. Where nothing asks for more than the queue's own delay, the
//! settlement carries none, and what an operator set for the queue holds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use trapline_core::Timestamp;
use trapline_frontier::{Frontier, Outcome};

use super::Disposition;
use crate::chain::{Flow, Processor};
use crate::fetch::Verdict;
use crate::ports::{RobotsWord, World};

/// How long hosts are left alone.
#[derive(Clone, Debug, PartialEq)]
pub struct PaceOptions {
    /// How long a host is left alone after a fetch, at least. Defaults to 1 s.
    pub delay: Duration,
    /// How many times as long as a fetch took its host is left alone, so that slow servers are asked less often; 0 for not
    /// at all. Defaults to 0.
    pub factor: f64,
    /// The shortest wait that the factor leads to. Defaults to 0.
    pub min: Duration,
    /// The longest one that the factor or slowing answers lead to. Defaults to 30 s.
    pub max: Duration,
    /// A host that answers ever more slowly is left alone for longer, in proportion. Not with a delay of 0. Defaults to
    /// true.
    pub adaptive: bool,
    /// Waits as long as robots.txt asks for. Defaults to true.
    pub crawl_delay: bool,
    /// The longest `Crawl-delay` that is respected. Defaults to 5 min.
    pub crawl_delay_max: Duration,
    /// The longest `Retry-After` that is respected. Defaults to a day.
    pub retry_after_max: Duration,
    /// How long a host is left alone that answers 429 or 503 without `Retry-After`; each time in a row twice as long. Defaults
    /// to 30 s.
    pub back_off: Duration,
    /// The longest such wait. Defaults to 1 h.
    pub back_off_max: Duration,
    /// Up to this much is added by chance. Defaults to 0.
    pub jitter: Duration,
    /// So many fetches may follow each other without a wait, if the host was left alone for as many delays before. Defaults
    /// to 1.
    pub burst: u32,
}

impl Default for PaceOptions {
    fn default() -> Self {
        Self {
            delay: Duration::from_secs(1),
            factor: 0.0,
            min: Duration::ZERO,
            max: Duration::from_secs(30),
            adaptive: true,
            crawl_delay: true,
            crawl_delay_max: Duration::from_secs(300),
            retry_after_max: Duration::from_secs(86_400),
            back_off: Duration::from_secs(30),
            back_off_max: Duration::from_secs(3600),
            jitter: Duration::ZERO,
            burst: 1,
        }
    }
}

impl PaceOptions {
    /// How long a host is left alone because its robots.txt asks for it.
    pub(crate) fn asked_by(&self, robots: Option<&RobotsWord>) -> Duration {
        let delay = robots.and_then(|word| word.crawl_delay).filter(|_| self.crawl_delay);
        delay.unwrap_or_default().min(self.crawl_delay_max)
    }
}

/// How many queues are remembered, about. Those that were not heard of for longest are forgotten: then a host has no burst, and its
/// back-off begins anew.
const QUEUES_MAX: usize = 100_000;

/// Decides how long a queue waits.
pub(super) struct Politeness {
    options: PaceOptions,
    world: Arc<dyn World>,
    frontier: Frontier,
    memory: PaceMemory,
}

/// What is remembered of queues, also when the pace becomes another.
#[derive(Clone, Debug, Default)]
pub(crate) struct PaceMemory(Arc<Mutex<Queues>>);

/// What is remembered of queues, in two halves: when the first is full, it becomes the second, and what was there is forgotten.
#[derive(Debug, Default)]
struct Queues {
    recent: BTreeMap<Arc<str>, QueueMemory>,
    older: BTreeMap<Arc<str>, QueueMemory>,
}

impl Queues {
    /// What is remembered of a queue, or was just begun.
    fn of(&mut self, key: &Arc<str>, fresh: QueueMemory) -> &mut QueueMemory {
        if !self.recent.contains_key(key) && self.recent.len() >= QUEUES_MAX / 2 {
            self.older = std::mem::take(&mut self.recent);
        }
        let older = &mut self.older;
        self.recent.entry(Arc::clone(key)).or_insert_with(|| older.remove(key).unwrap_or(fresh))
    }
}

/// What is remembered of a queue. Not kept: after a restart a host has no burst, and is asked once before it is backed off from.
#[derive(Clone, Copy, Debug)]
struct QueueMemory {
    /// How many fetches may follow at once.
    tokens: f64,
    /// When that was.
    at: Timestamp,
    /// How often in a row it was overloaded.
    overloads: u32,
    latency: Latency,
}

/// So many times as slow as usual is slower; less may be chance.
const SLOWER: f64 = 2.0;

/// How long a host takes to answer: of late, and usually.
#[derive(Clone, Copy, Debug, Default)]
struct Latency {
    late_s: f64,
    usual_s: f64,
}

impl Latency {
    /// Takes a further answer into account: how many times as slow as usual the host is of late.
    fn slower(&mut self, took: Duration) -> f64 {
        // A host that needs milliseconds is not in trouble if it needs some more.
        let took = took.as_secs_f64().max(0.05);
        if self.usual_s == 0.0 {
            (self.late_s, self.usual_s) = (took, took);
        }
        self.late_s += 0.3 * (took - self.late_s);
        // It gets used to being fast at once, and to being slow only after a long time.
        self.usual_s += if took < self.usual_s { 0.3 } else { 0.005 } * (took - self.usual_s);
        self.late_s / self.usual_s
    }
}

impl Politeness {
    pub(super) fn new(
        options: PaceOptions,
        world: Arc<dyn World>,
        frontier: Frontier,
        memory: &PaceMemory,
    ) -> Self {
        Self { options, world, frontier, memory: memory.clone() }
    }

    /// What the host, its answer and its robots.txt ask for; zero if nothing.
    fn asked_for(&self, disposition: &Disposition) -> Duration {
        let options = &self.options;
        let visit = &disposition.visit;
        let mut wait = options.asked_by(visit.robots.as_ref());
        if let Some(took) = visit.took() {
            if options.factor > 0.0 {
                let seconds = (took.as_secs_f64() * options.factor).min(options.max.as_secs_f64());
                wait = wait.max(Duration::from_secs_f64(seconds.max(0.0)).max(options.min));
            }
            if options.adaptive && !options.delay.is_zero() {
                wait = wait.max(self.slowing(disposition, took));
            }
        }
        wait.max(self.overload(disposition))
    }

    /// How long a host is left alone that answers more slowly than it used to.
    fn slowing(&self, disposition: &Disposition, took: Duration) -> Duration {
        let slower = self.remember(disposition, |queue| queue.latency.slower(took));
        if slower < SLOWER {
            return Duration::ZERO;
        }
        self.options.delay.mul_f64(slower.min(1000.0)).min(self.options.max)
    }

    /// How long a host wants to be left alone that has too much to do.
    fn overload(&self, disposition: &Disposition) -> Duration {
        let options = &self.options;
        let response = disposition.visit.response.as_ref();
        let status = response.and_then(|response| response.status);
        let overloaded = matches!(status, Some(429 | 503));
        if status.is_none() {
            return Duration::ZERO;
        }
        let overloads = self.remember(disposition, |queue| {
            queue.overloads = if overloaded { queue.overloads.saturating_add(1) } else { 0 };
            queue.overloads
        });
        if !overloaded {
            return Duration::ZERO;
        }
        let said = response
            .and_then(|response| response.header("retry-after"))
            .and_then(|text| retry_after(text, disposition.ended));
        said.map_or_else(
            || options.back_off.saturating_mul(1 << (overloads - 1).min(20)).min(options.back_off_max),
            |said| said.min(options.retry_after_max),
        )
    }

    /// How long until a queue with a burst may be asked again.
    fn burst(&self, disposition: &Disposition, delay: Duration) -> Duration {
        let most = f64::from(self.options.burst);
        self.remember(disposition, |queue| {
            let passed = disposition.ended.since(queue.at).as_secs_f64() / delay.as_secs_f64();
            queue.tokens = (queue.tokens + passed).min(most) - 1.0;
            queue.at = disposition.ended;
            if queue.tokens >= 1.0 { Duration::ZERO } else { delay.mul_f64(1.0 - queue.tokens.max(0.0)) }
        })
    }

    fn remember<T>(&self, disposition: &Disposition, change: impl FnOnce(&mut QueueMemory) -> T) -> T {
        let mut queues = self.memory.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh =
            QueueMemory { tokens: 1.0, at: disposition.ended, overloads: 0, latency: Latency::default() };
        change(queues.of(&disposition.visit.lease.key, fresh))
    }

    /// The delay of a queue, as it was set for it or for all.
    async fn own_delay(&self, disposition: &Disposition) -> Duration {
        let queue = self.frontier.queue(disposition.ended, &disposition.visit.lease.key).await;
        queue.ok().flatten().map_or(self.options.delay, |queue| queue.delay)
    }

    fn jitter(&self) -> Duration {
        match u64::try_from(self.options.jitter.as_millis()).unwrap_or(u64::MAX - 1) {
            0 => Duration::ZERO,
            most => Duration::from_millis(self.world.random() % (most + 1)),
        }
    }
}

#[async_trait]
impl Processor<Disposition> for Politeness {
    fn name(&self) -> &'static str {
        "pace"
    }

    async fn process(&self, disposition: &mut Disposition) -> Flow {
        let asked = match (&disposition.outcome, &disposition.visit.verdict) {
            (_, Some(Verdict::Release { asked } | Verdict::Retry { asked, .. })) => *asked,
            (Outcome::Disregard { .. } | Outcome::Release, _) => disposition.visit.fetched_robots(),
            _ => true,
        };
        if !asked {
            // Nobody was disturbed.
            disposition.delay = matches!(disposition.outcome, Outcome::Retry { .. } | Outcome::Dead { .. })
                .then_some(Duration::ZERO);
            return Flow::Next;
        }
        let wanted = self.asked_for(disposition);
        let usual = matches!(
            disposition.outcome,
            Outcome::Done { .. } | Outcome::Retry { .. } | Outcome::Dead { .. }
        );
        let bursts = self.options.burst > 1 && !self.options.delay.is_zero();
        if usual && !bursts && self.options.jitter.is_zero() && wanted.is_zero() {
            // The queue's own delay it is, whatever that may be.
            return Flow::Next;
        }
        let own = self.own_delay(disposition).await;
        let own = if bursts && !own.is_zero() { self.burst(disposition, own) } else { own };
        if bursts && wanted > own {
            // The time for which it wants to be left alone earns it no burst.
            self.remember(disposition, |queue| {
                (queue.tokens, queue.at) = (0.0, disposition.ended + wanted);
            });
        }
        disposition.delay = Some(own.max(wanted) + self.jitter());
        Flow::Next
    }
}

/// Seconds, or a date.
fn retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let at = httpdate::parse_http_date(text).ok()?;
    let at = at.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(at.saturating_sub(Duration::from_millis(now.as_millis())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_slows_down_is_noticed() {
        let mut latency = Latency::default();
        let ms = Duration::from_millis;
        assert!((0..100).all(|i| latency.slower(ms(100 + i % 20)) < SLOWER));
        let slower = (0..10).map(|_| latency.slower(ms(1000))).fold(0.0, f64::max);
        assert!(slower > 5.0, "{slower}");
        assert!((0..20).map(|_| latency.slower(ms(100))).last().is_some_and(|slower| slower < SLOWER));
        let mut quick = Latency::default();
        assert!([1, 2, 40, 3].into_iter().all(|took| quick.slower(ms(took)) < SLOWER));
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = Timestamp::from_millis(784_111_777_000);
        for (text, wait) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("-1", None),
            ("soon", None),
            ("99999999999999999999999", None),
        ] {
            assert_eq!(retry_after(text, now), wait.map(Duration::from_secs), "{text}");
        }
    }
}
