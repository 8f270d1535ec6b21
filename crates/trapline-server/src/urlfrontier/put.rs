//! URLs that come in: discovered, or known with a date.

use std::collections::BTreeMap;
use std::sync::Arc;

use trapline_core::{Candidate, Request, Statement, Terms, Timestamp};
use trapline_frontier::{Admission, ErrorKind, Query, Refusal, Rows, Scan, StoreError};

use super::crawls::{Crawl, wrong_rows};
use super::{UrlFrontierService, names};
use crate::proto::urlfrontier as pb;
use pb::ack_message::Status;
use pb::url_item::Item;

/// One URL of a batch.
pub(super) struct Put {
    pub(super) info: pb::UrlInfo,
    /// None: discovered. 0: completed. Otherwise when it may be fetched, in seconds since 1970.
    pub(super) known: Option<u64>,
}

impl Put {
    /// What an item says; None if it says nothing.
    pub(super) fn of_item(item: Option<Item>) -> Option<Self> {
        match item? {
            Item::Discovered(discovered) => Some(Self { info: discovered.info?, known: None }),
            Item::Known(known) => Some(Self { info: known.info?, known: Some(known.refetchable_from_date) }),
        }
    }
}

/// The candidates of one crawl, in their order.
#[derive(Default)]
struct Batch {
    candidates: Vec<Candidate>,
    /// Which of all that came each of them is.
    places: Vec<usize>,
}

impl UrlFrontierService {
    /// Takes URLs, in their order, and says what became of each.
    pub(super) async fn put(&self, puts: Vec<Option<Put>>) -> Vec<Status> {
        let now = self.clock.now();
        let mut statuses = vec![Status::Skipped; puts.len()];
        let mut of_crawls: BTreeMap<String, Vec<(usize, Put)>> = BTreeMap::new();
        for (place, put) in puts.into_iter().enumerate() {
            let Some(put) = put.filter(|put| names::is_url(&put.info.url)) else { continue };
            let crawl = names::crawl(&put.info.crawl_id);
            match of_crawls.get_mut(crawl) {
                Some(puts) => puts.push((place, put)),
                None => {
                    of_crawls.insert(crawl.to_owned(), vec![(place, put)]);
                }
            }
        }
        for (crawl, puts) in of_crawls {
            let places: Vec<_> = puts.iter().map(|(place, _)| *place).collect();
            match self.put_in(&crawl, puts, now).await {
                Ok(put) => put.into_iter().for_each(|(place, status)| statuses[place] = status),
                Err(error) => {
                    // FAIL asks to send it again. What is the caller's own doing would not become right by that.
                    let is_callers = error.kind() == ErrorKind::Invalid && !error.is_for_operators();
                    let status = if is_callers {
                        tracing::debug!("URLs of the crawl {crawl:?} were not taken: {error}");
                        Status::Skipped
                    } else {
                        tracing::error!("URLs of the crawl {crawl:?} were not taken: {error}");
                        Status::Fail
                    };
                    places.into_iter().for_each(|place| statuses[place] = status);
                }
            }
        }
        statuses
    }

    async fn put_in(
        &self,
        name: &str,
        puts: Vec<(usize, Put)>,
        now: Timestamp,
    ) -> Result<Vec<(usize, Status)>, StoreError> {
        let mut crawl = self.crawls.find_or_make(name, now).await?;
        let mut batch = batch(&crawl, puts, now);
        let mut admitted = self.admit(&crawl, &mut batch.candidates, now).await;
        if matches!(&admitted, Err(error) if error.kind() == ErrorKind::NotFound) {
            // Somebody has deleted it by another way. Another one of its name has another secret.
            self.crawls.drop_from_memory(name);
            crawl = self.crawls.find_or_make(name, now).await?;
            for candidate in &mut batch.candidates {
                candidate.identity = names::identity(&crawl.secret, &candidate.key, &candidate.request.url);
            }
            admitted = self.admit(&crawl, &mut batch.candidates, now).await;
        }
        let admitted = admitted?;
        // What is completed by now counts before anybody hears of it.
        let stated = batch.candidates.iter().filter(|candidate| candidate.statement.is_some());
        let limited = crawl.limited(stated.map(|candidate| &*candidate.key));
        self.crawls.keep_limits(&crawl, &limited, now).await?;
        let status = |admission: &Admission| match admission {
            Admission::Added | Admission::Restated => Status::Ok,
            Admission::Known
            | Admission::Rescored
            | Admission::Refused(Refusal::Malformed | Refusal::TooDeep | Refusal::Finished) => {
                Status::Skipped
            }
            Admission::Refused(_) => Status::Fail,
        };
        Ok(batch.places.into_iter().zip(admitted.iter().map(status)).collect())
    }

