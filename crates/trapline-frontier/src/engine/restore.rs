//! Records in: a crawl takes over what another one remembered. What is known stays as it is.

use trapline_core::{KEY_BYTES_MAX, Terms, URL_BYTES_MAX};

use super::crawl::{Crawl, Death};
use super::moment::{Age, Moment};
use super::order::place_behind_all;
use super::queues::{QueueId, Retired};
use super::urls::{EntryId, NewEntry, State};
use crate::record::{CrawlRecord, QueueRecord, Record, RetiredBy, UrlRecord, UrlStanding};
use crate::settings::Order;
use crate::store::{ErrorKind, StoreError};

/// Whether records can be restored, all of them.
pub(super) fn check(store: &str, crawl: &Crawl, records: &[Record]) -> Result<(), StoreError> {
    let cannot = |why: String| {
        let message = format!("{store} store: cannot restore into the crawl `{}`: {why}", crawl.name);
        StoreError::new(ErrorKind::Invalid, message)
    };
    if crawl.is_finished() {
        return Err(cannot("it is finished and takes nothing more; choose another crawl".to_owned()));
    }
    for (number, record) in records.iter().enumerate() {
        let (key, url_bytes) = match record {
            Record::Url(url) => (&url.key, url.request.url.len()),
            Record::Queue(queue) => (&queue.key, 0),
            Record::Note(_) | Record::Crawl(_) => continue,
        };
        if !(1..=KEY_BYTES_MAX).contains(&key.len()) || url_bytes > URL_BYTES_MAX {
            return Err(cannot(format!(
                "record {number} has a key of {} bytes and a URL of {url_bytes}; keys have 1 to {KEY_BYTES_MAX}, URLs up to \
                 {URL_BYTES_MAX}; nothing was done",
                key.len()
            )));
        }
    }
    super::check_room(store, crawl, records.len(), "restore")
}

impl Crawl {
    /// Restores records; answers how many of them were not known.
    pub(super) fn restore(&mut self, records: Vec<Record>) -> u64 {
        let mut restored = 0;
        for record in records {
            restored += u64::from(match record {
                Record::Url(url) => self.restore_url(*url),
                Record::Queue(queue) => self.restore_queue(&queue),
                Record::Note(note) => {
                    self.notes.write(&note);
                    true
                }
                Record::Crawl(crawl) => self.restore_counts(crawl),
            });
        }
        self.check_limits();
        restored
    }

    fn restore_url(&mut self, record: UrlRecord) -> bool {
        let entries = self.find_all(record.identity);
        if entries.len() as u64 >= u64::from(record.entries.max(1)) {
            return false;
        }
        let UrlRecord {
            request,
            identity,
            key,
            class,
            cost,
            standing,
            page,
            visits,
            retries,
            expiries,
            entries: _,
        } = record;
        let queue = self.queue_of(&key);
        let deletions = self.queues[queue].deletions();
        let new = NewEntry { identity, request: &request, queue, deletions, class, cost };
        let reuse = self.reuses_slots();
        let id = self.urls.add(new, entries.first().copied(), reuse);
        self.urls.set_visits(id, visits);
        if retries > 0 || expiries > 0 {
            let more = self.urls.more_mut(id);
            (more.retries, more.expiries) = (retries, expiries);
        }
        if let Some(page) = page {
            self.urls.set_page(id, &page);
        }
        self.take_standing(id, standing);
        self.supply(queue, None);
        true
    }

