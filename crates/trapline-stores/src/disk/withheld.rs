//! Leases whose request cannot be read: they are given to nobody, and hold up nobody else.
//!
//! A request that is damaged stays so: its URL becomes a dead letter that says where in the log it was, by a settlement like any
//! other, which is in the log and replayed. One that only could not be read this time may be read another time: its lease
//! is left to its deadline, and the URL comes again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use trapline_core::Timestamp;
use trapline_frontier::{Claimed, Outcome, Settlement, Store as _, StoreError};

use super::DiskStore;
use super::texts::Unread;
use super::trouble::unreadable;

impl DiskStore {
    /// Takes leases, by their place, out of what a claim got, and sees to their URLs. An error only if nothing is left
    /// to be given, and it may be another time.
    pub(super) async fn withhold(
        &self,
        now: Timestamp,
        claimed: &mut Claimed,
        lost: &BTreeMap<usize, Unread>,
    ) -> Result<(), StoreError> {
        let mut dead: BTreeMap<Arc<str>, Vec<Settlement>> = BTreeMap::new();
        for (at, unread) in lost {
            if let Unread::Damaged(failure) = unread {
                let lease = &claimed.leases[*at];
                let reason = format!("its request cannot be read: {failure}");
                // Nobody has fetched anything, so nobody has to wait.
                let delay = Some(Duration::ZERO);
                let settlement = Settlement { delay, ..Settlement::new(lease.id, Outcome::Dead { reason }) };
                dead.entry(Arc::clone(&lease.crawl)).or_default().push(settlement);
            }
        }
        let mut at = 0..;
        claimed.leases.retain(|_| at.next().is_some_and(|at| !lost.contains_key(&at)));
        if !dead.is_empty() {
            // Their queues may have others to give.
            claimed.next = Some(now);
        }
        for (crawl, settlements) in dead {
            // If this fails, the lease ends at its deadline, and whoever claims the URL next comes here again.
            let _ = self.settle(&crawl, now, settlements).await;
        }
        let failed = lost.values().find(|unread| matches!(unread, Unread::Failed(_)));
        match failed.filter(|_| claimed.leases.is_empty()) {
            Some(unread) => Err(unreadable("claim", unread.failure())),
            None => Ok(()),
        }
    }
}
