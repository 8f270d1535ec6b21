//! Results of a crawl for those who listen, which the crawl never waits for: who reads too slowly misses some, and is told how many.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::stream::{self, Stream, StreamExt};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Receiver, Sender};
use tonic::Status;
use trapline_core::{HostPattern, SplitUrl, Timestamp};
use trapline_crawl::PageLine;
use trapline_crawl::ports::SettledVisit;
use trapline_frontier::Outcome;

use crate::proto::v1;

/// So many results are kept for those who have not read them yet, for all of them together.
const KEPT: usize = 4096;

/// Longer titles and URLs are told up to here, so that what is kept is bounded in bytes too.
const TEXT_BYTES_MAX: usize = 8 << 10;

/// What is told of one visit.
pub(crate) struct Told {
    host: String,
    result: v1::VisitResult,
}

/// Where results go.
pub(crate) struct CrawlResults {
    /// None once the crawl is over.
    listeners: Mutex<Option<Sender<Arc<Told>>>>,
}

impl Default for CrawlResults {
    fn default() -> Self {
        Self { listeners: Mutex::new(Some(broadcast::channel(KEPT).0)) }
    }
}

impl CrawlResults {
    /// Tells visits to those who listen. Costs nothing while nobody does.
    pub(crate) fn tell(&self, visits: &[SettledVisit<'_>]) {
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(listeners) = listeners.as_ref().filter(|listeners| listeners.receiver_count() > 0) else {
            return;
        };
        for visit in visits {
            if let Some(page) = &visit.results.page {
                // The last one may have gone meanwhile.
                let _ = listeners.send(Arc::new(told(visit, page)));
            }
        }
    }

    /// Nothing more will come: streams end when they have told what is kept for them.
    pub(crate) fn end(&self) {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Listens from now on; None if the crawl is over.
    pub(crate) fn listen(&self) -> Option<Receiver<Arc<Told>>> {
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.as_ref().map(Sender::subscribe)
    }
}

/// What somebody wants to hear of.
pub(crate) struct ResultFilter {
    hosts: Vec<HostPattern>,
    statuses: Vec<Wanted>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Status(u16),
    /// All that begin with this digit.
    Class(u16),
    /// Without a response.
    Error,
}

impl ResultFilter {
    pub(crate) fn read(request: &v1::StreamResultsRequest) -> Result<Self, Status> {
        let host = |text: &String| {
            text.parse::<HostPattern>().map_err(|error| Status::invalid_argument(format!("hosts: {error}")))
        };
        let hosts = request.hosts.iter().map(host).collect::<Result<_, _>>()?;
        let statuses = request.statuses.iter().map(|text| wanted(text)).collect::<Result<_, _>>()?;
        Ok(Self { hosts, statuses })
    }

    fn wants(&self, told: &Told) -> bool {
        let status = told.result.status.and_then(|status| u16::try_from(status).ok());
        let fits = |wanted: &Wanted| match (*wanted, status) {
            (Wanted::Status(wanted), Some(status)) => wanted == status,
            (Wanted::Class(class), Some(status)) => class == status / 100,
            (Wanted::Error, status) => status.is_none(),
            _ => false,
        };
        (self.hosts.is_empty() || self.hosts.iter().any(|host| host.matches(&told.host)))
            && (self.statuses.is_empty() || self.statuses.iter().any(fits))
    }
}

fn wanted(text: &str) -> Result<Wanted, Status> {
    let wrong = || {
        Status::invalid_argument(format!(
            "statuses: `{}` is none: write a status such as 404, a class such as 4xx, or error",
            text.escape_debug()
        ))
    };
    if text == "error" {
        return Ok(Wanted::Error);
    }
    match text.strip_suffix("xx") {
        Some(class) => class.parse().ok().filter(|class| (1..=5).contains(class)).map(Wanted::Class),
        None => text.parse().ok().filter(|status| (100..=999).contains(status)).map(Wanted::Status),
    }
    .ok_or_else(wrong)
}

/// What somebody hears: first that he is heard, then results. `ended` says with which status it ends.
pub(crate) fn stream(
    heard: Receiver<Arc<Told>>,
    filter: ResultFilter,
    ended: impl Fn() -> Status + Send + 'static,
) -> impl Stream<Item = Result<v1::StreamResultsResponse, Status>> + Send {
    let results = stream::unfold(Some((heard, filter, ended)), |state| async {
        let (mut heard, filter, ended) = state?;
        loop {
            let response = match heard.recv().await {
                Ok(told) if filter.wants(&told) => {
                    v1::StreamResultsResponse { missed: 0, result: Some(told.result.clone()) }
                }
                Ok(_) => continue,
                Err(RecvError::Lagged(missed)) => v1::StreamResultsResponse { missed, result: None },
                Err(RecvError::Closed) => return Some((Err(ended()), None)),
            };
            return Some((Ok(response), Some((heard, filter, ended))));
        }
    });
    stream::once(async { Ok(v1::StreamResultsResponse::default()) }).chain(results)
}

fn told(visit: &SettledVisit<'_>, page: &PageLine) -> Told {
    let url = SplitUrl::parse(&page.url).ok();
    let host = url.as_ref().and_then(SplitUrl::host_str).unwrap_or_default().to_owned();
    let millis = |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let text = |text: Option<&str>| short(text.unwrap_or_default());
    let result = v1::VisitResult {
        url: short(&page.url),
        queue: visit.key.to_owned(),
        at_ms: page.at.as_millis(),
        lease: page.lease,
        outcome: page.outcome.to_owned(),
        status: page.status.map(u32::from),
        error: text(page.error.as_deref()),
        retries: page.retries,
        duration_ms: millis(page.times.total),
        encoded_bytes: page.encoded_bytes,
        decoded_bytes: page.decoded_bytes,
        media_type: text(page.mime.as_deref()),
        charset: text(page.charset),
        title: text(page.title.as_deref()),
        digest: page.digest.map(Vec::from).unwrap_or_default(),
        simhash: page.simhash,
        redirect: text(page.redirect.as_deref()),
        links_found: page.links_found as u64,
        links_kept: page.links_kept as u64,
        via: text(page.via.as_deref()),
        depth: page.depth,
        seed: text(page.seed.as_deref()),
        is_revisit: page.visited_before,
        changed: page.changed,
        next_ms: match visit.outcome {
            Outcome::Done { next, .. } => next.map(Timestamp::as_millis),
            _ => None,
        },
        archived: page.archived.clone(),
    };
    Told { host, result }
}

/// A text up to a length, in whole characters.
fn short(text: &str) -> String {
    text[..text.floor_char_boundary(TEXT_BYTES_MAX)].to_owned()
}
