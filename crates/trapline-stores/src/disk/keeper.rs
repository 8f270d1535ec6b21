//! The keeper: a thread that does what need not be done in a verb. It takes snapshots and makes segments ahead of time.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::Shared;

/// Tells the keeper that there may be something to do.
#[derive(Default)]
pub(crate) struct Bell {
    state: Mutex<State>,
    rung: Condvar,
}

#[derive(Default)]
struct State {
    is_rung: bool,
    is_closing: bool,
}

impl Bell {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn ring(&self) {
        self.state().is_rung = true;
        self.rung.notify_one();
    }

    /// The keeper is to end.
    pub(crate) fn close(&self) {
        self.state().is_closing = true;
        self.rung.notify_one();
    }

    /// Waits until it is rung; answers whether it was, or the store is closed.
    fn wait(&self) -> bool {
        let mut state = self.state();
        while !state.is_rung && !state.is_closing {
            state = self.rung.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_rung = false;
        !state.is_closing
    }
}

/// Does what there is to do until the store is closed.
pub(crate) fn run(shared: &Shared) {
    while shared.bell.wait() {
        if let Some(next) = shared.wants_ahead() {
            shared.ahead.make(&*shared.files, next);
        }
        if shared.wants_snapshot() {
            // Nothing is lost if it fails; it is tried again when the log has grown by as much once more.
            let _ = shared.take_snapshot();
        }
    }
}
