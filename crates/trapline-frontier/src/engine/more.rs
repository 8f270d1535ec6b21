//! What few entries have, or entries only for a while: times, troubles, visits, page records, siblings.
//!
//! Kept apart from the entries and found by their numbers, in structures that grow in steps.

use std::sync::Arc;

use trapline_core::Timestamp;

use super::chunks::Chunks;
use super::index::Index;
use super::moment::Moment;
use super::room::{Room, Shelved};
use super::urls::{EntryId, word_of};
use crate::packed_page;
use crate::verbs::PageRecord;

/// What one entry has.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct More {
    /// Its place among its class and band, if that is not the place of one admitted when it was.
    pub(super) place: Option<u64>,
    /// The timer that waits for it: of a retry, a schedule or a visit.
    pub(super) due: Moment,
    /// Leases that expired in a row.
    pub(super) expiries: u32,
    /// Retries in a row.
    pub(super) retries: u32,
    /// Visits after the first.
    pub(super) further_visits: u32,
    /// The next older and newer entries of the same URL.
    pub(super) older: Option<EntryId>,
    pub(super) newer: Option<EntryId>,
    /// What is known of its page, packed, unless a library has it. Set by [`Mores::set_page`], which counts how much there is
    /// of them; shared with photographs, which are copies of everything that changes meanwhile.
    page: Option<Arc<[u8]>>,
}

impl More {
    pub(super) const NOTHING: Self = Self {
        place: None,
        due: Moment::ZERO,
        expiries: 0,
        retries: 0,
        further_visits: 0,
        older: None,
        newer: None,
        page: None,
    };

    /// What is known of the page, if that is here.
    pub(super) fn page(&self) -> Option<Arc<PageRecord>> {
        // What was packed here is one.
        self.page.as_ref().and_then(|packed| packed_page::decode(packed).ok()).map(Arc::new)
    }

    /// The same, of one that belongs to no entry yet.
    pub(super) fn with_page(self, page: Option<&PageRecord>) -> Self {
        Self { page: page.map(packed), ..self }
    }

    pub(super) fn page_bytes(&self) -> usize {
        self.page.as_ref().map_or(0, |packed| packed.len())
    }
}

/// What all entries have that have any.
#[derive(Debug, Default)]
pub(super) struct Mores {
    /// Each with its entry; none in a free slot.
    pub(super) slots: Chunks<(EntryId, More)>,
    free: Vec<u32>,
    by_entry: Index,
    /// How much all page records take.
    page_bytes: usize,
}

impl Shelved for (EntryId, More) {
    const SIZE: usize = 52;

    /// With a page record it stays: where there is a library that has them, hardly any has one.
    fn write(&self, bytes: &mut Vec<u8>) -> bool {
        let (id, More { place, due, expiries, retries, further_visits, older, newer, page }) = self;
        let [older, newer] = [older, newer].map(|entry| entry.unwrap_or(EntryId::NONE).0);
        let wide = [place.unwrap_or_default(), due.at.as_millis(), due.rank];
        let halves = wide.iter().flat_map(|wide| [*wide as u32, (wide >> 32) as u32]);
        let words = [id.0, *expiries, *retries, *further_visits, older, newer, u32::from(place.is_some())];
        for word in words.into_iter().chain(halves) {
            bytes.extend(word.to_le_bytes());
        }
        page.is_none()
    }

    fn read(bytes: &[u8]) -> Self {
        let word = |at| word_of(bytes, at);
        let wide = |at| u64::from(word(at)) | u64::from(word(at + 1)) << 32;
        let more = More {
            place: (word(6) != 0).then_some(wide(7)),
            due: Moment { at: Timestamp::from_millis(wide(9)), rank: wide(11) },
            expiries: word(1),
            retries: word(2),
            further_visits: word(3),
            older: EntryId(word(4)).some(),
            newer: EntryId(word(5)).some(),
            page: None,
        };
        (EntryId(word(0)), more)
    }

    /// Nobody tells it anything.
    fn amend(&mut self, _news: u32) {}
}

impl Mores {
    pub(super) fn on_shelf(room: Option<&Arc<Room>>) -> Self {
        Self { slots: Chunks::on_shelf(room), ..Self::default() }
    }

    /// How much memory it takes besides what can be put on the shelf.
    pub(super) fn fixed_bytes(&self) -> usize {
        self.page_bytes
            + self.slots.fixed_bytes()
            + self.by_entry.bytes()
            + self.free.capacity() * size_of::<u32>()
    }

    /// How many have something.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    fn slot(&self, id: EntryId) -> Option<u32> {
        self.by_entry.find(hash_of(id), |slot| self.slots[slot as usize].0 == id)
    }

    pub(super) fn get(&self, id: EntryId) -> Option<&More> {
        self.slot(id).map(|slot| &self.slots[slot as usize].1)
    }

    pub(super) fn get_mut(&mut self, id: EntryId) -> Option<&mut More> {
        self.slot(id).map(|slot| &mut self.slots[slot as usize].1)
    }

    /// Gives an entry that has nothing yet something to change.
    pub(super) fn add(&mut self, id: EntryId) -> &mut More {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push((EntryId::NONE, More::NOTHING));
            self.slots.len() as u32 - 1
        });
        self.by_entry.insert(hash_of(id), slot);
        let (of, more) = &mut self.slots[slot as usize];
        *of = id;
        more
    }

    /// Gives an entry that has nothing yet all of this.
    pub(super) fn put(&mut self, id: EntryId, more: More) {
        self.page_bytes += more.page_bytes();
        *self.add(id) = more;
    }

    /// Sets the page record of an entry that has something.
    pub(super) fn set_page(&mut self, id: EntryId, page: Option<&PageRecord>) {
        let packed = page.map(packed);
        if let Some(slot) = self.slot(id) {
            let more = &mut self.slots[slot as usize].1;
            let before = more.page_bytes();
            more.page = packed;
            self.page_bytes = self.page_bytes - before + more.page_bytes();
        }
    }

    pub(super) fn remove(&mut self, id: EntryId) -> Option<More> {
        let slot = self.slot(id)?;
        self.by_entry.remove(hash_of(id), slot);
        self.free.push(slot);
        let (_, more) = std::mem::replace(&mut self.slots[slot as usize], (EntryId::NONE, More::NOTHING));
        self.page_bytes -= more.page_bytes();
        Some(more)
    }

    /// How much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        self.page_bytes + self.slots.bytes() + self.by_entry.bytes() + self.free.capacity() * size_of::<u32>()
    }
}

fn packed(page: &PageRecord) -> Arc<[u8]> {
    packed_page::encode(page).into()
}

/// Numbers in a row, spread evenly.
fn hash_of(id: EntryId) -> u64 {
    u64::from(id.0).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_has_its_own_and_slots_are_used_again() {
        let mut mores = Mores::default();
        for round in 0..3 {
            for id in 0..10_000 {
                mores.add(EntryId(id)).retries = id + round;
            }
            for id in 0..10_000 {
                assert_eq!(mores.get(EntryId(id)).map(|more| more.retries), Some(id + round));
                assert_eq!(mores.remove(EntryId(id)).map(|more| more.retries), Some(id + round));
                assert_eq!(mores.get(EntryId(id)), None);
            }
        }
        assert_eq!(mores.slots.len(), 10_000);
    }
}
