//! How time passes: leases expire, retries and visits come due, budget periods end, groups' waits end, all in the order of
//! their times. A step of its own, before whatever a verb does.
//!
//! What others hold at the moment is left to them, or to the next verb.

use std::collections::{BTreeMap, BTreeSet};

use super::entry::{State, Wait};
use super::moment::Moment;
use super::queue::{BARE, FULL, OVER_BUDGET};
use super::session::{Failure, Session};
use super::work::Work;

/// When what happens by itself will happen next, if it is foreseen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Due {
    pub(super) expiry: Option<i64>,
    pub(super) waiting: Option<i64>,
    pub(super) group: Option<i64>,
    pub(super) note: Option<i64>,
    /// When the queue that is over its budget longest retired.
    pub(super) over_budget: Option<i64>,
    /// Whether a job has steps left.
    pub(super) job: bool,
}

impl Due {
    /// Whether something but a job is due in a crawl.
    pub(super) fn is_now(&self, work: &Work) -> bool {
        let began = work.period_began();
        [self.expiry, self.waiting, self.group, self.note].iter().flatten().any(|at| *at <= work.now)
            || self.over_budget.is_some_and(|retired| retired < began)
    }
}

/// No more of each kind happens in one step.
pub(super) const STEP: i64 = 1000;

/// Something that happens.
enum Event {
    Expiry(i64),
    Due(i64),
    /// A queue over its budget is served again, because a period has ended.
    Period(i64),
    /// A queue was held back by its group.
    Unpark(i64),
}

impl Work {
    /// Lets happen what is due by now. Answers whether anything did.
    pub(super) async fn pass(&mut self, session: &mut Session) -> Result<bool, Failure> {
        let (crawl, now) = (self.crawl.id, self.now);
        let expiring = "SELECT entry, queue FROM leases WHERE crawl = $1 AND deadline <= $2 AND deadline >= $4 \
                        ORDER BY deadline, deadline_rank LIMIT $3";
        let waiting = "SELECT entry, queue FROM waiting WHERE crawl = $1 AND due_at <= $2 AND due_at >= $4 \
                       ORDER BY due_at, due_rank LIMIT $3";
        let (mut entries, mut queues): (Vec<i64>, BTreeSet<i64>) = (Vec::new(), BTreeSet::new());
        let from = self.floors.events();
        for (sql, from) in [(expiring, from.expiry), (waiting, from.due)] {
            for row in session.rows(sql, &[&crawl, &now, &STEP, &from]).await? {
                entries.push(row.try_get(0)?);
                queues.insert(row.try_get(1)?);
            }
        }
        let began = self.period_began();
        let retired = "SELECT queue FROM turns WHERE crawl = $1 AND retired = 2 AND retired_at < $2 LIMIT $3";
        let mut over_budget: Vec<i64> = Vec::new();
        for row in session.rows(retired, &[&crawl, &began, &STEP]).await? {
            over_budget.push(row.try_get(0)?);
        }
        queues.extend(&over_budget);
        let woken = "SELECT t.queue FROM groups g JOIN turns t ON t.crawl = $1 AND t.group_id = g.id AND t.parked = 1 \
                     WHERE g.crawl = $1 AND g.parked = 1 AND g.next_at <= $2 LIMIT $3";
        let mut parked: Vec<i64> = Vec::new();
        for row in session.rows(woken, &[&crawl, &now, &STEP]).await? {
            parked.push(row.try_get(0)?);
        }
        queues.extend(&parked);
        if parked.is_empty() {
            // Whoever parks a queue writes to its group. So from here on either it waits, or what it did is seen by the next statement.
            let hold = "SELECT id FROM groups WHERE crawl = $1 AND parked = 1 AND next_at <= $2 ORDER BY id FOR UPDATE";
            session.rows(hold, &[&crawl, &now]).await?;
            let clear = "UPDATE groups g SET parked = 0 WHERE g.crawl = $1 AND g.parked = 1 AND g.next_at <= $2 AND NOT EXISTS \
                         (SELECT 1 FROM turns t WHERE t.crawl = $1 AND t.group_id = g.id AND t.parked = 1)";
            session.execute(clear, &[&crawl, &now]).await?;
        }
        let notes = "DELETE FROM notes WHERE crawl = $1 AND expires <= $2";
        let dropped = session.execute(notes, &[&crawl, &now]).await?;

        self.lock_queues(session, queues, false).await?;
        let held: Vec<i64> = self.entries_of_locked(session, &entries).await?;
        self.load_entries(session, &held).await?;
        over_budget
            .retain(|queue| self.queues.get(queue).is_some_and(|queue| queue.row.retired == OVER_BUDGET));
        parked.retain(|queue| self.queues.get(queue).is_some_and(|queue| queue.row.parked == 1));

        let mut events: BTreeMap<Moment, Vec<Event>> = BTreeMap::new();
        for (id, entry) in &self.entries {
            match &entry.state {
                State::Leased(grant) if grant.deadline.at <= now => {
                    events.entry(grant.deadline).or_default().push(Event::Expiry(*id));
                }
                State::Waiting(_, due) if due.at <= now => {
                    events.entry(*due).or_default().push(Event::Due(*id));
                }
                _ => {}
            }
        }
        over_budget.sort_by_key(|queue| (self.queue(*queue).age(), *queue));
        for (at, queue) in over_budget.into_iter().enumerate() {
            let since = self.queue(queue).row.retired_at.max(self.crawl.period_set.at);
            let ended = self.crawl.period_ends(since).unwrap_or(now);
            let rank = self.crawl.period_set.rank + at as i64;
            events.entry(Moment::set(ended, rank, ended - 1)).or_default().push(Event::Period(queue));
        }
        parked.sort_by_key(|queue| (self.queue(*queue).age(), *queue));
        for queue in parked {
            let until = self.groups.get(&self.queue(queue).row.group_id).map(|group| group.next);
            if let Some(until) = until.filter(|until| until.at <= now) {
                events.entry(until).or_default().push(Event::Unpark(queue));
            }
        }
        let happened = !events.is_empty() || dropped > 0;
        let mut instant = None;
        let mut touched = Vec::new();
        for (moment, events) in events {
            if instant.is_some_and(|instant| instant != moment.at) {
                self.settle_down(&mut touched);
            }
            instant = Some(moment.at);
            self.now = moment.at;
            for event in events {
                match event {
                    Event::Expiry(entry) => touched.push(self.expire(entry, moment)),
                    Event::Due(entry) => touched.push(self.come_due(entry, moment)),
                    Event::Period(queue) => {
                        self.unretire(queue, moment);
                        touched.push(queue);
                    }
                    Event::Unpark(queue) => self.refresh(queue),
                }
            }
        }
        self.settle_down(&mut touched);
        self.now = now;
        Ok(happened)
    }

