//! Every URL the crawl knows: its entries, and the seen set that finds them.
//!
//! An entry is spread out by how long its parts are needed. The [`Record`] stays as long as the URL is known; the
//! [`Live`] part while it is pending or leased; what few entries have is [`More`], found when the record says so.
//! The request lies with the [`Payloads`].
//!
//! Usually a URL has one entry. `dont_filter` gives it further ones, chained from the newest to the oldest.
//! What an entry's state means for its queue is decided elsewhere; here entries are only kept and found.

use std::borrow::Cow;
use std::sync::Arc;

use trapline_core::{Identity, Request, Timestamp};

use super::chunks::Chunks;
use super::index::Index;
use super::moment::{Moment, Rank};
use super::more::{More, Mores};
use super::payloads::{Handed, Payloads, Place};
use super::queues::QueueId;
use super::room::{Room, Shelved};
use crate::report::{Memory, UrlState};
use crate::verbs::PageRecord;

/// Where an entry lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
        matches!(self, Self::Pending | Self::Retrying | Self::Scheduled)
    }

    pub(super) fn is_live(self) -> bool {
        self.is_pending() || self == Self::Leased
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

/// What is remembered of a URL as long as it is known. Its fields are of four bytes so that it has 40.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) identity: [u32; 4],
    pub(super) request: Place,
    pub(super) queue: QueueId,
    pub(super) cost: u32,
    /// Where its live part lies, if it has one; in a free slot, the next free one.
    pub(super) live: u32,
    /// The queue's count of deletions when it came in: if that is another by now, it is gone, and only its slot
    /// remains to be swept.
    pub(super) deletions: u16,
    pub(super) class: u8,
    /// Its state, whether there is [`More`] of it, whether it was visited, and whether a library has its page record.
    pub(super) bits: u8,
}

/// In [`Record::bits`].
const STATE: u8 = 0x0f;
const MORE: u8 = 0x10;
const VISITED: u8 = 0x20;
const PAGE: u8 = 0x40;

/// By the number that stands for them.
const STATES: [State; 9] = [
    State::Pending,
    State::Retrying,
    State::Scheduled,
    State::Leased,
    State::Done,
    State::Revisiting,
    State::Disregarded,
    State::Dead,
    State::Free,
];

impl Record {
    pub(super) fn identity(&self) -> Identity {
        let [a, b, c, d] = self.identity.map(u128::from);
        Identity(a | b << 32 | c << 64 | d << 96)
    }

    pub(super) fn state(&self) -> State {
        STATES[usize::from(self.bits & STATE)]
    }

    pub(super) fn has_more(&self) -> bool {
        self.bits & MORE != 0
    }

    /// Whether a library has its page record.
    pub(super) fn has_page(&self) -> bool {
        self.bits & PAGE != 0
    }

    /// Where its request is, if its page record is there too.
    fn request_with_page(&self) -> Option<Place> {
        self.has_page().then_some(self.request)
    }

    /// A record as it was kept; None if its bits are those of none.
    #[expect(clippy::too_many_arguments, reason = "one for each field, in their order")]
    pub(super) fn restore(
        identity: u128,
        request: Place,
        queue: QueueId,
        cost: u32,
        live: u32,
        deletions: u16,
        class: u8,
        bits: u8,
    ) -> Option<Self> {
        let known = bits & STATE <= State::Free as u8 && bits & !(STATE | MORE | VISITED | PAGE) == 0;
        let identity = words_of(Identity(identity));
        known.then_some(Self { identity, request, queue, cost, live, deletions, class, bits })
    }

    /// The state that these bits say.
    pub(super) fn state_of(bits: u8) -> State {
        STATES.get(usize::from(bits & STATE)).copied().unwrap_or(State::Free)
    }

    fn set_state(&mut self, state: State) {
        self.bits = self.bits & !STATE | state as u8;
    }
}

/// What is needed of an entry while it is pending or leased. Twenty bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Live {
    /// Neighbours in the queue's order, while it is there; the halves of the lease's number while it is leased; `after`
    /// in a free slot is the next free one.
    pub(super) before: EntryId,
    pub(super) after: EntryId,
    pub(super) admitted: [u32; 2],
    /// The queue's count of purges when it became pending: if that is another by now, it is gone.
    pub(super) purges: u16,
    pub(super) band: Band,
    /// Whether it stands in the order's tree rather than in a lane.
    pub(super) in_tree: bool,
}

