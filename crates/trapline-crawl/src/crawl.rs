//! The crawl: one loop that claims, lets fetch, and settles.
//!
//! All policy is in the chains, which run in tasks of their own, one a visit. The loop alone talks to the frontier, in batches.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use trapline_core::{Candidate, Timestamp};
use trapline_frontier::{
    Admission, Answer, Claimed, CrawlChange, CrawlState, Ear, ErrorKind, Frontier, LeaseId, NoteWrite,
    Outcome, Refusal, Settled, Settlement, StoreError, Want,
};

use crate::candidate::{CandidateChain, Prospect, Scope, seed_notes};
use crate::crawl_builder::CrawlBuilder;
use crate::flights::{Flights, Landed};
use crate::gate::Gate;
use crate::handle::{CrawlHandle, Order};
use crate::line::SkippedLine;
use crate::options::CrawlOptions;
use crate::ports::{Output, OutputError, Results, Robots, World};
use crate::tally::Tally;

/// At most so many visits are settled in one step.
const BATCH_MAX: usize = 1000;

/// While so many are in flight, those that land within this time are settled together: each step of the store has its price, and
/// nobody waits for it.
const CROWD: usize = 32;
const TOGETHER: Duration = Duration::from_millis(3);

/// How long the loop waits at most before it looks whether others have brought something.
const LOOK: Duration = Duration::from_secs(1);

/// How long a store that is away is left alone, at first and at most.
const STORE_WAIT: Duration = Duration::from_millis(200);
const STORE_WAIT_MAX: Duration = Duration::from_secs(10);

/// A crawl that is ready to run. Made by [`Crawl::builder`].
pub struct Crawl {
    pub(crate) frontier: Frontier,
    pub(crate) world: Arc<dyn World>,
    pub(crate) output: Arc<dyn Output>,
    pub(crate) options: CrawlOptions,
    pub(crate) robots: Option<Arc<dyn Robots>>,
    pub(crate) scope: Arc<Scope>,
    pub(crate) candidates: Arc<CandidateChain>,
    pub(crate) flights: Flights,
    pub(crate) handle: CrawlHandle,
    pub(crate) orders: mpsc::Receiver<Order>,
    pub(crate) gate: Arc<Gate>,
    /// Who waits for a pause.
    pub(crate) pausing: Vec<oneshot::Sender<Result<(), String>>>,
    /// Seeds may still come.
    pub(crate) seeding: bool,
    pub(crate) stopping: bool,
    pub(crate) begun: Timestamp,
}

/// Why a crawl has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrawlEnd {
    /// There is nothing left to do.
    Exhausted,
    /// The frontier's crawl was finished, by hand or by a limit of its own.
    Finished,
    /// So many pages are done as were wanted.
    MaxPages,
    /// So many bytes have come.
    MaxBytes,
    /// So much time has passed.
    MaxTime,
    /// Somebody stopped it.
    Stopped,
}

