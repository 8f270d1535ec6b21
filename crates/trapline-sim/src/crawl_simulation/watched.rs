//! A store under the eyes of an oracle: it hands every verb on, and shows the oracle what was asked and what was answered.
//!
//! Only for stores that answer at once, like the one in memory: where two calls overlap, nobody could say which came first.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use trapline_core::{Candidate, Timestamp};
use trapline_frontier::script::{Claim, CrawlVerb, SettleAs};
use trapline_frontier::{
    Admission, Claimed, CrawlChange, Outcome, Page, Query, QueueState, Rows, Scan, Settled, Settlement,
    Stats, Steer, Steered, Store, StoreError, UrlChange, Want,
};

use crate::oracle::{Breach, Given, Oracle, Rule};

/// A store that is watched.
pub(super) struct Watched {
    inner: Arc<dyn Store>,
    watch: Mutex<Watch>,
}

/// What was seen.
pub(super) struct Watch {
    pub(super) oracle: Oracle,
    /// What was asked and answered, a line each.
    pub(super) history: Vec<String>,
    /// The first breach of the contract.
    pub(super) breach: Option<Breach>,
}

impl Watch {
    fn judge(&mut self, judged: Result<(), Breach>) {
        if let Err(breach) = judged
            && self.breach.is_none()
        {
            self.breach = Some(breach);
        }
    }

    fn note(&mut self, now: Timestamp, line: impl std::fmt::Display) {
        self.history.push(format!("{now} {line}"));
    }
}

impl Watched {
    pub(super) fn new(inner: Arc<dyn Store>, oracle: Oracle) -> Self {
        Self { inner, watch: Mutex::new(Watch { oracle, history: Vec::new(), breach: None }) }
    }

    pub(super) fn watch(&self) -> MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn at(&self, now: Timestamp) -> MutexGuard<'_, Watch> {
        let mut watch = self.watch();
        watch.oracle.advance(now);
        watch
    }

    /// Which of some queues are retired.
    async fn retired(
        &self,
        crawl: &str,
        now: Timestamp,
        keys: Vec<String>,
    ) -> Result<Vec<String>, StoreError> {
        if keys.is_empty() {
            return Ok(keys);
        }
        let scan = Scan::new(Query::Queues { keys: Some(keys), state: None });
        let Rows::Queues(queues) = self.inner.scan(crawl, now, &scan).await?.rows else {
            return Ok(Vec::new());
        };
        let retired = queues.into_iter().filter(|queue| queue.state == QueueState::Retired);
        Ok(retired.map(|queue| queue.key.to_string()).collect())
    }
}

#[async_trait]
impl Store for Watched {
    async fn admit(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: &[Candidate],
    ) -> Result<Vec<Admission>, StoreError> {
        let answers = self.inner.admit(crawl, now, batch).await?;
        let mut watch = self.at(now);
        let judged = watch.oracle.admitted(batch, &answers);
        watch.judge(judged);
        let mut line = "admit".to_owned();
        for (candidate, answer) in batch.iter().zip(&answers) {
            let _ = write!(line, " {} {answer}", candidate.request.url);
        }
        watch.note(now, line);
        Ok(answers)
    }

    async fn claim(&self, crawl: Option<&str>, now: Timestamp, want: &Want) -> Result<Claimed, StoreError> {
        let claimed = self.inner.claim(crawl, now, want).await?;
        let claim = claim_of(want);
        let asked = {
            let mut watch = self.at(now);
            let urls: Vec<_> = claimed.leases.iter().map(|lease| lease.request.url.as_str()).collect();
            watch.note(now, format_args!("claim {} -> {}", want.urls, urls.join(" ")));
            match watch.oracle.claimed(&claim, &claimed) {
                Ok(asked) => asked,
                Err(breach) => {
                    watch.judge(Err(breach));
                    return Ok(claimed);
                }
            }
        };
        let retired = self.retired(crawl.unwrap_or_default(), now, asked).await?;
        let mut watch = self.watch();
        let judged =
            watch.oracle.reached(&claim, &claimed, |key| retired.iter().any(|retired| retired == key));
        watch.judge(judged);
        Ok(claimed)
    }

    async fn settle(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: Vec<Settlement>,
    ) -> Result<Vec<Settled>, StoreError> {
        let answers = self.inner.settle(crawl, now, batch.clone()).await?;
        let mut watch = self.at(now);
        if answers.len() != batch.len() {
            let message = format!("{} leases were settled, {} answered", batch.len(), answers.len());
            watch.judge(Err(Breach::new(Rule::Answer, message)));
        }
        for (settlement, settled) in batch.iter().zip(&answers) {
            let outcome = outcome_of(&settlement.outcome);
            let Settlement { lease, delay, ref links, .. } = *settlement;
            let judged = watch.oracle.settled(&Given { lease, outcome: &outcome, delay, links }, settled);
            watch.judge(judged);
            let links = links.len();
            watch.note(now, format_args!("settle {} {delay:?} {links} links -> {}", lease.0, settled.answer));
        }
        Ok(answers)
    }

    async fn steer(&self, crawl: &str, now: Timestamp, steer: Steer) -> Result<Steered, StoreError> {
        let steered = self.inner.steer(crawl, now, steer.clone()).await?;
        let mut watch = self.at(now);
        match steer {
            Steer::Crawl(CrawlChange::Pause) => watch.oracle.changed(&CrawlVerb::Pause),
            Steer::Crawl(CrawlChange::Resume) => watch.oracle.changed(&CrawlVerb::Resume),
            Steer::Crawl(CrawlChange::Create(_) | CrawlChange::Note(_)) => {}
            Steer::Url(identity, UrlChange::Forget) => watch.oracle.forgot(identity),
            other => {
                let message = format!("a crawl steered in a way that nobody expects of it: {other:?}");
                watch.judge(Err(Breach::new(Rule::Failure, message)));
            }
        }
        Ok(steered)
    }

    async fn scan(&self, crawl: &str, now: Timestamp, scan: &Scan) -> Result<Page, StoreError> {
        drop(self.at(now));
        self.inner.scan(crawl, now, scan).await
    }

    async fn stats(&self, crawl: &str, now: Timestamp) -> Result<Stats, StoreError> {
        drop(self.at(now));
        self.inner.stats(crawl, now).await
    }
}

fn claim_of(want: &Want) -> Claim {
    let Want { urls, lease, queues, per_queue, min_queues, keys, except, partitions: _ } = want.clone();
    Claim { urls, per_queue, queues, min_queues, keys, except, lease }
}

fn outcome_of(outcome: &Outcome) -> SettleAs {
    match outcome.clone() {
        Outcome::Done { visit, next } => SettleAs::Done { visit, next },
        Outcome::Retry { at } => SettleAs::Retry { at },
        Outcome::Release => SettleAs::Release,
        Outcome::Dead { reason } => SettleAs::Dead { reason },
        Outcome::Disregard { .. } => SettleAs::Disregard,
        Outcome::Renew { lease } => SettleAs::Renew { lease },
    }
}
