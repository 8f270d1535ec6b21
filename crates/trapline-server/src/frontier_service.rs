//! The frontier for any language: `trapline.v1.Frontier`, each call one verb of the store.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{Stream, StreamExt};
use prost::Message;
use tonic::{Request, Response, Status, Streaming};
use trapline_core::{Preparer, Timestamp};
use trapline_frontier::{Claimed, CrawlState, Lease, Outcome, Query, Rows, Scan, Settlement, Store, Want};

use crate::Clock;
use crate::crawl_name;
use crate::proto::v1;
use crate::wire::{candidate, claim, error, rows, scan, settle, stats, steer};
use v1::frontier_server::Frontier;

/// A claim waits no longer than this, whatever it asks for.
const WAIT_MAX: Duration = Duration::from_secs(600);

/// Where nothing tells that something became eligible, a claim that waits looks again after this.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// So many candidates, settlements with their links, or leases at most in one batch.
pub(crate) const BATCH_MAX: usize = 100_000;

/// So many rows at most on one page.
const ROWS_MAX: usize = 10_000;

/// Clients in most languages take messages of 4 MiB unless they are told otherwise.
const ANSWER_BYTES: usize = 3 << 20;

/// The answers of a stream, as they come.
type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Serves a store.
#[derive(Clone)]
pub struct FrontierService {
    store: Arc<dyn Store>,
    clock: Clock,
}

impl FrontierService {
    /// Serves this store by this clock.
    pub fn new(store: Arc<dyn Store>, clock: Clock) -> Self {
        Self { store, clock }
    }

    /// The crawl's preparer, if it is needed. It is asked for each time: the crawl's name may have come to mean another one, which has
    /// another key.
    async fn preparer(&self, needed: bool, crawl: &str, now: Timestamp) -> Result<Option<Preparer>, Status> {
        if !needed {
            return Ok(None);
        }
        let page = self.store.scan(crawl, now, &Scan::new(Query::Crawl)).await;
        match page.map_err(|error| error::status(&error))?.rows {
            Rows::Crawl(report) => Ok(Some(Preparer::new(report.key))),
            _ => Err(Status::internal("the store answered a scan with rows of another kind")),
        }
    }

    async fn admitted(&self, request: v1::AdmitRequest) -> Result<v1::AdmitResponse, Status> {
        let v1::AdmitRequest { crawl, candidates, now_ms } = request;
        within("candidates", candidates.len())?;
        let now = self.clock.of_call(now_ms);
        let preparer = self.preparer(candidates.iter().any(candidate::is_bare), &crawl, now).await?;
        let mut batch = Vec::with_capacity(candidates.len());
        let mut well_formed = Vec::with_capacity(candidates.len());
        for (number, given) in candidates.into_iter().enumerate() {
            let read = candidate::read(given, preparer.as_ref());
            let read = read.map_err(|unreadable| unreadable.of("candidate", number))?;
            well_formed.push(read.is_some());
            batch.extend(read);
        }
        let admitted = self.store.admit(&crawl, now, &batch).await.map_err(|error| error::status(&error))?;
        Ok(v1::AdmitResponse { admissions: settle::with_refused(&well_formed, &admitted) })
    }

    async fn settled(&self, request: v1::SettleRequest) -> Result<v1::SettleResponse, Status> {
        let v1::SettleRequest { crawl, settlements, now_ms } = request;
        let links = || settlements.iter().flat_map(|settlement| &settlement.links);
        within("settlements and links", settlements.len() + links().count())?;
        let now = self.clock.of_call(now_ms);
        let preparer = self.preparer(links().any(candidate::is_bare), &crawl, now).await?;
        let mut batch = Vec::with_capacity(settlements.len());
        let mut well_formed = Vec::with_capacity(settlements.len());
        for (number, given) in settlements.into_iter().enumerate() {
            let read = settle::read(given, preparer.as_ref());
            let (settlement, links) = read.map_err(|unreadable| unreadable.of("settlement", number))?.parts();
            batch.push(settlement);
            well_formed.push(links);
        }
        let settled = self.store.settle(&crawl, now, batch).await.map_err(|error| error::status(&error))?;
        let settled = settled.iter().zip(&well_formed);
        Ok(v1::SettleResponse {
            settled: settled.map(|(settled, links)| settle::write_settled(settled, links)).collect(),
        })
    }

