//! `trapline report mime` and `status`: what the visits of all runs add up to.

use std::collections::BTreeMap;

use serde_json::json;
use trapline_frontier::UrlState;

use super::Table;
use super::census::each_url;
use super::origin::Origin;
use crate::chronicle::Sum;

/// Media types, the most frequent first.
pub(super) fn mime(origin: &Origin) -> Result<Table, String> {
    let Some(chronicle) = origin.chronicle()? else {
        return Err(
            "no crawler has told which media types it met: frontiers do not know, `trapline crawl` does"
                .to_owned(),
        );
    };
    Ok(Table { columns: &["visits", "bytes", "mime"], rows: rows("mime", "visits", chronicle.counts.mimes) })
}

/// Statuses, the most frequent first: of visits, or where no crawler has told, of URLs.
pub(super) fn status(origin: &Origin) -> Result<Table, String> {
    if let Some(chronicle) = origin.chronicle()? {
        let rows = rows("status", "visits", chronicle.counts.statuses);
        return Ok(Table { columns: &["visits", "bytes", "status"], rows });
    }
    let mut statuses: BTreeMap<String, Sum> = BTreeMap::new();
    each_url(origin.frontier()?, Some(UrlState::Done), |url| {
        let Some(page) = &url.page else { return };
        let sum = statuses.entry(page.visit.status.to_string()).or_default();
        sum.visits += 1;
        sum.bytes += page.visit.bytes;
    })?;
    Ok(Table { columns: &["urls", "bytes", "status"], rows: rows("status", "urls", statuses) })
}

fn rows(named: &'static str, counted: &'static str, sums: BTreeMap<String, Sum>) -> Vec<crate::output::Row> {
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.visits));
    let row = |(name, sum): (String, Sum)| {
        vec![(named, json!(name)), (counted, json!(sum.visits)), ("bytes", json!(sum.bytes))]
    };
    sums.into_iter().map(row).collect()
}
