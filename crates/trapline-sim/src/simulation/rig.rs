//! The rig: plays acts on a real store and shows every answer to the oracle. The only place of the simulation that
//! holds a frontier.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use trapline_core::{Identity, IdentityKey, Request, Timestamp};
use trapline_frontier::script::{
    Claim, CrawlVerb, Reopen, Settle, Verb, describe_crawl, describe_page, describe_queue,
};
use trapline_frontier::{
    Admission, Claimed, DeadChange, DeadLetters, Frontier, FrontierBuilder, Lease, LeaseId, Query,
    QueueReport, QueueState, Refusal, Rows, Scan, Settings, Settled, Settlement, Steer, StoreError,
    UrlChange,
};

use super::act::Act;
use super::tally::Tally;
use crate::oracle::{Breach, Given, Oracle, Rule};
use crate::stores::{Opened, Stores};

const CRAWL: &str = "sim";

/// A frontier on a store, and the oracle that watches it.
pub(crate) struct Rig {
    /// None only while the store is being opened again.
    frontier: Option<Frontier>,
    reopen: Option<Box<dyn Reopen>>,
    partitions: u32,
    pub(crate) oracle: Oracle,
    /// All leases, in the order of their grants, with what they were for.
    granted: Vec<(LeaseId, Arc<Request>)>,
    /// Which of them is the newest of each URL.
    newest: BTreeMap<Identity, usize>,
    pub(crate) tally: Tally,
}

/// What came back for an act.
pub(crate) struct Answers {
    /// For each verb, as a trace would write it.
    pub(crate) texts: Vec<String>,
    /// What was granted, each with its number among all grants, and the whole answer of a claim.
    pub(crate) leases: Vec<(usize, Lease)>,
    pub(crate) claimed: Option<Claimed>,
}

impl Answers {
    fn said(text: impl Into<String>) -> Self {
        Self { texts: vec![text.into()], leases: Vec::new(), claimed: None }
    }
}

impl From<StoreError> for Breach {
    fn from(error: StoreError) -> Self {
        Self::new(Rule::Failure, format!("the store failed: {error}"))
    }
}

impl Rig {
    /// A fresh crawl on a fresh store.
    pub(crate) fn new(stores: &dyn Stores, settings: &Settings, partitions: u32) -> Result<Self, StoreError> {
        let Opened { store, reopen } = stores.open()?;
        let builder = Self::builder(partitions).settings(settings.clone());
        let frontier = pollster::block_on(builder.open_shared(store, Timestamp::ZERO))?;
        Ok(Self {
            frontier: Some(frontier),
            reopen,
            partitions,
            oracle: Oracle::new(settings.clone(), partitions),
            granted: Vec::new(),
            newest: BTreeMap::new(),
            tally: Tally::default(),
        })
    }

    fn builder(partitions: u32) -> FrontierBuilder {
        Frontier::builder(CRAWL).partitions(partitions).key(IdentityKey::from_seed(0))
    }

    /// Whether the store can be closed and opened again.
    pub(crate) fn can_restart(&self) -> bool {
        self.reopen.is_some()
    }

    /// Whether a lease, by its number among all grants, is the newest of its URL.
    pub(crate) fn is_newest(&self, lease: usize, identity: Identity) -> bool {
        self.newest.get(&identity) == Some(&lease)
    }

    /// Does an act. A store that panics has failed.
    pub(crate) fn play(&mut self, act: &Act) -> Result<Answers, Breach> {
        guarded(|| pollster::block_on(self.play_now(act)))
    }

    fn frontier(&self) -> Result<&Frontier, Breach> {
        self.frontier.as_ref().ok_or_else(|| Breach::new(Rule::Failure, "the store was not opened again"))
    }

    async fn play_now(&mut self, act: &Act) -> Result<Answers, Breach> {
        self.oracle.advance(act.at);
        self.tally.commands += act.verbs.len() as u64;
        match act.verbs.first() {
            None => Ok(Answers { texts: Vec::new(), leases: Vec::new(), claimed: None }),
            Some(Verb::Admit(_)) => self.admit(act).await,
            Some(Verb::Settle(_)) => self.settle(act).await,
            Some(Verb::Claim(claim)) => self.claim(act.at, claim).await,
            Some(Verb::Restart) => self.restart(false).await,
            Some(Verb::Crash) => self.restart(true).await,
            Some(verb) => self.operate(act.at, verb).await,
        }
    }

    async fn restart(&mut self, crash: bool) -> Result<Answers, Breach> {
        // Nobody holds the store while it is closed.
        self.frontier = None;
        let Some(reopen) = &mut self.reopen else {
            return Err(Breach::new(Rule::Failure, "a store that keeps nothing was to be opened again"));
        };
        let store = if crash { reopen.crash().await } else { reopen.restart().await }?;
        self.frontier = Some(Self::builder(self.partitions).open_shared(store, Timestamp::ZERO).await?);
        self.tally.restarts += 1;
        Ok(Answers::said("ok"))
    }

