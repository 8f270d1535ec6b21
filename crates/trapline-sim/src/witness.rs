//! What clients of a real store were told while they and the store were killed, and whether it still holds: nothing acknowledged is lost,
//! nothing is invented, no lease is doubled, no old one accepted, no budget exceeded, no wait shortened.
//!
//! The witness believes only what it is told: what a client is about to do before it does it, and what it was answered after. It knows the
//! contract and neither the store nor the way to it. It reads no clock: who tells it something says between which times it happened.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use trapline_core::{Request, Timestamp};
use trapline_frontier::{
    Answer, Frontier, LeaseId, Outcome, Query, Rows, Scan, Settings, Settlement, UrlState,
};

/// So many things are asked for at once.
const CHUNK: usize = 1000;

/// The terms that all queues of a crawl are on, and how well its clock and the clients' agree.
#[derive(Clone, Copy, Debug)]
pub struct WitnessTerms {
    /// How long a lease lasts.
    pub lease: Duration,
    /// How long a queue waits after a visit.
    pub delay: Duration,
    /// What may be spent on a queue, at a cost of 1 each.
    pub budget: u64,
    /// How far the clocks may be apart.
    pub slack: Duration,
}

impl WitnessTerms {
    /// Settings of a crawl on these terms, one URL of a queue at a time.
    pub fn settings(&self) -> Settings {
        Settings {
            lease: self.lease,
            delay: self.delay,
            concurrency: 1,
            queue_budget: Some(self.budget),
            max_deliveries: 0,
            ..Settings::default()
        }
    }
}

struct Batch {
    urls: Vec<String>,
    asked: Timestamp,
    is_answered: bool,
}

/// A lease that was told.
struct Granted {
    url: String,
    queue: String,
    /// It was granted between these.
    asked: Timestamp,
    heard: Timestamp,
    /// When a settlement was begun, if one was; and whether it was answered.
    settling: Option<Timestamp>,
    is_settled: bool,
}

impl Granted {
    /// Before this its queue can grant nothing else.
    fn holds_until(&self, terms: &WitnessTerms) -> Timestamp {
        let expires = self.asked + terms.lease;
        match self.settling.map(|settling| settling + terms.delay) {
            Some(waited) if self.is_settled => waited,
            // It happened or it did not.
            Some(waited) => waited.min(expires),
            None => expires,
        }
    }

    fn may_precede(&self, other: &Self, terms: &WitnessTerms) -> bool {
        self.holds_until(terms) <= other.heard + terms.slack
    }
}

/// All that was told of one crawl.
pub struct Witness {
    terms: WitnessTerms,
    batches: BTreeMap<String, Batch>,
    leases: BTreeMap<u64, Granted>,
    /// The leases of each queue.
    queues: BTreeMap<String, Vec<u64>>,
}

/// How much was told.
#[derive(Clone, Copy, Debug, Default)]
pub struct Testimony {
    /// Batches that were begun.
    pub batches: usize,
    /// Those of them that were answered.
    pub answered: usize,
    /// Leases that were granted.
    pub leases: usize,
    /// Those of them whose settlement was answered.
    pub settled: usize,
    /// Queues that have spent their budget.
    pub spent: usize,
}

/// The link that a page has, if it has one: settlements of it carry that one.
pub fn witness_link(url: &str) -> Option<String> {
    let has_one = url.bytes().map(u32::from).sum::<u32>().is_multiple_of(2) && !url.ends_with("/link/link");
    has_one.then(|| format!("{url}/link"))
}

impl Witness {
    /// One who was told nothing yet.
    pub fn new(terms: WitnessTerms) -> Self {
        Self { terms, batches: BTreeMap::new(), leases: BTreeMap::new(), queues: BTreeMap::new() }
    }

    /// How much was told so far.
    pub fn testimony(&self) -> Testimony {
        Testimony {
            batches: self.batches.len(),
            answered: self.batches.values().filter(|batch| batch.is_answered).count(),
            leases: self.leases.len(),
            settled: self.leases.values().filter(|granted| granted.is_settled).count(),
            spent: self.queues.values().filter(|leases| leases.len() as u64 == self.terms.budget).count(),
        }
    }

    /// A client is about to admit these URLs in one step. Each has a name of its own, as the batch has.
    pub fn admitting(&mut self, batch: &str, urls: Vec<String>, asked: Timestamp) {
        let earlier = self.batches.insert(batch.to_owned(), Batch { urls, asked, is_answered: false });
        assert!(earlier.is_none(), "batch {batch} was begun twice");
    }

    /// They were all answered `added`.
    pub fn added(&mut self, batch: &str) {
        self.batches.get_mut(batch).expect("it was told when it was begun").is_answered = true;
    }

