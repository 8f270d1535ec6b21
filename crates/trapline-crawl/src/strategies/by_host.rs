//! The strategy of a crawl, told other things of some hosts.

use std::sync::Arc;

use trapline_core::HostTable;

use super::{Strategy, StrategyChoice, StrategyError, StrategyShelf};
use crate::candidate::{HostPolicies, HostTerms};

/// A strategy for all hosts, and the same with other arguments for some.
#[derive(Debug)]
pub struct Strategies {
    usual: Arc<dyn Strategy>,
    /// Of the entry that counts for a host, if it has something to tell.
    hosts: HostTable<Option<Arc<dyn Strategy>>>,
}

impl Strategies {
    /// Makes them all.
    pub fn new(
        shelf: &StrategyShelf,
        choice: &StrategyChoice,
        hosts: &HostPolicies,
    ) -> Result<Self, StrategyError> {
        let of_host = |terms: &HostTerms| {
            let own = (!terms.strategy.is_empty()).then(|| shelf.make(&choice.with(&terms.strategy)));
            match own.transpose() {
                Ok(own) => Ok((terms.hosts.clone(), own)),
                Err(error) => {
                    Err(StrategyError::Host { hosts: terms.hosts.to_string(), error: Box::new(error) })
                }
            }
        };
        Ok(Self { usual: shelf.make(choice)?, hosts: hosts.iter().map(of_host).collect::<Result<_, _>>()? })
    }

    /// That of the crawl as a whole.
    pub fn usual(&self) -> &dyn Strategy {
        &*self.usual
    }

    /// That of a host.
    pub fn of(&self, host: &str) -> &dyn Strategy {
        &**self.hosts.of(host).and_then(Option::as_ref).unwrap_or(&self.usual)
    }
}

impl StrategyChoice {
    /// The same, told other things: what has the same name is replaced, all else comes to it.
    fn with(&self, others: &[(String, String)]) -> Self {
        let kept = self.arguments.iter().filter(|(name, _)| others.iter().all(|(other, _)| other != name));
        Self { name: self.name.clone(), arguments: kept.chain(others).cloned().collect() }
    }
}
