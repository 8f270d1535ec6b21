//! The head of a response as it came: where it ends, and its header lines with their order, spelling and repetitions.
//!
//! hyper decides what a response means and where its body ends; this only finds again, in the bytes, what hyper's map of
//! headers has no room for. It accepts whatever hyper accepts.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use http::HeaderMap;
use memchr::memchr;

/// Header lines, in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    head: Bytes,
    lines: Vec<Line>,
}

/// Where a name and its value lie in a head.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    name: Range<usize>,
    value: Range<usize>,
}

/// One header line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header<'h> {
    /// As it was spelled. Bytes that are not UTF-8 are replaced.
    pub name: Cow<'h, str>,
    /// Without the white space around it.
    pub value: &'h [u8],
}

impl<'h> Header<'h> {
    /// The value as text. Bytes that are not UTF-8 are replaced.
    pub fn text(&self) -> Cow<'h, str> {
        String::from_utf8_lossy(self.value)
    }
}

impl Headers {
    /// All lines.
    pub fn iter(&self) -> impl Iterator<Item = Header<'_>> {
        self.raw().map(|(name, value)| Header { name: String::from_utf8_lossy(name), value })
    }

    /// How many lines there are.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// All values under a name, whatever its case.
    pub fn all<'h>(&'h self, name: &'h str) -> impl Iterator<Item = &'h [u8]> {
        let same = move |(its, _): &(&[u8], _)| its.eq_ignore_ascii_case(name.as_bytes());
        self.raw().filter(same).map(|(_, value)| value)
    }

    /// The first value under a name, if it is text.
    pub fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.raw().find(|(its, _)| its.eq_ignore_ascii_case(name.as_bytes()))?;
        std::str::from_utf8(value).ok()
    }

    fn raw(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.lines.iter().map(|line| (&self.head[line.name.clone()], &self.head[line.value.clone()]))
    }

    /// Those of a head, without informational ones before it.
    pub(crate) fn of_head(head: &Bytes) -> Self {
        let head = unfolded(head).unwrap_or_else(|| head.clone());
        let mut lines = Vec::with_capacity(16);
        let mut at = line_end(&head, 0).1;
        while at < head.len() {
            let (end, next) = line_end(&head, at);
            if end == at {
                break;
            }
            if let Some(colon) = memchr(b':', &head[at..end]) {
                let colon = at + colon;
                lines.push(Line { name: trimmed(&head, at..colon), value: trimmed(&head, colon + 1..end) });
            }
            at = next;
        }
        Self { head, lines }
    }
}

/// A range without the white space at its ends.
fn trimmed(bytes: &[u8], range: Range<usize>) -> Range<usize> {
    let text = &bytes[range.clone()];
    let start = range.start + (text.len() - text.trim_ascii_start().len());
    start..start + text.trim_ascii().len()
}

/// A head of which some values go on over several lines, as it would be with each on one. None if there are no such
/// values.
fn unfolded(head: &[u8]) -> Option<Bytes> {
    let mut ends = memchr::memchr_iter(b'\n', head);
    if !ends.any(|end| matches!(head.get(end + 1), Some(b' ' | b'\t'))) {
        return None;
    }
    let mut flat = Vec::with_capacity(head.len());
    let mut at = 0;
    while at < head.len() {
        let (end, next) = line_end(head, at);
        let line = &head[at..end];
        if matches!(line.first(), Some(b' ' | b'\t')) {
            let more = line.trim_ascii();
            if !more.is_empty() {
                flat.push(b' ');
                flat.extend_from_slice(more);
            }
        } else {
            if at > 0 {
                flat.push(b'\n');
            }
            flat.extend_from_slice(line);
        }
        at = next;
    }
    Some(Bytes::from(flat))
}

/// Where the line that begins here ends, and where the next one begins.
fn line_end(bytes: &[u8], from: usize) -> (usize, usize) {
    match memchr(b'\n', &bytes[from..]) {
        Some(found) => {
            let end = from + found;
            let bare = if end > from && bytes[end - 1] == b'\r' { end - 1 } else { end };
            (bare, end + 1)
        }
        None => (bytes.len(), bytes.len()),
    }
}

/// Where the final head of a response lies in what came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeadPlace {
    /// Where it begins, behind the informational ones.
    pub(crate) start: usize,
    /// Where the body begins.
    pub(crate) end: usize,
}

/// The search for the final head in what came so far. It goes on where it stopped, since a head may come byte by byte.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeadSearch {
    /// Where the head under way begins.
    start: usize,
    /// Where its last line begins.
    line: usize,
    /// Where to look on for the end of that line.
    next: usize,
    found: Option<HeadPlace>,
    /// How many heads were informational.
    pub(crate) informational: u32,
}

