//! The text of a sitemap, as UTF-8, a piece at a time: unpacked and decoded on the way, and never more of it in memory than a
//! piece. This is where a gzip bomb ends.

use std::io::{self, BufRead, Read};

use encoding_rs::{CoderResult, Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use flate2::bufread::MultiGzDecoder;
use memchr::memchr;

use super::SitemapFaultKind;
use super::collect::Collection;

/// Bytes that are unpacked at a time.
const PIECE_BYTES: usize = 16 << 10;

/// How far the name of the encoding is looked for.
const DECLARATION_BYTES: usize = 256;

pub(super) struct Text<'a> {
    bytes: Packed<'a>,
    /// How many more bytes may be unpacked.
    left: u64,
    piece: Box<[u8]>,
    decoder: Decoder,
    /// Decoded, and from `read` on not yet read.
    decoded: Vec<u8>,
    read: usize,
    /// How many bytes of decoded text were read.
    position: u64,
    /// How many bytes the reader may have before it is told that this was all.
    allowance: usize,
    ended: bool,
    broken: bool,
    cut: bool,
    replaced: bool,
}

enum Packed<'a> {
    Plain(&'a [u8]),
    Gzip(Box<MultiGzDecoder<&'a [u8]>>),
}

impl Read for Packed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(bytes) => bytes.read(buffer),
            Self::Gzip(packed) => packed.read(buffer),
        }
    }
}

impl<'a> Text<'a> {
    pub(super) fn new(bytes: &'a [u8], bytes_max: u64) -> Self {
        let bytes = match bytes {
            [0x1f, 0x8b, ..] => Packed::Gzip(Box::new(MultiGzDecoder::new(bytes))),
            plain => Packed::Plain(plain),
        };
        let mut text = Self {
            bytes,
            left: bytes_max,
            piece: vec![0; PIECE_BYTES].into_boxed_slice(),
            decoder: UTF_8.new_decoder_without_bom_handling(),
            decoded: Vec::new(),
            read: 0,
            position: 0,
            allowance: usize::MAX,
            ended: false,
            broken: false,
            cut: false,
            replaced: false,
        };
        let first = text.unpack();
        text.decoder = encoding_of(&text.piece[..first]).new_decoder_with_bom_removal();
        text.decode(first);
        text
    }

    /// Unpacks a piece, as full as it gets. Nothing comes at the end.
    fn unpack(&mut self) -> usize {
        let mut filled = 0;
        while filled < self.piece.len() {
            match self.bytes.read(&mut self.piece[filled..]) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(_) => {
                    self.broken = true;
                    break;
                }
            }
        }
        if filled as u64 > self.left {
            self.cut = true;
            filled = usize::try_from(self.left).unwrap_or(filled);
        }
        self.left -= filled as u64;
        filled
    }

    fn decode(&mut self, filled: usize) {
        let last = filled < self.piece.len() || self.broken || self.cut;
        self.decoded.clear();
        self.read = 0;
        // A byte becomes three at most, and something may have been held back before.
        self.decoded.resize(3 * filled + 16, 0);
        let (mut from, mut to) = (0, 0);
        loop {
            let (result, read, written, replaced) =
                self.decoder.decode_to_utf8(&self.piece[from..filled], &mut self.decoded[to..], last);
            from += read;
            to += written;
            self.replaced |= replaced;
            match result {
                CoderResult::InputEmpty => break,
                CoderResult::OutputFull => self.decoded.resize(self.decoded.len() * 2, 0),
            }
        }
        self.decoded.truncate(to);
        self.ended = last;
    }

    fn fill(&mut self) {
        while self.read >= self.decoded.len() && !self.ended {
            let filled = self.unpack();
            self.decode(filled);
        }
    }

    fn skip(&mut self, count: usize) {
        self.read += count;
        self.position += count as u64;
    }

    /// What is decoded and not yet read; empty only at the end.
    pub(super) fn piece(&mut self) -> &[u8] {
        self.fill();
        &self.decoded[self.read..]
    }

    /// Says that so much of the piece was read.
    pub(super) fn advance(&mut self, count: usize) {
        self.skip(count.min(self.decoded.len() - self.read));
    }

    /// The first byte that is no white space.
    pub(super) fn first(&mut self) -> Option<u8> {
        loop {
            let piece = self.piece();
            let (found, length) = (piece.iter().position(|byte| !byte.is_ascii_whitespace()), piece.len());
            match found {
                Some(place) => {
                    let byte = piece[place];
                    self.skip(place);
                    return Some(byte);
                }
                None if length == 0 => return None,
                None => self.skip(length),
            }
        }
    }

    /// Lets the reader have so many bytes, and then an end.
    pub(super) fn allow(&mut self, bytes: usize) {
        self.allowance = bytes;
    }

    /// Whether the reader saw an end that is none.
    pub(super) fn is_held_back(&mut self) -> bool {
        self.allowance == 0 && !self.is_at_end()
    }

    pub(super) fn is_at_end(&mut self) -> bool {
        self.piece().is_empty()
    }

    /// Goes on to the next `<`.
    pub(super) fn skip_to_markup(&mut self) {
        loop {
            let piece = self.piece();
            let (found, length) = (memchr(b'<', piece), piece.len());
            self.skip(found.unwrap_or(length));
            if found.is_some() || length == 0 {
                return;
            }
        }
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Tells of what went wrong here.
    pub(super) fn report(self, found: &mut Collection<'_>) {
        if self.broken {
            found.fault(self.position, SitemapFaultKind::Gzip);
        }
        if self.replaced {
            found.fault(self.position, SitemapFaultKind::NotText);
        }
        if self.cut {
            found.fault(self.position, SitemapFaultKind::TooLong);
            found.cut();
        }
    }
}

/// What an XML reader reads from.
impl BufRead for Text<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let allowance = self.allowance;
        let piece = self.piece();
        Ok(&piece[..piece.len().min(allowance)])
    }

    fn consume(&mut self, count: usize) {
        self.advance(count);
        self.allowance = self.allowance.saturating_sub(count);
    }
}

impl Read for Text<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut piece = self.fill_buf()?;
        let count = piece.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

/// By its byte order mark, by the zeros around its first `<`, by what its XML declaration says, or UTF-8.
fn encoding_of(start: &[u8]) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(start) {
        return encoding;
    }
    match start {
        [b'<', 0, ..] => return UTF_16LE,
        [0, b'<', ..] => return UTF_16BE,
        _ => {}
    }
    let start = &start[..start.len().min(DECLARATION_BYTES)];
    // A declaration that can be read byte by byte is not in UTF-16, whatever it says.
    declared(start).and_then(Encoding::for_label).filter(|encoding| encoding.is_ascii_compatible()).unwrap_or(UTF_8)
}

fn declared(start: &[u8]) -> Option<&[u8]> {
    let start = start.trim_ascii_start().strip_prefix(b"<?xml")?;
    let start = &start[..memchr(b'>', start)?];
    let name = b"encoding";
    let place = start.windows(name.len()).position(|word| word == name)?;
    let value = start[place + name.len()..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let (quote, value) = value.split_first().filter(|(quote, _)| matches!(quote, b'"' | b'\''))?;
    Some(&value[..memchr(*quote, value)?])
}
