//! Every URL the crawl knows: its entries, and the seen set that finds them.
//!
//! Usually a URL has one entry. `dont_filter` gives it further ones, chained from the newest to the oldest.
//! What an entry's state means for its queue is decided elsewhere; here entries are only kept and found.

use std::sync::Arc;

use hashbrown::HashTable;
use trapline_core::{Identity, Request, Timestamp};

use super::moment::{Moment, Rank};
use super::queues::QueueId;
use crate::report::UrlState;
use crate::verbs::PageRecord;

/// Where an entry lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EntryId(pub(super) u32);

impl EntryId {
    /// No entry.
    pub(super) const NONE: Self = Self(u32::MAX);

    pub(super) fn some(self) -> Option<Self> {
        (self != Self::NONE).then_some(self)
    }
}

/// What is to become of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// In its queue's order.
    Pending,
    /// Pending, a retry that is due later.
    Retrying,
    /// Pending, to be visited later for the first time.
    Scheduled,
    /// Being fetched.
    Leased,
    /// Fetched.
    Done,
    /// Fetched, and due again later.
    Revisiting,
    /// Not to be fetched.
    Disregarded,
    /// Given up.
    Dead,
    /// Not an entry: a free slot.
    Free,
}

impl State {
    /// What the outside calls it.
    pub(super) fn public(self) -> UrlState {
        match self {
            Self::Pending | Self::Retrying | Self::Scheduled => UrlState::Pending,
            Self::Leased => UrlState::Leased,
            Self::Done | Self::Revisiting => UrlState::Done,
            Self::Disregarded => UrlState::Disregarded,
            Self::Dead => UrlState::Dead,
            Self::Free => UrlState::Unknown,
        }
    }

    pub(super) fn is_pending(self) -> bool {
        self.public() == UrlState::Pending
    }
}

/// Which of a class go first: those that come back, or those admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Band {
    /// Due retries and expired leases, by due time or deadline.
    Returned,
    /// The rest, by the crawl's order.
    Fresh,
}

/// One URL to be fetched, or that was.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) identity: Identity,
    pub(super) request: Arc<Request>,
    pub(super) page: Option<Arc<PageRecord>>,
    pub(super) queue: QueueId,
    /// The next older and newer entries of the same URL.
    pub(super) older: EntryId,
    pub(super) newer: EntryId,
    /// Neighbours in the queue's order, while it is there.
    pub(super) before: EntryId,
    pub(super) after: EntryId,
    /// Its place among its class and band; what that is depends on the crawl's order.
    pub(super) place: u64,
    /// When it was admitted, among others.
    pub(super) admitted: Rank,
    /// The timer that waits for it: of a retry, a schedule or a visit.
    pub(super) due: Moment,
    /// Its lease, while leased.
    pub(super) lease: u64,
    pub(super) cost: u32,
    /// Leases that expired in a row.
    pub(super) expiries: u32,
    /// Retries in a row.
    pub(super) retries: u32,
    /// Visits there were.
    pub(super) visits: u32,
    /// The queue's counts of purges and deletions when it came in: if they are higher by now, it is gone and
    /// only its slot remains to be swept.
    pub(super) purges: u32,
    pub(super) deletions: u32,
    pub(super) class: u8,
    pub(super) band: Band,
    pub(super) state: State,
    /// Whether it stands in the order's tree rather than in a lane.
    pub(super) in_tree: bool,
}

/// An entry of the seen set. Two halves of the identity keep it at 24 bytes.
#[derive(Debug)]
struct Seen {
    high: u64,
    low: u64,
    newest: EntryId,
}

impl Seen {
    fn is(&self, identity: Identity) -> bool {
        self.low == identity.0 as u64 && self.high == (identity.0 >> 64) as u64
    }
}

/// All entries of a crawl.
#[derive(Debug)]
pub(super) struct Urls {
    slots: Vec<Entry>,
    /// The first of the free slots, which are chained by `after`.
    free: EntryId,
    seen: HashTable<Seen>,
}

impl Default for Urls {
    fn default() -> Self {
        Self { slots: Vec::new(), free: EntryId::NONE, seen: HashTable::new() }
    }
}

