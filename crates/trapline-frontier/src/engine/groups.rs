//! Groups: queues that share a pace.
//!
//! Members that could be served wait here; only the best of them stands in its partition's line, and none while
//! the group waits. So a group's wait begins and ends without touching its members.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::crawl::Crawl;
use super::line::Turn;
use super::moment::Moment;
use super::queues::QueueId;
use super::timers::Event;

/// Where a group lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GroupId(pub(super) u32);

/// One group.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) name: Arc<str>,
    /// When its members may be fetched from again.
    pub(super) next_fetch: Moment,
    /// Whether that lies ahead.
    pub(super) waits: bool,
    /// The members that could be served, by partition.
    pub(super) members: BTreeMap<u16, Members>,
    /// How many of them are inactive and active.
    pub(super) counts: [u64; 2],
    /// Members whose balance is used up: they become inactive when the group's wait ends.
    pub(super) spent: BTreeSet<QueueId>,
    pub(super) timer: Option<Moment>,
}

/// The members of a group in one partition.
#[derive(Debug, Default)]
pub(super) struct Members {
    pub(super) turns: BTreeSet<Turn>,
    /// The one that stands in line for all.
    pub(super) in_line: Option<Turn>,
}

/// All groups of a crawl.
#[derive(Debug, Default)]
pub(super) struct Groups {
    groups: Vec<Group>,
    by_name: BTreeMap<Arc<str>, GroupId>,
}

impl Groups {
    /// All of them, in the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter()
    }

    /// The group of a name, made if there is none.
    pub(super) fn find_or_make(&mut self, name: &Arc<str>) -> GroupId {
        if let Some(id) = self.by_name.get(name) {
            return *id;
        }
        let id = GroupId(self.groups.len() as u32);
        self.groups.push(Group {
            name: Arc::clone(name),
            next_fetch: Moment::default(),
            waits: false,
            members: BTreeMap::new(),
            counts: [0, 0],
            spent: BTreeSet::new(),
            timer: None,
        });
        self.by_name.insert(Arc::clone(name), id);
        id
    }
}

impl std::ops::Index<GroupId> for Groups {
    type Output = Group;

    fn index(&self, id: GroupId) -> &Group {
        &self.groups[id.0 as usize]
    }
}

impl std::ops::IndexMut<GroupId> for Groups {
    fn index_mut(&mut self, id: GroupId) -> &mut Group {
        &mut self.groups[id.0 as usize]
    }
}

impl Crawl {
    /// Whether a group waits now. One without members has no timer to tell it that its wait is over.
    pub(super) fn group_waits(&mut self, id: GroupId) -> bool {
        let now = self.now;
        let group = &mut self.groups[id];
        if group.waits && group.timer.is_none() && group.next_fetch.at <= now {
            group.waits = false;
        }
        group.waits
    }

    pub(super) fn join_group(&mut self, id: GroupId, partition: u16, turn: Turn) {
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

    pub(super) fn leave_group(&mut self, id: GroupId, partition: u16, turn: &Turn) {
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
    fn choose_member(&mut self, id: GroupId, partition: u16) {
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
        spent.sort_by_cached_key(|queue| self.queues[*queue].age());
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
    fn change_group(&mut self, id: GroupId, change: impl FnOnce(&mut Group)) {
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
        let partitions: Vec<u16> = group.members.keys().copied().collect();
        for partition in partitions {
            self.choose_member(id, partition);
        }
        self.set_group_timer(id);
    }
}
