//! The gate before every call: whether its sender may make it, that it is counted, and that it ends when the service does.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::Body;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::header::{
    ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderName, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::{Bytes, Frame, Incoming, SizeHint};
use tonic::{Code, Status};
use tower::ServiceExt;

use crate::listen::{Treatment, is_loopback, is_own_host};
use crate::methods;
use crate::metrics::{Metrics, PortName};
use crate::phase::{Phase, PhaseWatch};
use crate::tokens::{Access, Tokens};

/// What anybody may ask of the HTTP port.
const OPEN_PATH: &str = "/healthz";

/// The kinds of calls there are.
const GRPC_TYPES: [&str; 2] = ["application/grpc", "application/grpc+proto"];

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// The gate of one port.
pub(crate) struct Gate {
    pub(crate) port: PortName,
    pub(crate) listening: SocketAddr,
    pub(crate) tokens: Tokens,
    pub(crate) router: axum::Router,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) phase: PhaseWatch,
}

impl Gate {
    /// Answers a call. Whatever is wrong is an answer too.
    pub(crate) async fn call(
        self: Arc<Self>,
        peer: Treatment,
        activity: Arc<Activity>,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, std::convert::Infallible> {
        let busy = Busy::new(activity);
        Ok(match self.port {
            PortName::Grpc => self.grpc(peer, busy, request).await,
            PortName::Http => self.http(peer, busy, request).await,
        })
    }

    /// What a caller may do; None if nothing.
    fn access(&self, peer: Treatment, headers: &HeaderMap) -> Option<Access> {
        match self.tokens.of_headers(headers) {
            Some(access) => Some(access),
            // A token that is not good is a mistake somebody should hear of.
            None if peer.may_lack_token
                && (self.tokens.is_empty() || !headers.contains_key(AUTHORIZATION)) =>
            {
                Some(Access::Full)
            }
            None => None,
        }
    }

    async fn grpc(&self, peer: Treatment, busy: Busy, request: Request<Incoming>) -> Response<Body> {
        let method = methods::index(request.uri().path());
        if let Some(refusal) = of_another_kind(&request) {
            self.metrics.call(method, Code::InvalidArgument);
            return refusal;
        }
        let refusal = match (methods::needs(request.uri().path()), self.access(peer, request.headers())) {
            (Some(_), None) => Some(Status::unauthenticated(if Tokens::is_sent(request.headers()) {
                "the token that was sent is not known here: send one of this service's"
            } else {
                "a token is needed: send `authorization: Bearer TOKEN`"
            })),
            (Some(Access::Full), Some(Access::Read)) => {
                Some(Status::permission_denied("this token may only read"))
            }
            _ => None,
        };
        if let Some(status) = refusal {
            self.metrics.call(method, status.code());
            return status.into_http();
        }
        let mut tally =
            Tally { metrics: Arc::clone(&self.metrics), method, code: Code::Cancelled, _busy: busy };
        let mut over = self.phase.clone().reached(Phase::Over).boxed();
        let answered = self.router.clone().oneshot(request.map(Body::new));
        let response = tokio::select! {
            Ok(response) = answered => response,
            () = &mut over => {
                tally.code = Code::Unavailable;
                return leaving().into_http();
            }
        };
        if let Some(code) = code(response.headers()) {
            tally.code = code;
        }
        response.map(|inner| Body::new(CallBody { inner, over, is_over: false, tally }))
    }

    async fn http(&self, peer: Treatment, busy: Busy, request: Request<Incoming>) -> Response<Body> {
        let mut response = match self.http_refusal(peer, &request) {
            Some(refusal) => refusal,
            None => match self.router.clone().oneshot(request.map(Body::new)).await {
                Ok(response) => response,
                Err(never) => match never {},
            },
        };
        drop(busy);
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }

    fn http_refusal(&self, peer: Treatment, request: &Request<Incoming>) -> Option<Response<Body>> {
        if self.tokens.is_empty() && is_loopback(self.listening.ip()) {
            let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
            if !is_own_host(host, self.listening) {
                let why = "this service is for its own machine: ask it as localhost or 127.0.0.1\n";
                return Some(told(StatusCode::MISDIRECTED_REQUEST, why));
            }
        }
        if request.uri().path() == OPEN_PATH || self.access(peer, request.headers()).is_some() {
            return None;
        }
        let why = if Tokens::is_sent(request.headers()) {
            "the token that was sent is not known here: send one of this service's\n"
        } else {
            "a token is needed: send `Authorization: Bearer TOKEN`\n"
        };
        let mut refusal = told(StatusCode::UNAUTHORIZED, why);
        refusal.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        Some(refusal)
    }
}

/// What is said to who does not speak gRPC. Pages of the web can make a browser send much with its certificate, but not this media type.
fn of_another_kind<B>(request: &Request<B>) -> Option<Response<Body>> {
    if request.method() != Method::POST {
        let mut refusal = told(StatusCode::METHOD_NOT_ALLOWED, "this port speaks gRPC, which is POST\n");
        refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        return Some(refusal);
    }
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if GRPC_TYPES.iter().any(|known| kind.eq_ignore_ascii_case(known)) {
        return None;
    }
    Some(told(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "this port speaks gRPC: send `content-type: application/grpc`\n",
    ))
}

/// A response that is a sentence.
pub(crate) fn told(status: StatusCode, sentence: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(sentence));
    *response.status_mut() = status;
    response
}

