//! `settle`: what became of leases, in one atomic step.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use trapline_core::Timestamp;
use trapline_frontier::{Answer, Outcome, Pace, PageRecord, Settled, Settlement, Visit};

use super::admit::DRAWS;
use super::entry::{Grant, State, Wait};
use super::moment::{Moment, column, count, time};
use super::session::{Failure, Session};
use super::step::Verb;
use super::work::Work;

/// Settlements.
pub(super) struct Settle(pub(super) Vec<Settlement>);

#[async_trait]
impl Verb for Settle {
    type Answer = Vec<Settled>;

    fn draws(&self) -> usize {
        let links: usize = self.0.iter().map(|settlement| settlement.links.len()).sum();
        (self.0.len() + links) * DRAWS + 16
    }

    fn counts_fetches(&self) -> bool {
        true
    }

    async fn run(&self, work: &mut Work, session: &mut Session) -> Result<Vec<Settled>, Failure> {
        let ids: Vec<i64> = self.0.iter().filter_map(number).collect();
        let find = "SELECT id, entry, queue FROM leases WHERE crawl + 0 = $1 AND id = ANY($2)";
        let rows = session.rows(find, &[&work.crawl.id, &ids]).await?;
        let mut entries = Vec::with_capacity(rows.len());
        let (mut queues, mut live) = (BTreeSet::new(), BTreeSet::new());
        for row in &rows {
            live.insert(row.try_get::<_, i64>(0)?);
            entries.push(row.try_get(1)?);
            queues.insert(row.try_get(2)?);
        }
        // Of what is stale nothing happens: its links make no queues.
        let live = self.0.iter().filter(|settlement| number(settlement).is_some_and(|id| live.contains(&id)));
        let links = live.flat_map(|settlement| &settlement.links);
        work.bring_candidates(session, links, queues).await?;
        work.load_entries(session, &entries).await?;
        Ok(self.0.iter().map(|settlement| work.settle(settlement)).collect())
    }
}

/// A lease's number, if it can be one.
fn number(settlement: &Settlement) -> Option<i64> {
    i64::try_from(settlement.lease.0).ok()
}

impl Work {
    /// The entry that a lease is of, while the lease lives.
    fn leased(&self, lease: i64) -> Option<(i64, Grant)> {
        let entry = self.entry(*self.leases.get(&lease)?);
        match entry.state {
            State::Leased(grant) if grant.lease == lease && grant.deadline.at > self.now => {
                Some((entry.id, grant))
            }
            _ => None,
        }
    }

    /// First the URL takes its new state, then the links are admitted, then its queue finds its state.
    fn settle(&mut self, settlement: &Settlement) -> Settled {
        let leased = number(settlement).and_then(|lease| self.leased(lease));
        let Some((id, grant)) = leased else {
            return Settled { answer: Answer::Stale, links: Vec::new() };
        };
        let entry = self.entry(id);
        // What the links say may concern this very URL: its queue and cost are those of the lease.
        let (queue, cost) = (entry.queue, i64::from(entry.cost));
        let paced =
            matches!(settlement.outcome, Outcome::Done { .. } | Outcome::Retry { .. } | Outcome::Dead { .. });
        let own = paced.then(|| self.queue(queue).delay(&self.crawl.settings));
        let (answer, refund) = self.conclude(id, &settlement.outcome);
        if let Some(delay) = settlement.delay.or(own) {
            self.pace(queue, grant.granted, delay);
        }
        self.notes.extend(settlement.notes.iter().cloned());
        let links = settlement.links.iter().map(|link| self.admit(link, Some(queue))).collect();
        if refund {
            self.refund(queue, cost, grant.granted);
        }
        self.supply(queue, None);
        self.check_limits();
        if answer == Answer::Renewed {
            self.expire_at_once(id);
        }
        Settled { answer, links }
    }

