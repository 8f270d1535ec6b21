//! The oracle's books: what was added, what is leased until when, what each queue has spent, when it may be asked next.
//!
//! Kept from commands and answers alone, by the contract. It shares no code with the engine; in particular it has no
//! lines, no ages and no ranks, so it knows who may be served, but not always whose turn it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use trapline_core::{Identity, Timestamp, partition_of};
use trapline_frontier::{LeaseId, QueueState, Settings, UrlState};

use super::entry::{Entry, Grant, State};
use super::queue::{Counts, Queue};

/// Everything known of one crawl.
#[derive(Clone)]
pub(super) struct Books {
    pub(super) settings: Settings,
    pub(super) partitions: u32,
    pub(super) now: Timestamp,
    pub(super) is_paused: bool,
    pub(super) is_finished: bool,
    pub(super) queues: Vec<Queue>,
    by_key: BTreeMap<String, usize>,
    pub(super) entries: BTreeMap<u64, Entry>,
    /// Oldest first.
    by_identity: BTreeMap<Identity, Vec<u64>>,
    pub(super) live: BTreeMap<LeaseId, u64>,
    /// Until when each group waits.
    pub(super) groups: BTreeMap<Arc<str>, Timestamp>,
    /// Moments ahead at which something was once said to happen; some are stale.
    pub(super) moments: BTreeSet<(Timestamp, Moment)>,
    entered: u64,
    admissions: i64,
    commands: u64,
    pub(super) granted: u64,
    pub(super) expired: u64,
    pub(super) fetched: u64,
    pub(super) bytes: u64,
    /// On all queues since the crawl began.
    pub(super) spent: u64,
}

/// Whose moment it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Moment {
    Entry(u64),
    Queue(usize),
    /// Of a group: its members look for themselves.
    Group,
}

impl Books {
    pub(super) fn new(settings: Settings, partitions: u32) -> Self {
        Self {
            settings,
            partitions,
            now: Timestamp::ZERO,
            is_paused: false,
            is_finished: false,
            queues: Vec::new(),
            by_key: BTreeMap::new(),
            entries: BTreeMap::new(),
            by_identity: BTreeMap::new(),
            live: BTreeMap::new(),
            groups: BTreeMap::new(),
            moments: BTreeSet::new(),
            entered: 0,
            admissions: 0,
            commands: 0,
            granted: 0,
            expired: 0,
            fetched: 0,
            bytes: 0,
            spent: 0,
        }
    }

    pub(super) fn next_command(&mut self) -> u64 {
        self.commands += 1;
        self.commands
    }

    pub(super) fn next_admission(&mut self) -> i64 {
        self.admissions += 1;
        self.admissions
    }

    pub(super) fn find_queue(&self, key: &str) -> Option<usize> {
        self.by_key.get(key).copied()
    }

    /// The queue of a key, which comes to be if nobody knows it.
    pub(super) fn queue(&mut self, key: &str) -> usize {
        self.find_queue(key).unwrap_or_else(|| {
            self.queues.push(Queue::new(key, partition_of(key, self.partitions)));
            self.by_key.insert(key.to_owned(), self.queues.len() - 1);
            self.queues.len() - 1
        })
    }

    /// The entries of a URL, oldest first.
    pub(super) fn entries_of(&self, identity: Identity) -> &[u64] {
        self.by_identity.get(&identity).map_or(&[], Vec::as_slice)
    }

    /// The newest entry of a URL.
    pub(super) fn newest(&self, identity: Identity) -> Option<&Entry> {
        self.entries_of(identity).last().map(|number| &self.entries[number])
    }

    /// The state of a URL.
    pub(super) fn state_of(&self, identity: Identity) -> UrlState {
        self.newest(identity).map_or(UrlState::Unknown, |entry| entry.state.shown())
    }

    /// A new entry.
    pub(super) fn enter(&mut self, entry: Entry) {
        self.entered += 1;
        let queue = &mut self.queues[entry.queue];
        queue.members.insert(self.entered);
        queue.counts.add(entry.state);
        self.by_identity.entry(entry.identity).or_default().push(self.entered);
        self.note_due(self.entered, entry.state);
        self.entries.insert(self.entered, entry);
    }

    /// An entry that is known.
    pub(super) fn entry_mut(&mut self, number: u64) -> &mut Entry {
        self.entries.get_mut(&number).expect("an entry by the number it has")
    }

    /// An entry takes another state.
    pub(super) fn set_state(&mut self, number: u64, state: State) {
        let entry = self.entry_mut(number);
        let before = std::mem::replace(&mut entry.state, state);
        let queue = entry.queue;
        let counts = &mut self.queues[queue].counts;
        counts.remove(before);
        counts.add(state);
        if let State::Leased(Grant { id, .. }) = before {
            self.live.remove(&id);
        }
        if let State::Leased(Grant { id, .. }) = state {
            self.live.insert(id, number);
        }
        self.note_due(number, state);
    }