impl Shelved for Record {
    const SIZE: usize = 40;

    fn write(&self, bytes: &mut Vec<u8>) -> bool {
        let request = self.request.get();
        let words = [request as u32, (request >> 32) as u32, self.queue.0, self.cost, self.live];
        for word in self.identity.into_iter().chain(words) {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(self.deletions.to_le_bytes());
        bytes.extend([self.class, self.bits]);
        true
    }

    fn read(bytes: &[u8]) -> Self {
        let word = |at| word_of(bytes, at);
        Self {
            identity: [word(0), word(1), word(2), word(3)],
            request: Place::new(u64::from(word(4)) | u64::from(word(5)) << 32),
            queue: QueueId(word(6)),
            cost: word(7),
            live: word(8),
            deletions: word(9) as u16,
            class: (word(9) >> 16) as u8,
            bits: (word(9) >> 24) as u8,
        }
    }

    /// Nobody tells it anything.
    fn amend(&mut self, _news: u32) {}
}

impl Shelved for Live {
    const SIZE: usize = 20;

    fn write(&self, bytes: &mut Vec<u8>) -> bool {
        for word in [self.before.0, self.after.0, self.admitted[0], self.admitted[1]] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(self.purges.to_le_bytes());
        bytes.extend([self.band as u8, u8::from(self.in_tree)]);
        true
    }

    fn read(bytes: &[u8]) -> Self {
        let word = |at| word_of(bytes, at);
        Self {
            before: EntryId(word(0)),
            after: EntryId(word(1)),
            admitted: [word(2), word(3)],
            purges: word(4) as u16,
            band: if word(4) >> 16 & 0xff == Band::Returned as u32 { Band::Returned } else { Band::Fresh },
            in_tree: word(4) >> 24 != 0,
        }
    }

    /// Somebody stands behind it.
    fn amend(&mut self, after: u32) {
        self.after = EntryId(after);
    }
}

impl Live {
    /// When it was admitted, among others.
    pub(super) fn admitted(&self) -> Rank {
        u64::from(self.admitted[0]) | u64::from(self.admitted[1]) << 32
    }

    pub(super) fn set_admitted(&mut self, rank: Rank) {
        self.admitted = [rank as u32, (rank >> 32) as u32];
    }

    pub(super) fn lease(&self) -> u64 {
        u64::from(self.before.0) | u64::from(self.after.0) << 32
    }

    pub(super) fn set_lease(&mut self, lease: u64) {
        (self.before, self.after) = (EntryId(lease as u32), EntryId((lease >> 32) as u32));
    }
}

/// A new entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewEntry<'a> {
    pub(super) identity: Identity,
    pub(super) request: &'a Request,
    pub(super) queue: QueueId,
    pub(super) deletions: u16,
    pub(super) class: u8,
    pub(super) cost: u32,
}

/// All entries of a crawl.
#[derive(Debug)]
pub(super) struct Urls {
    pub(super) records: Chunks<Record>,
    pub(super) free: EntryId,
    pub(super) live: Chunks<Live>,
    pub(super) free_live: u32,
    pub(super) more: Mores,
    payloads: Payloads,
    seen: Index,
    /// Whether the order is by date, and ranks tell dates, so that lanes can be kept.
    pub(super) is_dated: bool,
}

/// No live part.
const NO_LIVE: u32 = u32::MAX;

impl Urls {
    pub(super) fn new(payloads: Payloads, room: Option<&Arc<Room>>) -> Self {
        Self {
            records: Chunks::on_shelf(room),
            free: EntryId::NONE,
            live: Chunks::on_shelf(room),
            free_live: NO_LIVE,
            more: Mores::on_shelf(room),
            payloads,
            seen: Index::default(),
            is_dated: false,
        }
    }

    /// More than this is not set aside ahead of time, whatever is asked for: some 34 MiB. Growing costs little.
    const MOST_RESERVED: u64 = 1 << 22;

    /// Makes room for as many URLs as a crawl expects.
    pub(super) fn reserve(&mut self, urls: u64) {
        self.seen.reserve(urls.min(Self::MOST_RESERVED) as usize);
    }

