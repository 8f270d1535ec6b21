//! A frontier on redb 4, done as well as we know how.
//!
//! The same tables as on fjall, and the same that is left out: see `on_fjall.rs`. Keys and most values have a fixed width, which
//! redb stores without offsets. One transaction a batch, committed in one phase, which is redb's fastest that is durable; the
//! quick repair that it offers for faster opening after a crash costs each commit a second sync, so it stays off.

use std::hint::black_box;
use std::path::Path;

use redb::{
    Builder, Database, Durability, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction,
};
use trapline_core::Candidate;

use crate::schedule::{Lease, Place, Record, Schedule, Totals, entry, grant, in_order};
use crate::subject::{Counts, Manner, Subject};

const SEEN: TableDefinition<'_, u128, (u32, u64)> = TableDefinition::new("seen");
const ENTRIES: TableDefinition<'_, (u32, u64), &[u8]> = TableDefinition::new("entries");
const LEASES: TableDefinition<'_, u64, (u32, u64, u64)> = TableDefinition::new("leases");
const QUEUES: TableDefinition<'_, u32, (u64, u64)> = TableDefinition::new("queues");
const NAMES: TableDefinition<'_, u32, &str> = TableDefinition::new("names");
const TOTALS: TableDefinition<'_, (), (u64, u64)> = TableDefinition::new("totals");

/// Larger than everything that is stored in the largest run.
const CACHE_BYTES: usize = 4 << 30;

pub struct OnRedb {
    schedule: Schedule,
    durability: Durability,
    database: Database,
}

impl Subject for OnRedb {
    fn open(folder: &Path, manner: Manner) -> Self {
        std::fs::create_dir_all(folder).expect("a folder can be made");
        let mut builder = Builder::new();
        builder.set_cache_size(CACHE_BYTES);
        let database = builder.create(folder.join("redb")).expect("redb opens");
        let durability = if manner.synced { Durability::Immediate } else { Durability::None };
        let mut redb = Self { schedule: Schedule::new(manner), durability, database };
        redb.recover().expect("redb reads");
        redb
    }

    fn admit(&mut self, now: u64, batch: Vec<Candidate>) -> u64 {
        self.admit(now, &batch).expect("redb admits")
    }

    fn claim(&mut self, now: u64, want: usize, from: Option<&str>) -> Vec<u64> {
        self.claim(now, want, from).expect("redb grants")
    }

    fn settle(&mut self, now: u64, leases: Vec<u64>) -> u64 {
        self.settle(now, &leases).expect("redb settles")
    }

    fn counts(&mut self, _: u64) -> Counts {
        self.schedule.counts()
    }
}

impl OnRedb {
    fn admit(&mut self, now: u64, batch: &[Candidate]) -> Result<u64, redb::Error> {
        let write = self.write()?;
        let mut new = in_order(batch);
        {
            let mut seen = write.open_table(SEEN)?;
            let mut known = Vec::with_capacity(new.len());
            for at in &new {
                known.push(seen.get(batch[*at as usize].identity.0)?.is_some());
            }
            let mut known = known.into_iter();
            new.retain(|_| !known.next().expect("each was looked up"));

            let mut places = vec![None; batch.len()];
            for at in &new {
                places[*at as usize] = Some(Place { queue: 0, sequence: 0 });
            }
            let mut lying = Vec::with_capacity(new.len());
            let mut names = write.open_table(NAMES)?;
            // In the order they were offered, which is the order they are served in.
            for (place, candidate) in places.iter_mut().zip(batch).filter(|(place, _)| place.is_some()) {
                let (given, is_new_queue) = self.schedule.place(now, candidate);
                *place = Some(given);
                lying.push((given, candidate));
                if is_new_queue {
                    names.insert(given.queue, &*candidate.key)?;
                }
            }
            for at in &new {
                let Place { queue, sequence } = places[*at as usize].expect("every new one has a place");
                seen.insert(batch[*at as usize].identity.0, (queue, sequence))?;
            }
            lying.sort_by_key(|(place, _)| (place.queue, place.sequence));
            let mut entries = write.open_table(ENTRIES)?;
            for (place, candidate) in lying {
                entries.insert((place.queue, place.sequence), &*entry(candidate))?;
            }
        }
        self.commit(write)?;
        Ok(new.len() as u64)
    }