    fn note_due(&mut self, number: u64, state: State) {
        self.moments.extend(state.due().map(|due| (due, Moment::Entry(number))));
    }

    /// An entry becomes unknown; a lease of it ends.
    pub(super) fn forget(&mut self, number: u64) {
        let entry = self.entries.remove(&number).expect("only what is known is forgotten");
        let queue = &mut self.queues[entry.queue];
        queue.members.remove(&number);
        queue.counts.remove(entry.state);
        if let State::Leased(Grant { id, .. }) = entry.state {
            self.live.remove(&id);
        }
        if let Some(entries) = self.by_identity.get_mut(&entry.identity) {
            entries.retain(|known| *known != number);
            if entries.is_empty() {
                self.by_identity.remove(&entry.identity);
            }
        }
    }

    /// The entry that a queue hands out next, if one is due.
    pub(super) fn head(&self, queue: usize) -> Option<u64> {
        let due = |number: &&u64| self.entries[number].state == State::Pending;
        let order = self.settings.order;
        self.queues[queue]
            .members
            .iter()
            .filter(due)
            .min_by(|a, b| self.entries[a].compare(&self.entries[b], order))
            .copied()
    }

    /// Whether a queue's next URL may be paid for.
    pub(super) fn fits(&self, queue: usize) -> bool {
        let terms = self.queues[queue].in_force(&self.settings);
        let cost = self.head(queue).map_or(0, |head| u64::from(self.entries[&head].cost));
        terms.replenish > 0
            && terms.budget.is_none_or(|budget| self.queues[queue].spent.saturating_add(cost) <= budget)
    }

    pub(super) fn group_waits_until(&self, queue: usize) -> Timestamp {
        let group = self.queues[queue].in_force(&self.settings).group;
        group.and_then(|group| self.groups.get(&group)).copied().unwrap_or(Timestamp::ZERO)
    }

    /// Whether anything but its group keeps a queue from being served.
    pub(super) fn is_hindered(&self, index: usize) -> bool {
        let queue = &self.queues[index];
        queue.is_retired()
            || queue.blocked_until > self.now
            || queue.counts.due == 0
            || queue.next_fetch > self.now
            || queue.is_full(&self.settings)
    }

    /// Whether a claim may serve a queue, if it can pay.
    pub(super) fn is_eligible(&self, queue: usize) -> bool {
        !self.is_hindered(queue) && self.group_waits_until(queue) <= self.now
    }

    /// The state of a queue.
    pub(super) fn queue_state(&self, index: usize) -> QueueState {
        let queue = &self.queues[index];
        if queue.is_retired() {
            QueueState::Retired
        } else if queue.blocked_until > self.now {
            QueueState::Blocked
        } else if queue.is_empty() {
            QueueState::Empty
        } else if queue.is_full(&self.settings) || queue.counts.pending() == 0 {
            QueueState::Busy
        } else if !self.is_eligible(index) {
            QueueState::Snoozed
        } else if queue.active {
            QueueState::Ready
        } else {
            QueueState::Inactive
        }
    }

    /// Outside retired queues nothing is pending or waits for a visit, and no lease is out.
    pub(super) fn is_exhausted(&self) -> bool {
        let open = |counts: &Counts| counts.pending() + counts.visits > 0;
        self.live.is_empty() && self.queues.iter().all(|queue| queue.is_retired() || !open(&queue.counts))
    }

    /// Queues find their state: sessions end and begin. One of them may have to wait until its links are in.
    pub(super) fn refresh(&mut self, except: Option<usize>) {
        for index in (0..self.queues.len()).filter(|index| Some(*index) != except) {
            let is_hindered = self.is_hindered(index);
            let settings = &self.settings;
            let queue = &mut self.queues[index];
            if queue.was_hindered && !is_hindered {
                queue.free_since = self.now;
            }
            queue.was_hindered = is_hindered;
            let is_empty = queue.is_empty();
            if is_empty {
                queue.active = false;
            } else if queue.was_empty && !settings.hold_queues && !queue.is_retired() {
                queue.activate(settings);
            }
            queue.was_empty = is_empty;
            if queue.active && queue.balance <= 0 && self.is_eligible(index) {
                self.queues[index].active = false;
                self.queues[index].free_since = self.now;
            }
        }
    }

    /// Finishes at a limit that is reached.
    pub(super) fn check_limits(&mut self) {
        let Settings { max_urls, max_bytes, max_time, .. } = self.settings;
        self.is_finished |= max_urls.is_some_and(|most| self.fetched >= most)
            || max_bytes.is_some_and(|most| self.bytes >= most)
            || max_time.is_some_and(|most| self.now >= Timestamp::ZERO + most);
    }
}
