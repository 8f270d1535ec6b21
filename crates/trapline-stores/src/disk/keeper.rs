//! The keeper: a thread that does what need not be done in a verb. It takes snapshots, makes segments ahead of time, and rewrites
//! those that have little alive. While hardly anything is asked for, it tidies up.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use trapline_frontier::{ErrorKind, StoreError};

use super::due::{Due, Size};
use super::frames::FrameFile;
use super::log::Position;
use super::shared::Latest;
use super::snapshot::{self, Chunks, Written};
use super::trouble::stopped;
use super::{Inner, Phase, Shared};

/// Tells the keeper that there may be something to do.
#[derive(Default)]
pub(crate) struct Bell {
    state: Mutex<State>,
    /// The keeper waits for it, and whoever rests.
    rung: Condvar,
}

#[derive(Default)]
struct State {
    is_rung: bool,
    is_closing: bool,
}

impl Bell {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn ring(&self) {
        self.state().is_rung = true;
        self.rung.notify_all();
    }

    /// The keeper is to end, and nobody is to rest any more.
    pub(crate) fn close(&self) {
        self.state().is_closing = true;
        self.rung.notify_all();
    }

    /// Whether it was rung, without waiting.
    fn was_rung(&self) -> bool {
        std::mem::take(&mut self.state().is_rung)
    }

    /// Waits so long, or until the store is closed; answers whether it is not.
    pub(super) fn rest(&self, pause: Duration) -> bool {
        let state = self.state();
        let rested = self.rung.wait_timeout_while(state, pause, |state| !state.is_closing);
        !rested.unwrap_or_else(PoisonError::into_inner).0.is_closing
    }

    /// Waits until it is rung or the store is closed, but not longer than it has patience.
    fn wait(&self, patience: Option<Duration>) -> Wake {
        let sleeps = |state: &mut State| !state.is_rung && !state.is_closing;
        let state = self.state();
        let mut state = match patience {
            Some(patience) => {
                let waited = self.rung.wait_timeout_while(state, patience, sleeps);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.rung.wait_while(state, sleeps).unwrap_or_else(PoisonError::into_inner),
        };
        match () {
            () if state.is_closing => Wake::Closing,
            () if std::mem::take(&mut state.is_rung) => Wake::Rung,
            () => Wake::Impatient,
        }
    }
}

/// Why the keeper waits no longer.
enum Wake {
    Rung,
    Impatient,
    Closing,
}

/// Does what there is to do until the store is closed.
pub(crate) fn run(shared: &Shared) {
    // If a page cannot be read, verbs say so.
    let _ = shared.caught("keep", || {
        keep(shared);
        Ok(())
    });
}

fn keep(shared: &Shared) {
    shared.bring_lent();
    let (mut patience, mut seen) = (Some(shared.quiet), None);
    loop {
        match shared.bell.wait(patience) {
            Wake::Closing => return,
            Wake::Rung => {
                shared.make_ahead();
                if shared.wants_snapshot() {
                    // Nothing is lost if it fails; it is tried again when the log has grown by as much once more.
                    let _ = shared.take_snapshot(Phase::Open);
                }
                shared.rewrite_some();
                patience = Some(shared.quiet);
            }
            Wake::Impatient => {
                let before = std::mem::replace(&mut seen, shared.log_end());
                if shared.is_quiet_since(before) {
                    shared.tidy();
                    // Until there is more of the log.
                    patience = None;
                }
            }
        }
    }
}

/// If less than such a part of a segment was written in a while, nobody is in a hurry.
const QUIET_SHARE: u64 = 16;

/// If more than such a part of what is needed is needed no more, snapshots come sooner.
const WASTE_SHARE: u64 = 8;

/// What is needed is moved after the first snapshot, and what is left goes when two more do without it.
const TIDY_ROUNDS: usize = 3;

/// While little is wasted, the keeper rests so many times as long as it rewrites; and however much is wasted, so many times: a lock that is
/// taken again at once is nobody else's.
const RESTS: f64 = 3.0;
const RESTS_LEAST: f64 = 0.5;

/// So many frames of the snapshot from which the store was opened are read at once: a millisecond's work.
const BROUGHT_AT_ONCE: usize = 16;

impl Shared {
    /// Reads what of a snapshot was not read at opening, so that its file can go. What memory has no room for is put away.
    fn bring_lent(&self) {
        loop {
            let began = Instant::now();
            let Ok(mut inner) = self.inner("read a snapshot") else { return };
            let is_all = inner.engine.bring_lent(BROUGHT_AT_ONCE);
            inner.engine.relieve();
            if is_all {
                self.is_all_here.store(true, Ordering::Release);
                return;
            }
            drop(inner);
            // Half of the time is everybody else's.
            if !self.bell.rest(began.elapsed()) {
                return;
            }
            if self.bell.was_rung() {
                self.make_ahead();
                if self.wants_snapshot() {
                    self.bell.ring();
                }
            }
        }
    }

