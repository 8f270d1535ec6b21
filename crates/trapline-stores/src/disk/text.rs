//! A text: a request, and what is known of its page, as they lie in the log; or a note.
//!
//! ```text
//! u32     lower half of the xxh3 of all that follows
//! varint  length of the URL, or of a note's key; 2³¹ more if a page record follows, 2³⁰ more if it is in shorthand, 2²⁹ more if it
//!         is a note's
//! varint  length of the rest of the request, or of what the note says; 2³⁰ more if it is in shorthand
//! varint  length of the page record, if there is one
//!         the URL, and the rest: see `payload.rs`; the page record: see `packed_page.rs`
//! ```
//!
//! Texts are written out as they come, and in [`shorthand`] when they are moved: then it is known that they stay.

use std::borrow::Cow;

use prost::encoding::{decode_varint, encode_varint};
use trapline_core::Request;
use trapline_frontier::{PageRecord, packed_page, payload};
use xxhash_rust::xxh3::xxh3_64;

use super::shorthand;

/// A request, and what is known of its page.
#[derive(Debug, PartialEq)]
pub(crate) struct Text {
    pub(crate) request: Request,
    pub(crate) page: Option<PageRecord>,
}

/// The check, and three lengths.
pub(crate) const HEAD_MAX: usize = 4 + 3 * 5;

/// Added to the length of a URL if a page record follows. No URL in a log is as long.
const WITH_PAGE: u64 = 1 << 31;

/// Added to a length if what has it is in shorthand. No record is as long.
const SHORT: u64 = 1 << 30;

/// Added to the length of a key: what follows is a note. No URL or key in a log is as long.
const NOTE: u64 = 1 << 29;

/// Appends the text of a request.
pub(crate) fn append(bytes: &mut Vec<u8>, request: &Request) {
    let (url, rest) = (Part::plain(request.url.as_bytes()), payload::encode(request));
    append_parts(bytes, 0, (url, Part::plain(&rest), None));
}

/// Appends the text of a note.
pub(crate) fn append_note(bytes: &mut Vec<u8>, key: &str, value: &[u8]) {
    append_parts(bytes, NOTE, (Part::plain(key.as_bytes()), Part::plain(value), None));
}

/// Appends a text that is like another one, but for what it knows of the page.
pub(crate) fn append_with_page(bytes: &mut Vec<u8>, text: &[u8], page: &[u8]) {
    if let Ok(lengths) = lengths(text) {
        let (url, rest, _) = lengths.parts(text);
        append_parts(bytes, WITH_PAGE, (url, rest, Some(page)));
    }
}

/// Appends a text that is like another one in shorthand, with what that one knows of the page or without.
pub(crate) fn append_short(bytes: &mut Vec<u8>, text: &[u8], with_page: bool) {
    if let Ok(lengths) = lengths(text) {
        let (url, rest, page) = lengths.parts(text);
        let (short_url, short_rest) = (url.write_short(), rest.write_short());
        let url = short_url.as_deref().map_or(url, Part::short);
        let rest = short_rest.as_deref().map_or(rest, Part::short);
        let page = page.filter(|_| with_page);
        let kind = if lengths.is_note { NOTE } else { page.map_or(0, |_| WITH_PAGE) };
        append_parts(bytes, kind, (url, rest, page));
    }
}

/// The URL of a text, the rest of its request, and the page; or the key of a note and what it says.
type Parts<'a> = (Part<'a>, Part<'a>, Option<&'a [u8]>);

/// The URL of a text, or the rest of its request.
#[derive(Clone, Copy)]
struct Part<'a> {
    bytes: &'a [u8],
    is_short: bool,
}

impl<'a> Part<'a> {
    fn plain(bytes: &'a [u8]) -> Self {
        Self { bytes, is_short: false }
    }

    fn short(bytes: &'a [u8]) -> Self {
        Self { bytes, is_short: true }
    }

    /// Its bytes in shorthand, if they are not and that is shorter, with the four bytes that saying so takes.
    fn write_short(self) -> Option<Vec<u8>> {
        if self.is_short {
            return None;
        }
        shorthand::write(self.bytes).filter(|short| short.len() + 4 < self.bytes.len())
    }

    /// Its bytes written out.
    fn read(self) -> Result<Cow<'a, [u8]>, NoText> {
        if !self.is_short {
            return Ok(Cow::Borrowed(self.bytes));
        }
        shorthand::read(self.bytes).map(Cow::Owned).ok_or(NoText)
    }

    fn length(self) -> u64 {
        self.bytes.len() as u64 | if self.is_short { SHORT } else { 0 }
    }
}

fn append_parts(bytes: &mut Vec<u8>, kind: u64, (url, rest, page): Parts<'_>) {
    let begin = bytes.len();
    bytes.extend_from_slice(&[0; 4]);
    encode_varint(url.length() | kind, bytes);
    encode_varint(rest.length(), bytes);
    if let Some(page) = page {
        encode_varint(page.len() as u64, bytes);
    }
    bytes.extend_from_slice(url.bytes);
    bytes.extend_from_slice(rest.bytes);
    bytes.extend_from_slice(page.unwrap_or_default());
    let check = xxh3_64(&bytes[begin + 4..]) as u32;
    bytes[begin..begin + 4].copy_from_slice(&check.to_le_bytes());
}