    /// The newest entry of a URL.
    pub(super) fn newest(&self, identity: Identity) -> Option<EntryId> {
        let words = words_of(identity);
        self.seen
            .find(hash_of(identity), |id| self.records.ask(id as usize, |record| record.identity == words))
            .map(EntryId)
    }

    /// Makes room in the seen table for so many records.
    pub(super) fn reserve_seen(&mut self, records: usize) {
        self.seen.reserve(records);
    }

    /// Looks at where entries will be found, ahead of time.
    pub(super) fn touch_seen(&self, identities: impl Iterator<Item = Identity>) {
        let guess = |identity| self.seen.guess(hash_of(identity)).unwrap_or_default();
        std::hint::black_box(identities.fold(0, |all, identity| all ^ guess(identity)));
    }

    /// Lets an entry be found, the newest of its URL.
    pub(super) fn restore_seen(&mut self, id: EntryId, identity: Identity) {
        self.seen.insert(hash_of(identity), id.0);
    }

    /// Lets it not be found any more: there is a newer one.
    pub(super) fn forget_seen(&mut self, id: EntryId) {
        self.seen.remove(hash_of(self[id].identity()), id.0);
    }

    /// Brings here what is lent, as long as it is not more than this. Answers whether that was all.
    pub(super) fn bring_lent(&mut self, most: &mut usize) -> bool {
        self.records.bring_lent(most) && self.live.bring_lent(most)
    }

    /// What may be the newest entry of a URL, to be asked ahead of time for many at once.
    pub(super) fn guess(&self, identity: Identity) -> Option<EntryId> {
        self.seen.guess(hash_of(identity)).map(EntryId)
    }

    /// Keeps an entry, as the newest of its URL, before the `older` one if there is any, in a slot that is free or behind all
    /// others. It has no state yet, but a live part.
    pub(super) fn add(&mut self, new: NewEntry<'_>, older: Option<EntryId>, reuse: bool) -> EntryId {
        let record = Record {
            identity: words_of(new.identity),
            request: self.payloads.put(new.request),
            queue: new.queue,
            cost: new.cost,
            live: NO_LIVE,
            deletions: new.deletions,
            class: new.class,
            bits: State::Free as u8,
        };
        let id = match self.free.some().filter(|_| reuse) {
            Some(id) => {
                self.free = EntryId(self[id].live);
                self[id] = record;
                id
            }
            None => {
                let id = u32::try_from(self.records.len()).expect("the store is full long before");
                self.records.push(record);
                EntryId(id)
            }
        };
        match older {
            None => self.seen.insert(hash_of(new.identity), id.0),
            Some(older) => {
                self.seen.replace(hash_of(new.identity), older.0, id.0);
                self.more_mut(older).newer = Some(id);
                self.more_mut(id).older = Some(older);
            }
        }
        self.live_mut(id);
        id
    }

    /// Frees an entry's slot. Whatever referred to it must be gone by now.
    pub(super) fn remove(&mut self, id: EntryId) {
        let hash = hash_of(self[id].identity());
        let more = if self[id].bits & MORE == 0 { None } else { self.more.remove(id) };
        let More { older, newer, .. } = more.unwrap_or_default();
        if let Some(older) = older {
            self.more_mut(older).newer = newer;
            self.tidy(older);
        }
        match (newer, older) {
            (Some(newer), older) => {
                self.more_mut(newer).older = older;
                self.tidy(newer);
            }
            (None, Some(older)) => self.seen.replace(hash, id.0, older.0),
            (None, None) => self.seen.remove(hash, id.0),
        }
        self.free_live(id);
        let next_free = std::mem::replace(&mut self.free, id);
        let record = &mut self[id];
        record.bits = State::Free as u8;
        record.live = next_free.0;
        let request = record.request;
        self.payloads.free(request);
    }

