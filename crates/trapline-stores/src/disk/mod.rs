//! The disk store: the engine plus a log of the commands it was given, and snapshots of the engine.
//!
//! The engine is deterministic, so the log need not say what a command changed: replaying the commands at their times
//! gives the same state. What it answered is in the log as a number, and compared when it is replayed. A snapshot saves
//! replaying what came before it. The requests of URLs are not in memory but in the log, and read there when they are
//! wanted.
//!
//! One verb is one record, whatever it touches. A verb is done by the engine and written to the log under one lock, so
//! that both have the same order; it is answered when its record is on disk. What is absent: the files themselves
//! ([`files`]), and everything that is known of scheduling.

mod answers;
mod checkpoint;
mod command;
mod commit;
mod due;
mod errands;
pub mod files;
mod folder;
mod frames;
mod growing;
mod keeper;
mod ledger;
mod lent;
mod log;
pub(crate) mod message;
mod options;
mod parity;
mod part;
mod reader;
mod record;
mod recovery;
mod reopen;
mod repair;
mod rewriting;
mod scan;
mod segment;
mod shared;
mod shorthand;
mod snapshot;
mod socket;
mod swap;
mod text;
mod texts;
mod trouble;
mod verify;
mod withheld;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use trapline_core::{Candidate, Timestamp};
use trapline_frontier::{
    Admission, Claimed, CrawlChange, Engine, ErrorKind, Page, Query, Recovered, Scan, Settled, Settlement,
    Stats, Steer, Steered, Store, StoreError, UrlState, Want,
};

use commit::{Commit, Failure};
use due::{Due, Size};
use files::{Files, Folder};
use folder::Held;
use keeper::Bell;
use lent::Lender;
use log::{NoRoom, Sizes, Urgency};
use message::logged::{self, Which};
use record::Draft;
use shared::{Inner, Phase, Shared, loss};
use swap::Swap;
use texts::Unread;
use trouble::{no_room, not_now, stopped, unreadable, unsure};

use crate::planted::Planted;

pub use checkpoint::{checkpoint, checkpoints, restore};
pub use options::{DiskOptions, Durability};
pub use reopen::DiskReopen;
pub use repair::{Repaired, repair};
pub use rewriting::{Rewrite, Rewritten};
pub use scan::Damage;
pub use socket::{SharedStore, SocketStore};
pub use verify::{Verified, verify, verify_on};

/// A frontier on disk. One process owns its folder at a time.
///
/// Dropping it closes it in good order.
pub struct DiskStore {
    shared: Arc<Shared>,
    durability: Durability,
    /// What each crawl had when the store was opened.
    recovered: BTreeMap<Arc<str>, Recovered>,
    /// What is told of crawls that came later.
    opened: Recovered,
    /// The threads that sync, keep and read, until the store is closed.
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Lets other processes use it, if it does, until the store is closed.
    server: Mutex<Option<socket::Server>>,
}

/// What requests are read for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reads {
    /// Without them there is no answer.
    Needed,
    /// Where one cannot be read, the answer shows none.
    Shown,
    /// The same where it never will be; where it may be another time, there is no answer.
    Certain,
}

/// The largest batch that is taken, as bytes of the log.
const BATCH_BYTES_MAX: u64 = 1 << 29;

impl DiskStore {
    /// Opens the store in a folder, and makes one there if there is none.
    ///
    /// # Errors
    /// If another process holds the folder, if it is no store's, if it was written by a newer version, or if its log is
    /// damaged. The message says which, where, and what can be done.
    pub fn open(path: impl AsRef<Path>, options: &DiskOptions) -> Result<Self, StoreError> {
        let held = folder::hold(path.as_ref())?;
        let files: Arc<dyn Files> = Arc::new(Folder::new(path.as_ref().join(folder::SEGMENTS)));
        Self::open_held(&files, options, Some(held), &Planted::default())
    }

    /// Opens the store in files of another kind, whose owner makes sure that nobody else does. For tests.
    ///
    /// # Errors
    /// As [`DiskStore::open`].
    pub fn open_on(files: impl Files, options: &DiskOptions) -> Result<Self, StoreError> {
        let files: Arc<dyn Files> = Arc::new(files);
        Self::open_held(&files, options, None, &Planted::default())
    }

