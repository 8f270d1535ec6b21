//! Rows brought into a step of work. Queues first, and locked: after that nobody else changes their entries.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::{Arc, LazyLock};

use tokio_postgres::Row as Columns;
use trapline_core::{Identity, partition_of};

use super::entry::{Entry, Grant, Spot, State, Wait};
use super::moment::Moment;
use super::queue::{BY_HAND, Queue, Row};
use super::session::{Failure, Key, Session};
use super::work::{Group, Work};
use crate::disk::message::values;

/// A queue's columns, as [`read_queue`] reads them.
pub(super) static QUEUE: LazyLock<String> = LazyLock::new(|| {
    let mut list = "t.queue, q.key, t.partition, q.suggested, q.steered".to_owned();
    for name in Row::COLUMNS {
        let _ = write!(list, ", t.{name}");
    }
    list
});
const FIRST_OF_ROW: usize = 5;

/// The transaction's number is asked for, and not only if it has one: a row is told before it is locked, which gives it one.
static LOCK_QUEUES: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {}, pg_current_xact_id()::text AS xid FROM turns t CROSS JOIN LATERAL \
         (SELECT * FROM queues q WHERE q.id = t.queue LIMIT 1) AS q WHERE t.queue = ANY($1) ORDER BY t.queue FOR UPDATE OF t",
        *QUEUE
    )
});

static LOCK_QUEUES_IF_FREE: LazyLock<String> = LazyLock::new(|| format!("{} SKIP LOCKED", *LOCK_QUEUES));

/// An entry's columns and where they come from, as [`read_entry`] reads them. The limits keep the planner from turning the
/// look-ups round: they are by key, whatever it guesses.
pub(super) const ENTRY: &str = "u.identity, u.nth, u.entry, u.queue, u.class, u.cost, u.url, \
     p.band, p.place, p.tie, p.rank, p.expiries, p.retries, \
     w.kind, w.due_at, w.due_rank, w.rank AS waiting_rank, w.expiries AS waiting_expiries, w.retries AS waiting_retries, \
     l.id, l.granted, l.deadline, l.deadline_rank, l.band AS old_band, l.place AS old_place, l.tie AS old_tie, \
     l.rank AS old_rank, l.expiries AS old_expiries, l.retries AS old_retries, \
     d.reason AS death, d.at AS died, d.rank AS death_rank, r.reason AS disregard, g.visits, g.page \
     FROM urls u \
     LEFT JOIN LATERAL (SELECT * FROM pending p WHERE p.crawl = u.crawl AND p.entry = u.entry LIMIT 1) AS p ON true \
     LEFT JOIN LATERAL (SELECT * FROM waiting w WHERE w.entry = u.entry LIMIT 1) AS w ON true \
     LEFT JOIN LATERAL (SELECT * FROM leases l WHERE l.entry = u.entry LIMIT 1) AS l ON true \
     LEFT JOIN LATERAL (SELECT * FROM dead d WHERE d.crawl = u.crawl AND d.entry = u.entry LIMIT 1) AS d ON true \
     LEFT JOIN LATERAL (SELECT * FROM disregarded r WHERE r.crawl = u.crawl AND r.entry = u.entry LIMIT 1) AS r ON true \
     LEFT JOIN LATERAL (SELECT * FROM pages g WHERE g.crawl = u.crawl AND g.entry = u.entry LIMIT 1) AS g ON true";

/// The same, found in the seen table.
fn entry_by_seen() -> String {
    ENTRY.replace(
        "FROM urls u ",
        "FROM seen s CROSS JOIN LATERAL (SELECT * FROM urls u WHERE u.crawl = s.crawl AND u.entry = s.entry LIMIT 1) AS u ",
    )
}

static ENTRIES_BY_NUMBER: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {ENTRY} WHERE u.crawl = $1 AND u.entry = ANY($2)"));

static ENTRIES_BY_IDENTITY: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {} WHERE s.crawl = $1 AND s.identity = ANY($2)", entry_by_seen()));