    /// An entry takes a state on. Its live part goes when it has no use for it; one that needs it has it already. Answers which
    /// queue it is in.
    pub(super) fn set_state(&mut self, id: EntryId, state: State) -> QueueId {
        let record = &mut self[id];
        record.set_state(state);
        let (queue, has_more) = (record.queue, record.has_more());
        if !state.is_live() {
            self.free_live(id);
        }
        if has_more && let Some(more) = self.existing_more(id) {
            if !state.is_live() {
                more.place = None;
            }
            if !matches!(state, State::Retrying | State::Scheduled | State::Revisiting) {
                more.due = Moment::ZERO;
            }
            self.tidy(id);
        }
        queue
    }

    pub(super) fn state(&self, id: EntryId) -> State {
        self[id].state()
    }

    /// The next older entry of the same URL.
    pub(super) fn older(&self, id: EntryId) -> Option<EntryId> {
        self.more(id).older
    }

    /// The live part of an entry that is pending or leased.
    #[inline]
    pub(super) fn live(&self, id: EntryId) -> &Live {
        &self.live[self[id].live as usize]
    }

    /// The live part of an entry, made if there is none.
    #[inline]
    pub(super) fn live_mut(&mut self, id: EntryId) -> &mut Live {
        let mut slot = self[id].live;
        if slot == NO_LIVE {
            slot = self.make_live();
            self[id].live = slot;
        }
        &mut self.live[slot as usize]
    }

    /// Somebody stands behind an entry that was the last of its lane. It may have been for long, so it is not brought back for
    /// that.
    pub(super) fn set_after(&mut self, last: EntryId, after: EntryId) {
        let slot = self.records.ask(last.0 as usize, |record| record.live);
        self.live.amend(slot as usize, after.0);
    }

    fn make_live(&mut self) -> u32 {
        let fresh = Live {
            before: EntryId::NONE,
            after: EntryId::NONE,
            admitted: [0; 2],
            purges: 0,
            band: Band::Fresh,
            in_tree: false,
        };
        let slot = self.free_live;
        if slot == NO_LIVE {
            self.live.push(fresh);
            return self.live.len() as u32 - 1;
        }
        let live = &mut self.live[slot as usize];
        self.free_live = live.after.0;
        *live = fresh;
        slot
    }

    fn free_live(&mut self, id: EntryId) {
        let slot = std::mem::replace(&mut self[id].live, NO_LIVE);
        if slot != NO_LIVE {
            self.live[slot as usize].after = EntryId(self.free_live);
            self.free_live = slot;
        }
    }

    /// What else there is of an entry.
    pub(super) fn more(&self, id: EntryId) -> &More {
        self.more_of(id, &self[id])
    }

    /// The same, of an entry that has this record.
    pub(super) fn more_of(&self, id: EntryId, record: &Record) -> &More {
        static NOTHING: More = More::NOTHING;
        if record.has_more() {
            return self.more.get(id).unwrap_or(&NOTHING);
        }
        &NOTHING
    }

    /// The same, to be changed. What turns out to be nothing is dropped when the entry takes its next state on.
    pub(super) fn more_mut(&mut self, id: EntryId) -> &mut More {
        if self[id].bits & MORE == 0 {
            self[id].bits |= MORE;
            return self.more.add(id);
        }
        self.more.get_mut(id).expect("the record says so")
    }

    /// The same, if there is anything.
    pub(super) fn existing_more(&mut self, id: EntryId) -> Option<&mut More> {
        if self[id].bits & MORE == 0 { None } else { self.more.get_mut(id) }
    }

    /// What is known of its page, if it was visited.
    pub(super) fn page(&self, id: EntryId) -> Option<Arc<PageRecord>> {
        self.page_here(id).or_else(|| self.payloads.page(self[id].request_with_page()?))
    }

    /// The same, for a visit that will take its place.
    pub(super) fn last_page(&self, id: EntryId) -> Option<Arc<PageRecord>> {
        let record = &self[id];
        if record.bits & (MORE | PAGE) == 0 {
            return None;
        }
        self.page_here(id).or_else(|| self.payloads.last_page(self[id].request_with_page()?))
    }

    fn page_here(&self, id: EntryId) -> Option<Arc<PageRecord>> {
        if self[id].has_more() { self.more(id).page() } else { None }
    }

    /// Forgets what is known of its page. What a library has of it goes when it is moved.
    pub(super) fn forget_page(&mut self, id: EntryId, page: &PageRecord) {
        if let Some(place) = self[id].request_with_page() {
            self.payloads.free_page(place, page);
            self[id].bits &= !PAGE;
        }
        if self[id].has_more() {
            self.more.set_page(id, None);
            self.tidy(id);
        }
    }

