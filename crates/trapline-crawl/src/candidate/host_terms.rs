//! What is different for some hosts: the policies of a crawl that a host may have of its own.
//!
//! Here is what they are and whose they are. Each takes effect where the crawl-wide one does.

use std::sync::Arc;
use std::time::Duration;

use trapline_core::{HostPattern, HostTable};

use super::Patterns;
use crate::robots_policy::RobotsPolicy;

/// What is different for some hosts. What is none is as for all.
#[derive(Clone, Debug, Default)]
pub struct HostTerms {
    /// Which hosts.
    pub hosts: HostPattern,
    /// How long a host is left alone after a fetch.
    pub delay: Option<Duration>,
    /// How many fetches at a time.
    pub concurrency: Option<u32>,
    /// How much may be spent on it.
    pub budget: Option<u64>,
    /// How much of that before others have their turn; with 0 it has none.
    pub balance: Option<u64>,
    /// When it has its turn, lower first.
    pub precedence: Option<u8>,
    /// How many links away from a seed its pages may be.
    pub max_depth: Option<u32>,
    /// Which of its URLs are wanted, and which are not.
    pub patterns: Option<Patterns>,
    /// How much is given on what it says to robots.
    pub robots: Option<RobotsPolicy>,
    /// After how long its pages are visited again. None for never.
    pub revisit: Option<Duration>,
    /// What a strategy is told of it, by name.
    pub strategy: Vec<(String, String)>,
}

/// The terms of all hosts that have some. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct HostPolicies(Arc<HostTable<HostTerms>>);

impl HostPolicies {
    /// Those of a host: the most exact ones.
    pub fn of(&self, host: &str) -> Option<&HostTerms> {
        self.0.of(host)
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &HostTerms> {
        self.0.iter()
    }
}

impl From<Vec<HostTerms>> for HostPolicies {
    fn from(terms: Vec<HostTerms>) -> Self {
        Self(Arc::new(terms.into_iter().map(|terms| (terms.hosts.clone(), terms)).collect()))
    }
}
