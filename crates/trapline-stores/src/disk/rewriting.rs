//! Rewriting: what is still needed of segments with little alive is put into the log once more, so that they can go.
//!
//! Of what was moved, the log says so, in records of their own: replaying them leads to the same places. A segment is removed
//! when nothing in it is needed by the older of the two snapshots that are kept, and so by nothing after it.
//!
//! It goes in steps. One looks at so many entries, or moves so many texts, and lets go of the engine before the next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Instant;

use trapline_frontier::{Found, Owner, StoreError};

use super::files::Files;
use super::ledger::{Ledger, segment_of};
use super::log::{self, NoRoom, Urgency};
use super::message::logged;
use super::record::{self, Draft};
use super::segment::Segment;
use super::snapshot;
use super::text;
use super::texts::{self, Unread};
use super::trouble::{no_room, stopped, unsure};
use super::{Inner, Phase, Shared, made};

const ATTEMPTED: &str = "rewrite segments";

/// So many entries are looked at while the engine is held.
const LOOKED_AT_ONCE: u32 = 16_384;
/// So many texts are moved in one record.
const MOVED_AT_ONCE: usize = 500;
/// And so many bytes of them, but for one text that has more.
const MOVED_BYTES: u64 = 256 << 10;
/// Or such a share of a segment: what does not fit at its end is wasted again.
const MOVED_SHARE: u64 = 16;
/// So many bytes the record takes for each of them beside the text, at most: usually half.
const MOVED_BESIDE: u64 = 12;
/// So many bytes are moved before it is considered anew which segments are worth it.
const PASS_BYTES: u64 = 256 << 20;

/// Which segments are rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// Those that are worth it.
    Unfit,
    /// All before the latest snapshot.
    All,
}

/// What a rewriting has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rewritten {
    /// From how many segments everything was moved that is needed.
    pub segments: u64,
    /// How many URLs that were, with what is known of their pages, and notes.
    pub urls: u64,
    /// How many bytes they have.
    pub bytes: u64,
    /// How many of them could not be read. Their segments stay.
    pub unreadable: u64,
}

/// What one step has moved.
struct Step {
    urls: u64,
    bytes: u64,
}

/// Segments that are worth rewriting.
#[derive(Debug, Default)]
pub(super) struct Unfit {
    segments: BTreeSet<u64>,
    /// How much of the disk is wasted, against what is needed.
    pub(super) waste: f64,
}

impl Unfit {
    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }
}

impl Shared {
    pub(super) fn segments_of(&self, which: Rewrite) -> Unfit {
        match which {
            Rewrite::Unfit => self.unfit_segments(),
            Rewrite::All => {
                let before = self.snapshots.lock().map_or(0, |snapshots| snapshots.segment);
                let alive = self.texts.ledger().alive();
                let segments = alive.into_keys().filter(|number| *number < before).collect();
                Unfit { segments, waste: 0.0 }
            }
        }
    }

    /// The segments that are worth rewriting: the emptiest of those before the latest snapshot, as long as more than a quarter
    /// comes on top of what is needed, and more than one segment.
    pub(super) fn unfit_segments(&self) -> Unfit {
        let before = self.snapshots.lock().map_or(0, |snapshots| snapshots.segment);
        let ledger = self.texts.ledger();
        let stuck = self.stuck.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Ok(names) = self.files.list() else { return Unfit::default() };
        let mut segments: Vec<(u64, u64, u64)> = names
            .iter()
            .filter_map(|name| Segment::number_of(name).filter(|number| *number < before))
            .filter(|number| !stuck.contains(number))
            .filter_map(|number| {
                let bytes = self.files.bytes(&Segment::name(number)).ok()?;
                let account = ledger.account(number);
                // As much as moving it takes; and what the end of a segment is kept for, the next one has as well.
                let alive = account.alive_bytes() + MOVED_BESIDE * account.alive;
                Some((number, bytes.saturating_sub(log::reserve(bytes)), alive))
            })
            .filter(|(_, bytes, alive)| *bytes > 0 && *alive > 0)
            .collect();
        let mut waste: u64 = segments.iter().map(|(_, bytes, alive)| bytes.saturating_sub(*alive)).sum();
        let needed: u64 = segments.iter().map(|(_, _, alive)| *alive).sum();
        let mut unfit = Unfit { segments: BTreeSet::new(), waste: waste as f64 / needed.max(1) as f64 };
        let one = self.sizes.usual(needed);
        // The emptiest first.
        segments.sort_unstable_by_key(|(_, bytes, alive)| alive * 1000 / bytes);
        let mut moved = 0;
        for (number, bytes, alive) in segments {
            let is_worth_it = waste > needed / 4 && waste > one && alive < bytes / 5 * 4;
            if !is_worth_it || moved > PASS_BYTES {
                break;
            }
            unfit.segments.insert(number);
            moved += alive;
            waste -= bytes - alive;
        }
        unfit
    }