/// At most so many bytes has the text of a request.
pub(crate) fn bound(request: &Request) -> usize {
    HEAD_MAX + request.url.len() + payload::bound(request)
}

/// At most so many bytes has the text of a note.
pub(crate) fn bound_note(key: &str, value: &[u8]) -> usize {
    HEAD_MAX + key.len() + value.len()
}

/// Something that is no text.
#[derive(Debug)]
pub(crate) struct NoText;

/// How many bytes the text has that begins these.
pub(crate) fn length(bytes: &[u8]) -> Result<usize, NoText> {
    lengths(bytes).map(Lengths::all)
}

/// How a text is divided.
#[derive(Clone, Copy)]
pub(crate) struct Lengths {
    /// Where the URL begins.
    head: usize,
    url: Length,
    rest: Length,
    pub(crate) page: Option<usize>,
    pub(crate) is_note: bool,
}

#[derive(Clone, Copy)]
struct Length {
    bytes: usize,
    is_short: bool,
}

impl Length {
    fn new(number: u64) -> Self {
        Self { bytes: (number & !SHORT) as usize, is_short: number & SHORT != 0 }
    }

    fn of(self, bytes: &[u8]) -> (Part<'_>, &[u8]) {
        let (bytes, behind) = bytes.split_at(self.bytes);
        (Part { bytes, is_short: self.is_short }, behind)
    }
}

pub(crate) fn lengths(bytes: &[u8]) -> Result<Lengths, NoText> {
    let mut left = bytes.get(4..).ok_or(NoText)?;
    let mut number = || {
        let number = decode_varint(&mut left).map_err(|_| NoText)?;
        // Whatever this is of, it is no text: segments are smaller.
        if number > u64::from(u32::MAX) { Err(NoText) } else { Ok(number) }
    };
    let (url, rest) = (number()?, number()?);
    if rest & WITH_PAGE != 0 || url & WITH_PAGE != 0 && url & NOTE != 0 {
        return Err(NoText);
    }
    let page = if url & WITH_PAGE != 0 { Some(number()? as usize) } else { None };
    Ok(Lengths {
        head: bytes.len() - left.len(),
        url: Length::new(url & !(WITH_PAGE | NOTE)),
        rest: Length::new(rest),
        page,
        is_note: url & NOTE != 0,
    })
}

impl Lengths {
    pub(crate) fn all(self) -> usize {
        self.head + self.url.bytes + self.rest.bytes + self.page.unwrap_or(0)
    }

    /// The parts of the text that is all of these bytes: the URL, the rest of the request, the page.
    fn parts(self, text: &[u8]) -> Parts<'_> {
        let (url, behind) = self.url.of(&text[self.head..]);
        let (rest, page) = self.rest.of(behind);
        (url, rest, self.page.map(|_| page))
    }

    /// The page record in a text.
    pub(crate) fn page_of(self, text: &[u8]) -> Option<&[u8]> {
        self.parts(text).2
    }

    /// The bytes of the text that begins these, if they are as they were written.
    pub(crate) fn check(self, bytes: &[u8]) -> Result<&[u8], NoText> {
        let text = bytes.get(..self.all()).ok_or(NoText)?;
        if text[..4] == (xxh3_64(&text[4..]) as u32).to_le_bytes() { Ok(text) } else { Err(NoText) }
    }

    /// The key of the note that begins these bytes.
    pub(crate) fn note_key(self, bytes: &[u8]) -> Result<String, NoText> {
        let (key, _, _) = self.parts(self.check(bytes)?);
        let key = if self.is_note { key.read()?.into_owned() } else { return Err(NoText) };
        String::from_utf8(key).map_err(|_| NoText)
    }

    /// What the note says that begins these bytes.
    pub(crate) fn note(self, bytes: &[u8]) -> Result<Vec<u8>, NoText> {
        let (_, value, _) = self.parts(self.check(bytes)?);
        if self.is_note { Ok(value.read()?.into_owned()) } else { Err(NoText) }
    }

    /// The text of a request that begins these bytes.
    pub(crate) fn text(self, bytes: &[u8]) -> Result<Text, NoText> {
        if self.is_note {
            return Err(NoText);
        }
        let (url, rest, page) = self.parts(self.check(bytes)?);
        let url = String::from_utf8(url.read()?.into_owned()).map_err(|_| NoText)?;
        let request = payload::decode(url, &rest.read()?).map_err(|_| NoText)?;
        let page = page.map(packed_page::decode).transpose().map_err(|_| NoText)?;
        Ok(Text { request, page })
    }
}

/// The texts that lie one after the other in these bytes, as far as there are any.
pub(crate) fn each(mut bytes: &[u8]) -> impl Iterator<Item = (Lengths, &[u8])> {
    std::iter::from_fn(move || {
        let lengths = lengths(bytes).ok()?;
        let (text, rest) = bytes.split_at_checked(lengths.all())?;
        bytes = rest;
        Some((lengths, text))
    })
}

