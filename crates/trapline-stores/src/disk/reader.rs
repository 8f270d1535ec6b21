//! Reads texts of the log, one after the other, at places that are known. What is to be read by whom is not known here.

use std::io;
use std::sync::Arc;

use super::commit::Failure;
use super::files::LogFile;
use super::segment::Segment;
use super::text::{Lengths, NoText, Text, lengths};
use super::texts::{Texts, Unread};

/// Reads requests one after the other.
pub(super) struct Reader<'a> {
    texts: &'a Texts,
    /// Segments that were read from, at hand without a lock, each in the place that its number says.
    files: Vec<Option<(u64, Arc<dyn LogFile>)>>,
}

/// So many bytes are read at first: nearly always enough.
const READ_AT_FIRST: usize = 192;

/// So many files a reader has at hand at most: as many as most logs have.
const AT_HAND_MAX: usize = 128;

impl<'a> Reader<'a> {
    pub(super) fn new(texts: &'a Texts) -> Self {
        Self { texts, files: Vec::new() }
    }

    /// Reads the text at a place of the log.
    pub(super) fn read(&mut self, place: u64) -> Result<Text, Unread> {
        self.with_text(("request", place), Lengths::text)
    }

    /// The same, as it is there.
    pub(super) fn whole(&mut self, place: u64) -> Result<Vec<u8>, Unread> {
        self.with_text(("text", place), |lengths, bytes| lengths.check(bytes).map(<[u8]>::to_vec))
    }

    /// What the note at a place of the log says.
    pub(super) fn note(&mut self, place: u64) -> Result<Vec<u8>, Unread> {
        self.with_text(("note", place), Lengths::note)
    }

    fn with_text<T>(
        &mut self,
        (what, place): (&str, u64),
        read_text: impl Fn(Lengths, &[u8]) -> Result<T, NoText>,
    ) -> Result<T, Unread> {
        let (number, at) = (place >> 32, place & u64::from(u32::MAX));
        let texts = self.texts;
        let failure =
            |error: &io::Error| Failure::new("reading", &texts.files.describe(&Segment::name(number)), error);
        let failed = |error| Unread::Failed(failure(&error));
        let damaged =
            |_| Unread::Damaged(failure(&io::Error::other(format!("the {what} at byte {at} is damaged"))));
        let slot = number as usize % AT_HAND_MAX;
        if self.files.len() <= slot {
            self.files.resize(slot + 1, None);
        }
        let file = match &mut self.files[slot] {
            Some((at_hand, file)) if *at_hand == number => file,
            other => &mut other.insert((number, texts.file(number).map_err(failed)?)).1,
        };
        let mut first = [0; READ_AT_FIRST];
        let read = file.read_into(at, &mut first).map_err(failed)?;
        let first = &first[..read];
        let lengths = lengths(first).map_err(damaged)?;
        if lengths.all() <= read {
            return read_text(lengths, first).map_err(damaged);
        }
        let whole = file.read_at(at, lengths.all()).map_err(failed)?;
        read_text(lengths, &whole).map_err(damaged)
    }
}
