//! A step of work written back: only what changed, a constant number of statements whatever the batch, all sent at once.

use std::fmt::Write;
use std::sync::LazyLock;

use trapline_frontier::CrawlState;

use super::entry::{Entry, State, Wait};
use super::moment::column;
use super::queue::Row;
use super::session::{Failure, Key, Param, Session};
use super::work::{Tally, Work};
use crate::disk::message::values;

/// So many rows a crawl's counts are spread over.
pub(super) const SLOTS: i64 = 32;

/// So many of them are left for those who find theirs held: whoever hangs before the end of its transaction holds one.
pub(super) const SPARE_SLOTS: i64 = 8;

/// How much of a note's key it is listed by.
const BEGINNING: usize = 1024;

static UPDATE_QUEUES: LazyLock<String> = LazyLock::new(|| {
    let mut set = String::new();
    let mut names = "queue".to_owned();
    let mut arrays = "$1::int8[]".to_owned();
    for (at, name) in Row::COLUMNS.iter().enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        let _ = write!(set, "{comma}{name} = new.{name}");
        let _ = write!(names, ", {name}");
        let _ = write!(arrays, ", ${}::int8[]", at + 2);
    }
    format!("UPDATE turns t SET {set} FROM unnest({arrays}) AS new ({names}) WHERE t.queue = new.queue")
});

/// Columns of rows to be written, one array each.
#[derive(Default)]
struct Urls {
    identity: Vec<Key>,
    nth: Vec<i64>,
    entry: Vec<i64>,
    queue: Vec<i64>,
    class: Vec<i64>,
    cost: Vec<i64>,
    url: Vec<Vec<u8>>,
    rest: Vec<Vec<u8>>,
}

/// What pending, waiting and leased entries have in common, and what only some have.
#[derive(Default)]
struct Placed {
    entry: Vec<i64>,
    queue: Vec<i64>,
    class: Vec<i64>,
    band: Vec<i64>,
    place: Vec<i64>,
    tie: Vec<Vec<u8>>,
    rank: Vec<i64>,
    expiries: Vec<i64>,
    retries: Vec<i64>,
    /// The lease's number, or what is waited for.
    number: Vec<i64>,
    granted: Vec<i64>,
    at: Vec<i64>,
    at_rank: Vec<i64>,
}

impl Placed {
    fn push(&mut self, entry: &Entry) {
        self.entry.push(entry.id);
        self.queue.push(entry.queue);
        self.class.push(entry.class.into());
        self.band.push(entry.spot.band);
        self.place.push(entry.spot.place);
        self.tie.push(entry.spot.tie.clone());
        self.rank.push(entry.spot.rank);
        self.expiries.push(entry.expiries.into());
        self.retries.push(entry.retries.into());
    }
}

#[derive(Default)]
struct Ended {
    entry: Vec<i64>,
    queue: Vec<i64>,
    reason: Vec<Vec<u8>>,
    at: Vec<i64>,
    rank: Vec<i64>,
}

impl Ended {
    fn push(&mut self, entry: &Entry, reason: &[u8]) {
        self.entry.push(entry.id);
        self.queue.push(entry.queue);
        self.reason.push(reason.to_vec());
    }
}

#[derive(Default)]
struct Pages {
    entry: Vec<i64>,
    visits: Vec<i64>,
    page: Vec<Option<Vec<u8>>>,
}

/// Everything that is to be written.
#[derive(Default)]
struct Changes {
    not_pending: Vec<i64>,
    not_waiting: Vec<i64>,
    not_leased: Vec<i64>,
    not_dead: Vec<i64>,
    not_disregarded: Vec<i64>,
    not_paged: Vec<i64>,
    gone: Vec<i64>,
    gone_identities: Vec<Key>,
    urls: Urls,
    classes: (Vec<i64>, Vec<i64>),
    pending: Placed,
    waiting: Placed,
    leased: Placed,
    dead: Ended,
    disregarded: Ended,
    pages: Pages,
}