    /// A client is about to settle a lease as done, with the link its page has, if it has one.
    pub fn settling(&mut self, lease: u64, at: Timestamp) {
        self.lease(lease).settling = Some(at);
    }

    /// It was answered `done`.
    pub fn settled(&mut self, lease: u64) {
        self.lease(lease).is_settled = true;
    }

    fn lease(&mut self, lease: u64) -> &mut Granted {
        self.leases.get_mut(&lease).expect("it was told when it was granted")
    }

    /// A client was granted a lease, between asking and hearing of it.
    ///
    /// # Panics
    /// If it should not have been.
    pub fn leased(&mut self, lease: u64, queue: &str, url: &str, asked: Timestamp, heard: Timestamp) {
        let granted = Granted {
            url: url.to_owned(),
            queue: queue.to_owned(),
            asked,
            heard,
            settling: None,
            is_settled: false,
        };
        let of_queue = self.queues.entry(queue.to_owned()).or_default();
        for (other, before) in of_queue.iter().map(|other| (other, &self.leases[other])) {
            // Clients are not heard in the order in which they were answered.
            let is_apart =
                before.may_precede(&granted, &self.terms) || granted.may_precede(before, &self.terms);
            assert!(
                is_apart,
                "{url} leased as {lease} within {asked:?} to {heard:?}, while lease {other} of {queue} is live or its wait not over: \
                 granted within {:?} to {:?}, settling {:?}, settled {}",
                before.asked, before.heard, before.settling, before.is_settled
            );
            assert!(
                !(before.is_settled && before.url == url && before.heard <= asked),
                "{url} leased as {lease} although it is done"
            );
        }
        of_queue.push(lease);
        assert!(of_queue.len() as u64 <= self.terms.budget, "{queue} has spent more than its budget");
        let earlier = self.leases.insert(lease, granted);
        assert!(earlier.is_none(), "lease {lease} was granted twice");
    }

    /// Holds what was told since some time against what is there, while nobody does anything. The clock is asked before and after.
    ///
    /// # Panics
    /// If something does not hold.
    pub async fn check(&self, frontier: &Frontier, clock: impl Fn() -> Timestamp, since: Timestamp) {
        let asked = clock();
        let recent = |granted: &&Granted| granted.heard + self.terms.lease > since;
        let batches = || self.batches.iter().filter(|(_, batch)| batch.asked >= since);
        let mut urls: BTreeSet<String> = batches().flat_map(|(_, batch)| batch.urls.clone()).collect();
        for granted in self.leases.values().filter(recent) {
            urls.extend([granted.url.clone()].into_iter().chain(witness_link(&granted.url)));
        }
        let states = states(frontier, asked, urls).await;
        let answered = clock();
        for (name, batch) in batches() {
            let known = batch.urls.iter().filter(|url| states[*url] != UrlState::Unknown).count();
            let as_told = known == batch.urls.len() || known == 0 && !batch.is_answered;
            assert!(
                as_told,
                "of batch {name} (answered: {}) {known} URLs of {} are there",
                batch.is_answered,
                batch.urls.len()
            );
        }
        for granted in self.leases.values().filter(recent) {
            let (url, found) = (&granted.url, states[&granted.url]);
            assert!(
                !granted.is_settled || found == UrlState::Done,
                "{url} is not done any more but {found:?}"
            );
            let is_live =
                granted.settling.is_none() && answered + self.terms.slack < granted.asked + self.terms.lease;
            assert!(!is_live || found == UrlState::Leased, "the lease of {url} is lost: it is {found:?}");
            // A page and its links are one step.
            if let Some(link) = witness_link(url) {
                let is_there = states[&link] != UrlState::Unknown;
                assert_eq!(is_there, found == UrlState::Done, "{url} is {found:?}, its link not");
            }
        }
        let queues: BTreeSet<_> = self.leases.values().filter(recent).map(|granted| &granted.queue).collect();
        for (queue, spent) in spent(frontier, asked, queues.into_iter().cloned().collect()).await {
            let told = self.queues[&queue].len() as u64;
            assert!(
                told <= spent && spent <= self.terms.budget,
                "{queue} has spent {spent}, told {told} of {}",
                self.terms.budget
            );
        }
        self.check_old(frontier, asked, since).await;
    }

