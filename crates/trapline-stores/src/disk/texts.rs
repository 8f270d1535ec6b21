//! The requests of all URLs: they lie in the log, in the records of the commands that brought them, and memory knows only
//! where.
//!
//! A record's body begins with its texts, so that where each will be is known before the rest of the record is made. Each
//! of them is:
//!
//! ```text
//! u32     lower half of the xxh3 of all that follows
//! varint  length of the URL
//! varint  length of the rest of the request
//!         the URL, and the rest: see `payload.rs`
//! ```
//!
//! A place is the number of the segment in the upper 32 bits, and in the lower ones the byte there.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prost::encoding::{decode_varint, encode_varint};
use trapline_core::Request;
use trapline_frontier::{Lease, Library, payload};
use xxhash_rust::xxh3::xxh3_64;

use super::commit::Failure;
use super::files::{Files, LogFile};
use super::record;
use super::segment::Segment;

/// The texts of a log.
pub(crate) struct Texts {
    files: Arc<dyn Files>,
    /// Those of the record under way.
    present: Mutex<Present>,
    /// Segments that were read from.
    open: Mutex<BTreeMap<u64, Arc<dyn LogFile>>>,
    /// The first thing that went wrong.
    failure: Mutex<Option<Failure>>,
}

/// The texts of the record that is being made, or replayed.
#[derive(Default)]
struct Present {
    /// Where the record begins, or will.
    begin: u64,
    /// The record up to the end of its texts.
    bytes: Vec<u8>,
    /// While a record is replayed, where the next one to be put lies: it is there already.
    next: Option<usize>,
}

/// Reads requests one after the other.
struct Reader<'a> {
    texts: &'a Texts,
    /// Segments that were read from, at hand without a lock.
    files: Vec<(u64, Arc<dyn LogFile>)>,
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
}

/// So many bytes are read at first: nearly always enough.
const READ_AT_FIRST: usize = 192;

/// So many files are kept open at most.
const OPEN_MAX: usize = 256;

/// So many files a reader has at hand at most.
const AT_HAND_MAX: usize = 16;

/// The check, and two lengths.
const HEAD_MAX: usize = 4 + 2 * 10;

impl Texts {
    pub(crate) fn new(files: Arc<dyn Files>) -> Self {
        Self { files, present: Mutex::default(), open: Mutex::default(), failure: Mutex::default() }
    }

    /// The texts of a record come, which will begin there.
    pub(crate) fn begin(&self, begin: u64) {
        let mut present = self.present();
        present.begin = begin;
        present.bytes.clear();
        present.bytes.resize(record::TEXTS, 0);
        present.next = None;
    }

    /// A record is replayed that begins there and has these texts.
    pub(crate) fn begin_again(&self, begin: u64, texts: &[u8]) {
        self.begin(begin);
        let mut present = self.present();
        present.bytes.extend_from_slice(texts);
        present.next = Some(record::TEXTS);
    }

    /// The record so far: room for its header, and the texts that have come. They can be read from the log as soon as it
    /// is written there.
    pub(crate) fn take(&self) -> Vec<u8> {
        let mut present = self.present();
        present.next = None;
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

    /// What went wrong since this was last asked, if anything did: answers that depend on it are not to be given.
    pub(crate) fn take_failure(&self) -> Option<Failure> {
        locked(&self.failure).take()
    }

    fn present(&self) -> MutexGuard<'_, Present> {
        locked(&self.present)
    }

    fn file(&self, number: u64) -> io::Result<Arc<dyn LogFile>> {
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

    /// Reads the request at a place of the log.
    pub(crate) fn read(&self, place: u64) -> Result<Request, Unread> {
        self.reader().read(place)
    }

    /// Reads the requests of leases, which lie at these places. Answers which of them could not be read.
    pub(crate) fn complete(&self, leases: &mut [Lease], places: &[u64]) -> BTreeMap<usize, Unread> {
        let mut reader = self.reader();
        let mut lost = BTreeMap::new();
        for ((at, lease), place) in leases.iter_mut().enumerate().zip(places) {
            match reader.read(*place) {
                Ok(request) => lease.request = Arc::new(request),
                Err(unread) => drop(lost.insert(at, unread)),
            }
        }
        lost
    }

    fn reader(&self) -> Reader<'_> {
        Reader { texts: self, files: Vec::new() }
    }

    fn fail(&self, failure: Failure) {
        locked(&self.failure).get_or_insert(failure);
    }
}

impl Reader<'_> {
    /// Reads the request at a place of the log.
    fn read(&mut self, place: u64) -> Result<Request, Unread> {
        let (number, at) = (place >> 32, place & u64::from(u32::MAX));
        let texts = self.texts;
        let failure =
            |error: &io::Error| Failure::new("reading", &texts.files.describe(&Segment::name(number)), error);
        let failed = |error| Unread::Failed(failure(&error));
        let damaged =
            |_| Unread::Damaged(failure(&io::Error::other(format!("the request at byte {at} is damaged"))));
        let at_hand = self.files.iter().position(|(other, _)| *other == number);
        let file = match at_hand {
            Some(at_hand) => &self.files[at_hand].1,
            None => {
                if self.files.len() == AT_HAND_MAX {
                    self.files.clear();
                }
                let file = texts.file(number).map_err(failed)?;
                &self.files.push_mut((number, file)).1
            }
        };
        let mut first = [0; READ_AT_FIRST];
        let read = file.read_into(at, &mut first).map_err(failed)?;
        let first = &first[..read];
        let lengths = lengths(first).map_err(damaged)?;
        if lengths.all() <= read {
            return lengths.request(first).map_err(damaged);
        }
        let whole = file.read_at(at, lengths.all()).map_err(failed)?;
        lengths.request(&whole).map_err(damaged)
    }
}

