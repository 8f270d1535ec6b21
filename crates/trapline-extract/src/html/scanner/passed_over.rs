//! What a page holds and nobody reads: comments, and CDATA sections of drawings.

use memchr::{memchr, memchr2};

use super::{Scanner, State};

impl Scanner {
    /// A comment, up to its end: `-->` or `--!>`, or at once with `>` or `->`.
    pub(super) fn comment(&mut self, text: &str, start: usize, mut tail: [u8; 3], mut length: u8) -> usize {
        let bytes = text.as_bytes();
        let mut at = start;
        loop {
            let found = memchr(b'>', &bytes[at..]);
            let end = found.map_or(bytes.len(), |length| at + length);
            for byte in &bytes[at.max(end.saturating_sub(3))..end] {
                tail = [tail[1], tail[2], *byte];
            }
            length = length.saturating_add((end - at).min(4) as u8);
            if found.is_none() {
                self.state = State::Comment { tail, length };
                return end;
            }
            let is_end = match length {
                0 => true,
                1 => tail[2] == b'-',
                2 => tail[1..] == *b"--",
                _ => tail[1..] == *b"--" || tail == *b"--!",
            };
            if is_end {
                self.state = State::Data;
                return end + 1;
            }
            tail = [tail[1], tail[2], b'>'];
            length = length.saturating_add(1);
            at = end + 1;
        }
    }

    /// A CDATA section of a drawing, up to `]]>`. Its text is not told: hardly any is ever seen.
    pub(super) fn cdata(&mut self, bytes: &[u8], start: usize, mut brackets: u8) -> usize {
        let mut at = start;
        loop {
            let Some(length) = memchr2(b']', b'>', &bytes[at..]) else {
                let brackets = if at < bytes.len() { 0 } else { brackets };
                self.state = State::CData { brackets };
                return bytes.len();
            };
            if length > 0 {
                brackets = 0;
            }
            at += length + 1;
            if bytes[at - 1] == b']' {
                brackets = (brackets + 1).min(2);
            } else if brackets == 2 {
                self.state = State::Data;
                return at;
            } else {
                brackets = 0;
            }
        }
    }
}
