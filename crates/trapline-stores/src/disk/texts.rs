//! The requests of all URLs, what is known of their pages, and long notes: they lie in the log, in the records of the commands that brought
//! them, and memory knows only where.
//!
//! A record's body begins with its texts (see `text.rs`), so that where each will be is known before the rest of the record is
//! made.
//!
//! A URL has one text. With a visit comes another one, which has the request once more beside what is known of the page by
//! then.
//!
//! A place is the number of the segment in the upper 32 bits, and in the lower ones the byte there.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trapline_core::Request;
use trapline_frontier::{Engine, Lease, Library, PageRecord, UnreadRequest, packed_page};

use super::commit::Failure;
use super::errands::{Errand, Errands, Readable, WORTH_IT};
use super::files::{Files, LogFile};
use super::ledger::{Ledger, segment_of};
use super::reader::Reader;
use super::record;
use super::segment::Segment;
use super::text::{self, Lengths, Text, lengths};

/// The texts of a log.
pub(crate) struct Texts {
    pub(super) files: Arc<dyn Files>,
    /// Those of the record under way.
    present: Mutex<Present>,
    /// Segments that were read from.
    open: Mutex<BTreeMap<u64, Arc<dyn LogFile>>>,
    /// Who reads, besides whoever wants something.
    pub(super) errands: Errands,
    expected: Mutex<Expected>,
    /// What went wrong: the first thing that may be otherwise another time, if there was one, or else the first.
    failure: Mutex<Option<Unread>>,
}

/// A request as a worker gets it, and what is known of the page.
pub(crate) struct Handed {
    request: Arc<Request>,
    page: Option<Arc<PageRecord>>,
}

/// What the claim under way will probably hand out.
#[derive(Default)]
struct Expected {
    errand: Option<Arc<Errand<Handed>>>,
    /// For so many claims nobody looks: what was expected was not what came.
    disappointed: u32,
}

impl Expected {
    /// So many of those that were expected were wanted.
    fn learn(&mut self, wanted: usize, expected: usize) {
        if wanted < expected / 2 {
            self.disappointed = DISAPPOINTED;
        }
    }
}

/// The texts of the record that is being made, or replayed.
#[derive(Default)]
struct Present {
    /// Where the record begins, or will.
    begin: u64,
    /// The record up to the end of its texts.
    bytes: Vec<u8>,
    /// Texts that were read ahead, by their places.
    at_hand: BTreeMap<u64, Vec<u8>>,
    /// While a record is replayed, its texts, which are there already.
    replayed: Option<Replayed>,
    /// How many texts the record has, and their bytes.
    put: u64,
    put_bytes: u64,
    /// What is alive in which segment, but for the record under way.
    ledger: Ledger,
}

/// The texts of a record that is replayed.
#[derive(Clone, Copy)]
struct Replayed {
    /// Where the next one to be put lies.
    next: usize,
    extent: Extent,
}

/// How much of what the command of a replayed record has left is among the record's texts, in the order in which it was put. What
/// is not there, or of which nobody knows whose it is, the engine is to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Extent {
    Requests,
    /// Requests, and what visits have left of pages.
    Pages,
    /// Notes as well.
    Notes,
}

/// Why a request was not read.
#[derive(Debug)]
pub(crate) enum Unread {
    /// What is there is no request, and will be none another time.
    Damaged(Failure),
    /// The file could not be read. Another time it may be.
    Failed(Failure),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.failure().fmt(f)
    }
}

impl Unread {
    pub(crate) fn failure(&self) -> &Failure {
        match self {
            Self::Damaged(failure) | Self::Failed(failure) => failure,
        }
    }

    /// Some reason or other.
    #[cfg(test)]
    pub(super) fn test() -> Self {
        Self::Failed(Failure::new("reading", "a file", &io::Error::other("for a test")))
    }

    fn into_failure(self) -> Failure {
        match self {
            Self::Damaged(failure) | Self::Failed(failure) => failure,
        }
    }
}

/// If less than half of what was expected was wanted, so many claims are done without.
const DISAPPOINTED: u32 = 64;

/// So many files are kept open at most.
const OPEN_MAX: usize = 256;

impl Texts {
    pub(crate) fn new(files: Arc<dyn Files>) -> Self {
        Self {
            files,
            present: Mutex::default(),
            open: Mutex::default(),
            errands: Errands::default(),
            expected: Mutex::default(),
            failure: Mutex::default(),
        }
    }

