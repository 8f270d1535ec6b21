//! The rig: plays acts on a real store and shows every answer to the oracle. The only place of the simulation that
//! holds a frontier.

use std::collections::BTreeMap;
use std::sync::Arc;

use trapline_core::{Identity, IdentityKey, Request, Timestamp};
use trapline_frontier::script::{
    CrawlVerb, Reopen, Settle, Verb, describe_crawl, describe_page, describe_queue,
};
use trapline_frontier::{
    Admission, Answer, Claimed, Frontier, FrontierBuilder, Lease, LeaseId, QueueState, Refusal, Settings,
    Settled, Settlement, StoreError,
};

use super::act::Act;
use super::call::{Call, Reply, steer_of};
use super::inquiry::{hold_against, queues};
use super::tally::Tally;
use crate::oracle::{Breach, Given, Oracle, Rule};
use crate::panics::caught;
use crate::stores::{Opened, Stores};

const CRAWL: &str = "sim";

/// A frontier on a store, and the oracle that watches it.
pub(crate) struct Rig {
    /// None only while the store is being opened again.
    pub(super) frontier: Option<Frontier>,
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
    /// Nobody heard the answer: the store crashed before it was given.
    pub(crate) lost: bool,
}

impl Answers {
    pub(super) fn said(text: impl Into<String>) -> Self {
        Self::texts(vec![text.into()])
    }

    /// Of a call whose answer nobody heard.
    pub(crate) fn unheard() -> Self {
        Self { lost: true, ..Self::texts(Vec::new()) }
    }

    fn texts(texts: Vec<String>) -> Self {
        Self { texts, leases: Vec::new(), claimed: None, lost: false }
    }

    pub(super) fn admitted(is_well_formed: &[bool], answers: &[Admission]) -> Self {
        let mut answers = answers.iter();
        let malformed = Admission::Refused(Refusal::Malformed);
        let text = |well: &bool| {
            let answer = if *well { answers.next().expect("what was sent was answered") } else { &malformed };
            answer.to_string()
        };
        Self::texts(is_well_formed.iter().map(text).collect())
    }

    /// A lease that was never granted is stale.
    pub(super) fn settled(places: &[Option<usize>], answers: &[Settled]) -> Self {
        let text = |place: &Option<usize>| place.map_or(Answer::Stale, |place| answers[place].answer);
        Self::texts(places.iter().map(|place| text(place).to_string()).collect())
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

    pub(super) fn frontier(&self) -> Result<&Frontier, Breach> {
        self.frontier.as_ref().ok_or_else(|| Breach::new(Rule::Failure, "the store was not opened again"))
    }

    async fn play_now(&mut self, act: &Act) -> Result<Answers, Breach> {
        self.oracle.advance(act.at);
        self.tally.commands += act.verbs.len() as u64;
        match act.verbs.as_slice() {
            [Verb::Restart] => self.restart(false).await,
            [Verb::Crash] => self.restart(true).await,
            _ => {
                let call = self.prepare(act)?;
                let reply = call.send(self.frontier()?, act.at).await?;
                self.judge(act.at, &call, reply).await
            }
        }
    }

    pub(super) async fn restart(&mut self, crash: bool) -> Result<Answers, Breach> {
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

    /// The call that an act is.
    pub(super) fn prepare<'a>(&self, act: &'a Act) -> Result<Call<'a>, Breach> {
        let first = act.verbs.first().expect("an act does something");
        Ok(match first {
            Verb::Admit(_) => {
                let mut candidates = Vec::new();
                let mut is_well_formed = Vec::new();
                for verb in &act.verbs {
                    let Verb::Admit(admit) = verb else { unreachable!("a batch is of one kind") };
                    let candidate = admit.candidate(self.frontier()?).ok();
                    is_well_formed.push(candidate.is_some());
                    candidates.extend(candidate);
                }
                Call::Admit(candidates, is_well_formed)
            }
            Verb::Settle(_) => {
                let mut settlements = Vec::new();
                let mut places = Vec::new();
                for verb in &act.verbs {
                    let Verb::Settle(settle) = verb else { unreachable!("a batch is of one kind") };
                    let settlement = self.settlement(settle)?;
                    places.push(settlement.is_some().then_some(settlements.len()));
                    settlements.extend(settlement.map(|settlement| (settle, settlement)));
                }
                Call::Settle(settlements, places)
            }
            Verb::Claim(claim) => Call::Claim(claim),
            Verb::Crawl(CrawlVerb::Show) => Call::AskCrawl,
            Verb::Queue(key) => Call::AskQueue(key),
            Verb::Url(url) => self.identity(url)?.map_or(Call::Nothing("unknown"), |_| Call::AskUrl(url)),
            Verb::Page(url) => self.identity(url)?.map_or(Call::Nothing("none"), |_| Call::AskPage(url)),
            Verb::Steer { .. } | Verb::Crawl(_) | Verb::DeadReplay(_) | Verb::Forget(_) => {
                let frontier = self.frontier()?;
                steer_of(first, |url| identity_of(frontier, url))
                    .map_or(Call::Nothing("ok"), |steer| Call::Steer(first, steer))
            }
            Verb::Restart | Verb::Crash => unreachable!("the store itself is not asked to be opened again"),
        })
    }

