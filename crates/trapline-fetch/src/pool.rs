//! Connections that wait for the next request to their origin.
//!
//! A connection is used again for the very origin it was made for and no other, whatever its certificate says: two hosts at
//! one address stay two hosts. Bounds hold for each origin and for all together; the one that has waited longest goes first.
//! Those of HTTP/1.1 that wait for more than a moment rest, so that a thousand of them cost little.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::connection::{Connection, H1, H2, H2Stream};
use crate::idle::Idle;
use crate::options::Limits;

/// After so long without a request a connection is put to rest. Those that are busy have their next one sooner.
const REST_AFTER: Duration = Duration::from_secs(1);
/// So many are put to rest before others have their turn with the pool: one takes some microseconds.
const REST_AT_ONCE: usize = 16;

/// How connections are kept for later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolOptions {
    /// How many connections of an origin may lie idle. 0 keeps none. Defaults to 4.
    pub idle_per_origin_max: usize,
    /// How many connections may lie idle altogether. Defaults to 1024.
    pub idle_max: usize,
    /// How long a connection may lie idle. Servers close theirs after 5 s to 2 min. Defaults to 30 s.
    pub idle_timeout: Duration,
    /// How old a connection may be to be used again, so that a crawl of weeks notices a host that has moved. Defaults to
    /// 10 min.
    pub lifetime: Duration,
    /// How many requests may be under way on one connection of HTTP/2 at a time. Defaults to 16.
    pub streams_max: usize,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            idle_per_origin_max: 4,
            idle_max: 1024,
            idle_timeout: Duration::from_secs(30),
            lifetime: Duration::from_secs(600),
            streams_max: 16,
        }
    }
}

/// The connections of all origins that wait.
pub(crate) struct Pool {
    options: PoolOptions,
    state: Mutex<State>,
}

/// A connection of HTTP/1.1, its place, and since when it waits.
type IdleH1 = (u64, Instant, Idle);

/// All connections, the one that was put in first first.
type Order = BTreeMap<u64, Arc<str>>;

#[derive(Default)]
struct State {
    origins: HashMap<Arc<str>, Waiting>,
    order: Order,
    next: u64,
    /// All places before this one have been put to rest.
    rested: u64,
    /// Somebody looks for connections that have waited too long.
    swept: bool,
}

/// What waits for one origin.
#[derive(Default)]
struct Waiting {
    /// The last one is the one that was used last, so most likely still alive.
    h1: Vec<IdleH1>,
    h2: Vec<(u64, H2)>,
}

/// What was taken out. It is dropped after the lock is, since closing a connection takes time.
#[derive(Default)]
struct Dropped {
    h1: Vec<IdleH1>,
    h2: Vec<(u64, H2)>,
}

/// What was taken out to be used.
enum Taken {
    H1(Idle),
    H2(H2Stream),
}

impl Pool {
    pub(crate) fn new(options: PoolOptions) -> Arc<Self> {
        Arc::new(Self { options, state: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection to an origin, if one waits that is alive as far as one can see.
    pub(crate) async fn take(&self, origin: &str, limits: &Limits) -> Option<Connection> {
        loop {
            let mut dropped = Dropped::default();
            let taken = self.lock().take(origin, &self.options, Instant::now(), &mut dropped);
            drop(dropped);
            match taken? {
                Taken::H1(connection) => {
                    if let Some(connection) = connection.wake(limits).await {
                        return Some(Connection::H1(connection));
                    }
                }
                Taken::H2(stream) => return Some(Connection::H2(stream)),
            }
        }
    }

    /// Takes back a connection that is fit for another request.
    pub(crate) fn give_back(self: &Arc<Self>, origin: &Arc<str>, connection: Box<H1>) {
        let now = Instant::now();
        if self.options.idle_per_origin_max == 0 || connection.facts.age(now) >= self.options.lifetime {
            return;
        }
        let mut dropped = Dropped::default();
        let mut state = self.lock();
        state.put(origin, &self.options, &mut dropped, |waiting, place| {
            waiting.h1.push((place, now, Idle::Awake(connection)));
        });
        self.sweep_from_now_on(&mut state);
        drop(state);
    }

    /// Lets others use a connection of HTTP/2 too.
    pub(crate) fn share(self: &Arc<Self>, origin: &Arc<str>, connection: H2) {
        if self.options.idle_per_origin_max == 0 {
            return;
        }
        let mut dropped = Dropped::default();
        let mut state = self.lock();
        state.put(origin, &self.options, &mut dropped, |waiting, place| {
            waiting.h2.push((place, connection));
        });
        self.sweep_from_now_on(&mut state);
        drop(state);
    }

    /// How many connections wait.
    pub(crate) fn len(&self) -> usize {
        self.lock().order.len()
    }

    /// How many of them rest.
    pub(crate) fn resting(&self) -> usize {
        let state = self.lock();
        state.origins.values().flat_map(|waiting| &waiting.h1).filter(|(.., idle)| !idle.is_awake()).count()
    }

    /// A crawl that pauses uses no connection, and so would never notice that they are too old or had better rest: somebody
    /// has to look.
    fn sweep_from_now_on(self: &Arc<Self>, state: &mut State) {
        if std::mem::replace(&mut state.swept, true) {
            return;
        }
        let pool = Arc::downgrade(self);
        let sweep_every = (self.options.idle_timeout / 2).max(Duration::from_millis(50));
        let mut swept = Instant::now();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(REST_AFTER.min(sweep_every)).await;
                let Some(pool) = Weak::upgrade(&pool) else { return };
                while pool.rest_some() {
                    tokio::task::yield_now().await;
                }
                if swept.elapsed() >= sweep_every {
                    swept = Instant::now();
                    if !pool.sweep() {
                        return;
                    }
                }
            }
        });
    }

