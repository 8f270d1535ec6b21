//! The model test: random scripts on a store and on a naive second implementation of the frontier's specification.
//!
//! Where the two differ, the script is made as small as possible and printed, ready to be kept as a trace. Part of what
//! every store must pass, beside the [suite](crate::suite).

mod generate;
mod naive;

use std::ops::Range;

use trapline_core::Timestamp;

use crate::report::{Query, QueueState, Rows, Scan, UrlState};
use crate::script::{Player, Script, Verb, shrink};
use crate::store::StoreError;

pub use naive::Model;

/// An implementation of the frontier that answers scripts.
pub trait Subject {
    /// Plays one line and says what comes back.
    fn play(&mut self, at: Timestamp, verb: &Verb) -> String;
    /// What does not add up in its counts, if anything: scripts do not show them.
    fn miscount(&self, at: Timestamp) -> Option<String>;
}

/// Makes a fresh crawl with these settings.
pub type Factory = fn(settings: &[(String, String)]) -> Box<dyn Subject>;

impl Subject for Model {
    fn play(&mut self, at: Timestamp, verb: &Verb) -> String {
        Model::play(self, at, verb)
    }

    fn miscount(&self, _: Timestamp) -> Option<String> {
        None
    }
}

impl Subject for Player {
    fn play(&mut self, at: Timestamp, verb: &Verb) -> String {
        pollster::block_on(Player::play(self, at, verb)).expect("the store does not fail")
    }

    fn miscount(&self, at: Timestamp) -> Option<String> {
        pollster::block_on(async {
            let stats = self.frontier().stats(at).await?;
            let scan = Scan::new(Query::Queues { keys: None, state: None });
            let Rows::Queues(queues) = self.frontier().scan(at, &scan).await?.rows else {
                unreachable!("queues were asked for")
            };
            let counted = QueueState::ALL
                .map(|state| queues.iter().filter(|queue| queue.state == state).count() as u64);
            let pending: u64 = queues.iter().map(|queue| queue.pending).sum();
            let leased: u64 = queues.iter().map(|queue| queue.leased).sum();
            // A queue reconsidered with all others counts as inactive until it is touched, also if its group waits.
            let blurred = |mut counts: [u64; 7]| {
                counts[QueueState::Inactive as usize] +=
                    std::mem::take(&mut counts[QueueState::Snoozed as usize]);
                counts
            };
            let same = blurred(stats.queues) == blurred(counted)
                && stats.urls_in(UrlState::Pending) == pending
                && stats.urls_in(UrlState::Leased) == leased;
            Ok::<_, StoreError>((!same).then(|| format!("{stats:?}, but the queues are {queues:?}")))
        })
        .expect("the store does not fail")
    }
}

/// Checks these seeds, or those that `TRAPLINE_MODEL_SEEDS=from..to` asks for, in two threads.
///
/// # Panics
/// If the two differ, with the shortest script on which they do.
pub fn check_seeds(seeds: Range<u64>, subject: Factory) {
    let seeds = match std::env::var("TRAPLINE_MODEL_SEEDS") {
        Ok(range) => read_range(&range).expect("TRAPLINE_MODEL_SEEDS must be two numbers, such as 0..10000"),
        Err(_) => seeds,
    };
    assert!(!seeds.is_empty(), "TRAPLINE_MODEL_SEEDS names no seed");
    // One thread takes the even seeds, the other the odd ones.
    let halves: [Vec<u64>; 2] = [0, 1].map(|odd| seeds.clone().filter(|seed| seed % 2 == odd).collect());
    let find = std::thread::scope(|scope| {
        let threads =
            halves.map(|half| scope.spawn(move || half.into_iter().find_map(|s| check_seed(s, subject))));
        threads.map(|thread| thread.join().expect("neither side panics")).into_iter().flatten().next()
    });
    if let Some(find) = find {
        panic!("{find}");
    }
}

fn read_range(text: &str) -> Option<Range<u64>> {
    let (from, to) = text.split_once("..")?;
    Some(from.trim().parse().ok()?..to.trim().parse().ok()?)
}

/// Whether a subject answers the script of a seed as the model does.
pub fn agrees_on(seed: u64, subject: impl FnOnce(&[(String, String)]) -> Box<dyn Subject>) -> bool {
    let script = generate::script(seed);
    let tested = subject(&script.settings);
    agrees(&script, tested)
}

/// Whether a subject answers a generated script as the model does, whose answers are its expectations already.
fn agrees(script: &Script, mut tested: Box<dyn Subject>) -> bool {
    script.steps.iter().all(|step| {
        step.expected.as_deref() == Some(&*tested.play(step.at, &step.verb))
            && tested.miscount(step.at).is_none()
    })
}

/// A report if a subject and the model differ on the script of a seed.
pub fn check_seed(seed: u64, subject: Factory) -> Option<String> {
    let script = generate::script(seed);
    let differs = |script: &Script| first_difference(script, subject).map(|(step, _)| step);
    if agrees(&script, subject(&script.settings)) {
        return None;
    }
    let smallest = shrink(script, differs);
    let (expected, (_, answer)) = (expectations(&smallest), first_difference(&smallest, subject)?);
    Some(format!(
        "seed {seed}: the last line answered `{answer}` on the store, the model expects:\n{expected}"
    ))
}

/// Where a subject first answers otherwise than the model, and what.
fn first_difference(script: &Script, subject: Factory) -> Option<(usize, String)> {
    let mut model = Model::new(&script.settings);
    let mut tested = subject(&script.settings);
    for (index, step) in script.steps.iter().enumerate() {
        let answer = tested.play(step.at, &step.verb);
        if answer != model.play(step.at, &step.verb) {
            return Some((index, answer));
        }
        if let Some(miscount) = tested.miscount(step.at) {
            return Some((index, format!("{answer}` and counts `{miscount}")));
        }
    }
    None
}

/// The script with the model's answers as its expectations.
fn expectations(script: &Script) -> Script {
    let mut model = Model::new(&script.settings);
    let mut script = script.clone();
    for step in &mut script.steps {
        step.expected = Some(model.play(step.at, &step.verb));
    }
    script
}