    /// An engine without crawls whose requests are here.
    pub(crate) fn engine(self: &Arc<Self>) -> Engine {
        Engine::with_library("disk", Arc::clone(self) as Arc<dyn Library>)
    }

    /// The texts of a record come, which will begin there.
    pub(crate) fn begin(&self, begin: u64) {
        let mut present = self.present();
        present.begin = begin;
        present.bytes.clear();
        present.bytes.resize(record::TEXTS, 0);
        present.at_hand.clear();
        present.replayed = None;
    }

    /// These texts, with their places, will be wanted while the record is made.
    pub(crate) fn put_at_hand(&self, texts: BTreeMap<u64, Vec<u8>>) {
        self.present().at_hand = texts;
    }

    /// A record is replayed that begins there and has these texts.
    pub(crate) fn begin_again(&self, begin: u64, texts: &[u8], extent: Extent) {
        self.begin(begin);
        let mut present = self.present();
        present.bytes.extend_from_slice(texts);
        present.replayed = Some(Replayed { next: record::TEXTS, extent });
    }

    /// The record so far: room for its header, and the texts that have come. They can be read from the log as soon as it
    /// is written there.
    pub(crate) fn take(&self) -> Vec<u8> {
        let mut present = self.present();
        present.replayed = None;
        present.at_hand.clear();
        present.account();
        std::mem::take(&mut present.bytes)
    }

    /// Takes back what the record was made in, to be filled again.
    pub(crate) fn reuse(&self, mut bytes: Vec<u8>) {
        bytes.clear();
        self.present().bytes = bytes;
    }

    /// Takes back a record that could not be written, so that it can be read.
    pub(crate) fn keep(&self, bytes: Vec<u8>) {
        self.present().bytes = bytes;
    }

    /// What is alive in which segment.
    pub(crate) fn ledger(&self) -> Ledger {
        let mut present = self.present();
        present.account();
        present.ledger.clone()
    }

    /// How many bytes of the log are needed.
    pub(crate) fn alive_bytes(&self) -> u64 {
        let mut present = self.present();
        present.account();
        present.ledger.alive_bytes()
    }

    /// How many bytes of the log are needed, and how many were once.
    pub(crate) fn alive_and_dead_bytes(&self) -> (u64, u64) {
        let mut present = self.present();
        present.account();
        (present.ledger.alive_bytes(), present.ledger.dead_bytes())
    }

    pub(crate) fn set_ledger(&self, ledger: Ledger) {
        self.present().ledger = ledger;
    }

    /// A segment is gone.
    pub(crate) fn forget(&self, segment: u64) {
        self.present().ledger.forget(segment);
        locked(&self.open).remove(&segment);
    }

    /// What went wrong since this was last asked, if anything did: answers that depend on it are not to be given.
    pub(crate) fn take_failure(&self) -> Option<Failure> {
        self.take_unread().map(Unread::into_failure)
    }

    /// The same, and whether it may be otherwise another time.
    pub(crate) fn take_unread(&self) -> Option<Unread> {
        locked(&self.failure).take()
    }