    /// As [`DiskStore::open_on`], a store with a fault planted in it.
    ///
    /// # Errors
    /// As [`DiskStore::open`].
    #[cfg(feature = "planted")]
    pub fn faulty(
        files: impl Files,
        options: &DiskOptions,
        fault: crate::planted::Fault,
    ) -> Result<Self, StoreError> {
        let files: Arc<dyn Files> = Arc::new(files);
        Self::open_held(&files, options, None, &Planted::with(fault))
    }

    fn open_held(
        files: &Arc<dyn Files>,
        options: &DiskOptions,
        held: Option<Held>,
        planted: &Planted,
    ) -> Result<Self, StoreError> {
        let started = Instant::now();
        let DiskOptions { durability, snapshot_bytes, quiet, background, max_memory, .. } =
            options.within_bounds();
        let swap = max_memory.map(|most| Arc::new(Swap::new(Arc::clone(files), most, options.min_free_disk)));
        let lender = Arc::new(Lender::new(options.lazy_bytes));
        let recovery = recover(files, options, swap.as_ref(), &lender)?;
        let recovery::Recovery {
            engine,
            mut log,
            texts,
            last,
            bytes_cut,
            latest,
            snapshots_passed_over,
            unsaved,
        } = recovery;
        let opened = Recovered {
            log_position: last,
            bytes_cut,
            snapshot: latest.next.checked_sub(1).filter(|record| *record > 0),
            snapshots_passed_over,
            took: started.elapsed(),
            ..Recovered::default()
        };
        let recovered = engine.crawls().map(|(name, stats)| (Arc::clone(name), count(&stats, opened)));
        let recovered = recovered.collect();
        let commit = Commit::new(log.file(), log.name(), last, planted.clone());
        log.planted = planted.clone();
        let ahead = log.ahead();
        let due = Due::after(Size::at_opening(&latest), Duration::ZERO, snapshot_bytes);
        let inner = Inner { engine, log, last_command: last, unsaved, due, phase: Phase::Open, held };
        let shared = Arc::new(Shared {
            inner: Mutex::new(inner),
            commit,
            texts,
            swap,
            lender,
            files: Arc::clone(files),
            ahead,
            bell: Bell::default(),
            snapshots: Mutex::new(latest),
            snapshot_bytes,
            sizes: Sizes::of(options),
            quiet,
            stuck: Mutex::default(),
            is_all_here: AtomicBool::new(false),
            has_keeper: background,
            planted: planted.clone(),
        });
        let interval = match durability {
            Durability::Interval(period) => Some(period),
            Durability::Batch | Durability::Explicit => None,
        };
        let store = Self {
            shared,
            durability,
            recovered,
            opened,
            threads: Mutex::default(),
            server: Mutex::new(None),
        };
        store.start("trapline-sync", move |shared| shared.commit.run(interval))?;
        if background {
            store.start("trapline-keeper", keeper::run)?;
            store.start("trapline-read", |shared| shared.texts.errands.run(&shared.texts))?;
        }
        Ok(store)
    }

    fn start(&self, name: &str, work: impl FnOnce(&Shared) + Send + 'static) -> Result<(), StoreError> {
        let shared = Arc::clone(&self.shared);
        let started = std::thread::Builder::new().name(name.to_owned()).spawn(move || work(&shared));
        let thread = started.map_err(|error| {
            let message = format!("disk store: cannot open: cannot begin a thread: {error}; try again later");
            StoreError::new(ErrorKind::Unavailable, message)
        })?;
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        Ok(())
    }

    /// Takes a snapshot now, from which the next opening will go on, and says up to which record it goes. Verbs are done
    /// meanwhile.
    ///
    /// The store takes them by itself, see [`DiskOptions::snapshot_bytes`].
    ///
    /// # Errors
    /// If it cannot be written. Nothing is lost by that: opening takes longer.
    pub fn snapshot(&self) -> Result<u64, StoreError> {
        self.shared.caught("take a snapshot", || self.shared.take_snapshot(Phase::Open))
    }

    /// Moves what is still needed out of segments that have little of it, so that they can go. The store does it by itself; verbs
    /// are done meanwhile. Space is given back when two snapshots were taken after it.
    ///
    /// # Errors
    /// If the log cannot be written, or there is no room for what is moved. Nothing is lost by that.
    pub fn rewrite(&self, which: Rewrite) -> Result<Rewritten, StoreError> {
        self.shared.caught("rewrite", || self.shared.rewrite(&self.shared.segments_of(which), || true))
    }

