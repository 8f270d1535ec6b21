//! What a crawl asks of the world. Everything that is not a function of its arguments comes in here: time, tasks, chance,
//! responses, robots.txt, a place for results, and archives.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use trapline_core::{Request, Timestamp};
use trapline_frontier::{NoteWrite, Outcome};
use url::Url;

use crate::fetch::Visit;
use crate::line::{PageLine, SkippedLine};
use crate::response::{Response, WebRequest};

/// Time, tasks and chance.
///
/// In a simulation all three are made up, so that one seed is one history.
pub trait World: Send + Sync + 'static {
    /// What time it is.
    fn now(&self) -> Timestamp;

    /// Waits until then.
    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'static, ()>;

    /// Sees to it that a task is done, beside others.
    fn spawn(&self, task: BoxFuture<'static, ()>);

    /// A number that nobody can foresee, or that a seed decides.
    fn random(&self) -> u64;
}

/// Gets a page.
///
/// It cannot fail: what goes wrong is a response without a status.
#[async_trait]
pub trait Fetch: Send + Sync + 'static {
    /// Gets a page, follows no redirects, and takes no longer than it has been told to.
    async fn fetch(&self, request: &WebRequest) -> Response;
}

/// Knows robots.txt of every host.
#[async_trait]
pub trait Robots: Send + Sync + 'static {
    /// What robots.txt says to a URL, which may take a request to the server.
    async fn ask(&self, now: Timestamp, url: &Url) -> RobotsWord;

    /// The same, if the crawl goes by several names: what it says to the one that may do most. Defaults to the same.
    async fn ask_most_favored(&self, now: Timestamp, url: &Url) -> RobotsWord {
        self.ask(now, url).await
    }

    /// What is known of it already, by this process or by those before it. Nobody is asked for more. Defaults to nothing.
    async fn known(&self, _now: Timestamp, _url: &Url) -> Option<RobotsWord> {
        None
    }
}

/// What robots.txt says to one URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RobotsWord {
    /// Whether it may be fetched.
    pub allowed: bool,
    /// The line that decided, for people.
    pub line: Option<String>,
    /// How long robots are asked to wait between two fetches.
    pub crawl_delay: Option<Duration>,
    /// The file could not be had; until then nobody asks again.
    pub unreachable_until: Option<Timestamp>,
    /// Why it could not be had, for people.
    pub trouble: Option<String>,
    /// The same in a word: `dns_no_such_name`.
    pub error: Option<&'static str>,
    /// It could not be had because we refuse to ask such a server; that will not change.
    pub refused: bool,
    /// When the server was asked.
    pub fetched: Timestamp,
    /// Sitemaps that the file names.
    pub sitemaps: Arc<[Url]>,
}

/// Keeps pages for good.
#[async_trait]
pub trait Archive: Send + Sync + 'static {
    /// What people call it, such as `warc:pages`.
    fn name(&self) -> &str;

    /// Keeps what came of a visit, and answers when it is safe, whatever happens from then on. No URL is done before.
    ///
    /// The answer says where it is, for people and programs; None if nothing came that could be kept. An error means that nothing of it
    /// counts: the crawl pauses and tries again. It may be given up on at any time.
    async fn keep(&self, visit: &Visit) -> Result<Option<String>, ArchiveError>;

    /// Completes what is begun; nothing comes after that. Defaults to nothing to do.
    async fn close(&self) -> Result<(), ArchiveError> {
        Ok(())
    }
}

/// A page that could not be kept, and what can be done about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ArchiveError(pub String);

/// Takes the results of a crawl.
#[async_trait]
pub trait Output: Send + Sync + 'static {
    /// Takes what came of some visits, before they are settled.
    ///
    /// The answer is a note for each, to be kept in the same atomic step as the settlement: after a crash it tells how much of
    /// what was written belongs to visits that count. Empty if the output needs none.
    async fn write(&self, batch: &[Results]) -> Result<Vec<NoteWrite>, OutputError>;

    /// Is told what was settled, once it was: for logs and counts, which must not keep the crawl waiting. What was stale by
    /// then is left out. Defaults to nothing.
    fn settled(&self, _now: Timestamp, _visits: &[SettledVisit<'_>]) {}
}

/// A visit that was settled.
#[derive(Clone, Copy, Debug)]
pub struct SettledVisit<'v> {
    /// What was, or was not, fetched.
    pub request: &'v Request,
    /// The queue it was taken from.
    pub key: &'v str,
    /// What became of it.
    pub outcome: &'v Outcome,
    /// What is told of it.
    pub results: &'v Results,
}

/// What came of one visit, or of candidates outside of any.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// The visit, if there was a request.
    pub page: Option<PageLine>,
    /// What is not fetched, and why.
    pub skipped: Vec<SkippedLine>,
}

/// Results that could not be kept: the crawl stops, since nobody would know what it did.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct OutputError(pub String);

/// An output for crawls whose results nobody wants.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoOutput;

#[async_trait]
impl Output for NoOutput {
    async fn write(&self, _: &[Results]) -> Result<Vec<NoteWrite>, OutputError> {
        Ok(Vec::new())
    }
}
