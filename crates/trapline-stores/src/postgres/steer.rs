//! `steer`: what operators change.

use std::sync::Arc;

use async_trait::async_trait;
use tokio_postgres::Row as Columns;
use trapline_core::{Identity, KEY_BYTES_MAX};
use trapline_frontier::{
    CrawlChange, CrawlState, DeadChange, DeadLetters, ErrorKind, QueueChange, SettingError, Settings, Steer,
    Steered, StoreError, UrlChange, UrlFilter, UrlState, UrlsChange,
};

use super::entry::State;
use super::jobs::Task;
use super::moment::column;
use super::queue::BY_HAND;
use super::session::{Failure, Key, Param, Session};
use super::step::Verb;
use super::work::Work;

/// An act of steering, of anything but making and deleting a crawl.
pub(super) struct Act(pub(super) Steer);

#[async_trait]
impl Verb for Act {
    type Answer = Steered;

    fn draws(&self) -> usize {
        match &self.0 {
            Steer::Crawl(CrawlChange::Restore(records)) => records.len() * 16 + 16,
            // Every queue may be reconsidered.
            Steer::Crawl(CrawlChange::Set(_)) => 8_000_000,
            _ => 100_000,
        }
    }

    fn alone(&self) -> bool {
        !matches!(self.0, Steer::Queue(..) | Steer::Url(..) | Steer::Dead(DeadLetters::Url(_), _))
    }

    async fn run(&self, work: &mut Work, session: &mut Session) -> Result<Steered, Failure> {
        match &self.0 {
            Steer::Queue(key, change) => work.steer_queue(session, key, change).await,
            Steer::Url(identity, change) => work.steer_url(session, *identity, *change).await,
            Steer::Urls(which, change) => work.steer_urls(session, which, *change).await,
            Steer::Dead(which, change) => work.steer_dead(session, which, *change).await,
            Steer::Crawl(change) => work.steer_crawl(session, change).await,
        }
    }
}

const ONE: Steered = Steered { affected: 1, job: None };

impl Work {
    async fn steer_queue(
        &mut self,
        session: &mut Session,
        key: &str,
        change: &QueueChange,
    ) -> Result<Steered, Failure> {
        check_key(key)?;
        let key: Arc<str> = Arc::from(key);
        if let QueueChange::Terms(terms) = change {
            self.make_groups(session, terms.group.clone()).await?;
        }
        self.find_queues(session, [&key], true).await?;
        let id = self.by_key[&key];
        if let QueueChange::Purge(Some(pattern)) = change {
            return self.begin_job(session, Task::Purge, Some(id), Some(pattern)).await;
        }
        self.lock_queues(session, [id], true).await?;
        let settings = Arc::clone(&self.crawl.settings);
        let now = self.now;
        match change {
            QueueChange::Terms(terms) => {
                self.take_terms(id, terms, true);
                self.refresh(id);
            }
            QueueChange::DefaultTerms => {
                let changed = self.queue_mut(id).default_terms(&settings);
                self.terms_changed(id, changed);
                self.refresh(id);
            }
            QueueChange::Block(until) if column(*until) > now => {
                let until = self.moment(column(*until));
                self.queue_mut(id).set_blocked(until);
                self.refresh(id);
            }
            QueueChange::Block(_) | QueueChange::Unblock => {
                if self.queue(id).row.blocked_at > now {
                    let moment = self.this_moment();
                    self.queue_mut(id).set_blocked(moment);
                }
                self.refresh(id);
            }
            QueueChange::Retire => {
                self.refresh(id);
                if !self.is_retired_by_hand(id) {
                    self.retire(id, BY_HAND);
                }
            }
            QueueChange::Reinstate => {
                self.refresh(id);
                if self.queue(id).is_retired() {
                    let since = self.this_moment();
                    self.unretire(id, since);
                    self.refresh(id);
                }
            }
            QueueChange::Purge(_) => return self.purge(session, id).await,
            QueueChange::Delete => return self.delete(session, id).await,
        }
        Ok(ONE)
    }

