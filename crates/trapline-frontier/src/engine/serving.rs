//! How a queue finds its state and its place in line.
//!
//! [`Crawl::refresh`] is called for every queue that something happened to. It works out the state from what the
//! queue remembers, gives it an age when its last hindrance has ended, ends and begins sessions, sets its timer, and
//! puts it in line. [`Census`] keeps the counts that follow from it.

use trapline_core::Timestamp;

use super::crawl::Crawl;
use super::groups::GroupId;
use super::line::Turn;
use super::moment::{Age, Moment};
use super::queues::{Queue, QueueId, Retired, Standing};
use super::timers::Event;
use crate::report::QueueState;

impl Crawl {
    /// A queue finds its state.
    pub(super) fn refresh(&mut self, id: QueueId) {
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

    // ---- groups

    /// Whether a group waits now. One without members has no timer to tell it that its wait is over.
    pub(super) fn group_waits(&mut self, id: GroupId) -> bool {
        let now = self.now;
        let group = &mut self.groups[id];
        if group.waits && group.timer.is_none() && group.next_fetch.at <= now {
            group.waits = false;
        }
        group.waits
    }

    fn join_group(&mut self, id: GroupId, partition: u32, turn: Turn) {
        let waits = self.group_waits(id);
        let group = &mut self.groups[id];
        let active = usize::from(!turn.inactive);
        if waits && active == 1 && self.queues[turn.queue].balance <= 0 {
            group.spent.insert(turn.queue);
        }
        group.members.entry(partition).or_default().turns.insert(turn);
        group.counts[active] += 1;
        if waits {
            self.census.held_by_groups[active] += 1;
        }
        self.choose_member(id, partition);
        self.set_group_timer(id);
    }

    fn leave_group(&mut self, id: GroupId, partition: u32, turn: &Turn) {
        let group = &mut self.groups[id];
        if let Some(members) = group.members.get_mut(&partition) {
            members.turns.remove(turn);
        }
        let active = usize::from(!turn.inactive);
        group.counts[active] -= 1;
        group.spent.remove(&turn.queue);
        if group.waits {
            self.census.held_by_groups[active] -= 1;
        }
        self.choose_member(id, partition);
        self.set_group_timer(id);
    }

    /// Lets the best member of a group stand in line, or none while the group waits.
    fn choose_member(&mut self, id: GroupId, partition: u32) {
        let group = &mut self.groups[id];
        let waits = group.waits;
        let Some(members) = group.members.get_mut(&partition) else { return };
        let best = members.turns.first().filter(|_| !waits).cloned();
        let line = self.lines.of(partition);
        if members.in_line != best {
            if let Some(old) = std::mem::replace(&mut members.in_line, best.clone()) {
                line.leave(&old);
            }
            if let Some(new) = best {
                line.join(new);
            }
        }
        if members.turns.is_empty() {
            group.members.remove(&partition);
        }
    }

    /// A timer for the end of a group's wait, as long as a member waits for it.
    fn set_group_timer(&mut self, id: GroupId) {
        let group = &mut self.groups[id];
        let timer = (group.waits && !group.members.is_empty()).then_some(group.next_fetch);
        if group.timer == timer {
            return;
        }
        if let Some(old) = std::mem::replace(&mut group.timer, timer) {
            self.timers.cancel(old, Event::Group(id));
        }
        if let Some(new) = timer {
            self.timers.set(new, Event::Group(id));
        }
    }

    /// A group's wait has ended.
    pub(super) fn wake_group(&mut self, id: GroupId) {
        let group = &mut self.groups[id];
        group.timer = None;
        self.change_group(id, |group| group.waits = false);
        let mut spent: Vec<_> = self.groups[id].spent.iter().copied().collect();
        spent.sort_by(|a, b| self.queues[*a].age.cmp(&self.queues[*b].age));
        for queue in spent {
            self.refresh(queue);
        }
    }

    /// A group is not to be fetched from before `until`.
    pub(super) fn pace_group(&mut self, id: GroupId, until: Moment) {
        let now = self.now;
        if until.at < self.groups[id].next_fetch.at {
            return;
        }
        self.group_waits(id);
        self.change_group(id, |group| {
            group.next_fetch = until;
            group.waits |= until.at > now;
        });
    }

    /// Changes whether and how long a group waits, and lets its members in line follow.
    fn change_group(&mut self, id: GroupId, change: impl FnOnce(&mut super::groups::Group)) {
        let group = &mut self.groups[id];
        let before = group.waits;
        change(group);
        for active in [0, 1] {
            match (before, group.waits) {
                (false, true) => self.census.held_by_groups[active] += group.counts[active],
                (true, false) => self.census.held_by_groups[active] -= group.counts[active],
                _ => {}
            }
        }
        let partitions: Vec<u32> = group.members.keys().copied().collect();
        for partition in partitions {
            self.choose_member(id, partition);
        }
        self.set_group_timer(id);
    }

    // ---- retiring

    /// Retires a queue, which ends its session.
    pub(super) fn retire(&mut self, id: QueueId, why: Retired) {
        self.stand_down(id);
        self.census.remove(&self.queues[id], self.generation);
        let queue = &mut self.queues[id];
        queue.retired = Some(why);
        queue.active = false;
        if queue.base == QueueState::Ready {
            queue.base = QueueState::Inactive;
        }
        self.census.add(&mut self.queues[id], self.generation);
        self.stand_up(id);
        if matches!(why, Retired::OverBudget(_)) {
            self.set_period_timer();
        }
    }

    /// A retired queue is served again, as of this moment. It must find its state afterwards.
    pub(super) fn unretire(&mut self, id: QueueId) {
        let since = self.this_moment();
        self.stand_down(id);
        self.census.remove(&self.queues[id], self.generation);
        let queue = &mut self.queues[id];
        queue.retired = None;
        queue.freed = queue.freed.max(since);
        queue.age = Age::since(since);
        self.census.add(&mut self.queues[id], self.generation);
    }

    /// If a queue is over its budget, it gets another chance. It must find its state afterwards.
    pub(super) fn reconsider(&mut self, id: QueueId) {
        let queue = &self.queues[id];
        if queue.retired == Some(Retired::OverBudget(self.generation)) {
            self.unretire(id);
        }
    }

    /// All queues over their budget get another chance, as of a moment, without being touched.
    pub(super) fn reconsider_all(&mut self, since: Moment) {
        self.lines.reconsider(self.generation, since);
        self.generation += 1;
        self.reconsidered.push(since);
        self.census.reconsider_all();
    }

    /// A new budget period begins: what is spent starts at 0.
    pub(super) fn begin_period(&mut self, moment: Moment) {
        self.period_timer = None;
        self.reconsider_all(moment);
    }

    /// A timer for the end of the period, as long as a queue waits for it.
    pub(super) fn set_period_timer(&mut self) {
        let end = self.period_ends().filter(|_| self.census.over_budget() > 0);
        // The command that set the periods set their ends.
        let timer = end.map(|at| Moment { at, rank: self.period_set.rank });
        if self.period_timer == timer {
            return;
        }
        if let Some(old) = std::mem::replace(&mut self.period_timer, timer) {
            self.timers.cancel(old, Event::Period);
        }
        if let Some(new) = timer {
            self.timers.set(new, Event::Period);
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

fn is_free(base: QueueState) -> bool {
    matches!(base, QueueState::Ready | QueueState::Inactive)
}

/// How many queues are in which state, and how much there is to do, inside and outside retired ones.
#[derive(Debug, Default)]
pub(super) struct Census {
    live: Count,
    by_hand: Count,
    /// In the present generation.
    over_budget: Count,
    /// Inactive and ready queues that a waiting group holds back.
    pub(super) held_by_groups: [u64; 2],
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    states: [u64; 7],
    pending: u64,
    visits: u64,
}

impl Count {
    fn queues(&self) -> u64 {
        self.states.iter().sum()
    }
}

impl Census {
    fn count(&mut self, queue: &Queue, generation: u64) -> &mut Count {
        match queue.retired {
            Some(Retired::ByHand) => &mut self.by_hand,
            Some(Retired::OverBudget(its)) if its == generation => &mut self.over_budget,
            _ => &mut self.live,
        }
    }

    /// Counts a queue as it is now.
    pub(super) fn add(&mut self, queue: &mut Queue, generation: u64) {
        queue.counted = (queue.pending(), queue.visits);
        let count = self.count(queue, generation);
        count.states[queue.base as usize] += 1;
        count.pending += u64::from(queue.pending());
        count.visits += u64::from(queue.visits);
    }

    /// Takes a queue out, as it was counted.
    fn remove(&mut self, queue: &Queue, generation: u64) {
        let (pending, visits) = queue.counted;
        let count = self.count(queue, generation);
        count.states[queue.base as usize] -= 1;
        count.pending -= u64::from(pending);
        count.visits -= u64::from(visits);
    }

    fn reconsider_all(&mut self) {
        let Count { states, pending, visits } = std::mem::take(&mut self.over_budget);
        for (live, more) in self.live.states.iter_mut().zip(states) {
            *live += more;
        }
        self.live.pending += pending;
        self.live.visits += visits;
    }

    fn over_budget(&self) -> u64 {
        self.over_budget.queues()
    }

    pub(super) fn nothing_to_do(&self) -> bool {
        self.live.pending == 0 && self.live.visits == 0
    }

    /// How many queues are in each state, as the outside sees it.
    pub(super) fn queues(&self) -> [u64; 7] {
        let mut states = self.live.states;
        states[QueueState::Retired as usize] = self.by_hand.queues() + self.over_budget.queues();
        let [inactive, ready] = self.held_by_groups;
        states[QueueState::Inactive as usize] -= inactive;
        states[QueueState::Ready as usize] -= ready;
        states[QueueState::Snoozed as usize] += inactive + ready;
        states
    }

    /// Done URLs that wait for their next visit.
    pub(super) fn visits(&self) -> u64 {
        self.live.visits + self.by_hand.visits + self.over_budget.visits
    }
}