impl Urls {
    /// More than this is not set aside ahead of time, whatever is asked for: some gigabytes.
    const MOST_RESERVED: u64 = 1 << 24;

    /// Makes room for as many URLs as a crawl expects, as far as memory allows.
    pub(super) fn reserve(&mut self, urls: u64) {
        let room = usize::try_from(urls.min(Self::MOST_RESERVED)).unwrap_or(0);
        let more = room.saturating_sub(self.seen.len());
        // If there is not that much memory, growing step by step may still do.
        let _ = self.seen.try_reserve(more, |seen| seen.low);
        let _ = self.slots.try_reserve(room.saturating_sub(self.slots.len()));
    }

    /// Makes room for so many more.
    pub(super) fn make_room(&mut self, more: usize) {
        self.seen.reserve(more, |seen| seen.low);
        self.slots.reserve(more);
    }

    /// The newest entry of a URL.
    pub(super) fn newest(&self, identity: Identity) -> Option<EntryId> {
        self.seen.find(identity.0 as u64, |seen| seen.is(identity)).map(|seen| seen.newest)
    }

    /// Keeps an entry, as the newest of its URL.
    pub(super) fn add(&mut self, mut entry: Entry) -> EntryId {
        let identity = entry.identity;
        let id = match self.free.some() {
            Some(id) => id,
            None => EntryId(u32::try_from(self.slots.len()).expect("fewer than 2^32 entries fit in memory")),
        };
        let low = identity.0 as u64;
        match self.seen.entry(low, |seen| seen.is(identity), |seen| seen.low) {
            hashbrown::hash_table::Entry::Occupied(mut seen) => {
                entry.older = std::mem::replace(&mut seen.get_mut().newest, id);
            }
            hashbrown::hash_table::Entry::Vacant(slot) => {
                slot.insert(Seen { high: (identity.0 >> 64) as u64, low, newest: id });
                entry.older = EntryId::NONE;
            }
        }
        entry.newer = EntryId::NONE;
        if let Some(older) = entry.older.some() {
            self[older].newer = id;
        }
        if self.free == id {
            self.free = self[id].after;
            self[id] = entry;
        } else {
            self.slots.push(entry);
        }
        id
    }

    /// Frees an entry's slot. Whatever referred to it must be gone by now.
    pub(super) fn remove(&mut self, id: EntryId) {
        let Entry { identity, older, newer, .. } = self[id];
        if let Some(older) = older.some() {
            self[older].newer = newer;
        }
        if let Some(newer) = newer.some() {
            self[newer].older = older;
        } else if let Ok(mut seen) = self.seen.find_entry(identity.0 as u64, |seen| seen.is(identity)) {
            match older.some() {
                Some(older) => seen.get_mut().newest = older,
                None => {
                    seen.remove();
                }
            }
        }
        let next_free = std::mem::replace(&mut self.free, id);
        let slot = &mut self[id];
        slot.state = State::Free;
        slot.after = next_free;
        slot.page = None;
        slot.request = empty_request();
    }

    /// How many slots there are, free ones among them.
    pub(super) fn slots(&self) -> u32 {
        self.slots.len() as u32
    }

    /// When an entry that waits becomes due.
    pub(super) fn due_at(&self, id: EntryId) -> Option<Timestamp> {
        let entry = &self[id];
        matches!(entry.state, State::Retrying | State::Scheduled | State::Revisiting).then_some(entry.due.at)
    }
}

/// One shared nothing for free slots, so that freeing a slot gives its payload back at once.
fn empty_request() -> Arc<Request> {
    static NOTHING: std::sync::LazyLock<Arc<Request>> =
        std::sync::LazyLock::new(|| Arc::new(Request::get("")));
    Arc::clone(&NOTHING)
}

impl std::ops::Index<EntryId> for Urls {
    type Output = Entry;

    fn index(&self, id: EntryId) -> &Entry {
        &self.slots[id.0 as usize]
    }
}

impl std::ops::IndexMut<EntryId> for Urls {
    fn index_mut(&mut self, id: EntryId) -> &mut Entry {
        &mut self.slots[id.0 as usize]
    }
}
