//! The handle that everybody holds: a crawl on some store, concrete and cheap to clone.
//!
//! Whatever can be computed from the six verbs is here, once, and not in the stores.

use std::sync::Arc;

use trapline_core::{
    Candidate, CanonicalRules, IdentityKey, PrepareError, Preparer, QueueKeyPolicy, Request, Timestamp,
};

use crate::report::{CrawlReport, Page, Query, QueueReport, Rows, Scan, Stats, UrlReport};
use crate::settings::Settings;
use crate::store::{Ear, ErrorKind, Store, StoreError};
use crate::verbs::{
    Admission, Claimed, CrawlChange, NewCrawl, QueueChange, Refusal, Settled, Settlement, Steer, Steered,
    UrlChange, Want,
};

/// One crawl on a store. Clones share it.
///
/// ```
/// use trapline_core::{Request, Timestamp};
/// use trapline_frontier::{Frontier, MemoryStore, Outcome, Settlement};
///
/// # pollster::block_on(async {
/// let now = Timestamp::ZERO;
/// let frontier = Frontier::builder("docs").open(MemoryStore::new(), now).await?;
/// frontier.admit(now, [Request::get("https://example.org/")]).await?;
///
/// let claimed = frontier.claim(now, 10).await?;
/// for lease in claimed.leases {
///     // … fetch lease.request.url …
///     let mut settlement = Settlement::new(lease.id, Outcome::done());
///     settlement.links = vec![frontier.prepare(Request::get("https://example.org/about"))?];
///     frontier.settle(now, vec![settlement]).await?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Frontier {
    store: Arc<dyn Store>,
    crawl: Arc<str>,
    preparer: Arc<Preparer>,
}

/// Opens a [`Frontier`]. Every choice has a default that suits a polite crawl.
#[derive(Clone, Debug)]
pub struct FrontierBuilder {
    crawl: String,
    settings: Settings,
    partitions: u32,
    key: Option<IdentityKey>,
    /// Without its key, which is known once the crawl is open.
    preparer: Preparer,
}

impl Frontier {
    /// Begins to open a crawl by its name.
    pub fn builder(crawl: impl Into<String>) -> FrontierBuilder {
        FrontierBuilder {
            crawl: crawl.into(),
            settings: Settings::default(),
            partitions: 256,
            key: None,
            preparer: Preparer::new(IdentityKey::from_seed(0)),
        }
    }

    /// The crawl's name.
    pub fn crawl(&self) -> &str {
        &self.crawl
    }

    /// Prepares a request: its identity and its queue.
    pub fn prepare(&self, request: impl Into<Arc<Request>>) -> Result<Candidate, PrepareError> {
        self.preparer.prepare(request)
    }

    /// The canonical form of a URL, by which the crawl knows it.
    pub fn canonical_form(&self, url: &str) -> Result<String, PrepareError> {
        self.preparer.canonical_form(url)
    }

    /// Prepares a request for a queue of the caller's own.
    pub fn prepare_in(
        &self,
        request: impl Into<Arc<Request>>,
        slot: Option<&str>,
    ) -> Result<Candidate, PrepareError> {
        self.preparer.prepare_in(request, slot)
    }

    /// Prepares requests and remembers them, one answer each. What cannot be prepared is refused as malformed.
    pub async fn admit(
        &self,
        now: Timestamp,
        requests: impl IntoIterator<Item = Request>,
    ) -> Result<Vec<Admission>, StoreError> {
        let requests = requests.into_iter();
        let mut candidates = Vec::with_capacity(requests.size_hint().0);
        let mut well_formed = Vec::with_capacity(requests.size_hint().0);
        for request in requests {
            let prepared = self.prepare(request);
            well_formed.push(prepared.is_ok());
            candidates.extend(prepared);
        }
        let mut admitted = self.admit_candidates(now, &candidates).await?.into_iter();
        let malformed = || Admission::Refused(Refusal::Malformed);
        Ok(well_formed
            .into_iter()
            .map(|well| if well { admitted.next() } else { None }.unwrap_or_else(malformed))
            .collect())
    }

    /// Remembers candidates, one answer each.
    pub async fn admit_candidates(
        &self,
        now: Timestamp,
        batch: &[Candidate],
    ) -> Result<Vec<Admission>, StoreError> {
        self.store.admit(&self.crawl, now, batch).await
    }

