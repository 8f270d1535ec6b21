//! Work over many URLs that a store does in the background: waited for here, because a stopped store does it only
//! while somebody uses it.

use trapline_frontier::{Frontier, Query, Rows, Scan, Steer, UrlState};

use super::moment;

/// Rounds without progress after which a job is left to others.
const PATIENCE: u32 = 1000;

/// Steers, and waits for the work to be done. Answers how many URLs it concerned: those that are no longer in one of
/// these states, where the store cannot say at once.
pub(super) fn steer(frontier: &Frontier, steer: Steer, leave: &[UrlState]) -> Result<u64, String> {
    let before = count(frontier, leave)?;
    let steered =
        pollster::block_on(frontier.steer(moment::now(), steer)).map_err(|error| error.to_string())?;
    let Some(job) = steered.job else { return Ok(steered.affected) };
    let (mut passed, mut patience) = (0, PATIENCE);
    while let Some(now_passed) = passed_by(frontier, job)? {
        patience = if now_passed == passed { patience - 1 } else { PATIENCE };
        passed = now_passed;
        if patience == 0 {
            return Err(format!(
                "job {job} has come to a halt after {passed} URLs; look at the store and try again"
            ));
        }
    }
    Ok(before.saturating_sub(count(frontier, leave)?))
}

/// How many URLs all jobs up to this one have looked at; None once it is done. Asking lets them go on.
fn passed_by(frontier: &Frontier, job: u64) -> Result<Option<u64>, String> {
    let page = pollster::block_on(frontier.scan(moment::now(), &Scan::new(Query::Jobs)));
    let Rows::Jobs(jobs) = page.map_err(|error| error.to_string())?.rows else { return Ok(None) };
    let is_there = jobs.iter().any(|report| report.id == job);
    Ok(is_there.then(|| jobs.iter().map(|report| report.passed).sum()))
}

fn count(frontier: &Frontier, states: &[UrlState]) -> Result<u64, String> {
    let stats = pollster::block_on(frontier.stats(moment::now())).map_err(|error| error.to_string())?;
    Ok(states.iter().map(|state| stats.urls_in(*state)).sum())
}
