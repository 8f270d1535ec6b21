//! The public URLFrontier API, version 2.6: what its clients promise each other, done with Trapline's verbs. What maps to what is in
//! `docs/manual/urlfrontier.md`.

mod batches;
mod crawls;
mod get;
mod listing;
mod names;
mod put;
mod ready;

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use futures_util::stream::{self, Stream, StreamExt};
use prost::Message;
use tonic::{Request, Response, Status, Streaming};
use trapline_core::Timestamp;
use trapline_frontier::{
    CrawlChange, Query, QueueChange, Rows, Scan, Steer, Store, StoreError, UrlChange, UrlReport, UrlState,
};

use crate::Clock;
use crate::proto::urlfrontier as pb;
use crate::wire::error;
use crawls::{Crawl, Crawls, wrong_rows};
use listing::{Filter, Urls};
use pb::url_frontier_server::UrlFrontier;
use put::Put;
use ready::Ready;

/// So many items that have come are taken in one step; those after them wait in the connection.
const ITEMS_AT_ONCE: usize = 1024;

/// The same of batches.
const BATCHES_AT_ONCE: usize = 8;

/// No more is taken at once when it has so many bytes.
const BYTES_AT_ONCE: usize = 4 << 20;

/// So many URLs are forgotten at a time.
const FORGOTTEN_AT_ONCE: usize = 256;

/// So many URLs of a batch are taken; more are refused.
const BATCH_MAX: usize = crate::frontier_service::BATCH_MAX;

/// What is listed unless a client says how much.
const LISTED: u32 = 100;

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Serves a store to clients of URLFrontier.
#[derive(Clone)]
pub struct UrlFrontierService {
    store: Arc<dyn Store>,
    clock: Clock,
    node: Arc<str>,
    crawls: Arc<Crawls>,
    /// Held while URLs are handed out, and by who pauses that.
    gate: Arc<tokio::sync::Mutex<()>>,
    /// Which crawl is the first to be asked.
    turn: Arc<AtomicUsize>,
}

impl UrlFrontierService {
    /// Serves this store by this clock. `node` is what clients are told of where the service is: `HOST:PORT`.
    pub fn new(store: Arc<dyn Store>, clock: Clock, node: impl Into<String>) -> Self {
        Self {
            crawls: Arc::new(Crawls::new(Arc::clone(&store))),
            store,
            clock,
            node: Arc::from(node.into()),
            gate: Arc::default(),
            turn: Arc::default(),
        }
    }

    async fn find(&self, id: &str) -> Result<Option<Arc<Crawl>>, Status> {
        self.crawls.find(names::crawl(id), self.clock.now()).await.map_err(status)
    }

    async fn find_or_make(&self, id: &str) -> Result<Arc<Crawl>, Status> {
        self.crawls.find_or_make(names::crawl(id), self.clock.now()).await.map_err(status)
    }

    async fn steer_queue(&self, crawl: &Crawl, key: &str, change: QueueChange) -> Result<(), Status> {
        let steer = Steer::Queue(key.to_owned(), change);
        self.store.steer(&crawl.name, self.clock.now(), steer).await.map_err(status)?;
        crawl.may_be_hollow(key).await;
        Ok(())
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is mapped over errors")]
fn status(error: StoreError) -> Status {
    error::status(&error)
}

/// A queue is named in most calls.
fn needs_key(key: &str) -> Result<&str, Status> {
    names::key(key, "")
        .ok_or_else(|| Status::invalid_argument("`key` must name a queue, in at most 255 characters"))
}

fn seconds(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds.saturating_mul(1000))
}

#[tonic::async_trait]
impl UrlFrontier for UrlFrontierService {
    async fn list_nodes(&self, _: Request<pb::Empty>) -> Result<Response<pb::StringList>, Status> {
        Ok(Response::new(pb::StringList { values: vec![self.node.to_string()] }))
    }

    async fn list_crawls(&self, _: Request<pb::Local>) -> Result<Response<pb::StringList>, Status> {
        let now = self.clock.now();
        let mut values = Vec::new();
        for crawl in self.crawls.all(now).await.map_err(status)? {
            // A queue counts if it has a URL.
            if self.url_counts(&crawl, now).await.map_err(status)?.iter().any(|urls| *urls > 0) {
                values.push(crawl.name.to_string());
            }
        }
        Ok(Response::new(pb::StringList { values }))
    }

