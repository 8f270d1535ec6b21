//! A crawl as a step of work sees it: its row.

use std::sync::Arc;
use std::time::Duration;

use trapline_core::{IdentityKey, Timestamp};
use trapline_frontier::{CrawlState, Settings};

use super::moment::{Moment, column};

/// One crawl.
#[derive(Clone, Debug)]
pub(super) struct Crawl {
    pub(super) id: i64,
    pub(super) name: Arc<str>,
    pub(super) key: IdentityKey,
    pub(super) partitions: u32,
    pub(super) settings: Arc<Settings>,
    pub(super) started: Timestamp,
    pub(super) state: CrawlState,
    /// When the length of budget periods was last set, and from when on charges counted then.
    pub(super) period_set: Moment,
    pub(super) charged_before: i64,
    pub(super) turn: i64,
    pub(super) last_job: i64,
    /// What was fetched before this step, where a limit asks for it.
    pub(super) fetched: i64,
    pub(super) bytes: u64,
    pub(super) touched: bool,
}

impl Crawl {
    pub(super) fn is_running(&self) -> bool {
        self.state == CrawlState::Running
    }

    pub(super) fn is_finished(&self) -> bool {
        matches!(self.state, CrawlState::Finished(_))
    }

    /// Ends it; the first reason stays.
    pub(super) fn finish(&mut self, reason: &str) {
        if !self.is_finished() {
            self.set_state(CrawlState::Finished(reason.to_owned()));
        }
    }

    pub(super) fn set_state(&mut self, state: CrawlState) {
        self.touched |= self.state != state;
        self.state = state;
    }

    /// Whether a count of all fetches decides when it ends: then settlements are counted one after the other.
    pub(super) fn counts_fetches(settings: &Settings) -> bool {
        settings.max_urls.is_some() || settings.max_bytes.is_some()
    }

    /// From when on charges count: since the present budget period began.
    pub(super) fn charges_from(&self, now: i64) -> i64 {
        let began = self.period_began(self.settings.queue_budget_period, now);
        if began > self.period_set.at { began } else { self.charged_before }
    }

    /// When the present period began, if periods are this long. They count from the crawl's start.
    pub(super) fn period_began(&self, period: Option<Duration>, now: i64) -> i64 {
        let started = column(self.started);
        let Some(period) = period else { return started };
        let length = column(Timestamp::ZERO + period).max(1);
        started + now.saturating_sub(started).max(0) / length * length
    }

    /// When the present period ends.
    pub(super) fn period_ends(&self, now: i64) -> Option<i64> {
        let period = self.settings.queue_budget_period?;
        let length = column(Timestamp::ZERO + period).max(1);
        Some(self.period_began(Some(period), now).saturating_add(length))
    }

    /// Periods have another length from now on. What was spent so far counts until the first of them ends.
    pub(super) fn period_changed(&mut self, before: Option<Duration>, now: i64, moment: Moment) {
        let began = self.period_began(before, now);
        if began > self.period_set.at {
            self.charged_before = began;
        }
        self.period_set = moment;
        self.touched = true;
    }
}
