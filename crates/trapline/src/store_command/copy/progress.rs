//! How a copy tells how far it is: a bar on a terminal, a line now and then elsewhere.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use trapline_core::format_duration;

use crate::ended::complain;
use crate::output::plain;

/// So long nothing is said where lines are written.
const SILENCE: Duration = Duration::from_secs(10);

/// Tells on standard error.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    what: String,
    /// What was there when this part began, which was not done now.
    from: u64,
    total: u64,
    begun: Instant,
    said: Instant,
}

impl Progress {
    pub(super) fn new() -> Self {
        let bar = stderr().is_terminal().then(ProgressBar::no_length);
        let now = Instant::now();
        Self { bar, what: String::new(), from: 0, total: 0, begun: now, said: now }
    }

    /// Something else is done now, of which there is so much, and so much of it is done already.
    pub(super) fn begin(&mut self, crawl: &str, what: &str, done: u64, total: u64) {
        self.what = format!("{}: {what}", plain(crawl));
        (self.from, self.total, self.begun) = (done, total, Instant::now());
        let Some(bar) = &self.bar else { return };
        let template = match total {
            0 => "{spinner} {msg} {elapsed}",
            _ => "{msg} {wide_bar} {human_pos} of {human_len}, {per_sec}, {eta} left",
        };
        bar.set_style(ProgressStyle::with_template(template).expect("a template with keys that exist"));
        bar.set_length(total);
        bar.set_position(done);
        bar.reset_eta();
        bar.reset_elapsed();
        bar.set_message(self.what.clone());
        bar.enable_steady_tick(Duration::from_millis(200));
    }

    /// So much is done.
    pub(super) fn tell(&mut self, done: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(done);
            return;
        }
        if self.said.elapsed() < SILENCE {
            return;
        }
        self.said = Instant::now();
        complain(&line(&self.what, self.from, done, self.total, self.begun.elapsed()));
    }

    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn line(what: &str, from: u64, done: u64, total: u64, took: Duration) -> String {
    if total == 0 {
        return what.to_owned();
    }
    let rate = done.saturating_sub(from) as f64 / took.as_secs_f64().max(0.001);
    let left = total.saturating_sub(done) as f64 / rate.max(0.001);
    let left = Duration::from_secs((left as u64).min(99 * 86_400));
    format!("{what}: {done} of {total}, {rate:.0} a second, about {} left", format_duration(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_how_much_how_fast_and_how_long() {
        let seconds = Duration::from_secs;
        assert_eq!(
            line("a: copying URLs", 1_000, 3_000, 10_000, seconds(2)),
            "a: copying URLs: 3000 of 10000, 1000 a second, about 7s left"
        );
        assert_eq!(line("a: waiting", 0, 0, 0, seconds(2)), "a: waiting");
        assert_eq!(
            line("a: copying URLs", 0, 0, 10, seconds(0)),
            "a: copying URLs: 0 of 10, 0 a second, about 10000s left"
        );
    }
}