    async fn delete_crawl(
        &self,
        request: Request<pb::DeleteCrawlMessage>,
    ) -> Result<Response<pb::Long>, Status> {
        let request = request.into_inner();
        let now = self.clock.now();
        let Some(crawl) = self.find(&request.value).await? else {
            return Ok(Response::new(pb::Long { value: 0 }));
        };
        let urls = self.url_counts(&crawl, now).await.map_err(status)?;
        self.store.steer(&crawl.name, now, Steer::Crawl(CrawlChange::Delete)).await.map_err(status)?;
        self.crawls.drop_from_memory(&crawl.name);
        let counted = [UrlState::Pending, UrlState::Leased, UrlState::Done];
        let value = counted.into_iter().map(|state| urls[state as usize]).sum();
        Ok(Response::new(pb::Long { value }))
    }

    async fn list_queues(&self, request: Request<pb::Pagination>) -> Result<Response<pb::QueueList>, Status> {
        let pb::Pagination { start, size, include_inactive, crawl_id, local: _ } = request.into_inner();
        let size = if size == 0 { LISTED } else { size };
        let values = match self.find(&crawl_id).await? {
            Some(crawl) => self
                .list_queues(&crawl, start as usize, size as usize, include_inactive, self.clock.now())
                .await
                .map_err(status)?,
            None => Vec::new(),
        };
        let crawl_id = names::crawl(&crawl_id).to_owned();
        let size = values.len() as u32;
        Ok(Response::new(pb::QueueList { values, total: 0, start, size, crawl_id }))
    }

    type GetURLsStream = Answers<pb::UrlInfo>;

    async fn get_ur_ls(
        &self,
        request: Request<pb::GetParams>,
    ) -> Result<Response<Self::GetURLsStream>, Status> {
        let urls = self.get(request.into_inner()).await.map_err(status)?;
        Ok(Response::new(Box::pin(stream::iter(urls.into_iter().map(Ok)))))
    }

    type PutURLsStream = Answers<pb::AckMessage>;

    async fn put_ur_ls(
        &self,
        request: Request<Streaming<pb::UrlItem>>,
    ) -> Result<Response<Self::PutURLsStream>, Status> {
        let service = self.clone();
        // What has come by now is one step of the store, and one sync.
        let items = Ready::new(request.into_inner(), ITEMS_AT_ONCE, BYTES_AT_ONCE);
        let steps = items.then(move |items| {
            let service = service.clone();
            async move { service.put_items(items).await }
        });
        Ok(Response::new(Box::pin(steps.flat_map(stream::iter))))
    }

    type PutDiscoveredStream = Answers<pb::BatchAck>;

    async fn put_discovered(
        &self,
        request: Request<Streaming<pb::DiscoveredBatch>>,
    ) -> Result<Response<Self::PutDiscoveredStream>, Status> {
        let service = self.clone();
        let batches = Ready::new(request.into_inner(), BATCHES_AT_ONCE, BYTES_AT_ONCE);
        let steps = batches.then(move |batches| {
            let service = service.clone();
            async move { service.put_batches(batches).await }
        });
        Ok(Response::new(Box::pin(steps.flat_map(stream::iter))))
    }

    async fn get_stats(
        &self,
        request: Request<pb::QueueWithinCrawlParams>,
    ) -> Result<Response<pb::Stats>, Status> {
        let pb::QueueWithinCrawlParams { key, crawl_id, local: _ } = request.into_inner();
        let now = self.clock.now();
        let stats = match self.find(&crawl_id).await? {
            Some(crawl) if key.is_empty() => self.crawl_stats(&crawl, now).await.map_err(status)?,
            Some(crawl) => self.queue_stats(&crawl, &key, now).await.map_err(status)?,
            None => listing::nothing(),
        };
        Ok(Response::new(pb::Stats { crawl_id: names::crawl(&crawl_id).to_owned(), ..stats }))
    }