/// Why a crawl cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum CrawlError {
    /// The frontier cannot.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The results cannot be kept.
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl Crawl {
    /// Begins to make a crawl on a frontier. [`CrawlBuilder`] has an example.
    pub fn builder(frontier: Frontier, world: Arc<dyn World>) -> CrawlBuilder {
        CrawlBuilder::new(frontier, world)
    }

    /// What others need to steer and watch it.
    pub fn handle(&self) -> CrawlHandle {
        self.handle.clone()
    }

    /// Crawls until there is nothing left to do, a limit is reached, or somebody stops it.
    pub async fn run(mut self) -> Result<CrawlEnd, CrawlError> {
        let mut ear = self.frontier.ear().await?;
        self.begun = self.now().await?;
        seed_notes::load(&self.frontier, self.begun, &self.scope.seeds).await?;
        loop {
            self.obey_orders().await?;
            self.settle_what_landed().await?;
            self.acknowledge_pause();
            self.renew_leases().await?;
            let claimed = self.claim_and_start().await?;
            if let Some(end) = self.end(&claimed).await? {
                self.frontier.flush().await?;
                return Ok(end);
            }
            self.wait(&claimed, &mut ear).await?;
        }
    }

    /// Takes as many URLs as there is room for, and begins to fetch them.
    async fn claim_and_start(&mut self) -> Result<Claimed, CrawlError> {
        let room = self.room();
        if self.stopping || room == 0 || self.limit_reached(self.now().await?).is_some() {
            return Ok(Claimed::default());
        }
        let want = Want { lease: Some(self.options.lease), ..Want::urls(room) };
        let mut claimed =
            self.patiently("claim", async |frontier, now| frontier.claim(now, want.clone()).await).await?;
        if !claimed.leases.is_empty() && self.gate.is_closed() {
            // A paused crawl gives nothing: somebody else has resumed it.
            self.go_on();
        }
        let now = self.now().await?;
        for lease in claimed.leases.drain(..) {
            self.flights.start(lease, now);
        }
        self.tally().in_flight = self.flights.len();
        Ok(claimed)
    }

    /// Settles visits that have ended, all that are there in one step.
    async fn settle_what_landed(&mut self) -> Result<(), CrawlError> {
        loop {
            let landed = self.flights.landed(BATCH_MAX);
            if landed.is_empty() {
                return Ok(());
            }
            self.settle(landed).await?;
        }
    }

    async fn settle(&mut self, landed: Vec<Landed>) -> Result<(), CrawlError> {
        let (mut batch, results): (Vec<Settlement>, Vec<Results>) =
            landed.into_iter().map(|landed| (landed.settlement, landed.results)).unzip();
        let notes = self.tell(&batch, &results).await?;
        for (settlement, note) in batch.iter_mut().zip(notes) {
            settlement.notes.push(note);
        }
        let settled =
            self.patiently("settle", async |frontier, now| frontier.settle(now, batch.clone()).await).await?;
        let mut tally = self.tally();
        for ((settlement, settled), results) in batch.iter().zip(settled).zip(&results) {
            tracing::debug!(
                lease = settlement.lease.0,
                url = results.page.as_ref().map(|page| &*page.url),
                status = results.page.as_ref().and_then(|page| page.status),
                links = settlement.links.len(),
                answer = %settled.answer,
                "settled"
            );
            if settled.answer == Answer::Stale {
                tally.stale += 1;
                continue;
            }
            tally.count(&settlement.outcome, results);
            tally.links(&settled.links);
        }
        tally.in_flight = self.flights.len();
        Ok(())
    }

    /// Hands results to whoever wants them. If that takes long, no lease is lost over it: neither of what is about to be
    /// settled nor of what is in flight.
    async fn tell(
        &mut self,
        batch: &[Settlement],
        results: &[Results],
    ) -> Result<Vec<NoteWrite>, CrawlError> {
        let output = Arc::clone(&self.output);
        let mut telling = output.write(results);
        loop {
            tokio::select! {
                biased;
                notes = &mut telling => return Ok(notes?),
                () = self.world.sleep_until(self.world.now() + self.options.lease / 8) => {}
            }
            self.renew(batch.iter().map(|settlement| settlement.lease)).await?;
            self.renew_leases().await?;
        }
    }

    async fn renew(&self, leases: impl Iterator<Item = LeaseId>) -> Result<Vec<Settled>, CrawlError> {
        let lease = self.options.lease;
        let batch: Vec<_> = leases.map(|id| Settlement::new(id, Outcome::Renew { lease })).collect();
        self.patiently("renew", async |frontier, now| frontier.settle(now, batch.clone()).await).await
    }

    /// Leases of fetches that take long are renewed; where that fails, somebody else has the URL, and the fetch is aborted.
    async fn renew_leases(&mut self) -> Result<(), CrawlError> {
        let now = self.now().await?;
        let lease = self.options.lease;
        let due = self.flights.due_for_renewal(now, lease);
        if due.is_empty() {
            return Ok(());
        }
        let settled = self.renew(due.iter().copied()).await?;
        for (id, settled) in due.into_iter().zip(settled) {
            if settled.answer == Answer::Renewed {
                self.flights.renewed(id, now + lease);
            } else {
                self.flights.abort(id);
                self.tally().stale += 1;
            }
        }
        Ok(())
    }

    async fn obey_orders(&mut self) -> Result<(), CrawlError> {
        while let Ok(order) = self.orders.try_recv() {
            self.obey(order).await?;
        }
        Ok(())
    }

    async fn obey(&mut self, order: Order) -> Result<(), CrawlError> {
        match order {
            Order::Seeds(seeds, answer) => {
                let admissions = self.admit(seeds).await?;
                // Nobody may be waiting for it.
                let _ = answer.send(admissions);
            }
            Order::SeedsEnd => self.seeding = false,
            Order::Pause(answer) => {
                // Those who have a lease, but have not asked yet, give it back.
                self.gate.close();
                match self.steer(CrawlChange::Pause).await {
                    Ok(()) => self.pausing.push(answer),
                    Err(error) => {
                        self.gate.open();
                        drop(answer.send(Err(error.to_string())));
                    }
                }
            }
            Order::Resume(answer) => {
                let resumed = self.steer(CrawlChange::Resume).await;
                self.go_on();
                let _ = answer.send(resumed.map_err(|error| error.to_string()));
            }
            Order::Stop => self.stopping = true,
            Order::Abort => {
                self.stopping = true;
                let now = self.now().await?;
                let mut batch = Vec::new();
                for (id, request) in self.flights.abort_all() {
                    // Their hosts were asked, if in vain: who comes next leaves them alone for a while.
                    let delay = self.options.wait_after(self.robots.as_deref(), now, &request).await;
                    batch.push(Settlement { delay: Some(delay), ..Settlement::new(id, Outcome::Release) });
                }
                if !batch.is_empty() {
                    self.frontier.settle(now, batch).await?;
                }
            }
        }
        Ok(())
    }

    async fn steer(&self, change: CrawlChange) -> Result<(), CrawlError> {
        let now = self.now().await?;
        Ok(self.frontier.steer_crawl(now, change).await.map(drop)?)
    }

    /// The crawl is not paused, or no longer. Who waits for a pause waits in vain.
    fn go_on(&mut self) {
        self.gate.open();
        for answer in self.pausing.drain(..) {
            let _ = answer.send(Err("the crawl was resumed before all had landed".to_owned()));
        }
    }

    /// Who wanted a pause is told when nothing is in flight any more.
    fn acknowledge_pause(&mut self) {
        if self.flights.is_empty() {
            for answer in self.pausing.drain(..) {
                let _ = answer.send(Ok(()));
            }
        }
    }

    /// Seeds go through the candidate chain like everything else, and make the scope.
    async fn admit(
        &mut self,
        seeds: Vec<Prospect>,
    ) -> Result<Vec<Result<Admission, SkippedLine>>, CrawlError> {
        let mut considered: Vec<Result<Candidate, SkippedLine>> = Vec::with_capacity(seeds.len());
        let mut places = Vec::new();
        for seed in seeds {
            let url = seed.url.clone();
            let candidate = self.consider_seed(seed);
            if candidate.is_ok() {
                places.extend(self.scope.seeds.add(&url));
            }
            considered.push(candidate);
        }
        if !places.is_empty() {
            let note = CrawlChange::Note(seed_notes::note(&places));
            self.patiently("note seeds", async |frontier, now| frontier.steer_crawl(now, note.clone()).await)
                .await?;
        }
        let batch: Vec<_> =
            considered.iter().filter_map(|candidate| candidate.as_ref().ok().cloned()).collect();
        let mut admitted = self
            .patiently("admit", async |frontier, now| frontier.admit_candidates(now, &batch).await)
            .await?
            .into_iter();
        let skipped: Vec<_> =
            considered.iter().filter_map(|candidate| candidate.as_ref().err().cloned()).collect();
        if !skipped.is_empty() {
            // What was told counts, although there is no settlement to say so.
            for note in self.output.write(&[Results { page: None, skipped }]).await? {
                let note = CrawlChange::Note(note);
                self.patiently("note results", async |frontier, now| {
                    frontier.steer_crawl(now, note.clone()).await
                })
                .await?;
            }
        }
        let answers = considered.into_iter().map(|candidate| {
            candidate.map(|_| admitted.next().unwrap_or(Admission::Refused(Refusal::Malformed)))
        });
        let answers: Vec<_> = answers.collect();
        let mut tally = self.tally();
        tally.seeds += answers.iter().filter(|answer| matches!(answer, Ok(Admission::Added))).count() as u64;
        drop(tally);
        Ok(answers)
    }

    /// A rule that panics costs the seed, not the crawl.
    fn consider_seed(&self, seed: Prospect) -> Result<Candidate, SkippedLine> {
        let (url, depth) = (seed.request.url.clone(), seed.request.depth);
        let considered = catch_unwind(AssertUnwindSafe(|| self.candidates.consider(seed)));
        considered.unwrap_or_else(|_| {
            let detail = Some("a rule of the candidate chain panicked".to_owned());
            Err(SkippedLine { url, reason: "panic".to_owned(), detail, via: None, depth })
        })
    }

    /// How many more fetches may begin.
    fn room(&self) -> usize {
        let limit = self.handle.concurrency.load(Ordering::Relaxed);
        let room = limit.saturating_sub(self.flights.len());
        match self.options.max_pages {
            None => room,
            Some(most) => {
                let left = most.saturating_sub(self.tally().pages_ever());
                let left = usize::try_from(left).unwrap_or(usize::MAX);
                room.min(left.saturating_sub(self.flights.len()))
            }
        }
    }

    fn limit_reached(&self, now: Timestamp) -> Option<CrawlEnd> {
        let tally = self.tally();
        if self.options.max_pages.is_some_and(|most| tally.pages_ever() >= most) {
            Some(CrawlEnd::MaxPages)
        } else if self.options.max_bytes.is_some_and(|most| tally.bytes_ever() >= most) {
            Some(CrawlEnd::MaxBytes)
        } else if self.options.max_time.is_some_and(|most| now.since(self.begun) >= most) {
            Some(CrawlEnd::MaxTime)
        } else {
            None
        }
    }

    /// Whether that was all.
    async fn end(&self, claimed: &Claimed) -> Result<Option<CrawlEnd>, CrawlError> {
        if !self.flights.is_empty() {
            return Ok(None);
        }
        if self.stopping {
            return Ok(Some(CrawlEnd::Stopped));
        }
        let now = self.now().await?;
        if let Some(limit) = self.limit_reached(now) {
            return Ok(Some(limit));
        }
        let idle = claimed.exhausted && !self.seeding && self.options.end_when_exhausted;
        if !idle {
            return Ok(None);
        }
        let finished = matches!(self.frontier.report(now).await?.state, CrawlState::Finished(_));
        Ok(Some(if finished { CrawlEnd::Finished } else { CrawlEnd::Exhausted }))
    }

    /// Waits for whatever comes first: a visit that ends, an order, a queue that may be asked again, news of others.
    async fn wait(&mut self, claimed: &Claimed, ear: &mut Option<Box<dyn Ear>>) -> Result<(), CrawlError> {
        let now = self.now().await?;
        let look = now + LOOK.min(self.options.lease / 4);
        let until = if self.room() == 0 { look } else { claimed.next.map_or(look, |next| next.min(look)) };
        // The world's clock may be another than the store's: what counts is how long.
        let at_most = until.since(now).max(Duration::from_millis(1));
        let wake = self.world.sleep_until(self.world.now() + at_most);
        let listens = !self.stopping;
        let heard = async {
            match ear {
                Some(ear) if listens => drop(ear.wait(at_most).await),
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            order = self.orders.recv() => {
                if let Some(order) = order {
                    self.obey(order).await?;
                }
            }
            () = self.flights.landing() => {
                if self.flights.len() >= CROWD {
                    self.world.sleep_until(self.world.now() + TOGETHER).await;
                }
            }
            () = heard => {}
            () = wake => {}
        }
        Ok(())
    }

    /// Asks the store, again and again if it is away: it may come back, and until then nothing is lost.
    async fn patiently<T>(
        &self,
        attempted: &str,
        ask: impl AsyncFn(&Frontier, Timestamp) -> Result<T, StoreError>,
    ) -> Result<T, CrawlError> {
        let mut wait = STORE_WAIT;
        loop {
            let error = match self.now().await {
                Ok(now) => match ask(&self.frontier, now).await {
                    Ok(answer) => return Ok(answer),
                    Err(error) => error,
                },
                Err(CrawlError::Store(error)) => error,
                Err(error) => return Err(error),
            };
            if error.kind() != ErrorKind::Unavailable {
                return Err(error.into());
            }
            tracing::warn!(%error, attempted, "the store is away");
            self.tally().trouble = Some(format!("cannot {attempted}, trying again: {error}"));
            self.world.sleep_until(self.world.now() + wait).await;
            wait = (wait * 2).min(STORE_WAIT_MAX);
        }
    }

    /// What time it is: the store's, if it has a clock that all follow.
    async fn now(&self) -> Result<Timestamp, CrawlError> {
        Ok(self.frontier.now().await?.unwrap_or_else(|| self.world.now()))
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.handle.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
