//! `settle`: what became of leases, in one atomic step each.

use std::sync::Arc;
use std::time::Duration;

use trapline_core::Timestamp;

use super::crawl::{Crawl, Death};
use super::moment::Moment;
use super::queues::QueueId;
use super::urls::{Band, EntryId, State};
use crate::settings::Pace;
use crate::verbs::{Answer, Outcome, PageRecord, Settled, Settlement, Visit};

impl Crawl {
    /// First the URL takes its new state, then the links are admitted, then its queue finds its state.
    pub(super) fn settle(&mut self, settlement: Settlement) -> Settled {
        let lease = settlement.lease.0;
        let Some(grant) = self.leases.get(&lease).filter(|grant| !self.is_gone(grant.entry)) else {
            return Settled { answer: Answer::Stale, links: Vec::new() };
        };
        let (entry, granted) = (grant.entry, grant.granted);
        // What the links say may concern this very URL: its queue and cost are those of the lease.
        let (queue, cost) = (self.urls[entry].queue, self.urls[entry].cost);
        let paced =
            matches!(settlement.outcome, Outcome::Done { .. } | Outcome::Retry { .. } | Outcome::Dead { .. });
        let delay = settlement.delay.or_else(|| paced.then(|| self.queues[queue].delay(&self.settings)));

        let (answer, refund) = self.conclude(entry, lease, settlement.outcome);
        if let Some(delay) = delay {
            self.pace(queue, granted, delay);
        }
        for note in settlement.notes {
            self.write_note(note);
        }
        let links = settlement.links.iter().map(|link| self.admit(link, Some(queue))).collect();
        if refund {
            self.refund(queue, cost, granted);
        }
        self.supply(queue, None);
        self.check_limits();
        // A lease renewed for no time has expired before whatever is settled next.
        self.happen_until(self.now);
        Settled { answer, links }
    }

    /// The URL takes its new state. Answers also whether its cost is given back.
    fn conclude(&mut self, id: EntryId, lease: u64, outcome: Outcome) -> (Answer, bool) {
        if let Outcome::Renew { lease: lasts } = outcome {
            self.renew(lease, lasts);
            return (Answer::Renewed, false);
        }
        self.leave(id);
        let entry = &mut self.urls[id];
        match outcome {
            Outcome::Release | Outcome::Renew { .. } => {}
            Outcome::Retry { .. } => (entry.expiries, entry.retries) = (0, entry.retries.saturating_add(1)),
            _ => (entry.expiries, entry.retries) = (0, 0),
        }
        match outcome {
            Outcome::Done { visit, next } => {
                self.fetched += 1;
                self.bytes = self.bytes.saturating_add(visit.bytes);
                self.record_visit(id, visit, next);
                match next {
                    Some(at) => self.schedule(id, at, State::Revisiting),
                    None => self.enter(id, State::Done),
                }
                (Answer::Done, false)
            }
            Outcome::Retry { at } => {
                self.penalize(id);
                let rank = self.draw();
                let entry = &mut self.urls[id];
                if at > self.now {
                    entry.due = Moment { at, rank };
                    self.enter(id, State::Retrying);
                } else {
                    entry.band = Band::Returned;
                    entry.place = at.as_millis();
                    self.enter(id, State::Pending);
                }
                (Answer::Retry, false)
            }
            Outcome::Dead { reason } => {
                self.penalize(id);
                self.dead_letters.insert(id, Death { reason, at: self.now });
                self.enter(id, State::Dead);
                (Answer::Dead, false)
            }
            Outcome::Disregard { reason } => {
                if !reason.is_empty() {
                    self.disregards.insert(id, reason);
                }
                self.enter(id, State::Disregarded);
                (Answer::Disregarded, true)
            }
            Outcome::Release | Outcome::Renew { .. } => {
                self.enter(id, State::Pending);
                (Answer::Released, true)
            }
        }
    }

    fn record_visit(&mut self, id: EntryId, visit: Visit, next: Option<Timestamp>) {
        let entry = &mut self.urls[id];
        let last = entry.page.as_deref();
        let changed = last.is_some_and(|last| last.visit.digest != visit.digest);
        let changes = last.map_or(0, |last| last.changes).saturating_add(u32::from(changed));
        entry.visits = entry.visits.saturating_add(1);
        // A visit that left nothing and will not be repeated is remembered by the URL's state alone.
        if visit == Visit::default() && next.is_none() && last.is_none() {
            return;
        }
        let visits = entry.visits;
        entry.page = Some(Arc::new(PageRecord { visited: self.now, visit, visits, changes, next }));
    }

    /// The queue, and its group, wait: never less long than they already do.
    fn pace(&mut self, id: QueueId, granted: Timestamp, delay: Duration) {
        let from = match self.settings.pace {
            Pace::Settle => self.now,
            Pace::Claim => granted,
        };
        let until = Moment { at: from + delay, rank: self.draw() };
        let queue = &mut self.queues[id];
        queue.next_fetch = queue.next_fetch.max(until);
        if let Some(group) = queue.group {
            self.pace_group(group, until);
        }
    }
}