    fn present(&self) -> MutexGuard<'_, Present> {
        locked(&self.present)
    }

    /// The file of a segment.
    pub(super) fn file(&self, number: u64) -> io::Result<Arc<dyn LogFile>> {
        let mut open = locked(&self.open);
        if let Some(file) = open.get(&number) {
            return Ok(Arc::clone(file));
        }
        if open.len() >= OPEN_MAX {
            open.clear();
        }
        let file = self.files.open(&Segment::name(number))?;
        open.insert(number, Arc::clone(&file));
        Ok(file)
    }

    /// Reads the text at a place of the log.
    pub(crate) fn read(&self, place: u64) -> Result<Text, Unread> {
        self.reader().read(place)
    }

    /// Reads the texts at these places of the log as they are there.
    pub(crate) fn read_ahead(&self, places: Vec<u64>) -> Result<BTreeMap<u64, Vec<u8>>, Unread> {
        self.read_all(places).into_iter().map(|(place, text)| Ok((place, text?))).collect()
    }

    /// Those of these notes that can be read, as they are there.
    pub(crate) fn read_notes_ahead(&self, places: Vec<u64>) -> BTreeMap<u64, Vec<u8>> {
        self.read_all(places).into_iter().filter_map(|(place, text)| Some((place, text.ok()?))).collect()
    }

    /// The requests that the engine expects to hand out with the claim under way, as far as somebody reads them.
    pub(crate) fn take_expected(&self) -> Option<Arc<Errand<Handed>>> {
        locked(&self.expected).errand.take()
    }

    /// Reads the requests of leases, which lie at these places, and their pages; some were expected. Answers which of them could not be
    /// read.
    pub(crate) fn complete(
        &self,
        leases: &mut [Lease],
        unread: &[UnreadRequest],
        expected: Option<&Errand<Handed>>,
    ) -> BTreeMap<usize, Unread> {
        let mut hand = |at: usize, handed: Handed| {
            let Handed { request, page } = handed;
            let lease = &mut leases[at];
            lease.request = request;
            lease.page = lease.page.take().or(page.filter(|_| unread[at].has_page));
        };
        // What was expected has come in the order in which it was, mostly.
        let wanted = expected.filter(|_| !unread.is_empty());
        let mut came = wanted.map_or_else(Vec::new, |errand| errand.finish(self)).into_iter().peekable();
        let mut others = Vec::new();
        let mut late: BTreeMap<u64, Handed> = BTreeMap::new();
        for (at, unread) in unread.iter().enumerate() {
            let handed = loop {
                match came.next_if(|(place, _)| !late.contains_key(&unread.place) || *place == unread.place) {
                    Some((place, Ok(handed))) if place == unread.place => break Some(handed),
                    Some((place, Ok(handed))) => drop(late.insert(place, handed)),
                    // It is read once more, and told then.
                    Some((_, Err(_))) => {}
                    None => break late.remove(&unread.place),
                }
            };
            match handed {
                Some(handed) => hand(at, handed),
                None => others.push(at),
            }
        }
        if let Some(expected) = expected {
            locked(&self.expected).learn(unread.len() - others.len(), expected.len());
        }
        let places = others.iter().map(|at| unread[*at].place).collect();
        let mut lost = BTreeMap::new();
        for (at, (_, handed)) in others.into_iter().zip(self.read_all(places)) {
            match handed {
                Ok(handed) => hand(at, handed),
                Err(unread) => drop(lost.insert(at, unread)),
            }
        }
        lost
    }

    /// Reads what is at these places, and answers it with them, in their order.
    fn read_all<T: Readable>(&self, places: Vec<u64>) -> Vec<(u64, Result<T, Unread>)> {
        if places.len() < WORTH_IT {
            let mut reader = self.reader();
            return places.into_iter().map(|place| (place, T::read(&mut reader, place))).collect();
        }
        self.errands.send(Errand::new(places)).finish(self)
    }

    pub(super) fn reader(&self) -> Reader<'_> {
        Reader::new(self)
    }

    /// What stands at a place, in the record under way or in the log.
    fn text(&self, place: u64) -> Result<Text, Unread> {
        let present = self.present();
        let here = present.at_hand.get(&place).map(Vec::as_slice).or_else(|| present.text(place));
        if let Some(text) = here.and_then(|bytes| text::parse(bytes).ok()) {
            return Ok(text.0);
        }
        drop(present);
        self.read(place)
    }

    /// What the note at a place says, in the record under way or in the log.
    fn note_at(&self, place: u64) -> Result<Vec<u8>, Unread> {
        let present = self.present();
        let here = present.at_hand.get(&place).map(Vec::as_slice).or_else(|| present.text(place));
        if let Some(value) = here.and_then(|bytes| lengths(bytes).ok()?.note(bytes).ok()) {
            return Ok(value);
        }
        drop(present);
        self.read_note(place)
    }

    /// Reads what the note at a place of the log says.
    pub(crate) fn read_note(&self, place: u64) -> Result<Vec<u8>, Unread> {
        self.reader().note(place)
    }

    /// The text at a place as it is; None if it cannot be read, which is then noted.
    fn whole(&self, present: &mut Present, place: u64) -> Option<Vec<u8>> {
        let whole = present.whole(place).map_or_else(|| self.reader().whole(place), Ok);
        whole.map_err(|unread| self.fail(unread)).ok()
    }

    fn fail(&self, unread: Unread) {
        let mut failure = locked(&self.failure);
        let is_first = match &*failure {
            None => true,
            Some(Unread::Damaged(_)) => matches!(unread, Unread::Failed(_)),
            Some(Unread::Failed(_)) => false,
        };
        if is_first {
            *failure = Some(unread);
        }
    }
}

impl Present {
    /// The texts of the record so far are in its segment.
    fn account(&mut self) {
        let (put, put_bytes) = (std::mem::take(&mut self.put), std::mem::take(&mut self.put_bytes));
        self.ledger.put(segment_of(self.begin), put, put_bytes);
    }