    fn take_standing(&mut self, id: EntryId, standing: UrlStanding) {
        match standing {
            UrlStanding::Pending(at) => {
                self.place_as_admitted(id, at.unwrap_or(self.now));
                // Last in, first out: those restored later were admitted earlier.
                if self.order() == Order::Lifo {
                    let place = place_behind_all(Order::Lifo, self.urls.live(id).admitted());
                    self.urls.more_mut(id).place = place;
                }
                self.enter(id, State::Pending);
            }
            UrlStanding::Retry(at) if at > self.now => {
                let rank = self.draw();
                self.urls.live_mut(id).set_admitted(rank);
                self.urls.more_mut(id).due = Moment { at, rank };
                self.enter(id, State::Retrying);
            }
            UrlStanding::Returned(at) | UrlStanding::Retry(at) => {
                let rank = self.draw();
                self.urls.live_mut(id).set_admitted(rank);
                self.place_as_returned(id, at);
                self.enter(id, State::Pending);
            }
            UrlStanding::Leased => self.take_standing(id, UrlStanding::Returned(self.now)),
            UrlStanding::Scheduled(at) => self.schedule(id, at, State::Scheduled),
            UrlStanding::Done(Some(at)) => self.schedule(id, at, State::Revisiting),
            UrlStanding::Done(None) => self.enter(id, State::Done),
            UrlStanding::Disregarded(reason) => {
                if !reason.is_empty() {
                    self.disregards.insert(id, reason);
                }
                self.enter(id, State::Disregarded);
            }
            UrlStanding::Dead { reason, at } => {
                let rank = self.draw();
                self.dead_letters.insert(id, Death { reason, at, rank });
                self.enter(id, State::Dead);
            }
        }
    }

    /// Nothing has happened to a queue but that it was given URLs: then it takes everything on, and goes behind all that were
    /// restored before it.
    fn restore_queue(&mut self, record: &QueueRecord) -> bool {
        let id = self.queue_of(&record.key);
        if self.is_used(id) {
            return false;
        }
        self.take_terms(id, &record.terms, false);
        self.take_terms(id, &record.steered, true);
        self.stand_down(id);
        let (from, now, moment) = (self.charges_from(), self.now, self.this_moment());
        let queue = &mut self.queues[id];
        queue.active = record.active && queue.pending() > 0;
        queue.balance = record.balance;
        if record.spent > 0 {
            queue.spend(from, now, record.spent);
        }
        (queue.grants, queue.charged, queue.latest_cost) =
            (record.grants, record.charged, record.latest_cost);
        if record.errors > 0 {
            queue.rare_mut().errors = record.errors;
        }
        queue.freed = moment;
        queue.set_age(Age::since(moment));
        let ahead = |at: Option<_>| at.filter(|at| *at > now).map(|at| Moment { at, rank: moment.rank });
        if let Some(until) = ahead(record.next_fetch) {
            queue.next_fetch = until;
        }
        if let (Some(group), Some(until)) = (queue.group(), ahead(record.group_next_fetch)) {
            self.pace_group(group, until);
        }
        match ahead(record.blocked) {
            Some(until) => self.block(id, until),
            None => self.refresh(id),
        }
        match record.retired {
            None => {}
            Some(RetiredBy::Operator) => self.retire(id, Retired::ByHand),
            Some(RetiredBy::Budget) => self.retire(id, Retired::OverBudget(self.generation)),
        }
        true
    }

    /// Whether more has happened to a queue than that it was given URLs.
    fn is_used(&self, id: QueueId) -> bool {
        let queue = &self.queues[id];
        queue.grants > 0
            || queue.leased > 0
            || queue.next_fetch != Moment::ZERO
            || queue.blocked() != Moment::ZERO
            || queue.retired().is_some()
            || queue.group().is_some()
            || queue.is_grouped_by_operator()
            || [false, true].iter().any(|by| queue.terms_by(*by) != Terms::default())
    }

    fn restore_counts(&mut self, record: CrawlRecord) -> bool {
        if self.granted > 0 || self.fetched > 0 {
            return false;
        }
        let CrawlRecord { started, fetched, bytes, spent, granted, expired, turn } = record;
        self.started = started.min(self.now);
        (self.fetched, self.bytes, self.spent) = (fetched, bytes, spent);
        (self.granted, self.expired) = (granted, expired);
        self.lines.set_turn(turn);
        // Budget periods count from the start.
        self.set_period_timer();
        true
    }
}
