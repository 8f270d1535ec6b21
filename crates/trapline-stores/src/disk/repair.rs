//! Saving what is readable of a damaged store into a new folder.
//!
//! The new folder has the same segments, and a snapshot behind them of all that could be made of them. Records before the
//! first damage are done again as they were. After it nobody knows what workers were told, so claims are left
//! out, and what they had taken is pending again; admissions, links, settlements of leases that are known, and what
//! operators did are done as well as can be. If a snapshot was taken after the damage, all that it has is as it was.

use std::io;
use std::path::Path;
use std::sync::Arc;

use trapline_frontier::{
    Answer, CrawlChange, Engine, ErrorKind, NoteWrite, Picture, Steer, StoreError, UrlChange,
};

use super::command::Command;
use super::files::{Files, Folder};
use super::folder;
use super::ledger::Ledger;
use super::log::Position;
use super::message::logged;
use super::part::{NoPart, Part};
use super::record::Record;
use super::scan::{self, Damage, Scanned};
use super::segment::{HEADER, Segment};
use super::snapshot::{self, Chunks, TEXT_BYTES, Writer};
use super::texts::{self, Extent, Texts};
use super::verify::{Progress, folder_of};

/// What was saved of a damaged store, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// How many URLs were saved, in all crawls.
    pub urls: u64,
    /// Where the log is damaged.
    pub damages: Vec<Damage>,
    /// URLs of which only the identity and the queue are left: they are forgotten.
    pub lost_urls: Vec<String>,
    /// Notes of which only the key is left: they are forgotten.
    pub lost_notes: Vec<String>,
    /// Crawls of which nothing is left, because what made them is lost, each with how many commands that were for it.
    pub lost_crawls: Vec<(String, u64)>,
    /// How many claims were left out: what they had taken is pending again.
    pub claims_left_out: u64,
    /// How many settlements could not be done, because nobody knows of their leases: those URLs will be fetched again.
    pub settlements_left_out: u64,
}

/// So many numbers of leases are left out after a repair: they may have been given out in what is lost.
const LEASES_SKIPPED: u64 = 1 << 32;

/// Saves what is readable of the store in one folder into another, which must not be there yet or be empty. The store must
/// not be in use; it is not changed.
///
/// # Errors
/// If the one cannot be read, or the other not written.
pub fn repair(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    progress: Progress<'_>,
) -> Result<Repaired, StoreError> {
    let (from, to) = (from.as_ref(), to.as_ref());
    let files = folder_of(from, "repair")?;
    let _held = folder::hold(from)?;
    let cannot = |error: io::Error| {
        let message = format!(
            "disk store: cannot repair `{}` into `{}`: {error}; nothing was changed in the first",
            from.display(),
            to.display()
        );
        StoreError::new(ErrorKind::Unavailable, message)
    };
    let part = Part::begin(to).map_err(|none| match none {
        NoPart::Taken => cannot(io::Error::other("the second is not empty; choose a new folder")),
        NoPart::Failed(error) => cannot(error),
    })?;
    let mut salvage = Salvage::begin(&files).map_err(cannot)?;
    // Without a snapshot, what was removed because one had it is lost.
    let has_snapshot = salvage.next > 1;
    let begin = if has_snapshot { scan::begin(&*files) } else { scan::origin(&*files) }.map_err(cannot)?;
    let scanned = scan::scan(&*files, begin, |record, segment, at| {
        progress(record.sequence);
        salvage.record(record, segment, at)
    });
    let Scanned { store, newest, next, damages, newer, .. } = scanned.map_err(cannot)?;
    if let Some(newer) = newer {
        return Err(StoreError::new(ErrorKind::Unsupported, format!("disk store: cannot repair: {newer}")));
    }
    let Some(store) = store else {
        return Err(StoreError::new(
            ErrorKind::Corrupt,
            format!("disk store: cannot repair `{}`: not one segment can be read", from.display()),
        ));
    };
    let Salvage { mut engine, texts, mut repaired, next: reached, is_whole } = salvage;
    repaired.damages = damages;
    forget_unreadable(&mut engine, &texts, &mut repaired);
    // Also if nothing is damaged, but an engine of other rules has answered otherwise.
    if !is_whole || !repaired.damages.is_empty() {
        engine.skip_leases(engine.last_lease() + LEASES_SKIPPED);
    }
    repaired.urls = engine.places().count() as u64;
    let position = Position { next: next.max(reached), segment: newest + 1, at: HEADER };
    write(&files, &mut engine, (store, position), &part.segments()).map_err(cannot)?;
    part.finish().map_err(cannot)?;
    Ok(repaired)
}

/// An engine that is being made of what is left.
struct Salvage {
    engine: Engine,
    texts: Arc<Texts>,
    /// The record that comes next, as long as everything is as it was.
    next: u64,
    is_whole: bool,
    repaired: Repaired,
}

impl Salvage {
    /// Begins with the newest snapshot that is whole: what came before it need not be read.
    fn begin(files: &Arc<dyn Files>) -> io::Result<Self> {
        let texts = Arc::new(Texts::new(Arc::clone(files)));
        let mut numbers: Vec<u64> =
            files.list()?.iter().filter_map(|name| snapshot::number_of(name)).collect();
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        let whole = numbers.into_iter().find_map(|number| {
            let read = snapshot::read(&**files, &snapshot::name(number), &texts).ok()?;
            (read.position.next == number && read.engine.check().is_ok()).then_some(read)
        });
        let (engine, next) = match whole {
            Some(snapshot) => (snapshot.engine, snapshot.position.next),
            None => (texts.engine(), 1),
        };
        Ok(Self { engine, texts, next, is_whole: true, repaired: Repaired::default() })
    }

