//! Lines of an export, written.

use serde_json::{Map, Value, json};
use trapline_core::{Identity, NO_BUDGET, Terms, Timestamp, format_duration};
use trapline_frontier::{
    CrawlRecord, CrawlReport, CrawlState, NoteWrite, PageRecord, QueueRecord, RetiredBy, Settings, UrlRecord,
    UrlStanding,
};

use super::{Counts, FORMAT, VERSION, write_time};
use crate::frontier_command::output::{Row, as_object};
use crate::frontier_command::{bytes, request};

pub(in super::super) fn header(exported: Timestamp) -> String {
    as_object(&vec![
        ("format", json!(FORMAT)),
        ("version", json!(VERSION)),
        ("exported", write_time(exported)),
    ])
}

pub(in super::super) fn crawl(report: &CrawlReport) -> String {
    let settings = Settings::NAMES.iter().map(|name| {
        let value = report.settings.get(name).unwrap_or_default();
        ((*name).to_owned(), Value::String(value))
    });
    let mut row: Row = vec![
        ("crawl", json!(&*report.name)),
        ("identity_key", json!(bytes::hex(report.key.as_bytes()))),
        ("partitions", json!(report.partitions)),
        ("settings", Value::Object(settings.collect::<Map<_, _>>())),
        ("state", json!(report.state.to_string())),
    ];
    if let CrawlState::Finished(reason) = &report.state {
        row.push(("reason", json!(reason)));
    }
    as_object(&row)
}

/// A URL. Its identity is told only if it is not the `usual` one.
pub(crate) fn url(record: &UrlRecord, usual: Option<Identity>) -> String {
    let UrlRecord { request, identity, key, class, cost, standing, page, visits, retries, expiries, entries } =
        record;
    let mut row: Row = vec![("url", json!(request.url)), ("key", json!(&**key))];
    let mut state = |state: &str, more: Vec<(&'static str, Value)>| {
        row.push(("state", json!(state)));
        row.extend(more);
    };
    match standing {
        UrlStanding::Pending(at) => {
            state("pending", at.map(|at| ("scheduled", write_time(at))).into_iter().collect());
        }
        UrlStanding::Returned(at) => state("pending", vec![("returned", write_time(*at))]),
        UrlStanding::Retry(at) => state("pending", vec![("retry", write_time(*at))]),
        UrlStanding::Scheduled(at) => state("pending", vec![("due", write_time(*at))]),
        UrlStanding::Leased => state("leased", Vec::new()),
        UrlStanding::Done(next) => {
            state("done", next.map(|at| ("next", write_time(at))).into_iter().collect());
        }
        UrlStanding::Disregarded(reason) => {
            let reason = (!reason.is_empty()).then(|| ("reason", json!(reason)));
            state("disregarded", reason.into_iter().collect());
        }
        UrlStanding::Dead { reason, at } => {
            state("dead", vec![("reason", json!(reason)), ("at", write_time(*at))]);
        }
    }
    row.extend([("class", json!(class)), ("cost", json!(cost))]);
    row.extend(request::write(request));
    row.extend(page.as_deref().map(|record| ("page", self::page(record))));
    let counts = [("visits", *visits, 0), ("retried", *retries, 0), ("expired", *expiries, 0)];
    for (name, count, usual) in counts.into_iter().chain([("entries", *entries, 1)]) {
        if count != usual {
            row.push((name, json!(count)));
        }
    }
    if usual != Some(*identity) {
        row.push(("identity", json!(bytes::hex(&identity.0.to_be_bytes()))));
    }
    as_object(&row)
}

fn page(page: &PageRecord) -> Value {
    let PageRecord { visited, visit, visits, changes, next } = page;
    let mut told = Map::from_iter([
        ("visited".to_owned(), write_time(*visited)),
        ("visits".to_owned(), json!(visits)),
        ("changes".to_owned(), json!(changes)),
    ]);
    let mut tell = |name: &str, value: Option<Value>| {
        told.extend(value.map(|value| (name.to_owned(), value)));
    };
    tell("next", next.map(write_time));
    tell("status", (visit.status != 0).then(|| json!(visit.status)));
    tell("bytes", (visit.bytes != 0).then(|| json!(visit.bytes)));
    tell("etag", visit.etag.as_ref().map(|etag| json!(etag)));
    tell("last_modified", visit.last_modified.as_ref().map(|text| json!(text)));
    tell("digest", visit.digest.as_ref().map(|digest| json!({ "hex": bytes::hex(digest) })));
    tell("simhash", visit.simhash.map(|simhash| json!(simhash)));
    Value::Object(told)
}

