//! Traces of visits, for a collector that speaks OTLP: what a visit was, how long its parts took, what became of it.
//!
//! Visits that went wrong are always told of, others by chance, one in a hundred unless chosen. The crawl never waits for the
//! collector: what has no room to wait is dropped, and counted.

mod messages;
mod sender;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use trapline_core::{SplitUrl, Timestamp};
use trapline_crawl::PageLine;
use trapline_crawl::ports::SettledVisit;
use trapline_frontier::Outcome;
use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::config::FileConfig;
use messages::{Attributes, Span, Status, attribute, number};
use sender::Sender;
pub(crate) use sender::endpoint_url;

/// How many visits may wait to be sent.
const WAITING_MAX: usize = 2048;

/// How long the end of a crawl waits for the last of them to be sent.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// The longest text of a span; URLs of traps have no end.
const TEXT_CHARS_MAX: usize = 2048;

/// What OTLP calls a span that is a request to somebody else, and any other.
const CLIENT: i32 = 3;
const INTERNAL: i32 = 1;

/// What OTLP calls a span that went wrong.
const ERROR: i32 = 2;

/// Tells a collector of visits.
pub(super) struct Traces {
    spans: mpsc::Sender<Vec<Span>>,
    /// One in how many that went well, as a threshold among all numbers.
    threshold: u64,
    seed: u64,
    visits: AtomicU64,
    dropped: AtomicU64,
}

/// What sends them, in the background.
pub(super) struct Sending(JoinHandle<()>);

impl Traces {
    /// Begins to tell the collector that the configuration names, if it does. `instance` is this crawler's name among others.
    pub(super) fn begin(config: &FileConfig, instance: &str) -> Result<Option<(Self, Sending)>, String> {
        let Some(endpoint) = &config.log.otlp else { return Ok(None) };
        let resource = vec![
            attribute("service.name", "trapline"),
            attribute("service.version", env!("CARGO_PKG_VERSION")),
            attribute("service.instance.id", instance),
            attribute("trapline.crawl", &config.crawl.name),
        ];
        let sender = Sender::new(config, endpoint, resource)?;
        let (spans, waiting) = mpsc::channel(WAITING_MAX);
        let traces = Self {
            spans,
            threshold: (config.log.otlp_sample * u64::MAX as f64) as u64,
            seed: getrandom::u64().map_err(|error| format!("no source of chance: {error}"))?,
            visits: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        };
        Ok(Some((traces, Sending(tokio::spawn(sender.run(waiting))))))
    }

