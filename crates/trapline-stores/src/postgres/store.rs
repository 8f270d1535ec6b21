//! The store: the six verbs, each a step in a transaction of its own.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use trapline_core::{Candidate, IdentityKey, Timestamp};
use trapline_frontier::{
    Admission, Claimed, CrawlChange, CrawlReport, CrawlState, ErrorKind, NewCrawl, Page, Query, Recovered,
    Rows, Scan, Settings, Settled, Settlement, Stats, Steer, Steered, Store, StoreError, UrlState, Want,
};

use super::admit::Admit;
use super::any::claim_any;
use super::claim::Claim;
use super::clock::Clock;
use super::crawl::Crawl;
use super::floors::Floors;
use super::moment::column;
use super::pool::Pool;
use super::save::{SLOTS, SPARE_SLOTS};
use super::scan::{Ask, Count};
use super::session::{Failure, Session};
use super::settle::Settle;
use super::steer::Act;
use super::step::read_crawl;
use super::wakeup::{Ear, Wakeups};
use super::work::Work;
use crate::disk::message::values;

/// So long passes at least between two times that others are told of news of a crawl.
const BETWEEN: Duration = Duration::from_millis(50);

/// More partitions than this would cost more than they could ever give.
const MOST_PARTITIONS: u32 = 65_536;

/// A frontier in PostgreSQL, for any number of processes.
///
/// Every verb is one transaction; what it answered is as durable as the server makes a commit. It runs on threads of its own,
/// so it can be called from any executor, and goes on to its end if the caller stops waiting.
#[derive(Clone)]
pub struct PostgresStore {
    inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) pool: Pool,
    /// The numbers of crawls by their names.
    crawls: Mutex<BTreeMap<String, i64>>,
    /// The partition of each crawl whose turn it is, as this handle serves them.
    turns: Mutex<BTreeMap<i64, i64>>,
    /// The crawl that was served last by a claim from any.
    pub(super) last_served: Mutex<Option<Arc<str>>>,
    /// Where to begin to look in each crawl, while looking takes long.
    floors: Mutex<BTreeMap<i64, Floors>>,
    /// What was found in each crawl when this handle first came to it.
    found: Mutex<BTreeMap<i64, Recovered>>,
    wakeups: Wakeups,
    clock: Clock,
    /// When others were last told of news of a crawl.
    told: Mutex<BTreeMap<i64, Told>>,
    dice: AtomicU64,
}

const NOTIFY: &str = "SELECT pg_notify(current_schema(), $1)";

/// What [`wakeup`](super::wakeup) understands.
fn message(crawl: i64, after: Duration) -> String {
    // Not before it is there.
    match after.as_nanos().div_ceil(1_000_000) {
        0 => crawl.to_string(),
        millis => format!("{crawl}@{millis}"),
    }
}

/// When others were told of news.
#[derive(Default)]
struct Told {
    at: Option<Instant>,
    /// When something comes that they were told of: they will look then, and see what else there is.
    soonest: Option<Instant>,
    /// Of this they will be told in a moment.
    owed: Option<Instant>,
}

impl PostgresStore {
    /// Opens the store that a URL names. Its tables must be there: `trapline store migrate URL` makes them.
    pub fn open(url: &str) -> Result<Self, StoreError> {
        Ok(Self::with(Pool::open(url)?))
    }

    /// The same, with connections that are there.
    pub fn with(pool: Pool) -> Self {
        let mut seed = [0; 8];
        // Without randomness all handles begin alike, which only makes them wait for one another more often.
        let _ = getrandom::fill(&mut seed);
        let (wakeups, clock) = (pool.wakeups(), pool.clock());
        Self {
            inner: Arc::new(Inner {
                pool,
                wakeups,
                clock,
                told: Mutex::default(),
                crawls: Mutex::default(),
                turns: Mutex::default(),
                last_served: Mutex::default(),
                floors: Mutex::default(),
                found: Mutex::default(),
                dice: AtomicU64::new(u64::from_le_bytes(seed)),
            }),
        }
    }

