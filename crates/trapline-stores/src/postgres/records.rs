//! Records out and in: all that a crawl remembers, for another frontier to restore, and the other way.
//!
//! A cursor says which part of the crawl comes next and where in it to begin: at an entry, a lease, or after so many. It
//! holds while nothing else happens to the crawl.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use tokio_postgres::Row as Columns;
use trapline_core::{KEY_BYTES_MAX, Terms, URL_BYTES_MAX};
use trapline_frontier::{
    CrawlRecord, ErrorKind, NoteWrite, Order, QueueRecord, Record, RetiredBy, StoreError, UrlRecord,
    UrlStanding, payload,
};

use super::entry::{Entry, RETURNED, Spot, State, Wait};
use super::load::{QUEUE, read_entry, text};
use super::moment::{Moment, column, count, time};
use super::queue::{BY_HAND, OVER_BUDGET, Queue};
use super::scan::{URLS_OF_ENTRIES, look_at, request, small};
use super::session::{Failure, Session};
use super::work::Work;

/// The parts of a crawl, in the order in which they are told.
const PENDING: i64 = 0;
const LEASED: i64 = 1;
const WAITING: i64 = 2;
const ENDED: i64 = 3;
const QUEUES: i64 = 4;
const NOTES: i64 = 5;
const CRAWL: i64 = 6;

const PART_BITS: u32 = 59;

static QUEUES_AS_SERVED: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {} FROM queues q JOIN turns t ON t.queue = q.id WHERE q.crawl = $1 ORDER BY \
         CASE WHEN t.free = 1 THEN t.age_at ELSE greatest(t.freed_at, t.next_at, t.blocked_at) END, \
         CASE WHEN t.free = 1 THEN t.age_rank ELSE (SELECT max(m.rank) FROM (VALUES (t.freed_at, t.freed_rank), \
           (t.next_at, t.next_rank), (t.blocked_at, t.blocked_rank)) AS m (at, rank) \
           WHERE m.at = greatest(t.freed_at, t.next_at, t.blocked_at)) END, q.id OFFSET $2 LIMIT $3",
        *QUEUE
    )
});

impl Work {
    /// Some records, from a cursor on; and where to go on.
    pub(super) async fn records(
        &mut self,
        session: &Session,
        from: i64,
        limit: i64,
    ) -> Result<(Vec<Record>, Option<u64>), Failure> {
        let (mut part, mut place) = (from >> PART_BITS, from & ((1 << PART_BITS) - 1));
        let mut records = Vec::new();
        while part <= CRAWL && (records.len() as i64) < limit {
            let room = limit - records.len() as i64;
            let next = self.records_of(session, part, place, room, &mut records).await?;
            (part, place) = next.map_or((part + 1, 0), |place| (part, place));
        }
        let cursor = (part <= CRAWL).then_some((part << PART_BITS | place).unsigned_abs());
        Ok((records, cursor))
    }

    /// Tells the records of one part until there are enough; answers where in it to go on, if there is more.
    async fn records_of(
        &mut self,
        session: &Session,
        part: i64,
        place: i64,
        room: i64,
        records: &mut Vec<Record>,
    ) -> Result<Option<i64>, Failure> {
        let crawl = &self.crawl.id;
        let one_more = room.saturating_add(1);
        let of_entries = match part {
            PENDING => {
                "SELECT p.entry FROM pending p WHERE p.crawl = $1 AND ($2::int8 = 0 OR (p.queue, p.class, p.band, p.place, p.tie, p.rank) \
                 >= (SELECT b.queue, b.class, b.band, b.place, b.tie, b.rank FROM pending b WHERE b.crawl = $1 AND b.entry = $2)) \
                 ORDER BY p.queue, p.class, p.band, p.place, p.tie, p.rank LIMIT $3"
            }
            LEASED => {
                "SELECT l.entry FROM leases l WHERE l.crawl = $1 AND ($2::int8 = 0 OR l.id >= \
                 (SELECT b.id FROM leases b WHERE b.entry = $2)) ORDER BY l.id LIMIT $3"
            }
            WAITING => {
                "SELECT w.entry FROM waiting w WHERE w.crawl = $1 AND ($2::int8 = 0 OR (w.due_at, w.due_rank) >= \
                 (SELECT b.due_at, b.due_rank FROM waiting b WHERE b.entry = $2)) \
                 ORDER BY w.due_at, w.due_rank LIMIT $3"
            }
            ENDED => {
                "SELECT u.entry FROM urls u WHERE u.crawl = $1 AND u.entry >= $2 \
                 AND NOT EXISTS (SELECT 1 FROM pending p WHERE p.crawl = $1 AND p.entry = u.entry) \
                 AND NOT EXISTS (SELECT 1 FROM waiting w WHERE w.entry = u.entry) \
                 AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.entry = u.entry) ORDER BY u.entry LIMIT $3"
            }
            QUEUES => {
                let rows = session.rows(&QUEUES_AS_SERVED, &[crawl, &place, &one_more]).await?;
                let queues: Vec<Queue> =
                    rows.iter().map(|row| look_at(row, self.now)).collect::<Result<_, _>>()?;
                for queue in &queues {
                    self.queues.insert(queue.id, queue.clone());
                }
                self.load_groups(session).await?;
                let told = queues.iter().take(room as usize);
                records.extend(told.map(|queue| Record::Queue(Box::new(self.queue_record(queue)))));
                return Ok((queues.len() as i64 > room).then_some(place + room));
            }
            NOTES => {
                let mut notes = self.notes_from(session, b"", place, one_more).await?;
                let more = notes.len() as i64 > room;
                notes.truncate(room as usize);
                records.extend(notes.into_iter().map(|note| {
                    Record::Note(NoteWrite { key: note.key, value: Some(note.value), expires: note.expires })
                }));
                return Ok(more.then_some(place + room));
            }
            _ => {
                let counts = self.counts(session).await?;
                records.push(Record::Crawl(CrawlRecord {
                    started: self.crawl.started,
                    fetched: counts.fetched,
                    bytes: counts.bytes,
                    spent: counts.spent,
                    granted: counts.granted,
                    expired: counts.expired,
                    turn: u32::try_from(self.crawl.turn).unwrap_or(0),
                }));
                return Ok(None);
            }
        };
        let rows = session.rows(of_entries, &[crawl, &place, &one_more]).await?;
        let mut entries: Vec<i64> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
        let next = if entries.len() as i64 > room { entries.pop() } else { None };
        records.extend(self.url_records(session, &entries).await?);
        Ok(next)
    }

