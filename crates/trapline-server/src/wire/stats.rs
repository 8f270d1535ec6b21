//! Counts.

use std::time::Duration;

use trapline_frontier::{Disk, Memory, Pressure, QueueState, Recovered, Stats, UrlState};

use crate::proto::v1;

pub(crate) fn write(stats: &Stats) -> v1::StatsResponse {
    let Stats {
        queues: _,
        urls: _,
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
    let queues = |state| stats.queues_in(state);
    let urls = |state| stats.urls_in(state);
    v1::StatsResponse {
        queues: Some(v1::QueueCounts {
            retired: queues(QueueState::Retired),
            blocked: queues(QueueState::Blocked),
            empty: queues(QueueState::Empty),
            busy: queues(QueueState::Busy),
            snoozed: queues(QueueState::Snoozed),
            ready: queues(QueueState::Ready),
            inactive: queues(QueueState::Inactive),
        }),
        urls: Some(v1::UrlCounts {
            pending: urls(UrlState::Pending),
            leased: urls(UrlState::Leased),
            done: urls(UrlState::Done),
            disregarded: urls(UrlState::Disregarded),
            dead: urls(UrlState::Dead),
        }),
        visits_waiting: *visits_waiting,
        fetched: *fetched,
        bytes: *bytes,
        spent: *spent,
        granted: *granted,
        expired: *expired,
        durability: durability.clone(),
        recovered: recovered.map(write_recovered),
        memory: memory.map(|Memory { seen, records, pending, rare, texts, queues }| v1::Memory {
            seen,
            records,
            pending,
            rare,
            texts,
            queues,
        }),
        disk: disk.map(|Disk { segments, log_bytes, needed_bytes, snapshot_bytes, log_position }| v1::Disk {
            segments,
            log_bytes,
            needed_bytes,
            snapshot_bytes,
            log_position,
        }),
        pressure: pressure.map(write_pressure),
    }
}

pub(crate) fn read(stats: v1::StatsResponse) -> Stats {
    let v1::StatsResponse {
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
    let v1::QueueCounts { retired, blocked, empty, busy, snoozed, ready, inactive } =
        queues.unwrap_or_default();
    let v1::UrlCounts { pending, leased, done, disregarded, dead } = urls.unwrap_or_default();
    Stats {
        // In the order of the states.
        queues: [retired, blocked, empty, busy, snoozed, ready, inactive],
        urls: [0, pending, leased, done, disregarded, dead],
        visits_waiting,
        fetched,
        bytes,
        spent,
        granted,
        expired,
        durability,
        recovered: recovered.map(read_recovered),
        memory: memory.map(|v1::Memory { seen, records, pending, rare, texts, queues }| Memory {
            seen,
            records,
            pending,
            rare,
            texts,
            queues,
        }),
        disk: disk.map(|v1::Disk { segments, log_bytes, needed_bytes, snapshot_bytes, log_position }| Disk {
            segments,
            log_bytes,
            needed_bytes,
            snapshot_bytes,
            log_position,
        }),
        pressure: pressure.map(read_pressure),
    }
}

fn write_recovered(recovered: Recovered) -> v1::Recovered {
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
    v1::Recovered {
        pending,
        leased,
        seen,
        dead,
        log_position,
        bytes_cut,
        snapshot,
        snapshots_passed_over,
        took_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
    }
}

fn read_recovered(recovered: v1::Recovered) -> Recovered {
    let v1::Recovered {
        pending,
        leased,
        seen,
        dead,
        log_position,
        bytes_cut,
        snapshot,
        snapshots_passed_over,
        took_us,
    } = recovered;
    Recovered {
        pending,
        leased,
        seen,
        dead,
        log_position,
        bytes_cut,
        snapshot,
        snapshots_passed_over,
        took: Duration::from_micros(took_us),
    }
}

fn write_pressure(pressure: Pressure) -> v1::Pressure {
    let Pressure { max_memory, in_memory, fixed, paged, paged_out, paged_in, looked_up, is_full } = pressure;
    v1::Pressure { max_memory, in_memory, fixed, paged, paged_out, paged_in, looked_up, is_full }
}

fn read_pressure(pressure: v1::Pressure) -> Pressure {
    let v1::Pressure { max_memory, in_memory, fixed, paged, paged_out, paged_in, looked_up, is_full } =
        pressure;
    Pressure { max_memory, in_memory, fixed, paged, paged_out, paged_in, looked_up, is_full }
}
