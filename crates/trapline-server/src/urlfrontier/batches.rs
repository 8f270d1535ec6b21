//! What was handed out last of each queue, so that a delay that is told afterwards counts from then on: a crawler learns from
//! robots.txt what it is to keep to when it has the first URL already.
//!
//! Nothing here need survive: what is still out is found among the leases after a restart.

use std::collections::BTreeMap;
use std::time::Duration;

use trapline_core::Timestamp;
use trapline_frontier::{
    Answer, LeaseId, LeaseReport, Outcome, QueueChange, QueueReport, QueueState, Settlement, Steer,
    StoreError,
};

use super::crawls::{Crawl, Crawls};

/// The last batch of a queue.
struct Batch {
    granted: Timestamp,
    deadline: Timestamp,
    leases: Vec<LeaseId>,
}

/// The last batches of a crawl's queues: all that are out, and some that are not any more.
#[derive(Default)]
pub(super) struct Batches {
    of_queues: BTreeMap<String, Batch>,
    /// When there are so many, those that have ended go.
    enough: usize,
}

/// Fewer are not worth a look.
const FEW: usize = 1024;

/// So many waits are moved in one step.
const AT_ONCE: usize = 1000;

impl Batches {
    /// One more URL of a queue is out.
    pub(super) fn add(&mut self, key: &str, lease: LeaseId, granted: Timestamp, deadline: Timestamp) {
        match self.of_queues.get_mut(key) {
            Some(batch) if batch.granted == granted => batch.leases.push(lease),
            Some(batch) if batch.granted > granted => {}
            Some(batch) => *batch = Batch { granted, deadline, leases: vec![lease] },
            None => {
                let batch = Batch { granted, deadline, leases: vec![lease] };
                self.of_queues.insert(key.to_owned(), batch);
            }
        }
    }

    /// The same of a lease that was out before this process began.
    pub(super) fn recall(&mut self, lease: &LeaseReport) {
        self.add(&lease.key, lease.id, lease.granted, lease.deadline);
    }

    /// Forgets what is not out any more, from time to time.
    pub(super) fn tidy(&mut self, now: Timestamp) {
        if self.of_queues.len() > self.enough.max(FEW) {
            self.of_queues.retain(|_, batch| batch.deadline > now);
            self.enough = 2 * self.of_queues.len();
        }
    }

    /// Those of which the wait is to end later than it does, with the renewals that say so.
    fn to_lengthen(
        &self,
        delay: Duration,
        is_for: impl Fn(&str) -> bool,
        now: Timestamp,
    ) -> Vec<(String, Timestamp, Vec<Settlement>)> {
        let mut found = Vec::new();
        for (key, batch) in self.of_queues.iter().filter(|(key, _)| is_for(key)) {
            let until = batch.granted + delay;
            if until <= now {
                continue;
            }
            let renewal = |lease: &LeaseId| {
                // The lease ends when it would have. Its wait is counted from when it was granted.
                let mut renewal =
                    Settlement::new(*lease, Outcome::Renew { lease: batch.deadline.since(now) });
                renewal.delay = Some(delay);
                renewal
            };
            let is_out = batch.deadline > now;
            let renewals = batch.leases.iter().filter(|_| is_out).map(renewal).collect();
            found.push((key.clone(), until, renewals));
        }
        found
    }
}

impl Crawls {
    /// Waits of queues go on until the last batch is as long ago as this. None ends sooner than it would have.
    pub(super) async fn lengthen(
        &self,
        crawl: &Crawl,
        delay: Duration,
        is_for: impl Fn(&str) -> bool,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let found = crawl.batches().to_lengthen(delay, is_for, now);
        for queues in found.chunks(AT_ONCE) {
            let renewals: Vec<_> = queues.iter().flat_map(|(_, _, renewals)| renewals).cloned().collect();
            let mut settled = self.store.settle(&crawl.name, now, renewals).await?.into_iter();
            let mut without = Vec::new();
            for (key, until, renewals) in queues {
                let settled = settled.by_ref().take(renewals.len());
                // All of them are asked, or the next queue would get this one's answers.
                if settled.filter(|settled| settled.answer == Answer::Renewed).count() == 0 {
                    without.push((key, until));
                }
            }
            // Where nothing is out any more, nothing is there to carry the delay.
            let keys = without.iter().map(|(key, _)| (*key).clone()).collect();
            let reports = if without.is_empty() { Vec::new() } else { self.queues(crawl, keys, now).await? };
            for (key, until) in without {
                let is_free = |report: &QueueReport| {
                    &*report.key == key.as_str() && report.state != QueueState::Blocked
                };
                if reports.iter().any(is_free) {
                    let block = Steer::Queue(key.clone(), QueueChange::Block(*until));
                    self.store.steer(&crawl.name, now, block).await?;
                }
            }
        }
        Ok(())
    }
}
