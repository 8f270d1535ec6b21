//! The end of a run: every hindrance is taken away, one good worker is left, and everything must come to its end in
//! bounded time.

use std::sync::Arc;
use std::time::Duration;

use trapline_core::{NO_BUDGET, Terms};
use trapline_frontier::Lease;
use trapline_frontier::script::{Claim, CrawlVerb, Settle, SettleAs, Steering, Verb};

use super::Simulation;
use super::agenda::Event;
use crate::oracle::{Breach, Rule};

/// How many URLs the last worker claims at a time.
const CLAIMED: usize = 10;

/// How long a URL may take in the end, expiries and the waits of its queue included.
const PATIENCE: Duration = Duration::from_secs(300);

impl Simulation {
    /// What workers have begun, they end. Nobody begins anything new.
    pub(super) fn finish_jobs(&mut self) -> Result<(), Breach> {
        while let Some((at, event)) = self.agenda.next() {
            if matches!(event, Event::Work(..) | Event::Again(_)) {
                self.now = self.now.max(at);
                self.happen(event)?;
            }
        }
        Ok(())
    }

    /// Everything comes to its end.
    pub(super) fn drain(&mut self) -> Result<(), Breach> {
        if self.rig.oracle.is_finished() {
            return self.act(Verb::Claim(Claim { urls: CLAIMED, ..Claim::default() })).map(drop);
        }
        self.calm()?;
        // Everybody waits for somebody: for the last that was said to happen, and then one after the other at worst.
        let last = self.rig.oracle.moments().last().unwrap_or(self.now).max(self.now);
        let patience = PATIENCE * u32::try_from(self.rig.oracle.entries()).expect("a small crawl");
        let until = last + PATIENCE + patience;
        // Each URL is claimed once more at most, after a wait at most, its retries and visits included; leases that are
        // still out expire, as often as they may.
        let rounds_max = 20 + 8 * self.rig.oracle.entries();
        for _ in 0..rounds_max {
            let claim = Claim { urls: CLAIMED, lease: Some(Duration::from_secs(60)), ..Claim::default() };
            let answers = self.act(Verb::Claim(claim)).map_err(Breach::while_draining)?;
            if self.rig.oracle.is_finished() {
                return Ok(());
            }
            if answers.leases.is_empty() {
                if self.rig.oracle.is_exhausted() {
                    self.rig.tally.drained += 1;
                    return Ok(());
                }
                let next = answers.claimed.and_then(|claimed| claimed.next);
                self.now = next.ok_or_else(|| {
                    Breach::new(Rule::Drain, "nothing will happen any more, and the crawl is not exhausted")
                })?;
                if self.now > until {
                    let message =
                        format!("the crawl is not exhausted by {until}, and goes on at {}", self.now);
                    return Err(Breach::new(Rule::Drain, message));
                }
                continue;
            }
            let settle = |(number, lease): (usize, Lease)| {
                Verb::Settle(Settle {
                    url: lease.request.url.clone(),
                    outcome: SettleAs::done(None),
                    delay: None,
                    links: Vec::new(),
                    lease: Some(number + 1),
                })
            };
            self.act_together(answers.leases.into_iter().map(settle).collect())?;
        }
        let left = self.rig.oracle.entries();
        Err(Breach::new(
            Rule::Drain,
            format!("the crawl of {left} URLs is not exhausted after {rounds_max} claims"),
        ))
    }

    /// Takes away what keeps queues from being served.
    fn calm(&mut self) -> Result<(), Breach> {
        self.act(Verb::Crawl(CrawlVerb::Resume))?;
        let settings = [
            ("balance_replenish", "3000"),
            ("queue_budget", "none"),
            ("queue_budget_period", "none"),
            ("pause_at_finish", "false"),
            ("max_deliveries", "3"),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        self.act(Verb::Crawl(CrawlVerb::Set(settings)))?;
        let terms = Terms {
            queue_budget: Some(NO_BUDGET),
            balance_replenish: Some(3000),
            group: Some(Arc::from("")),
            ..Terms::default()
        };
        for key in self.rig.oracle.keys() {
            for change in [Steering::Unblock, Steering::Reinstate, Steering::Terms(terms.clone())] {
                self.act(Verb::Steer { key: key.clone(), change })?;
            }
        }
        Ok(())
    }
}
