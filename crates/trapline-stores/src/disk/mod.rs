//! The disk store: the engine plus a log of the commands it was given.
//!
//! The engine is deterministic, so the log need not say what a command changed: replaying the commands at their times
//! gives the same state. What it answered is in the log as a number, and compared when it is replayed.
//!
//! One verb is one record, whatever it touches. A verb is done by the engine and written to the log under one lock, so
//! that both have the same order; it is answered when its record is on disk. What is absent: the files themselves
//! ([`files`]), and everything that is known of scheduling.

mod answers;
mod command;
mod commit;
pub mod files;
mod folder;
mod log;
mod message;
mod options;
mod record;
mod recovery;
mod reopen;
mod segment;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use async_trait::async_trait;
use trapline_core::{Candidate, Timestamp};
use trapline_frontier::{
    Admission, Claimed, CrawlChange, Engine, ErrorKind, Page, Recovered, Scan, Settled, Settlement, Stats,
    Steer, Steered, Store, StoreError, UrlState, Want,
};

use commit::{Commit, Failure};
use files::{Files, Folder};
use folder::Held;
use log::{Log, NoRoom, Urgency};
use record::Draft;

pub use options::{DiskOptions, Durability};
pub use reopen::DiskReopen;

/// A frontier on disk. One process owns its folder at a time.
///
/// Dropping it closes it in good order.
pub struct DiskStore {
    /// Held while the engine does a verb and its record is written, never while waiting for the disk.
    inner: Mutex<Inner>,
    commit: Arc<Commit>,
    durability: Durability,
    /// What each crawl had when the store was opened.
    recovered: BTreeMap<Arc<str>, Recovered>,
    /// What is told of crawls that came later.
    opened: Recovered,
    /// The thread that syncs, until the store is closed.
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Inner {
    engine: Engine,
    log: Log,
    /// The last record that was a command; those after it only let time pass.
    last_command: u64,
    is_closed: bool,
    /// The folder is ours as long as this is held. None with files of a test.
    held: Option<Held>,
}

/// The largest batch that is taken, as bytes of the log.
const BATCH_BYTES_MAX: u64 = 1 << 30;

impl DiskStore {
    /// Opens the store in a folder, and makes one there if there is none.
    ///
    /// # Errors
    /// If another process holds the folder, if it is no store's, if it was written by a newer version, or if its log is
    /// damaged. The message says which, where, and what can be done.
    pub fn open(path: impl AsRef<Path>, options: &DiskOptions) -> Result<Self, StoreError> {
        let held = folder::hold(path.as_ref())?;
        let files: Arc<dyn Files> = Arc::new(Folder::new(path.as_ref().join(folder::SEGMENTS)));
        Self::open_held(&files, options, Some(held))
    }

    /// Opens the store in files of another kind, whose owner makes sure that nobody else does. For tests.
    ///
    /// # Errors
    /// As [`DiskStore::open`].
    pub fn open_on(files: impl Files, options: &DiskOptions) -> Result<Self, StoreError> {
        let files: Arc<dyn Files> = Arc::new(files);
        Self::open_held(&files, options, None)
    }

    fn open_held(
        files: &Arc<dyn Files>,
        options: &DiskOptions,
        held: Option<Held>,
    ) -> Result<Self, StoreError> {
        let started = Instant::now();
        let DiskOptions { durability, segment_bytes } = *options;
        let segment_bytes = segment_bytes.max(DiskOptions::SEGMENT_BYTES_MIN);
        let recovery = recovery::recover(files, segment_bytes, draw_number)?;
        let recovery::Recovery { engine, log, last, bytes_cut } = recovery;
        let opened =
            Recovered { log_position: last, bytes_cut, took: started.elapsed(), ..Recovered::default() };
        let recovered = engine.crawls().map(|(name, stats)| (Arc::clone(name), count(&stats, opened)));
        let recovered = recovered.collect();
        let commit = Arc::new(Commit::new(log.file(), log.name(), last));
        let interval = match durability {
            Durability::Interval(period) => Some(period),
            Durability::Batch | Durability::Explicit => None,
        };
        let syncing = Arc::clone(&commit);
        let thread = std::thread::Builder::new()
            .name("trapline-sync".to_owned())
            .spawn(move || syncing.run(interval))
            .map_err(|error| {
                let message =
                    format!("disk store: cannot open: cannot begin a thread: {error}; try again later");
                StoreError::new(ErrorKind::Unavailable, message)
            })?;
        Ok(Self {
            inner: Mutex::new(Inner { engine, log, last_command: last, is_closed: false, held }),
            commit,
            durability,
            recovered,
            opened,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Closes the store: everything answered is on disk, and the folder free for others. Later verbs answer an error.
    ///
    /// # Errors
    /// If something could not be brought to disk.
    pub fn close(&self) -> Result<(), StoreError> {
        self.end(Commit::close).map_err(|failure| {
            let message = format!(
                "disk store: cannot close in good order: {failure}; what was answered since the last sync may be lost"
            );
            StoreError::new(ErrorKind::Corrupt, message)
        })
    }

    /// Lets go of the folder as a process does that is killed: nothing more is written or synced. For tests and
    /// simulations.
    pub fn abandon(&self) {
        let _ = self.end(|commit| {
            commit.abandon();
            Ok(())
        });
    }

    fn end(&self, close: impl FnOnce(&Commit) -> Result<(), Failure>) -> Result<(), Failure> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.is_closed {
            return Ok(());
        }
        inner.is_closed = true;
        let closed = close(&self.commit);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // It ends by itself once it is told to; it cannot panic.
            let _ = thread.join();
        }
        inner.held = None;
        closed
    }

    fn inner(&self, attempted: &str) -> Result<MutexGuard<'_, Inner>, StoreError> {
        let Ok(inner) = self.inner.lock() else {
            return Err(StoreError::new(
                ErrorKind::Corrupt,
                format!(
                    "disk store: cannot {attempted}: an earlier verb failed half-way, so what is in memory cannot be trusted; \
                     what is on disk can: open the store again, and report this bug in Trapline"
                ),
            ));
        };
        if inner.is_closed {
            let message = format!("disk store: cannot {attempted}: the store was closed; open it again");
            return Err(StoreError::new(ErrorKind::Unavailable, message));
        }
        Ok(inner)
    }

