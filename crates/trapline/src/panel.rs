//! The panel of a crawl on the terminal. There is one at most, and whoever writes a line to standard error meanwhile goes through
//! here, so that the line stands above the panel and not in the middle of it.

use std::sync::{Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressStyle};

static PANEL: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// A panel that is shown as long as this lives.
pub(crate) struct Panel(ProgressBar);

impl Panel {
    pub(crate) fn show() -> Self {
        let style = ProgressStyle::with_template("{msg}").expect("a template with keys that exist");
        let bar = ProgressBar::new_spinner().with_style(style);
        *PANEL.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
        Self(bar)
    }

    /// Shows other lines.
    pub(crate) fn set(&self, lines: String) {
        self.0.set_message(lines);
    }
}

impl Drop for Panel {
    fn drop(&mut self) {
        *PANEL.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.0.finish_and_clear();
    }
}

/// Does what writes lines to standard error. A panel makes way for them.
pub(crate) fn above<T>(write: impl FnOnce() -> T) -> T {
    let panel = PANEL.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match panel {
        Some(panel) => panel.suspend(write),
        None => write(),
    }
}
