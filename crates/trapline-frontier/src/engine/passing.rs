//! How time passes: leases expire, retries and visits come due, waits and blocks end, all in the order of their
//! times, before a verb does anything of its own.

use trapline_core::Timestamp;

use super::WARMED_MAX;
use super::crawl::{Crawl, Death};
use super::moment::Moment;
use super::queues::{QueueId, QueueTimer};
use super::timers::Event;
use super::urls::{EntryId, State};
use crate::planted::Fault;

impl Crawl {
    /// Lets happen what is due by `now`, and takes a step in the background.
    pub(super) fn advance(&mut self, now: Timestamp) {
        let now = now.max(self.now);
        self.happen_until(now);
        self.now = now;
        self.check_limits();
        self.notes.drop_overdue(now);
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
        // They wake one after the other; what they are is looked up for all of them first, which waits for memory once and not each time.
        let waking = self.timers.waking(instant).take(WARMED_MAX);
        let looked = waking.fold(0, |all, queue| all ^ self.queues.touch(queue));
        std::hint::black_box(looked);
        let mut touched: Vec<QueueId> = Vec::new();
        while let Some((moment, event)) = self.timers.take_at(instant) {
            match event {
                Event::Expiry(lease) => touched.extend(self.expire(lease, moment)),
                Event::Due(entry) => touched.extend(self.come_due(entry, moment)),
                Event::Queue(queue) => {
                    self.queues[queue].timer = QueueTimer::None;
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
        let id = self.leases.remove(lease)?.entry;
        if self.is_gone(id) {
            self.discard(id);
            return None;
        }
        self.leave_untimed(id);
        self.expired += 1;
        let queue = self.urls[id].queue;
        let more = self.urls.more_mut(id);
        more.expiries = more.expiries.saturating_add((!self.planted.is(Fault::ExpiriesUncounted)).into());
        let expiries = more.expiries;
        let dies = self.settings.max_deliveries > 0 && expiries >= self.settings.max_deliveries;
        let lack = self.queues[queue].lack;
        if lack.is_full() || lack.is_bare() && !dies {
            self.queues[queue].freed = self.queues[queue].freed.max(moment);
        }
        if dies {
            self.queues[queue].rare_mut().errors += 1;
            let reason = format!("its lease expired {expiries} times in a row (max_deliveries)");
            let rank = self.draw();
            self.dead_letters.insert(id, Death { reason, at: moment.at, rank });
            self.enter(id, State::Dead);
        } else {
            self.place_as_returned(id, moment.at);
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
        let retry = self.urls.state(id) == State::Retrying;
        self.leave_untimed(id);
        if retry && !self.planted.is(Fault::RetryLast) {
            self.place_as_returned(id, moment.at);
        } else {
            self.place_as_admitted(id, moment.at);
        }
        self.enter(id, State::Pending);
        let queue = self.urls[id].queue;
        if self.queues[queue].lack.is_bare() {
            self.queues[queue].freed = self.queues[queue].freed.max(moment);
        }
        Some(queue)
    }
}
