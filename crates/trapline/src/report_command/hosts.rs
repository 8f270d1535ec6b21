//! `trapline report hosts`: what is known of each host.

use std::collections::BTreeMap;

use serde_json::json;

use super::Table;
use super::census::{NAMES_MAX, UrlSum, each_url, host_of, name};
use super::origin::Origin;

/// Hosts, those with the most URLs first.
pub(super) fn table(origin: &Origin) -> Result<Table, String> {
    let mut hosts: BTreeMap<String, UrlSum> = BTreeMap::new();
    each_url(origin.frontier()?, None, |url| {
        let mut host = host_of(url);
        if hosts.len() >= NAMES_MAX && !hosts.contains_key(&host) {
            host.clear();
        }
        hosts.entry(host).or_default().count(url);
    })?;
    let mut hosts: Vec<_> = hosts.into_iter().collect();
    hosts.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.urls()));
    let rows = hosts.into_iter().map(|(host, sum)| {
        let mut row = sum.row();
        row.push(("host", if host.is_empty() { name("") } else { json!(host) }));
        row
    });
    let columns = &["urls", "pending", "leased", "done", "refused", "disregarded", "dead", "bytes", "host"];
    Ok(Table { columns, rows: rows.collect() })
}
