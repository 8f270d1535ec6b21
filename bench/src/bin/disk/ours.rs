//! Trapline's disk store, through the handle that everybody uses.

use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use pollster::block_on;
use trapline_core::{Candidate, IdentityKey, Timestamp};
use trapline_frontier::{
    Admission, Answer, Frontier, LeaseId, Outcome, QueueState, Settings, Settlement, UrlState, Want,
};
use trapline_stores::{DiskOptions, DiskStore, Durability};

use crate::SEED;
use crate::subject::{Counts, LEASE, Manner, Subject};

pub struct Ours(Frontier);

impl Subject for Ours {
    fn open(folder: &Path, manner: Manner) -> Self {
        let durability = if manner.synced { Durability::Batch } else { Durability::Explicit };
        let options = DiskOptions { durability, ..DiskOptions::default() };
        let settings = Settings {
            delay: Duration::from_millis(manner.delay),
            concurrency: u32::from(manner.delay > 0),
            lease: Duration::from_millis(LEASE),
            ..Settings::default()
        };
        let store = DiskStore::open(folder, &options).expect("the store opens");
        let builder = Frontier::builder("bench").key(IdentityKey::from_seed(SEED)).settings(settings);
        Self(block_on(builder.open(store, Timestamp::ZERO)).expect("the crawl opens"))
    }

    fn admit(&mut self, now: u64, batch: Vec<Candidate>) -> u64 {
        let answers = block_on(self.0.admit_candidates(Timestamp::from_millis(now), &batch));
        let answers = answers.expect("the store admits");
        answers.iter().filter(|answer| **answer == Admission::Added).count() as u64
    }

    fn claim(&mut self, now: u64, want: usize, from: Option<&str>) -> Vec<u64> {
        let want = Want { keys: from.map(|key| vec![key.to_owned()]), ..Want::urls(want) };
        let claimed = block_on(self.0.claim(Timestamp::from_millis(now), want));
        let leases = claimed.expect("the store grants").leases;
        black_box(&leases);
        leases.iter().map(|lease| lease.id.0).collect()
    }

    fn settle(&mut self, now: u64, leases: Vec<u64>) -> u64 {
        let done = |id| Settlement::new(LeaseId(id), Outcome::done());
        let batch = leases.into_iter().map(done).collect();
        let settled = block_on(self.0.settle(Timestamp::from_millis(now), batch));
        let settled = settled.expect("the store settles");
        settled.iter().filter(|settled| settled.answer == Answer::Done).count() as u64
    }

    fn counts(&mut self, now: u64) -> Counts {
        let stats = block_on(self.0.stats(Timestamp::from_millis(now))).expect("the store counts");
        let active = [QueueState::Busy, QueueState::Snoozed, QueueState::Ready];
        Counts {
            known: stats.urls.iter().sum(),
            leased: stats.urls_in(UrlState::Leased),
            active: active.into_iter().map(|state| stats.queues_in(state)).sum(),
        }
    }
}
