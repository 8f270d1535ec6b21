//! The crawls that the public API knows, and what it remembers of them beside what the store does: limits, delays, whether it is
//! active. All of it is in notes, so that a restart forgets nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use trapline_core::{IdentityKey, Timestamp};
use trapline_frontier::{
    CrawlChange, CrawlReport, ErrorKind, NewCrawl, Note, NoteWrite, Order, Pace, Query, QueueChange,
    QueueReport, QueueState, Rows, Scan, Settings, Steer, Store, StoreError, crawls,
};

use super::batches::Batches;
use super::names::OWN_CRAWL;
use crate::crawl_name;

/// Between two batches of a queue, unless somebody says otherwise.
const DELAY: Duration = Duration::from_secs(1);

/// For so long a crawl is believed to be what it was: by another way it may be deleted, and made anew with another key.
const CERTAIN_FOR: Duration = Duration::from_secs(1);

/// There are no more crawls of this API in one store: an empty one takes some 70 KB of memory, and clients make one by naming it.
const CRAWLS_MAX: usize = 10_000;

/// Crawls of this API have queues, not sites: few partitions do, and take less memory.
const PARTITIONS: u32 = 16;

const ACTIVE: &str = "active";
const DEFAULT_DELAY: &str = "delay";
const LIMIT: &str = "urlfrontier.limit/";
const QUEUE_DELAY: &str = "urlfrontier.delay/";

/// One crawl.
pub(super) struct Crawl {
    pub(super) name: Arc<str>,
    pub(super) secret: IdentityKey,
    /// How many URLs of a queue may be completed.
    limits: Mutex<BTreeMap<String, u64>>,
    /// The queues that have a delay of their own.
    delays: Mutex<BTreeMap<String, Duration>>,
    /// The queues that may have no URL; None before anybody has looked.
    pub(super) hollow: tokio::sync::Mutex<Option<BTreeSet<String>>>,
    /// What was handed out last.
    batches: Mutex<Batches>,
    /// When it was last seen to be there, in milliseconds.
    seen_at: AtomicU64,
}

/// All of them.
pub(super) struct Crawls {
    pub(super) store: Arc<dyn Store>,
    open: RwLock<BTreeMap<String, Arc<Crawl>>>,
    common: RwLock<Common>,
    /// Held by who opens or makes one, and at first by who looks which there are.
    opening: tokio::sync::Mutex<bool>,
}

/// What holds for all crawls.
#[derive(Clone, Copy)]
pub(super) struct Common {
    pub(super) active: bool,
    pub(super) delay: Duration,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Crawl {
    pub(super) fn batches(&self) -> MutexGuard<'_, Batches> {
        lock(&self.batches)
    }

    /// The delay that a queue has of its own.
    fn own_delay(&self, key: &str) -> Option<Duration> {
        lock(&self.delays).get(key).copied()
    }

    /// Whether it was there a moment ago.
    fn is_certain(&self, now: Timestamp) -> bool {
        let seen_at = Timestamp::from_millis(self.seen_at.load(Ordering::Relaxed));
        now < seen_at + CERTAIN_FOR
    }

    /// How long a queue waits after each batch.
    pub(super) fn delay(&self, key: &str, common: Common) -> Duration {
        self.own_delay(key).unwrap_or(common.delay)
    }

    /// A queue may have no URL from now on.
    pub(super) async fn may_be_hollow(&self, key: &str) {
        if let Some(hollow) = &mut *self.hollow.lock().await {
            hollow.insert(key.to_owned());
        }
    }

    /// Which of these queues have a limit.
    pub(super) fn limited<'a>(&self, keys: impl Iterator<Item = &'a str>) -> Vec<String> {
        let limits = lock(&self.limits);
        if limits.is_empty() {
            return Vec::new();
        }
        let mut limited: Vec<_> = keys.filter(|key| limits.contains_key(*key)).map(str::to_owned).collect();
        limited.sort();
        limited.dedup();
        limited
    }
}