    /// Makes the next segment, if it is time.
    fn make_ahead(&self) {
        if let Some(next) = self.wants_ahead() {
            self.ahead.make(&*self.files, next);
        }
    }

    /// The segment that is to be made ahead of time.
    fn wants_ahead(&self) -> Option<(u64, u64)> {
        let inner = self.inner("look ahead").ok()?;
        inner.log.wants_ahead().filter(|(_, size)| inner.log.can_spare(*size))
    }

    /// Rewrites what is worth it, the faster the more is wasted, until something else is to be done.
    fn rewrite_some(&self) {
        loop {
            let unfit = self.unfit_segments();
            if unfit.is_empty() {
                return;
            }
            let rests = (RESTS - unfit.waste * RESTS / 2.0).max(RESTS_LEAST);
            let mut is_wanted_elsewhere = false;
            let mut began = Instant::now();
            let rewritten = self.rewrite(&unfit, || {
                let goes_on = self.bell.rest(began.elapsed().mul_f64(rests));
                if self.bell.was_rung() {
                    self.make_ahead();
                }
                is_wanted_elsewhere = !goes_on || self.wants_snapshot();
                began = Instant::now();
                !is_wanted_elsewhere
            });
            if is_wanted_elsewhere {
                // The snapshot first, then it goes on.
                self.bell.ring();
            }
            // If it fails, there is no room, or something cannot be read, or nothing is promised any more: another time.
            if is_wanted_elsewhere || !rewritten.is_ok_and(|rewritten| rewritten.segments > 0) {
                return;
            }
        }
    }

    /// Where the log ends; None if the store does.
    fn log_end(&self) -> Option<Position> {
        self.inner("look ahead").ok().map(|inner| inner.log.position())
    }

    /// Whether hardly anything was written since the log ended there.
    fn is_quiet_since(&self, before: Option<Position>) -> bool {
        before.zip(self.log_end()).is_some_and(|(before, now)| {
            now.segment == before.segment && now.at - before.at < self.usual_segment() / QUIET_SHARE
        })
    }

    /// Gives back what the log has too much, as busy hours leave it: what came since the older of two snapshots cannot go.
    fn tidy(&self) {
        if !self.is_fat() {
            return;
        }
        for _ in 0..TIDY_ROUNDS {
            if self.take_new_snapshot().is_err() {
                return;
            }
            self.rewrite_some();
        }
    }

    /// Whether the log has more than half of what is needed on top of it, but for the segments that it is about to use.
    fn is_fat(&self) -> bool {
        let most = |needed: u64| needed / 2 * 3 + 3 * self.sizes.usual(needed);
        self.disk().is_some_and(|disk| disk.log_bytes > most(disk.needed_bytes))
    }

    /// Whether so much of it is needed no more that a snapshot helps to give it back.
    fn is_wasteful(&self) -> bool {
        let (needed, dead) = self.texts.alive_and_dead_bytes();
        dead > (needed / WASTE_SHARE).max(self.sizes.usual(needed))
    }

    /// Takes a snapshot even if nothing has happened since the latest.
    fn take_new_snapshot(&self) -> Result<u64, StoreError> {
        let latest = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner).next;
        if self.log_end().is_some_and(|end| end.next == latest) {
            self.move_nothing()?;
        }
        self.take_snapshot(Phase::Open)
    }

    fn wants_snapshot(&self) -> bool {
        const ATTEMPTED: &str = "look ahead";
        if !self.inner(ATTEMPTED).is_ok_and(|inner| inner.unsaved >= inner.due.worth_a_look()) {
            return false;
        }
        let is_wasteful = self.is_wasteful();
        self.inner(ATTEMPTED).is_ok_and(|mut inner| {
            let Inner { unsaved, due, .. } = &mut *inner;
            due.is_now(*unsaved, is_wasteful)
        })
    }

