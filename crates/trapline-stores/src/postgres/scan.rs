//! `scan` and `stats`: what can be asked of a crawl.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use tokio_postgres::Row as Columns;
use trapline_core::{Identity, Request, Timestamp};
use trapline_frontier::{
    CrawlReport, CrawlState, DeadLetter, LeaseId, LeaseReport, Note, Page, Query, QueueReport, QueueState,
    Rows, Scan, Stats, UrlReport, UrlState, payload,
};

use super::entry::{Entry, State};
use super::load::{ENTRY, QUEUE, read_entry, read_queue, text};
use super::moment::{count, time};
use super::queue::{BY_HAND, Queue};
use super::session::{Failure, Key, Session};
use super::step::{Verb, large};
use super::work::Work;

/// How many places a scan looks at for one page, so that a filter nothing matches does not hold up the rest.
const LOOKED_AT: i64 = 20_000;

/// A question.
pub(super) struct Ask(pub(super) Scan);

#[async_trait]
impl Verb for Ask {
    type Answer = Page;

    fn draws(&self) -> usize {
        16
    }

    async fn run(&self, work: &mut Work, session: &mut Session) -> Result<Page, Failure> {
        work.scan(session, &self.0).await
    }
}

/// A count.
pub(super) struct Count;

#[async_trait]
impl Verb for Count {
    type Answer = Stats;

    fn draws(&self) -> usize {
        16
    }

    async fn run(&self, work: &mut Work, session: &mut Session) -> Result<Stats, Failure> {
        work.stats(session).await
    }
}

static QUEUES_FROM: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {}, NULL::text AS xid FROM queues q JOIN turns t ON t.queue = q.id WHERE q.crawl = $1 AND q.id >= $2 \
         ORDER BY q.id LIMIT $3",
        *QUEUE
    )
});

static QUEUES_NAMED: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {}, NULL::text AS xid FROM queues q JOIN turns t ON t.queue = q.id WHERE q.id = ANY($1)",
        *QUEUE
    )
});

/// Entries with the rest of their requests and the keys of their queues.
macro_rules! entries {
    ($condition:literal) => {
        LazyLock::new(|| {
            let (columns, from) = ENTRY.split_once(" FROM urls u").unwrap_or((ENTRY, ""));
            format!(
                concat!(
                    "SELECT {columns}, u.rest, q.key FROM urls u CROSS JOIN LATERAL (SELECT * FROM queues q WHERE q.id = u.queue LIMIT 1) \
                     AS q {from} WHERE ",
                    $condition
                ),
                columns = columns,
                from = from
            )
        })
    };
}

static URLS_LISTED: LazyLock<String> = entries!(
    "u.crawl = $1 AND u.entry = ANY(ARRAY(SELECT s.entry FROM seen s WHERE s.crawl = $1 AND s.identity = ANY($2)))"
);
pub(super) static URLS_OF_ENTRIES: LazyLock<String> = entries!("u.crawl = $1 AND u.entry = ANY($2)");
static URLS_FROM: LazyLock<String> = entries!("u.crawl = $1 AND u.entry >= $2 ORDER BY u.entry LIMIT $3");
static URLS_OF_QUEUE: LazyLock<String> = entries!("u.queue = $1 AND u.entry >= $2 ORDER BY u.entry LIMIT $3");