    /// What was found when the store was opened: of its log, and of each crawl that was in it.
    pub fn recovered(&self) -> (Recovered, &BTreeMap<Arc<str>, Recovered>) {
        (self.opened, &self.recovered)
    }

    /// When an answer is safe.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// Closes the store: everything answered is on disk, and the folder free for others. Later verbs answer an error.
    ///
    /// It leaves a snapshot of everything behind, if anything was done since the latest.
    ///
    /// # Errors
    /// If something could not be brought to disk.
    pub fn close(&self) -> Result<(), StoreError> {
        self.close_in_order().map_err(|failure| {
            let message = format!(
                "disk store: cannot close in good order: {failure}; what was answered since the last sync may be lost"
            );
            StoreError::new(ErrorKind::Corrupt, message)
        })
    }

    /// Lets go of the folder as a process does that is killed: nothing more is written or synced. For tests and
    /// simulations.
    pub fn abandon(&self) {
        self.cut_serving();
        if self.shared.go_to(Phase::Abandoned) {
            self.shared.commit.abandon();
            self.end();
        }
    }

    fn close_in_order(&self) -> Result<(), Failure> {
        // Those who are served need the store to end in good order.
        self.stop_serving();
        if !self.shared.go_to(Phase::Closing) {
            return Ok(());
        }
        // A snapshot that is under way is waited for, but not its rests.
        self.shared.bell.close();
        if self.shared.has_keeper {
            // However little was done: the next opening may be another version's, which can read what there is, but perhaps not do
            // what was done as it was done. If it cannot be taken, the log has it all.
            let _ = self.shared.caught("close", || self.shared.take_snapshot(Phase::Closing));
        }
        let closed = self.shared.commit.close();
        // Whoever abandons it now has nothing left to do.
        if self.shared.go_to(Phase::Closed) {
            self.end();
        }
        closed
    }

