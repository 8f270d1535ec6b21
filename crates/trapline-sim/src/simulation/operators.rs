//! Operators: they steer at random, and they look.

use trapline_frontier::script::{CrawlVerb, Steering, Verb};

use super::Simulation;
use super::admissions::some_terms;
use super::agenda::Event;
use super::scene::some_setting;
use crate::faults::Trouble;
use crate::oracle::Breach;

impl Simulation {
    /// An operator does something.
    pub(super) fn operate(&mut self) -> Result<(), Breach> {
        let verb = match self.random.range(0..20) {
            0..=10 => Verb::Steer { key: self.some_key(), change: self.some_steering() },
            11 => Verb::Forget(self.some_url()),
            12..=13 => {
                let dead = self.rig.oracle.dead();
                if dead.is_empty() {
                    Verb::Forget(self.some_page())
                } else {
                    Verb::DeadReplay(self.random.choose(&dead).clone())
                }
            }
            _ => Verb::Crawl(self.some_change()),
        };
        self.act_at_risk(vec![verb])?;
        let again = self.in_about(60_000 / self.scene.rate(Trouble::Operators).max(1));
        self.agenda.add(again, Event::Operate);
        Ok(())
    }

    fn some_steering(&mut self) -> Steering {
        match self.random.range(0..24) {
            0..=10 => Steering::Terms(some_terms(&mut self.random)),
            11..=13 => Steering::Block(self.some_time()),
            14..=15 => Steering::Unblock,
            16..=17 => Steering::Retire,
            18..=21 => Steering::Reinstate,
            22 => Steering::Purge,
            _ => Steering::Delete,
        }
    }

    fn some_change(&mut self) -> CrawlVerb {
        if self.rig.oracle.is_paused() && self.random.chance(2, 3) {
            return CrawlVerb::Resume;
        }
        match self.random.range(0..60) {
            0 if self.random.chance(1, 10) => CrawlVerb::Finish,
            0..=10 => CrawlVerb::Pause,
            11..=14 => CrawlVerb::Resume,
            _ => {
                let count = *self.random.choose(&[1, 1, 1, 2]);
                CrawlVerb::Set((0..count).map(|_| some_setting(&mut self.random)).collect())
            }
        }
    }

    /// Somebody looks at something, or at everything.
    pub(super) fn look(&mut self) -> Result<(), Breach> {
        match self.random.range(0..8) {
            0..=2 => {
                let key = self.some_key();
                self.act(Verb::Queue(key))?;
            }
            3..=4 => {
                let url = self.some_url();
                let verb = if self.random.chance(1, 2) { Verb::Page(url) } else { Verb::Url(url) };
                self.act(verb)?;
            }
            5 => drop(self.act(Verb::Crawl(CrawlVerb::Show))?),
            _ => self.audit()?,
        }
        let again = self.in_about(2_000);
        self.agenda.add(again, Event::Look);
        Ok(())
    }
}
