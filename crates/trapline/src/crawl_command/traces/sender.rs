//! Sends spans to a collector, in batches, over HTTP as protobuf. What it does not take is tried a few times and then dropped.

use std::time::Duration;

use http::{HeaderValue, Method, StatusCode, header};
use prost::Message;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};
use trapline_core::parse_url;
use trapline_fetch::{DialOptions, FetchOptions, FetchRequest, Fetcher, GuardOptions, Limits, Network};
use url::Url;

use super::messages::{Attributes, ExportTraces, Resource, ResourceSpans, Scope, ScopeSpans, Span};
use crate::config::FileConfig;

/// How many visits are sent at once, and how long the first of them waits for others.
const BATCH_MAX: usize = 256;
const TOGETHER: Duration = Duration::from_secs(2);

/// How often a batch is tried, and how long is waited after the first failure; then twice as long each time.
const TRIES: u32 = 4;
const WAIT: Duration = Duration::from_secs(1);

/// How long one try may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where traces are taken, below an endpoint that is only a server.
const PATH: &str = "/v1/traces";

pub(super) struct Sender {
    fetcher: Fetcher,
    url: Url,
    resource: Attributes,
    /// Somebody was told that the collector does not take what it is sent.
    is_told: bool,
}

impl Sender {
    pub(super) fn new(config: &FileConfig, endpoint: &str, resource: Attributes) -> Result<Self, String> {
        let url = endpoint_url(endpoint)?;
        let known = config.fetch_options().map_err(|(option, message)| format!("{option}: {message}"))?;
        let everywhere = ["0.0.0.0/0", "::/0"].map(str::parse::<Network>);
        let options = FetchOptions {
            dial: DialOptions {
                // It is the operator's, wherever it is.
                guard: GuardOptions {
                    allow_networks: everywhere.into_iter().flatten().collect(),
                    allow_ports: url.port_or_known_default().into_iter().collect(),
                    ..GuardOptions::default()
                },
                roots: known.dial.roots,
                ..DialOptions::default()
            },
            limits: Limits { total_timeout: PATIENCE, ..Limits::default() },
            ..FetchOptions::default()
        };
        let fetcher = Fetcher::new(options).map_err(|error| error.to_string())?;
        Ok(Self { fetcher, url, resource, is_told: false })
    }

    /// Sends what comes until nobody tells of anything any more. Then what is left is tried once.
    pub(super) async fn run(mut self, mut waiting: mpsc::Receiver<Vec<Span>>) {
        let mut batch = Vec::new();
        while let Some(first) = waiting.recv().await {
            batch.push(first);
            let until = Instant::now() + TOGETHER;
            while batch.len() < BATCH_MAX
                && let Ok(Some(next)) = timeout_at(until, waiting.recv()).await
            {
                batch.push(next);
            }
            let spans = batch.drain(..).flatten().collect();
            self.send(spans, &waiting).await;
        }
    }

    async fn send(&mut self, spans: Vec<Span>, waiting: &mpsc::Receiver<Vec<Span>>) {
        let scope = Scope { name: "trapline".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
        let body = ExportTraces {
            resource_spans: vec![ResourceSpans {
                resource: Some(Resource { attributes: self.resource.clone() }),
                scope_spans: vec![ScopeSpans { scope: Some(scope), spans }],
            }],
        };
        let mut request = FetchRequest::get(self.url.clone());
        request.method = Method::POST;
        request.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        request.body = body.encode_to_vec().into();
        let mut why = String::new();
        for tries in 0..TRIES {
            if tries > 0 {
                if waiting.is_closed() {
                    break;
                }
                sleep(WAIT * (1 << (tries - 1))).await;
            }
            let fetched = self.fetcher.fetch(&request).await;
            match (fetched.status, &fetched.error) {
                (Some(200..=299), _) => {
                    self.is_told = false;
                    return;
                }
                (Some(status), _) => why = format!("it answered {status}"),
                (None, Some(error)) => why = format!("{error}: {}", error.detail()),
                (None, None) => why = "it did not answer".to_owned(),
            }
            if !fetched.status.is_none_or(may_pass) {
                break;
            }
        }
        if !std::mem::replace(&mut self.is_told, true) {
            tracing::warn!(
                collector = self.url.as_str(),
                "traces are dropped: the collector does not take them: {why}"
            );
        }
    }
}

/// Whether the protocol says that a collector which answers so may take the same later.
fn may_pass(status: u16) -> bool {
    let statuses = [
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::BAD_GATEWAY,
        StatusCode::SERVICE_UNAVAILABLE,
        StatusCode::GATEWAY_TIMEOUT,
    ];
    statuses.iter().any(|passing| passing.as_u16() == status)
}

/// Where traces go, from what somebody called the collector.
pub(crate) fn endpoint_url(endpoint: &str) -> Result<Url, String> {
    let wrong =
        |why: &str| format!("`{endpoint}` is no collector: {why}; write it like http://127.0.0.1:4318");
    let mut url = parse_url(endpoint, None).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("traces are sent over http or https"));
    }
    if url.path() == "/" {
        url.set_path(PATH);
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_alone_means_its_usual_path() {
        let url = |text: &str| endpoint_url(text).map(String::from);
        assert_eq!(url("http://127.0.0.1:4318").as_deref(), Ok("http://127.0.0.1:4318/v1/traces"));
        assert_eq!(url("https://c.test/otlp/x").as_deref(), Ok("https://c.test/otlp/x"));
        let message = url("grpc://c.test").unwrap_err();
        assert!(message.contains("over http or https; write it like"), "{message}");
        assert!(url("localhost").unwrap_err().contains("is no collector"));
    }
}
