//! A crawl as one page for people: how fast it went, with which statuses, and how its queues stood, over time.
//!
//! The page is whole in itself: no scripts, no pictures or styles from elsewhere, and a policy in its head that lets browsers load
//! none. Whatever servers called themselves is text in it.

mod chart;

use std::fmt::Write;

use serde_json::Value;
use trapline_frontier::{Query, QueueReport, QueueState, Rows};

use super::origin::Origin;
use crate::chronicle::{Chronicle, Point, Sum};
use crate::frontier_command::listing;
use crate::moment;
use crate::output::{self, Row};
use chart::{Chart, Curve};

/// How many rows a table of the page has.
const ROWS: usize = 20;

/// Colours that people tell apart who do not see all of them.
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999"];

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}\
svg{width:100%;height:auto;display:block}svg text{font:12px system-ui,sans-serif;fill:currentColor}\
.grid{stroke:currentColor;stroke-opacity:.2}\
ul.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;padding:0;margin:.3rem 0}\
.legend i{display:inline-block;width:.8rem;height:.8rem;margin-right:.4rem}\
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.15rem .6rem .15rem 0;vertical-align:top;overflow-wrap:anywhere}\
th{border-bottom:1px solid}.card th{border:0;width:16rem}td.n,th.n{text-align:right;white-space:nowrap}";

/// The page.
pub(super) fn write(origin: &Origin, card: &Row, chronicle: &Chronicle) -> Result<String, String> {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Crawl {name}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>Crawl {name}</h1>\n\
         <p>As of {}.</p>\n",
        moment::write(moment::now()),
        name = escape(&origin.crawl),
    );
    let points: Vec<&Point> = chronicle.series.points().collect();
    for chart in charts(&points, chronicle.series.gap_ms()) {
        page += &chart.html();
    }
    page += "<h2>Counts</h2>\n<table class=\"card\">\n";
    for (name, value) in card.iter().filter(|(_, value)| !value.is_null()) {
        add(
            &mut page,
            &format!("<tr><th>{}</th><td>{}</td></tr>\n", escape(&name.replace('_', " ")), cell(value)),
        );
    }
    page += "</table>\n";
    for (title, sums) in [
        ("Statuses", &chronicle.counts.statuses),
        ("Media types", &chronicle.counts.mimes),
        ("Without a response", &chronicle.counts.errors),
        ("Not fetched", &chronicle.counts.skipped),
    ] {
        page += &sums_table(title, sums);
    }
    page += &queues_table(&largest_queues(origin)?);
    page += "</body>\n</html>\n";
    Ok(page)
}

fn charts(points: &[&Point], gap_ms: u64) -> Vec<Chart> {
    let times: Vec<u64> = points.iter().map(|point| point.at_ms).collect();
    let chart =
        |title, unit, stacked, curves| Chart { title, unit, times: times.clone(), gap_ms, stacked, curves };
    let rate = |place: usize, name, colour| Curve {
        name,
        colour,
        values: rates(points, |point| point.counts[place]),
    };
    let gauge = |place: usize, name, colour| Curve {
        name,
        colour,
        values: points.iter().map(|point| point.gauges[place] as f64).collect(),
    };
    let states = QueueState::ALL.iter().enumerate().filter(|(_, state)| **state != QueueState::Empty);
    let states = states.map(|(place, state)| gauge(place + 2, state_name(*state), COLOURS[place]));
    vec![
        chart("Rate", "per second", false, vec![rate(0, "pages", COLOURS[0]), rate(2, "errors", COLOURS[1])]),
        chart(
            "Statuses",
            "per second",
            true,
            vec![
                rate(3, "2xx", COLOURS[2]),
                rate(4, "3xx", COLOURS[0]),
                rate(5, "4xx", COLOURS[4]),
                rate(6, "5xx", COLOURS[1]),
                rate(7, "no response", COLOURS[6]),
            ],
        ),
        chart("Queues that are not empty", "queues", true, states.collect()),
        chart(
            "URLs",
            "URLs",
            false,
            vec![gauge(0, "pending", COLOURS[0]), gauge(1, "in flight", COLOURS[1])],
        ),
    ]
}

fn state_name(state: QueueState) -> &'static str {
    match state {
        QueueState::Retired => "retired",
        QueueState::Blocked => "blocked",
        QueueState::Empty => "empty",
        QueueState::Busy => "busy",
        QueueState::Snoozed => "snoozed",
        QueueState::Ready => "ready",
        QueueState::Inactive => "inactive",
    }
}