    async fn delete_queue(
        &self,
        request: Request<pb::QueueWithinCrawlParams>,
    ) -> Result<Response<pb::Long>, Status> {
        let pb::QueueWithinCrawlParams { key, crawl_id, local: _ } = request.into_inner();
        let key = needs_key(&key)?;
        let now = self.clock.now();
        let Some(crawl) = self.find(&crawl_id).await? else {
            return Ok(Response::new(pb::Long { value: 0 }));
        };
        let queue = self.crawls.queues(&crawl, vec![key.to_owned()], now).await.map_err(status)?.pop();
        let Some(queue) = queue else { return Ok(Response::new(pb::Long { value: 0 })) };
        self.steer_queue(&crawl, key, QueueChange::Delete).await?;
        self.crawls.forget_queue(&crawl, key, now).await.map_err(status)?;
        Ok(Response::new(pb::Long { value: listing::urls_of(&queue) }))
    }

    async fn block_queue_until(
        &self,
        request: Request<pb::BlockQueueParams>,
    ) -> Result<Response<pb::Empty>, Status> {
        let pb::BlockQueueParams { key, time, crawl_id, local: _ } = request.into_inner();
        let key = needs_key(&key)?;
        let crawl = self.find_or_make(&crawl_id).await?;
        let change = if time == 0 { QueueChange::Unblock } else { QueueChange::Block(seconds(time)) };
        // Nobody is handed anything of it once this is answered.
        let _gate = self.gate.lock().await;
        self.steer_queue(&crawl, key, change).await?;
        Ok(Response::new(pb::Empty {}))
    }

    async fn set_active(&self, request: Request<pb::Active>) -> Result<Response<pb::Empty>, Status> {
        let _gate = self.gate.lock().await;
        self.crawls.set_active(request.into_inner().state, self.clock.now()).await.map_err(status)?;
        Ok(Response::new(pb::Empty {}))
    }

    async fn get_active(&self, _: Request<pb::Local>) -> Result<Response<pb::Boolean>, Status> {
        self.crawls.all(self.clock.now()).await.map_err(status)?;
        Ok(Response::new(pb::Boolean { state: self.crawls.common().active }))
    }

    async fn set_delay(&self, request: Request<pb::QueueDelayParams>) -> Result<Response<pb::Empty>, Status> {
        let pb::QueueDelayParams { key, delay_requestable, crawl_id, local: _ } = request.into_inner();
        let (now, delay) = (self.clock.now(), Duration::from_secs(u64::from(delay_requestable)));
        // Nobody is handed anything by the old one once this is answered.
        let _gate = self.gate.lock().await;
        if key.is_empty() {
            self.crawls.set_default_delay(delay, now).await.map_err(status)?;
        } else {
            let crawl = self.find_or_make(&crawl_id).await?;
            self.crawls.set_delay(&crawl, needs_key(&key)?, delay, now).await.map_err(status)?;
            crawl.may_be_hollow(&key).await;
        }
        Ok(Response::new(pb::Empty {}))
    }

    /// What the service writes to its log is its operator's choice; that somebody asked for more or less of it is a line there.
    async fn set_log_level(
        &self,
        request: Request<pb::LogLevelParams>,
    ) -> Result<Response<pb::Empty>, Status> {
        let pb::LogLevelParams { package, level, local: _ } = request.into_inner();
        let level = pb::log_level_params::Level::try_from(level).map_err(|_| {
            Status::invalid_argument(format!("there is no log level {level}; there are 0 to 4"))
        })?;
        tracing::info!(
            "a client asks to log {package:?} at {}: the operator decides, with --log",
            level.as_str_name()
        );
        Ok(Response::new(pb::Empty {}))
    }

    async fn set_crawl_limit(
        &self,
        request: Request<pb::CrawlLimitParams>,
    ) -> Result<Response<pb::Empty>, Status> {
        let pb::CrawlLimitParams { key, limit, crawl_id, local: _ } = request.into_inner();
        let key = needs_key(&key)?;
        let crawl = self.find_or_make(&crawl_id).await?;
        let limit = (limit > 0).then_some(u64::from(limit));
        let _gate = self.gate.lock().await;
        self.crawls.set_limit(&crawl, key, limit, self.clock.now()).await.map_err(status)?;
        crawl.may_be_hollow(key).await;
        Ok(Response::new(pb::Empty {}))
    }