impl Work {
    /// The numbers of queues by their keys; those that are not there are made if `make` says so.
    pub(super) async fn find_queues(
        &mut self,
        session: &Session,
        keys: impl IntoIterator<Item = &Arc<str>>,
        make: bool,
    ) -> Result<(), Failure> {
        let mut seen = BTreeSet::new();
        let keys = keys.into_iter().filter(|key| !self.by_key.contains_key(*key) && seen.insert(*key));
        let mut keys: Vec<&Arc<str>> = keys.collect();
        if keys.is_empty() {
            return Ok(());
        }
        // In one order for everybody, so that two steps that make the same queues never wait for each other.
        if !self.alone {
            keys.sort_unstable();
        }
        self.read_queue_numbers(session, &keys).await?;
        keys.retain(|key| !self.by_key.contains_key(*key));
        if keys.is_empty() || !make {
            return Ok(());
        }
        let bytes: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes()).collect();
        let partitions: Vec<i64> =
            keys.iter().map(|key| partition_of(key, self.crawl.partitions).into()).collect();
        let made = "WITH made AS (INSERT INTO queues (crawl, key, partition) \
                    SELECT $1::int8, key, partition FROM unnest($2::bytea[], $3::int8[]) AS new (key, partition) \
                    ON CONFLICT (crawl, key) DO NOTHING RETURNING id, partition) \
                    INSERT INTO turns (queue, crawl, partition) SELECT id, $1::int8, partition FROM made";
        session.execute(made, &[&self.crawl.id, &bytes, &partitions]).await?;
        self.read_queue_numbers(session, &keys).await
    }

    async fn read_queue_numbers(&mut self, session: &Session, keys: &[&Arc<str>]) -> Result<(), Failure> {
        let bytes: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes()).collect();
        let find = "SELECT q.id, q.key FROM unnest($2::bytea[]) AS wanted (key) CROSS JOIN LATERAL \
                    (SELECT q.id, q.key FROM queues q WHERE q.crawl = $1 AND q.key = wanted.key LIMIT 1) AS q";
        for row in session.rows(find, &[&self.crawl.id, &bytes]).await? {
            let key: &[u8] = row.try_get(1)?;
            self.by_key.insert(text(key), row.try_get(0)?);
        }
        Ok(())
    }

    /// Brings queues here and locks them, all at once: in the order of their numbers, so that two steps never wait for each
    /// other. With `wait` false, those that others hold are left out.
    pub(super) async fn lock_queues(
        &mut self,
        session: &mut Session,
        ids: impl IntoIterator<Item = i64>,
        wait: bool,
    ) -> Result<(), Failure> {
        let mut ids: Vec<i64> = ids.into_iter().filter(|id| !self.queues.contains_key(id)).collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() {
            return Ok(());
        }
        let sql = if wait { &*LOCK_QUEUES } else { &*LOCK_QUEUES_IF_FREE };
        let rows = session.rows(sql, &[&ids]).await?;
        self.take_queues(session, &rows)?;
        self.catch_up(session).await?;
        self.set_unreadable_aside();
        self.load_groups(session).await
    }

    /// Time does not go back for a queue: whoever held it before may have come later, and ended leases that are not over by
    /// the time this step began with. To be called once queues are locked.
    pub(super) async fn catch_up(&mut self, session: &Session) -> Result<(), Failure> {
        let sql = "SELECT coalesce(max(latest), 0) FROM tallies WHERE crawl = $1";
        let rows = session.rows(sql, &[&self.crawl.id]).await?;
        let latest = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
        if latest > self.now {
            self.now = latest;
            for queue in self.queues.values_mut() {
                queue.wake(latest);
            }
        }
        Ok(())
    }

    /// Retires queues whose terms cannot be read, so that they are in nobody's way. They must be locked.
    pub(super) fn set_unreadable_aside(&mut self) {
        let unreadable = |queue: &&Queue| queue.unreadable && !queue.is_retired();
        let found: Vec<i64> = self.queues.values().filter(unreadable).map(|queue| queue.id).collect();
        for id in found {
            self.retire(id, BY_HAND);
        }
    }

    /// Takes rows of queues over.
    pub(super) fn take_queues(&mut self, session: &mut Session, rows: &[Columns]) -> Result<(), Failure> {
        for row in rows {
            if session.transaction.is_none() {
                session.transaction = row.try_get("xid")?;
            }
            let mut queue = read_queue(row)?;
            queue.wake(self.now);
            queue.stood = queue.stands(self.now);
            self.by_key.insert(Arc::clone(&queue.key), queue.id);
            self.queues.insert(queue.id, queue);
        }
        Ok(())
    }

    /// The groups of all queues that are here.
    pub(super) async fn load_groups(&mut self, session: &Session) -> Result<(), Failure> {
        let ids = self.queues.values().map(|queue| queue.row.group_id);
        let ids: BTreeSet<i64> = ids.filter(|id| *id != 0 && !self.groups.contains_key(id)).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let ids: Vec<i64> = ids.into_iter().collect();
        let sql = "SELECT id, name, next_at, next_rank, parked FROM groups WHERE id = ANY($1)";
        let rows = session.rows(sql, &[&ids]).await?;
        self.take_groups(&rows)
    }

    /// The groups of these names, made if there are none.
    pub(super) async fn make_groups(
        &mut self,
        session: &Session,
        names: impl IntoIterator<Item = Arc<str>>,
    ) -> Result<(), Failure> {
        let names: BTreeSet<Arc<str>> = names
            .into_iter()
            .filter(|name| !name.is_empty() && !self.groups_by_name.contains_key(name))
            .collect();
        if names.is_empty() {
            return Ok(());
        }
        let mut names: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
        names.sort_unstable();
        let make = "INSERT INTO groups (crawl, name) SELECT $1::int8, name FROM unnest($2::bytea[]) AS new (name) \
                    ON CONFLICT (crawl, sha256(name)) DO NOTHING";
        session.execute(make, &[&self.crawl.id, &names]).await?;
        let find = "SELECT g.id, g.name, g.next_at, g.next_rank, g.parked FROM unnest($2::bytea[]) AS wanted (name) \
                    JOIN groups g ON g.crawl = $1 AND sha256(g.name) = sha256(wanted.name)";
        let rows = session.rows(find, &[&self.crawl.id, &names]).await?;
        self.take_groups(&rows)
    }

    fn take_groups(&mut self, rows: &[Columns]) -> Result<(), Failure> {
        for row in rows {
            let id: i64 = row.try_get(0)?;
            let name = text(row.try_get(1)?);
            let next = Moment { at: row.try_get(2)?, rank: row.try_get(3)? };
            let parked = row.try_get::<_, i64>(4)? == 1;
            self.groups_by_name.insert(name, id);
            self.groups.entry(id).or_insert(Group { next, parked, touched: false });
        }
        Ok(())
    }

    /// Which of these URLs are known, as far as can be seen without locking anything; and in which queues they are.
    pub(super) async fn find_known(
        &self,
        session: &Session,
        identities: &[Identity],
    ) -> Result<Vec<(Identity, i64)>, Failure> {
        if identities.is_empty() {
            return Ok(Vec::new());
        }
        let keys: Vec<Key> = identities.iter().copied().map(Key).collect();
        let sql = "SELECT s.identity, s.queue FROM unnest($2::uuid[]) AS wanted (identity) CROSS JOIN LATERAL \
                   (SELECT s.identity, s.queue FROM seen s WHERE s.crawl = $1 AND s.identity = wanted.identity OFFSET 0) AS s";
        let rows = session.rows(sql, &[&self.crawl.id, &keys]).await?;
        rows.iter().map(|row| Ok((row.try_get::<_, Key>(0)?.0, row.try_get(1)?))).collect()
    }

    /// Brings all entries of these URLs here. Their queues must be locked; if one is not, the step has to begin again.
    pub(super) async fn load_urls(
        &mut self,
        session: &Session,
        identities: &[Identity],
    ) -> Result<(), Failure> {
        if identities.is_empty() {
            return Ok(());
        }
        let keys: Vec<Key> = identities.iter().copied().map(Key).collect();
        let rows = session.rows(&ENTRIES_BY_IDENTITY, &[&self.crawl.id, &keys]).await?;
        self.take_entries(&rows)?;
        for identity in identities {
            self.by_identity.entry(*identity).or_default();
        }
        Ok(())
    }

    /// Brings entries here by their numbers.
    pub(super) async fn load_entries(&mut self, session: &Session, entries: &[i64]) -> Result<(), Failure> {
        if entries.is_empty() {
            return Ok(());
        }
        let rows = session.rows(&ENTRIES_BY_NUMBER, &[&self.crawl.id, &entries]).await?;
        self.take_entries(&rows)
    }

    fn take_entries(&mut self, rows: &[Columns]) -> Result<(), Failure> {
        for row in rows {
            let entry = read_entry(row)?;
            if !self.queues.contains_key(&entry.queue) {
                return Err(Failure::Again);
            }
            self.take_entry(entry);
        }
        Ok(())
    }

    /// Takes an entry over, unless it is here.
    pub(super) fn take_entry(&mut self, entry: Entry) {
        if self.entries.contains_key(&entry.id) {
            return;
        }
        let entries = self.by_identity.entry(entry.identity).or_default();
        if !entries.contains(&entry.id) {
            entries.push(entry.id);
            let nth = |id: &i64| if *id == entry.id { entry.nth } else { self.entries[id].nth };
            entries.sort_unstable_by_key(|id| std::cmp::Reverse(nth(id)));
        }
        if let State::Leased(grant) = entry.state {
            self.leases.insert(grant.lease, entry.id);
        }
        self.entries.insert(entry.id, entry);
    }
}