    /// Its connections.
    pub fn pool(&self) -> &Pool {
        &self.inner.pool
    }

    /// Does something on the store's own threads.
    async fn run<T, F>(&self, work: impl FnOnce(Arc<Inner>) -> F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let done = self.inner.pool.spawn(work(Arc::clone(&self.inner))).await;
        done.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(StoreError::new(ErrorKind::Unavailable, "postgres store: it is being closed")),
        })
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn admit(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: &[Candidate],
    ) -> Result<Vec<Admission>, StoreError> {
        let (crawl, verb) = (crawl.to_owned(), Admit(batch.to_vec()));
        self.run(|inner| async move { inner.perform("admit", &crawl, now, &verb).await }).await
    }

    async fn claim(&self, crawl: Option<&str>, now: Timestamp, want: &Want) -> Result<Claimed, StoreError> {
        let want = want.clone();
        match crawl.map(str::to_owned) {
            Some(crawl) => {
                let verb = Claim(want);
                self.run(|inner| async move { inner.perform("claim", &crawl, now, &verb).await }).await
            }
            None => self.run(|inner| async move { claim_any(&inner, now, &want).await }).await,
        }
    }

    async fn settle(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: Vec<Settlement>,
    ) -> Result<Vec<Settled>, StoreError> {
        let (crawl, verb) = (crawl.to_owned(), Settle(batch));
        self.run(|inner| async move { inner.perform("settle", &crawl, now, &verb).await }).await
    }

    async fn steer(&self, crawl: &str, now: Timestamp, steer: Steer) -> Result<Steered, StoreError> {
        let crawl = crawl.to_owned();
        self.run(|inner| async move {
            match steer {
                Steer::Crawl(CrawlChange::Create(new)) => inner.create(&crawl, now, &new).await,
                Steer::Crawl(CrawlChange::Delete) => inner.delete(&crawl).await,
                steer => inner.perform("steer", &crawl, now, &Act(steer)).await,
            }
        })
        .await
    }

    async fn scan(&self, crawl: &str, now: Timestamp, scan: &Scan) -> Result<Page, StoreError> {
        let (crawl, scan) = (crawl.to_owned(), scan.clone());
        self.run(|inner| async move {
            if scan.query == Query::Crawls {
                return inner.list_crawls(&scan).await;
            }
            inner.perform("scan", &crawl, now, &Ask(scan)).await
        })
        .await
    }

    /// Everything answered is safe already; but others may still have to be told of it.
    async fn flush(&self) -> Result<(), StoreError> {
        let owed = |(crawl, told): (&i64, &Told)| told.owed.map(|_| *crawl);
        let owed: Vec<i64> = lock(&self.inner.told).iter().filter_map(owed).collect();
        let inner = Arc::clone(&self.inner);
        let tell = async move {
            for crawl in owed {
                inner.tell_owed(crawl).await;
            }
        };
        self.inner.pool.run(tell).await;
        Ok(())
    }

    async fn now(&self) -> Result<Option<Timestamp>, StoreError> {
        self.inner.clock.now().await.map(Some)
    }

    async fn ear(&self, crawl: &str) -> Result<Option<Box<dyn trapline_frontier::Ear>>, StoreError> {
        let name = crawl.to_owned();
        let number = self.run(|inner| async move {
            let session = Session::new(inner.pool.client().await?);
            inner.find_crawl(&session, &name).await.map_err(|failure| inner.said("listen", failure))
        });
        let Some(number) = number.await? else {
            return Err(StoreError::no_crawl("postgres", "listen", crawl));
        };
        Ok(Some(Box::new(Listener(self.inner.wakeups.ear(Some(&number.to_string()))))))
    }

    async fn stats(&self, crawl: &str, now: Timestamp) -> Result<Stats, StoreError> {
        let crawl = crawl.to_owned();
        self.run(|inner| async move {
            let mut stats = inner.perform("count", &crawl, now, &Count).await?;
            stats.durability = Some("batch".to_owned());
            let id = lock(&inner.crawls).get(&crawl).copied();
            stats.recovered = id.and_then(|id| lock(&inner.found).get(&id).copied());
            Ok(stats)
        })
        .await
    }
}