    async fn url_records(&self, session: &Session, entries: &[i64]) -> Result<Vec<Record>, Failure> {
        let rows = session.rows(&URLS_OF_ENTRIES, &[&self.crawl.id, &entries]).await?;
        let mut found = std::collections::BTreeMap::new();
        for row in &rows {
            let record = self.url_record(row)?;
            found.insert(row.try_get::<_, i64>("entry")?, record);
        }
        let sql = "SELECT u.entry, n.entries FROM urls u CROSS JOIN LATERAL \
                   (SELECT count(*) AS entries FROM seen s WHERE s.crawl = $1 AND s.identity = u.identity) AS n \
                   WHERE u.crawl = $1 AND u.entry = ANY($2) AND n.entries > 1";
        for row in session.rows(sql, &[&self.crawl.id, &entries]).await? {
            if let Some(record) = found.get_mut(&row.try_get::<_, i64>(0)?) {
                record.entries = small(row.try_get(1)?);
            }
        }
        let told = entries.iter().filter_map(|entry| found.remove(entry));
        Ok(told.map(|record| Record::Url(Box::new(record))).collect())
    }

    fn url_record(&self, row: &Columns) -> Result<UrlRecord, Failure> {
        let entry = read_entry(row)?;
        let standing = match &entry.state {
            State::Pending if entry.spot.band == RETURNED => UrlStanding::Returned(time(entry.spot.place)),
            State::Pending => {
                let dated = self.crawl.settings.order == Order::Date;
                UrlStanding::Pending(dated.then(|| time(entry.spot.place)))
            }
            State::Waiting(Wait::Retry, due) => UrlStanding::Retry(time(due.at)),
            State::Waiting(Wait::Schedule, due) => UrlStanding::Scheduled(time(due.at)),
            State::Waiting(Wait::Visit, due) => UrlStanding::Done(Some(time(due.at))),
            State::Leased(_) | State::Gone => UrlStanding::Leased,
            State::Done => UrlStanding::Done(None),
            State::Disregarded { reason } => UrlStanding::Disregarded(text(reason).to_string()),
            State::Dead { reason, at, .. } => {
                UrlStanding::Dead { reason: text(reason).to_string(), at: time(*at) }
            }
        };
        Ok(UrlRecord {
            request: request(row)?,
            identity: entry.identity,
            key: text(row.try_get("key")?),
            class: entry.class,
            cost: entry.cost,
            standing,
            page: entry.page,
            visits: entry.visits,
            retries: entry.retries,
            expiries: entry.expiries,
            entries: 1,
        })
    }