    async fn admit(
        &self,
        crawl: &Crawl,
        candidates: &mut [Candidate],
        now: Timestamp,
    ) -> Result<Vec<Admission>, StoreError> {
        self.keep_dates(crawl, candidates, now).await?;
        self.store.admit(&crawl.name, now, candidates).await
    }

    /// A URL that is stated anew keeps the date it came at.
    async fn keep_dates(
        &self,
        crawl: &Crawl,
        candidates: &mut [Candidate],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut stated: Vec<_> =
            candidates.iter_mut().filter(|candidate| candidate.statement.is_some()).collect();
        if stated.is_empty() {
            return Ok(());
        }
        let identities = stated.iter().map(|candidate| candidate.identity).collect();
        let scan = Scan::new(Query::UrlList(identities));
        let Rows::Urls(known) = self.store.scan(&crawl.name, now, &scan).await?.rows else {
            return Err(wrong_rows());
        };
        for (candidate, known) in stated.iter_mut().zip(known) {
            if let Some(before) = known.request {
                let opaque = &mut Arc::make_mut(&mut candidate.request).opaque;
                let stated = stated_date(opaque);
                *opaque = dates(creation_date(&before), stated);
            }
        }
        Ok(())
    }
}

/// The candidates among what came. What has no key is left out.
fn batch(crawl: &Crawl, mut puts: Vec<(usize, Put)>, now: Timestamp) -> Batch {
    let mut batch = Batch::default();
    // What came at one time goes out in the order of its text, and entering a queue at its end costs least. What is said of one URL
    // keeps its order.
    puts.sort_by(|(_, one), (_, other)| one.info.url.cmp(&other.info.url));
    for (place, Put { info, known }) in puts {
        let Some(key) = names::key(&info.key, &info.url) else { continue };
        let (key, identity) = (Arc::from(key), names::identity(&crawl.secret, key, &info.url));
        let mut request = Request::get(info.url);
        request.metadata = info.metadata.into_iter().map(|(name, values)| (name, values.values)).collect();
        request.opaque = dates(now.as_millis() / 1000, known);
        batch.candidates.push(Candidate {
            request: Arc::new(request),
            identity,
            key,
            class: None,
            cost: None,
            terms: Terms::default(),
            improve: false,
            dont_filter: false,
            statement: known.map(|date| match date {
                0 => Statement::Done,
                date => Statement::Next(Timestamp::from_millis(date.saturating_mul(1000))),
            }),
        });
        batch.places.push(place);
    }
    batch
}

/// When a URL came, and the date that was stated of it, as they are kept with its request.
fn dates(created: u64, stated: Option<u64>) -> Vec<u8> {
    let stated = stated.filter(|date| *date > 0);
    std::iter::once(created).chain(stated).flat_map(u64::to_be_bytes).collect()
}

/// When a URL came, in seconds since 1970; 0 if that is not known.
pub(super) fn creation_date(request: &Request) -> u64 {
    request.opaque.first_chunk().copied().map_or(0, u64::from_be_bytes)
}

/// From when on it may be fetched, as it was stated of it.
pub(super) fn refetchable_from(request: &Request) -> Option<u64> {
    stated_date(&request.opaque)
}

fn stated_date(dates: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(*dates.get(8..)?.first_chunk()?))
}
