//! What a crawl would make of a URL, and why: the same rules as those of the crawl, without one that runs.
//!
//! Nothing is fetched, admitted or remembered. What the frontier knows of the URL is the frontier's to tell.

use std::sync::Arc;

use trapline_core::{Candidate, SplitUrl, Timestamp};
use trapline_frontier::{Frontier, StoreError};

use crate::candidate::{CandidateChain, Dropped, Prospect, Scope, ScopeVote, seed_notes};
use crate::chain::ChainError;
use crate::line::SkippedLine;
use crate::options::CrawlOptions;

/// The rules of a crawl, to be asked about URLs.
pub struct Foresight {
    scope: Arc<Scope>,
    candidates: CandidateChain,
}

/// What the rules of a crawl say to one URL.
#[derive(Debug)]
pub struct Foreseen {
    /// What each rule of the scope says; the last that has an opinion decides.
    pub votes: Vec<ScopeVote>,
    /// What each rule of the candidate chain says; the first that drops it decides.
    pub rules: Vec<(&'static str, Option<Dropped>)>,
    /// What would be handed to the frontier, or why nothing would.
    pub verdict: Result<Candidate, SkippedLine>,
}

impl Foresight {
    /// The rules that options ask for, on a frontier that is asked for nothing but where its seeds are.
    pub async fn new(
        options: &CrawlOptions,
        frontier: &Frontier,
        now: Timestamp,
    ) -> Result<Self, ForesightError> {
        let scope = Arc::new(Scope::new(options.scope, options.scope_rules.clone()));
        let candidates = CandidateChain::new(options, Arc::clone(&scope), frontier.clone(), Vec::new())?;
        seed_notes::load(frontier, now, &scope.seeds).await?;
        Ok(Self { scope, candidates })
    }

    /// Counts a URL among the seeds.
    pub fn add_seed(&self, url: &SplitUrl) {
        self.scope.seeds.add(url);
    }

    /// What the rules say to a URL.
    pub fn ask(&self, prospect: &Prospect) -> Foreseen {
        Foreseen {
            votes: self.scope.votes(&prospect.url),
            rules: self.candidates.opinions(&mut prospect.clone()),
            verdict: self.candidates.consider(prospect.clone()),
        }
    }
}

/// Why nobody can say what a crawl would do.
#[derive(Debug, thiserror::Error)]
pub enum ForesightError {
    /// Its rules make no chain.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The frontier cannot be asked.
    #[error(transparent)]
    Store(#[from] StoreError),
}
