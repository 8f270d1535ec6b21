//! URLs and queues as lists and numbers.

use trapline_core::{Request, Timestamp};
use trapline_frontier::{
    ErrorKind, Query, QueueReport, QueueState, Rows, Scan, StoreError, UrlReport, UrlState,
};

use super::crawls::{Crawl, wrong_rows};
use super::{UrlFrontierService, put};
use crate::proto::urlfrontier as pb;

/// So many rows are read at a time.
const PAGE: usize = 1000;

/// Which URLs.
pub(super) struct Filter {
    key: Option<String>,
    part: Option<String>,
    ignores_case: bool,
}

impl Filter {
    /// Those whose text has `part` in it.
    pub(super) fn new(key: String, part: Option<String>, ignores_case: bool) -> Self {
        let part = part.filter(|part| !part.is_empty());
        let part = if ignores_case { part.map(|part| part.to_lowercase()) } else { part };
        Self { key: Some(key).filter(|key| !key.is_empty()), part, ignores_case }
    }

    fn fits(&self, url: &str) -> bool {
        match &self.part {
            None => true,
            Some(part) if self.ignores_case => url.to_lowercase().contains(&**part),
            Some(part) => url.contains(&**part),
        }
    }
}

/// A list that is read page by page.
pub(super) struct Urls {
    scan: Option<Scan>,
    filter: Filter,
}

impl Urls {
    pub(super) fn new(filter: Filter) -> Self {
        let query = Query::Urls { key: filter.key.clone(), pattern: None, state: None };
        Self { scan: Some(Scan { limit: PAGE, ..Scan::new(query) }), filter }
    }

    /// Those on the next page that fit; None after the last.
    pub(super) async fn next(
        &mut self,
        service: &UrlFrontierService,
        crawl: &Crawl,
        now: Timestamp,
    ) -> Result<Option<Vec<UrlReport>>, StoreError> {
        let Some(scan) = &mut self.scan else { return Ok(None) };
        let page = service.store.scan(&crawl.name, now, scan).await?;
        let Rows::Urls(mut rows) = page.rows else { return Err(wrong_rows()) };
        rows.retain(|row| row.request.as_ref().is_some_and(|request| self.filter.fits(&request.url)));
        scan.cursor = page.cursor;
        if page.cursor.is_none() {
            self.scan = None;
        }
        Ok(Some(rows))
    }
}

impl UrlFrontierService {
    pub(super) async fn list_queues(
        &self,
        crawl: &Crawl,
        start: usize,
        size: usize,
        include_inactive: bool,
        now: Timestamp,
    ) -> Result<Vec<String>, StoreError> {
        let mut scan = Scan { limit: PAGE, ..Scan::new(Query::Queues { keys: None, state: None }) };
        let (mut listed, mut passed) = (Vec::new(), 0);
        loop {
            let page = self.store.scan(&crawl.name, now, &scan).await?;
            let Rows::Queues(rows) = page.rows else { return Err(wrong_rows()) };
            for queue in rows.iter().filter(|queue| is_listed(queue, include_inactive)) {
                if passed >= start {
                    listed.push(queue.key.to_string());
                    if listed.len() == size {
                        return Ok(listed);
                    }
                }
                passed += 1;
            }
            if page.cursor.is_none() {
                return Ok(listed);
            }
            scan.cursor = page.cursor;
        }
    }

    /// Counts of one queue.
    pub(super) async fn queue_stats(
        &self,
        crawl: &Crawl,
        key: &str,
        now: Timestamp,
    ) -> Result<pb::Stats, StoreError> {
        let queue = self.crawls.queues(crawl, vec![key.to_owned()], now).await?.pop();
        Ok(queue.filter(has_urls).map_or_else(pb::Stats::default, |queue| {
            let is_active = u64::from(is_listed(&queue, false));
            counts(queue.pending + queue.leased, queue.leased, queue.done, is_active, 1)
        }))
    }

    /// Counts of a crawl.
    pub(super) async fn crawl_stats(&self, crawl: &Crawl, now: Timestamp) -> Result<pb::Stats, StoreError> {
        let stats = match self.store.stats(&crawl.name, now).await {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(pb::Stats::default()),
            stats => stats?,
        };
        let active = [QueueState::Busy, QueueState::Snoozed, QueueState::Ready, QueueState::Inactive];
        let leased = stats.urls_in(UrlState::Leased);
        Ok(counts(
            stats.urls_in(UrlState::Pending) + leased,
            leased,
            stats.urls_in(UrlState::Done),
            active.into_iter().map(|state| stats.queues_in(state)).sum(),
            stats.queues.iter().sum(),
        ))
    }
}

fn counts(size: u64, in_process: u64, completed: u64, active: u64, queues: u64) -> pb::Stats {
    pb::Stats {
        size,
        in_process: u32::try_from(in_process).unwrap_or(u32::MAX),
        counts: [("completed".to_owned(), completed), ("active_queues".to_owned(), active)].into(),
        number_of_queues: queues,
        crawl_id: String::new(),
    }
}

/// A queue without any was deleted, or only told something.
fn has_urls(queue: &QueueReport) -> bool {
    urls_of(queue) > 0
}

pub(super) fn urls_of(queue: &QueueReport) -> u64 {
    queue.pending + queue.leased + queue.done + queue.disregarded + queue.dead
}

fn is_listed(queue: &QueueReport, include_inactive: bool) -> bool {
    let is_active = queue.pending + queue.leased > 0 && queue.state != QueueState::Blocked;
    is_active || (include_inactive && has_urls(queue))
}

/// A URL as it went in.
pub(super) fn info(request: &Request, key: &str, crawl: &str) -> pb::UrlInfo {
    let values = |values: &Vec<String>| pb::StringList { values: values.clone() };
    pb::UrlInfo {
        url: request.url.clone(),
        key: key.to_owned(),
        metadata: request.metadata.iter().map(|(name, list)| (name.clone(), values(list))).collect(),
        crawl_id: crawl.to_owned(),
    }
}

/// What is known of a URL; None if nothing is.
pub(super) fn item(url: &UrlReport, crawl: &str) -> Option<pb::UrlItem> {
    let request = url.request.as_deref().filter(|_| url.state != UrlState::Unknown)?;
    let created = put::creation_date(request);
    let date = match (url.state, url.due) {
        (UrlState::Done | UrlState::Dead | UrlState::Disregarded, None) => 0,
        (_, Some(due)) => due.as_millis() / 1000,
        (_, None) => created,
    };
    let known = pb::KnownUrlItem {
        info: Some(info(request, url.key.as_deref().unwrap_or_default(), crawl)),
        refetchable_from_date: date,
    };
    Some(pb::UrlItem {
        item: Some(pb::url_item::Item::Known(known)),
        id: String::new(),
        creation_date: created,
    })
}
