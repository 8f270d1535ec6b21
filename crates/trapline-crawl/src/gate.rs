//! The gate before every request. While it is closed, who comes there turns back.

use std::sync::atomic::{AtomicBool, Ordering};

/// Open at first.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    closed: AtomicBool,
}

impl Gate {
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    pub(crate) fn open(&self) {
        self.closed.store(false, Ordering::SeqCst);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }
}
