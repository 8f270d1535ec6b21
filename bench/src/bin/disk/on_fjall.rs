//! A frontier on fjall 3, done as well as we know how.
//!
//! | keyspace | key | value |
//! |---|---|---|
//! | seen | identity | place: queue and sequence number |
//! | entries | place | identity and URL; removed when it is done |
//! | leases | number | place and deadline |
//! | queues | number | head and next fetch time; written by settlements |
//! | names | number | queue key; written once |
//! | totals | one | known URLs, next lease |
//!
//! A URL is done when it is seen and has no entry, which spares a write to `seen` for each settlement. A claim writes
//! the lease only: where the head is follows from it until it is settled. The head of a queue is read by its key, never by a
//! scan over what was removed before it.
//!
//! Less than Trapline does: no classes, priorities, costs, budgets, retries, page records; leases have deadlines but
//! nobody looks at them; of a request only the URL is kept.

use std::hint::black_box;
use std::path::Path;

use fjall::config::{
    BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry, PinningPolicy,
};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode};
use trapline_core::Candidate;

use crate::schedule::{Lease, Place, Record, Schedule, Totals, entry, grant, in_order};
use crate::subject::{Counts, Manner, Subject};

pub struct OnFjall {
    schedule: Schedule,
    durability: Option<PersistMode>,
    database: Database,
    seen: Keyspace,
    entries: Keyspace,
    leases: Keyspace,
    queues: Keyspace,
    names: Keyspace,
    totals: Keyspace,
}

/// Larger than everything that is stored in the largest run.
const CACHE_BYTES: u64 = 2 << 30;
/// Larger than the default of 512 MiB, so that no memtable is flushed before it is full because of it.
const JOURNAL_BYTES: u64 = 2 << 30;
/// Four times the default: fewer flushes and compactions, a fifth less CPU an offer. Opening after a crash takes longer.
const MEMTABLE_BYTES: u64 = 256 << 20;

/// The only key there is for them.
const TOTALS: [u8; 1] = [0];

impl Subject for OnFjall {
    fn open(folder: &Path, manner: Manner) -> Self {
        let builder = Database::builder(folder)
            .cache_size(CACHE_BYTES)
            .max_journaling_size(JOURNAL_BYTES)
            // One write and one sync a batch; nothing is written before.
            .manual_journal_persist(true);
        let database = builder.open().expect("fjall opens");
        // Everything is in the cache, filters and indexes for good. An index by hash in the blocks was tried and costs more
        // than it saves.
        let options = || {
            KeyspaceCreateOptions::default()
                .manual_journal_persist(true)
                .max_memtable_size(MEMTABLE_BYTES)
                .filter_block_pinning_policy(PinningPolicy::all(true))
                .index_block_pinning_policy(PinningPolicy::all(true))
        };
        // Half of the look-ups are in vain, so filters pay at every level. Hashes do not compress.
        let bits = FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(16.0));
        let seen = || {
            options()
                .filter_policy(FilterPolicy::all(bits))
                .data_block_compression_policy(CompressionPolicy::disabled())
        };
        // Whatever is looked up here is there.
        let hits = || options().expect_point_read_hits(true);
        let keyspace = |name: &str, options: &dyn Fn() -> KeyspaceCreateOptions| {
            database.keyspace(name, options).expect("fjall opens a keyspace")
        };
        let mut fjall = Self {
            schedule: Schedule::new(manner),
            durability: manner.synced.then_some(PersistMode::SyncData),
            seen: keyspace("seen", &seen),
            entries: keyspace("entries", &hits),
            leases: keyspace("leases", &hits),
            queues: keyspace("queues", &hits),
            names: keyspace("names", &hits),
            totals: keyspace("totals", &hits),
            database,
        };
        fjall.recover();
        fjall
    }

    fn admit(&mut self, now: u64, batch: Vec<Candidate>) -> u64 {
        let mut new = in_order(&batch);
        new.retain(|at| {
            let key = batch[*at as usize].identity.0.to_be_bytes();
            !self.seen.contains_key(key).expect("fjall reads")
        });
        let mut write = self.write(2 * new.len() + 1);
        let mut places = vec![None; batch.len()];
        for at in &new {
            places[*at as usize] = Some(Place { queue: 0, sequence: 0 });
        }
        // In the order they were offered, which is the order they are served in.
        for (place, candidate) in places.iter_mut().zip(&batch).filter(|(place, _)| place.is_some()) {
            let (given, is_new_queue) = self.schedule.place(now, candidate);
            *place = Some(given);
            write.insert(&self.entries, key(given), entry(candidate));
            if is_new_queue {
                write.insert(&self.names, given.queue.to_be_bytes(), &*candidate.key);
            }
        }
        for at in &new {
            let place = places[*at as usize].expect("every new one has a place");
            write.insert(&self.seen, batch[*at as usize].identity.0.to_be_bytes(), key(place));
        }
        self.commit(write);
        new.len() as u64
    }

    fn claim(&mut self, now: u64, want: usize, from: Option<&str>) -> Vec<u64> {
        let granted = self.schedule.claim(now, want, from);
        let mut write = self.write(granted.len() + 1);
        let mut answer = Vec::with_capacity(granted.len());
        for (id, lease) in &granted {
            let entry =
                self.entries.get(key(lease.place)).expect("fjall reads").expect("what is leased is there");
            let queue = &self.schedule.queues[lease.place.queue as usize];
            answer.push(grant(*id, *lease, &queue.key, &entry));
            let mut value = [0; 20];
            value[..12].copy_from_slice(&key(lease.place));
            value[12..].copy_from_slice(&lease.deadline.to_be_bytes());
            write.insert(&self.leases, id.to_be_bytes(), value);
        }
        self.commit(write);
        black_box(&answer);
        answer.iter().map(|granted| granted.id).collect()
    }

    fn settle(&mut self, now: u64, leases: Vec<u64>) -> u64 {
        let done = self.schedule.settle(now, &leases);
        let mut write = self.write(3 * done.len() + 1);
        for (id, place) in &done {
            // Weak ones vanish with what they remove, which is safe for keys that are written once. fjall calls them
            // experimental; a cycle costs a tenth less with them.
            write.remove_weak(&self.leases, id.to_be_bytes());
            write.remove_weak(&self.entries, key(*place));
            let Record { head, due } = self.schedule.queues[place.queue as usize].record;
            write.insert(&self.queues, place.queue.to_be_bytes(), pair(head, due));
        }
        self.commit(write);
        done.len() as u64
    }

    fn counts(&mut self, _: u64) -> Counts {
        self.schedule.counts()
    }
}