/// One who waits for news of a crawl.
struct Listener(Ear);

#[async_trait]
impl trapline_frontier::Ear for Listener {
    async fn wait(&mut self, at_most: Duration) -> bool {
        self.0.wait(at_most).await
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    /// A number nobody foresees.
    pub(super) fn dice(&self) -> u64 {
        let drawn = self.dice.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        (drawn ^ drawn >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20
    }

    /// Which row of a crawl's counts a step adds to, or the next one that nobody holds.
    pub(super) fn slot(&self) -> i64 {
        (self.dice() % (SLOTS - SPARE_SLOTS).unsigned_abs()) as i64
    }

    /// Tells those who wait that a crawl has something new, or will have after a while: at once, or a moment later if they were told just
    /// now.
    pub(super) async fn tell(self: &Arc<Self>, session: &Session, crawl: i64, after: Duration) {
        let now = Instant::now();
        let Some(due) = now.checked_add(after) else { return };
        {
            let mut told = lock(&self.told);
            let told = told.entry(crawl).or_default();
            if !after.is_zero() && told.soonest.is_some_and(|soonest| now < soonest && soonest <= due) {
                return;
            }
            if let Some(owed) = &mut told.owed {
                *owed = due.min(*owed);
                return;
            }
            if let Some(at) = told.at.map(|at| at + BETWEEN).filter(|at| now < *at) {
                told.owed = Some(due);
                let inner = Arc::clone(self);
                drop(self.pool.spawn(async move {
                    tokio::time::sleep_until(at.into()).await;
                    inner.tell_owed(crawl).await;
                }));
                return;
            }
            (told.at, told.soonest) = (Some(now), Some(due));
        }
        // Who is not told looks by itself after a while, so nothing is made of it if that fails.
        let _ = session.execute(NOTIFY, &[&message(crawl, after)]).await;
    }

    async fn tell_owed(&self, crawl: i64) {
        let now = Instant::now();
        let owed = lock(&self.told).get_mut(&crawl).and_then(|told| {
            let owed = told.owed.take()?;
            (told.at, told.soonest) = (Some(now), Some(owed));
            Some(owed)
        });
        if let (Some(due), Ok(client)) = (owed, self.pool.client().await) {
            let after = due.saturating_duration_since(Instant::now());
            let _ = client.execute(NOTIFY, &[&message(crawl, after)]).await;
        }
    }

    /// The number of a crawl; None if there is none.
    pub(super) async fn find_crawl(&self, session: &Session, name: &str) -> Result<Option<i64>, Failure> {
        if let Some(id) = lock(&self.crawls).get(name) {
            return Ok(Some(*id));
        }
        let sql = "SELECT id FROM crawls WHERE sha256(name) = sha256($1::bytea)";
        let rows = session.rows(sql, &[&name.as_bytes()]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let id = row.try_get(0)?;
        lock(&self.crawls).insert(name.to_owned(), id);
        Ok(Some(id))
    }

    pub(super) fn forget_crawl(&self, name: &str) {
        lock(&self.crawls).remove(name);
    }

    pub(super) fn remember_turn(&self, crawl: &Crawl) {
        lock(&self.turns).insert(crawl.id, crawl.turn);
    }

    pub(super) fn recall_turn(&self, crawl: &mut Crawl) {
        if let Some(turn) = lock(&self.turns).get(&crawl.id) {
            crawl.turn = *turn;
        }
    }

    /// Where to begin to look in a crawl.
    pub(super) fn floors(&self, crawl: i64) -> Floors {
        lock(&self.floors).get(&crawl).map(Floors::good).unwrap_or_default()
    }

    /// Keeps where a step that is done began to look, and what it has put before that.
    pub(super) fn keep_floors(&self, work: &Work) {
        let mut floors = work.floors.clone();
        floors.lower(work);
        // Whoever works alone may have changed any queue.
        if work.alone {
            floors = Floors::default();
        }
        lock(&self.floors).insert(work.crawl.id, floors);
    }

    /// Notes what there was in a crawl when this handle first came to it.
    pub(super) async fn notice(&self, session: &Session, work: &Work) -> Result<(), Failure> {
        if lock(&self.found).contains_key(&work.crawl.id) {
            return Ok(());
        }
        let begun = Instant::now();
        let counts = work.counts(session).await?;
        let found = Recovered {
            pending: counts.urls_in(UrlState::Pending),
            leased: counts.urls_in(UrlState::Leased),
            seen: counts.urls.iter().sum(),
            dead: counts.urls_in(UrlState::Dead),
            took: begun.elapsed(),
            ..Recovered::default()
        };
        lock(&self.found).insert(work.crawl.id, found);
        Ok(())
    }

    /// Makes a crawl, unless it is there.
    async fn create(&self, name: &str, now: Timestamp, new: &NewCrawl) -> Result<Steered, StoreError> {
        if new.partitions == 0 || new.partitions > MOST_PARTITIONS {
            let message = format!(
                "cannot create crawl `{name}` with {} partitions: choose 1 to {MOST_PARTITIONS}",
                new.partitions
            );
            let session = Session::new(self.pool.client().await?);
            let known =
                self.find_crawl(&session, name).await.map_err(|failure| self.said("steer", failure))?;
            return match known {
                Some(_) => Ok(Steered::default()),
                None => Err(StoreError::new(ErrorKind::Invalid, message)),
            };
        }
        // Harmless when it is done twice.
        let mut failures = 0;
        loop {
            let mut session = Session::new(self.pool.client().await?);
            let failure = match self.try_create(&mut session, name, now, new).await {
                Ok(steered) => return Ok(steered),
                Err(failure) => failure,
            };
            session.roll_back().await;
            failures += 1;
            if !self.may_try_again(&failure, failures).await {
                return Err(self.said("create a crawl", failure));
            }
        }
    }

    async fn try_create(
        &self,
        session: &mut Session,
        name: &str,
        now: Timestamp,
        new: &NewCrawl,
    ) -> Result<Steered, Failure> {
        session.begin().await?;
        let insert = "INSERT INTO crawls (name, identity_key, partitions, settings, started, period_set_at, period_set_rank, \
             charged_before) SELECT $1, $2, $3, $4, $5, $5, nextval('ranks') << 18, $5 \
             ON CONFLICT (sha256(name)) DO NOTHING RETURNING id";
        let key: &[u8] = new.key.as_bytes();
        let (partitions, started) = (i64::from(new.partitions), column(now));
        let settings = values::settings(&new.settings);
        let rows = session.rows(insert, &[&name.as_bytes(), &key, &partitions, &settings, &started]).await?;
        if let Some(row) = rows.first() {
            let id: i64 = row.try_get(0)?;
            let slots = "INSERT INTO tallies (crawl, slot, latest) SELECT $1::int8, slot, $2::int8 \
                         FROM generate_series(0, $3::int8 - 1) AS slot";
            session.execute(slots, &[&id, &started, &SLOTS]).await?;
        }
        session.commit().await?;
        Ok(Steered { affected: rows.len() as u64, job: None })
    }

    /// Removes a crawl with everything in it.
    async fn delete(&self, name: &str) -> Result<Steered, StoreError> {
        let mut failures = 0;
        // Whether it may have been done before, without an answer.
        let mut ending = false;
        loop {
            let mut session = Session::new(self.pool.client().await?);
            let failure = match self.try_delete(&mut session, name).await {
                Ok(gone) => {
                    self.forget_crawl(name);
                    let done = Steered { affected: 1, job: None };
                    let is_ours = gone || ending;
                    return is_ours
                        .then_some(done)
                        .ok_or_else(|| StoreError::no_crawl("postgres", "steer", name));
                }
                Err(failure) => failure,
            };
            ending |= session.ending;
            session.roll_back().await;
            failures += 1;
            if !self.may_try_again(&failure, failures).await {
                return Err(self.said("delete a crawl", failure));
            }
        }
    }

    async fn try_delete(&self, session: &mut Session, name: &str) -> Result<bool, Failure> {
        self.forget_crawl(name);
        let Some(id) = self.find_crawl(session, name).await? else { return Ok(false) };
        session.begin().await?;
        super::step::lock_crawl(session, id, true).await?;
        // As long as the crawl is large: what is done with a crawl as a whole is not done half.
        session.execute("SET LOCAL statement_timeout TO 0", &[]).await?;
        let gone = session.execute("DELETE FROM crawls WHERE id = $1", &[&id]).await?;
        for table in [
            "pending",
            "waiting",
            "leases",
            "dead",
            "disregarded",
            "pages",
            "notes",
            "jobs",
            "urls",
            "seen",
            "turns",
            "queues",
            "groups",
            "tallies",
        ] {
            session.execute(&format!("DELETE FROM {table} WHERE crawl = $1"), &[&id]).await?;
        }
        session.commit().await?;
        Ok(gone > 0)
    }

    async fn list_crawls(&self, scan: &Scan) -> Result<Page, StoreError> {
        let session = Session::new(self.pool.client().await?);
        let reports = self.crawl_reports(&session, scan).await;
        reports.map_err(|failure| self.said("scan", failure))
    }

    async fn crawl_reports(&self, session: &Session, scan: &Scan) -> Result<Page, Failure> {
        let limit = column(Timestamp::from_millis(scan.limit.max(1) as u64));
        let after = column(Timestamp::from_millis(scan.cursor.unwrap_or(0)));
        let sql =
            "SELECT c.*, 0::int8 AS fetched, '0' AS bytes FROM crawls c ORDER BY c.name OFFSET $1 LIMIT $2";
        let rows = session.rows(sql, &[&after, &limit.saturating_add(1)]).await?;
        let mut reports: Vec<CrawlReport> = Vec::new();
        for row in rows.iter().take(usize::try_from(limit).unwrap_or(usize::MAX)) {
            reports.push(match read_crawl(row) {
                Ok(crawl) => {
                    let work = Work::new(crawl, 0, super::moment::Ranks::new(Vec::new()));
                    work.report(session).await?
                }
                // One that cannot be read is listed with the others, and as what it is: at its end.
                Err(Failure::Store(error)) => CrawlReport {
                    name: super::load::text(row.try_get("name")?),
                    key: IdentityKey::from_bytes([0; 32]),
                    partitions: u32::try_from(row.try_get::<_, i64>("partitions")?).unwrap_or(1),
                    settings: Settings::default(),
                    started: super::moment::time(row.try_get("started")?),
                    state: CrawlState::Finished(error.to_string()),
                    exhausted: false,
                },
                Err(failure) => return Err(failure),
            });
        }
        let more = rows.len() > reports.len();
        let cursor = more.then_some(scan.cursor.unwrap_or(0) + reports.len() as u64);
        Ok(Page { rows: Rows::Crawls(reports), cursor })
    }

    /// What callers are told of a failure.
    pub(super) fn said(&self, attempted: &str, failure: Failure) -> StoreError {
        match failure {
            Failure::Database(error) => self.pool.trouble(attempted, &error),
            Failure::Store(error) => error,
            Failure::Again | Failure::Alone => StoreError::new(
                ErrorKind::Unavailable,
                format!(
                    "postgres store: cannot {attempted}: others changed the same queues again and again; nothing was done: try \
                     again"
                ),
            ),
        }
    }
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PostgresStore").field(&self.inner.pool).finish()
    }
}
