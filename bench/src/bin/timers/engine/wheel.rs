//! The rival of the engine's timers: a timer wheel. Rings of 64 slots, each slot of a ring as wide as a whole ring of
//! the level below; a slot of the lowest ring is one millisecond.
//!
//! An ordinary wheel has a hand and opens a slot when the hand comes to it. It cannot say when something will happen
//! next without searching the first slot, which may hold every lease there is. So this one opens the first slot at
//! once, as far down as is needed to make it one instant: rings are made where time comes near and freed behind.

use trapline_core::Timestamp;

use super::groups::GroupId;
use super::moment::{Moment, Rank};
use super::queues::QueueId;
use super::timers::Event;
use super::urls::EntryId;

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const NONE: u32 = u32::MAX;

/// One timer, or the note that one was cancelled. 32 bytes.
#[derive(Clone, Copy)]
struct Node {
    at: u64,
    rank: Rank,
    id: u64,
    kind: u8,
    cancelled: bool,
    next: u32,
}

/// A ring below, or a list of timers in no order: what was set, and what was cancelled of it.
#[derive(Clone, Copy)]
struct Slot {
    head: u32,
    set: u32,
    cancelled: u32,
}

const EMPTY: Slot = Slot { head: NONE, set: 0, cancelled: 0 };

struct Ring {
    /// Slots with anything in them.
    used: u64,
    /// Slots that are a ring.
    open: u64,
    /// Slots that are a list of more than one instant.
    mixed: u64,
    slots: [Slot; SLOTS],
}

const EMPTY_RING: Ring = Ring { used: 0, open: 0, mixed: 0, slots: [EMPTY; SLOTS] };

/// All events to come. The first slot is never mixed.
pub(super) struct Wheel {
    rings: Vec<Ring>,
    free_rings: Vec<u32>,
    nodes: Vec<Node>,
    free_node: u32,
    root: u32,
    /// The level of the root, and the bits above it that all its timers share.
    level: u32,
    prefix: u64,
    /// What is left of the instant that is being taken, last one first.
    due: Vec<(Rank, u8, u64)>,
    due_at: u64,
}

impl Default for Wheel {
    fn default() -> Self {
        Self {
            rings: vec![EMPTY_RING],
            free_rings: Vec::new(),
            nodes: Vec::new(),
            free_node: NONE,
            root: 0,
            level: 0,
            prefix: 0,
            due: Vec::new(),
            due_at: 0,
        }
    }
}

impl Wheel {
    pub(super) fn set(&mut self, moment: Moment, event: Event) {
        let (kind, id) = pack(event);
        let (at, rank) = (moment.at.as_millis(), moment.rank);
        if self.is_due(at) {
            let place = self.due.partition_point(|due| *due > (rank, kind, id));
            self.due.insert(place, (rank, kind, id));
            return;
        }
        let node = self.node(Node { at, rank, id, kind, cancelled: false, next: NONE });
        self.cover(at);
        let (ring, level, first) = self.find(at);
        self.link(ring, level, node);
        if first && self.rings[ring as usize].mixed >> digit(at, level) & 1 == 1 {
            self.open_first();
        }
    }

    pub(super) fn cancel(&mut self, moment: Moment, event: Event) {
        let (kind, id) = pack(event);
        let (at, rank) = (moment.at.as_millis(), moment.rank);
        if self.is_due(at) {
            let place = self.due.partition_point(|due| *due > (rank, kind, id));
            debug_assert_eq!(self.due[place], (rank, kind, id), "it was set");
            self.due.remove(place);
            return;
        }
        let (ring, level, _) = self.find(at);
        let place = digit(at, level);
        let slot = self.rings[ring as usize].slots[place];
        if slot.cancelled + 1 == slot.set {
            self.free_list(slot.head);
            self.clear(at);
            self.open_first();
            return;
        }
        let node = self.node(Node { at, rank, id, kind, cancelled: true, next: slot.head });
        let slot = &mut self.rings[ring as usize].slots[place];
        slot.head = node;
        slot.cancelled += 1;
        if slot.cancelled > slot.set / 2 + 64 {
            let list = std::mem::replace(slot, EMPTY).head;
            let ring_bits = &mut self.rings[ring as usize];
            ring_bits.used &= !(1 << place);
            ring_bits.mixed &= !(1 << place);
            let live = self.live(list);
            for node in live {
                let node = self.node(node);
                self.link(ring, level, node);
            }
        }
    }

