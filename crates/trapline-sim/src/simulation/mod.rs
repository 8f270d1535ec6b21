//! The simulation: a generated web crawled by workers that die, stall and repeat themselves, steered by operators who do
//! as they please, on a store that is closed and opened again, while an oracle watches.
//!
//! One seed, one history, byte by byte. What happens when is decided here and in the files beside; whether it was right
//! is the oracle's.

mod act;
mod admissions;
mod agenda;
mod call;
mod cut;
mod drain;
mod inquiry;
mod operators;
mod replay;
mod rig;
mod scene;
mod seeds;
mod tally;
mod workers;

use trapline_core::Timestamp;
use trapline_frontier::StoreError;
use trapline_frontier::script::{Script, Verb};

use crate::faults::{Faults, Trouble};
use crate::oracle::{Breach, Rule};
use crate::panics::caught;
use crate::random::Random;
use crate::stores::Stores;
use act::{Act, History};
use agenda::{Agenda, Event};
use rig::{Answers, Rig};
use scene::Scene;

pub(crate) use inquiry::hold_against;
pub use replay::Find;
pub use seeds::{Failure, SeedRange, check_seed, run_seeds};
pub use tally::Tally;

/// What to simulate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimPlan {
    /// Everything follows from it.
    pub seed: u64,
    /// How many events there are before the crawl is drained. Defaults to 250.
    pub steps: u32,
    /// Which troubles there are. Defaults to all.
    pub faults: Faults,
}

impl Default for SimPlan {
    fn default() -> Self {
        Self { seed: 1, steps: 250, faults: Faults::ALL }
    }
}

/// One run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// What was done and what came back, as a trace.
    pub history: Script,
    /// How many partitions the crawl had; a trace is played on one.
    pub partitions: u32,
    /// What happened.
    pub tally: Tally,
    /// What went wrong, if anything did; it is the last that was done.
    pub breach: Option<Breach>,
    /// Calls that a crash cut short: where in the history, and whether they were done. No store promises either.
    cuts: Vec<(usize, bool)>,
}

/// Runs a seed.
///
/// # Errors
/// If no store could be opened to begin with. A store that fails later is a breach.
pub fn simulate(plan: &SimPlan, stores: &dyn Stores) -> Result<Run, StoreError> {
    let scene = Scene::draw(plan);
    let rig = Rig::new(stores, &scene.crawl_settings(), scene.partitions)?;
    let mut simulation = Simulation {
        random: Random::of(&[plan.seed, 12]),
        scene,
        rig,
        now: Timestamp::ZERO,
        agenda: Agenda::default(),
        history: History::default(),
        cuts: Vec::new(),
    };
    let ran = caught(|| simulation.run(plan.steps));
    let panicked = |why| Err(Breach::new(Rule::Failure, format!("the simulation panicked: {why}")));
    let breach = ran.unwrap_or_else(panicked).err();
    Ok(simulation.end(breach))
}

struct Simulation {
    scene: Scene,
    random: Random,
    rig: Rig,
    now: Timestamp,
    agenda: Agenda,
    history: History,
    cuts: Vec<(usize, bool)>,
}

impl Simulation {
    fn run(&mut self, steps: u32) -> Result<(), Breach> {
        self.admit_seeds()?;
        for worker in 0..self.scene.workers {
            self.agenda.add(self.now, Event::Wake(worker));
        }
        self.agenda.add(self.now, Event::Look);
        self.agenda.add(self.now, Event::Admit);
        if self.scene.rate(Trouble::Operators) > 0 {
            self.agenda.add(self.now, Event::Operate);
        }
        if self.scene.rate(Trouble::Restarts) > 0 && self.rig.can_restart() {
            self.agenda.add(self.now, Event::Restart);
        }
        for _ in 0..steps {
            let Some((at, event)) = self.agenda.next() else { break };
            self.now = self.now.max(at);
            if self.scene.strikes(Trouble::Jumps, &mut self.random) && self.random.chance(1, 8) {
                self.jump();
            }
            self.happen(event)?;
        }
        self.audit()?;
        self.finish_jobs()?;
        self.drain()?;
        self.audit()
    }

    fn happen(&mut self, event: Event) -> Result<(), Breach> {
        match event {
            Event::Wake(worker) => self.claim(worker),
            Event::Work(worker, jobs) => self.work(worker, jobs),
            Event::Again(settle) => self.act(Verb::Settle(settle)).map(drop),
            Event::Admit => self.admit_more(),
            Event::Operate => self.operate(),
            Event::Look => self.look(),
            Event::Restart => self.restart(),
        }
    }

