//! What a store tells of itself when it is asked: how many URLs and queues are in which state, what it takes of memory and disk. All
//! crawls together, since their names are their users' to choose, and there may be any number of them.

use std::time::Duration;

use tokio::time::timeout;
use trapline_core::Timestamp;
use trapline_frontier::{ErrorKind, Query, QueueState, Rows, Scan, Stats, Store, StoreError, UrlState};

use crate::exposition::Exposition;

/// A store that has not answered by then is away.
const PATIENCE: Duration = Duration::from_secs(5);

/// The sums over all crawls.
#[derive(Default)]
pub(crate) struct Census {
    crawls: u64,
    sum: Stats,
}

impl Census {
    /// Counts.
    pub(crate) async fn take(store: &dyn Store, now: Timestamp) -> Result<Self, StoreError> {
        within(async {
            let mut census = Self::default();
            let mut scan = Scan::new(Query::Crawls);
            loop {
                let page = store.scan("", now, &scan).await?;
                let Rows::Crawls(crawls) = page.rows else { break };
                for crawl in &crawls {
                    match store.stats(&crawl.name, now).await {
                        Ok(stats) => census.add(&stats),
                        // Dropped since.
                        Err(error) if error.kind() == ErrorKind::NotFound => {}
                        Err(error) => return Err(error),
                    }
                }
                scan.cursor = page.cursor;
                if scan.cursor.is_none() {
                    break;
                }
            }
            Ok(census)
        })
        .await
    }

    fn add(&mut self, stats: &Stats) {
        self.crawls += 1;
        let sum = &mut self.sum;
        sum.queues.iter_mut().zip(stats.queues).for_each(|(sum, count)| *sum += count);
        sum.urls.iter_mut().zip(stats.urls).for_each(|(sum, count)| *sum += count);
        sum.visits_waiting += stats.visits_waiting;
        sum.fetched += stats.fetched;
        sum.granted += stats.granted;
        sum.expired += stats.expired;
        // These are of the whole store, whichever crawl is asked.
        sum.disk = stats.disk;
        sum.pressure = stats.pressure;
        if let Some(memory) = stats.memory {
            let sum = sum.memory.get_or_insert_default();
            sum.seen += memory.seen;
            sum.records += memory.records;
            sum.pending += memory.pending;
            sum.rare += memory.rare;
            sum.texts += memory.texts;
            sum.queues += memory.queues;
        }
        let at_opening = stats.recovered.map(|found| found.log_position);
        if at_opening > sum.recovered.as_ref().map(|found| found.log_position) {
            sum.recovered = stats.recovered;
        }
    }

    pub(crate) fn write(&self, out: &mut Exposition) {
        let sum = &self.sum;
        out.family("trapline_crawls", "gauge", "Crawls in the store.").value(self.crawls);
        out.family("trapline_urls", "gauge", "Known URLs of all crawls, by state.");
        for state in UrlState::ALL.into_iter().filter(|state| *state != UrlState::Unknown) {
            out.sample("", &[("state", &state.to_string())], sum.urls[state as usize]);
        }
        out.family("trapline_visits_waiting", "gauge", "Fetched URLs that wait for their next visit.")
            .value(sum.visits_waiting);
        out.family("trapline_queues", "gauge", "Queues of all crawls, by state.");
        for state in QueueState::ALL {
            out.sample("", &[("state", &state.to_string())], sum.queues[state as usize]);
        }
        out.family("trapline_fetched", "gauge", "Fetches that were done since the crawls began.")
            .value(sum.fetched);
        out.family("trapline_leases_granted", "gauge", "Leases granted since the crawls began.")
            .value(sum.granted);
        out.family("trapline_leases_expired", "gauge", "Leases that expired since the crawls began.")
            .value(sum.expired);
        if let Some(recovered) = &sum.recovered {
            out.family(
                "trapline_store_log_position_at_opening",
                "gauge",
                "Records in the log when the store was opened.",
            )
            .value(recovered.log_position);
        }
        if let Some(disk) = &sum.disk {
            out.family("trapline_store_log_position", "gauge", "The last record of the log that is on disk.")
                .value(disk.log_position);
            out.family("trapline_store_log_segments", "gauge", "Files of the store's log.")
                .value(disk.segments);
            out.family("trapline_store_disk_bytes", "gauge", "What the store takes of the disk.");
            out.sample("", &[("of", "log")], disk.log_bytes);
            out.sample("", &[("of", "snapshots")], disk.snapshot_bytes);
            out.family("trapline_store_needed_bytes", "gauge", "What of the log is needed for good.")
                .value(disk.needed_bytes);
        }
        if let Some(memory) = &sum.memory {
            out.family("trapline_store_memory_bytes", "gauge", "What the crawls' memory goes to.");
            for (of, bytes) in [
                ("seen", memory.seen),
                ("records", memory.records),
                ("pending", memory.pending),
                ("rare", memory.rare),
                ("texts", memory.texts),
                ("queues", memory.queues),
            ] {
                out.sample("", &[("of", of)], bytes);
            }
        }
        if let Some(pressure) = &sum.pressure {
            out.family("trapline_store_memory_max_bytes", "gauge", "What the store may take of memory.")
                .value(pressure.max_memory);
            out.family(
                "trapline_store_paged_bytes",
                "gauge",
                "What is on disk because memory has no room for it.",
            )
            .value(pressure.paged);
        }
    }
}

/// Whether a store answers.
pub(crate) async fn answers(store: &dyn Store, now: Timestamp) -> Result<(), StoreError> {
    within(async { store.scan("", now, &Scan { limit: 1, ..Scan::new(Query::Crawls) }).await.map(drop) })
        .await
}

async fn within<T>(done: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    timeout(PATIENCE, done).await.unwrap_or_else(|_| {
        Err(StoreError::new(
            ErrorKind::Unavailable,
            format!("the store has not answered within {PATIENCE:?}"),
        ))
    })
}
