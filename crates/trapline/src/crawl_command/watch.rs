//! Looks after a crawl while it runs: tells how it does, follows orders that come through its folder, takes up seeds, and adapts
//! the number of fetches.

use std::fs;
use std::io::{IsTerminal, Write, stderr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use trapline_crawl::CrawlHandle;
use trapline_frontier::{CrawlState, Frontier, Stats, StoreError};

use super::adapt::{self, Gauge};
use super::control::{self, Control, write_whole};
use super::inject::Inject;
use super::observed::SharedChronicle;
use super::reloading::Reloading;
use super::standing::{Counted, LastWord, Standing};
use crate::panel::Panel;
use crate::{moment, output};

/// How long the store may take to say how the crawl stands.
const PATIENCE: Duration = Duration::from_millis(500);

/// Over how long the rate is measured.
const RATE_PERIOD: Duration = Duration::from_secs(10);

/// How often the chronicle is saved in the folder, and how often in the store, to which each time is a write.
const SAVE_PERIOD: Duration = Duration::from_secs(5);
const NOTE_PERIOD: Duration = Duration::from_secs(60);

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
    pub(super) reloading: Arc<Reloading>,
    pub(super) inject: Option<Inject>,
    /// Who wants to know when nothing that was there at the beginning waits in `inject/` any more.
    pub(super) injected: Option<oneshot::Sender<()>>,
    pub(super) telling: Telling,
    /// What the store last said.
    pub(super) known: Known,
    pub(super) chronicle: SharedChronicle,
    /// It is being asked.
    pub(super) asking: Option<JoinHandle<Option<Known>>>,
}

/// What the store says of the crawl.
pub(super) struct Known {
    pub(super) stats: Stats,
    pub(super) paused: bool,
}

impl Watch {
    /// Watches until it is dropped.
    pub(super) async fn run(mut self) {
        // Who takes up seeds waits for the store; who tells how it does must not.
        let (handle, injected) = (self.handle.clone(), self.injected.take());
        if let Some(inject) = self.inject.take() {
            tokio::join!(take_up(inject, handle, injected), self.tell());
        }
    }

    async fn tell(&mut self) {
        let begun = Instant::now();
        let panel = self.panel();
        let mut gauge = Gauge::new();
        let mut rates: Vec<(Instant, u64)> = vec![(begun, self.handle.pages())];
        let (mut last_second, mut last_line) = (begun, begun);
        let (mut last_saved, mut last_noted) = (begun, begun);
        self.chronicle.sample(&self.known.stats, 0);
        loop {
            tokio::time::sleep(control::PERIOD).await;
            self.control.look(&self.handle, &self.reloading);
            let now = Instant::now();
            if now.duration_since(last_second) < adapt::PERIOD {
                continue;
            }
            last_second = now;
            self.adapt(gauge.as_mut());
            rates.push((now, self.handle.pages()));
            rates.retain(|(at, _)| now.duration_since(*at) <= RATE_PERIOD + adapt::PERIOD);
            self.ask().await;
            let standing = self.standing(begun, &rates, panel.is_some());
            let status = standing.json();
            // A full disk stops the crawl elsewhere, with a better message.
            let _ = write_whole(&self.folder.join("status.json"), &status.to_string());
            self.chronicle.sample(&self.known.stats, self.handle.look(|tally| tally.in_flight));
            if now.duration_since(last_saved) >= SAVE_PERIOD {
                last_saved = now;
                self.chronicle.save(&self.folder);
            }
            if now.duration_since(last_noted) >= NOTE_PERIOD {
                last_noted = now;
                let (chronicle, frontier) = (self.chronicle.clone(), self.frontier.clone());
                tokio::spawn(async move { chronicle.note(&frontier, NOTE_PERIOD / 2).await });
            }
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

    /// Asks the store how the crawl stands. If it does not answer soon, what it last said is told, and its answer is taken when it comes.
    async fn ask(&mut self) {
        let frontier = self.frontier.clone();
        let asking =
            self.asking.get_or_insert_with(|| tokio::spawn(async move { known(&frontier).await.ok() }));
        if let Ok(answered) = tokio::time::timeout(PATIENCE, asking).await {
            self.asking = None;
            if let Ok(Some(known)) = answered {
                self.known = known;
            }
        }
    }

    fn panel(&self) -> Option<Panel> {
        let wanted = !self.telling.quiet && !self.telling.json && stderr().is_terminal();
        wanted.then(Panel::show)
    }

    fn adapt(&self, gauge: Option<&mut Gauge>) {
        let most = self.reloading.look(|config| config.crawl.adaptive.then_some(config.crawl.concurrency));
        if let (Some(most), Some(gauge)) = (most, gauge)
            && let Some(pressure) = gauge.read()
        {
            let most = most as usize;
            self.handle.set_concurrency(adapt::next(self.handle.concurrency(), most, pressure));
        }
    }

    fn standing(&self, begun: Instant, rates: &[(Instant, u64)], with_hosts: bool) -> Standing {
        let rate = match (rates.first(), rates.last()) {
            (Some((from, before)), Some((to, after))) if to > from => {
                after.saturating_sub(*before) as f64 / to.duration_since(*from).as_secs_f64()
            }
            _ => 0.0,
        };
        Standing {
            counted: self.handle.look(|tally| Counted::of(tally, with_hosts)),
            stats: self.known.stats.clone(),
            paused: self.known.paused,
            runs: begun.elapsed(),
            rate,
            concurrency: self.handle.concurrency(),
            max_pages: self.reloading.look(|config| config.crawl.max_pages),
            ended: None,
        }
    }
}

/// Writes how a crawl ended, over how it stood.
pub(super) fn write_end(folder: &Path, handle: &CrawlHandle, stats: Stats, runs: Duration, word: LastWord) {
    let standing = Standing {
        counted: handle.look(|tally| Counted::of(tally, false)),
        stats,
        paused: false,
        runs,
        rate: 0.0,
        concurrency: handle.concurrency(),
        max_pages: None,
        ended: Some(word),
    };
    let (path, text) = (folder.join("status.json"), standing.json().to_string());
    if write_whole(&path, &text).is_err() && fs::write(&path, text).is_err() {
        // On a full disk: no news is better than old ones.
        let _ = fs::remove_file(&path);
    }
}

/// Asks the store how the crawl stands.
pub(super) async fn known(frontier: &Frontier) -> Result<Known, StoreError> {
    let now = moment::now();
    let stats = frontier.stats(now).await?;
    let paused = matches!(frontier.report(now).await?.state, CrawlState::Paused);
    Ok(Known { stats, paused })
}

/// Takes up seeds from the folder, for ever.
async fn take_up(mut inject: Inject, handle: CrawlHandle, mut injected: Option<oneshot::Sender<()>>) {
    loop {
        if inject.look(&handle).await
            && let Some(injected) = injected.take()
        {
            // Seeding may have ended already.
            let _ = injected.send(());
        }
        tokio::time::sleep(adapt::PERIOD).await;
    }
}
