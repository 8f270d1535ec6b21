//! `trapline frontier crawls`: which crawls a store has, and how each of them stands.

use clap::Args;
use serde_json::json;
use trapline_frontier::{CrawlReport, Stats, StoreError, UrlState};

use super::address::Address;
use super::output::{Output, Row};
use super::{Ended, moment};

/// List the crawls of a store
#[derive(Args)]
#[command(after_help = "\
Examples:
  trapline frontier --store disk:crawl crawls
  trapline frontier --store disk:crawl crawls --json | jq -r 'select(.exhausted) | .crawl'")]
pub(super) struct Crawls {}

const COLUMNS: [&str; 9] =
    ["crawl", "state", "exhausted", "pending", "leased", "done", "disregarded", "dead", "queues"];

impl Crawls {
    #[expect(clippy::unused_self, reason = "commands are run alike, whether they have arguments or not")]
    pub(super) fn run(&self, at: Address<'_>, out: &mut Output) -> Result<Ended, String> {
        let store = at.store()?;
        let now = moment::now();
        let asked = async {
            let mut rows = Vec::new();
            for crawl in trapline_frontier::crawls(&*store, now).await? {
                let stats = store.stats(&crawl.name, now).await?;
                rows.push(row(&crawl, &stats));
            }
            Ok(rows)
        };
        let rows = pollster::block_on(asked).map_err(|error: StoreError| error.to_string())?;
        out.rows(&COLUMNS, &rows);
        if rows.is_empty() {
            out.say("no crawls");
        }
        Ok(Ended::Well)
    }
}

fn row(crawl: &CrawlReport, stats: &Stats) -> Row {
    vec![
        ("crawl", json!(&*crawl.name)),
        ("state", json!(crawl.state.to_string())),
        ("exhausted", json!(crawl.exhausted)),
        ("started", json!(moment::write(crawl.started))),
        ("pending", json!(stats.urls_in(UrlState::Pending))),
        ("leased", json!(stats.urls_in(UrlState::Leased))),
        ("done", json!(stats.urls_in(UrlState::Done))),
        ("disregarded", json!(stats.urls_in(UrlState::Disregarded))),
        ("dead", json!(stats.urls_in(UrlState::Dead))),
        ("queues", json!(stats.queues.iter().sum::<u64>())),
    ]
}
