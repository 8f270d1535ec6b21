//! The crawl: one loop that claims, lets fetch, and settles.
//!
//! All policy is in the chains, which run in tasks of their own, one a visit. The loop alone talks to the frontier, in batches. How it obeys
//! orders is in `obedience.rs`, what it does while the store is away in `patience.rs`, and when it is over in `crawl_end.rs`.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use trapline_core::Timestamp;
use trapline_frontier::{
    Answer, Claimed, Ear, Frontier, LeaseId, NoteWrite, Outcome, Settled, Settlement, StoreError, Want,
};

use crate::candidate::{CandidateChain, Scope, seed_notes};
use crate::crawl_builder::CrawlBuilder;
use crate::crawl_end::{CrawlEnd, unharmed};
use crate::flights::{Flights, Landed};
use crate::handle::{CrawlHandle, Haste, Order};
use crate::options::CrawlOptions;
use crate::parts::Parts;
use crate::patience::{GRACE, Halt};
use crate::ports::{Output, OutputError, Results, SettledVisit, World};
use crate::strategies::{self, Strategies, StrategyError};
use crate::tally::Tally;

/// At most so many visits are settled in one step.
const BATCH_MAX: usize = 1000;

/// While so many are in flight, those that land within this time are settled together: each step of the store has its price, and
/// nobody waits for it.
const CROWD: usize = 32;
const TOGETHER: Duration = Duration::from_millis(3);

/// How long the loop waits at most before it looks whether others have brought something.
const LOOK: Duration = Duration::from_secs(1);

/// A crawl that is ready to run. Made by [`Crawl::builder`].
pub struct Crawl {
    pub(crate) frontier: Frontier,
    pub(crate) world: Arc<dyn World>,
    pub(crate) output: Arc<dyn Output>,
    pub(crate) options: CrawlOptions,
    pub(crate) parts: Parts,
    pub(crate) scope: Arc<Scope>,
    pub(crate) candidates: Arc<CandidateChain>,
    pub(crate) strategies: Arc<Strategies>,
    pub(crate) flights: Flights,
    pub(crate) handle: CrawlHandle,
    pub(crate) orders: mpsc::Receiver<Order>,
    /// Orders that were heard while the store was asked, and have not been obeyed yet.
    pub(crate) held: VecDeque<Order>,
    /// How soon it is to stop.
    pub(crate) haste: watch::Receiver<Haste>,
    /// Since when the store is away.
    pub(crate) away: Option<Timestamp>,
    /// Who waits for a pause.
    pub(crate) pausing: Vec<oneshot::Sender<Result<(), String>>>,
    /// Seeds may still come.
    pub(crate) seeding: bool,
    pub(crate) stopping: bool,
    pub(crate) begun: Timestamp,
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
    /// The strategy does not do for it.
    #[error(transparent)]
    Strategy(#[from] StrategyError),
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
        // Here nobody is patient: who begins on a store that is away wants to know it.
        let ear = self.frontier.ear().await?;
        match self.work(ear).await {
            Ok(end) => Ok(end),
            Err(Halt::Failed(error)) => Err(error),
            Err(Halt::Aborted) => {
                tracing::warn!(
                    "stopped without the store: what was in flight comes back when its leases end"
                );
                Ok(CrawlEnd::Stopped)
            }
        }
    }

    /// The loop.
    async fn work(&mut self, mut ear: Option<Box<dyn Ear>>) -> Result<CrawlEnd, Halt> {
        self.begun = self.now().await?;
        let scope = Arc::clone(&self.scope);
        self.patiently("read the seeds", async |frontier, now| {
            seed_notes::load(frontier, now, &scope.seeds).await
        })
        .await?;
        let report = self.patiently("look", async |frontier, now| frontier.report(now).await).await?;
        if let Err(error) = strategies::check_order(self.strategies.usual(), report.settings.order) {
            return Err(Halt::Failed(error.into()));
        }
        loop {
            self.obey_orders().await?;
            self.settle_what_landed().await?;
            self.acknowledge_pause();
            self.renew_leases().await?;
            let claimed = self.claim_and_start().await?;
            if let Some(end) = self.end(&claimed).await? {
                let words = unharmed(|| self.strategies.usual().last_words(&self.tally()));
                self.tally().last_words = words;
                self.patiently("flush", async |frontier, _| frontier.flush().await).await?;
                return Ok(end);
            }
            self.wait(&claimed, &mut ear).await?;
        }
    }

