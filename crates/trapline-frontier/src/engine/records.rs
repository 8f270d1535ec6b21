//! Records out: all that a crawl remembers, page by page, for another frontier to restore.
//!
//! A cursor says which part of the crawl comes next and where in it to begin: at a queue, an entry, a lease, a slot, or after so
//! many. It holds while nothing else happens to the crawl.

use std::sync::Arc;

use trapline_core::{Terms, Timestamp};

use super::crawl::Crawl;
use super::moment::Moment;
use super::order;
use super::queues::{Queue, QueueId, Retired};
use super::urls::{Band, EntryId, State};
use crate::record::{CrawlRecord, QueueRecord, Record, RetiredBy, UrlRecord, UrlStanding};
use crate::report::Note;
use crate::settings::Order;
use crate::verbs::NoteWrite;

/// How many places are looked at for one page.
const LOOKED_AT: u32 = 100_000;

/// A part of the crawl, in the order in which they are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Pending URLs that are due: from this queue on.
    Queue(QueueId),
    /// The same: from this entry of some queue on.
    Pending(EntryId),
    /// Leased URLs: from this lease on.
    Leased(u64),
    /// URLs that wait for their time: from the first.
    Waiting,
    /// The same: from this one on.
    WaitingFrom(EntryId),
    /// All others: from this slot on.
    Slot(u32),
    /// Queues: after so many.
    Queues(u64),
    /// Notes: after so many.
    Notes(u64),
    /// The crawl.
    Crawl,
}

const PART_BITS: u32 = 56;

impl Part {
    fn from_cursor(cursor: u64) -> Self {
        let place = cursor & ((1 << PART_BITS) - 1);
        let entry = EntryId(u32::try_from(place).unwrap_or(u32::MAX));
        match cursor >> PART_BITS {
            0 => Self::Queue(QueueId(entry.0)),
            1 => Self::Pending(entry),
            2 => Self::Leased(place),
            3 => Self::Waiting,
            4 => Self::WaitingFrom(entry),
            5 => Self::Slot(entry.0),
            6 => Self::Queues(place),
            7 => Self::Notes(place),
            _ => Self::Crawl,
        }
    }

    fn cursor(self) -> u64 {
        let (part, place) = match self {
            Self::Queue(id) => (0, id.0.into()),
            Self::Pending(id) => (1, id.0.into()),
            Self::Leased(id) => (2, id),
            Self::Waiting => (3, 0),
            Self::WaitingFrom(id) => (4, id.0.into()),
            Self::Slot(slot) => (5, slot.into()),
            Self::Queues(after) => (6, after),
            Self::Notes(after) => (7, after),
            Self::Crawl => (8, 0),
        };
        part << PART_BITS | place
    }
}

impl Crawl {
    /// Some records, from a cursor on.
    pub(super) fn records(&mut self, from: u64, limit: usize, cursor: &mut Option<u64>) -> Vec<Record> {
        let mut records = Vec::new();
        let mut part = Some(Part::from_cursor(from));
        let mut looked_at = 0;
        while let Some(now) = part.filter(|_| records.len() < limit && looked_at < LOOKED_AT) {
            part = self.next_records(now, limit, &mut looked_at, &mut records);
        }
        *cursor = part.map(Part::cursor);
        records
    }

    /// Tells the records of one part until there are enough; answers where to go on.
    fn next_records(
        &mut self,
        part: Part,
        limit: usize,
        looked_at: &mut u32,
        records: &mut Vec<Record>,
    ) -> Option<Part> {
        let room = limit - records.len();
        Some(match part {
            Part::Queue(id) if id.0 >= self.queues.len() => Part::Leased(0),
            Part::Queue(id) => {
                *looked_at += 1;
                match self.queues[id].order.first(self.order(), &self.urls) {
                    Some(entry) => Part::Pending(entry),
                    None => Part::Queue(QueueId(id.0 + 1)),
                }
            }
            Part::Pending(id) => {
                let is_there = id.0 < self.urls.slots() && self.urls.state(id) == State::Pending;
                if !is_there || self.is_gone(id) {
                    // Somebody uses the crawl meanwhile: what is left of that queue cannot be found.
                    return Some(Part::Leased(0));
                }
                let queue = self.urls[id].queue;
                let mut entries = self.queues[queue].order.from(self.order(), &self.urls, id);
                records.extend(entries.by_ref().take(room).map(|id| self.url_record(id)));
                entries.next().map_or(Part::Queue(QueueId(queue.0 + 1)), Part::Pending)
            }
            Part::Leased(from) => {
                let mut leases = self.leases.iter_from(from);
                let entries = leases.by_ref().take(room).map(|(_, grant)| grant.entry);
                records.extend(entries.filter(|id| !self.is_gone(*id)).map(|id| self.url_record(id)));
                leases.next().map_or(Part::Waiting, |(next, _)| Part::Leased(next))
            }
            Part::Waiting => {
                let first = self.timers.due_from(Moment::ZERO, 1);
                first.first().map_or(Part::Slot(0), |id| Part::WaitingFrom(*id))
            }
            Part::WaitingFrom(id) => {
                let from = if id.0 < self.urls.slots() { self.urls.more(id).due } else { Moment::ZERO };
                if from == Moment::ZERO {
                    return Some(Part::Slot(0));
                }
                let mut entries = self.timers.due_from(from, room + 1);
                let next = (entries.len() > room).then(|| entries.pop()).flatten();
                let told = entries.into_iter().filter(|id| !self.is_gone(*id));
                records.extend(told.map(|id| self.url_record(id)));
                next.map_or(Part::Slot(0), Part::WaitingFrom)
            }
            Part::Slot(slot) if slot >= self.urls.slots() => Part::Queues(0),
            Part::Slot(slot) => {
                *looked_at += 1;
                let id = EntryId(slot);
                let ended = matches!(self.urls.state(id), State::Done | State::Disregarded | State::Dead);
                if ended && !self.is_gone(id) {
                    records.push(self.url_record(id));
                }
                Part::Slot(slot + 1)
            }
            Part::Queues(after) => {
                let queues = self.queues_as_served();
                let rest = queues.iter().skip(usize::try_from(after).unwrap_or(usize::MAX)).take(room);
                let had = records.len();
                records.extend(rest.map(|id| Record::Queue(Box::new(self.queue_record(&self.queues[*id])))));
                let after = after + (records.len() - had) as u64;
                if after < queues.len() as u64 { Part::Queues(after) } else { Part::Notes(0) }
            }
            Part::Notes(after) => {
                let notes = self.notes.beginning_with("");
                let rest = notes.skip(usize::try_from(after).unwrap_or(usize::MAX)).take(room);
                let mut passed = 0;
                // Where one cannot be read, nobody is given these records.
                let shown =
                    rest.inspect(|_| passed += 1).filter_map(|(key, note)| self.notes.show(key, note));
                records.extend(shown.map(|Note { key, value, expires }| {
                    Record::Note(NoteWrite { key, value: Some(value), expires })
                }));
                let after = after + passed;
                if after < self.notes.len() as u64 { Part::Notes(after) } else { Part::Crawl }
            }
            Part::Crawl => {
                records.push(Record::Crawl(CrawlRecord {
                    started: self.started,
                    fetched: self.fetched,
                    bytes: self.bytes,
                    spent: self.spent,
                    granted: self.granted,
                    expired: self.expired,
                    turn: self.lines.turn(),
                }));
                return None;
            }
        })
    }