    /// Tells of visits, as far as chance and room allow.
    pub(super) fn offer(&self, now: Timestamp, visits: &[SettledVisit<'_>]) {
        // Of a visit that was given back there is nothing to tell.
        let settled =
            |visit: &&SettledVisit<'_>| !matches!(visit.outcome, Outcome::Release | Outcome::Renew { .. });
        for visit in visits.iter().filter(settled) {
            let number = self.visits.fetch_add(1, Ordering::Relaxed);
            let trace = xxh3_128_with_seed(&number.to_le_bytes(), self.seed);
            if is_wrong(visit).is_none() && trace as u64 > self.threshold {
                continue;
            }
            if self.spans.try_send(spans(trace, now, visit)).is_err() {
                let dropped = self.dropped.fetch_add(1, Ordering::Relaxed) + 1;
                // Now and then, not each time.
                if dropped.is_power_of_two() {
                    tracing::warn!(
                        dropped,
                        "traces were dropped: the collector does not take them fast enough"
                    );
                }
            }
        }
    }
}

impl Sending {
    /// Waits a little for what is still to be sent, once nobody tells of anything any more.
    pub(super) async fn finish(self) {
        let aborted = self.0.abort_handle();
        if tokio::time::timeout(LAST_WAIT, self.0).await.is_err() {
            aborted.abort();
            tracing::warn!("the collector did not take the last traces in time");
        }
    }
}

/// What went wrong, in a word; None if nothing did. As HTTP clients see it, any status of 400 and above is wrong.
fn is_wrong(visit: &SettledVisit<'_>) -> Option<String> {
    let page = visit.results.page.as_ref();
    if let Some(error) = page.and_then(|page| page.error.clone()) {
        return Some(error);
    }
    if let Some(status) = page.and_then(|page| page.status).filter(|status| *status >= 400) {
        return Some(status.to_string());
    }
    match visit.outcome {
        Outcome::Dead { reason } => Some(reason.split(": ").next().unwrap_or_default().to_owned()),
        Outcome::Retry { .. } => Some("retry".to_owned()),
        _ => None,
    }
}

/// The spans of a visit: the visit, the request in it, and the parts of that.
fn spans(trace: u128, now: Timestamp, visit: &SettledVisit<'_>) -> Vec<Span> {
    let wrong = is_wrong(visit);
    let (request, page) = (visit.request, visit.results.page.as_ref());
    let started = page.map_or(now, |page| page.at);
    let mut attributes = vec![
        attribute("url.full", short(&request.url)),
        attribute("trapline.queue", short(visit.key)),
        attribute("trapline.outcome", outcome_name(visit.outcome)),
        number("trapline.depth", request.depth.into()),
    ];
    attributes
        .extend((!request.hop_path.is_empty()).then(|| attribute("trapline.hops", short(&request.hop_path))));
    attributes.extend(request.via.as_deref().map(|via| attribute("trapline.via", short(via))));
    attributes.extend(request.seed.as_deref().map(|seed| attribute("trapline.seed", short(seed))));
    if let Outcome::Dead { reason } | Outcome::Disregard { reason } = visit.outcome {
        attributes.push(attribute("trapline.reason", short(reason)));
    }
    let mut maker = Maker { trace, made: 0 };
    let end = now.max(started);
    let visit_span =
        maker.span(None, "visit", INTERNAL, (nanos(started), nanos(end)), attributes, wrong.clone());
    let root = visit_span.span_id.clone();
    let mut spans = vec![visit_span];
    if let Some(page) = page {
        let from = nanos(page.at);
        let to = from + page.times.total.as_nanos() as u64;
        let name = short(&request.method);
        let span = maker.span(Some(&root), name, CLIENT, (from, to), of_request(page, name), wrong);
        let parent = span.span_id.clone();
        spans.push(span);
        let parts = [
            ("dns", Some(page.times.dns)),
            ("connect", Some(page.times.connect)),
            ("tls", Some(page.times.tls)),
            ("first byte", page.times.first_byte),
        ];
        let mut at = from;
        for (name, took) in parts {
            let took = took.unwrap_or_default();
            if !took.is_zero() {
                let times = (at, at + took.as_nanos() as u64);
                spans.push(maker.span(Some(&parent), name, INTERNAL, times, Vec::new(), None));
                at = times.1;
            }
        }
    }
    spans
}

/// As OpenTelemetry's conventions for HTTP call things.
fn of_request(page: &PageLine, method: &str) -> Attributes {
    let mut attributes = vec![
        attribute("http.request.method", method),
        attribute("url.full", short(&page.url)),
        number("http.response.body.size", page.encoded_bytes.try_into().unwrap_or(i64::MAX)),
    ];
    if let Ok(url) = SplitUrl::parse(&page.url) {
        attributes.push(attribute("server.address", url.host_str().unwrap_or_default()));
    }
    attributes.extend(page.status.map(|status| number("http.response.status_code", status.into())));
    attributes.extend(page.address.as_deref().map(|address| attribute("network.peer.address", address)));
    let version = page.protocol.and_then(|protocol| protocol.split('/').nth(1));
    attributes.extend(version.map(|version| attribute("network.protocol.version", version)));
    attributes.extend(page.mime.as_deref().map(|mime| attribute("trapline.mime", short(mime))));
    attributes.extend((page.retries > 0).then(|| number("http.request.resend_count", page.retries.into())));
    attributes
}

/// Makes the spans of a trace.
struct Maker {
    trace: u128,
    made: u8,
}

impl Maker {
    fn span(
        &mut self,
        parent: Option<&[u8]>,
        name: &str,
        kind: i32,
        (from, to): (u64, u64),
        mut attributes: Attributes,
        wrong: Option<String>,
    ) -> Span {
        self.made += 1;
        let id = xxh3_128_with_seed(&self.trace.to_le_bytes(), self.made.into()) as u64;
        let status = wrong.map(|wrong| {
            attributes.push(attribute("error.type", short(&wrong)));
            Status { message: String::new(), code: ERROR }
        });
        Span {
            trace_id: self.trace.to_be_bytes().to_vec(),
            // All zeros would be none.
            span_id: id.max(1).to_be_bytes().to_vec(),
            parent_span_id: parent.unwrap_or_default().to_vec(),
            name: name.to_owned(),
            kind,
            start_time_unix_nano: from,
            end_time_unix_nano: to,
            attributes,
            status,
        }
    }
}

fn nanos(at: Timestamp) -> u64 {
    at.as_millis().saturating_mul(1_000_000)
}

fn outcome_name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done { .. } => "done",
        Outcome::Retry { .. } => "retry",
        Outcome::Dead { .. } => "dead",
        Outcome::Disregard { .. } => "disregarded",
        Outcome::Release | Outcome::Renew { .. } => "released",
    }
}

