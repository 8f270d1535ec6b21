//! The server's clock as it is followed from here, so that workers whose own clocks differ agree on what is due.
//!
//! Between two looks at it time goes on by this machine's monotonic clock, which nobody sets. It never goes back: where the server's clock was
//! set back, or another server took over, time stands still until that has caught up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use deadpool_postgres::Object;
use tokio::sync;
use trapline_core::Timestamp;
use trapline_frontier::StoreError;

use super::pool::Pool;

/// So long a look is good for: clocks that drift apart by a hundred millionths are six milliseconds apart by then.
const GOOD_FOR: Duration = Duration::from_secs(60);

/// Of so many looks the quickest is the most exact.
const LOOKS: usize = 5;

/// The server's clock, followed from here.
pub struct Clock {
    pool: Pool,
    /// None before the first look. Never held across an await.
    seen: Mutex<Option<Seen>>,
    /// Held by whoever looks, so that not all do at once.
    looking: sync::Mutex<()>,
    /// The latest time that was told, in milliseconds.
    latest: AtomicU64,
}

/// One look at the server's clock.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// By the monotonic clock here.
    here: Instant,
    /// What the server's clock said then.
    there: Timestamp,
    /// How long it took to ask: what was seen is exact to half of that.
    took: Duration,
    /// How many connections had been made by then. With a new one there may be another server behind the address.
    connections: u64,
}

impl Clock {
    pub(super) fn new(pool: &Pool) -> Self {
        Self {
            pool: pool.clone(),
            seen: Mutex::new(None),
            looking: sync::Mutex::default(),
            latest: AtomicU64::new(0),
        }
    }

    /// What the server's clock says now. Asks the server the first time, every minute, and after new connections; where it does
    /// not answer, the last look has to do.
    pub async fn now(&self) -> Result<Timestamp, StoreError> {
        if let Some(seen) = self.fresh() {
            return Ok(self.told(seen));
        }
        let looking = self.looking.lock().await;
        if let Some(seen) = self.fresh() {
            return Ok(self.told(seen));
        }
        let looked = self.pool.run(self.look()).await;
        let seen = match (looked, *self.seen()) {
            (Ok(seen), _) => seen,
            // No reason to ask again before something changes.
            (Err(_), Some(before)) => Seen { connections: self.pool.attempts(), ..before },
            (Err(error), None) => return Err(error),
        };
        *self.seen() = Some(seen);
        drop(looking);
        Ok(self.told(seen))
    }

    /// How far what [`now`](Self::now) says may be off, as far as the network goes; None before the first look.
    pub fn exact_to(&self) -> Option<Duration> {
        self.seen().map(|seen| seen.took / 2)
    }

    fn fresh(&self) -> Option<Seen> {
        let connections = self.pool.attempts();
        self.seen().filter(|seen| seen.here.elapsed() < GOOD_FOR && seen.connections == connections)
    }

    fn told(&self, seen: Seen) -> Timestamp {
        let now = (seen.there + seen.here.elapsed()).as_millis();
        Timestamp::from_millis(self.latest.fetch_max(now, Ordering::AcqRel).max(now))
    }

    async fn look(&self) -> Result<Seen, StoreError> {
        let client = self.pool.client().await?;
        let connections = self.pool.attempts();
        let mut best: Option<Seen> = None;
        for _ in 0..LOOKS {
            let seen = look_once(&client, connections).await;
            let seen = seen.map_err(|error| self.pool.trouble("ask for the time", &error))?;
            best = best.filter(|best| best.took <= seen.took).or(Some(seen));
        }
        Ok(best.expect("there was at least one look"))
    }

    fn seen(&self) -> MutexGuard<'_, Option<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn look_once(client: &Object, connections: u64) -> Result<Seen, tokio_postgres::Error> {
    let question = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    // Preparing it takes a trip of its own, which is not to be measured.
    let question = client.prepare_cached(question).await?;
    let asked = Instant::now();
    let row = client.query_one(&question, &[]).await?;
    let took = asked.elapsed();
    let there = u64::try_from(row.try_get::<_, i64>(0)?).unwrap_or_default();
    Ok(Seen { here: asked + took / 2, there: Timestamp::from_millis(there), took, connections })
}
