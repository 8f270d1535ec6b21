//! The head of a response as it came: where it ends, and its header lines with their order, spelling and repetitions.
//!
//! hyper decides what a response means and where its body ends; this only finds again, in the bytes, what hyper's map of
//! headers has no room for. It accepts whatever hyper accepts.

use bytes::Bytes;
use http::HeaderMap;

/// Header lines, in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(Vec<Header>);

/// One header line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// As it was spelled. Bytes that are not UTF-8 are replaced.
    pub name: String,
    /// Without the white space around it.
    pub value: Bytes,
}

impl Header {
    /// The value as text. Bytes that are not UTF-8 are replaced.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.value)
    }
}

impl Headers {
    /// All lines.
    pub fn iter(&self) -> impl Iterator<Item = &Header> {
        self.0.iter()
    }

    /// How many lines there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All values under a name, whatever its case.
    pub fn all<'h>(&'h self, name: &'h str) -> impl Iterator<Item = &'h Bytes> {
        let same = move |header: &&Header| header.name.eq_ignore_ascii_case(name);
        self.0.iter().filter(same).map(|header| &header.value)
    }

    /// The first value under a name, if it is text.
    pub fn get(&self, name: &str) -> Option<&str> {
        let header = self.0.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(&header.value).ok()
    }

    /// Those of a map, whose order is nearly the one in which they came: lines of one name follow each other.
    pub(crate) fn of_map(map: &HeaderMap) -> Self {
        let header = |(name, value): (&http::HeaderName, &http::HeaderValue)| Header {
            name: name.as_str().to_owned(),
            value: Bytes::copy_from_slice(value.as_bytes()),
        };
        Self(map.iter().map(header).collect())
    }

    /// Those of a head that was read from a connection, without its informational ones.
    pub(crate) fn of_head(head: &Bytes) -> Self {
        let mut headers: Vec<Header> = Vec::with_capacity(16);
        // A value that goes on over several lines. There may be thousands: nothing is copied once for each.
        let mut folded = Vec::new();
        let mut at = line_end(head, 0).1;
        while at < head.len() {
            let (end, next) = line_end(head, at);
            let line = &head[at..end];
            if line.is_empty() {
                break;
            }
            if matches!(line[0], b' ' | b'\t') {
                if let Some(last) = headers.last() {
                    let more = line.trim_ascii();
                    if folded.is_empty() {
                        folded.extend_from_slice(&last.value);
                    }
                    if !folded.is_empty() && !more.is_empty() {
                        folded.push(b' ');
                    }
                    folded.extend_from_slice(more);
                }
            } else if let Some(colon) = line.iter().position(|byte| *byte == b':') {
                unfold(&mut headers, &mut folded);
                headers.push(Header {
                    name: String::from_utf8_lossy(line[..colon].trim_ascii()).into_owned(),
                    value: head.slice_ref(line[colon + 1..].trim_ascii()),
                });
            }
            at = next;
        }
        unfold(&mut headers, &mut folded);
        Self(headers)
    }
}

/// Gives the last header the value that was found over several lines, if it was.
fn unfold(headers: &mut [Header], folded: &mut Vec<u8>) {
    if let Some(last) = headers.last_mut().filter(|_| !folded.is_empty()) {
        last.value = Bytes::from(std::mem::take(folded));
    }
}

/// Where the line that begins here ends, and where the next one begins.
fn line_end(bytes: &[u8], from: usize) -> (usize, usize) {
    match bytes[from..].iter().position(|byte| *byte == b'\n') {
        Some(found) => {
            let end = from + found;
            let bare = if end > from && bytes[end - 1] == b'\r' { end - 1 } else { end };
            (bare, end + 1)
        }
        None => (bytes.len(), bytes.len()),
    }
}

/// Where the heads of a response lie in what came: the informational ones, then the final one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeadPlace {
    /// Where the final one begins.
    pub(crate) start: usize,
    /// Where the body begins.
    pub(crate) end: usize,
}

/// Finds the final head. `None` if it is not complete, which hyper would have told before.
pub(crate) fn find_head(bytes: &[u8]) -> Option<HeadPlace> {
    let mut start = 0;
    loop {
        // Empty lines before a head do not count.
        while matches!(bytes.get(start), Some(b'\r' | b'\n')) {
            start += 1;
        }
        let end = head_end(bytes, start)?;
        if !is_informational(&bytes[start..end]) {
            return Some(HeadPlace { start, end });
        }
        start = end;
    }
}

/// The first empty line after `from`.
fn head_end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while at < bytes.len() {
        let (end, next) = line_end(bytes, at);
        if end == at {
            return Some(next);
        }
        at = next;
    }
    None
}

/// 1xx but for 101, which is final.
fn is_informational(head: &[u8]) -> bool {
    let status = head.iter().position(|byte| *byte == b' ').map(|space| &head[space..]);
    let status = status.map(<[u8]>::trim_ascii_start);
    status.is_some_and(|status| status.starts_with(b"1") && !status.starts_with(b"101"))
}

/// A head that never was: what one of HTTP/1.1 would have been, for a response of HTTP/2.
pub(crate) fn written_head(status: u16, headers: &Headers) -> Bytes {
    let mut head = format!("HTTP/2 {status}\r\n").into_bytes();
    for header in headers.iter() {
        head.extend_from_slice(header.name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(&header.value);
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
        headers.iter().map(|header| (header.name.clone(), header.text().into_owned())).collect()
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
    }

    #[test]
    fn the_final_head_is_found_behind_informational_ones() {
        let check = |bytes: &str, start: usize, end: usize| {
            assert_eq!(find_head(bytes.as_bytes()), Some(HeadPlace { start, end }), "{bytes:?}");
        };
        check("HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody", 0, 25);
        check("HTTP/1.1 200 OK\nA: b\n\nbody\n\n", 0, 22);
        check("HTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", 28, 47);
        check("\r\nHTTP/1.1  100 \r\n\r\nHTTP/1.1 101 Up\r\n\r\n", 20, 39);
        for incomplete in [
            "",
            "HTTP/1.1 200 OK",
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 200 OK\r\nA: b\r\n",
            "HTTP/1.1 100 C\r\n\r\n",
        ] {
            assert_eq!(find_head(incomplete.as_bytes()), None, "{incomplete:?}");
        }
    }
}
