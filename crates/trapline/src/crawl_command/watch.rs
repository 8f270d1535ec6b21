//! Looks after a crawl while it runs: tells how it does, follows orders that come through its folder, takes up seeds, and adapts
//! the number of fetches.

use std::io::{IsTerminal, Write, stderr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use trapline_crawl::CrawlHandle;
use trapline_frontier::{CrawlState, Frontier};

use super::adapt::{self, Gauge};
use super::control::{self, Control, write_whole};
use super::inject::Inject;
use super::standing::Standing;
use crate::panel::Panel;
use crate::{moment, output};

/// Over how long the rate is measured.
const RATE_PERIOD: Duration = Duration::from_secs(10);

/// What is told, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Telling {
    /// Nothing at all.
    pub(super) quiet: bool,
    /// Lines of JSON, also on a terminal.
    pub(super) json: bool,
    /// How often a line comes where there is no terminal.
    pub(super) period: Option<Duration>,
}

/// Looks after a crawl.
pub(super) struct Watch {
    pub(super) handle: CrawlHandle,
    pub(super) frontier: Frontier,
    pub(super) folder: PathBuf,
    pub(super) control: Control,
    pub(super) inject: Inject,
    /// Who wants to know when nothing that was there at the beginning waits in `inject/` any more.
    pub(super) injected: Option<oneshot::Sender<()>>,
    pub(super) telling: Telling,
    pub(super) max_pages: Option<u64>,
    /// The number of fetches follows the machine, up to this.
    pub(super) adaptive: Option<usize>,
}

impl Watch {
    /// Watches until it is dropped.
    pub(super) async fn run(mut self) {
        let begun = Instant::now();
        let panel = self.panel();
        let mut gauge = self.adaptive.and_then(|_| Gauge::new());
        let mut rates: Vec<(Instant, u64)> = vec![(begun, self.handle.pages())];
        let (mut last_second, mut last_line) = (begun, begun);
        self.take_up().await;
        loop {
            tokio::time::sleep(control::PERIOD).await;
            self.control.look(&self.handle);
            let now = Instant::now();
            if now.duration_since(last_second) < adapt::PERIOD {
                continue;
            }
            last_second = now;
            self.take_up().await;
            self.adapt(gauge.as_mut());
            rates.push((now, self.handle.pages()));
            rates.retain(|(at, _)| now.duration_since(*at) <= RATE_PERIOD + adapt::PERIOD);
            let Some(standing) = self.standing(begun, &rates).await else { continue };
            let status = standing.json();
            // A full disk stops the crawl elsewhere, with a better message.
            let _ = write_whole(&self.folder.join("status.json"), &status.to_string());
            if let Some(panel) = &panel {
                let lines: Vec<_> = standing.panel().lines().map(output::plain).collect();
                panel.set(lines.join("\n"));
            } else if let Some(period) = self.telling.period
                && now.duration_since(last_line) >= period
                && !self.telling.quiet
            {
                last_line = now;
                let line =
                    if self.telling.json { status.to_string() } else { output::plain(&standing.line()) };
                let _ = writeln!(stderr(), "{line}");
            }
        }
    }

    async fn take_up(&mut self) {
        if self.inject.look(&self.handle).await
            && let Some(injected) = self.injected.take()
        {
            // Seeding may have ended already.
            let _ = injected.send(());
        }
    }

    fn panel(&self) -> Option<Panel> {
        let wanted = !self.telling.quiet && !self.telling.json && stderr().is_terminal();
        wanted.then(Panel::show)
    }

    fn adapt(&self, gauge: Option<&mut Gauge>) {
        if let (Some(most), Some(gauge)) = (self.adaptive, gauge)
            && let Some(pressure) = gauge.read()
        {
            self.handle.set_concurrency(adapt::next(self.handle.concurrency(), most, pressure));
        }
    }

    async fn standing(&self, begun: Instant, rates: &[(Instant, u64)]) -> Option<Standing> {
        let now = moment::now();
        let stats = self.frontier.stats(now).await.ok()?;
        let paused = matches!(self.frontier.report(now).await.ok()?.state, CrawlState::Paused);
        let rate = match (rates.first(), rates.last()) {
            (Some((from, before)), Some((to, after))) if to > from => {
                after.saturating_sub(*before) as f64 / to.duration_since(*from).as_secs_f64()
            }
            _ => 0.0,
        };
        Some(Standing {
            tally: self.handle.tally(),
            stats,
            paused,
            runs: begun.elapsed(),
            rate,
            concurrency: self.handle.concurrency(),
            max_pages: self.max_pages,
        })
    }
}