    pub(super) fn next(&self) -> Option<Timestamp> {
        let in_rings = self.first().map(|(_, head)| self.nodes[head as usize].at);
        let due = (!self.due.is_empty()).then_some(self.due_at);
        let first = match (in_rings, due) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        first.map(Timestamp::from_millis)
    }

    pub(super) fn take_at(&mut self, at: Timestamp) -> Option<(Moment, Event)> {
        if !self.is_due(at.as_millis()) {
            if self.next() != Some(at) {
                return None;
            }
            self.make_due(at.as_millis());
        }
        let (rank, kind, id) = self.due.pop()?;
        Some((Moment { at, rank }, unpack(kind, id)))
    }

    fn is_due(&self, at: u64) -> bool {
        self.due_at == at && !self.due.is_empty()
    }

    /// Takes the first instant out of the rings.
    fn make_due(&mut self, at: u64) {
        for (rank, kind, id) in std::mem::take(&mut self.due) {
            self.set(Moment { at: Timestamp::from_millis(self.due_at), rank }, unpack(kind, id));
        }
        let (_, head) = self.first().expect("something is next");
        let mut due = std::mem::take(&mut self.due);
        due.extend(self.live(head).iter().map(|node| (node.rank, node.kind, node.id)));
        // The list has the last one first already, as a rule.
        due.sort_unstable_by(|one, other| other.cmp(one));
        (self.due, self.due_at) = (due, at);
        self.clear(at);
        self.open_first();
    }

    /// Makes the root so large that it covers an instant.
    fn cover(&mut self, at: u64) {
        if self.rings[self.root as usize].used == 0 {
            (self.level, self.prefix) = (0, above(at, 0));
        }
        while above(at, self.level) != self.prefix {
            let old = self.root;
            let place = (self.prefix & (SLOTS as u64 - 1)) as usize;
            self.level += 1;
            self.prefix >>= BITS;
            if self.rings[old as usize].used == 0 {
                continue;
            }
            self.root = self.ring();
            let root = &mut self.rings[self.root as usize];
            root.slots[place].head = old;
            root.used = 1 << place;
            root.open = 1 << place;
        }
    }

    /// The ring and the level where an instant has its list, and whether no list comes before.
    fn find(&self, at: u64) -> (u32, u32, bool) {
        let (mut at_ring, mut level, mut first) = (self.root, self.level, true);
        loop {
            let ring = &self.rings[at_ring as usize];
            let place = digit(at, level);
            first &= ring.used & ((1 << place) - 1) == 0;
            if ring.open >> place & 1 == 0 {
                return (at_ring, level, first);
            }
            at_ring = ring.slots[place].head;
            level -= 1;
        }
    }

    fn link(&mut self, ring: u32, level: u32, node: u32) {
        let at = self.nodes[node as usize].at;
        let place = digit(at, level);
        let ring = &mut self.rings[ring as usize];
        let slot = &mut ring.slots[place];
        if ring.used >> place & 1 == 0 {
            ring.used |= 1 << place;
        } else if self.nodes[slot.head as usize].at != at {
            ring.mixed |= 1 << place;
        }
        self.nodes[node as usize].next = slot.head;
        slot.head = node;
        slot.set += 1;
    }

    /// The first list: its level and its head.
    fn first(&self) -> Option<(u32, u32)> {
        let (mut at_ring, mut level) = (self.root, self.level);
        loop {
            let ring = &self.rings[at_ring as usize];
            if ring.used == 0 {
                return None;
            }
            let place = ring.used.trailing_zeros() as usize;
            let head = ring.slots[place].head;
            if ring.open >> place & 1 == 0 {
                return Some((level, head));
            }
            at_ring = head;
            level -= 1;
        }
    }

