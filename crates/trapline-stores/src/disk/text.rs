//! A text: a request, and what is known of its page, as they lie in the log.
//!
//! ```text
//! u32     lower half of the xxh3 of all that follows
//! varint  length of the URL; 2³¹ more if a page record follows
//! varint  length of the rest of the request
//! varint  length of the page record, if there is one
//!         the URL, and the rest: see `payload.rs`; the page record: see `packed_page.rs`
//! ```

use prost::encoding::{decode_varint, encode_varint};
use trapline_core::Request;
use trapline_frontier::{PageRecord, packed_page, payload};
use xxhash_rust::xxh3::xxh3_64;

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

/// Appends the text of a request.
pub(crate) fn append(bytes: &mut Vec<u8>, request: &Request) {
    append_parts(bytes, request.url.as_bytes(), &payload::encode(request), None);
}

/// Appends a text that is like another one, but for what it knows of the page.
pub(crate) fn append_with_page(bytes: &mut Vec<u8>, text: &[u8], page: &[u8]) {
    if let Ok(Lengths { head, url, rest, .. }) = lengths(text) {
        let (url, behind) = text[head..].split_at(url);
        append_parts(bytes, url, &behind[..rest], Some(page));
    }
}

fn append_parts(bytes: &mut Vec<u8>, url: &[u8], rest: &[u8], page: Option<&[u8]>) {
    let begin = bytes.len();
    bytes.extend_from_slice(&[0; 4]);
    encode_varint(url.len() as u64 | page.map_or(0, |_| WITH_PAGE), bytes);
    encode_varint(rest.len() as u64, bytes);
    if let Some(page) = page {
        encode_varint(page.len() as u64, bytes);
    }
    bytes.extend_from_slice(url);
    bytes.extend_from_slice(rest);
    bytes.extend_from_slice(page.unwrap_or_default());
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
pub(crate) fn length(bytes: &[u8]) -> Result<usize, NoText> {
    lengths(bytes).map(Lengths::all)
}

/// How a text is divided.
#[derive(Clone, Copy)]
pub(crate) struct Lengths {
    /// Where the URL begins.
    head: usize,
    url: usize,
    rest: usize,
    pub(crate) page: Option<usize>,
}

pub(crate) fn lengths(bytes: &[u8]) -> Result<Lengths, NoText> {
    let mut left = bytes.get(4..).ok_or(NoText)?;
    let mut number = || {
        let number = decode_varint(&mut left).map_err(|_| NoText)?;
        // Whatever this is of, it is no text: segments are smaller.
        if number > u64::from(u32::MAX) { Err(NoText) } else { Ok(number as usize) }
    };
    let (url, rest) = (number()?, number()?);
    let has_page = url & WITH_PAGE as usize != 0;
    let page = if has_page { Some(number()?) } else { None };
    Ok(Lengths { head: bytes.len() - left.len(), url: url & !(WITH_PAGE as usize), rest, page })
}

impl Lengths {
    pub(crate) fn all(self) -> usize {
        self.head + self.url + self.rest + self.page.unwrap_or(0)
    }

    /// The bytes of the text that begins these, if they are as they were written.
    pub(crate) fn check(self, bytes: &[u8]) -> Result<&[u8], NoText> {
        let text = bytes.get(..self.all()).ok_or(NoText)?;
        if text[..4] == (xxh3_64(&text[4..]) as u32).to_le_bytes() { Ok(text) } else { Err(NoText) }
    }

    /// The text that begins these bytes.
    pub(crate) fn text(self, bytes: &[u8]) -> Result<Text, NoText> {
        let text = self.check(bytes)?;
        let (url, behind) = text[self.head..].split_at(self.url);
        let (rest, page) = behind.split_at(self.rest);
        let url = std::str::from_utf8(url).map_err(|_| NoText)?;
        let request = payload::decode(url.to_owned(), rest).map_err(|_| NoText)?;
        let page = self.page.map(|_| packed_page::decode(page)).transpose().map_err(|_| NoText)?;
        Ok(Text { request, page })
    }
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
        vec![Request::get(""), Request::get("http://a.example/"), link, long]
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

    #[test]
    fn other_bytes_are_no_text() {
        let mut plain = Vec::new();
        append(&mut plain, &requests()[2]);
        let mut visited = Vec::new();
        append_with_page(&mut visited, &plain, &packed_page::encode(&page(7)));
        no_other_bytes_are_this(&plain);
        no_other_bytes_are_this(&visited);
        assert!(parse(&[0xff; 100]).is_err());
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
