//! A page record as bytes: every visited URL has one, so it is packed into a third of what it takes unpacked.
//!
//! ```text
//! u8       which of the following are there: 1 next, 2 etag, 4 last_modified, 8 digest, 16 simhash
//! varint   visited, visits, changes, status, bytes
//! varint   next
//! varint   length of the etag, then itself; likewise last_modified and digest
//! 8 bytes  simhash
//! ```
//!
//! They are in logs: a change needs another version of their records.

use prost::encoding::{decode_varint, encode_varint};
use trapline_core::Timestamp;

use crate::verbs::{PageRecord, Visit};

const NEXT: u8 = 1;
const ETAG: u8 = 2;
const LAST_MODIFIED: u8 = 4;
const DIGEST: u8 = 8;
const SIMHASH: u8 = 16;

/// The bytes of a page record.
pub fn encode(page: &PageRecord) -> Vec<u8> {
    let PageRecord { visited, visit, visits, changes, next } = page;
    let Visit { status, bytes, etag, last_modified, digest, simhash } = visit;
    let texts = [
        (ETAG, etag.as_deref().map(str::as_bytes)),
        (LAST_MODIFIED, last_modified.as_deref().map(str::as_bytes)),
        (DIGEST, digest.as_deref()),
    ];
    let mut packed = Vec::with_capacity(bound(visit));
    packed.push(0);
    for number in [visited.as_millis(), (*visits).into(), (*changes).into(), (*status).into(), *bytes] {
        encode_varint(number, &mut packed);
    }
    if let Some(next) = next {
        packed[0] |= NEXT;
        encode_varint(next.as_millis(), &mut packed);
    }
    for (bit, text) in texts {
        if let Some(text) = text {
            packed[0] |= bit;
            encode_varint(text.len() as u64, &mut packed);
            packed.extend_from_slice(text);
        }
    }
    if let Some(simhash) = simhash {
        packed[0] |= SIMHASH;
        packed.extend_from_slice(&simhash.to_le_bytes());
    }
    packed
}

/// At most so many bytes has what [`encode`] makes of a page record with this visit.
pub fn bound(visit: &Visit) -> usize {
    // More than numbers and lengths take.
    const NUMBERS: usize = 96;
    let Visit { etag, last_modified, digest, .. } = visit;
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    NUMBERS + text(etag) + text(last_modified) + digest.as_ref().map_or(0, Vec::len)
}

/// Bytes that are no page record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is no page record")]
pub struct NoPage;

/// The page record that [`encode`] made these bytes of.
///
/// # Errors
/// If it did not.
pub fn decode(packed: &[u8]) -> Result<PageRecord, NoPage> {
    let mut rest = Rest(packed);
    let parts = rest.take(1)?[0];
    let mut numbers = [0; 5];
    for number in &mut numbers {
        *number = rest.number()?;
    }
    let [visited, visits, changes, status, bytes] = numbers;
    let next = if parts & NEXT == 0 { None } else { Some(Timestamp::from_millis(rest.number()?)) };
    let mut bytes_of = |bit| {
        if parts & bit == 0 {
            return Ok(None);
        }
        let length = rest.number()?;
        rest.take(usize::try_from(length).map_err(|_| NoPage)?).map(|bytes| Some(bytes.to_vec()))
    };
    let text = |bytes: Option<Vec<u8>>| bytes.map(String::from_utf8).transpose().map_err(|_| NoPage);
    let etag = text(bytes_of(ETAG)?)?;
    let last_modified = text(bytes_of(LAST_MODIFIED)?)?;
    let digest = bytes_of(DIGEST)?;
    let simhash = if parts & SIMHASH == 0 {
        None
    } else {
        Some(u64::from_le_bytes(rest.take(8)?.try_into().map_err(|_| NoPage)?))
    };
    let is_known = parts & !(NEXT | ETAG | LAST_MODIFIED | DIGEST | SIMHASH) == 0;
    if !is_known || !rest.0.is_empty() {
        return Err(NoPage);
    }
    Ok(PageRecord {
        visited: Timestamp::from_millis(visited),
        visit: Visit {
            status: u16::try_from(status).map_err(|_| NoPage)?,
            bytes,
            etag,
            last_modified,
            digest,
            simhash,
        },
        visits: u32::try_from(visits).map_err(|_| NoPage)?,
        changes: u32::try_from(changes).map_err(|_| NoPage)?,
        next,
    })
}

/// What was not yet unpacked.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn number(&mut self) -> Result<u64, NoPage> {
        decode_varint(&mut self.0).map_err(|_| NoPage)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], NoPage> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(NoPage)?;
        self.0 = rest;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_page() -> impl Strategy<Value = PageRecord> {
        let visit = (
            any::<u16>(),
            any::<u64>(),
            any::<Option<String>>(),
            any::<Option<String>>(),
            any::<Option<Vec<u8>>>(),
            any::<Option<u64>>(),
        );
        let visit = visit.prop_map(|(status, bytes, etag, last_modified, digest, simhash)| Visit {
            status,
            bytes,
            etag,
            last_modified,
            digest,
            simhash,
        });
        let numbers = (any::<u64>(), any::<u32>(), any::<u32>(), any::<Option<u64>>());
        (visit, numbers).prop_map(|(visit, (visited, visits, changes, next))| PageRecord {
            visited: Timestamp::from_millis(visited),
            visit,
            visits,
            changes,
            next: next.map(Timestamp::from_millis),
        })
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_out_again(page in any_page()) {
            let packed = encode(&page);
            prop_assert_eq!(decode(&packed), Ok(page.clone()));
            prop_assert!(packed.len() <= bound(&page.visit));
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes: Vec<u8>) {
            let _ = decode(&bytes);
        }
    }

    #[test]
    fn a_usual_page_takes_fifty_five_bytes() {
        let visit = Visit {
            status: 200,
            bytes: 20_000,
            digest: Some(vec![7; 32]),
            simhash: Some(9),
            ..Visit::default()
        };
        let visited = Timestamp::from_millis(1_790_000_000_000);
        let page = PageRecord { visited, visit, visits: 1, changes: 0, next: None };
        assert_eq!(encode(&page).len(), 55);
    }

    /// These bytes are in logs: if this test fails, the change is wrong, not the test.
    #[test]
    fn the_layout_never_changes() {
        let visit = Visit {
            status: 304,
            bytes: 5,
            etag: Some("e".to_owned()),
            last_modified: Some("m".to_owned()),
            digest: Some(vec![9]),
            simhash: Some(7),
        };
        let at = |millis| Timestamp::from_millis(millis);
        let page = PageRecord { visited: at(300), visit, visits: 2, changes: 1, next: Some(at(128)) };
        let bytes = [31, 172, 2, 2, 1, 176, 2, 5, 128, 1, 1, b'e', 1, b'm', 1, 9, 7, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(encode(&page), bytes);
        for cut in 0..bytes.len() {
            assert_eq!(decode(&bytes[..cut]), Err(NoPage), "cut at {cut}");
        }
    }
}
