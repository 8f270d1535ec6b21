//! URLs that go out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use trapline_core::Timestamp;
use trapline_frontier::{ErrorKind, Lease, Outcome, Settlement, StoreError, Want};

use super::crawls::Crawl;
use super::{UrlFrontierService, names};
use crate::proto::urlfrontier as pb;
use pb::get_params::Item;

/// For how long a URL is handed out, unless the client says.
const LEASE: Duration = Duration::from_secs(30);

/// So many URLs at most go out with one call, however many are asked for.
const URLS_MAX: usize = 10_000;

/// So many bytes at most; what is beyond them stays where it was.
const BYTES_MAX: usize = 32 << 20;

/// What is left to be handed out.
struct Room {
    urls: usize,
    bytes: usize,
    queues: Option<usize>,
}

impl Room {
    /// How many of these leases have room, by their bytes: the first one in any case.
    fn fitting(&mut self, leases: &[Lease]) -> usize {
        let bytes = |lease: &Lease| {
            let metadata = lease.request.metadata.iter();
            let values =
                metadata.map(|(name, values)| name.len() + values.iter().map(String::len).sum::<usize>());
            lease.request.url.len() + lease.key.len() + values.sum::<usize>()
        };
        let mut fitting = 0;
        for lease in leases {
            let bytes = bytes(lease);
            if bytes > self.bytes && (fitting > 0 || self.bytes < BYTES_MAX) {
                self.bytes = 0;
                break;
            }
            self.bytes = self.bytes.saturating_sub(bytes);
            fitting += 1;
        }
        fitting
    }
}

impl UrlFrontierService {
    /// Hands out URLs.
    pub(super) async fn get(&self, params: pb::GetParams) -> Result<Vec<pb::UrlInfo>, StoreError> {
        let now = self.clock.now();
        let crawls = match &params.item {
            Some(Item::CrawlId(id)) => Vec::from_iter(self.crawls.find_soon(names::crawl(id), now).await?),
            Some(Item::AnyCrawlId(_)) | None => {
                let mut all = self.crawls.all(now).await?;
                // They take turns to be the first.
                let turn = self.turn.fetch_add(1, Ordering::Relaxed);
                let first = turn.checked_rem(all.len()).unwrap_or_default();
                all.rotate_left(first);
                all
            }
        };
        let unless_0 = |given: u32| (given > 0).then_some(given as usize);
        let lease = unless_0(params.delay_requestable)
            .map_or(LEASE, |_| Duration::from_secs(u64::from(params.delay_requestable)));
        let per_queue = unless_0(params.max_urls_per_queue);
        let mut room = Room { urls: URLS_MAX, bytes: BYTES_MAX, queues: unless_0(params.max_queues) };
        let mut out = Vec::new();
        for crawl in crawls {
            if room.urls == 0 || room.bytes == 0 || room.queues == Some(0) {
                break;
            }
            let want = Want {
                urls: room.urls,
                lease: Some(lease),
                queues: room.queues,
                per_queue,
                keys: (!params.key.is_empty()).then(|| vec![params.key.clone()]),
                ..Want::default()
            };
            match self.hand_out(&crawl, &want, now, &mut room).await {
                Ok(leases) => out.extend(leases.into_iter().map(info)),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    self.crawls.drop_from_memory(&crawl.name);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(out)
    }

    /// Claims, and lets the queues that supplied something wait: from now on, whatever becomes of it.
    async fn hand_out(
        &self,
        crawl: &Arc<Crawl>,
        want: &Want,
        now: Timestamp,
        room: &mut Room,
    ) -> Result<Vec<Lease>, StoreError> {
        // Between the two steps nobody else may find the queues ready, nor may a pause be acknowledged.
        let _gate = self.gate.lock().await;
        let common = self.crawls.common();
        if !common.active {
            return Ok(Vec::new());
        }
        let mut leases = self.store.claim(Some(&crawl.name), now, want).await?.leases;
        let beyond = leases.split_off(room.fitting(&leases));
        if !beyond.is_empty() {
            let released = beyond.iter().map(|lease| Settlement::new(lease.id, Outcome::Release));
            self.store.settle(&crawl.name, now, released.collect()).await?;
        }
        let lease = want.lease.unwrap_or(LEASE);
        let mut waits: BTreeMap<&str, Settlement> = BTreeMap::new();
        for granted in &leases {
            waits.entry(&granted.key).or_insert_with(|| {
                let mut renewal = Settlement::new(granted.id, Outcome::Renew { lease });
                renewal.delay = Some(crawl.delay(&granted.key, common));
                renewal
            });
        }
        {
            let mut batches = crawl.batches();
            leases.iter().for_each(|lease| batches.add(&lease.key, lease.id, now, lease.deadline));
            batches.tidy(now);
        }
        room.urls -= leases.len().min(room.urls);
        room.queues = room.queues.map(|queues| queues.saturating_sub(waits.len()));
        let mut waits: Vec<_> = waits.into_values().collect();
        waits.retain(|wait| wait.delay != Some(Duration::ZERO));
        if !waits.is_empty() {
            // The renewal changes nothing; the delay that it carries does.
            self.store.settle(&crawl.name, now, waits).await?;
        }
        Ok(leases)
    }
}

fn info(lease: Lease) -> pb::UrlInfo {
    let (crawl, key) = (lease.crawl, lease.key);
    super::listing::info(&lease.request, &key, &crawl)
}
