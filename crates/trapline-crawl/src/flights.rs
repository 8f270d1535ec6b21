//! Visits under way: each in a task of its own, from its lease to its settlement.
//!
//! A task that panics lands like all others, with a dead letter. One that is aborted never lands.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{AbortHandle, Abortable};
use tokio::sync::mpsc;
use trapline_core::{Request, Timestamp};
use trapline_frontier::{Lease, LeaseId, Outcome, Settlement};

use crate::chain::{Flow, Processors};
use crate::disposition::Disposition;
use crate::fetch::Visit;
use crate::line::SkippedLine;
use crate::ports::{Results, World};
use crate::strategies::SiteMemory;

/// A visit that has ended: what the frontier is told, and everybody else.
pub(crate) struct Landed {
    pub(crate) settlement: Settlement,
    pub(crate) results: Results,
    /// What was fetched, and from which queue.
    pub(crate) request: Arc<Request>,
    pub(crate) key: Arc<str>,
    /// What the strategy remembers of the site, to be kept with the settlement.
    pub(crate) site: Option<Arc<SiteMemory>>,
}

/// The two chains of a visit.
pub(crate) struct Chains {
    pub(crate) fetch: Processors<Visit>,
    pub(crate) disposition: Processors<Disposition>,
}

/// Visits under way.
pub(crate) struct Flights {
    world: Arc<dyn World>,
    chains: Arc<Chains>,
    under_way: BTreeMap<LeaseId, Flight>,
    /// As many as are under way at most, so that it need not be bounded.
    landing: mpsc::UnboundedReceiver<Landed>,
    land: mpsc::UnboundedSender<Landed>,
    /// One that was seen landing while somebody waited.
    next: Option<Landed>,
}

struct Flight {
    key: Arc<str>,
    request: Arc<Request>,
    deadline: Timestamp,
    abort: AbortHandle,
}

impl Flights {
    pub(crate) fn new(world: Arc<dyn World>, chains: Chains) -> Self {
        let (land, landing) = mpsc::unbounded_channel();
        Self { world, chains: Arc::new(chains), under_way: BTreeMap::new(), landing, land, next: None }
    }

    /// Visits that begin from now on go through these chains.
    pub(crate) fn exchange(&mut self, chains: Chains) {
        self.chains = Arc::new(chains);
    }

    pub(crate) fn len(&self) -> usize {
        self.under_way.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Begins a visit.
    pub(crate) fn start(&mut self, lease: Lease, now: Timestamp) {
        let (id, deadline) = (lease.id, lease.deadline);
        let (key, request) = (Arc::clone(&lease.key), Arc::clone(&lease.request));
        let (abort, registration) = AbortHandle::new_pair();
        let (chains, world, land) = (Arc::clone(&self.chains), Arc::clone(&self.world), self.land.clone());
        let flight = async move {
            let landed = fly(&chains, &*world, lease, now).await;
            // The crawl may have ended; then the lease expires by itself.
            let _ = land.send(landed);
        };
        self.under_way.insert(id, Flight { key, request, deadline, abort });
        self.world.spawn(Abortable::new(flight, registration).map(|_| ()).boxed());
    }

    /// Waits until one lands. Safe to give up on.
    pub(crate) async fn landing(&mut self) {
        if self.next.is_none() {
            self.next = self.landing.recv().await;
        }
    }

    /// Those that have landed, so many at most.
    pub(crate) fn landed(&mut self, most: usize) -> Vec<Landed> {
        let mut all = Vec::new();
        while all.len() < most {
            let Some(landed) = self.next.take().or_else(|| self.landing.try_recv().ok()) else { break };
            // What was aborted while it landed is somebody else's by now.
            if self.under_way.remove(&landed.settlement.lease).is_some() {
                all.push(landed);
            }
        }
        all
    }

    /// Those whose lease is half over.
    pub(crate) fn due_for_renewal(&self, now: Timestamp, lease: Duration) -> Vec<LeaseId> {
        let soon = now + lease / 2;
        self.under_way.iter().filter(|(_, flight)| flight.deadline <= soon).map(|(id, _)| *id).collect()
    }

    pub(crate) fn renewed(&mut self, id: LeaseId, deadline: Timestamp) {
        if let Some(flight) = self.under_way.get_mut(&id) {
            flight.deadline = deadline;
        }
    }

    pub(crate) fn abort(&mut self, id: LeaseId) {
        if let Some(flight) = self.under_way.remove(&id) {
            flight.abort.abort();
        }
    }

    /// Aborts them all. Answers what was being fetched under which lease, and from which queue.
    pub(crate) fn abort_all(&mut self) -> Vec<(LeaseId, Arc<str>, Arc<Request>)> {
        let all = std::mem::take(&mut self.under_way).into_iter();
        let aborted = all.map(|(id, flight)| {
            flight.abort.abort();
            (id, flight.key, flight.request)
        });
        aborted.collect()
    }
}

impl Drop for Flights {
    fn drop(&mut self) {
        self.abort_all();
    }
}

/// From a lease to its settlement. A panic on the way costs the URL, not the crawl.
async fn fly(chains: &Chains, world: &dyn World, lease: Lease, now: Timestamp) -> Landed {
    let (id, request, key) = (lease.id, Arc::clone(&lease.request), Arc::clone(&lease.key));
    let place = Mutex::new("");
    let flight = AssertUnwindSafe(through(chains, world, lease, now, &place)).catch_unwind().await;
    let reason = match flight {
        Ok(Some(disposition)) => return disposition.into_landed(),
        Ok(None) => "malformed: the URL cannot be read".to_owned(),
        Err(panic) => {
            let place = *place.lock().unwrap_or_else(PoisonError::into_inner);
            tracing::error!(processor = place, url = request.url, "a processor panicked");
            format!("panic: in the processor `{place}`: {}", words(&*panic))
        }
    };
    let (rule, detail) = reason.split_once(": ").unwrap_or((&reason, ""));
    let skipped = SkippedLine {
        url: request.url.clone(),
        reason: rule.to_owned(),
        detail: Some(detail.to_owned()),
        via: request.via.clone(),
        depth: request.depth,
    };
    let results = Results { page: None, skipped: vec![skipped] };
    Landed { settlement: Settlement::new(id, Outcome::Dead { reason }), results, request, key, site: None }
}

/// Through both chains.
async fn through(
    chains: &Chains,
    world: &dyn World,
    lease: Lease,
    now: Timestamp,
    place: &Mutex<&'static str>,
) -> Option<Disposition> {
    let at = |name: &'static str| *place.lock().unwrap_or_else(PoisonError::into_inner) = name;
    let mut visit = Visit::new(lease, now)?;
    for processor in &chains.fetch {
        at(processor.name());
        if processor.process(&mut visit).await == Flow::End {
            break;
        }
    }
    let mut disposition = Disposition::new(visit, world.now());
    for processor in &chains.disposition {
        at(processor.name());
        if processor.process(&mut disposition).await == Flow::End {
            break;
        }
    }
    Some(disposition)
}

/// What a panic says.
fn words(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a word")
}