    /// Waits for all that still goes on in the folder, and lets go of it.
    fn end(&self) {
        self.shared.bell.close();
        self.shared.texts.errands.close();
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // They end by themselves once they are told to; they cannot panic.
            let _ = thread.join();
        }
        // A snapshot that a program has asked for writes to the folder too, until it sees that it is too late.
        let snapshots = self.shared.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        let mut inner = self.shared.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.engine.drop_image();
        inner.held = None;
        drop((inner, snapshots));
    }

    /// Does a verb and writes its record: the answer, and the record that must be on disk before it is given.
    ///
    /// `put` appends the record's message, and texts before it, of which it says how long they are; and the answer as a
    /// number. It is never longer than `bound`.
    fn act<T>(
        &self,
        (attempted, urgency): (&str, Urgency),
        (crawl, now): (Option<&str>, Timestamp),
        bound: u64,
        verb: impl FnOnce(&mut Engine) -> Result<T, StoreError>,
        put: impl FnOnce(&mut Vec<u8>, &T) -> (usize, u64),
    ) -> Result<(T, u64), StoreError> {
        self.shared.caught(attempted, || self.act_now((attempted, urgency), (crawl, now), bound, verb, put))
    }

    fn act_now<T>(
        &self,
        (attempted, urgency): (&str, Urgency),
        (crawl, now): (Option<&str>, Timestamp),
        bound: u64,
        verb: impl FnOnce(&mut Engine) -> Result<T, StoreError>,
        put: impl FnOnce(&mut Vec<u8>, &T) -> (usize, u64),
    ) -> Result<(T, u64), StoreError> {
        if bound > BATCH_BYTES_MAX {
            let message = format!(
                "disk store: cannot {attempted}: the batch may take {bound} bytes, and at most {BATCH_BYTES_MAX} are taken; \
                 nothing was done: send it in parts"
            );
            return Err(StoreError::new(ErrorKind::Invalid, message));
        }
        let mut inner = self.shared.inner(attempted)?;
        let Inner { engine, log, .. } = &mut *inner;
        let Shared { commit, texts, .. } = &*self.shared;
        if let Some(failure) = commit.failure() {
            return Err(stopped(attempted, &failure));
        }
        log.make_room(bound, urgency, commit).map_err(|trouble| self.note(attempted, &trouble))?;
        let position = log.position();
        texts.begin(texts::place(position.segment, position.at));
        let done = verb(engine);
        engine.relieve();
        let bytes = texts.take();
        if let Some(failure) = texts.take_failure() {
            // What the engine made of it is not what it would have made of the real thing.
            commit.fail(failure.clone());
            return Err(unsure(attempted, &failure));
        }
        match done {
            Ok(answer) => {
                let mut number = 0;
                let mut draft = Draft::with_texts(bytes, |bytes| {
                    let (texts, answers) = put(bytes, &answer);
                    number = answers;
                    texts
                });
                match self.shared.append(&mut inner, &mut draft, number) {
                    Ok(sequence) => {
                        inner.last_command = sequence;
                        texts.reuse(draft.into_bytes());
                        Ok((answer, sequence))
                    }
                    Err(failure) => {
                        // Questions go on, and what was done is still to be seen.
                        texts.keep(draft.into_bytes());
                        Err(unsure(attempted, &failure))
                    }
                }
            }
            Err(error) => {
                // Nothing but time has passed; a record of that is never longer than the command's.
                if let Some(crawl) = crawl.filter(|crawl| engine.has(crawl)) {
                    let mut draft = Draft::new(|bytes| logged::pass(bytes, crawl, now));
                    self.shared
                        .append(&mut inner, &mut draft, answers::NOTHING)
                        .map_err(|failure| unsure(attempted, &failure))?;
                }
                Err(error)
            }
        }
    }

    /// Reads what a verb will need of the log, so that nobody waits for these reads but the one who calls it, and nothing is
    /// done if they fail.
    fn read_ahead(
        &self,
        attempted: &str,
        places: impl Fn(&Engine) -> Vec<u64>,
    ) -> Result<BTreeMap<u64, Vec<u8>>, StoreError> {
        let read = || {
            let look = || Ok(places(&self.shared.inner(attempted)?.engine));
            let places = self.shared.caught(attempted, look)?;
            Ok::<_, StoreError>(self.shared.texts.read_ahead(places))
        };
        // What was moved and removed in between is elsewhere the second time.
        let read = match read()? {
            Err(Unread::Failed(_)) => read()?,
            read => read,
        };
        read.map_err(|unread| unreadable(attempted, unread.failure()))
    }

    /// Reads what notes say that a scan will list, while nobody waits but the one who asks. What cannot be read is tried once more
    /// when it is listed.
    fn read_notes_ahead(&self, crawl: &str, scan: &Scan) -> Result<BTreeMap<u64, Vec<u8>>, StoreError> {
        let look = || Ok(self.shared.inner("scan")?.engine.places_of_notes(crawl, scan));
        let places = self.shared.caught("scan", look)?;
        Ok(self.shared.texts.read_notes_ahead(places))
    }

    /// There is no room for a record. If that is for good, nothing is promised any more.
    fn note(&self, attempted: &str, trouble: &NoRoom) -> StoreError {
        if let NoRoom::Failed(failure) = trouble {
            self.shared.commit.fail(failure.clone());
        }
        no_room(attempted, trouble)
    }

    /// Waits for a record as long as the durability asks for.
    async fn promise(&self, attempted: &str, sequence: u64) -> Result<(), StoreError> {
        match self.durability {
            Durability::Batch => {
                self.shared.commit.wait(sequence).await.map_err(|failure| unsure(attempted, &failure))
            }
            Durability::Interval(_) | Durability::Explicit => Ok(()),
        }
    }

    /// Asks the engine something. The time that passes by it is written, but nobody waits for the disk; if there is no room for
    /// that, none passes. What the answer may show is waited for.
    async fn ask<T>(
        &self,
        (attempted, reads): (&str, Reads),
        (crawl, now): (&str, Timestamp),
        question: impl FnOnce(&mut Engine) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let ask = || self.ask_now((attempted, reads), (crawl, now), question);
        let (answer, shown) = self.shared.caught(attempted, ask)?;
        // After a failure questions are still answered.
        let _ = self.promise(attempted, shown).await;
        Ok(answer)
    }

    fn ask_now<T>(
        &self,
        (attempted, reads): (&str, Reads),
        (crawl, now): (&str, Timestamp),
        question: impl FnOnce(&mut Engine) -> Result<T, StoreError>,
    ) -> Result<(T, u64), StoreError> {
        let mut inner = self.shared.inner(attempted)?;
        let Shared { commit, texts, .. } = &*self.shared;
        let shown = inner.last_command;
        let mut passes = inner.engine.would_pass(crawl, now);
        let mut draft = None;
        // After a failure nothing will be promised any more, so the log need not know what passed.
        if passes && commit.failure().is_none() {
            let pass = Draft::new(|bytes| logged::pass(bytes, crawl, now));
            match inner.log.make_room(pass.len(), Urgency::Question, commit) {
                Ok(()) => draft = Some(pass),
                Err(NoRoom::Failed(failure)) => commit.fail(failure),
                Err(NoRoom::Refused { .. } | NoRoom::Spared { .. }) => passes = false,
            }
        }
        if passes {
            inner.engine.pass(crawl, now);
            if let Some(failure) = texts.take_failure() {
                // What a job made of it is not what it would have made of the real thing. So the log does not say that it did.
                commit.fail(failure.clone());
                return Err(stopped(attempted, &failure));
            }
        }
        if let Some(mut draft) = draft {
            drop(self.shared.append(&mut inner, &mut draft, answers::NOTHING));
        }
        let answer = question(&mut inner.engine);
        inner.engine.relieve();
        match texts.take_unread() {
            Some(unread) if reads == Reads::Needed => Err(unreadable(attempted, unread.failure())),
            Some(Unread::Failed(failure)) if reads == Reads::Certain => Err(not_now(attempted, &failure)),
            // Nothing depends on what cannot be read for the answer alone.
            Some(_) | None => Ok((answer?, shown)),
        }
    }
}

