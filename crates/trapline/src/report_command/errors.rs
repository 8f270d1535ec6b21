//! `trapline report errors`: what went wrong, and what was not wanted.

use std::collections::BTreeMap;

use serde_json::json;
use trapline_frontier::{Query, Rows, UrlState};

use super::Table;
use super::census::each_url;
use super::origin::Origin;
use crate::frontier_command::listing;

/// How many reasons of a kind are told apart.
const REASONS_MAX: usize = 1000;

/// How often, and an example.
#[derive(Default)]
struct Reason {
    count: u64,
    example: String,
}

/// Reasons, by kind, the most frequent first.
pub(super) fn table(origin: &Origin) -> Result<Table, String> {
    let mut kinds: [(&str, BTreeMap<String, Reason>); 4] = [
        ("no response", BTreeMap::new()),
        ("given up", BTreeMap::new()),
        ("disregarded", BTreeMap::new()),
        ("dropped", BTreeMap::new()),
    ];
    let [no_response, given_up, disregarded, dropped] = &mut kinds;
    if let Some(chronicle) = origin.chronicle()? {
        for (kind, sums) in [(no_response, chronicle.counts.errors), (dropped, chronicle.counts.skipped)] {
            let reason = |(name, sum): (String, crate::chronicle::Sum)| {
                (name, Reason { count: sum.visits, example: String::new() })
            };
            kind.1 = sums.into_iter().map(reason).collect();
        }
    }
    if let Some(frontier) = origin.known_frontier() {
        listing::each_page(frontier, Query::Dead, |rows| {
            let Rows::Dead(letters) = rows else { return false };
            letters.iter().for_each(|letter| count(&mut given_up.1, &letter.reason, &letter.request.url));
            true
        })?;
        each_url(frontier, Some(UrlState::Disregarded), |url| {
            let text = url.request.as_ref().map_or("", |request| &request.url);
            count(&mut disregarded.1, url.reason.as_deref().unwrap_or("no reason was given"), text);
        })?;
    }
    let mut rows = Vec::new();
    for (kind, reasons) in kinds {
        let mut reasons: Vec<_> = reasons.into_iter().collect();
        reasons.sort_by_key(|(_, reason)| std::cmp::Reverse(reason.count));
        rows.extend(reasons.into_iter().map(|(text, reason)| {
            let example = Some(reason.example).filter(|example| !example.is_empty());
            vec![
                ("kind", json!(kind)),
                ("reason", json!(text)),
                ("count", json!(reason.count)),
                ("example", json!(example)),
            ]
        }));
    }
    Ok(Table { columns: &["count", "kind", "reason", "example"], rows })
}

/// Reasons that differ only in what follows the first colon are told as one: that is where names and numbers stand.
fn count(reasons: &mut BTreeMap<String, Reason>, reason: &str, example: &str) {
    let word = reason.split_once(": ").map_or(reason, |(word, _)| word);
    let word = if reasons.len() < REASONS_MAX || reasons.contains_key(word) { word } else { "others" };
    let counted = reasons.entry(word.to_owned()).or_default();
    counted.count += 1;
    if counted.example.is_empty() {
        counted.example = example.to_owned();
    }
}
