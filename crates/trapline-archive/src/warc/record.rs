//! One record of a WARC file: its head, and how it is closed. What stands in it comes from servers, so that no value can end a line.

use std::fmt::Write;

use trapline_core::{Civil, Timestamp};
use trapline_crawl::ports::ArchiveError;

use super::gzip::Gzips;
use crate::digest::Digest;

/// The name of a record, which no other has.
#[derive(Clone, Debug)]
pub(super) struct RecordId(String);

impl RecordId {
    /// Some random UUIDs.
    pub(super) fn draw<const N: usize>() -> Result<[Self; N], ArchiveError> {
        let mut bytes = [[0; 16]; N];
        getrandom::fill(bytes.as_flattened_mut())
            .map_err(|error| ArchiveError(format!("the machine gives no chance: {error}")))?;
        Ok(bytes.map(Self::of))
    }

    fn of(mut bytes: [u8; 16]) -> Self {
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let mut id = String::with_capacity(47);
        id.push_str("<urn:uuid:");
        for (place, byte) in bytes.iter().enumerate() {
            if matches!(place, 4 | 6 | 8 | 10) {
                id.push('-');
            }
            let _ = write!(id, "{byte:02x}");
        }
        id.push('>');
        Self(id)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A record that is being made.
pub(super) struct Record<'b> {
    head: String,
    block: [&'b [u8]; 2],
}

impl<'b> Record<'b> {
    /// A record with this block, in two pieces that follow each other.
    pub(super) fn new(
        kind: &str,
        id: &RecordId,
        at: Timestamp,
        content_type: &str,
        block: [&'b [u8]; 2],
    ) -> Self {
        let mut record = Self { head: String::with_capacity(768), block };
        record.head.push_str("WARC/1.1\r\n");
        record.field("WARC-Type", kind);
        record.field("WARC-Record-ID", id.as_str());
        record.field("WARC-Date", &Civil::from(at).to_string());
        record.field("Content-Type", content_type);
        if kind != "response" {
            // A response has that of its payload: to hash it twice would cost more than to write it.
            record.field("WARC-Block-Digest", &Digest::of(&block).to_string());
        }
        record
    }

    /// Adds a field. What could end a line is escaped.
    pub(super) fn field(&mut self, name: &str, value: &str) {
        self.head.push_str(name);
        self.head.push_str(": ");
        push_line(&mut self.head, value);
        self.head.push_str("\r\n");
    }

    /// Adds a field that is a URL: it has no spaces either.
    pub(super) fn url(&mut self, name: &str, url: &str) {
        if url.contains(' ') { self.field(name, &url.replace(' ', "%20")) } else { self.field(name, url) }
    }

    /// Appends it as a gzip member.
    pub(super) fn write(mut self, gzips: &Gzips, into: &mut Vec<u8>) -> Result<(), ArchiveError> {
        let length = self.block[0].len() + self.block[1].len();
        let _ = write!(self.head, "Content-Length: {length}\r\n\r\n");
        gzips.member(&[self.head.as_bytes(), self.block[0], self.block[1], b"\r\n\r\n"], into)
    }
}

/// Appends a text that stays on its line: controls are escaped as in URLs.
pub(super) fn push_line(into: &mut String, text: &str) {
    if !text.contains(char::is_control) {
        return into.push_str(text);
    }
    for c in text.chars() {
        if c.is_control() {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                let _ = write!(into, "%{byte:02X}");
            }
        } else {
            into.push(c);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_ends_a_line() {
        let mut record =
            Record::new("metadata", &RecordId("<x>".to_owned()), Timestamp::ZERO, "a/b", [b"", b""]);
        record.url("WARC-Target-URI", "http://a/ b\r\nWARC-Type: response\r\n\r\n\u{85}");
        let last = record.head.lines().last().unwrap();
        assert_eq!(last, "WARC-Target-URI: http://a/%20b%0D%0AWARC-Type:%20response%0D%0A%0D%0A%C2%85");
        assert_eq!(record.head.lines().count(), 7);
    }

    #[test]
    fn ids_are_uuids_and_differ() {
        let [a, b] = RecordId::draw().unwrap();
        assert_ne!(a.as_str(), b.as_str());
        assert_eq!((a.as_str().len(), &a.as_str()[24..25]), (47, "4"), "{a:?}");
    }
}