    /// When the present budget period began; never, if none has ended since periods were last set.
    fn period_began(&self) -> i64 {
        let began = self.crawl.period_began(self.crawl.settings.queue_budget_period, self.now);
        if began > self.crawl.period_set.at { began } else { 0 }
    }

    /// Those of these entries whose queues are here.
    async fn entries_of_locked(&self, session: &Session, entries: &[i64]) -> Result<Vec<i64>, Failure> {
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let queues: Vec<i64> = self.queues.keys().copied().collect();
        let sql = "SELECT entry FROM leases WHERE entry = ANY($1) AND queue = ANY($2) UNION ALL \
                   SELECT entry FROM waiting WHERE entry = ANY($1) AND queue = ANY($2)";
        let rows = session.rows(sql, &[&entries, &queues]).await?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    /// After all of one instant has happened, the queues it touched find their state, in the order of the commands that
    /// brought it about.
    fn settle_down(&mut self, touched: &mut Vec<i64>) {
        touched.sort_by_key(|id| (self.queue(*id).free_since(), *id));
        touched.dedup();
        for queue in touched.drain(..) {
            self.refresh(queue);
        }
    }

    /// A lease expires: the URL goes first in its class, or becomes a dead letter if that happened too often.
    pub(super) fn expire(&mut self, id: i64, moment: Moment) -> i64 {
        self.leave(id);
        self.tally.expired += 1;
        let most = self.crawl.settings.max_deliveries;
        let entry = self.entry_mut(id);
        entry.expiries = entry.expiries.saturating_add(1);
        let (queue, expiries) = (entry.queue, entry.expiries);
        let dies = most > 0 && expiries >= most;
        let of = self.queue_mut(queue);
        if of.row.lack & FULL != 0 || of.row.lack & BARE != 0 && !dies {
            of.free(moment);
        }
        if dies {
            of.row.errors += 1;
            let reason = format!("its lease expired {expiries} times in a row (max_deliveries)").into_bytes();
            let rank = self.draw();
            self.enter(id, State::Dead { reason, at: moment.at, rank });
        } else {
            self.place_as_returned(id, moment.at);
            self.enter(id, State::Pending);
        }
        queue
    }

    /// A retry, a scheduled URL or a next visit is due.
    fn come_due(&mut self, id: i64, moment: Moment) -> i64 {
        let retry = matches!(self.entry(id).state, State::Waiting(Wait::Retry, _));
        self.leave(id);
        if retry {
            self.place_as_returned(id, moment.at);
        } else {
            self.place_as_admitted(id, moment.at);
        }
        self.enter(id, State::Pending);
        let queue = self.entry(id).queue;
        let of = self.queue_mut(queue);
        if of.row.lack & BARE != 0 {
            of.free(moment);
        }
        queue
    }

    /// A lease of no length has expired before whatever comes next.
    pub(super) fn expire_at_once(&mut self, id: i64) {
        if let State::Leased(grant) = self.entry(id).state
            && grant.deadline.at <= self.now
        {
            let queue = self.expire(id, grant.deadline);
            self.refresh(queue);
        }
    }
}