/// Bytes that were text when they were written.
pub(super) fn text(bytes: &[u8]) -> Arc<str> {
    Arc::from(String::from_utf8_lossy(bytes))
}

/// A queue of the columns [`QUEUE`].
pub(super) fn read_queue(row: &Columns) -> Result<Queue, Failure> {
    let key = text(row.try_get(1)?);
    let suggested = values::read_terms(row.try_get(3)?);
    let steered = values::read_terms(row.try_get(4)?);
    let unreadable = suggested.is_err() || steered.is_err();
    let row_of = Row::read(|column| row.get(FIRST_OF_ROW + column));
    Ok(Queue {
        id: row.try_get(0)?,
        partition: row.try_get(2)?,
        key,
        suggested: suggested.unwrap_or_default(),
        steered: steered.unwrap_or_default(),
        row: row_of,
        stood: false,
        touched: false,
        terms_touched: false,
        unreadable,
    })
}

/// An entry of the columns [`ENTRY`].
pub(super) fn read_entry(row: &Columns) -> Result<Entry, Failure> {
    let number = |name: &str| row.try_get::<_, Option<i64>>(name).map(Option::unwrap_or_default);
    let small = |name: &str| number(name).map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    let bytes = |name: &str| row.try_get::<_, Option<Vec<u8>>>(name).map(Option::unwrap_or_default);
    let is_there = |name: &str| row.try_get::<_, Option<i64>>(name).map(|number| number.is_some());
    let (mut spot, mut expiries, mut retries) = (Spot::default(), 0, 0);
    let state = if is_there("band")? {
        spot = Spot {
            band: number("band")?,
            place: number("place")?,
            tie: bytes("tie")?,
            rank: number("rank")?,
        };
        (expiries, retries) = (small("expiries")?, small("retries")?);
        State::Pending
    } else if is_there("kind")? {
        spot.rank = number("waiting_rank")?;
        (expiries, retries) = (small("waiting_expiries")?, small("waiting_retries")?);
        State::Waiting(
            Wait::read(number("kind")?),
            Moment { at: number("due_at")?, rank: number("due_rank")? },
        )
    } else if is_there("id")? {
        spot = Spot {
            band: number("old_band")?,
            place: number("old_place")?,
            tie: bytes("old_tie")?,
            rank: number("old_rank")?,
        };
        (expiries, retries) = (small("old_expiries")?, small("old_retries")?);
        State::Leased(Grant {
            lease: number("id")?,
            granted: number("granted")?,
            deadline: Moment { at: number("deadline")?, rank: number("deadline_rank")? },
        })
    } else if let Some(reason) = row.try_get::<_, Option<Vec<u8>>>("death")? {
        State::Dead { reason, at: number("died")?, rank: number("death_rank")? }
    } else if let Some(reason) = row.try_get::<_, Option<Vec<u8>>>("disregard")? {
        State::Disregarded { reason }
    } else {
        State::Done
    };
    let has_page = is_there("visits")?;
    let page: Option<&[u8]> = row.try_get("page")?;
    // A page record that cannot be read is as good as none: the next visit writes it anew.
    let page = page.and_then(|page| values::read_page(page).ok());
    let visits = if has_page { small("visits")? } else { u32::from(state == State::Done) };
    let mut entry = Entry {
        id: number("entry")?,
        identity: row.try_get::<_, Key>("identity")?.0,
        nth: number("nth")?,
        queue: number("queue")?,
        class: u8::try_from(number("class")?).unwrap_or(u8::MAX),
        cost: small("cost")?,
        spot,
        state,
        expiries,
        retries,
        visits,
        page,
        url: bytes("url")?,
        rest: None,
        stored: None,
    };
    entry.remember(has_page);
    Ok(entry)
}