    async fn claimed(&self, crawl: Option<&str>, now: Timestamp, want: &Want) -> Result<Claimed, Status> {
        self.store.claim(crawl, now, want).await.map_err(|error| error::status(&error))
    }

    async fn is_finished(&self, crawl: &str, now: Timestamp) -> Result<bool, Status> {
        let page = self.store.scan(crawl, now, &Scan::new(Query::Crawl)).await;
        let page = page.map_err(|error| error::status(&error))?;
        Ok(matches!(&page.rows, Rows::Crawl(report) if matches!(report.state, CrawlState::Finished(_))))
    }

    /// Gives leases back that nobody hears of.
    async fn release(&self, now: Timestamp, leases: Vec<Lease>) -> Result<(), Status> {
        let mut of_crawls: BTreeMap<Arc<str>, Vec<Settlement>> = BTreeMap::new();
        for lease in leases {
            let released = Settlement::new(lease.id, Outcome::Release);
            of_crawls.entry(lease.crawl).or_default().push(released);
        }
        for (crawl, released) in of_crawls {
            self.store.settle(&crawl, now, released).await.map_err(|error| error::status(&error))?;
        }
        Ok(())
    }

    /// Claims again and again until something comes, or the time is over.
    async fn claimed_in_time(
        &self,
        crawl: Option<&str>,
        now_ms: Option<u64>,
        want: &Want,
        wait: Duration,
    ) -> Result<Claimed, Status> {
        let over = tokio::time::Instant::now() + wait.min(WAIT_MAX);
        loop {
            // Had before the claim, so that nothing is missed that comes between the two.
            let ear = match crawl {
                Some(crawl) => self.store.ear(crawl).await.map_err(|error| error::status(&error))?,
                None => None,
            };
            let now = self.clock.of_call(now_ms);
            let claimed = self.claimed(crawl, now, want).await?;
            let left = over.saturating_duration_since(tokio::time::Instant::now());
            if !claimed.leases.is_empty() || left.is_zero() || want.urls == 0 {
                return Ok(claimed);
            }
            // Nothing will come any more.
            if let Some(crawl) = crawl
                && self.is_finished(crawl, now).await?
            {
                return Ok(claimed);
            }
            let next = claimed.next.map(|next| next.since(now).max(Duration::from_millis(1)));
            match ear {
                Some(mut ear) => {
                    ear.wait(next.map_or(left, |next| next.min(left))).await;
                }
                None => {
                    tokio::time::sleep(next.map_or(LOOK_AGAIN, |next| next.min(LOOK_AGAIN)).min(left)).await;
                }
            }
        }
    }
}

/// How many of the first ones go into one answer: one at least.
fn fitting(bytes: impl Iterator<Item = usize>) -> usize {
    let mut sum = 0;
    let fits = |bytes: &usize| {
        sum += bytes;
        sum <= ANSWER_BYTES
    };
    bytes.take_while(fits).count().max(1)
}

/// One call is bounded: a flood of small things costs more than its bytes.
fn within(what: &str, number: usize) -> Result<(), Status> {
    if number <= BATCH_MAX {
        return Ok(());
    }
    Err(Status::invalid_argument(format!(
        "the batch has {number} {what}, and at most {BATCH_MAX} are taken at once; nothing was done: send it in parts"
    )))
}

