//! A step: one verb on one crawl, in one transaction, again if others were in the way or the connection was lost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use deadpool_postgres::Object;
use tokio_postgres::error::SqlState;
use trapline_core::{IdentityKey, Timestamp};
use trapline_frontier::{CrawlState, ErrorKind, StoreError};

use super::crawl::Crawl;
use super::evidence::Evidence;
use super::moment::{Moment, Ranks, column, time};
use super::passing::{Due, STEP};
use super::session::{Ending, Failure, Session, unreadable};
use super::store::Inner;
use super::trouble::{Retry, is_retryable};
use super::work::Work;
use crate::disk::message::values;

/// What a verb does in a step. It may be done more than once; only the last time counts.
#[async_trait]
pub(super) trait Verb: Send + Sync {
    type Answer: Send;

    /// How many ranks it may draw.
    fn draws(&self) -> usize;

    /// Whether nobody else may work on the crawl meanwhile.
    fn alone(&self) -> bool {
        false
    }

    /// Whether it counts towards limits on all fetches: then it works alone if there are such limits.
    fn counts_fetches(&self) -> bool {
        false
    }

    async fn run(&self, work: &mut Work, session: &mut Session) -> Result<Self::Answer, Failure>;
}

/// How often a step begins again because others were in the way.
const ATTEMPTS: u32 = 20;

/// How often what is due happens before a verb that finds ever more of it goes on.
const PASSES: u32 = 20;

impl Inner {
    /// Does a verb on a crawl. `attempted` is what messages call it.
    pub(super) async fn perform<V: Verb>(
        self: &Arc<Self>,
        attempted: &str,
        crawl: &str,
        now: Timestamp,
        verb: &V,
    ) -> Result<V::Answer, StoreError> {
        let mut alone = verb.alone();
        let mut failures = 0;
        loop {
            let mut session = Session::new(self.pool.client().await?);
            let done = self.try_perform(&mut session, attempted, crawl, now, verb, alone).await;
            let failure = match done {
                Ok(answer) => return Ok(answer),
                Err((Failure::Database(error), Some((answer, evidence))))
                    if is_retryable(&error) == Retry::Reconnect =>
                {
                    match self.was_committed(session.end(), &evidence).await {
                        Ok(true) => return Ok(answer),
                        Ok(false) => Failure::Database(error),
                        // Whether it was done is not known, which is what callers are told.
                        Err(_) => return Err(self.pool.trouble(attempted, &error)),
                    }
                }
                Err((failure, _)) => {
                    session.roll_back().await;
                    failure
                }
            };
            failures += 1;
            if matches!(failure, Failure::Alone) {
                alone = true;
            } else if !self.may_try_again(&failure, failures).await {
                return Err(self.said(attempted, failure));
            }
        }
    }

    /// Whether what failed so, for so many times by now, may be tried again. If it failed often, after a while.
    pub(super) async fn may_try_again(&self, failure: &Failure, failures: u32) -> bool {
        let passes = match failure {
            Failure::Again | Failure::Alone => true,
            Failure::Database(error) => is_conflict(error) || is_retryable(error) == Retry::Reconnect,
            Failure::Store(_) => false,
        };
        if passes && failures > 2 {
            let most = 1 << failures.min(8);
            tokio::time::sleep(Duration::from_millis(1 + self.dice() % most)).await;
        }
        passes && failures < ATTEMPTS
    }

