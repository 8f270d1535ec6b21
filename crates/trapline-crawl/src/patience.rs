//! Asking the store although it may be away: again and again, and never deaf meanwhile.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::poll_immediate;
use trapline_core::Timestamp;
use trapline_frontier::{ErrorKind, Frontier, StoreError};

use crate::crawl::{Crawl, CrawlError};
use crate::handle::{Haste, ORDERS_MAX, Order};
use crate::ports::OutputError;
use crate::tally::Trouble;

/// How long a store that is away is left alone, at first and at most.
const WAIT: Duration = Duration::from_millis(200);
const WAIT_MAX: Duration = Duration::from_secs(10);

/// A store that has not answered for so long is told of.
const SLOW: Duration = Duration::from_secs(3);

/// Who is told to stop now waits so long for what is under way.
pub(crate) const GRACE: Duration = Duration::from_millis(700);

/// Why the loop does not go on.
pub(crate) enum Halt {
    /// Somebody wants it to stop now, and what is under way takes too long.
    Aborted,
    /// It cannot.
    Failed(CrawlError),
}

impl From<StoreError> for Halt {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<OutputError> for Halt {
    fn from(error: OutputError) -> Self {
        Self::Failed(error.into())
    }
}

impl Crawl {
    /// Asks the store, again and again if it is away: it may come back, and until then nothing is lost.
    pub(crate) async fn patiently<T>(
        &mut self,
        attempted: &str,
        ask: impl AsyncFn(&Frontier, Timestamp) -> Result<T, StoreError>,
    ) -> Result<T, Halt> {
        let (frontier, world) = (self.frontier.clone(), Arc::clone(&self.world));
        let mut wait = WAIT;
        loop {
            let begun = world.now();
            let asking = async {
                let now = frontier.now().await?.unwrap_or_else(|| world.now());
                ask(&frontier, now).await
            };
            let error = match self.hearing(asking, Some(attempted)).await? {
                Ok(answer) => {
                    self.is_back();
                    return Ok(answer);
                }
                Err(error) if error.kind() != ErrorKind::Unavailable => return Err(error.into()),
                Err(error) => error,
            };
            tracing::warn!(%error, attempted, "the store is away");
            self.is_away(begun, error.to_string());
            if self.is_aborted() {
                return Err(Halt::Aborted);
            }
            self.hearing(world.sleep_until(world.now() + wait), None).await?;
            wait = (wait * 2).min(WAIT_MAX);
        }
    }

    /// What time it is: the store's, if it has a clock that all follow.
    pub(crate) async fn now(&mut self) -> Result<Timestamp, Halt> {
        self.patiently("ask for the time", async |_, now| Ok(now)).await
    }

    /// Does something, and hears orders meanwhile. Those that can wait are held; who is to stop now waits a moment for it, and not at all
    /// while the store is known to be away.
    pub(crate) async fn hearing<T>(
        &mut self,
        doing: impl Future<Output = T>,
        asked: Option<&str>,
    ) -> Result<T, Halt> {
        let world = Arc::clone(&self.world);
        let mut doing = pin!(doing);
        if let Some(done) = poll_immediate(doing.as_mut()).await {
            return Ok(done);
        }
        let begun = world.now();
        let mut slow = pin!(world.sleep_until(begun + SLOW));
        let mut told = asked.is_none();
        let mut over = None;
        loop {
            if self.is_aborted() && over.is_none() {
                let grace = if self.away.is_none() { GRACE } else { Duration::ZERO };
                over = Some(world.sleep_until(world.now() + grace));
            }
            let is_over = async {
                match &mut over {
                    Some(over) => over.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                done = &mut doing => return Ok(done),
                Some(order) = self.orders.recv(), if self.held.len() < ORDERS_MAX => self.hold(order),
                Ok(()) = self.haste.changed() => self.hurry(),
                () = is_over => return Err(Halt::Aborted),
                () = &mut slow, if !told => {
                    told = true;
                    self.is_away(begun, format!("no answer to the attempt to {}", asked.unwrap_or_default()));
                }
            }
        }
    }

    /// Keeps an order for when the store can be asked. No request begins after one to pause, whatever the store says.
    fn hold(&mut self, order: Order) {
        if matches!(order, Order::Pause(_)) {
            self.parts.gate.close();
        }
        self.held.push_back(order);
    }

    /// Takes note of how soon the crawl is to stop.
    pub(crate) fn hurry(&mut self) {
        self.stopping |= *self.haste.borrow_and_update() > Haste::None;
    }

    /// Whether it is to stop now.
    pub(crate) fn is_aborted(&self) -> bool {
        *self.haste.borrow() == Haste::Abort
    }

    fn is_away(&mut self, since: Timestamp, why: String) {
        let since = *self.away.get_or_insert(since);
        self.tally().trouble = Some(Trouble { since, why });
    }

    fn is_back(&mut self) {
        if self.away.take().is_some() {
            tracing::info!("the store is back");
            self.tally().trouble = None;
        }
    }
}