impl Drop for DiskStore {
    fn drop(&mut self) {
        let _ = self.close_in_order();
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
        let ahead = if batch.iter().any(|candidate| candidate.statement.is_some()) {
            self.read_ahead("admit", |engine| engine.places_of_restated(crawl, batch.iter()))?
        } else {
            BTreeMap::new()
        };
        let verb = |engine: &mut Engine| {
            self.shared.texts.put_at_hand(ahead);
            let which = which(engine, crawl);
            Ok((engine.admit(crawl, now, batch)?, which))
        };
        let put = |bytes: &mut Vec<u8>, (answers, which): &(Vec<Admission>, Which)| {
            let texts = logged::admit(bytes, (crawl, now), (batch, answers), *which);
            (texts, answers::admitted(answers, *which))
        };
        let bound = logged::bound_admit(crawl, batch);
        let how = ("admit", Urgency::Admission);
        let ((answer, _), sequence) = self.act(how, (Some(crawl), now), bound, verb, put)?;
        self.promise("admit", sequence).await?;
        Ok(answer)
    }

    async fn claim(&self, crawl: Option<&str>, now: Timestamp, want: &Want) -> Result<Claimed, StoreError> {
        let message = made(|bytes| logged::claim(bytes, crawl, now, want));
        let verb = |engine: &mut Engine| {
            let claimed = engine.claim(crawl, now, want);
            let expected = self.shared.texts.take_expected();
            Ok((claimed?, engine.take_unread(), expected))
        };
        let put = |bytes: &mut Vec<u8>, (claimed, _, _): &(Claimed, _, _)| {
            bytes.extend_from_slice(&message);
            (0, answers::claimed(claimed))
        };
        let how = ("claim", Urgency::Work);
        let bound = bound_of(&message);
        let ((mut claimed, unread, expected), sequence) = self.act(how, (crawl, now), bound, verb, put)?;
        // Nobody waits for these reads but the one who claims, and while they go on, so does the disk.
        if self.durability == Durability::Batch {
            self.shared.commit.want(sequence);
        }
        let lost = self.shared.texts.complete(&mut claimed.leases, &unread, expected.as_deref());
        if !lost.is_empty() {
            self.withhold(now, &mut claimed, &lost).await?;
        }
        self.promise("claim", sequence).await?;
        Ok(claimed)
    }

    async fn settle(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: Vec<Settlement>,
    ) -> Result<Vec<Settled>, StoreError> {
        let ahead = self.read_ahead("settle", |engine| {
            let mut places = engine.places_of_visits(crawl, &batch);
            let links = batch.iter().flat_map(|settlement| &settlement.links);
            places.extend(engine.places_of_restated(crawl, links));
            places
        })?;
        let ahead_bytes = ahead.values().map(Vec::len).sum::<usize>() as u64;
        let verb = |engine: &mut Engine| {
            self.shared.texts.put_at_hand(ahead);
            let which = which(engine, crawl);
            Ok((engine.settle(crawl, now, &batch)?, which))
        };
        let put = |bytes: &mut Vec<u8>, (answers, which): &(Vec<Settled>, Which)| {
            let texts = logged::settle(bytes, record::TEXTS, (crawl, now), (&batch, answers), *which);
            (texts, answers::settled(answers, *which))
        };
        let bound = logged::bound_settle(crawl, &batch) + ahead_bytes;
        let how = ("settle", Urgency::Work);
        let ((answer, _), sequence) = self.act(how, (Some(crawl), now), bound, verb, put)?;
        self.promise("settle", sequence).await?;
        Ok(answer)
    }