    fn queue_record(&self, queue: &Queue) -> QueueRecord {
        let ahead = |at: i64| (at > self.now).then(|| time(at));
        let group = self.groups.get(&queue.row.group_id);
        QueueRecord {
            key: Arc::clone(&queue.key),
            terms: outdone(&queue.suggested, &queue.steered),
            steered: queue.steered.clone(),
            retired: match queue.row.retired {
                BY_HAND => Some(RetiredBy::Operator),
                OVER_BUDGET => Some(RetiredBy::Budget),
                _ => None,
            },
            blocked: ahead(queue.row.blocked_at),
            next_fetch: ahead(queue.row.next_at),
            group_next_fetch: group.and_then(|group| ahead(group.next.at)),
            active: queue.row.active == 1,
            balance: queue.row.balance,
            spent: queue.spent(self.charges_from()).unsigned_abs(),
            grants: small(queue.row.grants),
            charged: queue.row.charged.unsigned_abs(),
            latest_cost: small(queue.row.latest_cost),
            errors: queue.row.errors.unsigned_abs(),
        }
    }

    /// Restores records; answers how many of them were not known.
    pub(super) async fn restore(
        &mut self,
        session: &mut Session,
        records: &[Record],
    ) -> Result<u64, Failure> {
        self.check_records(records)?;
        let mut keys: Vec<&Arc<str>> = Vec::new();
        let mut identities = BTreeSet::new();
        let mut groups = Vec::new();
        for record in records {
            match record {
                Record::Url(url) => {
                    keys.push(&url.key);
                    identities.insert(url.identity);
                }
                Record::Queue(queue) => {
                    keys.push(&queue.key);
                    groups.extend(
                        [queue.terms.group.clone(), queue.steered.group.clone()].into_iter().flatten(),
                    );
                }
                Record::Note(_) | Record::Crawl(_) => {}
            }
        }
        let identities: Vec<_> = identities.into_iter().collect();
        self.make_groups(session, groups).await?;
        let known = self.find_known(session, &identities).await?;
        self.find_queues(session, keys.iter().copied(), true).await?;
        let mut queues: BTreeSet<i64> = known.into_iter().map(|(_, queue)| queue).collect();
        queues.extend(keys.iter().filter_map(|key| self.by_key.get(*key)));
        self.lock_queues(session, queues, true).await?;
        self.load_urls(session, &identities).await?;
        let mut restored = 0;
        for record in records {
            restored += u64::from(match record {
                Record::Url(url) => self.restore_url(url),
                Record::Queue(queue) => self.restore_queue(queue),
                Record::Note(note) => {
                    self.notes.push(note.clone());
                    true
                }
                Record::Crawl(record) => {
                    let counts = self.counts(session).await?;
                    counts.granted == 0 && counts.fetched == 0 && self.restore_counts(record)
                }
            });
        }
        self.check_limits();
        Ok(restored)
    }

    fn check_records(&self, records: &[Record]) -> Result<(), StoreError> {
        let cannot = |why: String| {
            let message =
                format!("postgres store: cannot restore into the crawl `{}`: {why}", self.crawl.name);
            StoreError::new(ErrorKind::Invalid, message)
        };
        if self.crawl.is_finished() {
            return Err(cannot("it is finished and takes nothing more; choose another crawl".to_owned()));
        }
        for (number, record) in records.iter().enumerate() {
            let (key, url_bytes) = match record {
                Record::Url(url) => (&url.key, url.request.url.len()),
                Record::Queue(queue) => (&queue.key, 0),
                Record::Note(_) | Record::Crawl(_) => continue,
            };
            if !(1..=KEY_BYTES_MAX).contains(&key.len()) || url_bytes > URL_BYTES_MAX {
                return Err(cannot(format!(
                    "record {number} has a key of {} bytes and a URL of {url_bytes}; keys have 1 to {KEY_BYTES_MAX}, URLs up \
                     to {URL_BYTES_MAX}; nothing was done",
                    key.len()
                )));
            }
        }
        Ok(())
    }

    fn restore_url(&mut self, record: &UrlRecord) -> bool {
        let entries = self.by_identity.get(&record.identity).map_or(0, Vec::len);
        if entries as u64 >= u64::from(record.entries.max(1)) {
            return false;
        }
        let queue = self.by_key[&record.key];
        let entry = Entry {
            id: self.draw(),
            identity: record.identity,
            nth: self.next_nth(record.identity),
            queue,
            class: record.class,
            cost: record.cost,
            spot: Spot::default(),
            state: State::Gone,
            expiries: record.expiries,
            retries: record.retries,
            visits: record.visits,
            page: record.page.clone(),
            url: record.request.url.clone().into_bytes(),
            rest: Some(payload::encode(&record.request)),
            stored: None,
        };
        let id = entry.id;
        self.by_identity.entry(entry.identity).or_default().insert(0, id);
        self.entries.insert(id, entry);
        self.take_standing(id, &record.standing);
        self.supply(queue, None);
        true
    }

