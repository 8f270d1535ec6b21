//! URLs and queues as lists and numbers.

use std::collections::BTreeSet;

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
        Ok(queue.filter(has_urls).map_or_else(nothing, |queue| {
            let active = u64::from(has_active(&queue));
            counts(queue.pending + queue.leased, queue.leased, queue.done, active, 1)
        }))
    }

    /// How many URLs a crawl has in each state; none if there is no such crawl.
    pub(super) async fn url_counts(&self, crawl: &Crawl, now: Timestamp) -> Result<[u64; 6], StoreError> {
        match self.store.stats(&crawl.name, now).await {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok([0; 6]),
            stats => Ok(stats?.urls),
        }
    }

    /// Counts of a crawl.
    pub(super) async fn crawl_stats(&self, crawl: &Crawl, now: Timestamp) -> Result<pb::Stats, StoreError> {
        let stats = match self.store.stats(&crawl.name, now).await {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(nothing()),
            stats => stats?,
        };
        let active = [QueueState::Busy, QueueState::Snoozed, QueueState::Ready, QueueState::Inactive];
        let mut active: u64 = active.into_iter().map(|state| stats.queues_in(state)).sum();
        for state in [QueueState::Blocked, QueueState::Retired] {
            if stats.queues_in(state) > 0 {
                self.each_queue(crawl, Some(state), now, |queue| active += u64::from(has_active(&queue)))
                    .await?;
            }
        }
        let queues: u64 = stats.queues.iter().sum();
        let leased = stats.urls_in(UrlState::Leased);
        Ok(counts(
            stats.urls_in(UrlState::Pending) + leased,
            leased,
            stats.urls_in(UrlState::Done),
            active,
            queues - self.hollow_queues(crawl, now).await?.min(queues),
        ))
    }

    /// How many queues have no URL: they were emptied, or only told something.
    async fn hollow_queues(&self, crawl: &Crawl, now: Timestamp) -> Result<u64, StoreError> {
        let mut hollow = crawl.hollow.lock().await;
        if hollow.is_none() {
            // Once; from then on it is known which may be.
            let mut found = BTreeSet::new();
            for state in [QueueState::Empty, QueueState::Blocked, QueueState::Retired] {
                let mut find = |queue: QueueReport| {
                    if !has_urls(&queue) {
                        found.insert(queue.key.to_string());
                    }
                };
                self.each_queue(crawl, Some(state), now, &mut find).await?;
            }
            *hollow = Some(found);
        }
        let Some(hollow) = &mut *hollow else { return Ok(0) };
        if !hollow.is_empty() {
            let there = self.crawls.queues(crawl, hollow.iter().cloned().collect(), now).await?;
            let still = there.into_iter().filter(|queue| !has_urls(queue));
            *hollow = still.map(|queue| queue.key.to_string()).collect();
        }
        Ok(hollow.len() as u64)
    }

    /// All queues of a crawl, or those in a state.
    async fn each_queue(
        &self,
        crawl: &Crawl,
        state: Option<QueueState>,
        now: Timestamp,
        mut tell: impl FnMut(QueueReport) + Send,
    ) -> Result<(), StoreError> {
        let mut scan = Scan { limit: PAGE, ..Scan::new(Query::Queues { keys: None, state }) };
        loop {
            let page = self.store.scan(&crawl.name, now, &scan).await?;
            let Rows::Queues(rows) = page.rows else { return Err(wrong_rows()) };
            rows.into_iter().for_each(&mut tell);
            if page.cursor.is_none() {
                return Ok(());
            }
            scan.cursor = page.cursor;
        }
    }
}

/// Of what is not there.
pub(super) fn nothing() -> pb::Stats {
    counts(0, 0, 0, 0, 0)
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

/// Whether there is anything to be fetched of it, now or later.
fn has_active(queue: &QueueReport) -> bool {
    queue.pending + queue.leased > 0
}

fn is_listed(queue: &QueueReport, include_inactive: bool) -> bool {
    let is_active = has_active(queue) && queue.state != QueueState::Blocked;
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
        (_, None) => put::refetchable_from(request).unwrap_or(created),
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
