//! How time passes in the oracle's books: leases expire, retries and visits come due, waits, blocks and periods end.

use trapline_core::Timestamp;

use super::books::{Books, Moment};
use super::entry::{Entry, State};

impl Books {
    /// Lets happen what is due by `to`, in the order of its times. Time never goes back.
    pub(super) fn advance(&mut self, to: Timestamp) {
        let to = to.max(self.now);
        loop {
            let moment = self.moments.first().map(|(at, _)| *at);
            let Some(next) = moment.into_iter().chain(self.period_end()).min() else { break };
            if next > to {
                break;
            }
            let ends_period = self.period_end() == Some(next);
            self.now = next.max(self.now);
            self.happen(ends_period);
            if ends_period {
                self.skip_periods(to);
            }
        }
        self.now = to;
        self.check_limits();
    }

    /// When the present budget period ends: the next multiple of its length.
    pub(super) fn period_end(&self) -> Option<Timestamp> {
        let period = u64::try_from(self.settings.queue_budget_period?.as_millis()).ok()?;
        (self.now.as_millis() / period + 1).checked_mul(period).map(Timestamp::from_millis)
    }

    /// Once a period has ended, the end of the next changes nothing unless something happens between.
    fn skip_periods(&mut self, to: Timestamp) {
        let until =
            self.moments.first().map_or(to, |(at, _)| to.min(Timestamp::from_millis(at.as_millis() - 1)));
        if let Some(period) =
            self.settings.queue_budget_period.and_then(|p| u64::try_from(p.as_millis()).ok())
        {
            let last = until.as_millis() / period * period;
            self.now = self.now.max(Timestamp::from_millis(last));
        }
    }

    /// Everything of this instant happens; then queues find their state.
    fn happen(&mut self, ends_period: bool) {
        let mut visits = Vec::new();
        while let Some((at, moment)) = self.moments.first().copied().filter(|(at, _)| *at <= self.now) {
            self.moments.pop_first();
            let Moment::Entry(number) = moment else { continue };
            let Some(entry) = self.entries.get_mut(&number).filter(|entry| entry.state.due() == Some(at))
            else {
                continue;
            };
            match entry.state {
                State::Leased(_) => self.expire(number, at),
                State::Retry(_) => self.set_state(number, State::Pending),
                _ => visits.push((entry.set_by, number, at)),
            }
        }
        visits.sort_unstable();
        for (_, number, at) in visits {
            self.visit_again(number, at);
        }
        if ends_period {
            self.end_period();
        }
        self.refresh(None);
    }

    fn expire(&mut self, number: u64, deadline: Timestamp) {
        self.expired += 1;
        let most = self.settings.max_deliveries;
        let entry = self.entry_mut(number);
        entry.expiries += 1;
        if most > 0 && entry.expiries >= most {
            let queue = entry.queue;
            self.queues[queue].errors += 1;
            self.set_state(number, State::Dead);
        } else {
            entry.first = Some(deadline);
            self.set_state(number, State::Pending);
        }
    }

    /// A visit has come, or a dead letter is replayed: as if admitted now.
    pub(super) fn visit_again(&mut self, number: u64, scheduled: Timestamp) {
        let place = self.next_admission();
        let entry = self.entry_mut(number);
        entry.scheduled = scheduled;
        entry.admitted = place;
        entry.place = place;
        entry.first = None;
        self.set_state(number, State::Pending);
    }

    fn end_period(&mut self) {
        for queue in &mut self.queues {
            queue.spent = 0;
            queue.over_budget = false;
        }
        for number in self.live.values() {
            if let Some(State::Leased(grant)) = self.entries.get_mut(number).map(|entry| &mut entry.state) {
                grant.in_period = false;
            }
        }
    }

    /// The earliest moment ahead at which a queue may supply something, if nothing else happens.
    pub(super) fn supplies_at(&self, index: usize) -> Option<Timestamp> {
        let queue = &self.queues[index];
        if queue.retired_by_hand {
            return None;
        }
        let mut at = queue.blocked_until.max(queue.next_fetch).max(self.group_waits_until(index));
        if queue.over_budget {
            at = at.max(self.period_end()?);
        }
        let most = self.settings.max_deliveries;
        let entries = || queue.members.iter().map(|number| &self.entries[number]);
        if queue.counts.due == 0 {
            let comes_back = |entry: &&Entry| {
                !matches!(entry.state, State::Leased(_)) || most == 0 || entry.expiries + 1 < most
            };
            at = at.max(entries().filter(comes_back).filter_map(|entry| entry.state.due()).min()?);
        }
        if queue.is_full(&self.settings) {
            let leased = entries().filter(|entry| matches!(entry.state, State::Leased(_)));
            at = at.max(leased.filter_map(|entry| entry.state.due()).min()?);
        }
        Some(at)
    }
}
