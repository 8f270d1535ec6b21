//! A workload that is random to look at and the same for the same seed: every verb, few hosts, many collisions.

use trapline_core::{Candidate, Request, Statement, Terms, Timestamp};

use super::Harness;
use super::trial::{Trial, secs, visit};
use crate::pattern::Pattern;
use crate::verbs::{
    CrawlChange, DeadChange, DeadLetters, Lease, NoteWrite, Outcome, QueueChange, Settlement, Steer,
    UrlChange, UrlFilter, UrlsChange, Want,
};

/// Numbers that look random: splitmix64.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound`.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}

/// Somebody who uses a crawl in every way there is.
pub(super) struct Workload {
    dice: Dice,
    pub(super) now: Timestamp,
    leases: Vec<Lease>,
}

const HOSTS: u64 = 6;

impl Workload {
    pub(super) fn new(seed: u64) -> Self {
        Self { dice: Dice::new(seed), now: Timestamp::ZERO, leases: Vec::new() }
    }

    /// One verb, at a time that sometimes passes.
    pub(super) fn step<H: Harness>(&mut self, trial: &Trial<'_, H>) {
        if self.dice.once_in(3) {
            self.now = self.now + secs(self.dice.below(4));
        }
        match self.dice.below(10) {
            0..3 => {
                let batch: Vec<_> = (0..self.dice.below(4)).map(|_| self.candidate(trial)).collect();
                trial.admit(self.now, &batch);
            }
            3..5 => {
                let want = self.want();
                let claimed = trial.leases(self.now, want);
                self.leases.extend(claimed);
            }
            5..9 => {
                let batch = (0..self.dice.below(3)).filter_map(|_| self.settlement(trial)).collect();
                trial.settle(self.now, batch);
            }
            _ => {
                let steer = self.steer(trial);
                trial.steer(self.now, steer);
            }
        }
    }

    fn key(&mut self) -> String {
        format!("{}.example", self.letter())
    }

    fn letter(&mut self) -> char {
        char::from(b'a' + self.dice.below(HOSTS) as u8)
    }

    fn url(&mut self) -> String {
        format!("http://{}.example/{}", self.letter(), self.dice.below(12))
    }

    fn later(&mut self) -> Timestamp {
        self.now + secs(self.dice.below(20))
    }

    fn candidate<H: Harness>(&mut self, trial: &Trial<'_, H>) -> Candidate {
        let url = self.url();
        let dont_filter = self.dice.once_in(15);
        let mut candidate = trial.candidate(Request { dont_filter, ..Request::get(url) });
        candidate.class = self.dice.once_in(3).then(|| self.dice.below(256) as u8);
        candidate.cost = self.dice.once_in(3).then(|| self.dice.below(4) as u32);
        candidate.improve = self.dice.once_in(6);
        if self.dice.once_in(12) {
            let statement =
                if self.dice.once_in(2) { Statement::Done } else { Statement::Next(self.later()) };
            candidate.statement = Some(statement);
        }
        if self.dice.once_in(8) {
            candidate.terms = self.terms();
        }
        candidate
    }

    fn terms(&mut self) -> Terms {
        let mut terms = Terms::default();
        match self.dice.below(6) {
            0 => terms.precedence = Some(self.dice.below(5) as u8),
            1 => terms.queue_budget = Some(self.dice.below(30)),
            2 => terms.balance_replenish = Some(self.dice.below(5)),
            3 => terms.delay = Some(secs(self.dice.below(5))),
            4 => terms.concurrency = Some(self.dice.below(4) as u32),
            _ => terms.group = Some(["", "g", "h"][self.dice.below(3) as usize].into()),
        }
        terms
    }

    fn want(&mut self) -> Want {
        let mut want = Want::urls(self.dice.below(6) as usize);
        want.lease = self.dice.once_in(3).then(|| secs(1 + self.dice.below(9)));
        match self.dice.below(8) {
            0 => want.per_queue = Some(1 + self.dice.below(2) as usize),
            1 => want.queues = Some(1 + self.dice.below(2) as usize),
            2 => want.min_queues = Some(1 + self.dice.below(3) as usize),
            3 => want.keys = Some(vec![self.key(), self.key()]),
            4 => want.except = vec![self.key(), self.key()],
            _ => {}
        }
        want
    }

