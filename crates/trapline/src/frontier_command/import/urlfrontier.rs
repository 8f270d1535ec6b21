//! The dump of a URLFrontier, imported: each item a URL, in the crawl it names.

use std::collections::BTreeMap;
use std::sync::Arc;

use trapline_core::Request;
use trapline_frontier::{
    CrawlState, ErrorKind, Frontier, Order, Record, Settings, Store, UrlRecord, UrlStanding,
};

use super::target::{Tally, Target};
use super::{Problem, Reading, wrong};
use crate::frontier_command::moment;
use crate::frontier_command::transfer::urlfrontier::{self, Item, ItemState};

/// So many crawls are made of one dump; more are rather a mistake.
const CRAWLS_MAX: usize = 1000;

/// So many URLs are collected, of all crawls, before they are restored.
const COLLECTED_MAX: usize = 10_000;

/// A crawl of the dump, and the policies it has.
struct Open {
    target: Target,
    settings: Settings,
}

pub(super) fn import(reading: &mut Reading<'_>, tallies: &mut Vec<Tally>) -> Result<(), Problem> {
    let store = reading.at.store_or_new()?;
    let mut crawls = BTreeMap::new();
    let imported = import_items(reading, &store, &mut crawls);
    let flushed = flush(&mut crawls);
    tallies.extend(crawls.into_values().map(|open| open.target.tally));
    imported.and(flushed)
}

fn import_items(
    reading: &mut Reading<'_>,
    store: &Arc<dyn Store>,
    crawls: &mut BTreeMap<String, Open>,
) -> Result<(), Problem> {
    let mut collected = 0;
    let mut urls = 0_u64;
    while let Some((number, fields)) = reading.next()? {
        let mut item = match urlfrontier::item(fields) {
            Ok(item) => item,
            Err(problem) => {
                reading.bad(number, &problem)?;
                continue;
            }
        };
        if reading.at.is_named {
            reading.at.crawl.clone_into(&mut item.crawl);
        }
        if !crawls.contains_key(&item.crawl) {
            if crawls.len() == CRAWLS_MAX {
                let problem = format!(
                    "it is of the crawl `{}`, and there were {CRAWLS_MAX} others before; name one for all with --crawl",
                    item.crawl
                );
                return Err(wrong(number, &problem));
            }
            let open = open(store, &item.crawl).map_err(|problem| wrong(number, &problem.message))?;
            crawls.insert(item.crawl.clone(), open);
        }
        let Some(Open { target, settings }) = crawls.get_mut(&item.crawl) else { continue };
        target.tally.urls += 1;
        match record(item, &target.frontier, settings) {
            Ok(record) => {
                collected += 1;
                let full = target.push(record, reading.lines.line_bytes())?;
                if full || collected == COLLECTED_MAX {
                    flush(crawls)?;
                    collected = 0;
                }
            }
            Err(problem) => {
                reading.bad(number, &problem)?;
                target.tally.bad += 1;
            }
        }
        urls += 1;
        if urls.is_multiple_of(1000) {
            reading.progress.set_message(format!("{urls} URLs"));
        }
    }
    Ok(())
}

fn flush(crawls: &mut BTreeMap<String, Open>) -> Result<(), Problem> {
    crawls.values_mut().try_for_each(|open| open.target.flush())
}

/// A crawl that is new serves its URLs as a URLFrontier does: by date, then by their text.
fn open(store: &Arc<dyn Store>, name: &str) -> Result<Open, Problem> {
    let now = moment::now();
    let opened = async {
        match Frontier::builder(name).attach(Arc::clone(store), now).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let settings = Settings { order: Order::Date, ..Settings::default() };
                Frontier::builder(name).settings(settings).open_shared(Arc::clone(store), now).await
            }
            attached => attached,
        }
    };
    let frontier = pollster::block_on(opened)?;
    let report = pollster::block_on(frontier.report(now))?;
    if let CrawlState::Finished(reason) = report.state {
        return Err(format!("the crawl `{name}` is finished ({reason}) and takes nothing more").into());
    }
    Ok(Open { target: Target::new(frontier), settings: report.settings })
}

fn record(item: Item, frontier: &Frontier, settings: &Settings) -> Result<Record, String> {
    let request = Request { metadata: item.metadata, ..Request::get(item.url) };
    let candidate = frontier.prepare_in(request, item.key.as_deref()).map_err(|error| error.to_string())?;
    let cost = settings.cost.cost(&candidate.request);
    let now = moment::now();
    let standing = match item.state {
        ItemState::Discovered => UrlStanding::Pending(None),
        ItemState::From(at) if at > now => UrlStanding::Scheduled(at),
        ItemState::From(at) => UrlStanding::Pending(Some(at)),
        ItemState::Completed => UrlStanding::Done(None),
    };
    Ok(Record::Url(Box::new(UrlRecord {
        class: settings.class.class(&candidate.request, cost),
        cost,
        standing,
        request: candidate.request,
        identity: candidate.identity,
        key: candidate.key,
        page: None,
        visits: 0,
        retries: 0,
        expiries: 0,
        entries: 1,
    })))
}