impl Work {
    async fn scan(&mut self, session: &mut Session, scan: &Scan) -> Result<Page, Failure> {
        let limit = count(scan.limit.max(1) as u64);
        let from = count(scan.cursor.unwrap_or(0));
        let mut cursor = None;
        let rows = match &scan.query {
            Query::Crawl => Rows::Crawl(Box::new(self.report(session).await?)),
            Query::Crawls => Rows::Crawls(vec![self.report(session).await?]),
            Query::Queues { keys: Some(keys), state } => {
                let keys: Vec<Arc<str>> = keys.iter().map(|key| Arc::from(key.as_str())).collect();
                self.find_queues(session, &keys, false).await?;
                let ids: Vec<i64> = keys.iter().filter_map(|key| self.by_key.get(key).copied()).collect();
                let rows = session.rows(&QUEUES_NAMED, &[&ids]).await?;
                self.take_queues(session, &rows)?;
                self.load_groups(session).await?;
                let reports = ids.iter().map(|id| self.queue_report(self.queue(*id)));
                Rows::Queues(
                    reports.filter(|report| state.is_none_or(|state| report.state == state)).collect(),
                )
            }
            Query::Queues { keys: None, state } => {
                let looked_at = if state.is_some() { LOOKED_AT } else { limit };
                let rows = session.rows(&QUEUES_FROM, &[&self.crawl.id, &from, &(looked_at + 1)]).await?;
                self.take_queues(session, &rows)?;
                self.load_groups(session).await?;
                let mut reports = Vec::new();
                for (at, row) in rows.iter().enumerate() {
                    let id: i64 = row.try_get(0)?;
                    if reports.len() as i64 == limit || at as i64 == looked_at {
                        cursor = Some(id.unsigned_abs());
                        break;
                    }
                    let report = self.queue_report(self.queue(id));
                    if state.is_none_or(|state| report.state == state) {
                        reports.push(report);
                    }
                }
                Rows::Queues(reports)
            }
            Query::UrlList(identities) => Rows::Urls(self.list_urls(session, identities).await?),
            Query::Urls { key, pattern, state } => {
                let queue = match key {
                    Some(key) => {
                        let key: Arc<str> = Arc::from(key.as_str());
                        self.find_queues(session, [&key], false).await?;
                        match self.by_key.get(&key) {
                            Some(queue) => Some(*queue),
                            None => return Ok(Page { rows: Rows::Urls(Vec::new()), cursor: None }),
                        }
                    }
                    None => None,
                };
                let filtered = pattern.is_some() || state.is_some();
                let looked_at = if filtered { LOOKED_AT } else { limit.min(LOOKED_AT) };
                let (sql, whose) = queue.map_or((&URLS_FROM, self.crawl.id), |queue| (&URLS_OF_QUEUE, queue));
                let rows = session.rows(sql, &[&whose, &from, &(looked_at + 1)]).await?;
                let mut reports = Vec::new();
                for (at, row) in rows.iter().enumerate() {
                    let entry = read_entry(row)?;
                    if reports.len() as i64 == limit || at as i64 == looked_at {
                        cursor = Some(entry.id.unsigned_abs());
                        break;
                    }
                    let fits = state.is_none_or(|state| state == entry.state.public())
                        && pattern
                            .as_ref()
                            .is_none_or(|pattern| pattern.matches(&String::from_utf8_lossy(&entry.url)));
                    if fits {
                        reports.push(url_report(row, entry)?);
                    }
                }
                Rows::Urls(reports)
            }
            Query::Leases => {
                let sql = "SELECT l.id, q.key, u.url, u.rest, l.granted, l.deadline, l.expiries FROM leases l \
                     JOIN urls u ON u.crawl = l.crawl AND u.entry = l.entry \
                     JOIN queues q ON q.id = l.queue WHERE l.crawl = $1 AND l.id >= $2 ORDER BY l.id LIMIT $3";
                let rows = session.rows(sql, &[&self.crawl.id, &from, &limit.saturating_add(1)]).await?;
                let mut leases = Vec::new();
                for row in &rows {
                    let id: i64 = row.try_get(0)?;
                    if leases.len() as i64 == limit {
                        cursor = Some(id.unsigned_abs());
                        break;
                    }
                    leases.push(LeaseReport {
                        id: LeaseId(id.unsigned_abs()),
                        key: text(row.try_get(1)?),
                        request: request(row)?,
                        granted: time(row.try_get(4)?),
                        deadline: time(row.try_get(5)?),
                        delivery: small(row.try_get(6)?).saturating_add(1),
                    });
                }
                Rows::Leases(leases)
            }
            Query::Dead => {
                let sql = "SELECT d.entry, u.identity, q.key, u.url, u.rest, d.reason, d.at FROM dead d \
                     JOIN urls u ON u.crawl = d.crawl AND u.entry = d.entry \
                     JOIN queues q ON q.id = d.queue WHERE d.crawl = $1 AND d.entry >= $2 ORDER BY d.entry LIMIT $3";
                let rows = session.rows(sql, &[&self.crawl.id, &from, &limit.saturating_add(1)]).await?;
                let mut dead = Vec::new();
                for row in &rows {
                    if dead.len() as i64 == limit {
                        cursor = Some(row.try_get::<_, i64>(0)?.unsigned_abs());
                        break;
                    }
                    dead.push(DeadLetter {
                        identity: row.try_get::<_, Key>(1)?.0,
                        key: text(row.try_get(2)?),
                        request: request(row)?,
                        reason: text(row.try_get(5)?).to_string(),
                        at: time(row.try_get(6)?),
                    });
                }
                Rows::Dead(dead)
            }
            Query::Notes { prefix } => {
                let notes =
                    self.notes_from(session, prefix.as_bytes(), from, limit.saturating_add(1)).await?;
                let mut notes: Vec<Note> = notes;
                if notes.len() as i64 > limit {
                    notes.pop();
                    cursor = Some(from.unsigned_abs() + notes.len() as u64);
                }
                Rows::Notes(notes)
            }
            Query::Records => {
                let (records, next) = self.records(session, from, limit).await?;
                cursor = next;
                Rows::Records(records)
            }
            Query::Jobs => Rows::Jobs(self.job_reports(session).await?),
        };
        Ok(Page { rows, cursor })
    }

