//! Makes a crawl of its parts.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;
use trapline_core::Timestamp;
use trapline_frontier::Frontier;

use crate::candidate::{CandidateChain, Prospect, Scope};
use crate::chain::{ChainError, Processor, Processors, Rule, Rules};
use crate::crawl::Crawl;
use crate::disposition::{self, Disposition};
use crate::fetch::{self, Visit};
use crate::flights::{Chains, Flights};
use crate::gate::Gate;
use crate::handle::CrawlHandle;
use crate::options::CrawlOptions;
use crate::ports::{Fetch, NoOutput, Output, Robots, World};
use crate::tally::Tally;

/// Orders that may wait.
const ORDERS_MAX: usize = 16;

/// What the processors of several chains share.
pub(crate) struct Common<'c> {
    pub(crate) options: &'c CrawlOptions,
    pub(crate) scope: &'c Arc<Scope>,
    pub(crate) world: &'c Arc<dyn World>,
    pub(crate) frontier: &'c Frontier,
    pub(crate) gate: &'c Arc<Gate>,
}

/// Makes a [`Crawl`]. What is not given is left out: without robots, robots.txt is not asked.
pub struct CrawlBuilder {
    frontier: Frontier,
    world: Arc<dyn World>,
    options: CrawlOptions,
    robots: Option<Arc<dyn Robots>>,
    output: Arc<dyn Output>,
    rules: Rules<Prospect>,
    fetch_processors: Processors<Visit>,
    disposition_processors: Processors<Disposition>,
    tally: Tally,
}

impl CrawlBuilder {
    pub(crate) fn new(frontier: Frontier, world: Arc<dyn World>) -> Self {
        Self {
            frontier,
            world,
            options: CrawlOptions::default(),
            robots: None,
            output: Arc::new(NoOutput),
            rules: Vec::new(),
            fetch_processors: Vec::new(),
            disposition_processors: Vec::new(),
            tally: Tally::default(),
        }
    }

    /// Its policies. Defaults to [`CrawlOptions::default`].
    #[must_use]
    pub fn options(self, options: CrawlOptions) -> Self {
        Self { options, ..self }
    }

    /// Who knows robots.txt. Defaults to nobody: then it is not asked.
    #[must_use]
    pub fn robots(self, robots: Arc<dyn Robots>) -> Self {
        Self { robots: Some(robots), ..self }
    }

    /// Where results go. Defaults to nowhere.
    #[must_use]
    pub fn output(self, output: Arc<dyn Output>) -> Self {
        Self { output, ..self }
    }

    /// A rule of your own for the candidate chain. It has its turn where [`ChainNames`](crate::ChainNames) name it; if they are
    /// not given, after all others.
    #[must_use]
    pub fn rule(mut self, rule: Arc<dyn Rule<Prospect>>) -> Self {
        self.rules.push(rule);
        self
    }

    /// A processor of your own for the fetch chain, likewise.
    #[must_use]
    pub fn fetch_processor(mut self, processor: Arc<dyn Processor<Visit>>) -> Self {
        self.fetch_processors.push(processor);
        self
    }

    /// A processor of your own for the disposition chain, likewise.
    #[must_use]
    pub fn disposition_processor(mut self, processor: Arc<dyn Processor<Disposition>>) -> Self {
        self.disposition_processors.push(processor);
        self
    }

    /// What earlier runs have done.
    #[must_use]
    pub fn tally(self, tally: Tally) -> Self {
        Self { tally, ..self }
    }

    /// Puts everything together.
    pub fn build(self, fetch: Arc<dyn Fetch>) -> Result<Crawl, ChainError> {
        let Self { frontier, world, mut options, robots, output, tally, .. } = self;
        append(
            &mut options.chains.candidate,
            &crate::candidate::ORDER,
            self.rules.iter().map(|rule| rule.name()),
        );
        let fetches = self.fetch_processors.iter().map(|processor| processor.name());
        append(&mut options.chains.fetch, &fetch::ORDER, fetches);
        let dispositions = self.disposition_processors.iter().map(|processor| processor.name());
        append(&mut options.chains.disposition, &disposition::ORDER, dispositions);

        let scope = Arc::new(Scope::new(options.scope, options.scope_rules.clone()));
        let candidates =
            Arc::new(CandidateChain::new(&options, Arc::clone(&scope), frontier.clone(), self.rules)?);
        let gate = Arc::new(Gate::default());
        let common =
            Common { options: &options, scope: &scope, world: &world, frontier: &frontier, gate: &gate };
        let chains = Chains {
            fetch: fetch::chain(&common, fetch, robots, self.fetch_processors)?,
            disposition: disposition::chain(&common, &candidates, self.disposition_processors)?,
        };
        let (sender, orders) = mpsc::channel(ORDERS_MAX);
        let handle = CrawlHandle {
            orders: sender,
            tally: Arc::new(Mutex::new(tally)),
            concurrency: Arc::new(AtomicUsize::new(options.concurrency)),
        };
        Ok(Crawl {
            flights: Flights::new(Arc::clone(&world), chains),
            frontier,
            world,
            output,
            options,
            scope,
            candidates,
            handle,
            orders,
            gate,
            pausing: Vec::new(),
            seeding: true,
            stopping: false,
            begun: Timestamp::ZERO,
        })
    }
}

/// A program's own parts come last, unless their places are named.
fn append(names: &mut Option<Vec<String>>, usual: &[&'static str], own: impl Iterator<Item = &'static str>) {
    if names.is_none() {
        *names = Some(usual.iter().copied().chain(own).map(str::to_owned).collect());
    }
}
