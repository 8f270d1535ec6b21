//! Makes a crawl that was there before ready to go on: with the settings of today, and without what a process that was killed has left.

use std::time::Duration;

use trapline_core::Timestamp;
use trapline_crawl::CrawlOptions;
use trapline_crawl::ports::Robots;
use trapline_frontier::{
    CrawlChange, CrawlState, Frontier, Outcome, Query, Rows, Scan, Settings, Settlement, StoreError,
};

use crate::config::FileConfig;
use crate::moment;

/// What the frontier is told of the crawl. Limits of a run are kept here, so that a higher one lets it go on.
pub(super) fn settings(config: &FileConfig) -> Settings {
    Settings { max_urls: None, max_bytes: None, max_time: None, pause_at_finish: false, ..config.settings() }
}

/// Tells the frontier the settings of today.
pub(super) async fn apply_settings(frontier: &Frontier, config: &FileConfig) -> Result<(), StoreError> {
    let now = moment::now();
    let report = frontier.report(now).await?;
    let wanted = settings(config);
    let changed: Vec<(String, String)> = Settings::NAMES
        .iter()
        .filter(|name| !matches!(**name, "order" | "admission"))
        .filter_map(|name| Some((*name, wanted.get(name)?)))
        .filter(|(name, value)| report.settings.get(name).as_ref() != Some(value))
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    if !changed.is_empty() && !matches!(report.state, CrawlState::Finished(_)) {
        frontier.steer_crawl(now, CrawlChange::Set(changed)).await?;
    }
    Ok(())
}

/// Leases of a process that is gone end now, and count as expired; their queues wait as after a fetch, which there may have
/// been. Only for who knows that nobody else can have them.
pub(super) async fn expire_leases(
    frontier: &Frontier,
    options: &CrawlOptions,
    robots: Option<&dyn Robots>,
) -> Result<(), StoreError> {
    let now: Timestamp = moment::now();
    loop {
        let Rows::Leases(leases) = frontier.scan(now, &Scan::new(Query::Leases)).await?.rows else {
            return Ok(());
        };
        if leases.is_empty() {
            return Ok(());
        }
        let mut batch = Vec::with_capacity(leases.len());
        for lease in leases {
            let delay = options.wait_after(frontier, robots, now, (&lease.key, &lease.request)).await;
            let outcome = Outcome::Renew { lease: Duration::ZERO };
            batch.push(Settlement { delay: Some(delay), ..Settlement::new(lease.id, outcome) });
        }
        frontier.settle(now, batch).await?;
    }
}