    /// Moves what is needed out of segments. `pause` is called between steps, and says whether to go on.
    pub(super) fn rewrite(
        &self,
        unfit: &Unfit,
        mut pause: impl FnMut() -> bool,
    ) -> Result<Rewritten, StoreError> {
        let unfit = &unfit.segments;
        let mut rewritten = Rewritten::default();
        if unfit.is_empty() {
            return Ok(rewritten);
        }
        let inner = self.inner(ATTEMPTED)?;
        let crawls: Vec<Arc<str>> = inner.engine.crawls().map(|(name, _)| Arc::clone(name)).collect();
        drop(inner);
        for crawl in crawls {
            let mut from = Some(Owner::FIRST);
            while let Some(owner) = from {
                let mut inner = self.inner(ATTEMPTED)?;
                let is_wanted = |place| unfit.contains(&segment_of(place));
                let (found, next) = inner.engine.find_places(&crawl, &owner, LOOKED_AT_ONCE, is_wanted);
                inner.engine.relieve();
                drop(inner);
                from = next;
                for some in found.chunks(MOVED_AT_ONCE) {
                    if !self.relocate(&crawl, some, &mut rewritten, &mut pause)? {
                        return Ok(rewritten);
                    }
                }
                if found.is_empty() && !pause() {
                    return Ok(rewritten);
                }
            }
        }
        let ledger = self.texts.ledger();
        rewritten.segments = unfit.iter().filter(|number| ledger.account(**number).alive == 0).count() as u64;
        Ok(rewritten)
    }

    /// Moves some entries of a crawl; answers whether to go on.
    fn relocate(
        &self,
        crawl: &str,
        found: &[Found],
        rewritten: &mut Rewritten,
        pause: &mut impl FnMut() -> bool,
    ) -> Result<bool, StoreError> {
        // Nobody waits for these reads.
        let mut at_hand = BTreeMap::new();
        let mut owners = Vec::new();
        let mut bytes = 0;
        let one = self.usual_segment();
        let mut reader = self.texts.reader();
        for found in found {
            match reader.whole(found.place) {
                Ok(text) => {
                    // A page that comes with it has a length as well.
                    let page = if found.more_bytes > 0 { found.more_bytes + text::HEAD_MAX } else { 0 };
                    bytes += (text.len() + page) as u64;
                    at_hand.insert(found.place, text);
                    owners.push((found.owner.clone(), found.place));
                }
                // What cannot be read stays where it is, for `verify` to tell of; another time it may be.
                Err(unread) => {
                    rewritten.unreadable += 1;
                    if let Unread::Damaged(_) = unread {
                        let mut stuck = self.stuck.lock().unwrap_or_else(PoisonError::into_inner);
                        stuck.insert(segment_of(found.place));
                    }
                }
            }
            if bytes >= MOVED_BYTES.min(one / MOVED_SHARE) {
                let step = self.relocate_read(
                    crawl,
                    std::mem::take(&mut owners),
                    std::mem::take(&mut at_hand),
                    bytes,
                )?;
                rewritten.add(&step);
                bytes = 0;
                if !pause() {
                    return Ok(false);
                }
            }
        }
        if !owners.is_empty() {
            rewritten.add(&self.relocate_read(crawl, owners, at_hand, bytes)?);
        }
        Ok(pause())
    }

    fn relocate_read(
        &self,
        crawl: &str,
        mut owners: Vec<(Owner, u64)>,
        at_hand: BTreeMap<u64, Vec<u8>>,
        bytes: u64,
    ) -> Result<Step, StoreError> {
        let inner = self.inner(ATTEMPTED)?;
        // What was freed or moved meanwhile is not the log's business.
        owners.retain(|(owner, place)| inner.engine.is_at(crawl, owner, *place));
        if owners.is_empty() {
            return Ok(Step { urls: 0, bytes: 0 });
        }
        self.write_moves(inner, crawl, &owners, at_hand, bytes)
    }