    /// Does a verb once. With the failure to end the transaction comes the answer, which holds if it ended all the same, and what
    /// that would be seen by.
    async fn try_perform<V: Verb>(
        self: &Arc<Self>,
        session: &mut Session,
        attempted: &str,
        crawl: &str,
        now: Timestamp,
        verb: &V,
        alone: bool,
    ) -> Result<V::Answer, (Failure, Option<(V::Answer, Evidence)>)> {
        let only = |failure| (failure, None);
        let mut passes = 0;
        let mut worked = false;
        loop {
            let id = self.find_crawl(session, crawl).await.map_err(only)?;
            let Some(id) = id else {
                return Err(only(StoreError::no_crawl("postgres", attempted, crawl).into()));
            };
            session.begin().await.map_err(only)?;
            let draws = verb.draws().max(PASS_DRAWS);
            let begun = self.begin(session, id, now, alone, draws).await.map_err(only)?;
            let Some((mut work, due)) = begun else {
                self.forget_crawl(crawl);
                session.commit().await.map_err(only)?;
                continue;
            };
            self.notice(session, &work).await.map_err(only)?;
            if verb.counts_fetches() && !alone && Crawl::counts_fetches(&work.crawl.settings) {
                return Err(only(Failure::Alone));
            }
            let pass = passes < PASSES && due.is_now(&work);
            let job = due.job && !worked;
            if pass || job {
                passes += 1;
                let happened = pass && work.pass(session).await.map_err(only)?;
                if !happened {
                    passes = PASSES;
                }
                if job {
                    worked = true;
                    if !happened {
                        work.work(session).await.map_err(only)?;
                    } else {
                        worked = false;
                    }
                }
                work.check_limits();
                work.save(session, self.slot()).await.map_err(only)?;
                session.commit().await.map_err(only)?;
                if let Some(after) = work.news() {
                    self.tell(session, work.crawl.id, after).await;
                }
                self.keep_floors(&work);
                continue;
            }
            work.check_limits();
            let answer = verb.run(&mut work, session).await.map_err(only)?;
            if work.again {
                return Err(only(Failure::Again));
            }
            self.remember_turn(&work.crawl);
            work.save(session, self.slot()).await.map_err(only)?;
            return match session.commit().await {
                Ok(()) => {
                    self.keep_floors(&work);
                    if let Some(after) = work.news() {
                        self.tell(session, work.crawl.id, after).await;
                    }
                    Ok(answer)
                }
                Err(failure) => Err((failure, Some((answer, Evidence::of(&work))))),
            };
        }
    }

