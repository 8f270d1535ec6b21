//! `scan` and `stats`: what can be asked of a crawl.

use std::sync::Arc;

use trapline_core::Identity;

use super::crawl::Crawl;
use super::queues::{Queue, QueueId, Retired};
use super::urls::{EntryId, State};
use crate::report::{
    CrawlReport, CrawlState, DeadLetter, LeaseReport, Memory, Page, Query, QueueReport, QueueState, Rows,
    Scan, Stats, UrlReport, UrlState,
};
use crate::verbs::LeaseId;

/// How many places a scan looks at for one page, so that a filter nothing matches does not hold up the rest.
const LOOKED_AT: usize = 100_000;

impl Crawl {
    pub(super) fn scan(&mut self, scan: &Scan) -> Page {
        let limit = scan.limit.max(1);
        let from = scan.cursor.unwrap_or(0);
        let mut cursor = None;
        let rows = match &scan.query {
            Query::Crawl => Rows::Crawl(Box::new(self.report())),
            // The engine lists them, who has them all.
            Query::Crawls => Rows::Crawls(vec![self.report()]),
            Query::Queues { keys: Some(keys), state } => {
                let named = keys.iter().filter_map(|key| self.queues.find(key));
                let reports = named.map(|id| self.queue_report(id));
                Rows::Queues(
                    reports.filter(|report| state.is_none_or(|state| report.state == state)).collect(),
                )
            }
            Query::Queues { keys: None, state } => Rows::Queues(take_page(
                (from..self.queues.len().into()).map(|id| (id, QueueId(id as u32))),
                |id| {
                    let fits = state.is_none_or(|state| self.state_of(&self.queues[id]) == state);
                    fits.then(|| self.queue_report(id))
                },
                limit,
                &mut cursor,
            )),
            Query::UrlList(identities) => {
                Rows::Urls(identities.iter().map(|identity| self.url_report(*identity)).collect())
            }
            Query::Urls { key, pattern, state } => {
                let queue = key.as_ref().map(|key| self.queues.find(key));
                Rows::Urls(take_page(
                    (from..self.urls.slots().into()).map(|slot| (slot, EntryId(slot as u32))),
                    |id| {
                        let entry = &self.urls[id];
                        let fits = entry.state() != State::Free
                            && queue.is_none_or(|queue| queue == Some(entry.queue))
                            && state.is_none_or(|state| state == entry.state().public())
                            && !self.is_gone(id)
                            && pattern.as_ref().is_none_or(|pattern| pattern.matches(&self.urls.url(id)));
                        fits.then(|| self.entry_report(id))
                    },
                    limit,
                    &mut cursor,
                ))
            }
            Query::Leases => Rows::Leases(take_page(
                self.leases.iter_from(from).map(|(id, grant)| (id, (id, grant))),
                |(id, grant)| {
                    (!self.is_gone(grant.entry)).then(|| LeaseReport {
                        id: LeaseId(id),
                        key: Arc::clone(&self.queue_of_entry(grant.entry).key),
                        request: self.urls.request(grant.entry),
                        granted: grant.granted,
                        deadline: grant.deadline.at,
                        delivery: self.urls.more(grant.entry).expiries.saturating_add(1),
                    })
                },
                limit,
                &mut cursor,
            )),
            Query::Dead => Rows::Dead(take_page(
                self.dead_letters
                    .range(EntryId(u32::try_from(from).unwrap_or(u32::MAX))..)
                    .map(|(id, death)| (id.0.into(), (*id, death))),
                |(id, death)| {
                    (!self.is_gone(id)).then(|| DeadLetter {
                        identity: self.urls[id].identity(),
                        key: Arc::clone(&self.queue_of_entry(id).key),
                        request: self.urls.request(id),
                        reason: death.reason.clone(),
                        at: death.at,
                    })
                },
                limit,
                &mut cursor,
            )),
            Query::Notes { prefix } => {
                let places = (0..)
                    .zip(self.notes.beginning_with(prefix))
                    .skip(usize::try_from(from).unwrap_or(usize::MAX));
                Rows::Notes(take_page(places, |(key, note)| self.notes.show(key, note), limit, &mut cursor))
            }
            Query::Records => Rows::Records(self.records(from, limit, &mut cursor)),
            Query::Jobs => Rows::Jobs(self.job_reports().collect()),
        };
        Page { rows, cursor }
    }

    fn report(&self) -> CrawlReport {
        CrawlReport {
            name: Arc::clone(&self.name),
            key: self.key,
            partitions: self.lines.len(),
            settings: self.settings.clone(),
            started: self.started,
            state: self.state.clone(),
            exhausted: self.is_exhausted(),
        }
    }

    fn queue_report(&self, id: QueueId) -> QueueReport {
        let queue = &self.queues[id];
        let average = if queue.grants == 0 { 0.0 } else { queue.charged as f64 / f64::from(queue.grants) };
        QueueReport {
            key: Arc::clone(&queue.key),
            partition: queue.partition.into(),
            state: self.state_of(queue),
            why: self.why(queue),
            pending: queue.pending().into(),
            leased: queue.leased.into(),
            done: queue.done.into(),
            disregarded: queue.rare().map_or(0, |rare| rare.disregarded).into(),
            dead: queue.rare().map_or(0, |rare| rare.dead).into(),
            errors: queue.rare().map_or(0, |rare| rare.errors),
            budget: queue.budget(&self.settings),
            spent: queue.spent(self.charges_from()),
            balance: queue.balance,
            latest_cost: queue.latest_cost,
            average_cost: average,
            precedence: queue.precedence(),
            group: queue.group().map(|group| Arc::clone(&self.groups[group].name)),
            concurrency: queue.concurrency(&self.settings),
            delay: queue.delay(&self.settings),
            next_fetch: self.next_fetch_of(queue),
        }
    }