    /// Takes a snapshot, and says up to which record it goes. It is given up when the store leaves this phase.
    pub(super) fn take_snapshot(&self, phase: Phase) -> Result<u64, StoreError> {
        const ATTEMPTED: &str = "take a snapshot";
        let mut latest = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        let mut inner = self.inner_in(phase, ATTEMPTED)?;
        if let Some(failure) = self.commit.failure() {
            return Err(stopped(ATTEMPTED, &failure));
        }
        let (store, position) = (inner.log.store(), inner.log.position());
        if position.next == latest.next {
            // Nothing has happened since the latest, whose place it would take: perhaps all that a repaired store can go on from.
            return Ok(position.next - 1);
        }
        let chunks = match &latest.places {
            // A small one is written anew each time, so that each has all of it.
            _ if !self.lender.lends(latest.bytes) => Chunks::Inside,
            Some(places) if !latest.has_lost_some => Chunks::Since(places),
            _ => Chunks::Beside,
        };
        inner.engine.begin_image(chunks.extent());
        let ledger = self.texts.ledger();
        let unsaved = std::mem::take(&mut inner.unsaved);
        drop(inner);
        let began = Instant::now();
        let mut has_lost_some = false;
        let begin = |position| snapshot::Writer::begin(&*self.files, store, position, &ledger, chunks);
        let taken = self.write_snapshot(position, begin, &mut has_lost_some, phase);
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        match taken {
            Ok(written) => {
                inner.engine.keep_image();
                inner.due = Due::after(written.size, began.elapsed(), self.snapshot_bytes);
                drop(inner);
                let Position { next, segment, .. } = position;
                let Written { size: Size { bytes, .. }, places } = written;
                let taken = Latest { next, segment, bytes, places, has_lost_some: false };
                let before = std::mem::replace(&mut *latest, taken);
                self.drop_old_snapshots(&latest, &before, phase);
                self.remove_dead_segments(before.next);
                Ok(position.next - 1)
            }
            Err(trouble) => {
                inner.engine.drop_image();
                let is_abandoned = inner.phase == Phase::Abandoned;
                // It is tried again when there is as much once more.
                inner.unsaved += unsaved;
                inner.due = Due::again(inner.unsaved, self.snapshot_bytes);
                drop(inner);
                // The engine has all of it, and the next one is whole.
                latest.has_lost_some |= has_lost_some;
                if !is_abandoned {
                    let _ = self.files.remove(&snapshot::name(position.next));
                    for file in FrameFile::all(position.next) {
                        let _ = self.files.remove(&file.name());
                    }
                }
                Err(trouble)
            }
        }
    }

    fn write_snapshot<'w>(
        &self,
        position: Position,
        begin: impl Fn(Position) -> io::Result<snapshot::Writer<'w>>,
        has_lost_some: &mut bool,
        phase: Phase,
    ) -> Result<Written, StoreError> {
        const ATTEMPTED: &str = "take a snapshot";
        let failed = |error| {
            let file = self.files.describe(&snapshot::name(position.next));
            let message = format!(
                "disk store: cannot take a snapshot in {file}: {error}; nothing is lost, but opening will take longer"
            );
            StoreError::new(ErrorKind::Unavailable, message)
        };
        let mut writer = begin(position).map_err(failed)?;
        if self.planted.misplaces_snapshots() {
            let position = self.inner_in(phase, ATTEMPTED)?.log.position();
            writer = begin(position).map_err(failed)?;
        }
        let last = loop {
            // Whoever takes a large one does not hear the bell until it is done.
            if self.has_keeper && self.bell.was_rung() {
                self.make_ahead();
            }
            let frames = self.inner_in(phase, ATTEMPTED)?.engine.next_frames();
            let taken = writer.frames(frames);
            *has_lost_some = writer.has_lost_some();
            if let Some(last) = taken.map_err(failed)? {
                break last;
            }
        };
        // What a snapshot says must be in the log for certain, where its requests are, before it counts.
        self.commit.sync().map_err(|failure| stopped(ATTEMPTED, &failure))?;
        writer.finish(&last, &*self.files).map_err(failed)
    }

    /// Keeps this snapshot and the one before it that is whole, should this one turn out to be damaged; and the frames that they refer to.
    fn drop_old_snapshots(&self, newest: &Latest, before: &Latest, phase: Phase) {
        let Ok(names) = self.files.list() else { return };
        let places = [newest, before].into_iter().filter_map(|kept| kept.places.as_ref());
        let needed: BTreeSet<FrameFile> = places.flat_map(|places| places.files().into_keys()).collect();
        let (mut snapshots, mut frames) = (Vec::new(), Vec::new());
        for name in names {
            if snapshot::number_of(&name).is_some_and(|number| number < newest.next && number != before.next)
            {
                snapshots.push(name);
            } else if FrameFile::named(&name)
                .is_some_and(|file| file.number <= newest.next && !needed.contains(&file))
            {
                frames.push(name);
            }
        }
        // Of one that is lent, something may still be wanted. And who closes the store waits for that.
        let has_time = phase == Phase::Open && self.is_all_here.load(Ordering::Acquire);
        let rest = |pause| has_time && self.bell.rest(pause);
        // What stays does no harm as a whole, and goes with the next.
        let gone = snapshots.iter().filter(|name| self.files.remove_gently(name, &rest).is_ok()).count();
        // A snapshot is gone for certain before anything that it refers to.
        if frames.is_empty() || gone < snapshots.len() || self.files.sync_folder().is_err() {
            return;
        }
        for name in frames {
            let _ = self.files.remove_gently(&name, &rest);
        }
    }
}
