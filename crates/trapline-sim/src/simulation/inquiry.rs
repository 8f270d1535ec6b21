//! The inquiry: everything that can be asked of a frontier, held against the books of an oracle.

use trapline_core::Timestamp;
use trapline_frontier::script::{CrawlVerb, Verb};
use trapline_frontier::{Frontier, Query, QueueReport, Rows, Scan};

use crate::oracle::{Breach, Oracle, Rule};

/// Asks everything.
pub(crate) async fn hold_against(frontier: &Frontier, at: Timestamp, oracle: &Oracle) -> Result<(), Breach> {
    let identities = oracle.identities();
    match frontier.scan(at, &Scan::new(Query::UrlList(identities.clone()))).await?.rows {
        Rows::Urls(urls) if urls.len() == identities.len() => {
            for (identity, report) in identities.iter().zip(&urls) {
                oracle
                    .check_url(*identity, report)
                    .map_err(|breach| breach.or_shown_by(Verb::Url(oracle.url_of(*identity))))?;
            }
        }
        _ => return Err(Breach::new(Rule::Report, "a list of URLs was asked for, another came")),
    }
    match frontier.scan(at, &Scan::new(Query::Leases)).await?.rows {
        Rows::Leases(leases) => oracle.check_leases(&leases)?,
        _ => return Err(Breach::new(Rule::Report, "leases were asked for, other rows came")),
    }
    let keys = oracle.keys();
    let reports = queues(frontier, at, keys.clone()).await?;
    for key in &keys {
        let report = reports.iter().find(|report| *report.key == **key);
        oracle.check_queue(key, report).map_err(|breach| breach.shown_by(Verb::Queue(key.clone())))?;
    }
    let crawl = frontier.report(at).await?;
    oracle.check_crawl(&crawl).map_err(|breach| breach.shown_by(Verb::Crawl(CrawlVerb::Show)))?;
    oracle.check_stats(&frontier.stats(at).await?)
}

/// The reports of some queues.
pub(super) async fn queues(
    frontier: &Frontier,
    at: Timestamp,
    keys: Vec<String>,
) -> Result<Vec<QueueReport>, Breach> {
    let scan = Scan::new(Query::Queues { keys: Some(keys), state: None });
    match frontier.scan(at, &scan).await?.rows {
        Rows::Queues(queues) => Ok(queues),
        _ => Err(Breach::new(Rule::Report, "queues were asked for, other rows came")),
    }
}