    /// Forgets a queue's pending URLs.
    async fn purge(&mut self, session: &Session, id: i64) -> Result<Steered, Failure> {
        for of_queue in [
            "DECLARE gone NO SCROLL CURSOR FOR SELECT entry FROM pending WHERE queue = $1",
            "DECLARE gone NO SCROLL CURSOR FOR SELECT entry FROM waiting WHERE queue = $1 AND kind < 2",
        ] {
            self.drop_all(session, of_queue, id).await?;
        }
        let pending = self.queue(id).pending();
        let row = &mut self.queue_mut(id).row;
        (row.ready, row.waiting) = (0, 0);
        self.tally.urls[UrlState::Pending as usize] -= pending;
        self.refresh(id);
        Ok(Steered { affected: pending.unsigned_abs(), job: None })
    }

    /// Drops all entries of a queue that a cursor goes over. Some at a time, so that no statement takes as long as the queue is.
    async fn drop_all(&self, session: &Session, cursor: &str, queue: i64) -> Result<(), Failure> {
        session.execute(cursor, &[&queue]).await?;
        loop {
            let some = session.rows("FETCH 1000 FROM gone", &[]).await?;
            if some.is_empty() {
                break;
            }
            let entries: Vec<i64> = some.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
            let urls = "DELETE FROM urls WHERE crawl = $1 AND entry = ANY($2) RETURNING identity, entry";
            let gone = session.rows(urls, &[&self.crawl.id, &entries]).await?;
            self.unsee(session, &gone).await?;
            let entries: [Param<'_>; 2] = [&self.crawl.id, &entries];
            let rest = [
                "DELETE FROM pending WHERE crawl = $1 AND entry = ANY($2)",
                "DELETE FROM waiting WHERE crawl + 0 = $1 AND entry = ANY($2)",
                "DELETE FROM leases WHERE crawl + 0 = $1 AND entry = ANY($2)",
                "DELETE FROM dead WHERE crawl = $1 AND entry = ANY($2)",
                "DELETE FROM disregarded WHERE crawl = $1 AND entry = ANY($2)",
                "DELETE FROM pages WHERE crawl = $1 AND entry = ANY($2)",
            ];
            session.execute_all(&rest.map(|sql| (sql, entries.to_vec()))).await?;
        }
        session.execute("CLOSE gone", &[]).await?;
        Ok(())
    }

    /// Takes URLs out of the seen table: rows of their identities and entries.
    async fn unsee(&self, session: &Session, gone: &[Columns]) -> Result<(), Failure> {
        let identities: Vec<Key> = gone.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
        let entries: Vec<i64> = gone.iter().map(|row| row.try_get(1)).collect::<Result<_, _>>()?;
        let sql = "DELETE FROM seen WHERE crawl = $1 AND identity = ANY($2) AND entry = ANY($3)";
        session.execute(sql, &[&self.crawl.id, &identities, &entries]).await?;
        Ok(())
    }

    /// Forgets all of a queue's URLs.
    async fn delete(&mut self, session: &Session, id: i64) -> Result<Steered, Failure> {
        let of_queue = "DECLARE gone NO SCROLL CURSOR FOR SELECT entry FROM urls WHERE queue = $1";
        self.drop_all(session, of_queue, id).await?;
        let moment = self.this_moment();
        let pending = self.queue(id).pending();
        let queue = self.queue_mut(id);
        queue.free(moment);
        let row = &mut queue.row;
        let counts = [
            (UrlState::Pending, pending),
            (UrlState::Leased, row.leased),
            (UrlState::Done, row.done),
            (UrlState::Disregarded, row.disregarded),
            (UrlState::Dead, row.dead),
        ];
        let visits = row.visits;
        (row.ready, row.waiting, row.visits, row.leased, row.done) = (0, 0, 0, 0, 0);
        (row.disregarded, row.dead) = (0, 0);
        let mut affected = 0;
        for (state, count) in counts {
            self.tally.urls[state as usize] -= count;
            affected += count;
        }
        self.tally.visits -= visits;
        self.refresh(id);
        Ok(Steered { affected: affected.unsigned_abs(), job: None })
    }

    /// Brings all entries of a URL here, with their queues.
    async fn bring_url(&mut self, session: &mut Session, identity: Identity) -> Result<Vec<i64>, Failure> {
        let known = self.find_known(session, &[identity]).await?;
        self.lock_queues(session, known.into_iter().map(|(_, queue)| queue), true).await?;
        self.load_urls(session, &[identity]).await?;
        Ok(self.by_identity.get(&identity).cloned().unwrap_or_default())
    }

    async fn steer_url(
        &mut self,
        session: &mut Session,
        identity: Identity,
        change: UrlChange,
    ) -> Result<Steered, Failure> {
        let entries = self.bring_url(session, identity).await?;
        let mut affected = 0;
        match change {
            UrlChange::Forget => {
                affected = u64::from(!entries.is_empty());
                let queues = entries.iter().map(|entry| self.entry(*entry).queue).collect();
                for entry in entries {
                    self.drop_entry(entry);
                }
                self.supply_all(queues, None);
            }
            UrlChange::Class(class) => {
                if let Some(entry) = entries.first()
                    && self.entry(*entry).state.is_pending()
                    && self.entry(*entry).class != class
                {
                    self.move_to_class(*entry, class);
                    affected = 1;
                }
            }
        }
        Ok(Steered { affected, job: None })
    }

    /// The queue of a key, if anybody knows it.
    async fn find_queue(&mut self, session: &mut Session, key: &str) -> Result<Option<i64>, Failure> {
        let key: Arc<str> = Arc::from(key);
        self.find_queues(session, [&key], false).await?;
        Ok(self.by_key.get(&key).copied())
    }

    async fn steer_urls(
        &mut self,
        session: &mut Session,
        which: &UrlFilter,
        change: UrlsChange,
    ) -> Result<Steered, Failure> {
        let mut queue = None;
        if let Some(key) = &which.key {
            queue = self.find_queue(session, key).await?;
            if queue.is_none() {
                // A queue that nobody knows has no URLs.
                return Ok(Steered::default());
            }
        }
        self.begin_job(session, Task::Urls(change), queue, which.pattern.as_ref()).await
    }

    async fn steer_dead(
        &mut self,
        session: &mut Session,
        which: &DeadLetters,
        change: DeadChange,
    ) -> Result<Steered, Failure> {
        let queue = match which {
            DeadLetters::Url(identity) => {
                let mut dead = self.bring_url(session, *identity).await?;
                dead.retain(|entry| matches!(self.entry(*entry).state, State::Dead { .. }));
                let queues = dead.iter().map(|entry| self.entry(*entry).queue).collect();
                let mut affected = 0;
                for entry in dead.into_iter().rev() {
                    affected += u64::from(self.change_dead(entry, change));
                }
                self.supply_all(queues, None);
                return Ok(Steered { affected, job: None });
            }
            DeadLetters::All => None,
            DeadLetters::Queue(key) => match self.find_queue(session, key).await? {
                Some(queue) => Some(queue),
                None => return Ok(Steered::default()),
            },
        };
        self.begin_job(session, Task::Dead(change), queue, None).await
    }

    /// Replays or forgets one dead letter; answers whether it did: a crawl that is over replays nothing. Its queue must find
    /// its state afterwards.
    pub(super) fn change_dead(&mut self, id: i64, change: DeadChange) -> bool {
        match change {
            DeadChange::Purge => self.drop_entry(id),
            DeadChange::Replay if self.crawl.is_finished() => return false,
            DeadChange::Replay => {
                self.leave(id);
                self.entry_mut(id).clear_troubles();
                self.place_as_admitted(id, self.now);
                self.enter(id, State::Pending);
            }
        }
        true
    }

    async fn steer_crawl(&mut self, session: &mut Session, change: &CrawlChange) -> Result<Steered, Failure> {
        match change {
            CrawlChange::Set(changes) => self.set(session, changes).await?,
            CrawlChange::Pause if self.crawl.is_running() => self.crawl.set_state(CrawlState::Paused),
            CrawlChange::Resume if self.crawl.state == CrawlState::Paused => {
                self.crawl.set_state(CrawlState::Running);
            }
            CrawlChange::Pause | CrawlChange::Resume => {}
            CrawlChange::Finish(reason) => self.crawl.finish(reason),
            CrawlChange::Note(note) => self.notes.push(note.clone()),
            CrawlChange::Restore(records) => {
                let affected = self.restore(session, records).await?;
                return Ok(Steered { affected, job: None });
            }
            CrawlChange::Purge(pattern) => {
                return self.begin_job(session, Task::Purge, None, Some(pattern)).await;
            }
            CrawlChange::Cancel(job) => {
                let affected = self.cancel_job(session, *job).await?;
                return Ok(Steered { affected, job: None });
            }
            // Making and deleting are the store's: there may be no crawl to work on.
            CrawlChange::Create(_) | CrawlChange::Delete => {}
        }
        Ok(ONE)
    }

    /// Changes settings, all or none.
    async fn set(&mut self, session: &mut Session, changes: &[(String, String)]) -> Result<(), Failure> {
        let before = Arc::clone(&self.crawl.settings);
        let mut settings = (*before).clone();
        for (name, value) in changes {
            settings.set(name, value).map_err(StoreError::from)?;
        }
        if settings.order != before.order {
            return Err(StoreError::from(SettingError::Fixed("order")).into());
        }
        let settings = Arc::new(settings);
        self.crawl.settings = Arc::clone(&settings);
        self.crawl.touched = true;
        let budgets =
            |settings: &Settings| (settings.queue_budget, settings.balance_replenish, settings.cost);
        if settings.queue_budget_period != before.queue_budget_period {
            let moment = self.this_moment();
            self.crawl.period_changed(before.queue_budget_period, self.now, moment);
        }
        if budgets(&settings) != budgets(&before) {
            self.reconsider_all(session).await?;
        }
        if settings.concurrency != before.concurrency {
            let sql = "SELECT DISTINCT queue FROM leases WHERE crawl = $1";
            let queues = self.queue_numbers(session, sql).await?;
            self.lock_queues(session, queues.iter().copied(), true).await?;
            self.supply_all(queues, None);
        }
        self.check_limits();
        Ok(())
    }

    /// All queues over their budget get another chance, in their former order.
    async fn reconsider_all(&mut self, session: &mut Session) -> Result<(), Failure> {
        let sql = "SELECT queue FROM turns WHERE crawl = $1 AND retired = 2";
        let mut queues = self.queue_numbers(session, sql).await?;
        self.lock_queues(session, queues.iter().copied(), true).await?;
        queues.sort_by_key(|id| (self.queue(*id).age(), *id));
        for id in queues {
            self.reconsider(id);
            self.refresh(id);
        }
        Ok(())
    }

    async fn queue_numbers(&self, session: &Session, sql: &str) -> Result<Vec<i64>, Failure> {
        let rows = session.rows(sql, &[&self.crawl.id]).await?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }
}

fn check_key(key: &str) -> Result<(), StoreError> {
    if (1..=KEY_BYTES_MAX).contains(&key.len()) {
        return Ok(());
    }
    let message =
        format!("cannot steer a queue whose key has {} bytes: keys have 1 to {KEY_BYTES_MAX}", key.len());
    Err(StoreError::new(ErrorKind::Invalid, message))
}
