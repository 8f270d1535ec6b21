//! How a queue finds its state and its place in line.
//!
//! [`Crawl::refresh`] is called for every queue that something happened to. It works out the state from what the
//! queue remembers, gives it an age when its last hindrance has ended, ends and begins sessions, sets its timer, and
//! puts it in line.

use trapline_core::Timestamp;

use super::crawl::Crawl;
use super::line::Turn;
use super::moment::{Age, Moment};
use super::queues::{Lack, Queue, QueueId, QueueTimer, Retired, Standing};
use super::timers::Event;
use crate::planted::Fault;
use crate::report::QueueState;

impl Crawl {
    /// A queue finds its state.
    pub(super) fn refresh(&mut self, id: QueueId) {
        let queue = &self.queues[id];
        if self.stays(queue) {
            if queue.lack != Lack::Nothing {
                self.queues[id].lack = Lack::Nothing;
            }
            return;
        }
        let is_plain = queue.rare.is_none();
        if queue.standing != Standing::Nowhere {
            self.stand_down(id);
        }
        // Most have neither been retired nor a group.
        let (mut reconsidered, mut waits) = (None, false);
        if !is_plain {
            reconsidered = self.notice_reconsideration(id);
            waits = self.queues[id].group().is_some_and(|group| self.group_waits(group));
        }

        let now = self.now;
        let queue = &mut self.queues[id];
        let (pending, leased) = (queue.pending(), queue.leased);
        if pending == 0 && leased == 0 {
            queue.active = false;
            queue.vacant = true;
        } else if queue.vacant && pending > 0 {
            queue.vacant = false;
            if !self.settings.hold_queues && queue.retired().is_none() {
                queue.active = true;
                queue.balance = as_balance(queue.balance_replenish(&self.settings));
            }
        }

        let bare = queue.order.is_empty();
        let full = queue.is_full(&self.settings) && !self.planted.is(Fault::WokenTwice);
        queue.lack = Lack::of(bare, full);
        let hindrance = if queue.blocked().at > now {
            Some((QueueState::Blocked, QueueTimer::Block))
        } else if pending == 0 && leased == 0 {
            Some((QueueState::Empty, QueueTimer::None))
        } else if full || pending == 0 {
            Some((QueueState::Busy, QueueTimer::None))
        } else if queue.next_fetch.at > now {
            Some((QueueState::Snoozed, QueueTimer::Fetch))
        } else if bare {
            Some((QueueState::Snoozed, QueueTimer::None))
        } else {
            None
        };

        let (base, timer) = hindrance.unwrap_or_else(|| {
            if !is_free(queue.base) && queue.retired().is_none() {
                let since = queue.free_since(now);
                let together = reconsidered == Some(since);
                let age = if together { queue.age().reconsidered(since) } else { Age::since(since) };
                queue.set_age(age);
            }
            (if queue.active { QueueState::Ready } else { QueueState::Inactive }, QueueTimer::None)
        });
        let exhausted = base == QueueState::Ready && queue.balance <= 0 && !waits;
        self.census.change_state(queue, self.generation, base);
        let has_timer = queue.timer == timer;
        if exhausted {
            self.deactivate(id);
        }
        if !has_timer {
            self.set_queue_timer(id, timer);
        }
        if is_free(base) {
            self.stand_up(id);
        }
    }

    /// Whether a queue that stands in line can stay where it is: the common case when it is given one more URL.
    fn stays(&self, queue: &Queue) -> bool {
        let stands = match queue.standing {
            Standing::Nowhere => false,
            Standing::InLine | Standing::InGroup => true,
            Standing::Aside => queue.retired() == Some(Retired::OverBudget(self.generation)),
        };
        stands
            && !queue.order.is_empty()
            && !queue.is_full(&self.settings)
            && queue.blocked().at.max(queue.next_fetch.at) <= self.now
            && (!queue.active || queue.balance > 0)
    }

    /// Ends a session: the queue goes behind all inactive ones of its precedence. It must not stand in line.
    fn deactivate(&mut self, id: QueueId) {
        let since = self.this_moment();
        let queue = &mut self.queues[id];
        queue.active = false;
        queue.set_age(Age::since(since));
        self.census.change_state(queue, self.generation, QueueState::Inactive);
    }

    /// If all queues over their budget were reconsidered since this one retired, it is retired no more. Answers
    /// when that was.
    fn notice_reconsideration(&mut self, id: QueueId) -> Option<Moment> {
        let queue = &mut self.queues[id];
        let Some(Retired::OverBudget(generation)) = queue.retired() else { return None };
        if generation == self.generation {
            return None;
        }
        let since = self.reconsidered[generation as usize];
        queue.rare_mut().retired = None;
        queue.freed = queue.freed.max(since);
        Some(since)
    }

