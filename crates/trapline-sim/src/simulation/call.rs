//! An act as calls of a frontier have it: prepared before it is sent, so that it can be sent, or only begun.

use trapline_core::{Candidate, Timestamp};
use trapline_frontier::script::{Claim, CrawlVerb, Settle, Steering, Verb};
use trapline_frontier::{
    Admission, Claimed, CrawlReport, DeadChange, DeadLetters, Frontier, QueueReport, Settled, Settlement,
    Steer, StoreError, UrlChange, UrlReport,
};

use super::act::Act;

/// One call of a frontier.
pub(super) enum Call<'a> {
    /// Whatever is well-formed of a batch of candidates; which of them are.
    Admit(Vec<Candidate>, Vec<bool>),
    Claim(&'a Claim),
    /// Whatever lease was granted of a batch of settlements; for each of the batch its place, None if there is none.
    Settle(Vec<(&'a Settle, Settlement)>, Vec<Option<usize>>),
    Steer(&'a Verb, Steer),
    AskUrl(&'a str),
    AskPage(&'a str),
    AskQueue(&'a str),
    AskCrawl,
    /// Nothing can be sent, because no URL could be read.
    Nothing(&'static str),
}

/// What came back.
pub(super) enum Reply {
    Admitted(Vec<Admission>),
    Claimed(Claimed),
    Settled(Vec<Settled>),
    Steered,
    Url(UrlReport),
    Queue(Option<QueueReport>),
    Crawl(CrawlReport),
    Nothing,
}

impl Call<'_> {
    pub(super) async fn send(&self, frontier: &Frontier, at: Timestamp) -> Result<Reply, StoreError> {
        Ok(match self {
            Self::Admit(candidates, _) => Reply::Admitted(frontier.admit_candidates(at, candidates).await?),
            Self::Claim(claim) => Reply::Claimed(frontier.claim(at, *claim).await?),
            Self::Settle(settlements, _) => {
                let batch = settlements.iter().map(|(_, settlement)| settlement.clone()).collect();
                Reply::Settled(frontier.settle(at, batch).await?)
            }
            Self::Steer(_, steer) => {
                frontier.steer(at, steer.clone()).await?;
                Reply::Steered
            }
            Self::AskUrl(url) | Self::AskPage(url) => Reply::Url(frontier.url(at, url).await?),
            Self::AskQueue(key) => Reply::Queue(frontier.queue(at, key).await?),
            Self::AskCrawl => Reply::Crawl(frontier.report(at).await?),
            Self::Nothing(_) => Reply::Nothing,
        })
    }
}

/// What an operator's line is as a verb of the store, if it steers; None also where its URL cannot be read.
pub(super) fn steer_of(
    verb: &Verb,
    identity: impl Fn(&str) -> Option<trapline_core::Identity>,
) -> Option<Steer> {
    match verb {
        Verb::Steer { key, change } => Some(Steer::Queue(key.clone(), change.into())),
        Verb::Crawl(crawl) => crawl.change().map(Steer::Crawl),
        Verb::DeadReplay(url) => {
            identity(url).map(|identity| Steer::Dead(DeadLetters::Url(identity), DeadChange::Replay))
        }
        Verb::Forget(url) => identity(url).map(|identity| Steer::Url(identity, UrlChange::Forget)),
        _ => None,
    }
}

impl Act {
    /// Whether it can be told afterwards, by asking everything there is, whether it was done: then a crash may cut it short.
    pub(super) fn leaves_traces(&self) -> bool {
        self.verbs.iter().all(|verb| match verb {
            Verb::Admit(admit) => admit.statement.is_none(),
            // Leases for no time have ended before anybody can ask for them.
            Verb::Claim(claim) => claim.lease.is_none_or(|lease| !lease.is_zero()),
            Verb::Settle(_) | Verb::Forget(_) | Verb::DeadReplay(_) => true,
            Verb::Steer { change, .. } => matches!(change, Steering::Purge | Steering::Delete),
            Verb::Crawl(crawl) => !matches!(crawl, CrawlVerb::Show),
            Verb::Url(_) | Verb::Page(_) | Verb::Queue(_) | Verb::Restart | Verb::Crash => false,
        })
    }
}