    /// The URL takes its new state. Answers also whether its cost is given back.
    fn conclude(&mut self, id: i64, outcome: &Outcome) -> (Answer, bool) {
        if let Outcome::Renew { lease } = outcome {
            let deadline = self.moment(column(time(self.now) + *lease));
            if let State::Leased(grant) = &mut self.entry_mut(id).state {
                grant.deadline = deadline;
            }
            return (Answer::Renewed, false);
        }
        self.leave(id);
        let entry = self.entry_mut(id);
        match outcome {
            Outcome::Release | Outcome::Renew { .. } => {}
            Outcome::Retry { .. } => {
                (entry.expiries, entry.retries) = (0, entry.retries.saturating_add(1));
            }
            _ => entry.clear_troubles(),
        }
        match outcome {
            Outcome::Done { visit, next } => {
                self.tally.fetched += 1;
                self.tally.bytes = self.tally.bytes.saturating_add(visit.bytes);
                self.record_visit(id, visit, *next);
                match next {
                    Some(at) => self.schedule(id, column(*at), Wait::Visit),
                    None => self.enter(id, State::Done),
                }
                (Answer::Done, false)
            }
            Outcome::Retry { at } => {
                self.penalize(id);
                let at = column(*at);
                let due = self.moment(at);
                if at > self.now {
                    self.enter(id, State::Waiting(Wait::Retry, due));
                } else {
                    self.place_as_returned(id, at);
                    self.enter(id, State::Pending);
                }
                (Answer::Retry, false)
            }
            Outcome::Dead { reason } => {
                self.penalize(id);
                let rank = self.draw();
                let state = State::Dead { reason: reason.clone().into_bytes(), at: self.now, rank };
                self.enter(id, state);
                (Answer::Dead, false)
            }
            Outcome::Disregard { reason } => {
                self.enter(id, State::Disregarded { reason: reason.clone().into_bytes() });
                (Answer::Disregarded, true)
            }
            Outcome::Release | Outcome::Renew { .. } => {
                self.enter(id, State::Pending);
                (Answer::Released, true)
            }
        }
    }

    fn record_visit(&mut self, id: i64, visit: &Visit, next: Option<Timestamp>) {
        let visited = time(self.now);
        let entry = self.entry_mut(id);
        entry.visits = entry.visits.saturating_add(1);
        let last = entry.page.as_deref();
        // A visit that left nothing and will not be repeated is remembered by the URL's state alone.
        if *visit == Visit::default() && next.is_none() && last.is_none() {
            return;
        }
        let changed = last.is_some_and(|last| last.visit.digest != visit.digest);
        let changes = last.map_or(0, |last| last.changes).saturating_add(u32::from(changed));
        let page = PageRecord { visited, visit: visit.clone(), visits: entry.visits, changes, next };
        entry.page = Some(Arc::new(page));
    }

    /// An error costs the queue its penalty.
    fn penalize(&mut self, id: i64) {
        let (from, now) = (self.charges_from(), self.now);
        let penalty = count(self.crawl.settings.error_penalty);
        let queue = self.entry(id).queue;
        let queue = self.queue_mut(queue);
        queue.row.errors += 1;
        queue.spend(from, now, penalty);
        self.tally.spent = self.tally.spent.saturating_add(penalty);
    }

    /// Gives back what a grant cost. What was spent in an earlier period is not given back to this one.
    fn refund(&mut self, id: i64, cost: i64, granted: i64) {
        let (from, now) = (self.charges_from(), self.now);
        let queue = self.queue_mut(id);
        queue.row.balance = queue.row.balance.saturating_add(cost);
        if granted >= from {
            queue.spend(from, now, -cost);
        }
        self.tally.spent = self.tally.spent.saturating_sub(cost);
        if cost > 0 {
            self.reconsider(id);
        }
    }

    /// The queue, and its group, wait: never less long than they already do.
    fn pace(&mut self, id: i64, granted: i64, delay: Duration) {
        let from = match self.crawl.settings.pace {
            Pace::Settle => self.now,
            Pace::Claim => granted,
        };
        let until = self.moment(column(time(from) + delay));
        let queue = self.queue_mut(id);
        if until > queue.next() {
            queue.set_next(until);
        }
        let group = queue.row.group_id;
        self.pace_group(group, until);
    }

    /// A group is not to be fetched from before `until`.
    pub(super) fn pace_group(&mut self, group: i64, until: Moment) {
        if let Some(group) = self.groups.get_mut(&group).filter(|group| until.at >= group.next.at) {
            group.next = until;
            group.touched = true;
        }
    }
}
