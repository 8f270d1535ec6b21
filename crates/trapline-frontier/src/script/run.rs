//! Playing trace scripts on a store, and comparing what comes back.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use trapline_core::{Identity, IdentityKey, PrepareError, Request, Timestamp};

use super::meaning::{describe_crawl, describe_page, describe_queue};
use super::{Admit, Claim, CrawlVerb, Script, Settle, Step, Verb};
use crate::frontier::Frontier;
use crate::settings::{SettingError, Settings};
use crate::store::{ErrorKind, Store, StoreError};
use crate::verbs::{Admission, Answer, DeadChange, DeadLetters, LeaseId, Refusal, Steer, UrlChange};

/// How a store is closed and opened again, for scripts that do so.
#[async_trait]
pub trait Reopen: Send {
    /// Closes the store in good order and opens it again.
    async fn restart(&mut self) -> Result<Arc<dyn Store>, StoreError>;
    /// Opens the store again as if its process had been killed.
    async fn crash(&mut self) -> Result<Arc<dyn Store>, StoreError>;
}

/// Why a script could not be played to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A setting does not fit.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store keeps nothing.
    #[error("this store keeps nothing, so a script with `{0}` cannot run on it")]
    KeepsNothing(&'static str),
}

/// What came of one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// What came back is what was expected.
    Same,
    /// Nothing was expected in particular.
    NotCompared,
    /// Something else came back.
    Different,
}

/// Plays the whole of a script in a fresh crawl and tells `watch` of every step what came back. Answers how many
/// steps differed.
pub async fn run(
    script: &Script,
    store: Arc<dyn Store>,
    reopen: Option<Box<dyn Reopen>>,
    watch: impl FnMut(&Step, &str, &Verdict),
) -> Result<usize, RunError> {
    let player = Player::start(store, "trace", &script.settings).await?;
    run_by(player, script, reopen, watch).await
}

/// As [`run`], in the crawl that a player has started.
pub async fn run_by(
    mut player: Player,
    script: &Script,
    mut reopen: Option<Box<dyn Reopen>>,
    mut watch: impl FnMut(&Step, &str, &Verdict),
) -> Result<usize, RunError> {
    let mut different = 0;
    for step in &script.steps {
        let answer = match (&step.verb, &mut reopen) {
            (Verb::Restart, Some(reopen)) => {
                let left = player.leave();
                player = left.resume(reopen.restart().await?).await?;
                "ok".to_owned()
            }
            (Verb::Crash, Some(reopen)) => {
                let left = player.leave();
                player = left.resume(reopen.crash().await?).await?;
                "ok".to_owned()
            }
            (verb, _) => player.play(step.at, verb).await?,
        };
        let verdict = step.judge(&answer);
        different += usize::from(verdict == Verdict::Different);
        watch(step, &answer, &verdict);
    }
    Ok(different)
}

impl Step {
    /// Compares what came back with what was expected. Queues, pages and crawls may be described in part.
    pub fn judge(&self, answer: &str) -> Verdict {
        let Some(expected) = &self.expected else { return Verdict::NotCompared };
        let same = match self.verb {
            Verb::Queue(_) | Verb::Page(_) | Verb::Crawl(CrawlVerb::Show) if !expected.is_empty() => {
                let pairs: Vec<_> = answer.split_whitespace().collect();
                expected.split_whitespace().all(|pair| pairs.contains(&pair))
            }
            _ => expected.split_whitespace().eq(answer.split_whitespace()),
        };
        if same { Verdict::Same } else { Verdict::Different }
    }

    /// The line with what really came back, and what was expected if that is something else.
    pub fn describe(&self, answer: &str) -> String {
        let played = Step { expected: Some(answer.to_owned()), ..self.clone() };
        match (self.judge(answer), &self.expected) {
            (Verdict::Different, Some(expected)) => {
                format!("{played}   # line {}: expected `{expected}`", self.line)
            }
            _ => played.to_string(),
        }
    }
}

/// A crawl on which the verbs of a script are played one by one.
pub struct Player {
    frontier: Frontier,
    memory: Memory,
}

/// A player that has left its store, so that the store can be closed: nobody holds it on behalf of the script.
pub struct LeftPlayer {
    crawl: String,
    memory: Memory,
}

/// What a script can refer to later.
#[derive(Default)]
struct Memory {
    /// The leases in the order of their grants, with what they were for.
    granted: Vec<(LeaseId, Arc<Request>)>,
    /// Which of them is the newest of each URL.
    newest: BTreeMap<Identity, usize>,
}

impl Player {
    /// Starts a fresh crawl of one partition with these settings.
    pub async fn start(
        store: Arc<dyn Store>,
        crawl: &str,
        settings: &[(String, String)],
    ) -> Result<Self, RunError> {
        let mut crawl_settings = Settings::default();
        for (name, value) in settings {
            crawl_settings.set(name, value)?;
        }
        // A fixed key: the same script must give the same history.
        let builder =
            Frontier::builder(crawl).settings(crawl_settings).partitions(1).key(IdentityKey::from_seed(0));
        let frontier = builder.open_shared(store, Timestamp::ZERO).await?;
        Ok(Self { frontier, memory: Memory::default() })
    }