fn short(text: &str) -> &str {
    text.char_indices().nth(TEXT_CHARS_MAX).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use trapline_core::Request;
    use trapline_crawl::ports::Results;
    use trapline_frontier::Visit;

    use super::*;

    fn traces(sample: f64, waiting: usize) -> (Traces, mpsc::Receiver<Vec<Span>>) {
        let (spans, receiver) = mpsc::channel(waiting);
        let threshold = (sample * u64::MAX as f64) as u64;
        let (visits, dropped) = (AtomicU64::new(0), AtomicU64::new(0));
        (Traces { spans, threshold, seed: 1, visits, dropped }, receiver)
    }

    fn offered(traces: &Traces, outcome: &Outcome, times: usize) {
        let request = Request::get("http://a.test/");
        let results = Results::default();
        let visit = SettledVisit { request: &request, key: "a.test", outcome, results: &results };
        for _ in 0..times {
            traces.offer(Timestamp::from_millis(5), &[visit]);
        }
    }

    #[test]
    fn one_in_a_hundred_that_went_well_and_all_that_did_not() {
        let (traces, mut receiver) = traces(0.01, 100_000);
        offered(&traces, &Outcome::Done { visit: Visit::default(), next: None }, 20_000);
        let mut well = 0;
        while receiver.try_recv().is_ok() {
            well += 1;
        }
        assert!((120..=280).contains(&well), "{well}");
        offered(&traces, &Outcome::Dead { reason: "dns_failed: x".to_owned() }, 500);
        let mut wrong = Vec::new();
        while let Ok(spans) = receiver.try_recv() {
            wrong.extend(spans);
        }
        assert_eq!(wrong.len(), 500);
        let status = wrong[0].status.as_ref().unwrap();
        assert_eq!((status.code, wrong[0].trace_id.len(), wrong[0].span_id.len()), (ERROR, 16, 8));
        assert!(wrong[0].attributes.contains(&attribute("error.type", "dns_failed")), "{:?}", wrong[0]);
    }

    #[test]
    fn what_has_no_room_is_dropped_and_nobody_waits() {
        let (traces, _receiver) = traces(1.0, 3);
        offered(&traces, &Outcome::Done { visit: Visit::default(), next: None }, 10);
        assert_eq!(traces.dropped.load(Ordering::Relaxed), 7);
    }
}