    /// Notes whose key begins so, in order, after so many.
    pub(super) async fn notes_from(
        &self,
        session: &Session,
        prefix: &[u8],
        after: i64,
        limit: i64,
    ) -> Result<Vec<Note>, Failure> {
        let beginning = &prefix[..prefix.len().min(1024)];
        let sql = "SELECT key, value, expires FROM notes WHERE crawl = $1 AND beginning >= $2 AND beginning < $2 || '\\xff'::bytea \
             AND substr(key, 1, $3) = $4 ORDER BY beginning, key OFFSET $5 LIMIT $6";
        let length = i32::try_from(prefix.len()).unwrap_or(i32::MAX);
        let rows = session.rows(sql, &[&self.crawl.id, &beginning, &length, &prefix, &after, &limit]).await?;
        rows.iter()
            .map(|row| {
                Ok(Note {
                    key: text(row.try_get(0)?).to_string(),
                    value: row.try_get(1)?,
                    expires: row.try_get::<_, Option<i64>>(2)?.map(time),
                })
            })
            .collect()
    }

    pub(super) async fn report(&self, session: &Session) -> Result<CrawlReport, Failure> {
        Ok(CrawlReport {
            name: Arc::clone(&self.crawl.name),
            key: self.crawl.key,
            partitions: self.crawl.partitions,
            settings: (*self.crawl.settings).clone(),
            started: self.crawl.started,
            state: self.crawl.state.clone(),
            exhausted: self.is_exhausted(session).await?,
        })
    }

    async fn list_urls(&self, session: &Session, identities: &[Identity]) -> Result<Vec<UrlReport>, Failure> {
        let keys: Vec<Key> = identities.iter().copied().map(Key).collect();
        let rows = session.rows(&URLS_LISTED, &[&self.crawl.id, &keys]).await?;
        let mut newest: BTreeMap<Identity, (i64, UrlReport)> = BTreeMap::new();
        for row in &rows {
            let entry = read_entry(row)?;
            let (identity, nth) = (entry.identity, entry.nth);
            if newest.get(&identity).is_none_or(|(other, _)| *other < nth) {
                newest.insert(identity, (nth, url_report(row, entry)?));
            }
        }
        let unknown = |identity| UrlReport {
            identity,
            request: None,
            state: UrlState::Unknown,
            key: None,
            class: 0,
            cost: 0,
            reason: None,
            due: None,
            page: None,
        };
        let report = |identity: &Identity| {
            newest.get(identity).map_or_else(|| unknown(*identity), |(_, report)| report.clone())
        };
        Ok(identities.iter().map(report).collect())
    }

    /// Until when a queue waits, for itself or with its group.
    fn next_fetch_of(&self, queue: &Queue) -> Option<Timestamp> {
        let group = self.groups.get(&queue.row.group_id).map_or(0, |group| group.next.at);
        Some(queue.row.next_at.max(group)).filter(|at| *at > self.now).map(time)
    }

