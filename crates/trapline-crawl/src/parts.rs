//! What the chains of a crawl are made of, beside options: kept, so that other options can make other chains while it runs.

use std::sync::Arc;

use trapline_frontier::Frontier;

use crate::candidate::{self, CandidateChain, Prospect, Scope};
use crate::chain::{ChainError, Processors, Rules};
use crate::disposition::{self, Disposition, PaceMemory};
use crate::fetch::{self, Visit};
use crate::flights::Chains;
use crate::gate::Gate;
use crate::options::CrawlOptions;
use crate::ports::{Fetch, Robots, World};
use crate::strategies::{Ask, Decide, Memories, Strategies, StrategyError, StrategyShelf};

/// What the chains of a crawl are made of.
pub(crate) struct Parts {
    pub(crate) frontier: Frontier,
    pub(crate) world: Arc<dyn World>,
    pub(crate) fetch: Arc<dyn Fetch>,
    pub(crate) robots: Option<Arc<dyn Robots>>,
    pub(crate) gate: Arc<Gate>,
    /// A program's own.
    pub(crate) rules: Rules<Prospect>,
    pub(crate) fetch_processors: Processors<Visit>,
    pub(crate) disposition_processors: Processors<Disposition>,
    pub(crate) strategies: StrategyShelf,
    /// What is remembered, whatever the chains.
    pub(crate) memories: Arc<Memories>,
    pub(crate) pace_memory: PaceMemory,
}

/// What options make of the parts.
pub(crate) struct Made {
    pub(crate) scope: Arc<Scope>,
    pub(crate) candidates: Arc<CandidateChain>,
    pub(crate) strategies: Arc<Strategies>,
    pub(crate) chains: Chains,
}

/// What the processors of several chains share.
pub(crate) struct Common<'c> {
    pub(crate) options: &'c CrawlOptions,
    pub(crate) scope: &'c Arc<Scope>,
    pub(crate) parts: &'c Parts,
    strategies: &'c Arc<Strategies>,
}

impl Common<'_> {
    pub(crate) fn ask(&self) -> Ask {
        Ask { strategies: Arc::clone(self.strategies), memories: Arc::clone(&self.parts.memories) }
    }

    pub(crate) fn decide(&self, candidates: &Arc<CandidateChain>) -> Decide {
        Decide {
            strategies: Arc::clone(self.strategies),
            memories: Arc::clone(&self.parts.memories),
            candidates: Arc::clone(candidates),
        }
    }
}

/// Why no crawl can be made of some options.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// One of its chains cannot.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// Its strategy cannot.
    #[error(transparent)]
    Strategy(#[from] StrategyError),
}

impl Parts {
    /// The chains that some options ask for.
    pub(crate) fn make(&self, options: &mut CrawlOptions) -> Result<Made, BuildError> {
        let names = &mut options.chains;
        append(&mut names.candidate, &candidate::ORDER, self.rules.iter().map(|rule| rule.name()));
        let fetches = self.fetch_processors.iter().map(|processor| processor.name());
        append(&mut names.fetch, &fetch::ORDER, fetches);
        let dispositions = self.disposition_processors.iter().map(|processor| processor.name());
        append(&mut names.disposition, &disposition::ORDER, dispositions);

        let strategies =
            Arc::new(Strategies::new(&self.strategies, &options.strategy, &options.queue.hosts)?);
        let scope = Arc::new(Scope::new(options.scope, options.scope_rules.clone()));
        let candidates = Arc::new(CandidateChain::new(
            options,
            Arc::clone(&scope),
            self.frontier.clone(),
            self.rules.clone(),
        )?);
        let common = Common { options, scope: &scope, parts: self, strategies: &strategies };
        let chains = Chains {
            fetch: fetch::chain(&common, self.fetch_processors.clone())?,
            disposition: disposition::chain(&common, &candidates, self.disposition_processors.clone())?,
        };
        Ok(Made { scope, candidates, strategies, chains })
    }
}

/// A program's own parts come last, unless their places are named.
fn append(names: &mut Option<Vec<String>>, usual: &[&'static str], own: impl Iterator<Item = &'static str>) {
    if names.is_none() {
        *names = Some(usual.iter().copied().chain(own).map(str::to_owned).collect());
    }
}