    /// Opens the first slot until it is one instant.
    fn open_first(&mut self) {
        let (mut at_ring, mut level) = (self.root, self.level);
        loop {
            let ring = &self.rings[at_ring as usize];
            if ring.used == 0 {
                return;
            }
            let place = ring.used.trailing_zeros() as usize;
            if ring.open >> place & 1 == 0 {
                if ring.mixed >> place & 1 == 0 {
                    return;
                }
                let slot = ring.slots[place];
                let below = self.ring();
                if slot.cancelled == 0 {
                    let mut next = slot.head;
                    while next != NONE {
                        let node = next;
                        next = self.nodes[node as usize].next;
                        self.link(below, level - 1, node);
                    }
                } else {
                    for node in self.live(slot.head) {
                        let node = self.node(node);
                        self.link(below, level - 1, node);
                    }
                }
                let ring = &mut self.rings[at_ring as usize];
                ring.slots[place] = Slot { head: below, ..EMPTY };
                ring.open |= 1 << place;
                ring.mixed &= !(1 << place);
            }
            at_ring = self.rings[at_ring as usize].slots[place].head;
            level -= 1;
        }
    }

    /// Frees a list and gives what of it was not cancelled, in the order of the list or of time.
    fn live(&mut self, head: u32) -> Vec<Node> {
        let mut nodes = Vec::new();
        let mut next = head;
        let mut cancelled = false;
        while next != NONE {
            let node = self.nodes[next as usize];
            cancelled |= node.cancelled;
            nodes.push(node);
            next = node.next;
        }
        self.free_list(head);
        if cancelled {
            let key = |node: &Node| (node.at, node.rank, node.kind, node.id);
            // A cancellation stands behind what it cancels.
            nodes.sort_unstable_by_key(|node| (key(node), node.cancelled));
            let mut live: Vec<Node> = Vec::with_capacity(nodes.len());
            for node in nodes {
                if node.cancelled {
                    let last = live.pop();
                    debug_assert!(last.is_some_and(|last| key(&last) == key(&node)), "it was set");
                } else {
                    live.push(node);
                }
            }
            return live;
        }
        nodes
    }

    /// Empties the slot of an instant, and frees the rings that this empties.
    fn clear(&mut self, at: u64) {
        let mut path = [NONE; 11];
        let (mut ring, mut level) = (self.root, self.level);
        loop {
            path[level as usize] = ring;
            let place = digit(at, level);
            if self.rings[ring as usize].open >> place & 1 == 0 {
                break;
            }
            ring = self.rings[ring as usize].slots[place].head;
            level -= 1;
        }
        loop {
            let place = digit(at, level);
            let ring = &mut self.rings[path[level as usize] as usize];
            ring.slots[place] = EMPTY;
            ring.used &= !(1 << place);
            ring.open &= !(1 << place);
            ring.mixed &= !(1 << place);
            if ring.used != 0 || level == self.level {
                return;
            }
            self.free_rings.push(path[level as usize]);
            level += 1;
        }
    }

    fn ring(&mut self) -> u32 {
        self.free_rings.pop().unwrap_or_else(|| {
            self.rings.push(EMPTY_RING);
            self.rings.len() as u32 - 1
        })
    }

    fn node(&mut self, node: Node) -> u32 {
        let free = self.free_node;
        if free == NONE {
            self.nodes.push(node);
            return self.nodes.len() as u32 - 1;
        }
        self.free_node = self.nodes[free as usize].next;
        self.nodes[free as usize] = node;
        free
    }

    fn free_list(&mut self, head: u32) {
        let mut next = head;
        while next != NONE {
            let node = next;
            next = self.nodes[node as usize].next;
            self.nodes[node as usize].next = self.free_node;
            self.free_node = node;
        }
    }
}

fn digit(at: u64, level: u32) -> usize {
    (at >> (BITS * level)) as usize & (SLOTS - 1)
}

/// The bits of an instant above a level.
fn above(at: u64, level: u32) -> u64 {
    at.checked_shr(BITS * (level + 1)).unwrap_or(0)
}

fn pack(event: Event) -> (u8, u64) {
    match event {
        Event::Expiry(lease) => (0, lease),
        Event::Due(EntryId(id)) => (1, id.into()),
        Event::Queue(QueueId(id)) => (2, id.into()),
        Event::Group(GroupId(id)) => (3, id.into()),
        Event::Period => (4, 0),
    }
}

fn unpack(kind: u8, id: u64) -> Event {
    match kind {
        0 => Event::Expiry(id),
        1 => Event::Due(EntryId(id as u32)),
        2 => Event::Queue(QueueId(id as u32)),
        3 => Event::Group(GroupId(id as u32)),
        _ => Event::Period,
    }
}