    fn queue_report(&self, queue: &Queue) -> QueueReport {
        let (settings, row) = (&self.crawl.settings, &queue.row);
        let average = if row.grants == 0 { 0.0 } else { row.charged as f64 / row.grants as f64 };
        QueueReport {
            key: Arc::clone(&queue.key),
            partition: u32::try_from(queue.partition).unwrap_or(0),
            state: queue.state(self.now, self.group_waits(queue), settings),
            why: self.why(queue),
            pending: queue.pending().unsigned_abs(),
            leased: row.leased.unsigned_abs(),
            done: row.done.unsigned_abs(),
            disregarded: row.disregarded.unsigned_abs(),
            dead: row.dead.unsigned_abs(),
            errors: row.errors.unsigned_abs(),
            budget: queue.budget(settings),
            spent: queue.spent(self.charges_from()).unsigned_abs(),
            balance: row.balance,
            latest_cost: small(row.latest_cost),
            average_cost: average,
            precedence: queue.precedence(),
            group: queue.group(),
            concurrency: queue.concurrency(settings),
            delay: queue.delay(settings),
            next_fetch: self.next_fetch_of(queue),
        }
    }

    /// Why a queue is not being served, in words.
    fn why(&self, queue: &Queue) -> String {
        let settings = &self.crawl.settings;
        match queue.state(self.now, self.group_waits(queue), settings) {
            QueueState::Retired if queue.unreadable => {
                "retired: its terms cannot be read; set them anew or forget them, then `reinstate` serves it again".to_owned()
            }
            QueueState::Retired if queue.row.retired == BY_HAND => {
                "retired by an operator; `reinstate` serves it again".to_owned()
            }
            QueueState::Retired if queue.replenish(settings) == 0 => {
                "retired: its balance_replenish is 0; a higher one serves it again".to_owned()
            }
            QueueState::Retired => {
                let budget =
                    queue.budget(settings).map_or_else(|| "none".to_owned(), |budget| budget.to_string());
                let until = self.crawl.period_ends(self.now).map_or_else(
                    || "a higher queue_budget serves it again".to_owned(),
                    |end| format!("served again at {}, when the period ends", time(end)),
                );
                format!(
                    "retired: it has spent {} and {} of {budget}; {until}",
                    queue.spent(self.charges_from()),
                    QueueReport::OVER_BUDGET
                )
            }
            QueueState::Blocked => format!("blocked until {}", time(queue.row.blocked_at)),
            QueueState::Empty => "nothing is pending".to_owned(),
            QueueState::Busy if queue.is_full(settings) => format!(
                "{} leased, as many as its concurrency of {} allows",
                queue.row.leased,
                queue.concurrency(settings)
            ),
            QueueState::Busy => format!("all that is left, {} of its URLs, is leased", queue.row.leased),
            QueueState::Snoozed => match self.next_fetch_of(queue) {
                Some(at) if queue.next_fetch() < at => {
                    let group = queue.group().unwrap_or_else(|| Arc::from(""));
                    format!("its group {group} is not to be fetched from before {at}")
                }
                Some(at) => format!("not to be fetched from before {at}"),
                None => "all its pending URLs are due later".to_owned(),
            },
            state @ (QueueState::Ready | QueueState::Inactive) => match &self.crawl.state {
                CrawlState::Paused => "the crawl is paused; `resume` serves it".to_owned(),
                CrawlState::Finished(reason) => format!("the crawl is finished: {reason}"),
                CrawlState::Running if state == QueueState::Ready => "ready: may be served now".to_owned(),
                CrawlState::Running => "waits for its turn".to_owned(),
            },
        }
    }

    async fn stats(&self, session: &Session) -> Result<Stats, Failure> {
        let mut stats = self.counts(session).await?;
        let own = i64::from(self.crawl.settings.concurrency);
        let rows = session.rows(QUEUE_STATES, &[&self.crawl.id, &self.now, &own]).await?;
        for row in &rows {
            let state: i64 = row.try_get(0)?;
            if let Some(slot) = usize::try_from(state).ok().and_then(|state| stats.queues.get_mut(state)) {
                *slot = row.try_get::<_, i64>(1)?.unsigned_abs();
            }
        }
        Ok(stats)
    }