    /// Begins to work on a crawl; nothing if it is gone.
    pub(super) async fn begin(
        &self,
        session: &Session,
        id: i64,
        now: Timestamp,
        alone: bool,
        draws: usize,
    ) -> Result<Option<(Work, Due)>, Failure> {
        lock_crawl(session, id, alone).await?;
        let blocks = Ranks::blocks(draws);
        let mut floors = self.floors(id);
        let from = floors.events();
        let began = Instant::now();
        let rows = session.rows(READ_CRAWL, &[&id, &blocks, &from.expiry, &from.due]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let mut crawl = read_crawl(row)?;
        self.recall_turn(&mut crawl);
        let latest: i64 = row.try_get("latest")?;
        let due = Due {
            expiry: row.try_get("expiry")?,
            waiting: row.try_get("waiting")?,
            group: row.try_get("wake")?,
            note: row.try_get("note")?,
            over_budget: row.try_get("over_budget")?,
            job: row.try_get("job")?,
        };
        floors.found_events(began.elapsed(), due.expiry, due.waiting);
        let ranks = Ranks::new(row.try_get("blocks")?);
        let mut work = Work::new(crawl, column(now).max(latest), ranks);
        (work.alone, work.floors) = (alone, floors);
        Ok(Some((work, due)))
    }

    /// Whether a transaction whose end was not answered was done: it is over, and its traces are there.
    pub(super) async fn was_committed(&self, lost: Ending, evidence: &Evidence) -> Result<bool, StoreError> {
        if !lost.asked_for {
            return Ok(false);
        }
        loop {
            let client: Object = self.pool.client().await?;
            let asked = match &lost.transaction {
                Some(transaction) => {
                    client.query_one("SELECT pg_xact_status($1::text::xid8)", &[transaction]).await
                }
                None => client.query_one("SELECT NULL::text", &[]).await,
            };
            let seen = match asked {
                Ok(row) => match row.get::<_, Option<&str>>(0) {
                    Some("in progress") => {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                    Some("aborted") => return Ok(false),
                    _ => evidence.is_there(&client).await,
                },
                // A number that nobody has had yet: the server crashed, and knows nothing of it.
                Err(error) if error.code() == Some(&SqlState::INVALID_PARAMETER_VALUE) => return Ok(false),
                Err(error) => Err(error),
            };
            match seen {
                Ok(is_there) => return Ok(is_there),
                Err(error) if is_retryable(&error) == Retry::Reconnect => {}
                Err(error) => return Err(self.pool.trouble("ask what became of a transaction", &error)),
            }
        }
    }
}

/// Locks a crawl until the transaction ends: alone, or with others who work on it. Such locks are the database's, so what is
/// locked is told by the schema as well: another frontier may have a crawl of the same number.
pub(super) async fn lock_crawl(session: &Session, id: i64, alone: bool) -> Result<(), Failure> {
    let sql = if alone {
        "SELECT 1 FROM (SELECT pg_advisory_xact_lock(hashtextextended('trapline.crawl.' || current_schema(), $1::int8))) AS locked"
    } else {
        "SELECT 1 FROM (SELECT pg_advisory_xact_lock_shared(hashtextextended('trapline.crawl.' || current_schema(), $1::int8))) \
         AS locked"
    };
    session.rows(sql, &[&id]).await?;
    Ok(())
}

/// What passing time may draw.
const PASS_DRAWS: usize = STEP as usize * 4 * 8;

/// Whether somebody else was faster: then it can be done again, knowing that.
fn is_conflict(error: &tokio_postgres::Error) -> bool {
    let unique = error.code() == Some(&tokio_postgres::error::SqlState::UNIQUE_VIOLATION);
    unique || is_retryable(error) == Retry::Now
}

/// A crawl with what is due in it, and ranks for a command.
const READ_CRAWL: &str = "SELECT c.*, t.latest, t.fetched, t.bytes, \
     (SELECT min(deadline) FROM leases l WHERE l.crawl = c.id AND deadline >= $3) AS expiry, \
     (SELECT min(due_at) FROM waiting w WHERE w.crawl = c.id AND due_at >= $4) AS waiting, \
     (SELECT min(next_at) FROM groups g WHERE g.crawl = c.id AND parked = 1) AS wake, \
     (SELECT min(expires) FROM notes n WHERE n.crawl = c.id AND expires IS NOT NULL) AS note, \
     (SELECT min(retired_at) FROM turns r WHERE r.crawl = c.id AND retired = 2) AS over_budget, \
     EXISTS (SELECT 1 FROM jobs j WHERE j.crawl = c.id AND NOT ended) AS job, \
     ARRAY(SELECT nextval('ranks') FROM generate_series(1, $2::int8)) AS blocks \
     FROM crawls c CROSS JOIN LATERAL (SELECT coalesce(max(latest), 0) AS latest, coalesce(sum(fetched), 0)::int8 AS fetched, \
     coalesce(sum(bytes), 0)::text AS bytes FROM tallies t WHERE t.crawl = c.id) t WHERE c.id = $1";

/// A crawl of its columns.
pub(super) fn read_crawl(row: &tokio_postgres::Row) -> Result<Crawl, Failure> {
    let name = super::load::text(row.try_get("name")?);
    let settings = values::read_settings(row.try_get("settings")?)
        .map_err(|error| unreadable(&format!("the settings of crawl {name}"), &error))?;
    let key: Vec<u8> = row.try_get("identity_key")?;
    let key: [u8; 32] = key.try_into().map_err(|_| {
        Failure::Store(StoreError::new(
            ErrorKind::Corrupt,
            format!("PostgreSQL store: the identity key of crawl {name} has not 32 bytes; nothing can be admitted to it"),
        ))
    })?;
    let reason = super::load::text(row.try_get("reason")?);
    let state = match row.try_get::<_, i64>("state")? {
        0 => CrawlState::Running,
        1 => CrawlState::Paused,
        _ => CrawlState::Finished(reason.to_string()),
    };
    Ok(Crawl {
        id: row.try_get("id")?,
        name,
        key: IdentityKey::from_bytes(key),
        partitions: u32::try_from(row.try_get::<_, i64>("partitions")?).unwrap_or(1),
        settings: Arc::new(settings),
        started: time(row.try_get("started")?),
        state,
        period_set: Moment { at: row.try_get("period_set_at")?, rank: row.try_get("period_set_rank")? },
        charged_before: row.try_get("charged_before")?,
        turn: row.try_get("turn")?,
        last_job: row.try_get("last_job")?,
        fetched: row.try_get("fetched")?,
        bytes: large(row.try_get("bytes")?),
        touched: false,
    })
}

/// A number that may be larger than a column's, as text.
pub(super) fn large(text: &str) -> u64 {
    text.parse().unwrap_or(u64::MAX)
}
