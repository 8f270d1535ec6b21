//! The counts of a crawl as a message.

use prost::Message;
use trapline_frontier::{Disk, Memory, Pressure, Recovered, Stats};

use super::{Span, Unreadable, read_span};

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StatsMessage {
    #[prost(uint64, repeated, tag = "1")]
    queues: Vec<u64>,
    #[prost(uint64, repeated, tag = "2")]
    urls: Vec<u64>,
    #[prost(uint64, tag = "3")]
    visits_waiting: u64,
    #[prost(uint64, tag = "4")]
    fetched: u64,
    #[prost(uint64, tag = "5")]
    bytes: u64,
    #[prost(uint64, tag = "6")]
    spent: u64,
    #[prost(uint64, tag = "7")]
    granted: u64,
    #[prost(uint64, tag = "8")]
    expired: u64,
    #[prost(string, optional, tag = "9")]
    durability: Option<String>,
    #[prost(message, optional, tag = "10")]
    recovered: Option<RecoveredMessage>,
    #[prost(message, optional, tag = "11")]
    memory: Option<MemoryMessage>,
    #[prost(message, optional, tag = "12")]
    disk: Option<DiskMessage>,
    #[prost(message, optional, tag = "13")]
    pressure: Option<PressureMessage>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct PressureMessage {
    #[prost(uint64, tag = "1")]
    max_memory: u64,
    #[prost(uint64, tag = "2")]
    in_memory: u64,
    #[prost(uint64, tag = "3")]
    fixed: u64,
    #[prost(uint64, tag = "4")]
    paged: u64,
    #[prost(uint64, tag = "5")]
    paged_out: u64,
    #[prost(uint64, tag = "6")]
    paged_in: u64,
    #[prost(uint64, tag = "7")]
    looked_up: u64,
    #[prost(bool, tag = "8")]
    is_full: bool,
}

impl From<Pressure> for PressureMessage {
    fn from(pressure: Pressure) -> Self {
        let Pressure { max_memory, in_memory, fixed, paged, paged_out, paged_in, looked_up, is_full } =
            pressure;
        Self { max_memory, in_memory, fixed, paged, paged_out, paged_in, looked_up, is_full }
    }
}

impl From<PressureMessage> for Pressure {
    fn from(message: PressureMessage) -> Self {
        let PressureMessage { max_memory, in_memory, fixed, paged, paged_out, paged_in, looked_up, is_full } =
            message;
        Self { max_memory, in_memory, fixed, paged, paged_out, paged_in, looked_up, is_full }
    }
}

#[derive(Clone, Copy, PartialEq, Message)]
struct DiskMessage {
    #[prost(uint64, tag = "1")]
    segments: u64,
    #[prost(uint64, tag = "2")]
    log_bytes: u64,
    #[prost(uint64, tag = "3")]
    needed_bytes: u64,
    #[prost(uint64, tag = "4")]
    snapshot_bytes: u64,
    #[prost(uint64, tag = "5")]
    log_position: u64,
}

impl From<Disk> for DiskMessage {
    fn from(disk: Disk) -> Self {
        let Disk { segments, log_bytes, needed_bytes, snapshot_bytes, log_position } = disk;
        Self { segments, log_bytes, needed_bytes, snapshot_bytes, log_position }
    }
}

impl From<DiskMessage> for Disk {
    fn from(message: DiskMessage) -> Self {
        let DiskMessage { segments, log_bytes, needed_bytes, snapshot_bytes, log_position } = message;
        Self { segments, log_bytes, needed_bytes, snapshot_bytes, log_position }
    }
}

#[derive(Clone, Copy, PartialEq, Message)]
struct RecoveredMessage {
    #[prost(uint64, tag = "1")]
    pending: u64,
    #[prost(uint64, tag = "2")]
    leased: u64,
    #[prost(uint64, tag = "3")]
    seen: u64,
    #[prost(uint64, tag = "4")]
    dead: u64,
    #[prost(uint64, tag = "5")]
    log_position: u64,
    #[prost(uint64, tag = "6")]
    bytes_cut: u64,
    #[prost(message, optional, tag = "7")]
    took: Option<Span>,
    #[prost(uint64, optional, tag = "8")]
    snapshot: Option<u64>,
    #[prost(uint64, tag = "9")]
    snapshots_passed_over: u64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct MemoryMessage {
    #[prost(uint64, tag = "1")]
    seen: u64,
    #[prost(uint64, tag = "2")]
    records: u64,
    #[prost(uint64, tag = "3")]
    pending: u64,
    #[prost(uint64, tag = "4")]
    rare: u64,
    #[prost(uint64, tag = "5")]
    texts: u64,
    #[prost(uint64, tag = "6")]
    queues: u64,
}

impl From<&Stats> for StatsMessage {
    fn from(stats: &Stats) -> Self {
        let Stats {
            queues,
            urls,
            visits_waiting,
            fetched,
            bytes,
            spent,
            granted,
            expired,
            durability,
            recovered,
            memory,
            disk,
            pressure,
        } = stats;
        Self {
            queues: queues.to_vec(),
            urls: urls.to_vec(),
            visits_waiting: *visits_waiting,
            fetched: *fetched,
            bytes: *bytes,
            spent: *spent,
            granted: *granted,
            expired: *expired,
            durability: durability.clone(),
            recovered: recovered.map(RecoveredMessage::from),
            memory: memory.map(MemoryMessage::from),
            disk: disk.map(DiskMessage::from),
            pressure: pressure.map(PressureMessage::from),
        }
    }
}

impl StatsMessage {
    pub(crate) fn read(self) -> Result<Stats, Unreadable> {
        let beyond = |_| Unreadable::Beyond("a list of counts");
        Ok(Stats {
            queues: self.queues.try_into().map_err(beyond)?,
            urls: self.urls.try_into().map_err(beyond)?,
            visits_waiting: self.visits_waiting,
            fetched: self.fetched,
            bytes: self.bytes,
            spent: self.spent,
            granted: self.granted,
            expired: self.expired,
            durability: self.durability,
            recovered: self.recovered.map(RecoveredMessage::read).transpose()?,
            memory: self.memory.map(MemoryMessage::read),
            disk: self.disk.map(Disk::from),
            pressure: self.pressure.map(Pressure::from),
        })
    }
}

impl From<Recovered> for RecoveredMessage {
    fn from(recovered: Recovered) -> Self {
        let Recovered {
            pending,
            leased,
            seen,
            dead,
            log_position,
            bytes_cut,
            snapshot,
            snapshots_passed_over,
            took,
        } = recovered;
        Self {
            pending,
            leased,
            seen,
            dead,
            log_position,
            bytes_cut,
            snapshot,
            snapshots_passed_over,
            took: Some(took.into()),
        }
    }
}

impl RecoveredMessage {
    fn read(self) -> Result<Recovered, Unreadable> {
        let Self {
            pending,
            leased,
            seen,
            dead,
            log_position,
            bytes_cut,
            snapshot,
            snapshots_passed_over,
            took,
        } = self;
        let took = read_span(took)?.ok_or(Unreadable::Lacks("how long opening took"))?;
        Ok(Recovered {
            pending,
            leased,
            seen,
            dead,
            log_position,
            bytes_cut,
            snapshot,
            snapshots_passed_over,
            took,
        })
    }
}

impl From<Memory> for MemoryMessage {
    fn from(memory: Memory) -> Self {
        let Memory { seen, records, pending, rare, texts, queues } = memory;
        Self { seen, records, pending, rare, texts, queues }
    }
}

impl MemoryMessage {
    fn read(self) -> Memory {
        let Self { seen, records, pending, rare, texts, queues } = self;
        Memory { seen, records, pending, rare, texts, queues }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn counts_come_back_as_they_were() {
        let full = Stats {
            queues: [0, 1, 2, 3, 4, 5, u64::MAX],
            urls: [0, 6, 7, 8, 9, 10],
            visits_waiting: 11,
            fetched: 12,
            bytes: 13,
            spent: 14,
            granted: 15,
            expired: 16,
            durability: Some("batch".to_owned()),
            recovered: Some(Recovered {
                pending: 1,
                leased: 2,
                seen: 3,
                dead: 4,
                log_position: 5,
                bytes_cut: 6,
                snapshot: Some(0),
                snapshots_passed_over: 8,
                took: Duration::from_nanos(7),
            }),
            memory: Some(Memory { seen: 1, records: 2, pending: 3, rare: 4, texts: 5, queues: 6 }),
            disk: Some(Disk {
                segments: 1,
                log_bytes: 2,
                needed_bytes: 3,
                snapshot_bytes: 4,
                log_position: 5,
            }),
            pressure: Some(Pressure {
                max_memory: 1,
                in_memory: 2,
                fixed: 3,
                paged: 4,
                paged_out: 5,
                paged_in: 6,
                looked_up: 7,
                is_full: true,
            }),
        };
        let zeros = Stats {
            durability: Some(String::new()),
            recovered: Some(Recovered::default()),
            memory: Some(Memory::default()),
            disk: Some(Disk::default()),
            pressure: Some(Pressure::default()),
            ..Stats::default()
        };
        for stats in [Stats::default(), zeros, full] {
            let bytes = StatsMessage::from(&stats).encode_to_vec();
            assert_eq!(StatsMessage::decode(&*bytes).unwrap().read().unwrap(), stats);
        }
        assert!(StatsMessage::default().read().is_err(), "a list that is too short");
    }
}