fn leaving() -> Status {
    Status::unavailable("the service is ending; leases stay valid, try again at once or elsewhere")
}

/// The code that headers or trailers say a call ended with.
fn code(headers: &HeaderMap) -> Option<Code> {
    headers.get(GRPC_STATUS).map(|value| Code::from_bytes(value.as_bytes()))
}

/// Counts a call when it is over, and until then its connection is busy.
struct Tally {
    metrics: Arc<Metrics>,
    method: usize,
    /// Cancelled until something else is known: its caller went away.
    code: Code,
    _busy: Busy,
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.metrics.call(self.method, self.code);
    }
}

/// What a call answers, as long as the service goes on.
struct CallBody {
    inner: Body,
    over: BoxFuture<'static, ()>,
    is_over: bool,
    tally: Tally,
}

impl hyper::body::Body for CallBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        if this.is_over {
            return Poll::Ready(None);
        }
        let polled = Pin::new(&mut this.inner).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(code) = frame.trailers_ref().and_then(code)
        {
            this.tally.code = code;
        }
        if polled.is_pending() && this.over.poll_unpin(cx).is_ready() {
            this.is_over = true;
            this.tally.code = Code::Unavailable;
            let trailers = leaving().into_http::<Body>().into_parts().0.headers;
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// What happens on a connection, so that one on which nothing does can be closed.
pub(crate) struct Activity {
    opened: Instant,
    calls: AtomicUsize,
    /// When the last call ended. Only looked at when there is none.
    ended: Mutex<Option<Instant>>,
}

impl Activity {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { opened: Instant::now(), calls: AtomicUsize::new(0), ended: Mutex::new(None) })
    }

    /// Whether a call is under way.
    pub(crate) fn has_calls(&self) -> bool {
        self.calls.load(Ordering::Acquire) > 0
    }

    /// Waits until there was nothing for too long: `first` before the first call, `later` after one.
    pub(crate) async fn idle(&self, first: Duration, later: Duration) {
        loop {
            if self.has_calls() {
                tokio::time::sleep(later).await;
                continue;
            }
            let ended = *self.ended.lock().unwrap_or_else(PoisonError::into_inner);
            let until = ended.map_or(self.opened + first, |ended| ended + later);
            if until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until.into()).await;
        }
    }
}

/// A call that is under way.
struct Busy(Arc<Activity>);

impl Busy {
    fn new(activity: Arc<Activity>) -> Self {
        activity.calls.fetch_add(1, Ordering::AcqRel);
        Self(activity)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        *self.0.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.0.calls.fetch_sub(1, Ordering::AcqRel);
    }
}