    /// Writes a record that changes nothing.
    pub(super) fn move_nothing(&self) -> Result<(), StoreError> {
        self.write_moves(self.inner(ATTEMPTED)?, "", &[], BTreeMap::new(), 0).map(drop)
    }

    fn write_moves(
        &self,
        mut inner: MutexGuard<'_, Inner>,
        crawl: &str,
        owners: &[(Owner, u64)],
        at_hand: BTreeMap<u64, Vec<u8>>,
        bytes: u64,
    ) -> Result<Step, StoreError> {
        let Inner { engine, log, .. } = &mut *inner;
        if let Some(failure) = self.commit.failure() {
            return Err(stopped(ATTEMPTED, &failure));
        }
        let message = made(|bytes| logged::relocate(bytes, crawl, owners));
        let bound = (record::TEXTS + message.len()) as u64 + bytes;
        log.make_room(bound, Urgency::Admission, &self.commit).map_err(|trouble| {
            if let NoRoom::Failed(failure) = &trouble {
                self.commit.fail(failure.clone());
            }
            no_room(ATTEMPTED, &trouble)
        })?;
        let position = log.position();
        self.texts.begin(texts::place(position.segment, position.at));
        self.texts.put_at_hand(at_hand);
        let urls = engine.relocate(crawl, owners);
        engine.relieve();
        let texts = self.texts.take();
        if let Some(failure) = self.texts.take_failure() {
            self.commit.fail(failure.clone());
            return Err(unsure(ATTEMPTED, &failure));
        }
        let mut draft = Draft::with_texts(texts, |bytes| {
            bytes.extend_from_slice(&message);
            0
        });
        let bytes = draft.len();
        match self.append(&mut inner, &mut draft, urls) {
            Ok(_) => {
                self.texts.reuse(draft.into_bytes());
                Ok(Step { urls, bytes })
            }
            Err(failure) => {
                self.texts.keep(draft.into_bytes());
                Err(unsure(ATTEMPTED, &failure))
            }
        }
    }

    /// Removes the segments from which nothing is needed any more, by the oldest snapshot that is kept.
    pub(super) fn remove_dead_segments(&self, oldest: u64) {
        let Ok(header) = snapshot::read_header(&*self.files, &snapshot::name(oldest)) else { return };
        let Some(ledger) = header.ledger else { return };
        let mut dead = dead(&*self.files, &ledger, header.position.segment);
        // The ledger is trusted, and looked after all the same: what is gone cannot be had back.
        if dead.is_empty() || !self.spare_needed(&mut dead) {
            return;
        }
        for number in dead {
            // One that stays does no harm, and goes another time.
            if self.files.remove(&Segment::name(number)).is_ok() {
                self.texts.forget(number);
            }
        }
    }
}

impl Shared {
    /// Leaves out the segments in which the engine has something. False if the store was closed meanwhile.
    fn spare_needed(&self, segments: &mut BTreeSet<u64>) -> bool {
        let Ok(inner) = self.inner.lock() else { return false };
        let crawls: Vec<Arc<str>> = inner.engine.crawls().map(|(name, _)| Arc::clone(name)).collect();
        drop(inner);
        for crawl in crawls {
            let mut from = Some(Owner::FIRST);
            while let Some(owner) = from {
                let began = Instant::now();
                let Ok(mut inner) = self.inner.lock() else { return false };
                if inner.phase == Phase::Abandoned {
                    return false;
                }
                let is_wanted = |place| segments.contains(&segment_of(place));
                let (found, next) = inner.engine.find_places(&crawl, &owner, LOOKED_AT_ONCE, is_wanted);
                inner.engine.relieve();
                drop(inner);
                for found in found {
                    segments.remove(&segment_of(found.place));
                }
                from = next;
                // A lock that is taken again at once is nobody else's, however long they wait.
                self.bell.rest(began.elapsed());
            }
        }
        true
    }
}

/// The segments before one from which nothing is needed, by a ledger.
fn dead(files: &dyn Files, ledger: &Ledger, before: u64) -> BTreeSet<u64> {
    let names = files.list().unwrap_or_default();
    let numbers = names.iter().filter_map(|name| Segment::number_of(name));
    numbers.filter(|number| *number < before && ledger.account(*number).alive == 0).collect()
}

impl Rewritten {
    fn add(&mut self, step: &Step) {
        self.urls += step.urls;
        self.bytes += step.bytes;
    }
}
