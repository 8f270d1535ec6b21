//! Makes a crawl that was there before ready to go on: with the settings of today, and without what a process that was killed has left.

use std::collections::BTreeSet;
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
pub(crate) fn settings(config: &FileConfig) -> Settings {
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

/// Tells the frontier which settings have changed from one configuration to another. What was steered otherwise stays.
pub(super) async fn apply_changes(
    frontier: &Frontier,
    before: &FileConfig,
    config: &FileConfig,
) -> Result<(), StoreError> {
    let (was, is) = (settings(before), settings(config));
    let changed: Vec<(String, String)> = Settings::NAMES
        .iter()
        .filter(|name| !matches!(**name, "order" | "admission") && was.get(name) != is.get(name))
        .filter_map(|name| Some(((*name).to_owned(), is.get(name)?)))
        .collect();
    if !changed.is_empty() {
        frontier.steer_crawl(moment::now(), CrawlChange::Set(changed)).await?;
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
    let mut tried = BTreeSet::new();
    loop {
        let Rows::Leases(mut leases) = frontier.scan(now, &Scan::new(Query::Leases)).await?.rows else {
            return Ok(());
        };
        // One that cannot be ended is left to its deadline, and one of somebody who came meanwhile is his.
        leases.retain(|lease| lease.granted <= now && tried.insert(lease.id));
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use async_trait::async_trait;
    use trapline_core::{Candidate, Request};
    use trapline_frontier::{
        Admission, Claimed, MemoryStore, Page, Settled, Stats, Steer, Steered, Store, Want,
    };

    use super::*;

    /// A store whose leases nobody can end.
    struct Clinging(MemoryStore);

    #[async_trait]
    impl Store for Clinging {
        async fn admit(
            &self,
            crawl: &str,
            now: Timestamp,
            batch: &[Candidate],
        ) -> Result<Vec<Admission>, StoreError> {
            self.0.admit(crawl, now, batch).await
        }

        async fn claim(
            &self,
            crawl: Option<&str>,
            now: Timestamp,
            want: &Want,
        ) -> Result<Claimed, StoreError> {
            self.0.claim(crawl, now, want).await
        }

        async fn settle(
            &self,
            crawl: &str,
            now: Timestamp,
            batch: Vec<Settlement>,
        ) -> Result<Vec<Settled>, StoreError> {
            let _ = batch;
            self.0.settle(crawl, now, Vec::new()).await
        }

        async fn steer(&self, crawl: &str, now: Timestamp, steer: Steer) -> Result<Steered, StoreError> {
            self.0.steer(crawl, now, steer).await
        }

        async fn scan(&self, crawl: &str, now: Timestamp, scan: &Scan) -> Result<Page, StoreError> {
            self.0.scan(crawl, now, scan).await
        }

        async fn stats(&self, crawl: &str, now: Timestamp) -> Result<Stats, StoreError> {
            self.0.stats(crawl, now).await
        }
    }

    #[test]
    fn leases_are_ended_and_one_that_cannot_be_keeps_nobody() {
        pollster::block_on(async {
            let stores: [(Arc<dyn Store>, usize); 2] =
                [(Arc::new(MemoryStore::new()), 0), (Arc::new(Clinging(MemoryStore::new())), 3)];
            for (store, left) in stores {
                let frontier = Frontier::builder("x").open_shared(store, moment::now()).await.unwrap();
                let urls = (0..3).map(|number| Request::get(format!("http://h{number}.test/")));
                frontier.admit(moment::now(), urls).await.unwrap();
                assert_eq!(frontier.claim(moment::now(), 10).await.unwrap().leases.len(), 3);
                expire_leases(&frontier, &CrawlOptions::default(), None).await.unwrap();
                let page = frontier.scan(moment::now(), &Scan::new(Query::Leases)).await.unwrap();
                let Rows::Leases(leases) = page.rows else { panic!("{:?}", page.rows) };
                assert_eq!(leases.len(), left);
            }
        });
    }
}
