//! `trapline report sources`: what was found from each seed, by host. Which seed a URL descends from is the one by which it was found
//! first.

use std::collections::BTreeMap;

use serde_json::json;

use super::Table;
use super::census::{NAMES_MAX, UrlSum, each_url, host_of, name};
use super::origin::Origin;

/// Pairs of seed and host, those with the most URLs first.
pub(super) fn table(origin: &Origin) -> Result<Table, String> {
    let mut sources: BTreeMap<(String, String), UrlSum> = BTreeMap::new();
    each_url(origin.frontier()?, None, |url| {
        let source = url.request.as_ref().and_then(|request| request.seed.clone());
        let mut pair = (source.unwrap_or_else(|| "-".to_owned()), host_of(url));
        if sources.len() >= NAMES_MAX && !sources.contains_key(&pair) {
            pair = (String::new(), String::new());
        }
        sources.entry(pair).or_default().count(url);
    })?;
    let mut sources: Vec<_> = sources.into_iter().collect();
    sources.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.urls()));
    let rows = sources.into_iter().map(|((source, host), sum)| {
        let mut row = sum.row();
        row.extend([
            ("host", name(&host)),
            ("source", if source == "-" { json!(null) } else { name(&source) }),
        ]);
        row
    });
    let columns = &["urls", "pending", "done", "refused", "dead", "bytes", "host", "source"];
    Ok(Table { columns, rows: rows.collect() })
}