    async fn steer(&self, crawl: &str, now: Timestamp, steer: Steer) -> Result<Steered, StoreError> {
        let message = made(|bytes| logged::steer(bytes, crawl, now, &steer));
        // What is restored can be restored later as well; its requests are in the message, and as texts: without their pages,
        // and once more with them.
        let (urgency, bound) = match &steer {
            Steer::Crawl(CrawlChange::Restore(records)) => {
                (Urgency::Admission, 3 * bound_of(&message) + 256 * records.len() as u64)
            }
            // What a note says is in the message, and as a text.
            Steer::Crawl(CrawlChange::Note(note)) => {
                let text = text::bound_note(&note.key, note.value.as_deref().unwrap_or_default());
                (Urgency::Work, bound_of(&message) + text as u64)
            }
            _ => (Urgency::Work, bound_of(&message)),
        };
        let verb = |engine: &mut Engine| engine.steer(crawl, now, steer);
        let put = |bytes: &mut Vec<u8>, answer: &Steered| {
            bytes.extend_from_slice(&message);
            (0, answers::steered(*answer))
        };
        let how = ("steer", urgency);
        let (answer, sequence) = self.act(how, (Some(crawl), now), bound, verb, put)?;
        self.promise("steer", sequence).await?;
        Ok(answer)
    }

    async fn scan(&self, crawl: &str, now: Timestamp, scan: &Scan) -> Result<Page, StoreError> {
        let reads = match scan.query {
            // Who takes records elsewhere must have them all.
            Query::Records => Reads::Needed,
            // Who finds no note writes another one.
            Query::Notes { .. } => Reads::Certain,
            // A list shows what it can.
            _ => Reads::Shown,
        };
        let notes =
            if reads == Reads::Certain { self.read_notes_ahead(crawl, scan)? } else { BTreeMap::new() };
        let question = |engine: &mut Engine| {
            self.shared.texts.put_at_hand(notes);
            let page = engine.look(crawl, scan);
            self.shared.texts.put_at_hand(BTreeMap::new());
            page
        };
        self.ask(("scan", reads), (crawl, now), question).await
    }

    async fn stats(&self, crawl: &str, now: Timestamp) -> Result<Stats, StoreError> {
        let count = |engine: &mut Engine| Ok(Stats { pressure: engine.pressure(), ..engine.count(crawl)? });
        let stats = self.ask(("count", Reads::Needed), (crawl, now), count).await?;
        let recovered = self.recovered.get(crawl).copied().unwrap_or(self.opened);
        let (durability, disk) = (Some(self.durability.to_string()), self.shared.disk());
        Ok(Stats { durability, recovered: Some(recovered), disk, ..stats })
    }

    async fn flush(&self) -> Result<(), StoreError> {
        let written = self.shared.commit.written();
        self.shared.commit.wait(written).await.map_err(|failure| unsure("flush", &failure))
    }
}

/// What a log holds. If a page cannot be read that was put on disk on the way, that is all.
fn recover(
    files: &Arc<dyn Files>,
    options: &DiskOptions,
    swap: Option<&Arc<Swap>>,
    lender: &Arc<Lender>,
) -> Result<recovery::Recovery, StoreError> {
    let recover = || recovery::recover(files, Sizes::of(options), swap, lender, draw_number);
    catch_unwind(AssertUnwindSafe(recover)).unwrap_or_else(|unwound| {
        match loss("open", swap.map(|swap| &**swap), lender) {
            Some((_, error)) => Err(error),
            None => resume_unwind(unwound),
        }
    })
}

/// Which candidates of a batch must be in the log. While URLs that are gone are still to be swept, even looking for one may
/// change something.
fn which(engine: &Engine, crawl: &str) -> Which {
    if engine.has_unswept(crawl) { Which::All } else { Which::Effective }
}

/// The message of a record.
fn made(put: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes);
    bytes
}

/// How long the record of a message is at most.
fn bound_of(message: &[u8]) -> u64 {
    (record::TEXTS + message.len()) as u64
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