    fn count(&mut self, bytes: usize) {
        self.put += 1;
        self.put_bytes += bytes as u64;
    }

    /// The text at a place, as it is.
    fn whole(&mut self, place: u64) -> Option<Vec<u8>> {
        self.at_hand.remove(&place).or_else(|| {
            let text = self.text(place)?;
            Some(text[..text::length(text).ok()?].to_vec())
        })
    }

    /// While a record is replayed, the place of the next text, which is known to be there.
    fn pass(&mut self, text: Lengths) -> Option<u64> {
        let replayed = self.replayed.as_mut()?;
        let place = self.begin + replayed.next as u64;
        replayed.next += text.all();
        self.count(text.all());
        Some(place)
    }

    /// While a record is replayed, the page record that will be put next.
    fn next_page(&self) -> Option<PageRecord> {
        let replayed = self.replayed.filter(|replayed| replayed.extent >= Extent::Pages)?;
        text::parse(self.bytes.get(replayed.next..)?).ok()?.0.page
    }

    /// While a record is replayed, the lengths of the next text.
    fn next_text(&self) -> Option<Lengths> {
        lengths(self.bytes.get(self.replayed?.next..)?).ok()
    }

    /// The text at a place, if it belongs to the record under way.
    fn text(&self, place: u64) -> Option<&[u8]> {
        let at = usize::try_from(place.checked_sub(self.begin)?).ok()?;
        self.bytes.get(at..).filter(|text| !text.is_empty())
    }

    /// While a record is replayed of which only the requests are known, the place of this one. Something before it may be lost, so that
    /// other requests are put than were, and the next text may be another one's.
    fn find_again(&mut self, request: &Request) -> Option<u64> {
        let Replayed { next, .. } = self.replayed.filter(|replayed| replayed.extent == Extent::Requests)?;
        let is_it = |at: &usize| {
            text::parse(&self.bytes[*at..])
                .is_ok_and(|(text, _)| text.page.is_none() && text.request == *request)
        };
        let at = self.texts_from(next).find(is_it).or_else(|| self.texts_from(record::TEXTS).find(is_it))?;
        let text = lengths(&self.bytes[at..]).ok()?;
        if let Some(replayed) = &mut self.replayed {
            replayed.next = at;
        }
        self.pass(text)
    }

    /// Where the texts of the record begin, from one on.
    fn texts_from(&self, at: usize) -> impl Iterator<Item = usize> {
        let length = |at: usize| lengths(self.bytes.get(at..)?).ok().map(Lengths::all);
        std::iter::successors(Some(at), move |at| Some(at + length(*at)?))
            .filter(move |at| length(*at).is_some())
    }

    /// While a record is replayed, passes over the texts that a request cannot have been put as: those of visits and notes.
    fn skip_others(&mut self) {
        let Some(Replayed { next, .. }) = &mut self.replayed else { return };
        while let Some(lengths) = self.bytes.get(*next..).and_then(|rest| lengths(rest).ok())
            && (lengths.page.is_some() || lengths.is_note)
        {
            *next += lengths.all();
        }
    }
}

impl Readable for Handed {
    fn read(reader: &mut Reader<'_>, place: u64) -> Result<Self, Unread> {
        let Text { request, page } = reader.read(place)?;
        Ok(Self { request: Arc::new(request), page: page.map(Arc::new) })
    }
}

/// A text as it is there.
impl Readable for Vec<u8> {
    fn read(reader: &mut Reader<'_>, place: u64) -> Result<Self, Unread> {
        reader.whole(place)
    }
}

impl Library for Texts {
    fn put(&self, request: &Request) -> u64 {
        let mut present = self.present();
        if let Some(place) = present.find_again(request) {
            return place;
        }
        present.skip_others();
        if present.replayed.is_some() {
            // A text that is not there cannot be: the engine would have answered otherwise, which is compared.
            let next = present.next_text();
            return next.and_then(|text| present.pass(text)).unwrap_or_default();
        }
        let at = present.bytes.len();
        text::append(&mut present.bytes, request);
        let bytes = present.bytes.len() - at;
        present.count(bytes);
        present.begin + at as u64
    }

    fn get(&self, place: u64) -> Arc<Request> {
        match self.text(place) {
            Ok(text) => Arc::new(text.request),
            Err(unread) => {
                self.fail(unread);
                Arc::new(Request::get(""))
            }
        }
    }

