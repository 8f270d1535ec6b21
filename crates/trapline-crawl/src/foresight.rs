//! What a crawl would make of a URL, and why: the same rules as those of the crawl, without one that runs.
//!
//! Nothing is fetched, admitted or remembered. What the frontier knows of the URL is the frontier's to tell.

use std::sync::Arc;

use trapline_core::{Candidate, Request, SplitUrl, Timestamp, parse_url};
use trapline_frontier::{Frontier, StoreError, UrlState};

use crate::candidate::{CandidateChain, Dropped, Origin, Prospect, Scope, ScopeVote, seed_notes};
use crate::chain::ChainError;
use crate::line::SkippedLine;
use crate::options::CrawlOptions;
use crate::strategies::{
    FoundLink, Memory, Seen, Strategies, Strategy, StrategyError, StrategyShelf, Wish, site_of, wished,
};

/// The rules of a crawl, to be asked about URLs.
pub struct Foresight {
    scope: Arc<Scope>,
    candidates: CandidateChain,
    strategies: Strategies,
    frontier: Frontier,
}

/// What the rules of a crawl say to one URL.
#[derive(Debug)]
pub struct Foreseen {
    /// What each rule of the scope says; the last that has an opinion decides.
    pub votes: Vec<ScopeVote>,
    /// What each rule of the candidate chain says; the first that drops it decides.
    pub rules: Vec<(&'static str, Option<Dropped>)>,
    /// What would be handed to the frontier, or why nothing would. The strategy has had its say.
    pub verdict: Result<Candidate, SkippedLine>,
    /// Why the strategy would not let it be fetched when its turn has come.
    pub refused: Option<String>,
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
        let strategies = Strategies::new(&StrategyShelf::default(), &options.strategy, &options.queue.hosts)?;
        Ok(Self { scope, candidates, strategies, frontier: frontier.clone() })
    }

    /// Counts a URL among the seeds.
    pub fn add_seed(&self, url: &SplitUrl) {
        self.scope.seeds.add(url);
    }

    /// What the rules say to a URL, and the strategy by what it remembers at present.
    pub async fn ask(&self, now: Timestamp, prospect: &Prospect) -> Result<Foreseen, StoreError> {
        let host = prospect.url.host_str().unwrap_or_default();
        let strategy = self.strategies.of(host);
        let mut memory = match strategy.remembers() {
            true => Memory::kept(&self.frontier, now, strategy.name(), site_of(host)).await?,
            false => Memory::default(),
        };
        let refused = strategy.refuses(&prospect.request, &memory);
        let verdict = self.candidates.consider(prospect.clone());
        let verdict = verdict.and_then(|candidate| {
            let wish = match prospect.origin {
                Origin::Seed => strategy.seed(&candidate.request, &mut memory).wish,
                _ => wish_for(strategy, now, &candidate, &mut memory),
            };
            wished(candidate, &wish)
        });
        Ok(Foreseen {
            votes: self.scope.votes(&prospect.url),
            rules: self.candidates.opinions(&mut prospect.clone()),
            verdict,
            refused,
        })
    }
}

/// What a strategy would make of a link, on a page of which nothing else is known.
fn wish_for(strategy: &dyn Strategy, now: Timestamp, link: &Candidate, memory: &mut Memory) -> Wish {
    let via = link.request.via.as_deref().unwrap_or(&link.request.url);
    let Ok(url) = parse_url(via, None) else { return Wish::Usual };
    let request = Request::get(via);
    let seen = Seen {
        request: &request,
        url: &url,
        now,
        status: Some(200),
        error: None,
        page: None,
        before: None,
        retries: 0,
        tries_again: false,
    };
    if let Some(why) = strategy.leaves_out(&seen, &link.request) {
        return Wish::Leave(why.into());
    }
    let found = [FoundLink { request: &link.request, state: UrlState::Unknown }];
    strategy.links(&seen, &found, memory).into_iter().next().unwrap_or_default()
}

/// Why nobody can say what a crawl would do.
#[derive(Debug, thiserror::Error)]
pub enum ForesightError {
    /// Its rules make no chain.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// Its strategy does not do.
    #[error(transparent)]
    Strategy(#[from] StrategyError),
    /// The frontier cannot be asked.
    #[error(transparent)]
    Store(#[from] StoreError),
}