    /// Does what a record says, if it is not in the snapshot; answers what is wrong with it.
    fn record(&mut self, record: &Record<'_>, segment: u64, at: usize) -> Option<String> {
        let Some((texts, message)) = record.parts() else {
            self.is_whole = false;
            return Some("the record lacks some of its texts".to_owned());
        };
        let command = match logged::read(message, texts) {
            Ok(command) => command,
            Err(error) => {
                self.is_whole = false;
                return Some(format!("the record cannot be read: {error}"));
            }
        };
        if record.sequence < self.next {
            return None;
        }
        self.is_whole &= record.sequence == self.next;
        self.next = record.sequence + 1;
        // Once something is lost, other visits and notes may come of a record than did, and nobody knows whose text is which.
        let extent = if self.is_whole { record.extent } else { Extent::Requests };
        self.texts.begin_again(texts::place(segment, at as u64), texts, extent);
        let _ = self.engine.follow(record.rules);
        if self.is_whole {
            let answers = command.replay(&mut self.engine);
            self.is_whole = answers.is_ok_and(|answers| answers == record.answers);
        } else {
            self.do_what_can_be_done(command);
        }
        self.texts.take();
        self.texts.take_failure();
        None
    }

    /// Errors are left aside: of crawls that are lost, nothing can be done.
    fn do_what_can_be_done(&mut self, command: Command) {
        match command {
            Command::Admit { crawl, .. } | Command::Settle { crawl, .. } if !self.engine.has(&crawl) => {
                self.count_lost(&crawl);
            }
            Command::Claim { .. } => self.repaired.claims_left_out += 1,
            // What was moved is still where it was: its segments go only when a later snapshot does not need them.
            Command::Move { .. } => {}
            Command::Settle { crawl, now, batch } => {
                for settlement in batch {
                    let settled = self.engine.settle(&crawl, now, std::slice::from_ref(&settlement));
                    let stale = settled.is_ok_and(|settled| settled[0].answer == Answer::Stale);
                    if stale {
                        self.repaired.settlements_left_out += 1;
                        let _ = self.engine.admit(&crawl, now, &settlement.links);
                    }
                }
            }
            other => drop(other.replay(&mut self.engine)),
        }
    }

    /// Counts a command for a crawl that is not there any more.
    fn count_lost(&mut self, crawl: &str) {
        let lost = &mut self.repaired.lost_crawls;
        match lost.iter_mut().find(|(name, _)| name == crawl) {
            Some((_, commands)) => *commands += 1,
            None => lost.push((crawl.to_owned(), 1)),
        }
    }
}

/// Forgets the URLs whose requests cannot be read, and the notes of which nobody knows what they say.
fn forget_unreadable(engine: &mut Engine, texts: &Texts, repaired: &mut Repaired) {
    let mut lost = Vec::new();
    for (crawl, identity, key, place) in engine.places() {
        if let Err(failure) = texts.read(place) {
            repaired
                .lost_urls
                .push(format!("URL {:032x} of queue {key} in crawl {crawl}: {failure}", identity.0));
            lost.push((Arc::clone(crawl), identity));
        }
    }
    let mut lost_notes = Vec::new();
    for (crawl, key, place) in engine.note_places() {
        if let Err(failure) = texts.read_note(place) {
            repaired.lost_notes.push(format!("note `{key}` in crawl {crawl}: {failure}"));
            lost_notes.push((Arc::clone(crawl), key.clone()));
        }
    }
    for (crawl, key) in lost_notes {
        let forget = CrawlChange::Note(NoteWrite { key, value: None, expires: None });
        let _ = engine.steer(&crawl, trapline_core::Timestamp::ZERO, Steer::Crawl(forget));
    }
    for (crawl, identity) in lost {
        let forget = Steer::Url(identity, UrlChange::Forget);
        let _ = engine.steer(&crawl, trapline_core::Timestamp::ZERO, forget);
    }
}

/// Writes what is in the new folder: the segments as they are, one more for what is to come, and the snapshot.
fn write(
    files: &Arc<dyn Files>,
    engine: &mut Engine,
    (store, position): (u128, Position),
    to: &Path,
) -> io::Result<()> {
    let ledger = Ledger::of_places(engine.all_places(), TEXT_BYTES);
    let copy = Folder::new(to);
    let segment = Segment { store, number: position.segment, first: position.next, is_origin: true };
    let file = copy.create(&Segment::name(segment.number), NEW_SEGMENT_BYTES)?;
    file.write(0, &segment.header())?;
    file.sync()?;
    for number in 1..position.segment {
        let name = Segment::name(number);
        // One that is missing is made, so that the others keep their places; nothing is read in it.
        let bytes = files.open(&name).and_then(|file| file.read()).unwrap_or_default();
        let file = copy.create(&name, bytes.len() as u64)?;
        file.write(0, &bytes)?;
        file.sync()?;
    }
    let mut writer = Writer::begin(&copy, store, position, &ledger, Chunks::Inside)?;
    engine.begin_image(Picture::Whole);
    let last = loop {
        if let Some(last) = writer.frames(engine.next_frames())? {
            break last;
        }
    };
    writer.finish(&last, &copy).map(drop)
}

/// How large the segment for what is to come is made.
const NEW_SEGMENT_BYTES: u64 = 1 << 20;
