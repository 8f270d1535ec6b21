//! What others hold of a crawl that runs: they may bring seeds, stop it, and look at how it does.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot, watch};
use trapline_frontier::Admission;

use crate::candidate::Prospect;
use crate::line::SkippedLine;
use crate::options::CrawlOptions;
use crate::ports::{Fetch, Robots};
use crate::tally::Tally;

/// What became of seeds, one answer each: the frontier's, or the line that says why it was not asked.
pub type Admissions = Vec<Result<Admission, SkippedLine>>;

/// How many orders may wait to be obeyed.
pub(crate) const ORDERS_MAX: usize = 16;

/// An order to the loop.
pub(crate) enum Order {
    /// Seeds, and who wants to know what became of them.
    Seeds(Vec<Prospect>, oneshot::Sender<Admissions>),
    /// No more seeds will come of themselves: the crawl may end when it is exhausted.
    SeedsEnd,
    /// Fetch nothing until resumed, and say when nothing is in flight any more.
    Pause(oneshot::Sender<Result<(), String>>),
    /// Go on with other options.
    Reload(Box<Reload>, oneshot::Sender<Result<(), String>>),
    /// Fetch again.
    Resume(oneshot::Sender<Result<(), String>>),
}

/// What a crawl goes on with, instead of what it began with.
pub struct Reload {
    /// Its policies.
    pub options: CrawlOptions,
    /// Who gets pages; None leaves it as it is.
    pub fetch: Option<Arc<dyn Fetch>>,
    /// Who knows robots.txt, if anybody; None leaves it as it is.
    pub robots: Option<Option<Arc<dyn Robots>>>,
}

impl Reload {
    /// Other policies, and all else as it is.
    pub fn options(options: CrawlOptions) -> Self {
        Self { options, fetch: None, robots: None }
    }
}

/// How soon a crawl is to stop. Heard at any time, whatever else waits to be obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Haste {
    /// Not at all.
    None,
    /// Once what is in flight has landed.
    Stop,
    /// Now.
    Abort,
}

/// A hand on a crawl. Clones share it. Once the crawl has ended, orders come to nothing.
#[derive(Clone)]
pub struct CrawlHandle {
    pub(crate) orders: mpsc::Sender<Order>,
    pub(crate) haste: watch::Sender<Haste>,
    pub(crate) tally: Arc<Mutex<Tally>>,
    pub(crate) concurrency: Arc<AtomicUsize>,
}

impl CrawlHandle {
    /// Brings seeds. Waits until they are taken; None if the crawl has ended before.
    pub async fn seed(&self, seeds: Vec<Prospect>) -> Option<Admissions> {
        let (answer, answered) = oneshot::channel();
        self.orders.send(Order::Seeds(seeds, answer)).await.ok()?;
        answered.await.ok()
    }

    /// No more seeds will come of themselves: the crawl may end when it is exhausted.
    pub async fn end_seeding(&self) {
        let _ = self.orders.send(Order::SeedsEnd).await;
    }

    /// Pauses the crawl, also for others on the same store, and waits until what is in flight has landed: from then on no
    /// request begins until it is resumed, also after a restart. None if the crawl has ended before.
    pub async fn pause(&self) -> Option<Result<(), String>> {
        let (answer, answered) = oneshot::channel();
        self.orders.send(Order::Pause(answer)).await.ok()?;
        answered.await.ok()
    }

    /// Lets a paused crawl go on.
    pub async fn resume(&self) -> Option<Result<(), String>> {
        let (answer, answered) = oneshot::channel();
        self.orders.send(Order::Resume(answer)).await.ok()?;
        answered.await.ok()
    }

    /// Goes on with other options: other policies, another strategy. What is in flight ends by the old ones. If the new ones do not do,
    /// says why, and all stays as it was. None if the crawl has ended before.
    pub async fn reload(&self, reload: Reload) -> Option<Result<(), String>> {
        let (answer, answered) = oneshot::channel();
        self.orders.send(Order::Reload(Box::new(reload), answer)).await.ok()?;
        answered.await.ok()
    }

    /// Stops the crawl once what is in flight has landed.
    pub async fn stop(&self) {
        self.hasten(Haste::Stop);
    }

    /// Stops it now. URLs in flight go back to their places; if the store is away, when their leases have ended.
    pub async fn abort(&self) {
        self.hasten(Haste::Abort);
    }

    /// Whether somebody has told it to stop now.
    pub fn is_aborted(&self) -> bool {
        *self.haste.borrow() == Haste::Abort
    }

    fn hasten(&self, haste: Haste) {
        self.haste.send_if_modified(|before| {
            let more = haste > *before;
            *before = haste.max(*before);
            more
        });
    }

    /// How it does.
    pub fn tally(&self) -> Tally {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks at how it does, without a copy. The crawl waits meanwhile.
    pub fn look<T>(&self, look: impl FnOnce(&Tally) -> T) -> T {
        look(&self.tally.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How many pages are done in this run: less work than the whole tally.
    pub fn pages(&self) -> u64 {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).pages
    }

    /// How many fetches may go on at once, from now on. Those under way go on.
    pub fn set_concurrency(&self, fetches: usize) {
        self.concurrency.store(fetches, Ordering::Relaxed);
    }

    /// How many fetches may go on at once.
    pub fn concurrency(&self) -> usize {
        self.concurrency.load(Ordering::Relaxed)
    }
}
