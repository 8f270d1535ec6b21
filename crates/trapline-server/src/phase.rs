//! Where a service is in its life, for all its connections and calls to hear.

use tokio::sync::watch;

/// One after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Calls are taken.
    Serving,
    /// No new ones; those that are there may end by themselves.
    Draining,
    /// Those that are still there are ended.
    Over,
}

/// Hears of phases.
#[derive(Clone)]
pub(crate) struct PhaseWatch(watch::Receiver<Phase>);

impl PhaseWatch {
    /// One end tells, the other hears.
    pub(crate) fn new() -> (watch::Sender<Phase>, Self) {
        let (sender, receiver) = watch::channel(Phase::Serving);
        (sender, Self(receiver))
    }

    /// Which it is.
    pub(crate) fn now(&self) -> Phase {
        *self.0.borrow()
    }

    /// Waits until it is this one or a later one; that too if nobody is left who could tell.
    pub(crate) async fn reached(mut self, phase: Phase) {
        let _ = self.0.wait_for(|now| *now >= phase).await;
    }
}