pub(crate) fn queue(record: &QueueRecord) -> String {
    let QueueRecord {
        key,
        terms,
        steered,
        retired,
        blocked,
        next_fetch,
        group_next_fetch,
        active,
        balance,
        spent,
        grants,
        charged,
        latest_cost,
        errors,
    } = record;
    let mut row: Row = vec![("queue", json!(&**key))];
    let mut tell = |name, value: Option<Value>| row.extend(value.map(|value| (name, value)));
    let given = |terms: &Terms| (*terms != Terms::default()).then(|| self::terms(terms));
    tell("terms", given(terms));
    tell("steered", given(steered));
    tell(
        "retired",
        retired.map(|by| match by {
            RetiredBy::Operator => json!("operator"),
            RetiredBy::Budget => json!("budget"),
        }),
    );
    tell("blocked", blocked.map(write_time));
    tell("next_fetch", next_fetch.map(write_time));
    tell("group_next_fetch", group_next_fetch.map(write_time));
    tell("active", active.then(|| json!(true)));
    tell("balance", (*balance != 0).then(|| json!(balance)));
    for (name, count) in [
        ("spent", *spent),
        ("grants", u64::from(*grants)),
        ("charged", *charged),
        ("latest_cost", u64::from(*latest_cost)),
        ("errors", *errors),
    ] {
        tell(name, (count != 0).then(|| json!(count)));
    }
    as_object(&row)
}

fn terms(terms: &Terms) -> Value {
    let Terms { precedence, queue_budget, balance_replenish, delay, concurrency, group } = terms;
    let mut told = Map::new();
    let mut tell = |name: &str, value: Option<Value>| {
        told.extend(value.map(|value| (name.to_owned(), value)));
    };
    tell("precedence", precedence.map(|value| json!(value)));
    tell(
        "queue_budget",
        queue_budget.map(|budget| if budget == NO_BUDGET { json!("none") } else { json!(budget) }),
    );
    tell("balance_replenish", balance_replenish.map(|value| json!(value)));
    tell("delay", delay.map(|delay| json!(format_duration(delay))));
    tell("concurrency", concurrency.map(|value| json!(value)));
    tell("group", group.as_ref().map(|group| json!(&**group)));
    Value::Object(told)
}

/// A note that is there.
pub(crate) fn note(note: &NoteWrite) -> String {
    let NoteWrite { key, value, expires } = note;
    let mut row: Row =
        vec![("note", json!(key)), ("value", bytes::write(value.as_deref().unwrap_or_default()))];
    row.extend(expires.map(|at| ("expires", write_time(at))));
    as_object(&row)
}

pub(crate) fn counts(record: &CrawlRecord) -> String {
    let CrawlRecord { started, fetched, bytes, spent, granted, expired, turn } = record;
    let counts = json!({
        "started": write_time(*started),
        "fetched": fetched,
        "bytes": bytes,
        "spent": spent,
        "granted": granted,
        "expired": expired,
        "turn": turn,
    });
    as_object(&vec![("counts", counts)])
}

/// The end of a crawl.
pub(in super::super) fn crawl_end(name: &str, counts: Counts) -> String {
    let Counts { urls, queues, notes } = counts;
    as_object(&vec![
        ("end_of_crawl", json!(name)),
        ("urls", json!(urls)),
        ("queues", json!(queues)),
        ("notes", json!(notes)),
    ])
}

/// The end of the file.
pub(in super::super) fn end(crawls: u64, counts: Counts) -> String {
    let Counts { urls, queues, notes } = counts;
    as_object(&vec![
        ("end", json!(true)),
        ("crawls", json!(crawls)),
        ("urls", json!(urls)),
        ("queues", json!(queues)),
        ("notes", json!(notes)),
    ])
}
