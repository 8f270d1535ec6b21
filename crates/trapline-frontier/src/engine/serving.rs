//! How a queue finds its state and its place in line.
//!
//! [`Crawl::refresh`] is called for every queue that something happened to. It works out the state from what the
//! queue remembers, gives it an age when its last hindrance has ended, ends and begins sessions, sets its timer, and
//! puts it in line.

use trapline_core::Timestamp;

use super::crawl::Crawl;
use super::line::Turn;
use super::moment::{Age, Moment};
use super::queues::{Queue, QueueId, Retired, Standing};
use super::timers::Event;
use crate::report::QueueState;

impl Crawl {
    /// A queue finds its state.
    pub(super) fn refresh(&mut self, id: QueueId) {
        if self.stays(id) {
            let queue = &mut self.queues[id];
            (queue.bare, queue.full) = (false, false);
            self.census.remove(queue, self.generation);
            self.census.add(queue, self.generation);
            return;
        }
        self.stand_down(id);
        self.census.remove(&self.queues[id], self.generation);
        let reconsidered = self.notice_reconsideration(id);

        let now = self.now;
        let waits = self.queues[id].group.is_some_and(|group| self.group_waits(group));
        let queue = &mut self.queues[id];
        let (pending, leased) = (queue.pending(), queue.leased);
        if pending == 0 && leased == 0 {
            queue.active = false;
            queue.vacant = true;
        } else if queue.vacant && pending > 0 {
            queue.vacant = false;
            if !self.settings.hold_queues && queue.retired.is_none() {
                queue.active = true;
                queue.balance = as_balance(queue.balance_replenish(&self.settings));
            }
        }

        queue.bare = queue.order.is_empty();
        queue.full = queue.is_full(&self.settings);
        let hindrance = if queue.blocked.at > now {
            Some((QueueState::Blocked, Some(queue.blocked)))
        } else if pending == 0 && leased == 0 {
            Some((QueueState::Empty, None))
        } else if queue.full || pending == 0 {
            Some((QueueState::Busy, None))
        } else if queue.next_fetch.at > now {
            Some((QueueState::Snoozed, Some(queue.next_fetch)))
        } else if queue.bare {
            Some((QueueState::Snoozed, None))
        } else {
            None
        };

        let (base, timer) = hindrance.unwrap_or_else(|| {
            if !is_free(queue.base) && queue.retired.is_none() {
                let since = queue.free_since(now);
                let together = reconsidered == Some(since);
                queue.age = if together { queue.age.reconsidered(since) } else { Age::since(since) };
            }
            (if queue.active { QueueState::Ready } else { QueueState::Inactive }, None)
        });
        queue.base = base;
        if base == QueueState::Ready && queue.balance <= 0 && !waits {
            self.deactivate(id);
        }
        self.set_queue_timer(id, timer);
        self.census.add(&mut self.queues[id], self.generation);
        self.stand_up(id);
    }

    /// Whether a queue that stands in line can stay where it is: the common case when it is given one more URL.
    fn stays(&self, id: QueueId) -> bool {
        let queue = &self.queues[id];
        let stands = match queue.standing {
            Standing::Nowhere => false,
            Standing::InLine | Standing::InGroup => true,
            Standing::Aside(generation) => generation == self.generation,
        };
        stands
            && !queue.order.is_empty()
            && !queue.is_full(&self.settings)
            && queue.blocked.at.max(queue.next_fetch.at) <= self.now
            && (!queue.active || queue.balance > 0)
    }

    /// Ends a session: the queue goes behind all inactive ones of its precedence. It must not stand in line.
    fn deactivate(&mut self, id: QueueId) {
        let since = self.this_moment();
        let queue = &mut self.queues[id];
        queue.active = false;
        queue.base = QueueState::Inactive;
        queue.age = Age::since(since);
    }

    /// If all queues over their budget were reconsidered since this one retired, it is retired no more. Answers
    /// when that was.
    fn notice_reconsideration(&mut self, id: QueueId) -> Option<Moment> {
        let queue = &mut self.queues[id];
        let Some(Retired::OverBudget(generation)) = queue.retired else { return None };
        if generation == self.generation {
            return None;
        }
        let since = self.reconsidered[generation as usize];
        queue.retired = None;
        queue.freed = queue.freed.max(since);
        Some(since)
    }

    pub(super) fn is_retired(&self, queue: &Queue) -> bool {
        match queue.retired {
            None => false,
            Some(Retired::ByHand) => true,
            Some(Retired::OverBudget(generation)) => generation == self.generation,
        }
    }

    /// The queue's place in line, if it has one.
    pub(super) fn turn_of(&self, id: QueueId) -> Turn {
        let queue = &self.queues[id];
        Turn { precedence: queue.precedence(), inactive: !queue.active, age: queue.age.clone(), queue: id }
    }

    /// Puts a queue where it waits for its turn, if it can supply.
    pub(super) fn stand_up(&mut self, id: QueueId) {
        let turn = self.turn_of(id);
        let queue = &mut self.queues[id];
        debug_assert_eq!(queue.standing, Standing::Nowhere, "{} stands already", queue.key);
        let partition = queue.partition;
        if !is_free(queue.base) {
            return;
        }
        match (queue.retired, queue.group) {
            (Some(Retired::ByHand), _) => {}
            (Some(Retired::OverBudget(generation)), _) => {
                queue.standing = Standing::Aside(generation);
                self.lines.of(partition).step_aside(turn);
            }
            (None, None) => {
                queue.standing = Standing::InLine;
                self.lines.of(partition).join(turn);
            }
            (None, Some(group)) => {
                queue.standing = Standing::InGroup;
                self.join_group(group, partition, turn);
            }
        }
    }

    /// Takes a queue from where it waits. To be called before anything changes that its place depends on.
    pub(super) fn stand_down(&mut self, id: QueueId) {
        let turn = self.turn_of(id);
        let queue = &mut self.queues[id];
        let partition = queue.partition;
        match std::mem::replace(&mut queue.standing, Standing::Nowhere) {
            Standing::Nowhere => {}
            Standing::InLine => self.lines.of(partition).leave(&turn),
            Standing::InGroup => {
                if let Some(group) = queue.group {
                    self.leave_group(group, partition, &turn);
                }
            }
            Standing::Aside(generation) => {
                let line = self.lines.of(partition);
                if let Some(age) = line.leave_aside(&turn, generation, self.generation) {
                    queue.age = age;
                }
            }
        }
    }

    fn set_queue_timer(&mut self, id: QueueId, timer: Option<Moment>) {
        let queue = &mut self.queues[id];
        if queue.timer == timer {
            return;
        }
        if let Some(old) = std::mem::replace(&mut queue.timer, timer) {
            self.timers.cancel(old, Event::Queue(id));
        }
        if let Some(new) = timer {
            self.timers.set(new, Event::Queue(id));
        }
    }

    /// The state the outside sees.
    pub(super) fn state_of(&self, queue: &Queue) -> QueueState {
        let held = queue.group.is_some_and(|group| self.groups[group].next_fetch.at > self.now);
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
        let group = queue.group.map_or(Timestamp::ZERO, |group| self.groups[group].next_fetch.at);
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