    async fn get_url_status(
        &self,
        request: Request<pb::UrlStatusRequest>,
    ) -> Result<Response<pb::UrlItem>, Status> {
        let pb::UrlStatusRequest { url, key, crawl_id } = request.into_inner();
        let key = names::key(&key, &url).filter(|_| names::is_url(&url));
        let key = key
            .ok_or_else(|| Status::invalid_argument("`url` must be given, and a `key` if it has no host"))?;
        let not_found = || Status::not_found("nothing is known of this URL in this queue");
        let crawl = self.find(&crawl_id).await?.ok_or_else(not_found)?;
        let scan = Scan::new(Query::UrlList(vec![names::identity(&crawl.secret, key, &url)]));
        let page = self.store.scan(&crawl.name, self.clock.now(), &scan).await.map_err(status)?;
        let Rows::Urls(rows) = page.rows else { return Err(status(wrong_rows())) };
        let item = rows.first().and_then(|row| listing::item(row, &crawl.name));
        item.map(Response::new).ok_or_else(not_found)
    }

    type ListURLsStream = Answers<pb::UrlItem>;

    async fn list_ur_ls(
        &self,
        request: Request<pb::ListUrlParams>,
    ) -> Result<Response<Self::ListURLsStream>, Status> {
        let pb::ListUrlParams { start, size, key, crawl_id, local: _, filter, ignore_case } =
            request.into_inner();
        let size = if size == 0 { LISTED } else { size };
        let Some(crawl) = self.find(&crawl_id).await? else {
            return Ok(Response::new(Box::pin(stream::empty())));
        };
        let urls = Urls::new(Filter::new(key, filter, ignore_case.unwrap_or_default()));
        let pages = stream::try_unfold(
            (self.clone(), Arc::clone(&crawl), urls),
            |(service, crawl, mut urls)| async {
                let now = service.clock.now();
                let page = urls.next(&service, &crawl, now).await.map_err(status)?;
                Ok::<_, Status>(page.map(|page| (page, (service, crawl, urls))))
            },
        );
        let items = pages.flat_map(move |page| {
            let items: Vec<Result<pb::UrlItem, Status>> = match page {
                Ok(rows) => rows.iter().filter_map(|row| listing::item(row, &crawl.name)).map(Ok).collect(),
                Err(status) => vec![Err(status)],
            };
            stream::iter(items)
        });
        Ok(Response::new(Box::pin(items.skip(start as usize).take(size as usize))))
    }

    async fn count_ur_ls(&self, request: Request<pb::CountUrlParams>) -> Result<Response<pb::Long>, Status> {
        let pb::CountUrlParams { key, crawl_id, filter, ignore_case, local: _ } = request.into_inner();
        let Some(crawl) = self.find(&crawl_id).await? else {
            return Ok(Response::new(pb::Long { value: 0 }));
        };
        let mut urls = Urls::new(Filter::new(key, filter, ignore_case.unwrap_or_default()));
        let mut value = 0;
        while let Some(rows) = urls.next(self, &crawl, self.clock.now()).await.map_err(status)? {
            value += rows.len() as u64;
        }
        Ok(Response::new(pb::Long { value }))
    }

