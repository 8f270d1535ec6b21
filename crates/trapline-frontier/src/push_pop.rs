//! Frontiers that can only push and pop, behind the same handle as all others.
//!
//! A [`PushPop`] keeps requests in some order and perhaps drops those it has seen. The adapter adds what a store
//! needs to be usable: leases with numbers and deadlines, retries at their time, giving back. All of that lives in
//! memory and is lost with the process; what was popped and not settled then is lost too. Budgets, pace, steering
//! and scans need a real store, and say so; so do statements about URLs. Notes and a settlement's delay are dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use trapline_core::{Candidate, Timestamp};

use crate::report::{CrawlReport, CrawlState, Page, Query, Rows, Scan, Stats, UrlState};
use crate::settings::Settings;
use crate::store::{ErrorKind, Store, StoreError};
use crate::verbs::{
    Admission, Answer, Claimed, CrawlChange, Lease, LeaseId, NewCrawl, Outcome, Settled, Settlement, Steer,
    Steered, Want,
};

/// The least a frontier can do.
pub trait PushPop: Send + 'static {
    /// Keeps a request. False if it was seen before and is not kept.
    fn push(&mut self, candidate: &Candidate) -> bool;
    /// Gives the next request away.
    fn pop(&mut self) -> Option<Candidate>;
    /// Takes a request back that was given away: it must be kept, seen or not.
    fn push_back(&mut self, candidate: Candidate);
    /// How many requests it keeps.
    fn len(&self) -> usize;
    /// Whether it keeps none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A [`PushPop`] as a [`Store`] with one crawl.
///
/// ```
/// use std::collections::VecDeque;
/// use trapline_core::{Candidate, Request, Timestamp};
/// use trapline_frontier::{Frontier, PushPop, PushPopStore};
///
/// /// First in, first out, and everything is new.
/// #[derive(Default)]
/// struct Fifo(VecDeque<Candidate>);
///
/// impl PushPop for Fifo {
///     fn push(&mut self, candidate: &Candidate) -> bool {
///         self.0.push_back(candidate.clone());
///         true
///     }
///     fn pop(&mut self) -> Option<Candidate> {
///         self.0.pop_front()
///     }
///     fn push_back(&mut self, candidate: Candidate) {
///         self.0.push_front(candidate);
///     }
///     fn len(&self) -> usize {
///         self.0.len()
///     }
/// }
///
/// # pollster::block_on(async {
/// let now = Timestamp::ZERO;
/// let frontier = Frontier::builder("simple").open(PushPopStore::new(Fifo::default()), now).await?;
/// frontier.admit(now, [Request::get("https://example.org/")]).await?;
/// assert_eq!(frontier.claim(now, 1).await?.leases.len(), 1);
/// # Ok::<(), trapline_frontier::StoreError>(())
/// # }).unwrap();
/// ```
pub struct PushPopStore<F> {
    state: Mutex<State<F>>,
}

struct State<F> {
    frontier: F,
    crawl: Option<(Arc<str>, NewCrawl, Timestamp)>,
    now: Timestamp,
    last_lease: u64,
    leases: BTreeMap<LeaseId, Held>,
    /// What expires when.
    deadlines: BTreeSet<(Timestamp, LeaseId)>,
    /// Retries, by their time.
    delayed: BTreeMap<(Timestamp, u64), Candidate>,
    fetched: u64,
}

struct Held {
    candidate: Candidate,
    deadline: Timestamp,
}

impl<F: PushPop> PushPopStore<F> {
    /// Wraps a frontier.
    pub fn new(frontier: F) -> Self {
        let state = State {
            frontier,
            crawl: None,
            now: Timestamp::ZERO,
            last_lease: 0,
            leases: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            delayed: BTreeMap::new(),
            fetched: 0,
        };
        Self { state: Mutex::new(state) }
    }