    fn claim(&mut self, now: u64, want: usize, from: Option<&str>) -> Result<Vec<u64>, redb::Error> {
        let granted = self.schedule.claim(now, want, from);
        let write = self.write()?;
        let mut answer = Vec::with_capacity(granted.len());
        {
            let entries = write.open_table(ENTRIES)?;
            let mut leases = write.open_table(LEASES)?;
            for (id, lease) in &granted {
                let Place { queue, sequence } = lease.place;
                let entry = entries.get((queue, sequence))?.expect("what is leased is there");
                answer.push(grant(*id, *lease, &self.schedule.queues[queue as usize].key, entry.value()));
                leases.insert(*id, (queue, sequence, lease.deadline))?;
            }
        }
        self.commit(write)?;
        black_box(&answer);
        Ok(answer.iter().map(|granted| granted.id).collect())
    }

    fn settle(&mut self, now: u64, settled: &[u64]) -> Result<u64, redb::Error> {
        let mut done = self.schedule.settle(now, settled);
        let write = self.write()?;
        {
            let mut leases = write.open_table(LEASES)?;
            for (id, _) in &done {
                leases.remove(id)?;
            }
            // From here on in the order of the other tables' keys.
            done.sort_by_key(|(_, place)| (place.queue, place.sequence));
            let mut entries = write.open_table(ENTRIES)?;
            for (_, place) in &done {
                entries.remove((place.queue, place.sequence))?;
            }
            let mut queues = write.open_table(QUEUES)?;
            for (_, place) in &done {
                let Record { head, due } = self.schedule.queues[place.queue as usize].record;
                queues.insert(place.queue, (head, due))?;
            }
        }
        self.commit(write)?;
        Ok(done.len() as u64)
    }

    fn write(&self) -> Result<WriteTransaction, redb::Error> {
        let mut write = self.database.begin_write()?;
        write.set_durability(self.durability)?;
        Ok(write)
    }

    fn commit(&self, write: WriteTransaction) -> Result<(), redb::Error> {
        let Totals { known, next_lease } = self.schedule.totals;
        write.open_table(TOTALS)?.insert((), (known, next_lease))?;
        Ok(write.commit()?)
    }

    fn recover(&mut self) -> Result<(), redb::Error> {
        // Makes the tables if they are not there.
        let write = self.database.begin_write()?;
        write.open_table(SEEN)?;
        write.open_table(ENTRIES)?;
        write.open_table(LEASES)?;
        write.open_table(QUEUES)?;
        write.open_table(NAMES)?;
        write.open_table(TOTALS)?;
        write.commit()?;

        let read = self.database.begin_read()?;
        let (entries, queues) = (read.open_table(ENTRIES)?, read.open_table(QUEUES)?);
        for name in read.open_table(NAMES)?.iter()? {
            let (id, name) = name?;
            let id = id.value();
            let record = queues.get(id)?.map(|record| record.value());
            let record = record.map(|(head, due)| Record { head, due });
            let last = entries.range((id, 0)..=(id, u64::MAX))?.next_back().transpose()?;
            self.schedule.recover_queue(name.value(), record, last.map(|(key, _)| key.value().1));
        }
        for lease in read.open_table(LEASES)?.iter()? {
            let (id, lease) = lease?;
            let (queue, sequence, deadline) = lease.value();
            self.schedule.recover_lease(id.value(), Lease { place: Place { queue, sequence }, deadline });
        }
        let totals = read.open_table(TOTALS)?.get(())?.map_or((0, 0), |totals| totals.value());
        self.schedule.recovered(Totals { known: totals.0, next_lease: totals.1 });
        Ok(())
    }
}
