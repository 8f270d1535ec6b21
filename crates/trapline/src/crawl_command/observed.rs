//! The results of a crawl, and those who hear of each visit once it was settled: its chronicle, the crawl log, the
//! traces, the service.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use trapline_core::Timestamp;
use trapline_crawl::ports::{Output, OutputError, Results, SettledVisit};
use trapline_frontier::{CrawlChange, Frontier, NoteWrite, Stats, UrlState};
use trapline_server::Crawler;

use super::control::write_whole;
use super::crawl_log::CrawlLog;
use super::files::ResultFiles;
use super::traces::Traces;
use crate::chronicle::{self, Chronicle, Point, Seen};
use crate::moment;

/// The results, and who hears of visits.
pub(super) struct Observed {
    pub(super) results: ResultFiles,
    pub(super) chronicle: SharedChronicle,
    pub(super) log: Option<CrawlLog>,
    pub(super) traces: Option<Traces>,
    pub(super) service: Option<Arc<Crawler>>,
}

#[async_trait]
impl Output for Observed {
    async fn write(&self, batch: &[Results]) -> Result<Vec<NoteWrite>, OutputError> {
        self.results.write(batch).await
    }

    fn settled(&self, now: Timestamp, visits: &[SettledVisit<'_>]) {
        self.chronicle.count(visits, self.results.pages_bytes());
        if let Some(log) = &self.log {
            log.write(now, visits);
        }
        if let Some(traces) = &self.traces {
            traces.offer(now, visits);
        }
        if let Some(service) = &self.service {
            service.settled(visits);
        }
    }
}

/// The chronicle of a crawl that runs. Clones share it.
#[derive(Clone)]
pub(super) struct SharedChronicle {
    chronicle: Arc<Mutex<Chronicle>>,
    /// The key of its note.
    note: Arc<str>,
}

impl SharedChronicle {
    /// Goes on with what an earlier run has left in its folder or its store, and counts what that had not counted yet. `note` is
    /// the value of the note in the store, if there is one, and `pages_bytes` how much of `pages.jsonl` belongs to the crawl; None
    /// if the crawl is new to the folder, whatever another one has left there.
    pub(super) fn resume(
        folder: &Path,
        id: &str,
        note: Option<&[u8]>,
        pages_bytes: Option<u64>,
    ) -> Result<Self, String> {
        let kept = [Chronicle::of_folder(folder), note.and_then(Chronicle::read)];
        // One that knows of visits which do not count was saved by a process that was killed over them.
        let kept = kept.into_iter().flatten().filter(|kept| Some(kept.pages_bytes) <= pages_bytes);
        let mut chronicle = kept.reduce(Chronicle::better).unwrap_or_default();
        let pages = folder.join("pages.jsonl");
        chronicle
            .catch_up(&pages, pages_bytes.unwrap_or(0))
            .map_err(|error| format!("cannot read {}: {error}", pages.display()))?;
        let note = format!("{}{id}", chronicle::NOTES).into();
        Ok(Self { chronicle: Arc::new(Mutex::new(chronicle)), note })
    }

    fn with<T>(&self, look: impl FnOnce(&mut Chronicle) -> T) -> T {
        look(&mut self.chronicle.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn count(&self, visits: &[SettledVisit<'_>], pages_bytes: u64) {
        self.with(|chronicle| {
            for visit in visits {
                if let Some(page) = &visit.results.page {
                    chronicle.counts.visit(&Seen::of_page(page));
                }
                visit.results.skipped.iter().for_each(|skipped| chronicle.counts.skip(&skipped.reason));
            }
            chronicle.pages_bytes = pages_bytes;
        });
    }

    /// Writes down how the crawl stands.
    pub(super) fn sample(&self, stats: &Stats, in_flight: usize) {
        self.with(|chronicle| {
            let counts = &chronicle.counts;
            let [two, three, four, five] = ['2', '3', '4', '5'].map(|begins| counts.responses(begins));
            let errors = counts.visits - counts.pages;
            let mut gauges = [0; 9];
            gauges[0] = stats.urls_in(UrlState::Pending);
            gauges[1] = in_flight as u64;
            gauges[2..].copy_from_slice(&stats.queues);
            chronicle.series.push(Point {
                at_ms: moment::now().as_millis(),
                counts: [counts.pages, counts.bytes, errors, two, three, four, five, counts.no_response()],
                gauges,
            });
        });
    }

    /// Saves it in the folder. A full disk stops the crawl elsewhere, with a better message.
    pub(super) fn save(&self, folder: &Path) {
        let text = self.with(|chronicle| chronicle.json()).to_string();
        let _ = write_whole(&folder.join(chronicle::FILE), &text);
    }

    /// Saves it in the store, if that answers soon. It is not worth waiting for.
    pub(super) async fn note(&self, frontier: &Frontier, patience: Duration) {
        let value = self.with(|chronicle| chronicle.json()).to_string().into_bytes();
        let note = NoteWrite { key: self.note.to_string(), value: Some(value), expires: None };
        let noted = frontier.steer_crawl(moment::now(), CrawlChange::Note(note));
        if let Ok(Err(error)) = tokio::time::timeout(patience, noted).await {
            tracing::debug!(%error, "the chronicle could not be noted");
        }
    }
}
