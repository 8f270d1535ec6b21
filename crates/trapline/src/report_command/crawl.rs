//! `trapline report crawl`: a crawl as a whole.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};
use trapline_frontier::{CrawlReport, CrawlState, QueueState, Stats, StoreError, UrlState};

use super::origin::Origin;
use super::{ReportArgs, page};
use crate::chronicle::{Chronicle, Series};
use crate::control_command::runs;
use crate::ended::Ended;
use crate::moment;
use crate::output::{Output, Row};

/// Over how long the rate of late is measured.
const LATELY_MS: u64 = 60_000;

/// The crawl as a whole: its state, what came of it, how fast it goes
#[derive(Args)]
pub(super) struct CrawlReportArgs {
    #[command(flatten)]
    at: ReportArgs,
    /// Also write one page for a browser, with charts over time. Nothing in it is loaded from elsewhere
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl CrawlReportArgs {
    pub(super) fn run(&self) -> Result<Ended, String> {
        let origin = Origin::open(&self.at)?;
        let (chronicle, standing) = (origin.chronicle()?, standing(&origin)?);
        let mut out = Output::of(self.at.format);
        let card = row(&origin, chronicle.as_ref(), standing.as_ref())?;
        if let Some(path) = &self.html {
            let page = page::write(&origin, &card, &chronicle.unwrap_or_default())?;
            std::fs::write(path, page)
                .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
        out.card(&card);
        out.finish().map(|()| Ended::Well)
    }
}

/// What the frontier says of the crawl, if it can be asked.
fn standing(origin: &Origin) -> Result<Option<(CrawlReport, Stats)>, String> {
    let Some(frontier) = origin.known_frontier() else { return Ok(None) };
    let now = moment::now();
    let asked = async { Ok((frontier.report(now).await?, frontier.stats(now).await?)) };
    pollster::block_on(asked).map(Some).map_err(|error: StoreError| error.to_string())
}

fn row(
    origin: &Origin,
    chronicle: Option<&Chronicle>,
    standing: Option<&(CrawlReport, Stats)>,
) -> Result<Row, String> {
    let process = origin.folder.as_deref().map(runs).transpose()?.flatten();
    let crawl = standing.map(|(crawl, _)| crawl);
    let stats = standing.map(|(_, stats)| stats);
    let state = match (crawl.map(|crawl| &crawl.state), process) {
        (Some(CrawlState::Finished(why)), _) => format!("finished: {why}"),
        (Some(CrawlState::Paused), _) => "paused".to_owned(),
        (_, Some(_)) => "running".to_owned(),
        (Some(CrawlState::Running), None) if crawl.is_some_and(|crawl| crawl.exhausted) => {
            "nothing is left to do".to_owned()
        }
        (Some(CrawlState::Running), None) => "not finished".to_owned(),
        (None, None) => "ended".to_owned(),
    };
    let counts = chronicle.map(|chronicle| &chronicle.counts);
    let series = chronicle.map(|chronicle| &chronicle.series);
    let count = |of: fn(&Stats) -> u64| json!(stats.map(of));
    Ok(vec![
        ("crawl", json!(origin.crawl)),
        ("state", json!(state)),
        ("process", json!(process)),
        ("started", json!(crawl.map(|crawl| moment::write(crawl.started)))),
        ("first_visit", json!(counts.and_then(|counts| counts.first).map(moment::write))),
        ("last_visit", json!(counts.and_then(|counts| counts.last).map(moment::write))),
        ("visits", json!(counts.map(|counts| counts.visits))),
        ("pages", json!(counts.map(|counts| counts.pages))),
        ("failed", json!(counts.map(|counts| counts.visits - counts.pages))),
        ("retries", json!(counts.map(|counts| counts.retries))),
        ("bytes", json!(counts.map(|counts| counts.bytes).or(stats.map(|stats| stats.bytes)))),
        (
            "ms_average",
            json!(
                counts.and_then(|counts| counts.us.checked_div(counts.visits)).map(|us| us as f64 / 1000.0)
            ),
        ),
        ("pages_per_second", json!(series.and_then(|series| rate(series, u64::MAX)))),
        ("pages_per_second_lately", json!(series.and_then(|series| rate(series, LATELY_MS)))),
        ("urls", stats.map_or(Value::Null, urls)),
        ("queues", stats.map_or(Value::Null, queues)),
        ("fetched", count(|stats| stats.fetched)),
        ("spent", count(|stats| stats.spent)),
        ("leases_granted", count(|stats| stats.granted)),
        ("leases_expired", count(|stats| stats.expired)),
    ])
}

fn urls(stats: &Stats) -> Value {
    let states = UrlState::ALL.into_iter().filter(|state| *state != UrlState::Unknown);
    let counts = states.map(|state| (state.to_string(), json!(stats.urls_in(state))));
    Value::Object(counts.collect::<Map<_, _>>())
}

fn queues(stats: &Stats) -> Value {
    let counts = QueueState::ALL.map(|state| (state.to_string(), json!(stats.queues_in(state))));
    Value::Object(counts.into_iter().collect::<Map<_, _>>())
}

/// Pages a second over the last part of a series. Times at which nobody crawled do not count.
fn rate(series: &Series, lately_ms: u64) -> Option<f64> {
    let points: Vec<_> = series.points().collect();
    let from = points.last()?.at_ms.saturating_sub(lately_ms);
    let gap_ms = series.gap_ms();
    let (mut ms, mut pages) = (0, 0);
    for pair in points.windows(2).filter(|pair| pair[1].at_ms > from) {
        let apart = pair[1].at_ms - pair[0].at_ms;
        if apart < gap_ms {
            ms += apart;
            pages += pair[1].counts[0].saturating_sub(pair[0].counts[0]);
        }
    }
    (ms > 0).then(|| (pages as f64 * 1e5 / ms as f64).round() / 100.0)
}
