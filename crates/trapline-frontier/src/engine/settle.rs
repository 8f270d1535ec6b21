//! `settle`: what became of leases, in one atomic step each.

use std::time::Duration;

use trapline_core::Timestamp;

use super::crawl::{Crawl, Death};
use super::moment::Moment;
use super::queues::{QueueId, QueueTimer};
use super::urls::{EntryId, State};
use crate::planted::Fault;
use crate::settings::Pace;
use crate::verbs::{Answer, Outcome, PageRecord, Settled, Settlement, Visit};

impl Crawl {
    /// First the URL takes its new state, then the links are admitted, then its queue finds its state.
    pub(super) fn settle(&mut self, settlement: &Settlement) -> Settled {
        let lease = settlement.lease.0;
        let Some(grant) = self.leases.get(lease).filter(|grant| !self.is_gone(grant.entry)) else {
            if self.planted.is(Fault::StaleAccepted) {
                let links = settlement.links.iter().map(|link| self.admit(link, None)).collect();
                return Settled { answer: Answer::Done, links };
            }
            return Settled { answer: Answer::Stale, links: Vec::new() };
        };
        let (entry, granted) = (grant.entry, grant.granted);
        // What the links say may concern this very URL: its queue and cost are those of the lease.
        let record = &self.urls[entry];
        let (queue, cost) = (record.queue, record.cost);
        let paced =
            matches!(settlement.outcome, Outcome::Done { .. } | Outcome::Retry { .. } | Outcome::Dead { .. });
        let delay = settlement.delay.or_else(|| paced.then(|| self.queues[queue].delay(&self.settings)));

        let (answer, refund) = self.conclude(entry, lease, &settlement.outcome);
        if let Some(delay) = delay {
            self.pace(queue, granted, delay);
        }
        for note in &settlement.notes {
            self.notes.write(note);
        }
        let lost = usize::from(self.planted.is(Fault::LinkLost));
        let links = settlement.links.iter().skip(lost).map(|link| self.admit(link, Some(queue))).collect();
        if refund && !(self.planted.is(Fault::RefundForgotten) && answer == Answer::Released) {
            self.refund(queue, cost, granted);
        }
        self.supply(queue, None);
        self.check_limits();
        if answer == Answer::Renewed {
            // For no time, maybe: then it has expired before whatever is settled next.
            self.happen_until(self.now);
        }
        Settled { answer, links }
    }

    /// Looks at what a batch settles, ahead of time: see [`Crawl::warm`].
    pub(super) fn warm_settle(&self, batch: &[Settlement]) {
        if batch.len() > 1 {
            let leases = batch.iter().filter_map(|settlement| self.leases.get(settlement.lease.0));
            let entries: Vec<_> = leases.map(|grant| grant.entry).collect();
            let queues = entries.iter().map(|entry| self.urls[*entry].queue);
            std::hint::black_box(queues.fold(0, |all, queue| all ^ self.queues.touch(queue)));
            self.urls.touch(&entries);
            for settlement in batch {
                self.warm(&settlement.links);
            }
        }
    }

    /// The URL takes its new state. Answers also whether its cost is given back.
    fn conclude(&mut self, id: EntryId, lease: u64, outcome: &Outcome) -> (Answer, bool) {
        if let Outcome::Renew { lease: lasts } = outcome {
            self.renew(lease, *lasts);
            return (Answer::Renewed, false);
        }
        self.leave(id);
        match outcome {
            Outcome::Release | Outcome::Renew { .. } => {}
            Outcome::Retry { .. } => {
                let more = self.urls.more_mut(id);
                (more.expiries, more.retries) = (0, more.retries.saturating_add(1));
            }
            _ => self.clear_troubles(id),
        }
        match outcome {
            Outcome::Done { visit, next } => {
                self.fetched += 1;
                self.bytes = self.bytes.saturating_add(visit.bytes);
                self.record_visit(id, visit, *next);
                match next.filter(|_| !self.planted.is(Fault::VisitForgotten)) {
                    Some(at) => self.schedule(id, at, State::Revisiting),
                    None => self.enter(id, State::Done),
                }
                (Answer::Done, false)
            }
            Outcome::Retry { at } => {
                self.penalize(id);
                let (at, rank) = (*at, self.draw());
                if at > self.now {
                    self.urls.more_mut(id).due = Moment { at, rank };
                    self.enter(id, State::Retrying);
                } else {
                    self.place_as_returned(id, at);
                    self.enter(id, State::Pending);
                }
                (Answer::Retry, false)
            }
            Outcome::Dead { reason } => {
                self.penalize(id);
                let rank = self.draw();
                self.dead_letters.insert(id, Death { reason: reason.clone(), at: self.now, rank });
                self.enter(id, State::Dead);
                (Answer::Dead, false)
            }
            Outcome::Disregard { reason } => {
                if !reason.is_empty() {
                    self.disregards.insert(id, reason.clone());
                }
                self.enter(id, State::Disregarded);
                (Answer::Disregarded, true)
            }
            Outcome::Release | Outcome::Renew { .. } => {
                if self.planted.is(Fault::ReleasedLast) {
                    self.place_as_admitted(id, self.now);
                }
                self.enter(id, State::Pending);
                (Answer::Released, true)
            }
        }
    }

    /// Expiries and retries in a row have ended.
    pub(super) fn clear_troubles(&mut self, id: EntryId) {
        if let Some(more) = self.urls.existing_more(id) {
            (more.expiries, more.retries) = (0, 0);
        }
    }

    fn record_visit(&mut self, id: EntryId, visit: &Visit, next: Option<Timestamp>) {
        let visits = self.urls.count_visit(id);
        let last = self.urls.last_page(id);
        // A visit that left nothing and will not be repeated is remembered by the URL's state alone.
        if *visit == Visit::default() && next.is_none() && last.is_none() {
            return;
        }
        let changed = last.as_ref().is_some_and(|last| last.visit.digest != visit.digest);
        let changes = last.map_or(0, |last| last.changes).saturating_add(u32::from(changed));
        let page = PageRecord { visited: self.now, visit: visit.clone(), visits, changes, next };
        self.urls.set_page(id, &page);
    }

    /// The queue, and its group, wait: never less long than they already do.
    fn pace(&mut self, id: QueueId, granted: Timestamp, delay: Duration) {
        let from = match self.settings.pace {
            Pace::Settle => self.now,
            Pace::Claim => granted,
        };
        let short = Duration::from_millis(self.planted.is(Fault::DelayOneShort).into());
        let until = Moment { at: from + delay.saturating_sub(short), rank: self.draw() };
        let queue = &self.queues[id];
        let group = queue.group();
        if until > queue.next_fetch {
            self.cancel_queue_timer(id, QueueTimer::Fetch);
            self.queues[id].next_fetch = until;
        }
        if let Some(group) = group
            && !self.planted.is(Fault::GroupForgotten)
        {
            self.pace_group(group, until);
        }
    }
}