impl HeadSearch {
    /// Looks at what came so far: all that it was given before, and more. `None` as long as the head is not complete.
    pub(crate) fn go_on(&mut self, bytes: &[u8]) -> Option<HeadPlace> {
        while self.found.is_none() {
            let Some(newline) = memchr(b'\n', bytes.get(self.next..)?) else {
                self.next = bytes.len();
                return None;
            };
            let end = self.next + newline;
            self.next = end + 1;
            if matches!(bytes[self.line..end], [] | [b'\r']) {
                self.empty_line(bytes);
            }
            self.line = self.next;
        }
        self.found
    }

    /// Where the head lies, if it is complete.
    pub(crate) fn found(&self) -> Option<HeadPlace> {
        self.found
    }

    fn empty_line(&mut self, bytes: &[u8]) {
        let end = self.next;
        if self.line == self.start {
            // Empty lines before a head do not count.
            self.start = end;
        } else if is_informational(&bytes[self.start..end]) {
            self.informational += 1;
            self.start = end;
        } else {
            self.found = Some(HeadPlace { start: self.start, end });
        }
    }
}

/// 1xx but for 101, which is final.
fn is_informational(head: &[u8]) -> bool {
    let status = head.iter().position(|byte| *byte == b' ').map(|space| &head[space..]);
    let status = status.map(<[u8]>::trim_ascii_start);
    status.is_some_and(|status| status.starts_with(b"1") && !status.starts_with(b"101"))
}

/// A head that never was: what one of HTTP/1.1 would have been, for a response of HTTP/2. The order of a map is nearly
/// the one in which its headers came: lines of one name follow each other.
pub(crate) fn written_head(status: u16, headers: &HeaderMap) -> Bytes {
    let mut head = format!("HTTP/2 {status}\r\n").into_bytes();
    for (name, value) in headers {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    Bytes::from(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(head: &str) -> Vec<(String, String)> {
        let headers = Headers::of_head(&Bytes::copy_from_slice(head.as_bytes()));
        headers
            .iter()
            .map(|header| (header.name.into_owned(), String::from_utf8_lossy(header.value).into_owned()))
            .collect()
    }

    #[test]
    fn headers_keep_order_spelling_and_repetitions() {
        let found = headers(
            "HTTP/1.1 200 OK\r\nX-B: 1\r\nx-a:2 \r\nX-b:\t3\r\nno colon\r\nBlank:\r\n\r\nbody: no\r\n",
        );
        let expected = [("X-B", "1"), ("x-a", "2"), ("X-b", "3"), ("Blank", "")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn folded_lines_are_one_value() {
        assert_eq!(
            headers("HTTP/1.1 200\na: 1\n  2\n\t\n 3\nb : 4\n\n").as_slice(),
            &[("a".to_owned(), "1 2 3".to_owned()), ("b".to_owned(), "4".to_owned())]
        );
        assert_eq!(
            headers("HTTP/1.1 200\r\n x: 1\r\nb:\r\n c: 2\r\n\r\nbody: 1\r\n d").as_slice(),
            &[("b".to_owned(), "c: 2".to_owned())]
        );
    }

    /// What is found at once, and byte by byte, which must be the same.
    fn find(bytes: &str) -> (Option<HeadPlace>, u32) {
        let (mut search, mut slow) = (HeadSearch::default(), HeadSearch::default());
        search.go_on(bytes.as_bytes());
        for end in 0..=bytes.len() {
            slow.go_on(&bytes.as_bytes()[..end]);
        }
        assert_eq!((search.found, search.informational), (slow.found, slow.informational), "{bytes:?}");
        (search.found, search.informational)
    }

    #[test]
    fn the_final_head_is_found_behind_informational_ones() {
        let check = |bytes: &str, start: usize, end: usize, informational: u32| {
            assert_eq!(find(bytes), (Some(HeadPlace { start, end }), informational), "{bytes:?}");
        };
        check("HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody", 0, 25, 0);
        check("HTTP/1.1 200 OK\nA: b\n\nbody\n\n", 0, 22, 0);
        check("HTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", 28, 47, 1);
        check("\r\nHTTP/1.1  100 \r\n\r\nHTTP/1.1 101 Up\r\n\r\n", 20, 39, 1);
        check("HTTP/1.1 100\n\nHTTP/1.1 102\n\n\nHTTP/1.1 200 OK\n\nHTTP/1.1 100\n\n", 29, 46, 2);
    }

    #[test]
    fn a_head_is_found_only_when_it_is_complete() {
        for incomplete in [
            "",
            "HTTP/1.1 200 OK",
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 200 OK\r\nA: b\r\n",
            "HTTP/1.1 200 OK\r\n\r",
        ] {
            assert_eq!(find(incomplete), (None, 0), "{incomplete:?}");
        }
        assert_eq!(find("HTTP/1.1 100 C\r\n\r\n"), (None, 1));
    }
}