    pub(super) fn is_retired(&self, queue: &Queue) -> bool {
        match queue.retired() {
            None => false,
            Some(Retired::ByHand) => true,
            Some(Retired::OverBudget(generation)) => generation == self.generation,
        }
    }

    /// The queue's place in line, if it has one.
    pub(super) fn turn_of(&self, id: QueueId) -> Turn {
        self.turn(id, &self.queues[id])
    }

    fn turn(&self, id: QueueId, queue: &Queue) -> Turn {
        let precedence = queue.precedence();
        let precedence = if self.planted.is(Fault::PrecedenceInverted) { !precedence } else { precedence };
        Turn { precedence, inactive: !queue.active, age: queue.age(), queue: id }
    }

    /// Puts a queue where it waits for its turn, if it can supply.
    pub(super) fn stand_up(&mut self, id: QueueId) {
        let queue = &self.queues[id];
        debug_assert_eq!(queue.standing, Standing::Nowhere, "{} stands already", queue.key);
        let (partition, retired) = (queue.partition, queue.retired());
        if !is_free(queue.base) || retired == Some(Retired::ByHand) {
            return;
        }
        let (group, turn) = (queue.group(), self.turn(id, queue));
        self.queues[id].standing = match (retired, group) {
            (Some(_), _) => {
                self.lines.of(partition).step_aside(turn);
                Standing::Aside
            }
            (None, None) => {
                self.lines.of(partition).join(turn);
                Standing::InLine
            }
            (None, Some(group)) => {
                self.join_group(group, partition, turn);
                Standing::InGroup
            }
        };
    }

    /// Takes a queue from where it waits. To be called before anything changes that its place depends on.
    pub(super) fn stand_down(&mut self, id: QueueId) {
        let queue = &self.queues[id];
        let standing = queue.standing;
        if standing == Standing::Nowhere {
            return;
        }
        let (partition, retired, group) = (queue.partition, queue.retired(), queue.group());
        let turn = self.turn(id, queue);
        self.queues[id].standing = Standing::Nowhere;
        match (standing, retired, group) {
            (Standing::InGroup, _, Some(group)) => self.leave_group(group, partition, &turn),
            (Standing::Aside, Some(Retired::OverBudget(generation)), _) => {
                let line = self.lines.of(partition);
                if let Some(age) = line.leave_aside(&turn, generation, self.generation) {
                    self.queues[id].set_age(age);
                }
            }
            _ => self.lines.of(partition).leave(&turn),
        }
    }

    /// Gives a queue the timer it needs, which it does not have. Its moment must not have changed since that was set.
    fn set_queue_timer(&mut self, id: QueueId, timer: QueueTimer) {
        let queue = &mut self.queues[id];
        let before = queue.timer_moment();
        queue.timer = timer;
        let after = queue.timer_moment();
        if let Some(moment) = before {
            self.timers.cancel(moment, Event::Queue(id));
        }
        if let Some(moment) = after {
            self.timers.set(moment, Event::Queue(id));
        }
    }

    /// Cancels a queue's timer if it waits for this: to be called before its moment changes.
    pub(super) fn cancel_queue_timer(&mut self, id: QueueId, timer: QueueTimer) {
        let queue = &mut self.queues[id];
        if queue.timer == timer
            && let Some(moment) = queue.timer_moment()
        {
            queue.timer = QueueTimer::None;
            self.timers.cancel(moment, Event::Queue(id));
        }
    }

    /// How long a queue has been waiting, or from when on it will be: what orders all queues as they are served, as far
    /// as that is known.
    pub(super) fn age_to_be(&self, queue: &Queue) -> Age {
        if !is_free(queue.base) {
            return Age::since(queue.freed.max(queue.next_fetch).max(queue.blocked()));
        }
        match queue.retired() {
            Some(Retired::OverBudget(generation)) if generation != self.generation => {
                queue.age().reconsidered(self.reconsidered[generation as usize])
            }
            _ => queue.age(),
        }
    }

    /// The state the outside sees.
    pub(super) fn state_of(&self, queue: &Queue) -> QueueState {
        let held = queue.group().is_some_and(|group| self.groups[group].next_fetch.at > self.now);
        if self.is_retired(queue) {
            QueueState::Retired
        } else if is_free(queue.base) && held {
            QueueState::Snoozed
        } else {
            queue.base
        }
    }

    /// Until when a queue waits, for itself or with its group.
    pub(super) fn next_fetch_of(&self, queue: &Queue) -> Option<Timestamp> {
        let group = queue.group().map_or(Timestamp::ZERO, |group| self.groups[group].next_fetch.at);
        Some(queue.next_fetch.at.max(group)).filter(|at| *at > self.now)
    }
}

/// A balance from what is to be replenished.
pub(super) fn as_balance(replenish: u64) -> i64 {
    i64::try_from(replenish).unwrap_or(i64::MAX)
}

pub(super) fn is_free(base: QueueState) -> bool {
    matches!(base, QueueState::Ready | QueueState::Inactive)
}