    /// Settles a lease, which may be an old one.
    fn settlement<H: Harness>(&mut self, trial: &Trial<'_, H>) -> Option<Settlement> {
        if self.leases.is_empty() {
            return None;
        }
        let which = self.dice.below(self.leases.len() as u64) as usize;
        let lease = if self.dice.once_in(8) { self.leases[which].id } else { self.leases.remove(which).id };
        let reason = "the dice said so".to_owned();
        let outcome = match self.dice.below(10) {
            0..4 => {
                let digest = [self.dice.below(3) as u8];
                Outcome::Done { visit: visit(&digest), next: self.dice.once_in(3).then(|| self.later()) }
            }
            4..6 => Outcome::Retry { at: self.later() },
            6 => Outcome::Release,
            7 => Outcome::Dead { reason },
            8 => Outcome::Disregard { reason },
            _ => Outcome::Renew { lease: secs(self.dice.below(9)) },
        };
        let mut settlement = Settlement::new(lease, outcome);
        settlement.delay = self.dice.once_in(5).then(|| secs(self.dice.below(4)));
        settlement.links = (0..self.dice.below(3)).map(|_| self.candidate(trial)).collect();
        if self.dice.once_in(6) {
            settlement.notes.push(self.note());
        }
        Some(settlement)
    }

    fn note(&mut self) -> NoteWrite {
        NoteWrite {
            key: format!("note/{}", self.dice.below(5)),
            value: (!self.dice.once_in(4)).then(|| {
                // Long ones may be kept elsewhere.
                let length = if self.dice.once_in(3) { 200 } else { 1 };
                vec![self.dice.below(256) as u8; length]
            }),
            expires: self.dice.once_in(3).then(|| self.later()),
        }
    }

    fn steer<H: Harness>(&mut self, trial: &Trial<'_, H>) -> Steer {
        let key = self.key();
        let queue = |change| Steer::Queue(key.clone(), change);
        match self.dice.below(17) {
            0..3 => queue(QueueChange::Terms(self.terms())),
            3 => queue(QueueChange::DefaultTerms),
            4 => queue(QueueChange::Block(self.later())),
            5 => queue(QueueChange::Unblock),
            6 => queue(QueueChange::Retire),
            7 => queue(QueueChange::Reinstate),
            8 => queue(QueueChange::Purge(None)),
            9 => queue(QueueChange::Purge(Some(Pattern::new("*1*")))),
            10 => queue(QueueChange::Delete),
            11 => {
                let identity = trial.get(&self.url()).identity;
                let class = UrlChange::Class(self.dice.below(256) as u8);
                Steer::Url(identity, if self.dice.once_in(2) { UrlChange::Forget } else { class })
            }
            12 | 13 => {
                let which = match self.dice.below(3) {
                    0 => DeadLetters::All,
                    1 => DeadLetters::Queue(key),
                    _ => DeadLetters::Url(trial.get(&self.url()).identity),
                };
                let change = if self.dice.once_in(3) { DeadChange::Purge } else { DeadChange::Replay };
                Steer::Dead(which, change)
            }
            14 => Steer::Crawl(CrawlChange::Note(self.note())),
            15 => {
                let key = (!self.dice.once_in(3)).then_some(key);
                let pattern = self.dice.once_in(2).then(|| Pattern::new("*1*"));
                let change = match self.dice.below(6) {
                    0 => UrlsChange::Forget,
                    1..4 => UrlsChange::Revisit,
                    _ => UrlsChange::ForgetPages(self.now),
                };
                Steer::Urls(UrlFilter { key, pattern }, change)
            }
            _ => {
                let (name, value) = [
                    ("queue_budget", "20"),
                    ("queue_budget", "none"),
                    ("queue_budget_period", "30s"),
                    ("balance_replenish", "3"),
                    ("concurrency", "2"),
                    ("error_penalty", "1"),
                    ("cost", "wag"),
                ][self.dice.below(7) as usize];
                Steer::Crawl(CrawlChange::Set(vec![(name.to_owned(), value.to_owned())]))
            }
        }
    }
}