    /// Claims URLs to fetch: `10`, or a [`Want`] with bounds.
    pub async fn claim(&self, now: Timestamp, want: impl Into<Want>) -> Result<Claimed, StoreError> {
        self.store.claim(Some(&self.crawl), now, &want.into()).await
    }

    /// Claims URLs of any crawl on the same store, the crawls taking turns. Settle each lease through a handle of its
    /// crawl.
    pub async fn claim_any(&self, now: Timestamp, want: impl Into<Want>) -> Result<Claimed, StoreError> {
        self.store.claim(None, now, &want.into()).await
    }

    /// Says what became of leases, one answer each.
    pub async fn settle(&self, now: Timestamp, batch: Vec<Settlement>) -> Result<Vec<Settled>, StoreError> {
        self.store.settle(&self.crawl, now, batch).await
    }

    /// Changes something, in force for the very next claim.
    pub async fn steer(&self, now: Timestamp, steer: Steer) -> Result<Steered, StoreError> {
        self.store.steer(&self.crawl, now, steer).await
    }

    /// Changes a queue.
    pub async fn steer_queue(
        &self,
        now: Timestamp,
        key: &str,
        change: QueueChange,
    ) -> Result<Steered, StoreError> {
        self.steer(now, Steer::Queue(key.to_owned(), change)).await
    }

    /// Changes the crawl.
    pub async fn steer_crawl(&self, now: Timestamp, change: CrawlChange) -> Result<Steered, StoreError> {
        self.steer(now, Steer::Crawl(change)).await
    }

    /// Makes a URL unknown.
    pub async fn forget(&self, now: Timestamp, url: &str) -> Result<Steered, StoreError> {
        let identity = self.prepare(Request::get(url)).map_err(|error| invalid(&error))?.identity;
        self.steer(now, Steer::Url(identity, UrlChange::Forget)).await
    }

    /// Lists.
    pub async fn scan(&self, now: Timestamp, scan: &Scan) -> Result<Page, StoreError> {
        self.store.scan(&self.crawl, now, scan).await
    }

    /// Counts.
    pub async fn stats(&self, now: Timestamp) -> Result<Stats, StoreError> {
        self.store.stats(&self.crawl, now).await
    }

    /// How the crawl stands.
    pub async fn report(&self, now: Timestamp) -> Result<CrawlReport, StoreError> {
        report(&*self.store, &self.crawl, now).await
    }

    /// How a queue stands; None if nobody knows it.
    pub async fn queue(&self, now: Timestamp, key: &str) -> Result<Option<QueueReport>, StoreError> {
        let query = Query::Queues { keys: Some(vec![key.to_owned()]), state: None };
        match self.scan(now, &Scan::new(query)).await?.rows {
            Rows::Queues(mut queues) => Ok(queues.pop()),
            _ => Err(wrong_rows()),
        }
    }

    /// What is known of a URL, fetched with `GET`.
    pub async fn url(&self, now: Timestamp, url: &str) -> Result<UrlReport, StoreError> {
        let identity = self.prepare(Request::get(url)).map_err(|error| invalid(&error))?.identity;
        match self.scan(now, &Scan::new(Query::UrlList(vec![identity]))).await?.rows {
            Rows::Urls(mut urls) => urls.pop().ok_or_else(wrong_rows),
            _ => Err(wrong_rows()),
        }
    }

    /// What time it is by the clock that all who use the store follow, to be given to the verbs; None where the store leaves the
    /// time to the caller. See [`Store::now`]. It is cheap: ask before each verb.
    pub async fn now(&self) -> Result<Option<Timestamp>, StoreError> {
        self.store.now().await
    }

    /// An ear for what others bring to this crawl: see [`Store::ear`].
    pub async fn ear(&self) -> Result<Option<Box<dyn Ear>>, StoreError> {
        self.store.ear(&self.crawl).await
    }

    /// Makes durable what was only buffered.
    pub async fn flush(&self) -> Result<(), StoreError> {
        self.store.flush().await
    }
}

