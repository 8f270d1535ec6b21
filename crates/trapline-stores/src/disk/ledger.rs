//! The ledger: of each segment, how many texts were put into it, and how many of them are still needed. It says which segments
//! are worth rewriting, and which nobody needs any more.
//!
//! In a snapshot, each segment is four numbers of eight bytes: its own, how many texts were put, how many bytes those
//! had, and how many are alive. A segment that is not there has none alive.

use std::collections::BTreeMap;

/// What is known of all segments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ledger {
    accounts: BTreeMap<u64, Account>,
}

/// What is known of the texts of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    /// How many were put there.
    pub(crate) put: u64,
    /// How many bytes those had, but for pages that were forgotten since.
    pub(crate) put_bytes: u64,
    /// How many are needed.
    pub(crate) alive: u64,
}

impl Account {
    /// How many bytes are needed, if those that are have the usual length.
    pub(crate) fn alive_bytes(&self) -> u64 {
        let share = u128::from(self.put_bytes) * u128::from(self.alive) / u128::from(self.put.max(1));
        share as u64
    }
}

/// The segment of a place.
pub(crate) fn segment_of(place: u64) -> u64 {
    place >> 32
}

impl Ledger {
    /// Texts were put into a segment, and are alive.
    pub(crate) fn put(&mut self, segment: u64, texts: u64, bytes: u64) {
        if texts > 0 {
            let account = self.accounts.entry(segment).or_default();
            account.put += texts;
            account.put_bytes += bytes;
            account.alive += texts;
        }
    }

    /// Texts of a segment are needed no more.
    pub(crate) fn free(&mut self, segment: u64, texts: u64) {
        if let Some(account) = self.accounts.get_mut(&segment) {
            account.alive = account.alive.saturating_sub(texts);
        }
    }

    /// A text of so many bytes is needed no more. Of what is left, the usual length is known better: notes are much longer than
    /// requests, and gone much sooner.
    pub(crate) fn take_away(&mut self, segment: u64, bytes: u64) {
        if let Some(account) = self.accounts.get_mut(&segment) {
            account.alive = account.alive.saturating_sub(1);
            account.put = account.put.saturating_sub(1).max(account.alive);
            account.put_bytes = account.put_bytes.saturating_sub(bytes);
        }
    }

    /// A text of a segment is needed, but for so many bytes of it.
    pub(crate) fn shrink(&mut self, segment: u64, bytes: u64) {
        if let Some(account) = self.accounts.get_mut(&segment) {
            account.put_bytes = account.put_bytes.saturating_sub(bytes);
        }
    }

    pub(crate) fn account(&self, segment: u64) -> Account {
        self.accounts.get(&segment).copied().unwrap_or_default()
    }

    /// How many bytes are needed, nearly.
    pub(crate) fn alive_bytes(&self) -> u64 {
        self.accounts.values().map(Account::alive_bytes).sum()
    }

    /// How many bytes have been needed once, and would be given back if their segments were removed; long notes not counted.
    pub(crate) fn dead_bytes(&self) -> u64 {
        self.accounts.values().map(|account| account.put_bytes.saturating_sub(account.alive_bytes())).sum()
    }

    /// How many are alive, by segment, where there are any.
    pub(crate) fn alive(&self) -> BTreeMap<u64, u64> {
        let alive = self.accounts.iter().map(|(segment, account)| (*segment, account.alive));
        alive.filter(|(_, alive)| *alive > 0).collect()
    }

    /// Nothing is known any more of a segment that is gone.
    pub(crate) fn forget(&mut self, segment: u64) {
        self.accounts.remove(&segment);
    }

    /// The same of all but these, which are sorted.
    pub(crate) fn keep(&mut self, segments: &[u64]) {
        self.accounts.retain(|segment, _| segments.binary_search(segment).is_ok());
    }

    /// A ledger of texts of which is known only where they are: as if nothing else had ever been there.
    pub(crate) fn of_places(places: impl Iterator<Item = u64>, bytes_each: u64) -> Self {
        let mut ledger = Self::default();
        for place in places {
            ledger.put(segment_of(place), 1, bytes_each);
        }
        ledger
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let numbers = self.accounts.iter().flat_map(|(segment, account)| {
            let Account { put, put_bytes, alive } = *account;
            [*segment, put, put_bytes, alive]
        });
        numbers.flat_map(u64::to_le_bytes).collect()
    }

    /// The ledger that these bytes were made of; None if they were not.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut ledger = Self::default();
        let (accounts, rest) = bytes.as_chunks::<32>();
        for account in accounts {
            let (numbers, _) = account.as_chunks::<8>();
            let [segment, put, put_bytes, alive] = std::array::from_fn(|at| u64::from_le_bytes(numbers[at]));
            if alive > put {
                return None;
            }
            ledger.accounts.insert(segment, Account { put, put_bytes, alive });
        }
        rest.is_empty().then_some(ledger)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_alive_until_it_is_freed() {
        let mut ledger = Ledger::default();
        ledger.put(3, 4, 400);
        ledger.put(5, 1, 70);
        ledger.free(3, 1);
        ledger.free(5, 1);
        ledger.free(9, 1);
        assert_eq!(ledger.account(3), Account { put: 4, put_bytes: 400, alive: 3 });
        assert_eq!((ledger.account(3).alive_bytes(), ledger.account(5).alive_bytes()), (300, 0));
        assert_eq!(ledger.alive(), BTreeMap::from([(3, 3)]));
        assert_eq!((ledger.alive_bytes(), ledger.dead_bytes()), (300, 100 + 70));
        // What is known to be long goes with its length.
        ledger.put(3, 1, 5000);
        ledger.take_away(3, 5000);
        ledger.take_away(9, 5000);
        assert_eq!(ledger.account(3), Account { put: 4, put_bytes: 400, alive: 3 });
        assert_eq!(Ledger::decode(&ledger.encode()).as_ref(), Some(&ledger));
        assert_eq!(Ledger::decode(&ledger.encode()[1..]), None);
    }
}
