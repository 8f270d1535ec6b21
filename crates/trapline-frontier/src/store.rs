//! The seam to storage: one trait with six verbs, and the errors it may answer with.
//!
//! What a healthy crawl sees all day (known, stale, refused) is a value in [`crate::verbs`], never an error.

use std::time::Duration;

use async_trait::async_trait;
use trapline_core::{Candidate, Timestamp};

use crate::report::{Page, Scan, Stats};
use crate::settings::SettingError;
use crate::verbs::{Admission, Claimed, Settled, Settlement, Steer, Steered, Want};

/// The frontier's memory: every URL it knows, every queue, every open lease.
///
/// Six verbs, each one atomic step over a batch. Anything that can be computed from them belongs in
/// [`Frontier`](crate::Frontier), so it is written once and not once per store.
///
/// Time is an argument: a store that reads a clock breaks replay from a seed. A store never lets time go back:
/// an earlier `now` counts as the latest one seen. Every verb first lets happen what is due by then.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Remembers candidates, one answer each. When it returns, everything it answered survives a crash as far
    /// as the store promises to.
    async fn admit(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: &[Candidate],
    ) -> Result<Vec<Admission>, StoreError>;

    /// Grants leases: of one crawl, or of any (`None`), the crawls taking turns.
    async fn claim(&self, crawl: Option<&str>, now: Timestamp, want: &Want) -> Result<Claimed, StoreError>;

    /// Ends or renews leases, one answer each.
    async fn settle(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: Vec<Settlement>,
    ) -> Result<Vec<Settled>, StoreError>;

    /// Changes what a queue, a URL, dead letters or a crawl may do, in force for the very next claim.
    async fn steer(&self, crawl: &str, now: Timestamp, steer: Steer) -> Result<Steered, StoreError>;

    /// Lists.
    async fn scan(&self, crawl: &str, now: Timestamp, scan: &Scan) -> Result<Page, StoreError>;

    /// Counts.
    async fn stats(&self, crawl: &str, now: Timestamp) -> Result<Stats, StoreError>;

    /// What time it is, if the store has a clock that all who use it follow; None leaves the time to the caller.
    async fn now(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(None)
    }

    /// An ear for news of a crawl, to be had before a claim and waited on after one that got too little: what came in
    /// between is not missed. None if the store hears of nothing: then look again after a while.
    async fn ear(&self, _crawl: &str) -> Result<Option<Box<dyn Ear>>, StoreError> {
        Ok(None)
    }

    /// Makes durable what was answered but only buffered. Nothing to do for stores that do not buffer.
    async fn flush(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Waits for news: something that others brought may be there to be claimed.
#[async_trait]
pub trait Ear: Send {
    /// Waits until there was news since the last wait, but no longer than that. True if there was; where it is not certain
    /// to be heard, this returns sooner, so that somebody looks.
    async fn wait(&mut self, at_most: Duration) -> bool;
}

/// What a program should do about a [`StoreError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The call itself is wrong; repeating it will not help.
    Invalid,
    /// There is no such crawl.
    NotFound,
    /// The store cannot do this.
    Unsupported,
    /// Try the batch again later.
    Unavailable,
    /// Stop admitting, keep settling.
    Full,
    /// Stop and call a person.
    Corrupt,
}

/// What went wrong: for code a kind, for people a sentence that says what was attempted, on what, why it
/// failed, and what can be done.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct StoreError {
    kind: ErrorKind,
    message: String,
    for_operators: bool,
}

impl StoreError {
    /// An error of a kind, with its sentence.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), for_operators: false }
    }

    /// The same, whose sentence is about what a store stands on (servers, folders, rights) and not about what was asked of it: for who
    /// runs it, and for nobody who calls a service in front of it.
    pub fn of_operators(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { for_operators: true, ..Self::new(kind, message) }
    }

    /// Whether its sentence is for who runs the store alone.
    pub fn is_for_operators(&self) -> bool {
        self.for_operators
    }

    /// What to do about it.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// There is no such crawl.
    pub fn no_crawl(store: &str, attempted: &str, crawl: &str) -> Self {
        Self::new(
            ErrorKind::NotFound,
            format!(
                "{store} store: cannot {attempted}: there is no crawl `{}`; create it first (Frontier::builder does)",
                crawl.escape_debug()
            ),
        )
    }
}

impl From<SettingError> for StoreError {
    fn from(error: SettingError) -> Self {
        Self::new(ErrorKind::Invalid, error.to_string())
    }
}
