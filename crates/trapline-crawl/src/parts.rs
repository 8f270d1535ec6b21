//! What the chains of a crawl are made of, beside options: kept, so that other options can make other chains while it runs.

use std::sync::Arc;

use trapline_frontier::Frontier;

use crate::archives::{ArchivePlace, Archives, Hold};
use crate::candidate::{self, CandidateChain, Prospect, Scope};
use crate::chain::{ChainError, Processors, Rules};
use crate::disposition::{self, Disposition, PaceMemory};
use crate::fetch::{self, Visit};
use crate::flights::Chains;
use crate::gate::Gate;
use crate::options::CrawlOptions;
use crate::ports::{Archive, Fetch, Robots, World};
use crate::strategies::{Ask, Decide, Memories, Strategies, StrategyError, StrategyShelf};

/// What the chains of a crawl are made of.
pub(crate) struct Parts {
    pub(crate) frontier: Frontier,
    pub(crate) world: Arc<dyn World>,
    pub(crate) fetch: Arc<dyn Fetch>,
    pub(crate) robots: Option<Arc<dyn Robots>>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) archives: Vec<(ArchivePlace, Arc<dyn Archive>)>,
    /// On while an archive cannot keep anything.
    pub(crate) hold: Arc<Hold>,
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
    /// The chains that some options ask for. What was found of seeds before goes on to be known.
    pub(crate) fn make(
        &self,
        options: &mut CrawlOptions,
        before: Option<&Scope>,
    ) -> Result<Made, BuildError> {
        let names = &mut options.chains;
        append(&mut names.candidate, &candidate::ORDER, self.rules.iter().map(|rule| rule.name()));
        let fetches = self.fetch_processors.iter().map(|processor| processor.name());
        append(&mut names.fetch, &fetch::ORDER, fetches);
        let dispositions = self.disposition_processors.iter().map(|processor| processor.name());
        append(&mut names.disposition, &disposition::ORDER, dispositions);

        let strategies =
            Arc::new(Strategies::new(&self.strategies, &options.strategy, &options.queue.hosts)?);
        let scope = Scope::new(options.scope, options.scope_rules.clone());
        let scope = Arc::new(match before {
            Some(before) => scope.with_seeds_of(before),
            None => scope,
        });
        let candidates = Arc::new(CandidateChain::new(
            options,
            Arc::clone(&scope),
            self.frontier.clone(),
            self.rules.clone(),
        )?);
        let common = Common { options, scope: &scope, parts: self, strategies: &strategies };
        let in_fetch = self.archives_in(ArchivePlace::Fetch, "fetch", options.chains.fetch.as_deref())?;
        let names = options.chains.disposition.as_deref();
        let in_disposition = self.archives_in(ArchivePlace::Disposition, "disposition", names)?;
        let own = self.disposition_processors.clone();
        let chains = Chains {
            fetch: fetch::chain(&common, in_fetch, self.fetch_processors.clone())?,
            disposition: disposition::chain(&common, &candidates, in_disposition, own)?,
        };
        Ok(Made { scope, candidates, strategies, chains })
    }
}

impl Parts {
    /// The archives of a chain. Who has some must not have left out their place in it.
    fn archives_in(
        &self,
        wanted: ArchivePlace,
        chain: &'static str,
        names: Option<&[String]>,
    ) -> Result<Archives, ChainError> {
        let there = self.archives.iter().filter(|(place, _)| *place == wanted);
        let all: Vec<_> = there.map(|(_, archive)| Arc::clone(archive)).collect();
        let has_place = names.is_none_or(|names| names.iter().any(|name| name == "archive"));
        if !has_place && !all.is_empty() {
            let why = "an archive is to stand there";
            return Err(ChainError::Missing { chain, name: "archive", why });
        }
        Ok(Archives { all, world: Arc::clone(&self.world), hold: Arc::clone(&self.hold) })
    }
}

/// A program's own parts come last, unless their places are named.
fn append(names: &mut Option<Vec<String>>, usual: &[&'static str], own: impl Iterator<Item = &'static str>) {
    if names.is_none() {
        *names = Some(usual.iter().copied().chain(own).map(str::to_owned).collect());
    }
}