    async fn admit(&mut self, act: &Act) -> Result<Answers, Breach> {
        let mut candidates = Vec::new();
        let mut is_well_formed = Vec::new();
        for verb in &act.verbs {
            let Verb::Admit(admit) = verb else { continue };
            let candidate = admit.candidate(self.frontier()?).ok();
            is_well_formed.push(candidate.is_some());
            candidates.extend(candidate);
        }
        let answers = self.frontier()?.admit_candidates(act.at, &candidates).await?;
        self.tally.count_admissions(&answers);
        self.oracle.admitted(&candidates, &answers)?;
        let mut answers = answers.iter();
        let malformed = Admission::Refused(Refusal::Malformed);
        let text = |well: &bool| if *well { answers.next() } else { None }.unwrap_or(&malformed).to_string();
        Ok(Answers { texts: is_well_formed.iter().map(text).collect(), leases: Vec::new(), claimed: None })
    }

    async fn claim(&mut self, at: Timestamp, claim: &Claim) -> Result<Answers, Breach> {
        let claimed = self.frontier()?.claim(at, claim).await?;
        self.tally.grants += claimed.leases.len() as u64;
        let asked = self.oracle.claimed(claim, &claimed)?;
        let retired = self.retired_among(at, asked).await?;
        self.oracle.reached(claim, &claimed, |key| retired.iter().any(|retired| retired == key))?;
        let mut leases = Vec::new();
        for lease in &claimed.leases {
            self.newest.insert(lease.identity, self.granted.len());
            leases.push((self.granted.len(), lease.clone()));
            self.granted.push((lease.id, Arc::clone(&lease.request)));
        }
        let urls: Vec<_> = claimed.leases.iter().map(|lease| lease.request.url.as_str()).collect();
        Ok(Answers { texts: vec![urls.join(" ")], leases, claimed: Some(claimed) })
    }

    async fn retired_among(&self, at: Timestamp, keys: Vec<String>) -> Result<Vec<String>, Breach> {
        if keys.is_empty() {
            return Ok(keys);
        }
        let reports = self.queues(at, Some(keys)).await?;
        let retired = reports.iter().filter(|report| report.state == QueueState::Retired);
        Ok(retired.map(|report| report.key.to_string()).collect())
    }

    async fn queues(&self, at: Timestamp, keys: Option<Vec<String>>) -> Result<Vec<QueueReport>, Breach> {
        let scan = Scan::new(Query::Queues { keys, state: None });
        match self.frontier()?.scan(at, &scan).await?.rows {
            Rows::Queues(queues) => Ok(queues),
            _ => Err(Breach::new(Rule::Report, "queues were asked for, other rows came")),
        }
    }

    async fn settle(&mut self, act: &Act) -> Result<Answers, Breach> {
        let mut settlements = Vec::new();
        // The place in the batch of each verb; None for a lease that was never granted, which is stale.
        let mut places = Vec::new();
        for verb in &act.verbs {
            let Verb::Settle(settle) = verb else { continue };
            let settlement = self.settlement(settle)?;
            places.push(settlement.is_some().then_some(settlements.len()));
            settlements.extend(settlement.map(|settlement| (settle, settlement)));
        }
        let batch = settlements.iter().map(|(_, settlement)| settlement.clone()).collect();
        let answers = self.frontier()?.settle(act.at, batch).await?;
        if answers.len() != settlements.len() {
            let message = format!("{} leases were settled, {} answered", settlements.len(), answers.len());
            return Err(Breach::new(Rule::Answer, message));
        }
        for ((settle, settlement), settled) in settlements.iter().zip(&answers) {
            self.tally.count_settlement(settled);
            let Settlement { lease, delay, ref links, .. } = *settlement;
            self.oracle.settled(&Given { lease, outcome: &settle.outcome, delay, links }, settled)?;
        }
        let stale = || "stale".to_owned();
        let text = |place: &Option<usize>| {
            place
                .and_then(|place| answers.get(place))
                .map_or_else(stale, |settled: &Settled| settled.answer.to_string())
        };
        Ok(Answers { texts: places.iter().map(text).collect(), leases: Vec::new(), claimed: None })
    }

    fn settlement(&self, settle: &Settle) -> Result<Option<Settlement>, Breach> {
        let number = match settle.lease {
            Some(number) => number.checked_sub(1),
            None => self.identity(&settle.url)?.and_then(|identity| self.newest.get(&identity).copied()),
        };
        let Some((lease, request)) = number.and_then(|number| self.granted.get(number)) else {
            return Ok(None);
        };
        Ok(Some(settle.settlement(*lease, request, self.frontier()?)))
    }