    /// The state of the crawl, with all that is due by `now` done.
    fn state(
        &self,
        attempted: &str,
        crawl: &str,
        now: Timestamp,
    ) -> Result<MutexGuard<'_, State<F>>, StoreError> {
        let mut state = self.lock();
        if state.crawl.as_ref().is_none_or(|(name, ..)| **name != *crawl) {
            return Err(StoreError::no_crawl("push-pop", attempted, crawl));
        }
        state.advance(now);
        Ok(state)
    }

    fn lock(&self) -> MutexGuard<'_, State<F>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: PushPop> State<F> {
    fn advance(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
        while let Some((deadline, lease)) = self.deadlines.first().copied()
            && deadline <= self.now
        {
            self.deadlines.pop_first();
            if let Some(held) = self.leases.remove(&lease) {
                self.frontier.push_back(held.candidate);
            }
        }
        while let Some(entry) = self.delayed.first_entry()
            && entry.key().0 <= self.now
        {
            let candidate = entry.remove();
            self.frontier.push_back(candidate);
        }
    }

    fn claim(&mut self, want: &Want) -> Claimed {
        let lasts =
            want.lease.unwrap_or_else(|| self.settings().map_or(Duration::from_secs(60), |its| its.lease));
        let crawl = self.crawl.as_ref().map_or_else(|| Arc::from(""), |(name, ..)| Arc::clone(name));
        let mut claimed = Claimed::default();
        while claimed.leases.len() < want.urls
            && let Some(candidate) = self.frontier.pop()
        {
            self.last_lease += 1;
            let (id, deadline) = (LeaseId(self.last_lease), self.now + lasts);
            claimed.leases.push(Lease {
                id,
                crawl: Arc::clone(&crawl),
                key: Arc::clone(&candidate.key),
                identity: candidate.identity,
                request: Arc::clone(&candidate.request),
                deadline,
                delivery: 1,
                retries: 0,
                cost: candidate.cost.unwrap_or(1),
                page: None,
            });
            self.deadlines.insert((deadline, id));
            self.leases.insert(id, Held { candidate, deadline });
        }
        if claimed.leases.len() < want.urls {
            let expiry = self.deadlines.first().map(|(deadline, _)| *deadline);
            let retry = self.delayed.first_key_value().map(|((at, _), _)| *at);
            claimed.next = [expiry, retry].into_iter().flatten().min();
        }
        claimed.exhausted = self.is_exhausted();
        claimed
    }

    fn settle(&mut self, settlement: &Settlement) -> Settled {
        let Some(mut held) = self.leases.remove(&settlement.lease) else {
            return Settled { answer: Answer::Stale, links: Vec::new() };
        };
        self.deadlines.remove(&(held.deadline, settlement.lease));
        let answer = match &settlement.outcome {
            Outcome::Done { next, .. } => {
                self.fetched += 1;
                if let Some(at) = next {
                    self.delayed.insert((*at, settlement.lease.0), held.candidate);
                }
                Answer::Done
            }
            Outcome::Retry { at } => {
                self.delayed.insert((*at, settlement.lease.0), held.candidate);
                Answer::Retry
            }
            Outcome::Release => {
                self.frontier.push_back(held.candidate);
                Answer::Released
            }
            Outcome::Dead { .. } => Answer::Dead,
            Outcome::Disregard { .. } => Answer::Disregarded,
            Outcome::Renew { lease } => {
                held.deadline = self.now + *lease;
                self.deadlines.insert((held.deadline, settlement.lease));
                self.leases.insert(settlement.lease, held);
                Answer::Renewed
            }
        };
        let links = settlement.links.iter().map(|link| self.admit(link)).collect();
        Settled { answer, links }
    }

    fn admit(&mut self, candidate: &Candidate) -> Admission {
        if candidate.dont_filter {
            self.frontier.push_back(candidate.clone());
            return Admission::Added;
        }
        if self.frontier.push(candidate) { Admission::Added } else { Admission::Known }
    }

    fn settings(&self) -> Option<&Settings> {
        self.crawl.as_ref().map(|(_, new, _)| &new.settings)
    }

    fn report(&self) -> Option<CrawlReport> {
        let (name, new, started) = self.crawl.as_ref()?;
        Some(CrawlReport {
            name: Arc::clone(name),
            key: new.key,
            partitions: 1,
            settings: new.settings.clone(),
            started: *started,
            state: CrawlState::Running,
            exhausted: self.is_exhausted(),
        })
    }

    fn is_exhausted(&self) -> bool {
        self.frontier.is_empty() && self.leases.is_empty() && self.delayed.is_empty()
    }
}