    /// Sets what is known of its page.
    pub(super) fn set_page(&mut self, id: EntryId, page: &PageRecord) {
        let Some(place) = self.payloads.put_page(self[id].request, page) else {
            return self.keep_page(id, page);
        };
        let record = &mut self[id];
        record.bits |= PAGE;
        let before = std::mem::replace(&mut record.request, place);
        self.payloads.free(before);
        if self[id].has_more() {
            self.more.set_page(id, None);
        }
    }

    /// The same, in memory, whatever a library would take.
    pub(super) fn keep_page(&mut self, id: EntryId, page: &PageRecord) {
        self.more_mut(id);
        self.more.set_page(id, Some(page));
    }

    /// Lets a library put what it has of an entry elsewhere, with what is known of its page if that is here.
    pub(super) fn relocate(&mut self, id: EntryId) {
        if let Some(page) = self.page_here(id) {
            self.set_page(id, &page);
            self.tidy(id);
            return;
        }
        let place = self.payloads.copy(self[id].request, self[id].has_page());
        let before = std::mem::replace(&mut self[id].request, place);
        self.payloads.free(before);
    }

    /// How many bytes an entry will take elsewhere beyond what a library has of it.
    pub(super) fn page_bytes(&self, id: EntryId) -> usize {
        if self[id].has_more() { self.more(id).page_bytes() } else { 0 }
    }

    /// Frees what a library has of all entries, which are about to be dropped.
    pub(super) fn free_all(&mut self) {
        let records = (0..self.slots()).map(|slot| &self[EntryId(slot)]);
        let places = records.filter(|record| record.state() != State::Free).map(|record| record.request);
        self.payloads.free_all(&mut places.map(Place::get));
    }

    /// Where a library has what is known of its page, if it has.
    pub(super) fn page_place(&self, id: EntryId) -> Option<u64> {
        self[id].request_with_page().map(Place::get)
    }

    /// Drops what is nothing.
    fn tidy(&mut self, id: EntryId) {
        if self[id].bits & MORE != 0 && *self.more(id) == More::NOTHING {
            self.more.remove(id);
            self[id].bits &= !MORE;
        }
    }

    /// How often it was visited.
    pub(super) fn visits(&self, id: EntryId) -> u32 {
        let first = u32::from(self[id].bits & VISITED != 0);
        self.more(id).further_visits.saturating_add(first)
    }

    /// It is visited once more; answers how often it was by then.
    pub(super) fn count_visit(&mut self, id: EntryId) -> u32 {
        let record = &mut self[id];
        if record.bits & VISITED == 0 {
            record.bits |= VISITED;
            return 1;
        }
        let further = &mut self.more_mut(id).further_visits;
        *further = further.saturating_add(1);
        further.saturating_add(1)
    }

    pub(super) fn set_visits(&mut self, id: EntryId, visits: u32) {
        if visits > 0 {
            self[id].bits |= VISITED;
        }
        if visits > 1 {
            self.more_mut(id).further_visits = visits - 1;
        }
    }

    pub(super) fn request(&self, id: EntryId) -> Arc<Request> {
        self.payloads.request(self[id].request)
    }

    /// The request, for a worker.
    pub(super) fn hand(&self, record: &Record) -> Handed {
        self.payloads.hand(record.request)
    }