impl OnFjall {
    fn write(&self, items: usize) -> OwnedWriteBatch {
        OwnedWriteBatch::with_capacity(self.database.clone(), items).durability(self.durability)
    }

    fn commit(&self, mut write: OwnedWriteBatch) {
        let Totals { known, next_lease } = self.schedule.totals;
        write.insert(&self.totals, TOTALS, pair(known, next_lease));
        write.commit().expect("fjall commits");
    }

    fn recover(&mut self) {
        let mut records = self.queues.iter().map(|row| row.into_inner().expect("fjall reads")).peekable();
        for name in self.names.iter() {
            let (id, name) = name.into_inner().expect("fjall reads");
            let record = records.next_if(|(its, _)| *its == id).map(|(_, value)| {
                let (head, due) = of_pair(&value);
                Record { head, due }
            });
            let last = self.entries.prefix(&id).next_back().map(|row| {
                let key = row.key().expect("fjall reads");
                place(&key).sequence
            });
            let name = str::from_utf8(&name).expect("queue keys are text");
            self.schedule.recover_queue(name, record, last);
        }
        for lease in self.leases.iter() {
            let (id, value) = lease.into_inner().expect("fjall reads");
            let lease = Lease { place: place(&value[..12]), deadline: number(&value[12..]) };
            self.schedule.recover_lease(number(&id), lease);
        }
        let totals = self.totals.get(TOTALS).expect("fjall reads").map_or((0, 0), |totals| of_pair(&totals));
        self.schedule.recovered(Totals { known: totals.0, next_lease: totals.1 });
    }
}

fn key(place: Place) -> [u8; 12] {
    let mut key = [0; 12];
    key[..4].copy_from_slice(&place.queue.to_be_bytes());
    key[4..].copy_from_slice(&place.sequence.to_be_bytes());
    key
}

fn place(key: &[u8]) -> Place {
    let queue = key[..4].try_into().expect("four bytes");
    Place { queue: u32::from_be_bytes(queue), sequence: number(&key[4..]) }
}

fn pair(first: u64, second: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&first.to_be_bytes());
    bytes[8..].copy_from_slice(&second.to_be_bytes());
    bytes
}

fn of_pair(bytes: &[u8]) -> (u64, u64) {
    (number(&bytes[..8]), number(&bytes[8..]))
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes.try_into().expect("eight bytes"))
}
