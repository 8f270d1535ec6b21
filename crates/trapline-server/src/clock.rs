//! Whose clock rules: the service's own, or, in tests, the caller's.

use std::sync::Arc;

use trapline_core::Timestamp;

/// Tells what time it is.
#[derive(Clone)]
pub struct Clock {
    own: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    hears_callers: bool,
}

impl Clock {
    /// A clock that all follow, whatever time they say it is.
    pub fn new(own: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self { own: Arc::new(own), hears_callers: false }
    }

    /// Test mode: where a caller says what time it is, that counts.
    pub fn hearing_callers(self) -> Self {
        Self { hears_callers: true, ..self }
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        (self.own)()
    }

    /// What time it is for a call that says `now_ms`.
    pub fn of_call(&self, now_ms: Option<u64>) -> Timestamp {
        match now_ms.filter(|_| self.hears_callers) {
            Some(now_ms) => Timestamp::from_millis(now_ms),
            None => self.now(),
        }
    }
}