/// The text that begins these bytes, and how many it takes.
pub(crate) fn parse(bytes: &[u8]) -> Result<(Text, usize), NoText> {
    let lengths = lengths(bytes)?;
    Ok((lengths.text(bytes)?, lengths.all()))
}
#[cfg(test)]
mod tests {
    use trapline_core::Timestamp;
    use trapline_frontier::Visit;

    use super::*;

    fn requests() -> Vec<Request> {
        let mut long = Request::get(format!("http://a.example/{}", "x".repeat(2000)));
        long.body = vec![7; 70_000];
        let mut link = Request::get("http://b.example/ä");
        link.via = Some("http://a.example/".to_owned());
        link.depth = 3;
        // In shorthand it is shorter, but not by as much as it takes to say so.
        let hardly = Request::get("https://q.example/QKUJVXY");
        vec![Request::get(""), Request::get("http://a.example/"), hardly, link, long]
    }

    fn page(visits: u32) -> PageRecord {
        let visit = Visit { status: 200, digest: Some(vec![7; 32]), ..Visit::default() };
        PageRecord { visited: Timestamp::from_millis(9), visit, visits, changes: 0, next: None }
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
            assert_eq!(read, Text { request, page: None });
            at += length;
        }
        assert_eq!(at, bytes.len());
    }

    #[test]
    fn a_visit_leaves_the_request_and_the_latest_of_its_page() {
        for request in requests() {
            let mut text = Vec::new();
            append(&mut text, &request);
            for visits in 1..4 {
                let before = std::mem::take(&mut text);
                let page = page(visits);
                append_with_page(&mut text, &before, &packed_page::encode(&page));
                let (read, length) = parse(&text).unwrap();
                assert_eq!(read, Text { request: request.clone(), page: Some(page) });
                assert_eq!(length, text.len());
            }
        }
    }

    /// Moved again and again, visited in between, it stays what it is, and never grows.
    #[test]
    fn what_was_moved_is_read_as_it_was() {
        for request in requests() {
            let mut plain = Vec::new();
            append(&mut plain, &request);
            let mut visited = Vec::new();
            append_with_page(&mut visited, &plain, &packed_page::encode(&page(1)));
            for (text, page) in [(&plain, None), (&visited, Some(page(1)))] {
                for with_page in [true, false] {
                    let mut moved = Vec::new();
                    append_short(&mut moved, text, with_page);
                    assert!(moved.len() <= text.len());
                    let page = page.clone().filter(|_| with_page);
                    let expected = Text { request: request.clone(), page };
                    assert_eq!(parse(&moved).unwrap(), (expected, moved.len()));
                    let mut again = Vec::new();
                    append_short(&mut again, &moved, with_page);
                    assert_eq!(again, moved);
                }
            }
            let (mut moved, mut later) = (Vec::new(), Vec::new());
            append_short(&mut moved, &plain, true);
            append_with_page(&mut later, &moved, &packed_page::encode(&page(2)));
            assert_eq!(parse(&later).unwrap().0, Text { request, page: Some(page(2)) });
        }
    }

    #[test]
    fn other_bytes_are_no_text() {
        let mut plain = Vec::new();
        append(&mut plain, &requests()[3]);
        let mut visited = Vec::new();
        append_with_page(&mut visited, &plain, &packed_page::encode(&page(7)));
        let mut short = Vec::new();
        append_short(&mut short, &visited, true);
        no_other_bytes_are_this(&plain);
        no_other_bytes_are_this(&short);
        no_other_bytes_are_this(&visited);
        assert!(parse(&[0xff; 100]).is_err());
    }

    /// Long and short ones, as they came and moved again and again.
    #[test]
    fn notes_come_back_as_they_were_within_their_bounds() {
        let long = b"User-agent: *\nDisallow: /private\n".repeat(100);
        for (key, value) in [("robots:a.example", &*long), ("", &[0, 255]), ("ä", &[])] {
            let mut text = Vec::new();
            append_note(&mut text, key, value);
            assert!(text.len() <= bound_note(key, value));
            for _ in 0..3 {
                let lengths = lengths(&text).unwrap();
                assert!(lengths.is_note && lengths.all() == text.len());
                assert_eq!(
                    (lengths.note_key(&text).unwrap().as_str(), &*lengths.note(&text).unwrap()),
                    (key, value)
                );
                assert!(parse(&text).is_err(), "it is no request");
                let mut moved = Vec::new();
                append_short(&mut moved, &text, false);
                assert!(moved.len() <= text.len());
                text = moved;
            }
        }
        let mut request = Vec::new();
        append(&mut request, &requests()[1]);
        let lengths = lengths(&request).unwrap();
        assert!(lengths.note(&request).is_err() && lengths.note_key(&request).is_err(), "it is no note");
    }

    fn no_other_bytes_are_this(bytes: &[u8]) {
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.to_vec();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(parse(&bad).is_err(), "bit {bit}");
        }
        for cut in 0..bytes.len() {
            assert!(parse(&bytes[..cut]).is_err(), "cut at {cut}");
        }
    }
}
