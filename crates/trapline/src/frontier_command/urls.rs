//! `trapline frontier urls` and `url URL`: what is known of URLs.

use clap::Args;
use serde_json::{Value, json};
use trapline_frontier::{PageRecord, Pattern, Query, Rows, UrlReport, UrlState};

use super::address::Address;
use super::output::{Output, Row};
use super::{Ended, listing, moment, request};

/// List URLs
///
/// All that are known, or those that fit every filter given. `--json` tells all of each URL, as `url URL` does.
#[derive(Args)]
#[command(after_help = "\
Examples:
  trapline frontier --store disk:crawl urls --key example.com --state pending
  trapline frontier --store disk:crawl urls --pattern '*/calendar/*' --limit 20")]
pub(super) struct Urls {
    /// Only those of this queue
    #[arg(long)]
    key: Option<String>,
    /// Only those in this state: pending, leased, done, disregarded or dead
    #[arg(long, value_parser = |name: &str| listing::named(name, &UrlState::ALL[1..]))]
    state: Option<UrlState>,
    /// Only those whose URL matches as a whole; `*` stands for anything
    #[arg(long)]
    pattern: Option<String>,
    /// So many at most
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

/// Show what is known of a URL
///
/// Any spelling will do that means the same. Exit code 1 if it is not known.
#[derive(Args)]
#[command(after_help = "\
Example:
  trapline frontier --store disk:crawl url https://example.com/about")]
pub(super) struct ShowUrl {
    /// The URL
    url: String,
}

const COLUMNS: [&str; 5] = ["state", "key", "class", "due", "url"];

impl Urls {
    pub(super) fn run(&self, at: Address<'_>, out: &mut Output) -> Result<Ended, String> {
        let pattern = self.pattern.as_deref().map(Pattern::new);
        let query = Query::Urls { key: self.key.clone(), pattern, state: self.state };
        let rows = |rows| match rows {
            Rows::Urls(urls) => urls.iter().map(|url| row(url, None)).collect(),
            _ => Vec::new(),
        };
        if listing::print(&at.open()?, query, self.limit, &COLUMNS, out, rows)? == 0 {
            out.say("no URLs");
        }
        Ok(Ended::Well)
    }
}

impl ShowUrl {
    pub(super) fn run(&self, at: Address<'_>, out: &mut Output) -> Result<Ended, String> {
        let frontier = at.open()?;
        let url = pollster::block_on(frontier.url(moment::now(), &self.url));
        let url = url.map_err(|error| error.to_string())?;
        out.card(&row(&url, Some(&self.url)));
        Ok(if url.state == UrlState::Unknown { Ended::WithComplaints } else { Ended::Well })
    }
}

/// A URL, called as it was asked for if nobody knows it.
fn row(url: &UrlReport, asked: Option<&str>) -> Row {
    let known = url.request.as_ref().map(|request| request.url.as_str());
    let mut row = vec![("url", json!(known.or(asked))), ("state", json!(url.state.to_string()))];
    if url.state == UrlState::Unknown {
        return row;
    }
    row.extend([
        ("key", json!(url.key.as_deref())),
        ("class", json!(url.class)),
        ("cost", json!(url.cost)),
        ("reason", json!(url.reason)),
        ("due", listing::time(url.due)),
        ("page", url.page.as_deref().map_or(Value::Null, page)),
    ]);
    row.extend(url.request.iter().flat_map(|request| request::write(request)));
    row
}

/// What the last visit left.
pub(crate) fn page(page: &PageRecord) -> Value {
    let visit = &page.visit;
    json!({
        "visited": moment::write(page.visited),
        "status": visit.status,
        "bytes": visit.bytes,
        "etag": visit.etag,
        "last_modified": visit.last_modified,
        "visits": page.visits,
        "changes": page.changes,
        "next": listing::time(page.next),
    })
}