    pub(super) fn url(&self, id: EntryId) -> Cow<'_, str> {
        self.payloads.url(self[id].request)
    }

    /// How many slots there are, free ones among them.
    pub(super) fn slots(&self) -> u32 {
        self.records.len() as u32
    }

    /// How many more URLs certainly fit.
    pub(super) fn room(&self) -> usize {
        ((u32::MAX - 1 - self.slots()) as usize).min(self.payloads.room())
    }

    /// When an entry that waits becomes due.
    pub(super) fn due_at(&self, id: EntryId) -> Option<Timestamp> {
        let waits = matches!(self.state(id), State::Retrying | State::Scheduled | State::Revisiting);
        waits.then(|| self.more(id).due.at)
    }

    /// Looks at entries ahead of time, so that they are in the cache when they are wanted. None of these looks waits
    /// for another, as they would if each came just before it is needed.
    pub(super) fn touch(&self, entries: &[EntryId]) {
        let mut seen = 0;
        // Both ends of each: half of the records lie in two lines of the cache. And all records first, for where a live part is, its
        // record says.
        let look = |id: &EntryId| {
            let record = &self[*id];
            seen ^= record.identity[0] ^ u32::from(self.payloads.touch(record.request));
            record.live
        };
        let lives: Vec<u32> = entries.iter().map(look).filter(|live| *live != NO_LIVE).collect();
        for live in lives {
            let live = &self.live[live as usize];
            seen ^= live.before.0 ^ u32::from(live.purges);
        }
        std::hint::black_box(seen);
    }

    /// Tells whoever has the requests of these entries that they will probably be wanted soon.
    pub(super) fn expect(&self, entries: &[EntryId]) {
        self.payloads.expect(&mut entries.iter().map(|id| self[*id].request));
    }

    /// Looks at an entry that may be wanted, if it is in memory.
    pub(super) fn touch_here(&self, id: EntryId) -> u32 {
        self.records.get_here(id.0 as usize).map_or(0, |record| record.cost)
    }

    /// Whoever stands right behind these in their queues' lanes.
    pub(super) fn behind(&self, entries: &[EntryId]) -> Vec<EntryId> {
        let live = entries.iter().filter(|id| self[**id].live != NO_LIVE);
        live.filter_map(|id| self.live(*id).after.some()).collect()
    }

    /// Puts chunks of one of its lists on the shelf, see [`Chunks::put_away`].
    pub(super) fn put_away(&mut self, list: usize, from: usize, most: u64) -> Option<usize> {
        match list {
            0 => self.records.put_away(from, most),
            1 => self.live.put_away(from, most),
            _ => self.more.slots.put_away(from, most),
        }
    }

    /// How many lists have chunks that can be put on the shelf.
    pub(super) const LISTS: usize = 3;

    /// How much memory they take besides what can be put on the shelf.
    pub(super) fn fixed_bytes(&self) -> usize {
        let lists = self.records.fixed_bytes() + self.live.fixed_bytes() + self.more.fixed_bytes();
        self.seen.bytes() + lists + self.payloads.bytes()
    }

    /// Adds how much memory they take.
    pub(super) fn weigh(&self, memory: &mut Memory) {
        memory.seen += self.seen.bytes() as u64;
        memory.records += self.records.bytes() as u64;
        memory.pending += self.live.bytes() as u64;
        memory.rare += self.more.bytes() as u64;
        memory.texts += self.payloads.bytes() as u64;
    }
}

/// A word of something on the shelf.
pub(super) fn word_of(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at * 4..at * 4 + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn words_of(identity: Identity) -> [u32; 4] {
    [0, 32, 64, 96].map(|shift| (identity.0 >> shift) as u32)
}

fn hash_of(identity: Identity) -> u64 {
    identity.0 as u64
}

impl std::ops::Index<EntryId> for Urls {
    type Output = Record;

    #[inline]
    fn index(&self, id: EntryId) -> &Record {
        &self.records[id.0 as usize]
    }
}

impl std::ops::IndexMut<EntryId> for Urls {
    #[inline]
    fn index_mut(&mut self, id: EntryId) -> &mut Record {
        &mut self.records[id.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_it_was_written() {
        let mut urls = Urls::new(Payloads::new(None), None);
        let request = Request::get("http://a.example/");
        let (identity, queue) = (Identity(7), QueueId(0));
        let new = NewEntry { identity, request: &request, queue, deletions: 0, class: 0, cost: 0 };
        let id = urls.add(new, None, true);
        let states = [State::Pending, State::Retrying, State::Scheduled, State::Leased, State::Done];
        for state in
            states.into_iter().chain([State::Revisiting, State::Disregarded, State::Dead, State::Free])
        {
            urls[id].set_state(state);
            assert_eq!(urls.state(id), state);
        }
    }

    /// There may be hundreds of millions: growing one is a decision.
    #[test]
    fn records_and_live_parts_stay_small() {
        assert_eq!(size_of::<Record>(), 40);
        assert_eq!(size_of::<Live>(), 20);
    }
}
