//! `trapline report seeds`: what became of each seed.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use trapline_frontier::UrlReport;

use super::Table;
use super::census::{NAMES_MAX, UrlSum, each_url};
use super::origin::Origin;
use crate::moment;

/// One seed.
#[derive(Default)]
struct Seed {
    /// None if it was forgotten, or never taken.
    known: Option<UrlReport>,
    redirects_to: Option<String>,
    /// All that was found from it, itself included.
    found: UrlSum,
}

/// Seeds, by name.
pub(super) fn table(origin: &Origin) -> Result<Table, String> {
    let mut seeds: BTreeMap<String, Seed> = BTreeMap::new();
    each_url(origin.frontier()?, None, |url| {
        let Some(request) = &url.request else { return };
        let Some(name) = request.seed.as_ref() else { return };
        if seeds.len() >= NAMES_MAX && !seeds.contains_key(name) {
            return;
        }
        let seed = seeds.entry(name.clone()).or_default();
        seed.found.count(url);
        if request.depth == 0 && request.hop_path.is_empty() {
            seed.known = Some(url.clone());
        } else if request.depth == 0 && request.hop_path == "R" {
            seed.redirects_to = Some(request.url.clone());
        }
    })?;
    let rows = seeds.into_iter().map(|(name, seed)| {
        let known = seed.known.as_ref();
        let page = known.and_then(|known| known.page.as_ref());
        let mut row = vec![
            ("seed", json!(name)),
            ("state", json!(known.map_or("unknown".to_owned(), |known| known.state.to_string()))),
            ("status", json!(page.map(|page| page.visit.status))),
            ("reason", json!(known.and_then(|known| known.reason.as_deref()))),
            ("visited", page.map_or(Value::Null, |page| json!(moment::write(page.visited)))),
            ("redirects_to", json!(seed.redirects_to)),
        ];
        let found = seed.found.row().into_iter();
        row.extend(found.filter(|(name, _)| matches!(*name, "urls" | "pending" | "done" | "dead" | "bytes")));
        row
    });
    let columns = &["state", "status", "urls", "done", "bytes", "seed", "redirects_to", "reason"];
    Ok(Table { columns, rows: rows.collect() })
}
