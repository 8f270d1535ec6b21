//! What the HTTP port answers: whether the service lives, whether it can work, and its metrics.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::State;
use axum::routing::get;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use tokio::sync::Mutex;
use trapline_frontier::Store;

use crate::census::{self, Census};
use crate::clock::Clock;
use crate::crawler::Crawler;
use crate::exposition::Exposition;
use crate::gate::told;
use crate::metrics::Metrics;
use crate::phase::{Phase, PhaseWatch};

/// A store is counted no more often than that, however often it is asked for.
const CENSUS_AGE_MAX: Duration = Duration::from_secs(1);

/// What the answers are made of.
pub(crate) struct HttpPort {
    /// As it is, not metered: questions about metrics should not move them.
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Clock,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) phase: PhaseWatch,
    pub(crate) crawler: Option<Arc<Crawler>>,
    /// The last census, and when it was taken; None for a store that was away then. One is taken at a time.
    pub(crate) census: Mutex<Option<(Instant, Option<Census>)>>,
}

impl HttpPort {
    pub(crate) fn router(self) -> axum::Router {
        axum::Router::new()
            .route("/healthz", get(async || told(StatusCode::OK, "alive\n")))
            .route("/readyz", get(ready))
            .route("/metrics", get(metrics))
            .fallback(async || told(StatusCode::NOT_FOUND, "there are /healthz, /readyz and /metrics\n"))
            .with_state(Arc::new(self))
    }
}

async fn ready(State(port): State<Arc<HttpPort>>) -> Response<Body> {
    if port.phase.now() != Phase::Serving {
        return told(StatusCode::SERVICE_UNAVAILABLE, "ending\n");
    }
    match census::answers(&*port.store, port.clock.now()).await {
        Ok(()) => told(StatusCode::OK, "ready\n"),
        Err(error) => {
            // Where the store is, is not for everybody to know.
            tracing::warn!(%error, "not ready");
            told(
                StatusCode::SERVICE_UNAVAILABLE,
                "the store does not answer; the log of the service says why\n",
            )
        }
    }
}

async fn metrics(State(port): State<Arc<HttpPort>>) -> Response<Body> {
    let mut out = Exposition::default();
    out.family("trapline_build_info", "gauge", "Which program this is.");
    out.sample("", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    {
        let mut last = port.census.lock().await;
        if last.as_ref().is_none_or(|(at, _)| at.elapsed() >= CENSUS_AGE_MAX) {
            let taken = Census::take(&*port.store, port.clock.now()).await;
            if let Err(error) = &taken {
                tracing::warn!(%error, "the store cannot be counted");
            }
            *last = Some((Instant::now(), taken.ok()));
        }
        let census = last.as_ref().and_then(|(_, census)| census.as_ref());
        out.family("trapline_store_up", "gauge", "Whether the store answers.")
            .value(u8::from(census.is_some()));
        if let Some(census) = census {
            census.write(&mut out);
        }
    }
    port.metrics.write(&mut out);
    if let Some(crawler) = &port.crawler {
        crawler.write_metrics(&mut out);
    }
    let mut response = Response::new(Body::from(out.finish()));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