    fn take_standing(&mut self, id: i64, standing: &UrlStanding) {
        match standing {
            UrlStanding::Pending(at) => {
                self.place_as_admitted(id, at.map_or(self.now, column));
                // Last in, first out: those restored later were admitted earlier.
                if self.crawl.settings.order == Order::Lifo {
                    let spot = &mut self.entry_mut(id).spot;
                    spot.place = spot.rank;
                }
                self.enter(id, State::Pending);
            }
            UrlStanding::Retry(at) if column(*at) > self.now => {
                let due = self.moment(column(*at));
                self.entry_mut(id).spot.rank = due.rank;
                self.enter(id, State::Waiting(Wait::Retry, due));
            }
            UrlStanding::Returned(at) | UrlStanding::Retry(at) => {
                let rank = self.draw();
                self.entry_mut(id).spot.rank = rank;
                self.place_as_returned(id, column(*at));
                self.enter(id, State::Pending);
            }
            UrlStanding::Leased => self.take_standing(id, &UrlStanding::Returned(time(self.now))),
            UrlStanding::Scheduled(at) => self.schedule(id, column(*at), Wait::Schedule),
            UrlStanding::Done(Some(at)) => self.schedule(id, column(*at), Wait::Visit),
            UrlStanding::Done(None) => self.enter(id, State::Done),
            UrlStanding::Disregarded(reason) => {
                self.enter(id, State::Disregarded { reason: reason.clone().into_bytes() });
            }
            UrlStanding::Dead { reason, at } => {
                let rank = self.draw();
                let state = State::Dead { reason: reason.clone().into_bytes(), at: column(*at), rank };
                self.enter(id, state);
            }
        }
    }

    /// Nothing has happened to a queue but that it was given URLs: then it takes everything on, and goes behind all that were
    /// restored before it.
    fn restore_queue(&mut self, record: &QueueRecord) -> bool {
        let id = self.by_key[&record.key];
        if self.queue(id).is_used() {
            return false;
        }
        self.take_terms(id, &record.terms, false);
        self.take_terms(id, &record.steered, true);
        let (from, now, moment) = (self.charges_from(), self.now, self.this_moment());
        let queue = self.queue_mut(id);
        let pending = queue.pending() > 0;
        queue.row.active = i64::from(record.active && pending);
        queue.row.balance = record.balance;
        if record.spent > 0 {
            queue.spend(from, now, count(record.spent));
        }
        queue.row.grants = record.grants.into();
        queue.row.charged = count(record.charged);
        queue.row.latest_cost = record.latest_cost.into();
        queue.row.errors = count(record.errors);
        queue.free(moment);
        queue.set_age(moment);
        let ahead = |at: Option<trapline_core::Timestamp>| {
            at.map(column).filter(|at| *at > now).map(|at| Moment::set(at, moment.rank % (1 << 61), now))
        };
        if let Some(until) = ahead(record.next_fetch) {
            queue.set_next(until);
        }
        if let Some(until) = ahead(record.blocked) {
            queue.set_blocked(until);
        }
        let group = queue.row.group_id;
        if let Some(until) = ahead(record.group_next_fetch) {
            self.pace_group(group, until);
        }
        self.refresh(id);
        match record.retired {
            None => {}
            Some(RetiredBy::Operator) => self.retire(id, BY_HAND),
            Some(RetiredBy::Budget) => self.retire(id, OVER_BUDGET),
        }
        true
    }

    fn restore_counts(&mut self, record: &CrawlRecord) -> bool {
        let CrawlRecord { started, fetched, bytes, spent, granted, expired, turn } = *record;
        // Nothing ever counted that far, and there must be room to count on from it.
        let count = |number| count(number).min(i64::MAX / 2);
        self.crawl.started = started.min(time(self.now));
        self.crawl.turn = turn.into();
        self.crawl.touched = true;
        self.tally.fetched += count(fetched);
        self.tally.bytes = self.tally.bytes.saturating_add(bytes);
        self.tally.spent = self.tally.spent.saturating_add(count(spent));
        self.tally.granted += count(granted);
        self.tally.expired += count(expired);
        true
    }
}

/// Terms that came with candidates, but for those that operators have outdone.
fn outdone(suggested: &Terms, steered: &Terms) -> Terms {
    fn unless<T: Clone, U>(term: &Option<T>, steered: &Option<U>) -> Option<T> {
        term.clone().filter(|_| steered.is_none())
    }
    Terms {
        precedence: unless(&suggested.precedence, &steered.precedence),
        queue_budget: unless(&suggested.queue_budget, &steered.queue_budget),
        balance_replenish: unless(&suggested.balance_replenish, &steered.balance_replenish),
        delay: unless(&suggested.delay, &steered.delay),
        concurrency: unless(&suggested.concurrency, &steered.concurrency),
        group: unless(&suggested.group, &steered.group),
    }
}