    /// Does a verb and writes its record: the answer, and the record that must be on disk before it is given.
    fn act<T>(
        &self,
        (attempted, urgency): (&str, Urgency),
        (crawl, now): (Option<&str>, Timestamp),
        mut draft: Draft,
        verb: impl FnOnce(&mut Engine) -> Result<T, StoreError>,
        number: impl FnOnce(&T) -> u64,
    ) -> Result<(T, u64), StoreError> {
        if draft.len() > BATCH_BYTES_MAX {
            let message = format!(
                "disk store: cannot {attempted}: the batch has {} bytes, and at most {BATCH_BYTES_MAX} are taken; nothing was \
                 done: send it in parts",
                draft.len()
            );
            return Err(StoreError::new(ErrorKind::Invalid, message));
        }
        let mut inner = self.inner(attempted)?;
        let Inner { engine, log, last_command, .. } = &mut *inner;
        if let Some(failure) = self.commit.failure() {
            return Err(stopped(attempted, &failure));
        }
        log.make_room(draft.len(), urgency, &self.commit)
            .map_err(|trouble| self.no_room(attempted, trouble))?;
        match verb(engine) {
            Ok(answer) => {
                let sequence = self
                    .append(log, &mut draft, number(&answer))
                    .map_err(|failure| unsure(attempted, &failure))?;
                *last_command = sequence;
                Ok((answer, sequence))
            }
            Err(error) => {
                // Nothing but time has passed; a record of that is never longer than the command's.
                if let Some(crawl) = crawl.filter(|crawl| engine.has(crawl)) {
                    let mut draft = Draft::new(|bytes| message::pass(bytes, crawl, now));
                    self.append(log, &mut draft, answers::NOTHING)
                        .map_err(|failure| unsure(attempted, &failure))?;
                }
                Err(error)
            }
        }
    }

    fn append(&self, log: &mut Log, draft: &mut Draft, answers: u64) -> Result<u64, Failure> {
        let appended = log.append(draft, self.commit.durable(), answers);
        match &appended {
            Ok(sequence) => self.commit.wrote(*sequence),
            Err(failure) => self.commit.fail(failure.clone()),
        }
        appended
    }

    fn no_room(&self, attempted: &str, trouble: NoRoom) -> StoreError {
        match trouble {
            NoRoom::Failed(failure) => {
                self.commit.fail(failure.clone());
                stopped(attempted, &failure)
            }
            NoRoom::Refused { file, error } => StoreError::new(
                ErrorKind::Full,
                format!(
                    "disk store: cannot {attempted}: cannot make room for more in {file}: {error}; nothing was done and \
                     nothing is lost: free some space, then try again"
                ),
            ),
        }
    }

    /// Waits for a record as long as the durability asks for.
    async fn promise(&self, attempted: &str, sequence: u64) -> Result<(), StoreError> {
        match self.durability {
            Durability::Batch => {
                self.commit.wait(sequence).await.map_err(|failure| unsure(attempted, &failure))
            }
            Durability::Interval(_) | Durability::Explicit => Ok(()),
        }
    }

    /// Asks the engine something. The time that passes by it is written, but nobody waits for the disk. What the answer
    /// may show is waited for.
    async fn ask<T>(
        &self,
        attempted: &str,
        (crawl, now): (&str, Timestamp),
        question: impl FnOnce(&mut Engine) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let (answer, shown) = self.ask_now(attempted, (crawl, now), question)?;
        // After a failure questions are still answered.
        let _ = self.promise(attempted, shown).await;
        Ok(answer)
    }