    async fn purge_ur_ls(&self, request: Request<pb::PurgeUrlParams>) -> Result<Response<pb::Long>, Status> {
        let pb::PurgeUrlParams { key, crawl_id, days } = request.into_inner();
        let Some(crawl) = self.find(&crawl_id).await? else {
            return Ok(Response::new(pb::Long { value: 0 }));
        };
        let now = self.clock.now();
        let before = (now.as_millis() / 1000).saturating_sub(u64::from(days) * 86_400);
        let mut urls = Urls::new(Filter::new(key, None, false));
        let (mut value, mut limited) = (0, BTreeSet::new());
        while let Some(rows) = urls.next(self, &crawl, now).await.map_err(status)? {
            let is_old = |request: &trapline_core::Request| days == 0 || put::creation_date(request) < before;
            let old = rows.into_iter().filter(|row| row.request.as_deref().is_some_and(is_old));
            let (store, crawl) = (&self.store, &crawl);
            let forget = |row: UrlReport| async move {
                let forget = Steer::Url(row.identity, UrlChange::Forget);
                store.steer(&crawl.name, now, forget).await.map_err(status)?;
                if let Some(key) = &row.key {
                    crawl.may_be_hollow(key).await;
                }
                Ok::<_, Status>(row.key)
            };
            // Many at a time: one sync serves all of them.
            let mut forgotten = stream::iter(old.map(forget)).buffer_unordered(FORGOTTEN_AT_ONCE);
            while let Some(key) = forgotten.next().await {
                value += 1;
                limited.extend(crawl.limited(key?.as_deref().into_iter()));
            }
        }
        // Where fewer URLs are completed now, a limit may not hold any more.
        let limited = Vec::from_iter(limited);
        self.crawls.keep_limits(&crawl, &limited, now).await.map_err(status)?;
        Ok(Response::new(pb::Long { value }))
    }
}

impl UrlFrontierService {
    /// Takes what has come on a stream; an error ends the stream after the acks of what came before it.
    async fn put_items(
        &self,
        items: Vec<Result<pb::UrlItem, Status>>,
    ) -> Vec<Result<pb::AckMessage, Status>> {
        let mut ids = Vec::with_capacity(items.len());
        let mut puts = Vec::with_capacity(items.len());
        let mut broken = None;
        for item in items {
            match item {
                Ok(pb::UrlItem { item, id, creation_date: _ }) => {
                    let put = Put::of_item(item);
                    let url = || put.as_ref().map_or_else(String::new, |put| put.info.url.clone());
                    ids.push(if id.is_empty() { url() } else { id });
                    puts.push(put);
                }
                Err(status) => {
                    broken = Some(Err(status));
                    break;
                }
            }
        }
        let acks = ids.into_iter().zip(self.put(puts).await);
        acks.map(|(id, status)| Ok(pb::AckMessage { id, status: status.into() })).chain(broken).collect()
    }

    /// The same for batches, as many in one step as one large one would be.
    async fn put_batches(
        &self,
        batches: Vec<Result<pb::DiscoveredBatch, Status>>,
    ) -> Vec<Result<pb::BatchAck, Status>> {
        let mut acks = Vec::with_capacity(batches.len());
        let mut together = Together::default();
        for batch in batches {
            match batch.and_then(within_bounds) {
                Ok(batch) => {
                    let bytes = batch.encoded_len();
                    if !together.has_room(batch.items.len(), bytes) {
                        acks.extend(self.put_together(std::mem::take(&mut together)).await);
                    }
                    together.add(batch, bytes);
                }
                Err(status) => {
                    acks.extend(self.put_together(together).await);
                    acks.push(Err(status));
                    return acks;
                }
            }
        }
        acks.extend(self.put_together(together).await);
        acks
    }

    async fn put_together(&self, together: Together) -> impl Iterator<Item = Result<pb::BatchAck, Status>> {
        let mut statuses = self.put(together.puts).await.into_iter().map(i32::from);
        together.batches.into_iter().map(move |(id, urls)| {
            let statuses = statuses.by_ref().take(urls).collect();
            Ok(pb::BatchAck { id, statuses })
        })
    }
}

/// Batches that are one step of the store.
#[derive(Default)]
struct Together {
    /// Their ids, and how many URLs each has.
    batches: Vec<(String, usize)>,
    puts: Vec<Option<Put>>,
    bytes: usize,
}

impl Together {
    /// More would be a long step for others who wait, or more than a store behind this one takes at once.
    const URLS_MAX: usize = 8192;
    const BYTES_MAX: usize = 1 << 20;

    fn has_room(&self, urls: usize, bytes: usize) -> bool {
        self.batches.is_empty()
            || self.puts.len() + urls <= Self::URLS_MAX && self.bytes + bytes <= Self::BYTES_MAX
    }

    fn add(&mut self, batch: pb::DiscoveredBatch, bytes: usize) {
        let pb::DiscoveredBatch { id, items } = batch;
        self.batches.push((id, items.len()));
        self.bytes += bytes;
        self.puts.extend(items.into_iter().map(|info| Some(Put { info, known: None })));
    }
}

fn within_bounds(batch: pb::DiscoveredBatch) -> Result<pb::DiscoveredBatch, Status> {
    let urls = batch.items.len();
    if urls <= BATCH_MAX {
        return Ok(batch);
    }
    Err(Status::invalid_argument(format!(
        "the batch has {urls} URLs, and at most {BATCH_MAX} are taken at once; nothing of it was done: send it in parts"
    )))
}