    /// Shows an answer to the oracle.
    pub(super) async fn judge(
        &mut self,
        at: Timestamp,
        call: &Call<'_>,
        reply: Reply,
    ) -> Result<Answers, Breach> {
        match (call, reply) {
            (Call::Admit(candidates, is_well_formed), Reply::Admitted(answers)) => {
                self.tally.count_admissions(&answers);
                self.oracle.admitted(candidates, &answers)?;
                Ok(Answers::admitted(is_well_formed, &answers))
            }
            (Call::Claim(claim), Reply::Claimed(claimed)) => {
                self.tally.count_grants(&claimed.leases);
                let asked = self.oracle.claimed(claim, &claimed)?;
                let retired = self.retired_among(at, asked).await?;
                let is_retired = |key: &str| retired.iter().any(|retired| retired == key);
                self.oracle.reached(claim, &claimed, is_retired)?;
                Ok(self.claimed(claimed))
            }
            (Call::Settle(settlements, places), Reply::Settled(answers)) => {
                if answers.len() != settlements.len() {
                    let message =
                        format!("{} leases were settled, {} answered", settlements.len(), answers.len());
                    return Err(Breach::new(Rule::Answer, message));
                }
                for ((settle, settlement), settled) in settlements.iter().zip(&answers) {
                    self.tally.count_settlement(settled);
                    self.oracle.settled(&given(settle, settlement), settled)?;
                }
                Ok(Answers::settled(places, &answers))
            }
            (Call::Steer(verb, _), Reply::Steered) => {
                let frontier = self.frontier.as_ref();
                steered(&mut self.oracle, verb, |url| identity_of(frontier?, url));
                Ok(Answers::said("ok"))
            }
            (Call::AskUrl(_), Reply::Url(report)) => {
                self.oracle.check_url(report.identity, &report)?;
                Ok(Answers::said(report.state.to_string()))
            }
            (Call::AskPage(_), Reply::Url(report)) => {
                self.oracle.check_url(report.identity, &report)?;
                Ok(Answers::said(describe_page(report.page.as_deref())))
            }
            (Call::AskQueue(key), Reply::Queue(report)) => {
                self.oracle.check_queue(key, report.as_ref())?;
                let unknown = || "state=unknown".to_owned();
                Ok(Answers::said(report.map_or_else(unknown, |report| describe_queue(&report))))
            }
            (Call::AskCrawl, Reply::Crawl(report)) => {
                self.oracle.check_crawl(&report)?;
                Ok(Answers::said(describe_crawl(&report)))
            }
            (Call::Nothing(text), Reply::Nothing) => Ok(Answers::said(*text)),
            _ => unreachable!("a call gets a reply of its kind"),
        }
    }

    /// Notes what a claim got.
    pub(super) fn claimed(&mut self, claimed: Claimed) -> Answers {
        let mut leases = Vec::new();
        for lease in &claimed.leases {
            self.newest.insert(lease.identity, self.granted.len());
            leases.push((self.granted.len(), lease.clone()));
            self.granted.push((lease.id, Arc::clone(&lease.request)));
        }
        let urls: Vec<_> = claimed.leases.iter().map(|lease| lease.request.url.as_str()).collect();
        Answers { texts: vec![urls.join(" ")], leases, claimed: Some(claimed), lost: false }
    }

    pub(super) async fn retired_among(
        &self,
        at: Timestamp,
        keys: Vec<String>,
    ) -> Result<Vec<String>, Breach> {
        if keys.is_empty() {
            return Ok(keys);
        }
        let reports = queues(self.frontier()?, at, keys).await?;
        let retired = reports.iter().filter(|report| report.state == QueueState::Retired);
        Ok(retired.map(|report| report.key.to_string()).collect())
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
        Ok(identity_of(self.frontier()?, url))
    }

    /// Holds everything that can be asked against the oracle's books.
    pub(crate) fn audit(&mut self, at: Timestamp) -> Result<(), Breach> {
        self.tally.audits += 1;
        self.oracle.advance(at);
        guarded(|| pollster::block_on(hold_against(self.frontier()?, at, &self.oracle)))
    }
}

/// What a settlement is to the oracle.
pub(super) fn given<'a>(settle: &'a Settle, settlement: &'a Settlement) -> Given<'a> {
    let Settlement { lease, delay, ref links, .. } = *settlement;
    Given { lease, outcome: &settle.outcome, delay, links }
}

/// What steering is to the oracle.
pub(super) fn steered(oracle: &mut Oracle, verb: &Verb, identity: impl Fn(&str) -> Option<Identity>) {
    let known = "a URL that could be read before can be read again";
    match verb {
        Verb::Steer { key, change } => oracle.steered(key, change),
        Verb::Crawl(crawl) => oracle.changed(crawl),
        Verb::DeadReplay(url) => oracle.replayed(identity(url).expect(known)),
        Verb::Forget(url) => oracle.forgot(identity(url).expect(known)),
        _ => unreachable!("nothing else steers"),
    }
}

pub(super) fn identity_of(frontier: &Frontier, url: &str) -> Option<Identity> {
    frontier.prepare(Request::get(url)).ok().map(|prepared| prepared.identity)
}

/// A store that panics has failed; the simulation goes on to say so.
pub(super) fn guarded<T>(ask: impl FnOnce() -> Result<T, Breach>) -> Result<T, Breach> {
    caught(ask).unwrap_or_else(|why| Err(Breach::new(Rule::Failure, format!("the store panicked: {why}"))))
}