impl FrontierBuilder {
    /// The crawl's settings, if it is new. Defaults to [`Settings::default`].
    pub fn settings(self, settings: Settings) -> Self {
        Self { settings, ..self }
    }

    /// Over how many partitions a new crawl spreads its queues. Defaults to 256.
    pub fn partitions(self, partitions: u32) -> Self {
        Self { partitions, ..self }
    }

    /// The secret of a new crawl's identities. Defaults to one drawn at random; give one to repeat a run.
    pub fn key(self, key: IdentityKey) -> Self {
        Self { key: Some(key), ..self }
    }

    /// What makes two URLs the same. Use the same rules whenever you open a crawl. Defaults to the standard ones.
    pub fn canonical(self, canonical: CanonicalRules) -> Self {
        Self { preparer: self.preparer.with_canonical(canonical), ..self }
    }

    /// What makes two URLs share a queue. Use the same policy whenever you open a crawl. Defaults to the host.
    pub fn queue_key(self, queue_key: QueueKeyPolicy) -> Self {
        Self { preparer: self.preparer.with_queue_key(queue_key), ..self }
    }

    /// A rule of your own for what URLs cost, instead of the crawl's `cost`.
    pub fn cost(self, cost: impl Fn(&Request) -> u32 + Send + Sync + 'static) -> Self {
        Self { preparer: self.preparer.with_cost(cost), ..self }
    }

    /// A rule of your own for the classes of URLs, lower first, instead of the crawl's `class`.
    pub fn class(self, class: impl Fn(&Request) -> u8 + Send + Sync + 'static) -> Self {
        Self { preparer: self.preparer.with_class(class), ..self }
    }

    /// Opens the crawl on a store of its own, and creates it if it is new there.
    pub async fn open(self, store: impl Store, now: Timestamp) -> Result<Frontier, StoreError> {
        self.open_shared(Arc::new(store), now).await
    }

    /// Opens the crawl on a store that others use too, and creates it if it is new there.
    pub async fn open_shared(self, store: Arc<dyn Store>, now: Timestamp) -> Result<Frontier, StoreError> {
        match self.clone().attach(Arc::clone(&store), now).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            attached => return attached,
        }
        let key = self.key.unwrap_or_else(IdentityKey::draw);
        let new = NewCrawl { key, partitions: self.partitions, settings: self.settings.clone() };
        store.steer(&self.crawl, now, Steer::Crawl(CrawlChange::Create(new))).await?;
        // Somebody else may have been quicker: the crawl's key is the one that counts.
        self.attach(store, now).await
    }

    /// Opens the crawl if it is there; if it is not, nothing is made, and the error is of the kind
    /// [`ErrorKind::NotFound`].
    pub async fn attach(self, store: Arc<dyn Store>, now: Timestamp) -> Result<Frontier, StoreError> {
        let key = report(&*store, &self.crawl, now).await?.key;
        let preparer = Arc::new(self.preparer.with_key(key));
        Ok(Frontier { store, crawl: Arc::from(self.crawl), preparer })
    }
}

/// All crawls of a store, by name, as they stand.
pub async fn crawls(store: &dyn Store, now: Timestamp) -> Result<Vec<CrawlReport>, StoreError> {
    let mut scan = Scan::new(Query::Crawls);
    let mut crawls = Vec::new();
    loop {
        // Whichever crawl is asked, there or not.
        let page = store.scan("", now, &scan).await?;
        match page.rows {
            Rows::Crawls(reports) => crawls.extend(reports),
            _ => return Err(wrong_rows()),
        }
        if page.cursor.is_none() {
            return Ok(crawls);
        }
        scan.cursor = page.cursor;
    }
}

async fn report(store: &dyn Store, crawl: &str, now: Timestamp) -> Result<CrawlReport, StoreError> {
    match store.scan(crawl, now, &Scan::new(Query::Crawl)).await?.rows {
        Rows::Crawl(report) => Ok(*report),
        _ => Err(wrong_rows()),
    }
}

fn invalid(error: &PrepareError) -> StoreError {
    StoreError::new(ErrorKind::Invalid, error.to_string())
}

fn wrong_rows() -> StoreError {
    StoreError::new(
        ErrorKind::Corrupt,
        "the store answered a scan with rows of another kind; this is a bug in the store",
    )
}