    /// Why a queue is not being served, in words.
    fn why(&self, queue: &Queue) -> String {
        let settings = &self.settings;
        match self.state_of(queue) {
            QueueState::Retired if queue.retired() == Some(Retired::ByHand) => {
                "retired by an operator; `reinstate` serves it again".to_owned()
            }
            QueueState::Retired if queue.balance_replenish(settings) == 0 => {
                "retired: its balance_replenish is 0; a higher one serves it again".to_owned()
            }
            QueueState::Retired => {
                let budget =
                    queue.budget(settings).map_or_else(|| "none".to_owned(), |budget| budget.to_string());
                let until = self.period_ends().map_or_else(
                    || "a higher queue_budget serves it again".to_owned(),
                    |end| format!("served again at {end}, when the period ends"),
                );
                format!(
                    "retired: it has spent {} and {} of {budget}; {until}",
                    queue.spent(self.charges_from()),
                    QueueReport::OVER_BUDGET
                )
            }
            QueueState::Blocked => format!("blocked until {}", queue.blocked().at),
            QueueState::Empty => "nothing is pending".to_owned(),
            QueueState::Busy if queue.is_full(settings) => format!(
                "{} leased, as many as its concurrency of {} allows",
                queue.leased,
                queue.concurrency(settings)
            ),
            QueueState::Busy => format!("all that is left, {} of its URLs, is leased", queue.leased),
            QueueState::Snoozed => match self.next_fetch_of(queue) {
                Some(at) if queue.next_fetch.at < at => {
                    let group = queue.group().map_or("", |group| &*self.groups[group].name);
                    format!("its group {group} is not to be fetched from before {at}")
                }
                Some(at) => format!("not to be fetched from before {at}"),
                None => "all its pending URLs are due later".to_owned(),
            },
            state @ (QueueState::Ready | QueueState::Inactive) => match &self.state {
                CrawlState::Paused => "the crawl is paused; `resume` serves it".to_owned(),
                CrawlState::Finished(reason) => format!("the crawl is finished: {reason}"),
                CrawlState::Running if state == QueueState::Ready => "ready: may be served now".to_owned(),
                CrawlState::Running => "waits for its turn".to_owned(),
            },
        }
    }

    fn url_report(&self, identity: Identity) -> UrlReport {
        match self.see_url(identity) {
            Some(id) => self.entry_report(id),
            None => UrlReport {
                identity,
                request: None,
                state: UrlState::Unknown,
                key: None,
                class: 0,
                cost: 0,
                reason: None,
                due: None,
                page: None,
            },
        }
    }

    fn entry_report(&self, id: EntryId) -> UrlReport {
        let entry = &self.urls[id];
        UrlReport {
            identity: entry.identity(),
            // Without a URL, it cannot be read.
            request: Some(self.urls.request(id)).filter(|request| !request.url.is_empty()),
            state: entry.state().public(),
            key: Some(Arc::clone(&self.queue_of_entry(id).key)),
            class: entry.class,
            cost: entry.cost,
            reason: self.reason(id),
            due: self.urls.due_at(id),
            page: self.urls.page(id),
        }
    }

    fn reason(&self, id: EntryId) -> Option<String> {
        let dead = self.dead_letters.get(&id).map(|death| &death.reason);
        dead.or_else(|| self.disregards.get(&id)).cloned()
    }

    pub(super) fn stats(&self) -> Stats {
        Stats {
            queues: self.census.queues(),
            urls: self.url_counts,
            visits_waiting: self.census.visits(),
            fetched: self.fetched,
            bytes: self.bytes,
            spent: self.spent,
            granted: self.granted,
            expired: self.expired,
            durability: None,
            recovered: None,
            memory: Some(self.memory()),
            disk: None,
            pressure: None,
        }
    }

    pub(super) fn memory(&self) -> Memory {
        let mut memory = Memory { queues: self.queues.bytes() as u64, ..Memory::default() };
        self.urls.weigh(&mut memory);
        memory
    }
}

/// A page of crawls.
pub(super) fn list_crawls<'a>(crawls: impl Iterator<Item = &'a Crawl>, scan: &Scan) -> Page {
    let from = usize::try_from(scan.cursor.unwrap_or(0)).unwrap_or(usize::MAX);
    let mut cursor = None;
    let places = (0..).zip(crawls).skip(from);
    let reports = take_page(places, |crawl| Some(crawl.report()), scan.limit.max(1), &mut cursor);
    Page { rows: Rows::Crawls(reports), cursor }
}

/// Takes rows until the page is full or enough was looked at; then says where to go on.
fn take_page<T, R>(
    places: impl Iterator<Item = (u64, T)>,
    mut row: impl FnMut(T) -> Option<R>,
    limit: usize,
    cursor: &mut Option<u64>,
) -> Vec<R> {
    let mut rows = Vec::new();
    for (looked_at, (place, thing)) in places.enumerate() {
        if rows.len() == limit || looked_at == LOOKED_AT {
            *cursor = Some(place);
            break;
        }
        rows.extend(row(thing));
    }
    rows
}