/// What was counted a second between a point and the one before.
fn rates(points: &[&Point], count: impl Fn(&Point) -> u64) -> Vec<f64> {
    let between = |pair: &[&Point]| {
        let seconds = pair[1].at_ms.saturating_sub(pair[0].at_ms).max(1) as f64 / 1000.0;
        count(pair[1]).saturating_sub(count(pair[0])) as f64 / seconds
    };
    let mut rates: Vec<f64> = points.windows(2).map(between).collect();
    // The first point has none before it.
    if let Some(first) = rates.first().copied() {
        rates.insert(0, first);
    }
    rates
}

fn sums_table(title: &str, sums: &std::collections::BTreeMap<String, Sum>) -> String {
    if sums.is_empty() {
        return String::new();
    }
    let mut sums: Vec<_> = sums.iter().collect();
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.visits));
    let mut table = format!(
        "<h2>{title}</h2>\n<table>\n<tr><th>name</th><th class=n>count</th><th class=n>bytes</th></tr>\n"
    );
    for (name, sum) in sums.into_iter().take(ROWS) {
        add(
            &mut table,
            &format!(
                "<tr><td>{}</td><td class=n>{}</td><td class=n>{}</td></tr>\n",
                escape(name),
                sum.visits,
                sum.bytes
            ),
        );
    }
    table + "</table>\n"
}

/// The queues in which most waits.
fn largest_queues(origin: &Origin) -> Result<Vec<QueueReport>, String> {
    let mut largest: Vec<QueueReport> = Vec::new();
    let Some(frontier) = origin.known_frontier() else { return Ok(largest) };
    listing::each_page(frontier, Query::Queues { keys: None, state: None }, |rows| {
        if let Rows::Queues(queues) = rows {
            largest.extend(queues);
            largest.sort_by_key(|queue| std::cmp::Reverse(queue.pending));
            largest.truncate(ROWS);
        }
        true
    })?;
    Ok(largest)
}

fn queues_table(queues: &[QueueReport]) -> String {
    if queues.is_empty() {
        return String::new();
    }
    let mut table =
        "<h2>Largest queues</h2>\n<table>\n<tr><th>queue</th><th>state</th><th class=n>pending</th>\
                     <th class=n>done</th><th>why it is not being served</th></tr>\n"
            .to_owned();
    for queue in queues {
        add(
            &mut table,
            &format!(
                "<tr><td>{}</td><td>{}</td><td class=n>{}</td><td class=n>{}</td><td>{}</td></tr>\n",
                escape(&queue.key),
                queue.state,
                queue.pending,
                queue.done,
                escape(&moment::dated(&queue.why))
            ),
        );
    }
    table + "</table>\n"
}

fn cell(value: &Value) -> String {
    let text = match value {
        Value::Object(pairs) => {
            let pairs: Vec<_> = pairs.iter().map(|(name, value)| format!("{value} {name}")).collect();
            pairs.join(", ")
        }
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    escape(&text)
}

fn add(page: &mut String, text: &str) {
    // Writing to memory cannot fail.
    let _ = page.write_str(text);
}

/// Text that stays text, in elements and in attributes.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for sign in output::plain(text).chars() {
        match sign {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            sign => escaped.push(sign),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_servers_call_themselves_is_text() {
        let sums = [("</td><script>alert(1)</script>\u{1b}".to_owned(), Sum { visits: 1, bytes: 2 })];
        let table = sums_table("Media types", &sums.into());
        assert!(!table.contains("<script") && !table.contains('\u{1b}'), "{table}");
        assert!(table.contains("&lt;/td&gt;&lt;script&gt;alert(1)&lt;/script&gt;"), "{table}");
        assert_eq!(escape("\"a' & b"), "&quot;a&#39; &amp; b");
    }

    #[test]
    fn rates_are_those_between_points() {
        let point = |at_ms, pages| Point { at_ms, counts: [pages, 0, 0, 0, 0, 0, 0, 0], gauges: [0; 9] };
        let points = [point(0, 0), point(1000, 5), point(3000, 25), point(4000, 20)];
        let points: Vec<_> = points.iter().collect();
        assert_eq!(rates(&points, |point| point.counts[0]), [5.0, 5.0, 10.0, 0.0]);
        assert!(rates(&points[..1], |point| point.counts[0]).is_empty());
    }
}
