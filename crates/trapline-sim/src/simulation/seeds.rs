//! Many seeds, on all cores: each is run, some of them twice, and what fails is made small.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use trapline_frontier::StoreError;

use super::replay::{Find, shrink_to_find};
use super::tally::Tally;
use super::{Run, SimPlan, simulate};
use crate::oracle::{Breach, Rule};
use crate::panics;
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
    let mut run = run_guarded(plan, stores)?;
    if twice && run.breach.is_none() {
        let again = run_guarded(plan, stores)?;
        run.tally.repeated += 1;
        if let Some(message) = first_difference(&run, &again) {
            run.breach = Some(Breach::new(Rule::N10, message));
        }
    }
    if let Some(why) = panics::stray()
        && run.breach.is_none()
    {
        let message =
            format!("while this seed was run, perhaps with others beside it, a thread panicked: {why}");
        run.breach = Some(Breach::new(Rule::Failure, message));
    }
    let Some(breach) = run.breach.clone() else { return Ok(Ok(run)) };
    // A store that panics while its breach is made small has been found out all the same.
    let find = panics::caught(|| shrink_to_find(&run, &breach, stores)).unwrap_or(None);
    Ok(Err(Box::new(Failure { plan: *plan, breach, run, find })))
}

/// Runs a seed. Whatever panics, the seed is known.
fn run_guarded(plan: &SimPlan, stores: &dyn Stores) -> Result<Run, StoreError> {
    panics::caught(|| simulate(plan, stores)).unwrap_or_else(|why| {
        let breach = Breach::new(Rule::Failure, format!("it panicked before anything was done: {why}"));
        Ok(Run { breach: Some(breach), ..Run::default() })
    })
}

/// Where two histories of one seed part. What becomes of a call that a crash cuts short is not promised, so from there on
/// they may.
fn first_difference(one: &Run, other: &Run) -> Option<String> {
    if let Some(breach) = &other.breach {
        return Some(format!("the second run of the same seed went wrong, unlike the first: {breach}"));
    }
    let parted = one.cuts.iter().zip(&other.cuts).find(|(one, other)| one != other);
    let compared = parted.map_or(usize::MAX, |(one, other)| one.0.min(other.0));
    let [one, other] = [one, other].map(|run| {
        let mut history = run.history.clone();
        history.steps.truncate(compared);
        history.to_string()
    });
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
                    let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
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
    let shared = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
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
    use crate::stores::{MemoryStores, Opened};

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

    #[test]
    fn histories_may_part_where_a_call_was_cut_short_and_not_before() {
        let run = simulate(&SimPlan::default(), &MemoryStores).unwrap();
        let done = Run { cuts: vec![(5, true)], ..run.clone() };
        let mut undone = Run { cuts: vec![(5, false)], ..run };
        undone.history.steps.remove(5);
        assert_eq!(first_difference(&done, &undone), None);
        undone.history.steps.remove(4);
        assert!(first_difference(&done, &undone).is_some());
    }

    /// Stores that panic where nobody waits for them.
    struct Panicking {
        when_opened: bool,
    }

    impl Stores for Panicking {
        fn open(&self) -> Result<Opened, StoreError> {
            assert!(!self.when_opened, "the disk is gone");
            let _ = std::thread::spawn(|| panic!("the syncing thread is gone")).join();
            MemoryStores.open()
        }
    }

    #[test]
    fn whatever_panics_the_seed_is_told() {
        panics::watch_panics();
        for (when_opened, said) in [(true, "the disk is gone"), (false, "the syncing thread is gone")] {
            let plan = SimPlan { seed: 77, ..SimPlan::default() };
            let failure = check_seed(&plan, &Panicking { when_opened }, false).unwrap().unwrap_err();
            assert_eq!((failure.plan.seed, failure.breach.rule), (77, Rule::Failure));
            assert!(failure.breach.message.contains(said), "{}", failure.breach);
            assert!(failure.breach.message.contains("seeds.rs:"), "{}", failure.breach);
            // Of many seeds as well.
            let seeds = SeedRange { from: 70, count: 4 };
            let ran = run_seeds(&plan, seeds, 2, &Panicking { when_opened }, &|_| ()).unwrap();
            assert!((70..74).contains(&ran.unwrap_err().plan.seed));
        }
    }
}
