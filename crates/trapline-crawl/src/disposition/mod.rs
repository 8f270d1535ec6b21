//! The disposition chain: what becomes of a visit, computed once and settled as one step.
//!
//! The folder holds the processors, one a file; the order is in [`ORDER`].

mod archive;
mod canonical;
mod links;
mod outcome;
mod output;
mod pace;
mod sitemaps;

use std::sync::Arc;
use std::time::Duration;

use trapline_core::{Candidate, Timestamp};
use trapline_frontier::{NoteWrite, Outcome, Settlement};

pub use canonical::CanonicalSolver;
pub use outcome::RetryOptions;
pub(crate) use pace::PaceMemory;
pub use pace::PaceOptions;

use crate::archives::Archives;
use crate::candidate::CandidateChain;
use crate::chain::{ChainError, Processor, Processors, in_order};
use crate::fetch::Visit;
use crate::flights::Landed;
use crate::parts::Common;
use crate::ports::Results;
use crate::strategies::SiteMemory;

/// The processors of the disposition chain, as they follow one another unless a configuration says otherwise.
pub const ORDER: [&str; 7] = ["outcome", "archive", "links", "sitemaps", "strategy", "pace", "output"];

/// A visit that is about to be settled.
pub struct Disposition {
    /// The visit.
    pub visit: Visit,
    /// When it ended.
    pub ended: Timestamp,
    /// What becomes of its URL.
    pub outcome: Outcome,
    /// How long its queue waits now; None leaves it to the queue.
    pub delay: Option<Duration>,
    /// What is to be fetched because of it.
    pub links: Vec<Candidate>,
    /// Notes to be written with it.
    pub notes: Vec<NoteWrite>,
    /// What is told of it.
    pub results: Results,
    /// What the strategy remembers of its site, if it does.
    pub(crate) site: Option<Arc<SiteMemory>>,
}

impl Disposition {
    /// Of a visit that has ended. Until a processor knows better, its URL goes back to its place.
    pub fn new(visit: Visit, ended: Timestamp) -> Self {
        Self {
            visit,
            ended,
            outcome: Outcome::Release,
            delay: None,
            links: Vec::new(),
            notes: Vec::new(),
            results: Results::default(),
            site: None,
        }
    }

    /// All of it as one step for the frontier, and what is told of it.
    pub(crate) fn into_landed(self) -> Landed {
        let lease = self.visit.lease;
        let settlement = Settlement {
            lease: lease.id,
            outcome: self.outcome,
            delay: self.delay,
            links: self.links,
            notes: self.notes,
        };
        Landed { settlement, results: self.results, request: lease.request, key: lease.key, site: self.site }
    }
}

/// The processors that the options ask for, with a program's own to choose from too.
pub(crate) fn chain(
    crawl: &Common<'_>,
    candidates: &Arc<CandidateChain>,
    archives: Archives,
    own: Processors<Disposition>,
) -> Result<Processors<Disposition>, ChainError> {
    let options = crawl.options;
    let (world, frontier) = (Arc::clone(&crawl.parts.world), crawl.parts.frontier.clone());
    let mut parts: Processors<Disposition> = vec![
        Arc::new(outcome::Decide { retry: options.retry.clone(), hosts: options.queue.hosts.clone() }),
        Arc::new(archive::Keep(archives)),
        Arc::new(links::Links::new(options, crawl.scope, candidates)),
        Arc::new(sitemaps::Sitemaps::new(options, crawl.scope, candidates)),
        Arc::new(crawl.decide(candidates)),
        Arc::new(pace::Politeness::new(options.pace.clone(), world, frontier, &crawl.parts.pace_memory)),
        Arc::new(output::Tell { solver: options.solver }),
    ];
    parts.extend(own);
    let names = options.chains.disposition.clone().unwrap_or_else(|| ORDER.map(str::to_owned).to_vec());
    in_order("disposition", &names, &parts, |part: &dyn Processor<Disposition>| part.name())
}
