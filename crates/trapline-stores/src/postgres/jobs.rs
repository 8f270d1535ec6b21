//! Work over many URLs, a bounded step with each verb: so that no verb waits for it, and it goes on as long as anybody uses
//! the crawl.
//!
//! A job passes over all entries that were there when it began, in the order of their admission.

use trapline_frontier::{DeadChange, JobReport, Pattern, Steered, UrlState, UrlsChange};

use super::entry::State;
use super::load::text;
use super::moment::{column, time};
use super::session::{Failure, Session};
use super::work::Work;

/// How many entries a verb looks at on the side.
const STEP: i64 = 4096;

/// So many that have ended are remembered.
const ENDED_MAX: i64 = 100;

/// What a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// Forgets the pending URLs that match.
    Purge,
    /// Replays or forgets dead letters.
    Dead(DeadChange),
    /// Changes the URLs that match.
    Urls(UrlsChange),
}

impl Task {
    /// Its number, and the time it goes by.
    fn columns(self) -> (i64, Option<i64>) {
        match self {
            Self::Purge => (0, None),
            Self::Dead(DeadChange::Replay) => (1, None),
            Self::Dead(DeadChange::Purge) => (2, None),
            Self::Urls(UrlsChange::Forget) => (3, None),
            Self::Urls(UrlsChange::Revisit) => (4, None),
            Self::Urls(UrlsChange::ForgetPages(before)) => (5, Some(column(before))),
        }
    }

    fn read(number: i64, before: Option<i64>) -> Self {
        match number {
            0 => Self::Purge,
            1 => Self::Dead(DeadChange::Replay),
            2 => Self::Dead(DeadChange::Purge),
            3 => Self::Urls(UrlsChange::Forget),
            4 => Self::Urls(UrlsChange::Revisit),
            _ => Self::Urls(UrlsChange::ForgetPages(time(before.unwrap_or_default()))),
        }
    }
}

/// A job under way.
struct Job {
    task: Task,
    queue: Option<i64>,
    pattern: Option<Pattern>,
    /// What was admitted, or died, later is left alone.
    before: i64,
    /// The last entry that was looked at.
    cursor: i64,
    passed: i64,
    affected: i64,
}

impl Work {
    /// Begins a job and takes its first step, which is all of it where there are few URLs.
    pub(super) async fn begin_job(
        &mut self,
        session: &mut Session,
        task: Task,
        queue: Option<i64>,
        pattern: Option<&Pattern>,
    ) -> Result<Steered, Failure> {
        let mut job = Job {
            task,
            queue,
            pattern: pattern.cloned(),
            before: self.draw(),
            cursor: 0,
            passed: 0,
            affected: 0,
        };
        self.crawl.last_job += 1;
        self.crawl.touched = true;
        let id = self.crawl.last_job;
        let done = self.step_job(session, &mut job).await?;
        let affected = job.affected.unsigned_abs();
        if done {
            return Ok(Steered { affected, job: None });
        }
        let of_queue =
            "SELECT ready + waiting + leased + done + disregarded + dead FROM turns WHERE queue = $1";
        let of_all = "SELECT coalesce(sum(pending + leased + done + disregarded + dead), 0)::int8 FROM tallies WHERE crawl = $1";
        let (sql, whose) = queue.map_or((of_all, self.crawl.id), |queue| (of_queue, queue));
        let rows = session.rows(sql, &[&whose]).await?;
        let total: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
        let what = self.describe(session, task, queue, pattern).await?.into_bytes();
        let pattern = pattern.map(|pattern| pattern.to_string().into_bytes());
        let (number, visited_before) = task.columns();
        let insert = "INSERT INTO jobs (crawl, id, task, queue, pattern, before_rank, cursor, passed, total, affected, what, \
             visited_before) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
        session
            .execute(
                insert,
                &[
                    &self.crawl.id,
                    &id,
                    &number,
                    &queue,
                    &pattern,
                    &job.before,
                    &job.cursor,
                    &job.passed,
                    &total,
                    &job.affected,
                    &what,
                    &visited_before,
                ],
            )
            .await?;
        Ok(Steered { affected, job: Some(id.unsigned_abs()) })
    }

    /// Takes a step of the oldest job, unless somebody else does at the moment.
    pub(super) async fn work(&mut self, session: &mut Session) -> Result<(), Failure> {
        let sql = "SELECT id, task, queue, pattern, before_rank, cursor, passed, affected, visited_before FROM jobs \
                   WHERE crawl = $1 AND NOT ended ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED";
        let rows = session.rows(sql, &[&self.crawl.id]).await?;
        let Some(row) = rows.first() else { return Ok(()) };
        let id: i64 = row.try_get(0)?;
        let pattern: Option<&[u8]> = row.try_get(3)?;
        let mut job = Job {
            task: Task::read(row.try_get(1)?, row.try_get(8)?),
            queue: row.try_get(2)?,
            pattern: pattern.map(|pattern| Pattern::new(&*text(pattern))),
            before: row.try_get(4)?,
            cursor: row.try_get(5)?,
            passed: row.try_get(6)?,
            affected: row.try_get(7)?,
        };
        let done = self.step_job(session, &mut job).await?;
        let update = "UPDATE jobs SET cursor = $3, passed = $4, affected = $5, ended = $6, total = greatest(total, $4) \
                      WHERE crawl = $1 AND id = $2";
        session
            .execute(update, &[&self.crawl.id, &id, &job.cursor, &job.passed, &job.affected, &done])
            .await?;
        if done {
            self.forget_old_jobs(session).await?;
        }
        Ok(())
    }

