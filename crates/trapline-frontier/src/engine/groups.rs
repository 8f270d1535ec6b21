//! Groups: queues that share a pace.
//!
//! Members that could be served wait here; only the best of them stands in its partition's line, and none while
//! the group waits. So a group's wait begins and ends without touching its members.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::line::Turn;
use super::moment::Moment;
use super::queues::QueueId;

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
    pub(super) members: BTreeMap<u32, Members>,
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
