//! The strategy of a crawl, told other things of some hosts.

use std::sync::Arc;

use trapline_core::HostPattern;

use super::{Strategy, StrategyChoice, StrategyError, StrategyShelf};
use crate::candidate::HostTerms;

/// A strategy for all hosts, and the same with other arguments for some.
#[derive(Debug)]
pub struct Strategies {
    usual: Arc<dyn Strategy>,
    hosts: Vec<(HostPattern, Arc<dyn Strategy>)>,
}

impl Strategies {
    /// Makes them all.
    pub fn new(
        shelf: &StrategyShelf,
        choice: &StrategyChoice,
        hosts: &[HostTerms],
    ) -> Result<Self, StrategyError> {
        let told = hosts.iter().filter(|terms| !terms.strategy.is_empty());
        let of_host = |terms: &HostTerms| {
            let made = shelf.make(&choice.with(&terms.strategy));
            made.map(|strategy| (terms.hosts.clone(), strategy)).map_err(|error| StrategyError::Host {
                hosts: terms.hosts.to_string(),
                error: Box::new(error),
            })
        };
        Ok(Self { usual: shelf.make(choice)?, hosts: told.map(of_host).collect::<Result<_, _>>()? })
    }

    /// That of the crawl as a whole.
    pub fn usual(&self) -> &dyn Strategy {
        &*self.usual
    }

    /// That of a host: of several that are meant for it, the most exact one.
    pub fn of(&self, host: &str) -> &dyn Strategy {
        let own = HostPattern::most_exact(self.hosts.iter().map(|(hosts, strategy)| (hosts, strategy)), host);
        &**own.unwrap_or(&self.usual)
    }
}

impl StrategyChoice {
    /// The same, told other things: what has the same name is replaced, all else comes to it.
    fn with(&self, others: &[(String, String)]) -> Self {
        let kept = self.arguments.iter().filter(|(name, _)| others.iter().all(|(other, _)| other != name));
        Self { name: self.name.clone(), arguments: kept.chain(others).cloned().collect() }
    }
}