impl Crawls {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            open: RwLock::default(),
            common: RwLock::new(Common { active: true, delay: DELAY }),
            opening: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn common(&self) -> Common {
        *self.common.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn opened(&self, name: &str) -> Option<Arc<Crawl>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// A crawl by its name, if it is there.
    pub(super) async fn find(&self, name: &str, now: Timestamp) -> Result<Option<Arc<Crawl>>, StoreError> {
        let mut known = self.opening.lock().await;
        self.load(&mut known, now).await?;
        self.look(name, now).await
    }

    /// The same, if it was there a moment ago.
    pub(super) async fn find_soon(
        &self,
        name: &str,
        now: Timestamp,
    ) -> Result<Option<Arc<Crawl>>, StoreError> {
        match self.opened(name).filter(|crawl| crawl.is_certain(now)) {
            Some(crawl) => Ok(Some(crawl)),
            None => self.find(name, now).await,
        }
    }

    /// Looks whether a crawl is there, and still the one that is known.
    async fn look(&self, name: &str, now: Timestamp) -> Result<Option<Arc<Crawl>>, StoreError> {
        let report = match self.report(name, now).await {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            report => Some(report?).filter(|report| name != OWN_CRAWL && is_ours(report)),
        };
        let Some(report) = report else {
            self.drop_from_memory(name);
            return Ok(None);
        };
        let crawl = match self.opened(name).filter(|crawl| crawl.secret == report.key) {
            Some(crawl) => crawl,
            None => {
                let crawl = self.read(&report, now).await?;
                let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
                open.insert(name.to_owned(), Arc::clone(&crawl));
                crawl
            }
        };
        crawl.seen_at.store(now.as_millis(), Ordering::Relaxed);
        Ok(Some(crawl))
    }

    /// A crawl by its name. It is made if it is not there.
    pub(super) async fn find_or_make(&self, name: &str, now: Timestamp) -> Result<Arc<Crawl>, StoreError> {
        if let Some(crawl) = self.opened(name).filter(|crawl| crawl.is_certain(now)) {
            return Ok(crawl);
        }
        let mut known = self.opening.lock().await;
        self.load(&mut known, now).await?;
        if let Some(crawl) = self.look(name, now).await? {
            return Ok(crawl);
        }
        crawl_name::check(name).map_err(|why| StoreError::new(ErrorKind::Invalid, why))?;
        if name == OWN_CRAWL {
            let message = format!("the crawl `{OWN_CRAWL}` is the service's own; choose another name");
            return Err(StoreError::new(ErrorKind::Invalid, message));
        }
        if self.open.read().unwrap_or_else(PoisonError::into_inner).len() >= CRAWLS_MAX {
            let message = format!(
                "there are {CRAWLS_MAX} crawls, and no more are made by naming them; delete some that are done (DeleteCrawl)"
            );
            return Err(StoreError::new(ErrorKind::Full, message));
        }
        let settings = Settings {
            order: Order::Date,
            // A queue's wait counts from when its batch was handed out, whatever becomes of it.
            pace: Pace::Claim,
            concurrency: 0,
            delay: self.common().delay,
            // One turn, one URL: queues go round.
            balance_replenish: 1,
            // Leases end, URLs do not.
            max_deliveries: 0,
            ..Settings::default()
        };
        self.make(name, settings, now).await?;
        self.look(name, now).await?.ok_or_else(|| not_ours(name))
    }

    async fn make(&self, name: &str, settings: Settings, now: Timestamp) -> Result<(), StoreError> {
        let new = NewCrawl { key: IdentityKey::draw(), partitions: PARTITIONS, settings };
        self.store.steer(name, now, Steer::Crawl(CrawlChange::Create(new))).await.map(drop)
    }

    async fn report(&self, name: &str, now: Timestamp) -> Result<CrawlReport, StoreError> {
        match self.store.scan(name, now, &Scan::new(Query::Crawl)).await?.rows {
            Rows::Crawl(report) => Ok(*report),
            _ => Err(wrong_rows()),
        }
    }

    /// Looks which crawls there are, once.
    async fn load(&self, known: &mut bool, now: Timestamp) -> Result<(), StoreError> {
        if *known {
            return Ok(());
        }
        let mut open = BTreeMap::new();
        for report in crawls(&*self.store, now).await? {
            if &*report.name == OWN_CRAWL {
                self.recall(now).await?;
            } else if is_ours(&report) {
                let crawl = self.read(&report, now).await?;
                let keys: Vec<_> = lock(&crawl.limits).keys().cloned().collect();
                self.keep_limits(&crawl, &keys, now).await?;
                open.insert(report.name.to_string(), crawl);
            }
        }
        *self.open.write().unwrap_or_else(PoisonError::into_inner) = open;
        *known = true;
        Ok(())
    }

    /// What was said for all crawls.
    async fn recall(&self, now: Timestamp) -> Result<(), StoreError> {
        for note in self.notes(OWN_CRAWL, "", now).await? {
            let mut common = self.common.write().unwrap_or_else(PoisonError::into_inner);
            match &*note.key {
                ACTIVE => common.active = number(&note) != 0,
                DEFAULT_DELAY => common.delay = Duration::from_secs(number(&note)),
                _ => {}
            }
        }
        Ok(())
    }

    async fn read(&self, report: &CrawlReport, now: Timestamp) -> Result<Arc<Crawl>, StoreError> {
        let named = |note: &Note, prefix: &str| note.key[prefix.len()..].to_owned();
        let limits = self.notes(&report.name, LIMIT, now).await?;
        let delays = self.notes(&report.name, QUEUE_DELAY, now).await?;
        let batches = self.batches_out(&report.name, now).await?;
        Ok(Arc::new(Crawl {
            name: Arc::clone(&report.name),
            secret: report.key,
            limits: Mutex::new(limits.iter().map(|note| (named(note, LIMIT), number(note))).collect()),
            delays: Mutex::new(
                delays
                    .iter()
                    .map(|note| (named(note, QUEUE_DELAY), Duration::from_secs(number(note))))
                    .collect(),
            ),
            hollow: tokio::sync::Mutex::default(),
            batches: Mutex::new(batches),
            seen_at: AtomicU64::new(now.as_millis()),
        }))
    }

    /// What a crawl had handed out before it was looked at.
    async fn batches_out(&self, crawl: &str, now: Timestamp) -> Result<Batches, StoreError> {
        let mut scan = Scan::new(Query::Leases);
        let mut batches = Batches::default();
        loop {
            let page = self.store.scan(crawl, now, &scan).await?;
            let Rows::Leases(leases) = page.rows else { return Err(wrong_rows()) };
            leases.iter().for_each(|lease| batches.recall(lease));
            if page.cursor.is_none() {
                return Ok(batches);
            }
            scan.cursor = page.cursor;
        }
    }

    async fn notes(&self, crawl: &str, prefix: &str, now: Timestamp) -> Result<Vec<Note>, StoreError> {
        let mut scan = Scan::new(Query::Notes { prefix: prefix.to_owned() });
        let mut notes = Vec::new();
        loop {
            let page = self.store.scan(crawl, now, &scan).await?;
            let Rows::Notes(rows) = page.rows else { return Err(wrong_rows()) };
            notes.extend(rows);
            if page.cursor.is_none() {
                return Ok(notes);
            }
            scan.cursor = page.cursor;
        }
    }

    async fn note(
        &self,
        crawl: &str,
        key: String,
        value: Option<u64>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let value = value.map(|value| value.to_be_bytes().to_vec());
        let note = CrawlChange::Note(NoteWrite { key, value, expires: None });
        self.store.steer(crawl, now, Steer::Crawl(note)).await.map(drop)
    }

    /// All there are, by name.
    pub(super) async fn all(&self, now: Timestamp) -> Result<Vec<Arc<Crawl>>, StoreError> {
        let mut known = self.opening.lock().await;
        self.load(&mut known, now).await?;
        Ok(self.open.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect())
    }

    /// It is gone, or may be.
    pub(super) fn drop_from_memory(&self, name: &str) {
        self.open.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    pub(super) async fn set_active(&self, active: bool, now: Timestamp) -> Result<(), StoreError> {
        self.all(now).await?;
        self.make(OWN_CRAWL, Settings::default(), now).await?;
        self.note(OWN_CRAWL, ACTIVE.to_owned(), Some(u64::from(active)), now).await?;
        self.common.write().unwrap_or_else(PoisonError::into_inner).active = active;
        Ok(())
    }

    /// For all crawls, those to come among them.
    pub(super) async fn set_default_delay(&self, delay: Duration, now: Timestamp) -> Result<(), StoreError> {
        let all = self.all(now).await?;
        let is_longer = delay > self.common().delay;
        self.make(OWN_CRAWL, Settings::default(), now).await?;
        self.note(OWN_CRAWL, DEFAULT_DELAY.to_owned(), Some(delay.as_secs()), now).await?;
        self.common.write().unwrap_or_else(PoisonError::into_inner).delay = delay;
        for crawl in all {
            let set = CrawlChange::Set(vec![("delay".to_owned(), format!("{}s", delay.as_secs()))]);
            let steered = async {
                self.store.steer(&crawl.name, now, Steer::Crawl(set)).await?;
                if is_longer {
                    self.lengthen(&crawl, delay, |key| crawl.own_delay(key).is_none(), now).await?;
                }
                Ok::<_, StoreError>(())
            };
            match steered.await {
                // Somebody has deleted it by another way.
                Err(error) if error.kind() == ErrorKind::NotFound => self.drop_from_memory(&crawl.name),
                steered => steered?,
            }
        }
        Ok(())
    }

    pub(super) async fn set_delay(
        &self,
        crawl: &Crawl,
        key: &str,
        delay: Duration,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.note(&crawl.name, format!("{QUEUE_DELAY}{key}"), Some(delay.as_secs()), now).await?;
        // For who looks at the queue.
        let terms = trapline_core::Terms { delay: Some(delay), ..Default::default() };
        let change = QueueChange::Terms(terms);
        self.store.steer(&crawl.name, now, Steer::Queue(key.to_owned(), change)).await?;
        lock(&crawl.delays).insert(key.to_owned(), delay);
        self.lengthen(crawl, delay, |queue| queue == key, now).await
    }

    pub(super) async fn set_limit(
        &self,
        crawl: &Crawl,
        key: &str,
        limit: Option<u64>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.note(&crawl.name, format!("{LIMIT}{key}"), limit, now).await?;
        match limit {
            Some(limit) => lock(&crawl.limits).insert(key.to_owned(), limit),
            None => lock(&crawl.limits).remove(key),
        };
        self.keep_limits(crawl, &[key.to_owned()], now).await
    }

    /// What was said of a queue is forgotten with it.
    pub(super) async fn forget_queue(
        &self,
        crawl: &Crawl,
        key: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        for prefix in [LIMIT, QUEUE_DELAY] {
            self.note(&crawl.name, format!("{prefix}{key}"), None, now).await?;
        }
        lock(&crawl.limits).remove(key);
        lock(&crawl.delays).remove(key);
        for change in [QueueChange::DefaultTerms, QueueChange::Unblock, QueueChange::Reinstate] {
            self.store.steer(&crawl.name, now, Steer::Queue(key.to_owned(), change)).await?;
        }
        Ok(())
    }

    /// Queues that have as many completed URLs as they may are retired, and those that have fewer are not.
    pub(super) async fn keep_limits(
        &self,
        crawl: &Crawl,
        keys: &[String],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        if keys.is_empty() {
            return Ok(());
        }
        for queue in self.queues(crawl, keys.to_vec(), now).await? {
            let limit = lock(&crawl.limits).get(&*queue.key).copied();
            let is_over = limit.is_some_and(|limit| queue.done >= limit);
            let change = match (is_over, queue.state == QueueState::Retired) {
                (true, false) => QueueChange::Retire,
                (false, true) => QueueChange::Reinstate,
                _ => continue,
            };
            self.store.steer(&crawl.name, now, Steer::Queue(queue.key.to_string(), change)).await?;
        }
        Ok(())
    }

    /// How queues stand, those that are there.
    pub(super) async fn queues(
        &self,
        crawl: &Crawl,
        keys: Vec<String>,
        now: Timestamp,
    ) -> Result<Vec<QueueReport>, StoreError> {
        let scan = Scan::new(Query::Queues { keys: Some(keys), state: None });
        match self.store.scan(&crawl.name, now, &scan).await?.rows {
            Rows::Queues(queues) => Ok(queues),
            _ => Err(wrong_rows()),
        }
    }
}

/// Whether a crawl behaves as this API promises. Others on the same store are left alone.
fn is_ours(report: &CrawlReport) -> bool {
    report.settings.order == Order::Date && report.settings.pace == Pace::Claim
}

fn not_ours(name: &str) -> StoreError {
    let message = format!(
        "the crawl `{name}` is there, and is not ordered by date and paced by the claim, as this API promises; choose another name"
    );
    StoreError::new(ErrorKind::Invalid, message)
}

pub(super) fn wrong_rows() -> StoreError {
    StoreError::new(
        ErrorKind::Corrupt,
        "the store answered a scan with rows of another kind; this is a bug in the store",
    )
}

/// A number in a note. What cannot be read counts as 0.
fn number(note: &Note) -> u64 {
    note.value[..].try_into().map_or(0, u64::from_be_bytes)
}
