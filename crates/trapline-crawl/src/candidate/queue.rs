//! Which queue a URL goes to, and on what terms.
//!
//! Canonical form, identity and the usual queue key are the frontier handle's, which prepares what is left of the chain.

use std::sync::Arc;

use trapline_core::{Terms, registrable_domain};

use super::{HostPolicies, HostTerms, Prospect};
use crate::chain::{Flow, Rule};

/// Terms of queues.
#[derive(Clone, Debug, Default)]
pub struct QueueOptions {
    /// What is different for some hosts; the most exact one counts. Defaults to none.
    pub hosts: HostPolicies,
    /// All hosts of a registrable domain share one pace. Defaults to false.
    pub by_domain: bool,
    /// When queues have their turn, lower first. Defaults to none: 3.
    pub precedence: Option<u8>,
}

impl QueueOptions {
    /// The terms of a host's queue.
    pub fn terms(&self, host: &str) -> Terms {
        let group = if self.by_domain { registrable_domain(host).map(Arc::from) } else { None };
        let own = self.of(host);
        Terms {
            delay: own.and_then(|terms| terms.delay),
            concurrency: own.and_then(|terms| terms.concurrency),
            queue_budget: own.and_then(|terms| terms.budget),
            balance_replenish: own.and_then(|terms| terms.balance),
            precedence: own.and_then(|terms| terms.precedence).or(self.precedence),
            group,
        }
    }

    /// What is different for a host: the most exact terms that fit.
    pub fn of(&self, host: &str) -> Option<&HostTerms> {
        self.hosts.of(host)
    }
}

/// Sets the terms of a candidate's queue.
pub(super) struct Queue(pub(super) QueueOptions);

impl Rule<Prospect> for Queue {
    fn name(&self) -> &'static str {
        "queue"
    }

    fn apply(&self, prospect: &mut Prospect) -> Flow {
        let host = prospect.url.host_str().unwrap_or_default();
        prospect.terms = self.0.terms(host);
        Flow::Next
    }
}