impl Changes {
    fn of(work: &Work) -> Self {
        let mut changes = Self::default();
        for entry in work.entries.values() {
            changes.add(entry);
        }
        changes
    }

    fn add(&mut self, entry: &Entry) {
        let gone = entry.state == State::Gone;
        let Some(stored) = &entry.stored else {
            if !gone {
                let urls = &mut self.urls;
                urls.identity.push(Key(entry.identity));
                urls.nth.push(entry.nth);
                urls.entry.push(entry.id);
                urls.queue.push(entry.queue);
                urls.class.push(entry.class.into());
                urls.cost.push(entry.cost.into());
                urls.url.push(entry.url.clone());
                urls.rest.push(entry.rest.clone().unwrap_or_default());
                self.enter(entry);
                self.keep_page(entry);
            }
            return;
        };
        let moved = stored.state != entry.state
            || stored.spot != entry.spot
            || stored.class != entry.class
            || stored.troubles != (entry.expiries, entry.retries);
        if moved {
            match &stored.state {
                State::Pending => self.not_pending.push(entry.id),
                State::Waiting(..) => self.not_waiting.push(entry.id),
                State::Leased(grant) => self.not_leased.push(grant.lease),
                State::Dead { .. } => self.not_dead.push(entry.id),
                State::Disregarded { .. } => self.not_disregarded.push(entry.id),
                State::Done | State::Gone => {}
            }
            self.enter(entry);
        }
        if gone {
            self.gone.push(entry.id);
            self.not_paged.push(entry.id);
            self.gone_identities.push(Key(entry.identity));
            return;
        }
        if stored.class != entry.class {
            self.classes.0.push(entry.id);
            self.classes.1.push(entry.class.into());
        }
        let changed = stored.visits != entry.visits || stored.page != entry.page;
        if !entry.needs_page() {
            if stored.has_page {
                self.not_paged.push(entry.id);
            }
        } else if changed || !stored.has_page {
            self.keep_page(entry);
        }
    }

    fn keep_page(&mut self, entry: &Entry) {
        if entry.needs_page() {
            self.pages.entry.push(entry.id);
            self.pages.visits.push(entry.visits.into());
            self.pages.page.push(entry.page.as_deref().map(values::page));
        }
    }

    fn enter(&mut self, entry: &Entry) {
        match &entry.state {
            State::Pending => self.pending.push(entry),
            State::Waiting(wait, due) => {
                self.waiting.push(entry);
                self.waiting.number.push(match wait {
                    Wait::Retry => 0,
                    Wait::Schedule => 1,
                    Wait::Visit => 2,
                });
                self.waiting.at.push(due.at);
                self.waiting.at_rank.push(due.rank);
            }
            State::Leased(grant) => {
                self.leased.push(entry);
                self.leased.number.push(grant.lease);
                self.leased.granted.push(grant.granted);
                self.leased.at.push(grant.deadline.at);
                self.leased.at_rank.push(grant.deadline.rank);
            }
            State::Dead { reason, at, rank } => {
                self.dead.push(entry, reason);
                self.dead.at.push(*at);
                self.dead.rank.push(*rank);
            }
            State::Disregarded { reason } => self.disregarded.push(entry, reason),
            State::Done | State::Gone => {}
        }
    }
}