    async fn forget_old_jobs(&self, session: &Session) -> Result<(), Failure> {
        let sql = "DELETE FROM jobs WHERE crawl = $1 AND ended AND id <= \
                   (SELECT id FROM jobs WHERE crawl = $1 AND ended ORDER BY id DESC OFFSET $2 LIMIT 1)";
        session.execute(sql, &[&self.crawl.id, &ENDED_MAX]).await?;
        Ok(())
    }

    /// Answers whether that was the last one.
    async fn step_job(&mut self, session: &mut Session, job: &mut Job) -> Result<bool, Failure> {
        let of_queue = "SELECT u.entry, u.queue, u.url FROM urls u WHERE u.queue = $1 AND u.entry > $2 AND u.entry <= $3 \
                        ORDER BY u.entry LIMIT $4";
        let of_all = "SELECT u.entry, u.queue, u.url FROM urls u WHERE u.crawl = $1 AND u.entry > $2 AND u.entry <= $3 \
                      ORDER BY u.entry LIMIT $4";
        let (sql, whose) = job.queue.map_or((of_all, self.crawl.id), |queue| (of_queue, queue));
        let rows = session.rows(sql, &[&whose, &job.cursor, &job.before, &STEP]).await?;
        let (mut entries, mut queues) = (Vec::new(), Vec::new());
        for row in &rows {
            job.cursor = row.try_get(0)?;
            let url: &[u8] = row.try_get(2)?;
            let matches =
                job.pattern.as_ref().is_none_or(|pattern| pattern.matches(&String::from_utf8_lossy(url)));
            if matches {
                entries.push(job.cursor);
                queues.push(row.try_get(1)?);
            }
        }
        job.passed += rows.len() as i64;
        self.lock_queues(session, queues, true).await?;
        self.load_entries(session, &entries).await?;
        for id in entries {
            let Some(entry) = self.entries.get(&id) else { continue };
            let queue = entry.queue;
            let changed = match (job.task, &entry.state) {
                (Task::Purge, state) if state.is_pending() && entry.spot.rank <= job.before => {
                    self.drop_entry(id);
                    true
                }
                (Task::Dead(change), State::Dead { rank, .. }) if *rank <= job.before => {
                    self.change_dead(id, change)
                }
                (Task::Urls(change), _) => {
                    let changed = self.change_url(id, change);
                    if !changed || matches!(change, UrlsChange::ForgetPages(_)) {
                        // For its queue nothing is new.
                        job.affected += i64::from(changed);
                        continue;
                    }
                    changed
                }
                _ => continue,
            };
            job.affected += i64::from(changed);
            self.supply(queue, None);
        }
        Ok((rows.len() as i64) < STEP)
    }

    /// Does to one entry what a job says; answers whether there was anything to change. A crawl that is over visits nothing
    /// again. Its queue must find its state afterwards.
    fn change_url(&mut self, id: i64, change: UrlsChange) -> bool {
        let entry = self.entry(id);
        match change {
            UrlsChange::Forget => self.drop_entry(id),
            UrlsChange::Revisit => {
                if entry.state.public() != UrlState::Done || self.crawl.is_finished() {
                    return false;
                }
                self.leave(id);
                self.place_as_admitted(id, self.now);
                self.enter(id, State::Pending);
            }
            UrlsChange::ForgetPages(before) => {
                if entry.page.as_ref().is_none_or(|page| page.visited >= before) {
                    return false;
                }
                self.entry_mut(id).page = None;
            }
        }
        true
    }

    /// Stops a job where it is; answers how many there were.
    pub(super) async fn cancel_job(&self, session: &Session, id: u64) -> Result<u64, Failure> {
        let Ok(id) = i64::try_from(id) else { return Ok(0) };
        let sql = "UPDATE jobs SET ended = true WHERE crawl = $1 AND id = $2 AND NOT ended";
        let cancelled = session.execute(sql, &[&self.crawl.id, &id]).await?;
        self.forget_old_jobs(session).await?;
        Ok(cancelled)
    }

    /// Those that have ended first.
    pub(super) async fn job_reports(&self, session: &Session) -> Result<Vec<JobReport>, Failure> {
        let sql = "SELECT id, what, passed, total, affected, ended FROM jobs WHERE crawl = $1 ORDER BY NOT ended, id";
        let rows = session.rows(sql, &[&self.crawl.id]).await?;
        let number = |row: &tokio_postgres::Row, column: usize| row.try_get::<_, i64>(column);
        rows.iter()
            .map(|row| {
                Ok(JobReport {
                    id: number(row, 0)?.unsigned_abs(),
                    what: text(row.try_get(1)?).to_string(),
                    passed: number(row, 2)?.unsigned_abs(),
                    total: number(row, 3)?.unsigned_abs(),
                    affected: number(row, 4)?.unsigned_abs(),
                    ended: row.try_get(5)?,
                })
            })
            .collect()
    }

    async fn describe(
        &self,
        session: &Session,
        task: Task,
        queue: Option<i64>,
        pattern: Option<&Pattern>,
    ) -> Result<String, Failure> {
        let of = match queue {
            Some(queue) => {
                let rows = session.rows("SELECT key FROM queues WHERE id = $1", &[&queue]).await?;
                let key = rows.first().map(|row| row.try_get(0)).transpose()?.map_or_else(|| text(b""), text);
                format!("of queue {key}")
            }
            None => "of all queues".to_owned(),
        };
        Ok(match task {
            Task::Purge => {
                let pattern = pattern.map(ToString::to_string).unwrap_or_default();
                format!("purge pending URLs {of} that match {pattern}")
            }
            Task::Dead(DeadChange::Replay) => format!("replay dead letters {of}"),
            Task::Dead(DeadChange::Purge) => format!("purge dead letters {of}"),
            Task::Urls(change) => change.describe(&of, pattern),
        })
    }
}