    /// An old lease changes nothing: settled before, or past its deadline.
    async fn check_old(&self, frontier: &Frontier, now: Timestamp, since: Timestamp) {
        let recent = |granted: &Granted| granted.heard + self.terms.lease > since;
        let is_old = |granted: &Granted| {
            granted.is_settled || granted.heard + self.terms.lease + self.terms.slack <= now
        };
        let old = self.leases.iter().filter(|(_, granted)| recent(granted) && is_old(granted));
        let old: Vec<_> = old.map(|(lease, _)| Settlement::new(LeaseId(*lease), Outcome::Release)).collect();
        for old in old.chunks(CHUNK) {
            let answers = frontier.settle(now, old.to_vec()).await.expect("it is answered");
            for (lease, settled) in old.iter().zip(answers) {
                assert_eq!(settled.answer, Answer::Stale, "old {:?} was accepted", lease.lease);
            }
        }
    }

    /// Whether all that is there was asked for.
    ///
    /// # Panics
    /// If it was not.
    pub async fn check_nothing_invented(&self, frontier: &Frontier, now: Timestamp) {
        let mut asked: BTreeSet<String> =
            self.batches.values().flat_map(|batch| batch.urls.clone()).collect();
        let settling = self.leases.values().filter(|granted| granted.settling.is_some());
        asked.extend(settling.filter_map(|granted| witness_link(&granted.url)));
        let query = Query::Urls { key: None, pattern: None, state: None };
        let mut scan = Scan { limit: 10 * CHUNK, ..Scan::new(query) };
        loop {
            let page = frontier.scan(now, &scan).await.expect("it is answered");
            let Rows::Urls(rows) = page.rows else { panic!("URLs were asked for") };
            for row in rows {
                let url = &row.request.expect("it is known").url;
                assert!(asked.remove(url), "{url} is there twice, or was never asked for");
            }
            scan.cursor = page.cursor;
            if scan.cursor.is_none() {
                break;
            }
        }
    }
}

async fn states(frontier: &Frontier, now: Timestamp, urls: BTreeSet<String>) -> BTreeMap<String, UrlState> {
    let urls: Vec<_> = urls.into_iter().collect();
    let mut states = BTreeMap::new();
    for urls in urls.chunks(CHUNK) {
        let identity = |url: &String| frontier.prepare(Request::get(url)).expect("it is a URL").identity;
        let query = Query::UrlList(urls.iter().map(identity).collect());
        let page = frontier.scan(now, &Scan { limit: CHUNK, ..Scan::new(query) }).await;
        let Rows::Urls(rows) = page.expect("it is answered").rows else { panic!("URLs were asked for") };
        assert_eq!(rows.len(), urls.len(), "each has a row");
        states.extend(urls.iter().cloned().zip(rows.into_iter().map(|row| row.state)));
    }
    states
}

async fn spent(frontier: &Frontier, now: Timestamp, queues: Vec<String>) -> BTreeMap<String, u64> {
    let mut spent = BTreeMap::new();
    for queues in queues.chunks(CHUNK) {
        let query = Query::Queues { keys: Some(queues.to_vec()), state: None };
        let page = frontier.scan(now, &Scan { limit: CHUNK, ..Scan::new(query) }).await;
        let Rows::Queues(rows) = page.expect("it is answered").rows else { panic!("queues were asked for") };
        spent.extend(rows.into_iter().map(|row| (row.key.to_string(), row.spent)));
        assert!(queues.iter().all(|queue| spent.contains_key(queue)), "each queue is there");
    }
    spent
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: WitnessTerms = WitnessTerms {
        lease: Duration::from_secs(20),
        delay: Duration::from_secs(10),
        budget: 3,
        slack: Duration::ZERO,
    };

    /// Tells of two leases of a queue: the first asked for at 0 and heard of at 1, settled as said; the second heard of at a time.
    fn second(settling: Option<u64>, is_settled: bool, heard: u64, url: &str) {
        let at = |secs: u64| Timestamp::from_millis(secs * 1000);
        let mut witness = Witness::new(TERMS);
        witness.leased(1, "q", "http://q/1", at(0), at(1));
        settling.into_iter().for_each(|settling| witness.settling(1, at(settling)));
        if is_settled {
            witness.settled(1);
        }
        witness.leased(2, "q", url, at(heard.saturating_sub(1)), at(heard));
    }

    #[test]
    fn leases_apart_are_believed() {
        second(None, false, 20, "http://q/1");
        second(Some(5), false, 15, "http://q/1");
        second(Some(15), false, 20, "http://q/1");
        second(Some(5), true, 15, "http://q/2");
    }

    #[test]
    fn leases_too_close_are_not() {
        for (settling, is_settled, heard, url) in [
            (None, false, 19, "http://q/1"),
            (Some(5), false, 14, "http://q/2"),
            (Some(15), true, 24, "http://q/2"),
            (Some(5), true, 15, "http://q/1"),
        ] {
            let told = std::panic::catch_unwind(|| second(settling, is_settled, heard, url));
            assert!(told.is_err(), "{settling:?} {is_settled} {heard} {url}");
        }
    }
}
