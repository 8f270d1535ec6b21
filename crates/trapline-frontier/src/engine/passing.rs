//! How time passes: leases expire, retries and visits come due, waits and blocks end, all in the order of their
//! times, before a verb does anything of its own.

use trapline_core::Timestamp;

use super::crawl::{Crawl, Death};
use super::moment::Moment;
use super::queues::{Queue, QueueId};
use super::timers::Event;
use super::urls::{Band, EntryId, State};

impl Crawl {
    /// Lets happen what is due by `now`, and takes a step in the background.
    pub(super) fn advance(&mut self, now: Timestamp) {
        let now = now.max(self.now);
        self.happen_until(now);
        self.now = now;
        self.check_limits();
        self.drop_expired_notes();
        self.work();
    }

    /// Lets happen what is due by `now`, in the order of its times.
    pub(super) fn happen_until(&mut self, now: Timestamp) {
        while let Some(instant) = self.timers.next().filter(|at| *at <= now) {
            self.now = self.now.max(instant);
            self.happen(instant);
        }
    }

    /// Everything of one instant happens; then the queues it touched find their state, in the order of the
    /// commands that brought it about.
    fn happen(&mut self, instant: Timestamp) {
        let mut touched: Vec<QueueId> = Vec::new();
        while let Some((moment, event)) = self.timers.take_at(instant) {
            match event {
                Event::Expiry(lease) => touched.extend(self.expire(lease, moment)),
                Event::Due(entry) => touched.extend(self.come_due(entry, moment)),
                Event::Queue(queue) => {
                    self.queues[queue].timer = None;
                    touched.push(queue);
                }
                Event::Group(group) => self.wake_group(group),
                Event::Period => self.begin_period(moment),
            }
        }
        if touched.len() > 1 {
            touched.sort_by_key(|id| (self.queues[*id].free_since(instant), *id));
            touched.dedup();
        }
        for queue in touched {
            self.refresh(queue);
        }
    }

    /// A lease expires: the URL goes first in its class, or becomes a dead letter if that happened too often.
    fn expire(&mut self, lease: u64, moment: Moment) -> Option<QueueId> {
        let id = self.leases.get(&lease)?.entry;
        self.leases.remove(&lease);
        if self.is_gone(id) {
            self.discard(id);
            return None;
        }
        self.leave_untimed(id);
        self.expired += 1;
        let entry = &mut self.urls[id];
        entry.expiries += 1;
        let (queue, expiries) = (entry.queue, entry.expiries);
        let dies = self.settings.max_deliveries > 0 && expiries >= self.settings.max_deliveries;
        let Queue { full, bare, .. } = self.queues[queue];
        if full || bare && !dies {
            self.queues[queue].freed = self.queues[queue].freed.max(moment);
        }
        if dies {
            self.queues[queue].errors += 1;
            let reason = format!("its lease expired {expiries} times in a row (max_deliveries)");
            self.dead_letters.insert(id, Death { reason, at: moment.at });
            self.enter(id, State::Dead);
        } else {
            let entry = &mut self.urls[id];
            entry.band = Band::Returned;
            entry.place = moment.at.as_millis();
            self.enter(id, State::Pending);
        }
        Some(queue)
    }

    /// A retry, a scheduled URL or a next visit is due.
    fn come_due(&mut self, id: EntryId, moment: Moment) -> Option<QueueId> {
        if self.is_gone(id) {
            self.discard(id);
            return None;
        }
        let retry = self.urls[id].state == State::Retrying;
        self.leave_untimed(id);
        if retry {
            let entry = &mut self.urls[id];
            entry.band = Band::Returned;
            entry.place = moment.at.as_millis();
        } else {
            self.place_as_admitted(id, moment.at);
        }
        self.enter(id, State::Pending);
        let queue = self.urls[id].queue;
        if self.queues[queue].bare {
            self.queues[queue].freed = self.queues[queue].freed.max(moment);
        }
        Some(queue)
    }
}