    /// Leaves the store, to go on with it once it was closed and opened again.
    pub fn leave(self) -> LeftPlayer {
        LeftPlayer { crawl: self.frontier.crawl().to_owned(), memory: self.memory }
    }

    /// The crawl it is played on, to be asked what a script cannot.
    pub fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    /// Plays one verb and answers what came back, as a script writes it. Not `restart` and `crash`: whoever can
    /// do those [leaves](Player::leave) and [resumes](LeftPlayer::resume).
    pub async fn play(&mut self, at: Timestamp, verb: &Verb) -> Result<String, RunError> {
        let frontier = &self.frontier;
        Ok(match verb {
            Verb::Admit(admit) => self.admit(at, admit).await?.to_string(),
            Verb::Claim(claim) => self.claim(at, claim).await?,
            Verb::Settle(settle) => self.settle(at, settle).await?,
            Verb::Steer { key, change } => ok(frontier.steer_queue(at, key, change.into()).await)?,
            Verb::Crawl(crawl) => match crawl.change() {
                Some(change) => ok(frontier.steer_crawl(at, change).await)?,
                None => describe_crawl(&frontier.report(at).await?),
            },
            Verb::DeadReplay(url) => match self.identity(url) {
                Ok(identity) => {
                    let dead = DeadLetters::Url(identity);
                    ok(frontier.steer(at, Steer::Dead(dead, DeadChange::Replay)).await)?
                }
                Err(error) => format!("error: {error}"),
            },
            Verb::Forget(url) => match self.identity(url) {
                Ok(identity) => ok(frontier.steer(at, Steer::Url(identity, UrlChange::Forget)).await)?,
                Err(error) => format!("error: {error}"),
            },
            Verb::Url(url) => match self.identity(url) {
                Ok(_) => frontier.url(at, url).await?.state.to_string(),
                Err(_) => "unknown".to_owned(),
            },
            Verb::Page(url) => match self.identity(url) {
                Ok(_) => describe_page(frontier.url(at, url).await?.page.as_deref()),
                Err(_) => describe_page(None),
            },
            Verb::Queue(key) => match frontier.queue(at, key).await? {
                Some(queue) => describe_queue(&queue),
                None => "state=unknown".to_owned(),
            },
            Verb::Restart => return Err(RunError::KeepsNothing("restart")),
            Verb::Crash => return Err(RunError::KeepsNothing("crash")),
        })
    }

    fn identity(&self, url: &str) -> Result<Identity, PrepareError> {
        Ok(self.frontier.prepare(Request::get(url))?.identity)
    }

    async fn admit(&self, at: Timestamp, admit: &Admit) -> Result<Admission, RunError> {
        let Ok(candidate) = admit.candidate(&self.frontier) else {
            return Ok(Admission::Refused(Refusal::Malformed));
        };
        let mut answers = self.frontier.admit_candidates(at, &[candidate]).await?;
        answers.pop().ok_or_else(|| no_answer("admit").into())
    }

    async fn claim(&mut self, at: Timestamp, claim: &Claim) -> Result<String, RunError> {
        let leases = self.frontier.claim(at, claim).await?.leases;
        for lease in &leases {
            self.memory.newest.insert(lease.identity, self.memory.granted.len());
            self.memory.granted.push((lease.id, Arc::clone(&lease.request)));
        }
        let urls: Vec<_> = leases.iter().map(|lease| lease.request.url.as_str()).collect();
        Ok(urls.join(" "))
    }

    async fn settle(&self, at: Timestamp, settle: &Settle) -> Result<String, RunError> {
        let Memory { granted, newest } = &self.memory;
        let number = match settle.lease {
            Some(number) => Some(number - 1),
            None => self.identity(&settle.url).ok().and_then(|identity| newest.get(&identity).copied()),
        };
        // A lease never granted is as good as one long settled.
        let Some((lease, request)) = number.and_then(|number| granted.get(number)) else {
            return Ok(Answer::Stale.to_string());
        };
        let settlement = settle.settlement(*lease, request, &self.frontier);
        let answers = self.frontier.settle(at, vec![settlement]).await?;
        answers.first().map(|settled| settled.answer.to_string()).ok_or_else(|| no_answer("settle").into())
    }
}

impl LeftPlayer {
    /// Goes on where the player left, on the same store opened again.
    pub async fn resume(self, store: Arc<dyn Store>) -> Result<Player, RunError> {
        let frontier = Frontier::builder(self.crawl).open_shared(store, Timestamp::ZERO).await?;
        Ok(Player { frontier, memory: self.memory })
    }
}

/// `ok`, or what the operator did wrong.
fn ok<T>(result: Result<T, StoreError>) -> Result<String, StoreError> {
    match result {
        Ok(_) => Ok("ok".to_owned()),
        Err(error) if error.kind() == ErrorKind::Invalid => Ok(format!("error: {error}")),
        Err(error) => Err(error),
    }
}

fn no_answer(verb: &str) -> StoreError {
    StoreError::new(
        ErrorKind::Corrupt,
        format!("the store did not answer {verb}; this is a bug in the store"),
    )
}