    /// Does one thing.
    fn act(&mut self, verb: Verb) -> Result<Answers, Breach> {
        self.act_together(vec![verb])
    }

    /// Does several things in one batch.
    fn act_together(&mut self, verbs: Vec<Verb>) -> Result<Answers, Breach> {
        let act = Act { at: self.clock(), verbs };
        self.do_now(act)
    }

    /// Does several things in one batch, in whose middle the store may crash: then nobody hears the answer.
    fn act_at_risk(&mut self, verbs: Vec<Verb>) -> Result<Answers, Breach> {
        let act = Act { at: self.clock(), verbs };
        let crashes = self.rig.can_restart()
            && act.leaves_traces()
            && self.scene.strikes(Trouble::Restarts, &mut self.random)
            && self.random.chance(1, 6);
        if !crashes {
            return self.do_now(act);
        }
        match self.rig.cut(&act) {
            Ok(answers) => {
                self.cuts.push((self.history.steps.len(), answers.is_some()));
                match answers {
                    Some(answers) => self.history.note(act, answers.texts),
                    None => self.history.pass(act.at),
                }
                self.history.note(Act::new(self.history.latest(), Verb::Crash), vec!["ok".to_owned()]);
                Ok(Answers::unheard())
            }
            Err(breach) => {
                self.history.note_last(act);
                self.history.note_last(Act::new(self.history.latest(), Verb::Crash));
                Err(breach)
            }
        }
    }

    fn do_now(&mut self, act: Act) -> Result<Answers, Breach> {
        match self.rig.play(&act) {
            Ok(answers) => {
                self.history.note(act, answers.texts.clone());
                Ok(answers)
            }
            Err(breach) => {
                self.history.note_last(act);
                Err(breach)
            }
        }
    }

    /// Holds everything that can be asked against the oracle's books.
    fn audit(&mut self) -> Result<(), Breach> {
        self.history.pass(self.now);
        self.rig.audit(self.now)
    }

    /// The time by the clock of whoever acts, which may be behind.
    fn clock(&mut self) -> Timestamp {
        if !self.scene.strikes(Trouble::Jumps, &mut self.random) {
            return self.now;
        }
        let behind = *self.random.choose(&[0, 1, 1_000, 3_600_000]);
        Timestamp::from_millis(self.now.as_millis().saturating_sub(behind))
    }

    /// The clock jumps: to the next moment of any kind, to just before it, or far beyond.
    fn jump(&mut self) {
        let now = self.now;
        let next = self.rig.oracle.moments().find(|at| *at > now).unwrap_or(now);
        let ahead = match self.random.range(0..6) {
            0 | 1 => next.as_millis(),
            2 => next.as_millis().saturating_sub(1),
            3 => now.as_millis() + 10_000,
            4 => now.as_millis() + 3_600_000,
            _ => now.as_millis() + 2 * 86_400_000,
        };
        self.now = now.max(Timestamp::from_millis(ahead));
    }

    /// The store is closed and opened again, in good order or not.
    fn restart(&mut self) -> Result<(), Breach> {
        let verb = if self.random.chance(1, 2) { Verb::Restart } else { Verb::Crash };
        // Nobody tells a store the time by opening it.
        self.do_now(Act::new(self.history.latest(), verb))?;
        if self.random.chance(1, 2) {
            self.audit()?;
        }
        let again = 100_000 / self.scene.rate(Trouble::Restarts).max(1);
        let again = self.in_about(again);
        self.agenda.add(again, Event::Restart);
        Ok(())
    }

    /// A moment ahead, about so many milliseconds.
    fn in_about(&mut self, millis: u64) -> Timestamp {
        Timestamp::from_millis(self.now.as_millis() + self.random.range(0..millis.max(1) * 2))
    }

    fn end(self, breach: Option<Breach>) -> Run {
        let tally = Tally {
            seeds: 1,
            expiries: self.rig.oracle.expired(),
            virtual_ms: self.now.as_millis(),
            ..self.rig.tally
        };
        let history = Script { settings: self.scene.settings, steps: self.history.steps };
        Run { history, partitions: self.scene.partitions, tally, breach, cuts: self.cuts }
    }
}
