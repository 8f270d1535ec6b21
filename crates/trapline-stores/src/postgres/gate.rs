//! The gate that all attempts to connect go through, so that a server that is down or coming up is not run over.
//!
//! While all is well it is open to everybody. After a failure one attempt is made at a time, and between two of them
//! all wait: longer with each failure, and not in step with other processes.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync;

const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Shared by all connections of a store.
#[derive(Debug, Default)]
pub(super) struct Gate {
    /// Held by whoever makes the one attempt.
    turn: sync::Mutex<()>,
    /// Never held across an await.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    /// No attempt before this.
    closed_until: Option<Instant>,
    last_failure: Option<String>,
    attempts: u64,
}

/// The right to make an attempt.
pub(super) struct Turn<'a> {
    /// None while all is well.
    _alone: Option<sync::MutexGuard<'a, ()>>,
}

impl Gate {
    /// Waits for the turn to make an attempt.
    pub(super) async fn turn(&self) -> Turn<'_> {
        let alone = if self.state().failures > 0 { Some(self.turn.lock().await) } else { None };
        let wait = self.state().closed_until.map(|at| at.saturating_duration_since(Instant::now()));
        if let Some(wait) = wait.filter(|wait| !wait.is_zero()) {
            tokio::time::sleep(wait).await;
        }
        self.state().attempts += 1;
        Turn { _alone: alone }
    }

    /// An attempt succeeded: open to everybody.
    pub(super) fn succeeded(&self) {
        let mut state = self.state();
        state.failures = 0;
        state.closed_until = None;
        state.last_failure = None;
    }

    /// An attempt failed.
    pub(super) fn failed(&self, why: String) {
        let now = Instant::now();
        let mut state = self.state();
        state.last_failure = Some(why);
        // Several that set out while all was well are one failure.
        if state.closed_until.is_none_or(|at| at <= now) {
            state.failures = state.failures.saturating_add(1);
            state.closed_until = Some(now + backed_off(state.failures));
        }
    }

    /// Why the last attempt failed, if none has succeeded since.
    pub(super) fn last_failure(&self) -> Option<String> {
        self.state().last_failure.clone()
    }

    /// How many attempts were made so far.
    pub(super) fn attempts(&self) -> u64 {
        self.state().attempts
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Whatever a panic left is as good as any: these are counts.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long to wait after so many failures in a row.
pub(super) fn backed_off(failures: u32) -> Duration {
    wait(failures, draw())
}

/// So long after so many failures; `drawn` spreads it over the upper half.
fn wait(failures: u32, drawn: u32) -> Duration {
    let doubled = FIRST_WAIT.saturating_mul(1 << failures.saturating_sub(1).min(16));
    let half = doubled.min(LONGEST_WAIT) / 2;
    half + half.mul_f64(f64::from(drawn) / f64::from(u32::MAX))
}

/// No randomness to be had is no reason to fail: then the waits are the shortest.
fn draw() -> u32 {
    getrandom::u32().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_are_bounded() {
        let check = |failures, least_ms, most_ms| {
            assert_eq!(wait(failures, 0), Duration::from_millis(least_ms));
            assert_eq!(wait(failures, u32::MAX), Duration::from_millis(most_ms));
        };
        check(1, 25, 50);
        check(2, 50, 100);
        check(5, 400, 800);
        check(8, 2_500, 5_000);
        check(u32::MAX, 2_500, 5_000);
    }

    #[test]
    fn several_failures_at_once_are_one() {
        let gate = Gate::default();
        for _ in 0..8 {
            gate.failed("refused".to_owned());
        }
        assert_eq!(gate.state().failures, 1);
        assert_eq!(gate.last_failure().as_deref(), Some("refused"));
        gate.succeeded();
        assert_eq!(gate.state().failures, 0);
        assert_eq!(gate.last_failure(), None);
    }
}