impl Library for Texts {
    fn put(&self, request: &Request) -> u64 {
        let mut present = self.present();
        let Present { begin, bytes, next } = &mut *present;
        match next {
            None => {
                let place = *begin + bytes.len() as u64;
                append(bytes, request);
                place
            }
            Some(next) => {
                let place = *begin + *next as u64;
                // A text that is not there cannot be: the engine would have answered otherwise, which is compared.
                *next += bytes.get(*next..).and_then(|rest| length(rest).ok()).unwrap_or(0);
                place
            }
        }
    }

    fn get(&self, place: u64) -> Arc<Request> {
        let present = self.present();
        let in_present = place.checked_sub(present.begin).and_then(|at| present.bytes.get(at as usize..));
        if let Some((request, _)) =
            in_present.filter(|text| !text.is_empty()).and_then(|text| parse(text).ok())
        {
            return Arc::new(request);
        }
        drop(present);
        match self.read(place) {
            Ok(request) => Arc::new(request),
            Err(unread) => {
                self.fail(unread.failure().clone());
                Arc::new(Request::get(""))
            }
        }
    }

    /// What is not needed stays in the log until its segment is rewritten.
    fn free(&self, _: u64) {}
}

impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Texts").finish_non_exhaustive()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where a text would be that begins at a byte of a segment.
pub(crate) fn place(segment: u64, at: u64) -> u64 {
    segment << 32 | at
}

/// Appends the text of a request.
pub(crate) fn append(bytes: &mut Vec<u8>, request: &Request) {
    let rest = payload::encode(request);
    let begin = bytes.len();
    bytes.extend_from_slice(&[0; 4]);
    encode_varint(request.url.len() as u64, bytes);
    encode_varint(rest.len() as u64, bytes);
    bytes.extend_from_slice(request.url.as_bytes());
    bytes.extend_from_slice(&rest);
    let check = xxh3_64(&bytes[begin + 4..]) as u32;
    bytes[begin..begin + 4].copy_from_slice(&check.to_le_bytes());
}

/// At most so many bytes has the text of a request.
pub(crate) fn bound(request: &Request) -> usize {
    HEAD_MAX + request.url.len() + payload::bound(request)
}

/// Something that is no text.
#[derive(Debug)]
pub(crate) struct NoText;

/// How many bytes the text has that begins these.
fn length(bytes: &[u8]) -> Result<usize, NoText> {
    lengths(bytes).map(Lengths::all)
}

/// How a text is divided.
#[derive(Clone, Copy)]
struct Lengths {
    /// Where the URL begins.
    head: usize,
    url: usize,
    rest: usize,
}

fn lengths(bytes: &[u8]) -> Result<Lengths, NoText> {
    let mut left = bytes.get(4..).ok_or(NoText)?;
    let mut number = || {
        let number = decode_varint(&mut left).map_err(|_| NoText)?;
        // Whatever this is of, it is no text: segments are smaller.
        if number > u64::from(u32::MAX) { Err(NoText) } else { Ok(number as usize) }
    };
    let (url, rest) = (number()?, number()?);
    Ok(Lengths { head: bytes.len() - left.len(), url, rest })
}

impl Lengths {
    fn all(self) -> usize {
        self.head + self.url + self.rest
    }

    /// The request of the text that begins these bytes.
    fn request(self, bytes: &[u8]) -> Result<Request, NoText> {
        let text = bytes.get(4..self.all()).ok_or(NoText)?;
        if bytes[..4] != (xxh3_64(text) as u32).to_le_bytes() {
            return Err(NoText);
        }
        let (url, rest) = bytes[self.head..self.all()].split_at(self.url);
        let url = std::str::from_utf8(url).map_err(|_| NoText)?;
        payload::decode(url.to_owned(), rest).map_err(|_| NoText)
    }
}

/// The request whose text begins these bytes, and how many it takes.
pub(crate) fn parse(bytes: &[u8]) -> Result<(Request, usize), NoText> {
    let lengths = lengths(bytes)?;
    Ok((lengths.request(bytes)?, lengths.all()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests() -> Vec<Request> {
        let mut long = Request::get(format!("http://a.example/{}", "x".repeat(2000)));
        long.body = vec![7; 70_000];
        let mut link = Request::get("http://b.example/ä");
        link.via = Some("http://a.example/".to_owned());
        link.depth = 3;
        vec![Request::get(""), Request::get("http://a.example/"), link, long]
    }

    #[test]
    fn requests_come_back_as_they_were_within_their_bounds() {
        let mut bytes = Vec::new();
        for request in requests() {
            let begin = bytes.len();
            append(&mut bytes, &request);
            assert!(bytes.len() - begin <= bound(&request));
        }
        let mut at = 0;
        for request in requests() {
            let (read, length) = parse(&bytes[at..]).unwrap();
            assert_eq!(read, request);
            at += length;
        }
        assert_eq!(at, bytes.len());
    }

    #[test]
    fn other_bytes_are_no_text() {
        let mut bytes = Vec::new();
        append(&mut bytes, &requests()[2]);
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(parse(&bad).is_err(), "bit {bit}");
        }
        for cut in 0..bytes.len() {
            assert!(parse(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        assert!(parse(&[0xff; 100]).is_err());
    }
}