/// One answer for each request, in their order; the next one is read when the one before has been answered, so that they are
/// applied in their order too. Who wants more at once opens more streams: the store syncs for all of them together.
fn answers<I, O, F>(requests: Streaming<I>, answer: impl Fn(I) -> F + Send + 'static) -> Answers<O>
where
    I: Send + 'static,
    O: Send + 'static,
    F: Future<Output = Result<O, Status>> + Send + 'static,
{
    Box::pin(requests.then(move |request| {
        let answer = request.map(&answer);
        async move { answer?.await }
    }))
}

#[tonic::async_trait]
impl Frontier for FrontierService {
    async fn admit(&self, request: Request<v1::AdmitRequest>) -> Result<Response<v1::AdmitResponse>, Status> {
        self.admitted(request.into_inner()).await.map(Response::new)
    }

    type AdmitStreamStream = Answers<v1::AdmitResponse>;

    async fn admit_stream(
        &self,
        request: Request<Streaming<v1::AdmitRequest>>,
    ) -> Result<Response<Self::AdmitStreamStream>, Status> {
        let service = self.clone();
        Ok(Response::new(answers(request.into_inner(), move |batch| {
            let service = service.clone();
            async move { service.admitted(batch).await }
        })))
    }

    async fn claim(&self, request: Request<v1::ClaimRequest>) -> Result<Response<v1::ClaimResponse>, Status> {
        let mut request = request.into_inner();
        let (crawl, now_ms) = (request.crawl.take(), request.now_ms);
        let wait = Duration::from_millis(request.wait_ms);
        let mut want = claim::read(request);
        want.urls = want.urls.min(BATCH_MAX);
        let mut claimed = self.claimed_in_time(crawl.as_deref(), now_ms, &want, wait).await?;
        let mut answer = claim::write_claimed(&claimed);
        let fitting = fitting(answer.leases.iter().map(Message::encoded_len));
        if fitting < answer.leases.len() {
            answer.leases.truncate(fitting);
            let beyond = claimed.leases.split_off(fitting);
            self.release(self.clock.of_call(now_ms), beyond).await?;
        }
        Ok(Response::new(answer))
    }

    async fn settle(
        &self,
        request: Request<v1::SettleRequest>,
    ) -> Result<Response<v1::SettleResponse>, Status> {
        self.settled(request.into_inner()).await.map(Response::new)
    }

    type SettleStreamStream = Answers<v1::SettleResponse>;

    async fn settle_stream(
        &self,
        request: Request<Streaming<v1::SettleRequest>>,
    ) -> Result<Response<Self::SettleStreamStream>, Status> {
        let service = self.clone();
        Ok(Response::new(answers(request.into_inner(), move |batch| {
            let service = service.clone();
            async move { service.settled(batch).await }
        })))
    }

    async fn steer(&self, request: Request<v1::SteerRequest>) -> Result<Response<v1::SteerResponse>, Status> {
        let v1::SteerRequest { crawl, target, now_ms } = request.into_inner();
        let target = target.ok_or_else(|| {
            Status::invalid_argument(
                "the request lacks what to steer: `queue`, `url`, `urls`, `dead` or `change`",
            )
        })?;
        if steer::creates(&target) {
            crawl_name::check(&crawl).map_err(Status::invalid_argument)?;
        }
        let now = self.clock.of_call(now_ms);
        let preparer = self.preparer(steer::names_url(&target), &crawl, now).await?;
        let act = steer::read(target, preparer.as_ref())?;
        let steered = self.store.steer(&crawl, now, act).await.map_err(|error| error::status(&error))?;
        Ok(Response::new(steer::write_steered(steered)))
    }

    async fn scan(&self, request: Request<v1::ScanRequest>) -> Result<Response<v1::ScanResponse>, Status> {
        let mut request = request.into_inner();
        let crawl = std::mem::take(&mut request.crawl);
        let now = self.clock.of_call(request.now_ms);
        let preparer = self.preparer(scan::names_urls(request.query.as_ref()), &crawl, now).await?;
        let mut scan = scan::read(request, ROWS_MAX, preparer.as_ref())?;
        loop {
            let page = self.store.scan(&crawl, now, &scan).await.map_err(|error| error::status(&error))?;
            let answer = rows::write(&page);
            // What names its rows one by one gets them all.
            if answer.encoded_len() <= ANSWER_BYTES || page.cursor.is_none() || scan.limit <= 1 {
                return Ok(Response::new(answer));
            }
            scan.limit /= 2;
        }
    }

    async fn stats(&self, request: Request<v1::StatsRequest>) -> Result<Response<v1::StatsResponse>, Status> {
        let v1::StatsRequest { crawl, now_ms } = request.into_inner();
        let now = self.clock.of_call(now_ms);
        let counts = self.store.stats(&crawl, now).await.map_err(|error| error::status(&error))?;
        Ok(Response::new(stats::write(&counts)))
    }

    async fn flush(&self, _: Request<v1::FlushRequest>) -> Result<Response<v1::FlushResponse>, Status> {
        self.store.flush().await.map_err(|error| error::status(&error))?;
        Ok(Response::new(v1::FlushResponse {}))
    }

    async fn now(&self, _: Request<v1::NowRequest>) -> Result<Response<v1::NowResponse>, Status> {
        Ok(Response::new(v1::NowResponse { now_ms: self.clock.now().as_millis() }))
    }
}
