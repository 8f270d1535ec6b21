//! Whether somebody wants the copy to stop: Ctrl-C or SIGTERM, which lets the page at hand be finished. A second one does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// What a command ends with that was killed by Ctrl-C.
const KILLED: i32 = 130;

/// Set once somebody has asked. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Begins to listen. Where that is not possible, signals end the process as usual, which is harmless as well.
    pub(super) fn listen() -> Self {
        let stop = Self::default();
        for signal in [SIGINT, SIGTERM] {
            let _ = flag::register_conditional_shutdown(signal, KILLED, Arc::clone(&stop.0));
            let _ = flag::register(signal, Arc::clone(&stop.0));
        }
        stop
    }

    pub(super) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// An error if somebody has asked.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.is_asked() { Err("it was interrupted".to_owned()) } else { Ok(()) }
    }
}