#[async_trait]
impl<F: PushPop> Store for PushPopStore<F> {
    async fn admit(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: &[Candidate],
    ) -> Result<Vec<Admission>, StoreError> {
        if batch.iter().any(|candidate| candidate.statement.is_some()) {
            return Err(unsupported("take a statement"));
        }
        let mut state = self.state("admit", crawl, now)?;
        Ok(batch.iter().map(|candidate| state.admit(candidate)).collect())
    }

    async fn claim(&self, crawl: Option<&str>, now: Timestamp, want: &Want) -> Result<Claimed, StoreError> {
        let bounded = want.queues.is_some()
            || want.per_queue.is_some()
            || want.keys.is_some()
            || !want.except.is_empty()
            || want.partitions.is_some();
        if bounded {
            return Err(unsupported("claim by queue"));
        }
        let name =
            crawl.map(Arc::from).or_else(|| self.lock().crawl.as_ref().map(|(name, ..)| Arc::clone(name)));
        let Some(name) = name else { return Ok(Claimed { exhausted: true, ..Claimed::default() }) };
        Ok(self.state("claim", &name, now)?.claim(want))
    }

    async fn settle(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: Vec<Settlement>,
    ) -> Result<Vec<Settled>, StoreError> {
        let mut state = self.state("settle", crawl, now)?;
        Ok(batch.iter().map(|settlement| state.settle(settlement)).collect())
    }

    async fn steer(&self, crawl: &str, now: Timestamp, steer: Steer) -> Result<Steered, StoreError> {
        let Steer::Crawl(CrawlChange::Create(new)) = steer else { return Err(unsupported("steer")) };
        let mut state = self.lock();
        match &state.crawl {
            None => state.crawl = Some((Arc::from(crawl), new, now)),
            Some((name, ..)) if **name == *crawl => return Ok(Steered::default()),
            Some((name, ..)) => {
                let message = format!("a push-pop frontier holds one crawl, and this one holds `{name}`");
                return Err(StoreError::new(ErrorKind::Unsupported, message));
            }
        }
        Ok(Steered { affected: 1, job: None })
    }

    async fn scan(&self, crawl: &str, now: Timestamp, scan: &Scan) -> Result<Page, StoreError> {
        let rows = match scan.query {
            Query::Crawls => Rows::Crawls(self.lock().report().into_iter().collect()),
            Query::Crawl => {
                let report = self.state("scan", crawl, now)?.report();
                let report = report.ok_or_else(|| StoreError::no_crawl("push-pop", "scan", crawl))?;
                Rows::Crawl(Box::new(report))
            }
            _ => {
                drop(self.state("scan", crawl, now)?);
                return Err(unsupported("scan"));
            }
        };
        Ok(Page { rows, cursor: None })
    }

    async fn stats(&self, crawl: &str, now: Timestamp) -> Result<Stats, StoreError> {
        let state = self.state("count", crawl, now)?;
        let mut stats = Stats { fetched: state.fetched, granted: state.last_lease, ..Stats::default() };
        stats.urls[UrlState::Pending as usize] = (state.frontier.len() + state.delayed.len()) as u64;
        stats.urls[UrlState::Leased as usize] = state.leases.len() as u64;
        Ok(stats)
    }
}

fn unsupported(attempted: &str) -> StoreError {
    let message = format!(
        "push-pop store: cannot {attempted}: a frontier that can only push and pop has no queues to speak of; use a \
         store such as memory:"
    );
    StoreError::new(ErrorKind::Unsupported, message)
}

