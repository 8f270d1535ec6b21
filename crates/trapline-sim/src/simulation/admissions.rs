//! Admissions that are no links: the seeds of a crawl, and what people add to it later, with wishes of their own.

use std::sync::Arc;
use std::time::Duration;

use trapline_core::{NO_BUDGET, Statement, Terms, Timestamp};
use trapline_frontier::script::{Admit, Verb};

use super::Simulation;
use super::agenda::Event;
use crate::faults::Trouble;
use crate::oracle::Breach;
use crate::random::Random;
use crate::web::Page;

/// A queue that is named by callers, not by a host.
const SLOT: &str = "slot";

impl Simulation {
    /// The crawl begins.
    pub(super) fn admit_seeds(&mut self) -> Result<(), Breach> {
        let mut seeds: Vec<String> = self.scene.web.seeds().collect();
        for _ in 0..self.random.range(0..6) {
            seeds.push(self.some_page());
        }
        let admits = seeds.into_iter().map(|url| self.with_wishes(url)).map(Verb::Admit).collect();
        self.act_together(admits).map(drop)
    }

    /// Somebody adds some more, or says something about URLs.
    pub(super) fn admit_more(&mut self) -> Result<(), Breach> {
        let count = self.random.range(1..4);
        let mut admits = Vec::new();
        for _ in 0..count {
            let url = if self.random.chance(1, 2) { self.some_url() } else { self.some_page() };
            admits.push(Verb::Admit(self.with_wishes(url)));
        }
        let answers = self.act_at_risk(admits.clone())?;
        if answers.lost || self.scene.strikes(Trouble::Lost, &mut self.random) {
            self.act_together(admits)?;
        }
        let again = self.in_about(8_000);
        self.agenda.add(again, Event::Admit);
        Ok(())
    }

    fn with_wishes(&mut self, url: String) -> Admit {
        let mut admit = Admit { url, ..Admit::default() };
        if !self.random.chance(self.scene.wishes, 100) {
            return admit;
        }
        let at = self.some_time();
        let random = &mut self.random;
        if random.chance(1, 4) {
            admit.class = Some(*random.choose(&[0, 100, 126, 127, 128, 255]));
        }
        if random.chance(1, 4) {
            admit.cost = Some(*random.choose(&[0, 1, 2, 3]));
        }
        if random.chance(1, 4) {
            admit.priority = Some(*random.choose(&[-128, -1, 0, 1, 127]));
        }
        if random.chance(1, 8) {
            admit.score = Some(*random.choose(&[0.0, 0.25, 0.5, 1.0]));
        }
        if random.chance(1, 4) {
            admit.depth = *random.choose(&[1, 1, 2, 3, 300]);
        }
        admit.improve = random.chance(1, 4);
        admit.dont_filter = random.chance(1, 12);
        if random.chance(1, 12) {
            admit.key = Some(SLOT.to_owned());
        }
        if random.chance(1, 6) {
            admit.terms = some_terms(random);
        }
        if random.chance(1, 12) {
            admit.statement = Some(if random.chance(1, 3) { Statement::Done } else { Statement::Next(at) });
        }
        admit
    }

    /// Any page of the web, known or not.
    pub(super) fn some_page(&mut self) -> String {
        let hosts = self.scene.web.hosts();
        let host = self.random.number(0..u32::try_from(hosts.len()).expect("hosts are counted by u32"));
        let number = self.random.number(0..hosts[host as usize].pages());
        self.scene.web.url(Page { host, number })
    }

    /// A URL that is known, if there is one.
    pub(super) fn some_url(&mut self) -> String {
        let number = self.random.draw();
        self.rig.oracle.some_url(number).unwrap_or_else(|| self.some_page())
    }

    /// The key of a queue: nearly always of one that is known.
    pub(super) fn some_key(&mut self) -> String {
        let keys = self.rig.oracle.keys();
        if keys.is_empty() || self.random.chance(1, 40) {
            return "nobody.example".to_owned();
        }
        self.random.choose(&keys).clone()
    }

    /// A time: ahead mostly, exactly when something else happens, or past.
    pub(super) fn some_time(&mut self) -> Timestamp {
        let now = self.now;
        match self.random.range(0..10) {
            0 => Timestamp::from_millis(now.as_millis().saturating_sub(1_000)),
            1 | 2 => self.rig.oracle.moments().find(|at| *at > now).unwrap_or(now),
            _ => now + Duration::from_millis(*self.random.choose(&[0, 1, 500, 2_000, 10_000, 60_000])),
        }
    }
}

/// Terms of a queue, one to three of them.
pub(super) fn some_terms(random: &mut Random) -> Terms {
    let mut terms = Terms::default();
    for _ in 0..*random.choose(&[1, 1, 1, 2, 3]) {
        match random.range(0..6) {
            0 => terms.precedence = Some(*random.choose(&[0, 2, 3, 3, 4])),
            1 => terms.queue_budget = Some(*random.choose(&[0, 1, 3, 8, 20, NO_BUDGET, NO_BUDGET])),
            2 => terms.balance_replenish = Some(*random.choose(&[0, 1, 1, 2, 3, 5])),
            3 => terms.delay = Some(Duration::from_millis(*random.choose(&[0, 100, 1_000, 5_000]))),
            4 => terms.concurrency = Some(*random.choose(&[0, 1, 2, 3])),
            _ => terms.group = Some(Arc::from(*random.choose(&["", "g", "g", "h"]))),
        }
    }
    terms
}
