//! Sitemaps of plain text: an address a line, and nothing else.

use memchr::memchr2;

use super::SitemapKind;
use super::collect::{Collection, Found};
use super::text::Text;

pub(super) fn read<'a>(mut text: Text<'a>, found: &mut Collection<'_>) -> Text<'a> {
    found.kind = SitemapKind::Text;
    let mut line = Vec::new();
    while !found.is_full() {
        let position = text.position();
        let piece = text.piece();
        if piece.is_empty() {
            take(&line, position, found);
            break;
        }
        let end = memchr2(b'\n', b'\r', piece);
        let part = &piece[..end.unwrap_or(piece.len())];
        // One byte more than is allowed is enough to know that it is too long.
        let room = (found.limits.url_bytes_max + 1).saturating_sub(line.len());
        line.extend_from_slice(&part[..part.len().min(room)]);
        let read = part.len() + usize::from(end.is_some());
        text.advance(read);
        if end.is_some() {
            take(&line, position, found);
            line.clear();
        }
    }
    text
}

fn take(line: &[u8], position: u64, found: &mut Collection<'_>) {
    let line = line.trim_ascii();
    if !line.is_empty() {
        // Text is UTF-8, but for one that was cut, which is too long anyway.
        let url = String::from_utf8_lossy(line).into_owned();
        found.add(position, Found { url, absolute: true, ..Found::default() });
    }
}