    fn ask_now<T>(
        &self,
        attempted: &str,
        (crawl, now): (&str, Timestamp),
        question: impl FnOnce(&mut Engine) -> Result<T, StoreError>,
    ) -> Result<(T, u64), StoreError> {
        let mut inner = self.inner(attempted)?;
        let Inner { engine, log, last_command, .. } = &mut *inner;
        let shown = *last_command;
        // After a failure nothing will be promised any more, so the log need not know what passed.
        if engine.would_pass(crawl, now) && self.commit.failure().is_none() {
            let mut draft = Draft::new(|bytes| message::pass(bytes, crawl, now));
            match log.make_room(draft.len(), Urgency::Question, &self.commit) {
                Ok(()) => drop(self.append(log, &mut draft, answers::NOTHING)),
                Err(NoRoom::Failed(failure)) => self.commit.fail(failure),
                Err(refused) => return Err(self.no_room(attempted, refused)),
            }
        }
        Ok((question(engine)?, shown))
    }
}

impl Drop for DiskStore {
    fn drop(&mut self) {
        let _ = self.end(Commit::close);
    }
}

#[async_trait]
impl Store for DiskStore {
    async fn admit(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: &[Candidate],
    ) -> Result<Vec<Admission>, StoreError> {
        let draft = Draft::new(|bytes| message::admit(bytes, crawl, now, batch));
        let verb = |engine: &mut Engine| engine.admit(crawl, now, batch);
        let how = ("admit", Urgency::Admission);
        let (answer, sequence) =
            self.act(how, (Some(crawl), now), draft, verb, |answers| answers::admitted(answers))?;
        self.promise("admit", sequence).await?;
        Ok(answer)
    }

    async fn claim(&self, crawl: Option<&str>, now: Timestamp, want: &Want) -> Result<Claimed, StoreError> {
        let draft = Draft::new(|bytes| message::claim(bytes, crawl, now, want));
        let verb = |engine: &mut Engine| engine.claim(crawl, now, want);
        let how = ("claim", Urgency::Work);
        let (answer, sequence) = self.act(how, (crawl, now), draft, verb, answers::claimed)?;
        self.promise("claim", sequence).await?;
        Ok(answer)
    }

    async fn settle(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: Vec<Settlement>,
    ) -> Result<Vec<Settled>, StoreError> {
        let draft = Draft::new(|bytes| message::settle(bytes, crawl, now, &batch));
        let verb = |engine: &mut Engine| engine.settle(crawl, now, batch);
        let how = ("settle", Urgency::Work);
        let (answer, sequence) =
            self.act(how, (Some(crawl), now), draft, verb, |answers| answers::settled(answers))?;
        self.promise("settle", sequence).await?;
        Ok(answer)
    }

    async fn steer(&self, crawl: &str, now: Timestamp, steer: Steer) -> Result<Steered, StoreError> {
        let draft = Draft::new(|bytes| message::steer(bytes, crawl, now, &steer));
        // What is restored can be restored later as well.
        let restores = matches!(steer, Steer::Crawl(CrawlChange::Restore(_)));
        let verb = |engine: &mut Engine| engine.steer(crawl, now, steer);
        let how = ("steer", if restores { Urgency::Admission } else { Urgency::Work });
        let (answer, sequence) =
            self.act(how, (Some(crawl), now), draft, verb, |answer| answers::steered(*answer))?;
        self.promise("steer", sequence).await?;
        Ok(answer)
    }

    async fn scan(&self, crawl: &str, now: Timestamp, scan: &Scan) -> Result<Page, StoreError> {
        self.ask("scan", (crawl, now), |engine| engine.scan(crawl, now, scan)).await
    }

    async fn stats(&self, crawl: &str, now: Timestamp) -> Result<Stats, StoreError> {
        let stats = self.ask("count", (crawl, now), |engine| engine.stats(crawl, now)).await?;
        let recovered = self.recovered.get(crawl).copied().unwrap_or(self.opened);
        Ok(Stats { recovered: Some(recovered), ..stats })
    }

    async fn flush(&self) -> Result<(), StoreError> {
        let written = self.commit.written();
        self.commit.wait(written).await.map_err(|failure| unsure("flush", &failure))
    }
}

/// What a crawl has, as it is told after opening.
fn count(stats: &Stats, opened: Recovered) -> Recovered {
    Recovered {
        pending: stats.urls_in(UrlState::Pending),
        leased: stats.urls_in(UrlState::Leased),
        seen: stats.urls.iter().sum(),
        dead: stats.urls_in(UrlState::Dead),
        ..opened
    }
}

/// Tells two stores apart, so that a segment of one is never taken for another's.
fn draw_number() -> u128 {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the operating system has randomness");
    u128::from_le_bytes(bytes)
}

/// Nothing was done, and nothing will be.
fn stopped(attempted: &str, failure: &Failure) -> StoreError {
    StoreError::new(
        ErrorKind::Corrupt,
        format!(
            "disk store: cannot {attempted}: {failure}, so nothing more is promised; what was answered before is safe, and \
             questions are still answered: look after the disk, then open the store again"
        ),
    )
}

/// It was done in memory, and may or may not be on disk.
fn unsure(attempted: &str, failure: &Failure) -> StoreError {
    StoreError::new(
        ErrorKind::Corrupt,
        format!(
            "disk store: cannot {attempted} for certain: {failure}; whether this batch is there will be seen when the store \
             is opened again, whole or not at all: look after the disk, then open it and try again"
        ),
    )
}