    /// The counts that are kept.
    pub(super) async fn counts(&self, session: &Session) -> Result<Stats, Failure> {
        let sql = "SELECT coalesce(sum(pending), 0)::int8, coalesce(sum(leased), 0)::int8, coalesce(sum(done), 0)::int8, \
             coalesce(sum(disregarded), 0)::int8, coalesce(sum(dead), 0)::int8, coalesce(sum(visits), 0)::int8, \
             coalesce(sum(fetched), 0)::int8, coalesce(sum(granted), 0)::int8, coalesce(sum(expired), 0)::int8, \
             coalesce(sum(bytes), 0)::text, coalesce(sum(spent), 0)::text FROM tallies WHERE crawl = $1";
        let rows = session.rows(sql, &[&self.crawl.id]).await?;
        let mut numbers = [0; 9];
        let (mut bytes, mut spent) = (0, 0);
        if let Some(row) = rows.first() {
            for (at, number) in numbers.iter_mut().enumerate() {
                *number = row.try_get::<_, i64>(at)?.max(0).unsigned_abs();
            }
            (bytes, spent) = (large(row.try_get(9)?), large(row.try_get(10)?));
        }
        let [pending, leased, done, disregarded, dead, visits, fetched, granted, expired] = numbers;
        Ok(Stats {
            urls: [0, pending, leased, done, disregarded, dead],
            visits_waiting: visits,
            fetched,
            bytes,
            spent,
            granted,
            expired,
            ..Stats::default()
        })
    }
}

/// How many queues are in which state, by the number of the state.
const QUEUE_STATES: &str = "SELECT state, count(*) FROM (SELECT CASE \
       WHEN t.retired > 0 THEN 0 \
       WHEN t.blocked_at > $2 THEN 1 \
       WHEN t.ready + t.waiting + t.leased = 0 THEN 2 \
       WHEN t.ready + t.waiting = 0 OR coalesce(nullif(t.concurrency, -1), $3::int8) > 0 \
         AND t.leased >= coalesce(nullif(t.concurrency, -1), $3::int8) THEN 3 \
       WHEN t.next_at > $2 OR t.ready = 0 OR coalesce(g.next_at, 0) > $2 THEN 4 \
       WHEN t.active = 1 AND NOT (t.free = 0 AND t.tier = 1) THEN 5 \
       ELSE 6 END::int8 AS state \
     FROM turns t LEFT JOIN groups g ON g.id = t.group_id AND t.group_id <> 0 WHERE t.crawl = $1) AS states GROUP BY state";

pub(super) fn small(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The request of a row. One that cannot be read is shown with its URL alone.
pub(super) fn request(row: &Columns) -> Result<Arc<Request>, Failure> {
    let url = text(row.try_get("url")?).to_string();
    let rest: &[u8] = row.try_get("rest")?;
    Ok(Arc::new(payload::decode(url.clone(), rest).unwrap_or_else(|_| Request::get(url))))
}

fn url_report(row: &Columns, entry: Entry) -> Result<UrlReport, Failure> {
    let (mut reason, mut due) = (None, None);
    match &entry.state {
        State::Dead { reason: why, .. } => reason = Some(text(why).to_string()),
        State::Disregarded { reason: why } if !why.is_empty() => reason = Some(text(why).to_string()),
        State::Waiting(_, at) => due = Some(time(at.at)),
        _ => {}
    }
    Ok(UrlReport {
        identity: entry.identity,
        request: Some(request(row)?),
        state: entry.state.public(),
        key: Some(text(row.try_get("key")?)),
        class: entry.class,
        cost: entry.cost,
        reason,
        due,
        page: entry.page,
    })
}

/// A queue that is only looked at.
pub(super) fn look_at(row: &Columns, now: i64) -> Result<Queue, Failure> {
    let mut queue = read_queue(row)?;
    queue.wake(now);
    Ok(queue)
}