    /// All queues, those that are served earlier first.
    fn queues_as_served(&self) -> Vec<QueueId> {
        let mut queues: Vec<QueueId> = (0..self.queues.len()).map(QueueId).collect();
        queues.sort_by_cached_key(|id| (self.age_to_be(&self.queues[*id]), *id));
        queues
    }

    fn url_record(&self, id: EntryId) -> Record {
        let entry = &self.urls[id];
        let more = self.urls.more(id);
        let standing = match entry.state() {
            State::Pending => {
                let place = Timestamp::from_millis(order::place(self.order(), &self.urls, id));
                match self.urls.live(id).band {
                    Band::Returned => UrlStanding::Returned(place),
                    Band::Fresh => UrlStanding::Pending((self.order() == Order::Date).then_some(place)),
                }
            }
            State::Retrying => UrlStanding::Retry(more.due.at),
            State::Scheduled => UrlStanding::Scheduled(more.due.at),
            State::Leased | State::Free => UrlStanding::Leased,
            State::Done => UrlStanding::Done(None),
            State::Revisiting => UrlStanding::Done(Some(more.due.at)),
            State::Disregarded => {
                UrlStanding::Disregarded(self.disregards.get(&id).cloned().unwrap_or_default())
            }
            State::Dead => {
                let death = self.dead_letters.get(&id);
                UrlStanding::Dead {
                    reason: death.map(|death| death.reason.clone()).unwrap_or_default(),
                    at: death.map_or(self.now, |death| death.at),
                }
            }
        };
        Record::Url(Box::new(UrlRecord {
            request: self.urls.request(id),
            identity: entry.identity(),
            key: Arc::clone(&self.queue_of_entry(id).key),
            class: entry.class,
            cost: entry.cost,
            standing,
            page: self.urls.page(id),
            visits: self.urls.visits(id),
            retries: more.retries,
            expiries: more.expiries,
            entries: self.entries_of(id),
        }))
    }

    /// How many entries the URL of an entry has.
    fn entries_of(&self, id: EntryId) -> u32 {
        let newest = std::iter::successors(Some(id), |id| self.urls.more(*id).newer).last();
        let all = std::iter::successors(newest, |id| self.urls.older(*id));
        all.filter(|id| !self.is_gone(*id)).count() as u32
    }

    fn queue_record(&self, queue: &Queue) -> QueueRecord {
        let ahead = |at: Timestamp| Some(at).filter(|at| *at > self.now);
        let group = queue.group().map(|group| &self.groups[group]);
        let named = |by_operator: bool| {
            let name = group.map(|group| Arc::clone(&group.name));
            // That there is none is told only if somebody said so.
            let name = name.or_else(|| queue.is_grouped_by_operator().then(|| Arc::from("")));
            name.filter(|_| queue.is_grouped_by_operator() == by_operator)
        };
        QueueRecord {
            key: Arc::clone(&queue.key),
            terms: Terms { group: named(false), ..queue.terms_by(false) },
            steered: Terms { group: named(true), ..queue.terms_by(true) },
            retired: match queue.retired().filter(|_| self.is_retired(queue)) {
                None => None,
                Some(Retired::ByHand) => Some(RetiredBy::Operator),
                Some(Retired::OverBudget(_)) => Some(RetiredBy::Budget),
            },
            blocked: ahead(queue.blocked().at),
            next_fetch: ahead(queue.next_fetch.at),
            group_next_fetch: group.and_then(|group| ahead(group.next_fetch.at)),
            active: queue.active,
            balance: queue.balance,
            spent: queue.spent(self.charges_from()),
            grants: queue.grants,
            charged: queue.charged,
            latest_cost: queue.latest_cost,
            errors: queue.rare().map_or(0, |rare| rare.errors),
        }
    }
}