impl Work {
    /// Writes the step back. Answers whether there was anything to write.
    pub(super) async fn save(&self, session: &Session, slot: i64) -> Result<bool, Failure> {
        let crawl = &self.crawl.id;
        let Changes {
            not_pending,
            not_waiting,
            not_leased,
            not_dead,
            not_disregarded,
            not_paged,
            gone,
            gone_identities,
            urls,
            classes,
            pending,
            waiting,
            leased,
            dead,
            disregarded,
            pages,
        } = Changes::of(self);
        let mut all: Vec<(&str, Vec<Param<'_>>)> = Vec::new();
        let mut put = |when: bool, sql, params| {
            if when {
                all.push((sql, params));
            }
        };
        let of_entries = |sql, entries: &'_ Vec<i64>| (!entries.is_empty(), sql);
        // With `+ 0`: not by an index that begins with the crawl, as that of deadlines does. It can be full of what is gone.
        for (sql, entries) in [
            ("DELETE FROM pending WHERE crawl = $1 AND entry = ANY($2)", &not_pending),
            ("DELETE FROM waiting WHERE crawl + 0 = $1 AND entry = ANY($2)", &not_waiting),
            ("DELETE FROM leases WHERE crawl + 0 = $1 AND id = ANY($2)", &not_leased),
            ("DELETE FROM dead WHERE crawl = $1 AND entry = ANY($2)", &not_dead),
            ("DELETE FROM disregarded WHERE crawl = $1 AND entry = ANY($2)", &not_disregarded),
            ("DELETE FROM pages WHERE crawl = $1 AND entry = ANY($2)", &not_paged),
        ] {
            let (when, sql) = of_entries(sql, entries);
            put(when, sql, vec![crawl, entries]);
        }
        put(
            !gone.is_empty(),
            "DELETE FROM seen WHERE crawl = $1 AND identity = ANY($2) AND entry = ANY($3)",
            vec![crawl, &gone_identities, &gone],
        );
        put(!gone.is_empty(), "DELETE FROM urls WHERE crawl = $1 AND entry = ANY($2)", vec![crawl, &gone]);
        put(
            !urls.entry.is_empty(),
            "INSERT INTO seen (crawl, identity, nth, entry, queue) \
             SELECT $1::int8, new.* FROM unnest($2::uuid[], $3::int8[], $4::int8[], $5::int8[]) AS new ORDER BY 2",
            vec![crawl, &urls.identity, &urls.nth, &urls.entry, &urls.queue],
        );
        put(
            !urls.entry.is_empty(),
            "INSERT INTO urls (crawl, identity, nth, entry, queue, class, cost, url, rest) \
             SELECT $1::int8, new.* FROM unnest($2::uuid[], $3::int8[], $4::int8[], $5::int8[], $6::int8[], $7::int8[], \
             $8::bytea[], $9::bytea[]) AS new",
            vec![
                crawl,
                &urls.identity,
                &urls.nth,
                &urls.entry,
                &urls.queue,
                &urls.class,
                &urls.cost,
                &urls.url,
                &urls.rest,
            ],
        );
        put(
            !classes.0.is_empty(),
            "UPDATE urls u SET class = new.class FROM unnest($2::int8[], $3::int8[]) AS new (entry, class) \
             WHERE u.crawl = $1 AND u.entry = new.entry",
            vec![crawl, &classes.0, &classes.1],
        );
        put(
            !pending.entry.is_empty(),
            "INSERT INTO pending (crawl, entry, queue, class, band, place, tie, rank, expiries, retries) \
             SELECT $1::int8, new.* FROM unnest($2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int8[], $7::bytea[], \
             $8::int8[], $9::int8[], $10::int8[]) AS new",
            vec![
                crawl,
                &pending.entry,
                &pending.queue,
                &pending.class,
                &pending.band,
                &pending.place,
                &pending.tie,
                &pending.rank,
                &pending.expiries,
                &pending.retries,
            ],
        );
        put(
            !waiting.entry.is_empty(),
            "INSERT INTO waiting (crawl, entry, queue, kind, due_at, due_rank, rank, expiries, retries) \
             SELECT $1::int8, new.* FROM unnest($2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int8[], $7::int8[], \
             $8::int8[], $9::int8[]) AS new",
            vec![
                crawl,
                &waiting.entry,
                &waiting.queue,
                &waiting.number,
                &waiting.at,
                &waiting.at_rank,
                &waiting.rank,
                &waiting.expiries,
                &waiting.retries,
            ],
        );
        put(
            !leased.entry.is_empty(),
            "INSERT INTO leases (crawl, id, entry, queue, granted, deadline, deadline_rank, band, place, tie, rank, expiries, \
             retries) SELECT $1::int8, new.* FROM unnest($2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int8[], \
             $7::int8[], $8::int8[], $9::int8[], $10::bytea[], $11::int8[], $12::int8[], $13::int8[]) AS new",
            vec![
                crawl,
                &leased.number,
                &leased.entry,
                &leased.queue,
                &leased.granted,
                &leased.at,
                &leased.at_rank,
                &leased.band,
                &leased.place,
                &leased.tie,
                &leased.rank,
                &leased.expiries,
                &leased.retries,
            ],
        );
        put(
            !dead.entry.is_empty(),
            "INSERT INTO dead (crawl, entry, queue, reason, at, rank) SELECT $1::int8, new.* \
             FROM unnest($2::int8[], $3::int8[], $4::bytea[], $5::int8[], $6::int8[]) AS new",
            vec![crawl, &dead.entry, &dead.queue, &dead.reason, &dead.at, &dead.rank],
        );
        put(
            !disregarded.entry.is_empty(),
            "INSERT INTO disregarded (crawl, entry, queue, reason) \
             SELECT $1::int8, new.* FROM unnest($2::int8[], $3::int8[], $4::bytea[]) AS new",
            vec![crawl, &disregarded.entry, &disregarded.queue, &disregarded.reason],
        );
        put(
            !pages.entry.is_empty(),
            "INSERT INTO pages (crawl, entry, visits, page) SELECT $1::int8, new.* FROM unnest($2::int8[], $3::int8[], $4::bytea[]) \
             AS new ON CONFLICT (crawl, entry) DO UPDATE SET visits = excluded.visits, page = excluded.page",
            vec![crawl, &pages.entry, &pages.visits, &pages.page],
        );

        let touched: Vec<_> = self.queues.values().filter(|queue| queue.touched).collect();
        let mut columns: Vec<Vec<i64>> = vec![Vec::with_capacity(touched.len()); Row::COLUMNS.len() + 1];
        for queue in &touched {
            columns[0].push(queue.id);
            for (column, value) in columns[1..].iter_mut().zip(queue.row.values()) {
                column.push(value);
            }
        }
        put(!touched.is_empty(), &UPDATE_QUEUES, columns.iter().map(|column| column as Param<'_>).collect());

        let terms: Vec<_> = self.queues.values().filter(|queue| queue.terms_touched).collect();
        let ids: Vec<i64> = terms.iter().map(|queue| queue.id).collect();
        let suggested: Vec<_> = terms.iter().map(|queue| values::terms(&queue.suggested)).collect();
        let steered: Vec<_> = terms.iter().map(|queue| values::terms(&queue.steered)).collect();
        put(
            !ids.is_empty(),
            "UPDATE queues q SET suggested = new.suggested, steered = new.steered \
             FROM unnest($1::int8[], $2::bytea[], $3::bytea[]) AS new (id, suggested, steered) WHERE q.id = new.id",
            vec![&ids, &suggested, &steered],
        );

        let groups: Vec<_> = self.groups.iter().filter(|(_, group)| group.touched).collect();
        let group_ids: Vec<i64> = groups.iter().map(|(id, _)| **id).collect();
        let next_at: Vec<i64> = groups.iter().map(|(_, group)| group.next.at).collect();
        let next_rank: Vec<i64> = groups.iter().map(|(_, group)| group.next.rank).collect();
        let parked: Vec<i64> = groups.iter().map(|(_, group)| group.parked.into()).collect();
        put(
            !groups.is_empty(),
            "UPDATE groups g SET next_at = greatest(g.next_at, new.next_at), parked = greatest(g.parked, new.parked), \
             next_rank = CASE WHEN new.next_at >= g.next_at THEN new.next_rank ELSE g.next_rank END \
             FROM (SELECT * FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[]) AS new (id, next_at, next_rank, parked) \
             ORDER BY 1) AS new WHERE g.id = new.id",
            vec![&group_ids, &next_at, &next_rank, &parked],
        );

        // The last write of a key holds.
        let mut notes: Vec<_> = self.notes.iter().rev().collect();
        let mut written = std::collections::BTreeSet::new();
        notes.retain(|note| written.insert(&note.key));
        let note_keys: Vec<&[u8]> = notes.iter().map(|note| note.key.as_bytes()).collect();
        put(
            !notes.is_empty(),
            "DELETE FROM notes WHERE crawl = $1 AND sha256(key) = ANY(SELECT sha256(key) FROM unnest($2::bytea[]) AS old (key))",
            vec![crawl, &note_keys],
        );
        notes.retain(|note| note.value.is_some());
        let note_keys: Vec<&[u8]> = notes.iter().map(|note| note.key.as_bytes()).collect();
        let beginnings: Vec<&[u8]> = note_keys.iter().map(|key| &key[..key.len().min(BEGINNING)]).collect();
        let note_values: Vec<&[u8]> = notes.iter().filter_map(|note| note.value.as_deref()).collect();
        let expires: Vec<Option<i64>> = notes.iter().map(|note| note.expires.map(column)).collect();
        put(
            !notes.is_empty(),
            "INSERT INTO notes (crawl, key, beginning, value, expires) SELECT $1::int8, new.* \
             FROM unnest($2::bytea[], $3::bytea[], $4::bytea[], $5::int8[]) AS new ON CONFLICT (crawl, sha256(key)) \
             DO UPDATE SET value = excluded.value, expires = excluded.expires",
            vec![crawl, &note_keys, &beginnings, &note_values, &expires],
        );

        let settings = values::settings(&self.crawl.settings);
        let (state, reason) = match &self.crawl.state {
            CrawlState::Running => (0_i64, ""),
            CrawlState::Paused => (1, ""),
            CrawlState::Finished(reason) => (2, &**reason),
        };
        let reason = reason.as_bytes();
        let started = column(self.crawl.started);
        put(
            self.crawl.touched,
            "UPDATE crawls SET settings = $2, state = $3, reason = $4, period_set_at = $5, period_set_rank = $6, \
             charged_before = $7, turn = $8, last_job = $9, started = $10 WHERE id = $1",
            vec![
                crawl,
                &settings,
                &state,
                &reason,
                &self.crawl.period_set.at,
                &self.crawl.period_set.rank,
                &self.crawl.charged_before,
                &self.crawl.turn,
                &self.crawl.last_job,
                &started,
            ],
        );
        let Tally {
            urls: [_, pending, leased, done, disregarded, dead],
            visits,
            fetched,
            bytes,
            spent,
            granted,
            expired,
        } = self.tally;
        let counts = [pending, leased, done, disregarded, dead, visits, fetched, spent, granted, expired];
        let bytes = bytes.to_string();
        let mut params: Vec<Param<'_>> = vec![crawl, &slot, &self.now, &bytes];
        params.extend(counts.iter().map(|count| count as Param<'_>));
        let counted = !all.is_empty() || self.tally != Tally::default();
        if counted {
            all.push((
                "UPDATE tallies SET latest = greatest(latest, $3), bytes = bytes + $4::text::numeric, pending = pending + $5, \
                 leased = leased + $6, done = done + $7, disregarded = disregarded + $8, dead = dead + $9, \
                 visits = visits + $10, fetched = fetched + $11, spent = spent + $12::int8, granted = granted + $13, \
                 expired = expired + $14 WHERE crawl = $1 AND slot = coalesce((SELECT slot FROM tallies \
                 WHERE crawl = $1 AND slot >= $2 ORDER BY slot LIMIT 1 FOR UPDATE SKIP LOCKED), $2)",
                params,
            ));
            session.execute_all(&all).await?;
        }
        Ok(counted)
    }
}