    /// They are read while the engine decides.
    fn expect(&self, places: &mut dyn Iterator<Item = u64>) {
        if !self.errands.has_runner() {
            return;
        }
        let mut expected = locked(&self.expected);
        if expected.disappointed > 0 {
            expected.disappointed -= 1;
            return;
        }
        let places: Vec<u64> = places.collect();
        if places.len() >= WORTH_IT {
            expected.errand = Some(self.errands.send(Errand::new(places)));
        }
    }

    fn put_page(&self, place: u64, page: &PageRecord) -> Option<u64> {
        let mut present = self.present();
        if let Some(Replayed { extent, .. }) = present.replayed {
            if extent < Extent::Pages {
                return None;
            }
            let Some(text) = present.next_text().filter(|text| text.page.is_some()) else {
                self.fail(lacking("a page record"));
                return None;
            };
            return present.pass(text);
        }
        let before = self.whole(&mut present, place)?;
        let at = present.bytes.len();
        text::append_with_page(&mut present.bytes, &before, &packed_page::encode(page));
        let bytes = present.bytes.len() - at;
        present.count(bytes);
        Some(present.begin + at as u64)
    }

    fn copy(&self, place: u64, with_page: bool) -> (u64, u32) {
        let mut present = self.present();
        if present.replayed.is_some() {
            let next = present.next_text();
            return next.and_then(|text| Some((present.pass(text)?, text.all() as u32))).unwrap_or_else(
                || {
                    self.fail(lacking("a request"));
                    (place, 0)
                },
            );
        }
        let Some(text) = self.whole(&mut present, place) else { return (place, 0) };
        let at = present.bytes.len();
        text::append_short(&mut present.bytes, &text, with_page);
        let bytes = present.bytes.len() - at;
        present.count(bytes);
        (present.begin + at as u64, bytes as u32)
    }

    fn page(&self, place: u64) -> Option<Arc<PageRecord>> {
        match self.text(place) {
            Ok(text) => text.page.map(Arc::new),
            Err(unread) => {
                self.fail(unread);
                None
            }
        }
    }

    /// While a record is replayed, what the visit made of it is there already.
    fn last_page(&self, place: u64) -> Option<Arc<PageRecord>> {
        let replayed = self.present().next_page();
        replayed.map(Arc::new).or_else(|| self.page(place))
    }

    fn free_page(&self, place: u64, page: &PageRecord) {
        let mut present = self.present();
        present.account();
        present.ledger.shrink(segment_of(place), packed_page::encode(page).len() as u64);
    }

    fn put_note(&self, key: &str, value: &[u8]) -> Option<(u64, u32)> {
        let mut present = self.present();
        if let Some(Replayed { extent, .. }) = present.replayed {
            if extent < Extent::Notes {
                return None;
            }
            let Some(text) = present.next_text().filter(|text| text.is_note) else {
                self.fail(lacking("a note"));
                return None;
            };
            return Some((present.pass(text)?, text.all() as u32));
        }
        let at = present.bytes.len();
        text::append_note(&mut present.bytes, key, value);
        let bytes = present.bytes.len() - at;
        present.count(bytes);
        Some((present.begin + at as u64, bytes as u32))
    }

    fn note(&self, place: u64) -> Option<Vec<u8>> {
        self.note_at(place).map_err(|unread| self.fail(unread)).ok()
    }

    /// What is not needed stays in the log until its segment is rewritten.
    fn free(&self, place: u64) {
        let mut present = self.present();
        present.account();
        present.ledger.free(segment_of(place), 1);
    }

    fn free_note(&self, place: u64, bytes: u32) {
        let mut present = self.present();
        present.account();
        present.ledger.take_away(segment_of(place), bytes.into());
    }

    fn free_all(&self, places: &mut dyn Iterator<Item = u64>) {
        let mut present = self.present();
        present.account();
        // Neighbours lie in one segment mostly.
        let mut run = (0, 0);
        for segment in places.map(segment_of) {
            if segment != run.0 {
                present.ledger.free(run.0, run.1);
                run = (segment, 0);
            }
            run.1 += 1;
        }
        present.ledger.free(run.0, run.1);
    }
}

impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Texts").finish_non_exhaustive()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A record that is replayed does not have what its command needs.
fn lacking(what: &str) -> Unread {
    Unread::Damaged(Failure::new("replaying", "a record", &io::Error::other(format!("it lacks {what}"))))
}

/// Where a text would be that begins at a byte of a segment.
pub(crate) fn place(segment: u64, at: u64) -> u64 {
    segment << 32 | at
}
