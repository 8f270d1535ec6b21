//! What both peers keep in memory besides their key-value store: the queues, whose turn it is, and the open leases.
//!
//! An expert would: a key-value store that has to be asked for the next due queue, or for the head of each, does several
//! times the work. It is what Trapline keeps in memory of a queue, and less: no classes, budgets, groups, timers or page
//! records. It holds no URL. All of it can be rebuilt from the store, which is part of opening.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use trapline_core::Candidate;

use crate::subject::{Counts, LEASE, Manner};

/// The number of a queue.
pub type QueueId = u32;

/// Where a URL lies: in which queue, and as the how-manieth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub queue: QueueId,
    pub sequence: u64,
}

/// A lease as it is kept.
#[derive(Clone, Copy, Debug)]
pub struct Lease {
    pub place: Place,
    pub deadline: u64,
}

/// A lease as it is handed out.
#[expect(dead_code, reason = "a crawler would read it; here making it is what counts")]
pub struct Granted {
    pub id: u64,
    pub key: Arc<str>,
    pub identity: u128,
    pub url: String,
    pub deadline: u64,
}

/// What is stored of a queue when one of its URLs was settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The first sequence number that was not leased yet.
    pub head: u64,
    /// Its next fetch time.
    pub due: u64,
}

pub struct Queue {
    pub key: Arc<str>,
    pub record: Record,
    /// The next sequence number.
    tail: u64,
    leased: u32,
    stands: Stands,
}

/// Where a queue is looked for.
#[derive(Clone, Copy, PartialEq)]
enum Stands {
    /// It cannot supply: empty, or as much leased as may be.
    Nowhere,
    /// It was served before, and has a time.
    Due,
    /// It waits for its first turn, or came to be empty and rested long enough.
    Inactive,
}

/// What is stored whenever a batch changed it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    pub known: u64,
    pub next_lease: u64,
}

pub struct Schedule {
    manner: Manner,
    pub totals: Totals,
    pub queues: Vec<Queue>,
    by_key: HashMap<Arc<str>, QueueId>,
    due: BTreeSet<(u64, QueueId)>,
    inactive: VecDeque<QueueId>,
    leases: BTreeMap<u64, Lease>,
}

impl Schedule {
    pub fn new(manner: Manner) -> Self {
        Self {
            manner,
            totals: Totals::default(),
            queues: Vec::new(),
            by_key: HashMap::new(),
            due: BTreeSet::new(),
            inactive: VecDeque::new(),
            leases: BTreeMap::new(),
        }
    }

    /// A queue found in the store; they come in the order of their numbers. `last` is the last URL that lies in it.
    pub fn recover_queue(&mut self, key: &str, record: Option<Record>, last: Option<u64>) {
        let id = self.add_queue(Arc::from(key));
        let queue = &mut self.queues[id as usize];
        queue.record = record.unwrap_or_default();
        queue.tail = queue.record.head.max(last.map_or(0, |last| last + 1));
    }

    /// A lease found in the store, after all queues.
    pub fn recover_lease(&mut self, id: u64, lease: Lease) {
        let queue = &mut self.queues[lease.place.queue as usize];
        // The record is written by settlements only; until then the lease stands for it.
        queue.record.head = queue.record.head.max(lease.place.sequence + 1);
        queue.leased += 1;
        self.leases.insert(id, lease);
    }

    /// Everything was found.
    pub fn recovered(&mut self, totals: Totals) {
        self.totals = totals;
        for id in 0..self.queues.len() {
            let served = self.queues[id].record.head > 0;
            self.stand(id as QueueId, served);
        }
    }

    /// Gives a new URL its place, and says whether its queue is new.
    pub fn place(&mut self, now: u64, candidate: &Candidate) -> (Place, bool) {
        let (id, new) = match self.by_key.get(&*candidate.key) {
            Some(id) => (*id, false),
            None => (self.add_queue(Arc::clone(&candidate.key)), true),
        };
        let queue = &mut self.queues[id as usize];
        let place = Place { queue: id, sequence: queue.tail };
        queue.tail += 1;
        let rests = queue.record.due > now;
        self.totals.known += 1;
        self.stand(id, rests);
        (place, new)
    }

