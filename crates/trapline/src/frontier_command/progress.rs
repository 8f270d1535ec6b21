//! A line on a terminal that says how far a long command is; nothing elsewhere.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Begins, if somebody looks on and nothing else is written there.
pub(super) fn begin(is_wanted: bool) -> ProgressBar {
    if !is_wanted || !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style =
        ProgressStyle::with_template("{spinner} {elapsed} {msg}").expect("a template with keys that exist");
    let progress = ProgressBar::new_spinner().with_style(style);
    progress.enable_steady_tick(Duration::from_millis(200));
    progress
}