#[cfg(test)]
mod tests {
    use trapline_core::{IdentityKey, Request};

    use super::*;
    use crate::frontier::Frontier;
    use crate::verbs::QueueChange;

    /// Last in, first out, with a seen set.
    #[derive(Default)]
    struct Lifo(Vec<Candidate>, BTreeSet<trapline_core::Identity>);

    impl PushPop for Lifo {
        fn push(&mut self, candidate: &Candidate) -> bool {
            let new = self.1.insert(candidate.identity);
            if new {
                self.0.push(candidate.clone());
            }
            new
        }
        fn pop(&mut self) -> Option<Candidate> {
            self.0.pop()
        }
        fn push_back(&mut self, candidate: Candidate) {
            self.0.push(candidate);
        }
        fn len(&self) -> usize {
            self.0.len()
        }
    }

    fn open() -> Frontier {
        let builder = Frontier::builder("c").key(IdentityKey::from_seed(1));
        pollster::block_on(builder.open(PushPopStore::new(Lifo::default()), Timestamp::ZERO)).unwrap()
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn claim(frontier: &Frontier, now: u64) -> Vec<Lease> {
        pollster::block_on(frontier.claim(at(now), 10)).unwrap().leases
    }

    #[test]
    fn what_is_not_settled_comes_back() {
        let frontier = open();
        let requests = ["http://a.example/1", "http://a.example/2", "http://a.example/1"].map(Request::get);
        let answers = pollster::block_on(frontier.admit(at(0), requests)).unwrap();
        assert_eq!(answers, [Admission::Added, Admission::Added, Admission::Known]);
        let first = claim(&frontier, 0);
        assert_eq!(first.len(), 2);
        assert_eq!(claim(&frontier, 59).len(), 0);
        let again = claim(&frontier, 60);
        assert_eq!(again.len(), 2);
        let settle = |now, lease: &Lease, outcome| {
            let settlement = Settlement::new(lease.id, outcome);
            pollster::block_on(frontier.settle(at(now), vec![settlement])).unwrap()[0].answer
        };
        assert_eq!(settle(61, &first[0], Outcome::done()), Answer::Stale);
        assert_eq!(settle(61, &again[0], Outcome::Retry { at: at(70) }), Answer::Retry);
        assert_eq!(settle(61, &again[1], Outcome::Release), Answer::Released);
        let released = claim(&frontier, 61);
        assert_eq!(released[0].request.url, again[1].request.url);
        assert_eq!(
            settle(61, &released[0], Outcome::Renew { lease: Duration::from_secs(100) }),
            Answer::Renewed
        );
        assert_eq!(claim(&frontier, 69).len(), 0);
        assert_eq!(claim(&frontier, 70)[0].request.url, again[0].request.url);
        assert_eq!(settle(160, &released[0], Outcome::done()), Answer::Done);
    }

    #[test]
    fn its_one_crawl_is_listed() {
        let store = Arc::new(PushPopStore::new(Lifo::default()));
        let names = || {
            let crawls = pollster::block_on(crate::frontier::crawls(&*store, at(0))).unwrap();
            crawls.into_iter().map(|crawl| crawl.name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names(), [""; 0]);
        let attach = Frontier::builder("c").attach(store.clone(), at(0));
        assert_eq!(pollster::block_on(attach).err().map(|error| error.kind()), Some(ErrorKind::NotFound));
        pollster::block_on(Frontier::builder("c").open_shared(store.clone(), at(0))).unwrap();
        assert_eq!(names(), ["c"]);
    }

    #[test]
    fn what_it_cannot_do_it_says() {
        let frontier = open();
        let error =
            pollster::block_on(frontier.steer_queue(at(0), "a.example", QueueChange::Retire)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert_eq!(
            error.to_string(),
            "push-pop store: cannot steer: a frontier that can only push and pop has no queues to speak of; use a \
             store such as memory:"
        );
    }
}