    /// Grants leases: queues that were served before and are due come first, the others in the order they came.
    pub fn claim(&mut self, now: u64, want: usize, from: Option<&str>) -> Vec<(u64, Lease)> {
        let mut granted = Vec::with_capacity(want);
        while granted.len() < want {
            let id = match from {
                Some(key) => self.by_key[key],
                None => {
                    let due = self.due.first().filter(|(due, _)| *due <= now);
                    match due.map(|(_, id)| *id).or_else(|| self.inactive.front().copied()) {
                        Some(id) => id,
                        None => break,
                    }
                }
            };
            let queue = &mut self.queues[id as usize];
            if queue.record.head == queue.tail {
                break;
            }
            let place = Place { queue: id, sequence: queue.record.head };
            queue.record.head += 1;
            queue.leased += 1;
            let lease = Lease { place, deadline: now + LEASE };
            let number = self.totals.next_lease;
            self.totals.next_lease += 1;
            self.leases.insert(number, lease);
            granted.push((number, lease));
            self.stand(id, true);
        }
        granted
    }

    /// Ends leases: the places that are done, those nobody holds left out.
    pub fn settle(&mut self, now: u64, leases: &[u64]) -> Vec<(u64, Place)> {
        let mut done = Vec::with_capacity(leases.len());
        for id in leases {
            let Some(Lease { place, .. }) = self.leases.remove(id) else { continue };
            done.push((*id, place));
            let queue = &mut self.queues[place.queue as usize];
            queue.leased -= 1;
            // It is not among the due ones: it was leased from, or there is no delay.
            let due = now + self.manner.delay;
            if queue.stands == Stands::Due {
                self.due.remove(&(queue.record.due, place.queue));
                queue.stands = Stands::Nowhere;
            }
            queue.record.due = due;
            self.stand(place.queue, true);
        }
        done
    }

    pub fn counts(&self) -> Counts {
        let leased = self.leases.len() as u64;
        let busy = self.queues.iter().filter(|queue| queue.leased > 0 && queue.stands == Stands::Nowhere);
        Counts { known: self.totals.known, leased, active: (self.due.len() + busy.count()) as u64 }
    }

    fn add_queue(&mut self, key: Arc<str>) -> QueueId {
        let id = self.queues.len() as QueueId;
        self.by_key.insert(Arc::clone(&key), id);
        let record = Record::default();
        self.queues.push(Queue { key, record, tail: 0, leased: 0, stands: Stands::Nowhere });
        id
    }

    /// Puts a queue where it will be looked for.
    fn stand(&mut self, id: QueueId, by_time: bool) {
        let queue = &mut self.queues[id as usize];
        let full = self.manner.delay > 0 && queue.leased > 0;
        let can_supply = queue.record.head < queue.tail && !full;
        match (queue.stands, can_supply) {
            (Stands::Nowhere, true) if by_time => {
                queue.stands = Stands::Due;
                self.due.insert((queue.record.due, id));
            }
            (Stands::Nowhere, true) => {
                queue.stands = Stands::Inactive;
                self.inactive.push_back(id);
            }
            (Stands::Due, false) => {
                queue.stands = Stands::Nowhere;
                self.due.remove(&(queue.record.due, id));
            }
            (Stands::Inactive, false) => {
                queue.stands = Stands::Nowhere;
                // Nearly always the first one: whoever cannot supply any more has just been claimed from.
                let at = self.inactive.iter().position(|its| *its == id).expect("it stands there");
                self.inactive.remove(at);
            }
            _ => {}
        }
    }
}

/// Which candidates of a batch to look at, in the order of their identities, each once: reads and writes that go through a
/// store in the order of its keys touch each page once.
pub fn in_order(batch: &[Candidate]) -> Vec<u32> {
    let mut order = (0..batch.len() as u32).collect::<Vec<_>>();
    // Stable: of two that are the same, the first one offered stays.
    order.sort_by_key(|at| batch[*at as usize].identity.0);
    order.dedup_by_key(|at| batch[*at as usize].identity.0);
    order
}

/// A URL as it lies in its queue.
pub fn entry(candidate: &Candidate) -> Vec<u8> {
    let url = candidate.request.url.as_bytes();
    let mut bytes = Vec::with_capacity(16 + url.len());
    bytes.extend_from_slice(&candidate.identity.0.to_le_bytes());
    bytes.extend_from_slice(url);
    bytes
}

/// What is handed out of it.
pub fn grant(id: u64, lease: Lease, key: &Arc<str>, entry: &[u8]) -> Granted {
    let (identity, url) = entry.split_first_chunk::<16>().expect("every entry begins with its identity");
    Granted {
        id,
        key: Arc::clone(key),
        identity: u128::from_le_bytes(*identity),
        url: str::from_utf8(url).expect("URLs are text").to_owned(),
        deadline: lease.deadline,
    }
}
