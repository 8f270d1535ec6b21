//! `trapline frontier stats`: the counts of a crawl.

use clap::Args;
use serde_json::{Map, Value, json};
use trapline_core::format_duration;
use trapline_frontier::{CrawlState, QueueState, UrlState};

use super::Ended;
use super::address::Address;
use super::moment;
use super::output::Output;
use crate::size;

/// Count what is in a crawl
///
/// URLs and queues by state, what was fetched and spent, what was found when the store was opened, what its memory goes to and what it
/// takes of the disk (in bytes, with --json), and how it keeps within the memory it may take. Cheap at any size.
#[derive(Args)]
#[command(after_help = "\
Examples:
  trapline frontier --store disk:crawl stats
  trapline frontier --store disk:crawl stats --json | jq .urls.pending")]
pub(super) struct ShowStats {}

impl ShowStats {
    #[expect(clippy::unused_self, reason = "commands are run alike, whether they have arguments or not")]
    pub(super) fn run(&self, at: Address<'_>, out: &mut Output) -> Result<Ended, String> {
        let frontier = at.open()?;
        let now = moment::now();
        let asked = async { Ok((frontier.report(now).await?, frontier.stats(now).await?)) };
        let (crawl, stats) =
            pollster::block_on(asked).map_err(|error: trapline_frontier::StoreError| error.to_string())?;
        let bytes = |bytes: u64| if out.is_json() { json!(bytes) } else { json!(size::about(bytes)) };
        let urls = UrlState::ALL.into_iter().filter(|state| *state != UrlState::Unknown);
        let finished = match &crawl.state {
            CrawlState::Finished(reason) => json!(reason),
            CrawlState::Running | CrawlState::Paused => Value::Null,
        };
        let card = vec![
            ("crawl", json!(at.crawl)),
            ("state", json!(crawl.state.to_string())),
            ("finished", finished),
            ("exhausted", json!(crawl.exhausted)),
            ("started", json!(moment::write(crawl.started))),
            ("urls", counts(urls.map(|state| (state.to_string(), stats.urls_in(state))))),
            ("queues", counts(QueueState::ALL.map(|state| (state.to_string(), stats.queues_in(state))))),
            ("visits_waiting", json!(stats.visits_waiting)),
            ("fetched", json!(stats.fetched)),
            ("bytes", bytes(stats.bytes)),
            ("spent", json!(stats.spent)),
            ("leases_granted", json!(stats.granted)),
            ("leases_expired", json!(stats.expired)),
            ("durability", json!(stats.durability)),
            (
                "recovered",
                json!(stats.recovered.map(|found| json!({
                    "pending": found.pending,
                    "leased": found.leased,
                    "seen": found.seen,
                    "dead": found.dead,
                    "log_position": found.log_position,
                    "snapshot": found.snapshot,
                    "snapshots_passed_over": found.snapshots_passed_over,
                    "bytes_cut": found.bytes_cut,
                    "took": format_duration(found.took),
                }))),
            ),
            (
                "memory",
                json!(stats.memory.map(|memory| json!({
                    "seen": bytes(memory.seen),
                    "records": bytes(memory.records),
                    "pending": bytes(memory.pending),
                    "rare": bytes(memory.rare),
                    "texts": bytes(memory.texts),
                    "queues": bytes(memory.queues),
                }))),
            ),
            (
                "disk",
                json!(stats.disk.map(|disk| json!({
                    "segments": disk.segments,
                    "log_bytes": bytes(disk.log_bytes),
                    "needed_bytes": bytes(disk.needed_bytes),
                    "snapshot_bytes": bytes(disk.snapshot_bytes),
                    "log_position": disk.log_position,
                }))),
            ),
            (
                "pressure",
                json!(stats.pressure.map(|pressure| json!({
                    "percent": pressure.percent(),
                    "max_memory": bytes(pressure.max_memory),
                    "in_memory": bytes(pressure.in_memory),
                    "fixed": bytes(pressure.fixed),
                    "paged": bytes(pressure.paged),
                    "paged_out": pressure.paged_out,
                    "paged_in": pressure.paged_in,
                    "looked_up": pressure.looked_up,
                    "disk_is_full": pressure.is_full,
                }))),
            ),
        ];
        out.card(&card);
        Ok(Ended::Well)
    }
}

fn counts(counts: impl IntoIterator<Item = (String, u64)>) -> Value {
    Value::Object(counts.into_iter().map(|(name, count)| (name, json!(count))).collect::<Map<_, _>>())
}