    fn identity(&self, url: &str) -> Result<Option<Identity>, Breach> {
        Ok(self.frontier()?.prepare(Request::get(url)).ok().map(|prepared| prepared.identity))
    }

    /// Whatever else a line can do.
    async fn operate(&mut self, at: Timestamp, verb: &Verb) -> Result<Answers, Breach> {
        let text = match verb {
            Verb::Steer { key, change } => {
                self.frontier()?.steer_queue(at, key, change.into()).await?;
                self.oracle.steered(key, change);
                "ok".to_owned()
            }
            Verb::Crawl(crawl) => match crawl.change() {
                Some(change) => {
                    self.frontier()?.steer_crawl(at, change).await?;
                    self.oracle.changed(crawl);
                    "ok".to_owned()
                }
                None => {
                    let report = self.frontier()?.report(at).await?;
                    self.oracle.check_crawl(&report)?;
                    describe_crawl(&report)
                }
            },
            Verb::DeadReplay(url) => {
                if let Some(identity) = self.identity(url)? {
                    let steer = Steer::Dead(DeadLetters::Url(identity), DeadChange::Replay);
                    self.frontier()?.steer(at, steer).await?;
                    self.oracle.replayed(identity);
                }
                "ok".to_owned()
            }
            Verb::Forget(url) => {
                if let Some(identity) = self.identity(url)? {
                    self.frontier()?.steer(at, Steer::Url(identity, UrlChange::Forget)).await?;
                    self.oracle.forgot(identity);
                }
                "ok".to_owned()
            }
            Verb::Url(url) => match self.identity(url)? {
                Some(identity) => {
                    let report = self.frontier()?.url(at, url).await?;
                    self.oracle.check_url(identity, &report)?;
                    report.state.to_string()
                }
                None => "unknown".to_owned(),
            },
            Verb::Page(url) => describe_page(self.frontier()?.url(at, url).await?.page.as_deref()),
            Verb::Queue(key) => {
                let report = self.frontier()?.queue(at, key).await?;
                self.oracle.check_queue(key, report.as_ref())?;
                report.map_or_else(|| "state=unknown".to_owned(), |report| describe_queue(&report))
            }
            Verb::Admit(_) | Verb::Claim(_) | Verb::Settle(_) | Verb::Restart | Verb::Crash => String::new(),
        };
        Ok(Answers::said(text))
    }

    /// Holds everything that can be asked against the oracle's books.
    pub(crate) fn audit(&mut self, at: Timestamp) -> Result<(), Breach> {
        self.tally.audits += 1;
        self.oracle.advance(at);
        guarded(|| pollster::block_on(self.ask_everything(at)))
    }

    async fn ask_everything(&self, at: Timestamp) -> Result<(), Breach> {
        let frontier = self.frontier()?;
        let identities = self.oracle.identities();
        match frontier.scan(at, &Scan::new(Query::UrlList(identities.clone()))).await?.rows {
            Rows::Urls(urls) if urls.len() == identities.len() => {
                for (identity, report) in identities.iter().zip(&urls) {
                    self.oracle
                        .check_url(*identity, report)
                        .map_err(|breach| breach.shown_by(Verb::Url(self.oracle.url_of(*identity))))?;
                }
            }
            _ => return Err(Breach::new(Rule::Report, "a list of URLs was asked for, another came")),
        }
        match frontier.scan(at, &Scan::new(Query::Leases)).await?.rows {
            Rows::Leases(leases) => self.oracle.check_leases(&leases)?,
            _ => return Err(Breach::new(Rule::Report, "leases were asked for, other rows came")),
        }
        let keys = self.oracle.keys();
        let reports = self.queues(at, Some(keys.clone())).await?;
        for key in &keys {
            let report = reports.iter().find(|report| *report.key == **key);
            self.oracle
                .check_queue(key, report)
                .map_err(|breach| breach.shown_by(Verb::Queue(key.clone())))?;
        }
        let crawl = frontier.report(at).await?;
        self.oracle.check_crawl(&crawl).map_err(|breach| breach.shown_by(Verb::Crawl(CrawlVerb::Show)))?;
        self.oracle.check_stats(&frontier.stats(at).await?)
    }
}

/// A store that panics has failed; the simulation goes on to say so.
fn guarded<T>(ask: impl FnOnce() -> Result<T, Breach>) -> Result<T, Breach> {
    catch_unwind(AssertUnwindSafe(ask)).unwrap_or_else(|panic| {
        let why = panic.downcast_ref::<String>().map(String::as_str);
        let why = why.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word");
        Err(Breach::new(Rule::Failure, format!("the store panicked: {why}")))
    })
}