    /// Takes as many URLs as there is room for, and begins to fetch them.
    async fn claim_and_start(&mut self) -> Result<Claimed, Halt> {
        let now = self.now().await?;
        let is_over = self.stopping || self.limit_reached(now).is_some();
        if is_over && self.parts.hold.is_on() {
            self.parts.hold.give_up();
        }
        if self.flights.is_empty() {
            // Nobody is left who would find out that the archive is well again.
            self.parts.hold.forget();
        }
        let room = self.room();
        if is_over || room == 0 || self.parts.hold.is_on() {
            return Ok(Claimed::default());
        }
        let want = Want { lease: Some(self.options.lease), ..Want::urls(room) };
        let mut claimed =
            self.patiently("claim", async |frontier, now| frontier.claim(now, want.clone()).await).await?;
        let is_to_pause = self.held.iter().any(|order| matches!(order, Order::Pause(_)));
        if !claimed.leases.is_empty() && self.parts.gate.is_closed() && !is_to_pause {
            // A paused crawl gives nothing: somebody else has resumed it.
            self.go_on();
        }
        let now = self.now().await?;
        for lease in claimed.leases.drain(..) {
            self.flights.start(lease, now);
        }
        let in_flight = self.flights.len();
        let mut tally = self.tally();
        tally.in_flight = in_flight;
        tally.next = claimed.next.filter(|_| in_flight == 0);
        drop(tally);
        Ok(claimed)
    }

    /// Settles visits that have ended, all that are there in one step.
    async fn settle_what_landed(&mut self) -> Result<(), Halt> {
        loop {
            let landed = self.flights.landed(BATCH_MAX);
            if landed.is_empty() {
                return Ok(());
            }
            self.settle(landed).await?;
            if self.is_aborted() {
                return Ok(());
            }
        }
    }

    async fn settle(&mut self, landed: Vec<Landed>) -> Result<(), Halt> {
        let mut batch = Vec::with_capacity(landed.len());
        let mut results = Vec::with_capacity(landed.len());
        let mut fetched = Vec::with_capacity(landed.len());
        let mut sites = Vec::new();
        for landed in landed {
            let mut settlement = landed.settlement;
            if let Some(site) = landed.site {
                // As it is now: other visits of the site may have changed it since.
                settlement.notes.push(site.note());
                // Until the store has it, nobody asks the store for it.
                sites.push(site);
            }
            batch.push(settlement);
            results.push(landed.results);
            fetched.push((landed.request, landed.key));
        }
        let Some(notes) = self.tell(&batch, &results).await? else {
            return self.release(batch).await;
        };
        for (settlement, note) in batch.iter_mut().zip(notes) {
            settlement.notes.push(note);
        }
        let settled =
            self.patiently("settle", async |frontier, now| frontier.settle(now, batch.clone()).await).await?;
        drop(sites);
        let visits = batch.iter().zip(&settled).zip(&results).zip(&fetched);
        let visits = visits.filter(|(((_, settled), _), _)| settled.answer != Answer::Stale);
        let visits: Vec<_> = visits
            .map(|(((settlement, _), results), (request, key))| SettledVisit {
                request,
                key,
                outcome: &settlement.outcome,
                results,
            })
            .collect();
        self.output.settled(self.world.now(), &visits);
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
    /// settled nor of what is in flight. None if it takes too long for somebody who wants to stop now.
    async fn tell(
        &mut self,
        batch: &[Settlement],
        results: &[Results],
    ) -> Result<Option<Vec<NoteWrite>>, Halt> {
        let output = Arc::clone(&self.output);
        let mut telling = output.write(results);
        loop {
            // Who is to stop now is heard before anything is renewed once more, however short leases are.
            let a_while = if self.is_aborted() { 2 * GRACE } else { self.options.lease / 8 };
            let a_while = self.world.sleep_until(self.world.now() + a_while);
            let told = async {
                tokio::select! {
                    biased;
                    notes = &mut telling => Some(notes),
                    () = a_while => None,
                }
            };
            match self.hearing(told, None).await {
                Ok(Some(notes)) => return Ok(Some(notes?)),
                Ok(None) => {}
                Err(Halt::Aborted) if self.away.is_none() => return Ok(None),
                Err(halt) => return Err(halt),
            }
            self.renew(batch.iter().map(|settlement| settlement.lease)).await?;
            self.renew_leases().await?;
        }
    }

    async fn renew(&mut self, leases: impl Iterator<Item = LeaseId>) -> Result<Vec<Settled>, Halt> {
        let lease = self.options.lease;
        let batch: Vec<_> = leases.map(|id| Settlement::new(id, Outcome::Renew { lease })).collect();
        self.patiently("renew", async |frontier, now| frontier.settle(now, batch.clone()).await).await
    }

    /// Leases of fetches that take long are renewed; where that fails, somebody else has the URL, and the fetch is aborted.
    async fn renew_leases(&mut self) -> Result<(), Halt> {
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

    /// Waits for whatever comes first: a visit that ends, an order, a queue that may be asked again, news of others.
    async fn wait(&mut self, claimed: &Claimed, ear: &mut Option<Box<dyn Ear>>) -> Result<(), Halt> {
        let now = self.now().await?;
        if !self.held.is_empty() || self.is_aborted() {
            return Ok(());
        }
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
            Ok(()) = self.haste.changed() => self.hurry(),
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

    pub(crate) fn tally(&self) -> MutexGuard<'_, Tally> {
        self.handle.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
