//! A page record as it is kept: every visited URL has one, so it is packed into a third of what it takes unpacked.
//!
//! ```text
//! u8       which of the following are there: 1 next, 2 etag, 4 last_modified, 8 digest, 16 simhash
//! varint   visited, visits, changes, status, bytes
//! varint   next
//! varint   length of the etag, then itself; likewise last_modified and digest
//! 8 bytes  simhash
//! ```
//!
//! Only for memory: what goes to disk has a format of its own.

use std::sync::Arc;

use prost::encoding::{decode_varint, encode_varint};
use trapline_core::Timestamp;

use crate::verbs::{PageRecord, Visit};

const NEXT: u8 = 1;
const ETAG: u8 = 2;
const LAST_MODIFIED: u8 = 4;
const DIGEST: u8 = 8;
const SIMHASH: u8 = 16;

/// A page record, packed. Shared with photographs, which are copies of everything that changes meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PackedPage(Arc<[u8]>);

impl PackedPage {
    pub(super) fn of(page: &PageRecord) -> Self {
        let PageRecord { visited, visit, visits, changes, next } = page;
        let Visit { status, bytes, etag, last_modified, digest, simhash } = visit;
        let texts = [
            (ETAG, etag.as_deref().map(str::as_bytes)),
            (LAST_MODIFIED, last_modified.as_deref().map(str::as_bytes)),
            (DIGEST, digest.as_deref()),
        ];
        let text_bytes: usize = texts.iter().map(|(_, text)| text.map_or(0, <[u8]>::len)).sum();
        let mut packed = Vec::with_capacity(64 + text_bytes);
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
        Self(packed.into())
    }

    /// How many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        self.0.len()
    }

    pub(super) fn unpack(&self) -> Arc<PageRecord> {
        let mut rest = Rest(&self.0);
        let parts = rest.take(1)[0];
        let [visited, visits, changes, status, bytes] = std::array::from_fn(|_| rest.number());
        let next = (parts & NEXT != 0).then(|| Timestamp::from_millis(rest.number()));
        let mut bytes_of = |bit| {
            (parts & bit != 0).then(|| {
                let length = rest.number() as usize;
                rest.take(length).to_vec()
            })
        };
        let etag = bytes_of(ETAG).map(text);
        let last_modified = bytes_of(LAST_MODIFIED).map(text);
        let digest = bytes_of(DIGEST);
        let simhash = (parts & SIMHASH != 0)
            .then(|| rest.0.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)));
        Arc::new(PageRecord {
            visited: Timestamp::from_millis(visited),
            visit: Visit { status: status as u16, bytes, etag, last_modified, digest, simhash },
            visits: visits as u32,
            changes: changes as u32,
            next,
        })
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_default()
}

/// What was not yet unpacked. It was packed here, so there is always as much as is asked for.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn number(&mut self) -> u64 {
        decode_varint(&mut self.0).unwrap_or_default()
    }

    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
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
            prop_assert_eq!(&*PackedPage::of(&page).unpack(), &page);
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
        assert_eq!(PackedPage::of(&page).bytes(), 55);
    }
}
