//! Many seeds, on all cores: each is run, some of them twice, and what fails is made small.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use trapline_frontier::StoreError;

use super::replay::{Find, shrink_to_find};
use super::tally::Tally;
use super::{Run, SimPlan, simulate};
use crate::oracle::{Breach, Rule};
use crate::stores::Stores;

/// Of many seeds, every so-manieth is run twice, to see that its history is the same.
const REPEATED: u64 = 8;

/// A seed that went wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// How to run it again.
    pub plan: SimPlan,
    /// What went wrong.
    pub breach: Breach,
    /// The whole run.
    pub run: Run,
    /// The smallest trace found on which something goes wrong.
    pub find: Option<Find>,
}

/// Runs a seed, twice if asked, and makes what goes wrong small.
///
/// # Errors
/// If no store could be opened.
pub fn check_seed(
    plan: &SimPlan,
    stores: &dyn Stores,
    twice: bool,
) -> Result<Result<Run, Box<Failure>>, StoreError> {
    let mut run = simulate(plan, stores)?;
    if twice && run.breach.is_none() {
        let again = simulate(plan, stores)?;
        run.tally.repeated += 1;
        if let Some(message) = first_difference(&run, &again) {
            run.breach = Some(Breach::new(Rule::N10, message));
        }
    }
    let Some(breach) = run.breach.clone() else { return Ok(Ok(run)) };
    let find = if breach.rule == Rule::N10 { None } else { shrink_to_find(&run, stores) };
    Ok(Err(Box::new(Failure { plan: *plan, breach, run, find })))
}

/// Where two histories of one seed part.
fn first_difference(one: &Run, other: &Run) -> Option<String> {
    if let Some(breach) = &other.breach {
        return Some(format!("the second run of the same seed went wrong, unlike the first: {breach}"));
    }
    let (one, other) = (one.history.to_string(), other.history.to_string());
    let (mut ones, mut others) = (one.lines(), other.lines());
    for line in 1.. {
        match (ones.next(), others.next()) {
            (None, None) => break,
            (one, other) if one == other => {}
            (one, other) => {
                let [one, other] = [one, other].map(|line| line.unwrap_or("(nothing more)"));
                return Some(format!(
                    "two histories of the same seed part in line {line}: `{one}` and `{other}`"
                ));
            }
        }
    }
    None
}

/// Which seeds to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeedRange {
    /// The first.
    pub from: u64,
    /// How many.
    pub count: u64,
}

/// Runs many seeds, as `plan` says but for its seed, on so many threads, until all are done or one fails. Tells `progress`
/// of each that was run, from any thread.
///
/// # Errors
/// If no store could be opened.
pub fn run_seeds(
    plan: &SimPlan,
    seeds: SeedRange,
    threads: usize,
    stores: &dyn Stores,
    progress: &(dyn Fn(&Tally) + Sync),
) -> Result<Result<Tally, Box<Failure>>, StoreError> {
    let next = AtomicU64::new(0);
    let shared: Mutex<Shared> = Mutex::new(Shared::default());
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= seeds.count {
                        return;
                    }
                    let plan = SimPlan { seed: seeds.from.wrapping_add(index), ..*plan };
                    let checked = check_seed(&plan, stores, index.is_multiple_of(REPEATED));
                    let Ok(mut shared) = shared.lock() else { return };
                    match checked {
                        Ok(Ok(run)) => {
                            shared.tally += run.tally;
                            progress(&shared.tally);
                        }
                        Ok(Err(failure)) => {
                            let earlier =
                                shared.failure.take().filter(|earlier| earlier.plan.seed < failure.plan.seed);
                            shared.failure = Some(earlier.unwrap_or(failure));
                        }
                        Err(error) => shared.error = Some(error),
                    }
                    if shared.error.is_some() || shared.failure.is_some() {
                        // The others end the seed they have begun.
                        next.store(seeds.count, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let Ok(shared) = shared.into_inner() else { unreachable!("nothing panics while it holds the lock") };
    if let Some(error) = shared.error {
        return Err(error);
    }
    Ok(shared.failure.map_or(Ok(shared.tally), Err))
}

#[derive(Default)]
struct Shared {
    tally: Tally,
    /// The lowest, so that the answer does not depend on who was faster.
    failure: Option<Box<Failure>>,
    error: Option<StoreError>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::MemoryStores;

    #[test]
    fn a_history_that_ends_early_or_goes_wrong_is_another_one() {
        let run = simulate(&SimPlan::default(), &MemoryStores).unwrap();
        assert_eq!(first_difference(&run, &run), None);
        let mut shorter = run.clone();
        shorter.history.steps.pop();
        assert!(first_difference(&run, &shorter).is_some());
        assert!(first_difference(&shorter, &run).is_some());
        let broken = Run { breach: Some(Breach::new(Rule::N4, "too soon".to_owned())), ..run.clone() };
        assert!(first_difference(&run, &broken).is_some());
    }
}