    /// Puts to rest a few of those that have waited a while. False once there are none.
    fn rest_some(&self) -> bool {
        let now = Instant::now();
        let mut dropped = Dropped::default();
        let mut state = self.lock();
        (0..REST_AT_ONCE).all(|_| state.rest_next(now, &mut dropped))
    }

    /// Drops what has waited too long. False once nothing waits.
    fn sweep(&self) -> bool {
        let mut dropped = Dropped::default();
        let mut state = self.lock();
        let State { origins, order, .. } = &mut *state;
        let now = Instant::now();
        origins.retain(|_, waiting| {
            waiting.expire(order, &self.options, now, &mut dropped);
            !waiting.is_empty()
        });
        state.swept = !state.order.is_empty();
        state.swept
    }
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.h1.is_empty() && self.h2.is_empty()
    }

    /// Drops connections that are dead, too old or have waited too long.
    fn expire(&mut self, order: &mut Order, options: &PoolOptions, now: Instant, dropped: &mut Dropped) {
        let too_long = |since: Instant| now.saturating_duration_since(since) >= options.idle_timeout;
        let h1 = self.h1.extract_if(.., |(_, since, connection)| {
            too_long(*since) || connection.facts().age(now) >= options.lifetime
        });
        dropped.h1.extend(h1.inspect(|(place, ..)| {
            order.remove(place);
        }));
        let h2 = self.h2.extract_if(.., |(_, connection)| {
            let idle = connection.streams() == 0 && too_long(connection.used());
            !connection.is_fit() || idle || connection.facts().age(now) >= options.lifetime
        });
        dropped.h2.extend(h2.inspect(|(place, _)| {
            order.remove(place);
        }));
    }

    /// The one that has waited longest.
    fn first(&self) -> Option<u64> {
        let h1 = self.h1.first().map(|(place, ..)| *place);
        h1.or_else(|| self.h2.first().map(|(place, _)| *place))
    }

    fn drop_at(&mut self, place: u64, dropped: &mut Dropped) {
        dropped.h1.extend(self.h1.extract_if(.., |(at, ..)| *at == place));
        dropped.h2.extend(self.h2.extract_if(.., |(at, _)| *at == place));
    }
}

impl State {
    fn take(
        &mut self,
        origin: &str,
        options: &PoolOptions,
        now: Instant,
        dropped: &mut Dropped,
    ) -> Option<Taken> {
        let Self { origins, order, .. } = self;
        let waiting = origins.get_mut(origin)?;
        waiting.expire(order, options, now, dropped);
        let free =
            waiting.h2.iter().find(|(_, connection)| connection.streams() < options.streams_max.max(1));
        if let Some((_, connection)) = free {
            return Some(Taken::H2(connection.stream()));
        }
        let taken = waiting.h1.pop();
        if waiting.is_empty() {
            origins.remove(origin);
        }
        let (place, _, connection) = taken?;
        order.remove(&place);
        Some(Taken::H1(connection))
    }

    /// Puts to rest the next one that has waited a while. False if there is none.
    fn rest_next(&mut self, now: Instant, dropped: &mut Dropped) -> bool {
        let Some((&place, origin)) = self.order.range(self.rested..).next() else { return false };
        let origin = Arc::clone(origin);
        // Those of HTTP/2 do not rest.
        if let Some(waiting) = self.origins.get_mut(&origin)
            && let Some(index) = waiting.h1.iter().position(|(at, ..)| *at == place)
        {
            if now.saturating_duration_since(waiting.h1[index].1) < REST_AFTER {
                return false;
            }
            let (_, since, idle) = waiting.h1.remove(index);
            match idle.rest() {
                Ok(resting) => waiting.h1.insert(index, (place, since, resting)),
                Err(spent) => {
                    dropped.h1.push((place, since, spent));
                    self.order.remove(&place);
                    if waiting.is_empty() {
                        self.origins.remove(&origin);
                    }
                }
            }
        }
        self.rested = place + 1;
        true
    }

    /// Puts something in for an origin, and drops what is then too much.
    fn put(
        &mut self,
        origin: &Arc<str>,
        options: &PoolOptions,
        dropped: &mut Dropped,
        put: impl FnOnce(&mut Waiting, u64),
    ) {
        let place = self.next;
        self.next += 1;
        self.order.insert(place, Arc::clone(origin));
        let waiting = self.origins.entry(Arc::clone(origin)).or_default();
        put(waiting, place);
        if waiting.h1.len() + waiting.h2.len() > options.idle_per_origin_max
            && let Some(first) = waiting.first()
        {
            waiting.drop_at(first, dropped);
            self.order.remove(&first);
        }
        while self.order.len() > options.idle_max {
            let Some((place, origin)) = self.order.pop_first() else { break };
            let Some(waiting) = self.origins.get_mut(&origin) else { continue };
            waiting.drop_at(place, dropped);
            if waiting.is_empty() {
                self.origins.remove(&origin);
            }
        }
    }
}
