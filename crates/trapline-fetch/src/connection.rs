//! A connection on which HTTP is spoken, and what is known of it.
//!
//! One of HTTP/1.1 has no task of its own: whoever has a request on it drives it, so that it lives and dies with its
//! request, or lies in the pool. One of HTTP/2 serves many requests at once, so it has.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::select;
use http_body_util::Full;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::TokioIo;
use tokio::sync::watch;
use tokio::task::coop::unconstrained;

use crate::dial::{Dialed, Protocol};
use crate::idle::{Idle, Resting};
use crate::options::Limits;
use crate::proxy::ThroughProxy;
use crate::stream::Stream;
use crate::tap::{SharedTape, Tap};
use crate::tls::TlsFacts;

/// How many bytes of an HTTP/2 connection may be part of no response: more than both windows, since what waits in them
/// is of no use yet.
const H2_USELESS_BYTES_MAX: u64 = 4 << 20;
const H2_STREAM_WINDOW_BYTES: u32 = 512 << 10;
const H2_CONNECTION_WINDOW_BYTES: u32 = 1 << 20;

pub(crate) type Outgoing = Full<Bytes>;

/// What is known of a connection as long as it lives.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) address: SocketAddr,
    /// The server's address: another one, if a proxy is between.
    pub(crate) target: SocketAddr,
    pub(crate) protocol: Protocol,
    pub(crate) tls: Option<TlsFacts>,
    pub(crate) through_proxy: Option<ThroughProxy>,
    pub(crate) born: Instant,
}

impl Facts {
    pub(crate) fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.born)
    }
}

/// A connection to send one request on.
pub(crate) enum Connection {
    H1(Box<H1>),
    H2(H2Stream),
}

impl Connection {
    /// Begins to speak HTTP on a connection.
    pub(crate) async fn open(dialed: Dialed, limits: &Limits) -> Result<Self, hyper::Error> {
        let Dialed { stream, address, target, protocol, tls, through_proxy, .. } = dialed;
        let facts = Arc::new(Facts { address, target, protocol, tls, through_proxy, born: Instant::now() });
        Ok(match protocol {
            Protocol::H1 => Self::H1(Box::new(H1::open(stream, facts, limits).await?)),
            Protocol::H2 => Self::H2(H2::open(stream, facts, limits).await?.stream()),
        })
    }

    pub(crate) fn facts(&self) -> &Arc<Facts> {
        match self {
            Self::H1(connection) => &connection.facts,
            Self::H2(stream) => &stream.connection.shared.facts,
        }
    }

    pub(crate) fn tape(&self) -> &SharedTape {
        match self {
            Self::H1(connection) => &connection.tape,
            Self::H2(stream) => &stream.connection.shared.tape,
        }
    }

    /// Drives the connection, if nobody else does, until the future is ready.
    pub(crate) async fn drive<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|cx| {
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return Poll::Ready(output);
            }
            let Self::H1(connection) = self else { return Poll::Pending };
            connection.poll_link(cx);
            // What the connection did may be what was waited for.
            future.as_mut().poll(cx)
        })
        .await
    }
}

type H1Link = http1::Connection<TokioIo<Tap<Stream>>, Outgoing>;

/// A connection of HTTP/1.1.
pub(crate) struct H1 {
    pub(crate) sender: http1::SendRequest<Outgoing>,
    link: Box<H1Link>,
    /// The link has ended and must not be asked again.
    over: bool,
    /// It ended with an error: after a response has ended well, that can only be bytes that nobody had asked for.
    failed: bool,
    pub(crate) tape: SharedTape,
    pub(crate) facts: Arc<Facts>,
}

impl H1 {
    pub(crate) async fn open(
        stream: Stream,
        facts: Arc<Facts>,
        limits: &Limits,
    ) -> Result<Self, hyper::Error> {
        let tape = SharedTape::default();
        let mut builder = http1::Builder::new();
        builder
            .max_buf_size(limits.header_bytes_max.max(8 << 10))
            .max_header_size(limits.header_bytes_max)
            // Old and careless servers are read as browsers read them.
            .ignore_invalid_headers_in_responses(true)
            .allow_obsolete_multiline_headers_in_responses(true)
            .allow_spaces_after_header_name_in_responses(true);
        // The usual number has its place on the stack.
        if limits.header_count_max != 100 {
            builder.max_headers(limits.header_count_max);
        }
        let (sender, link) = builder.handshake(Tap::open(stream, tape.clone())).await?;
        Ok(Self { sender, link: Box::new(link), over: false, failed: false, tape, facts })
    }

    fn poll_link(&mut self, cx: &mut Context<'_>) {
        if !self.over
            && let Poll::Ready(ended) = Pin::new(&mut *self.link).poll(cx)
        {
            self.over = true;
            self.failed = ended.is_err();
        }
    }

    /// Whether bytes came that nobody had asked for.
    pub(crate) fn strayed(&self) -> bool {
        self.tape.stray() || self.failed
    }

    /// Whether another request could be sent, as far as is known: the response before has ended well, nothing has come
    /// since, and the server has not hung up.
    pub(crate) fn seems_fit(&self) -> bool {
        !self.over && self.sender.is_ready() && self.tape.is_quiet()
    }

    /// Whether another request can be sent, after another look at the connection.
    pub(crate) async fn is_fit(&mut self) -> bool {
        let look = poll_fn(|cx| {
            self.poll_link(cx);
            Poll::Ready(self.seems_fit())
        });
        // Tokio would say that nothing has come also to a task that has read enough for this turn.
        unconstrained(look).await
    }

    /// Parts with all but the stream, if another request could be sent, as far as is known: hyper says no as long as it
    /// has some of a request to write, which would be lost.
    ///
    /// # Errors
    /// What is left of it, to be dropped.
    pub(crate) fn rest(self: Box<Self>) -> Result<Idle, Idle> {
        if !self.seems_fit() {
            return Err(Idle::Awake(self));
        }
        let Self { link, facts, .. } = *self;
        let http1::Parts { io, read_buf, .. } = link.into_parts();
        let resting = Idle::Resting(Box::new(Resting { stream: io.into_inner().into_stream(), facts }));
        if read_buf.is_empty() { Ok(resting) } else { Err(resting) }
    }
}

/// A connection of HTTP/2, shared by the pool and by all who have a stream on it.
#[derive(Clone)]
pub(crate) struct H2 {
    sender: http2::SendRequest<Outgoing>,
    shared: Arc<H2Shared>,
}

struct H2Shared {
    facts: Arc<Facts>,
    tape: SharedTape,
    streams: AtomicUsize,
    /// No more streams on this one.
    retired: AtomicBool,
    used: Mutex<Instant>,
    /// Its tasks end when this is dropped with the last who holds it.
    _life: watch::Sender<()>,
}

impl H2 {
    async fn open(stream: Stream, facts: Arc<Facts>, limits: &Limits) -> Result<Self, hyper::Error> {
        let tape = SharedTape::default();
        tape.meter(H2_USELESS_BYTES_MAX);
        let (life, end) = watch::channel(());
        let spawner = Spawner(end);
        let handshake = http2::Builder::new(spawner.clone())
            .initial_stream_window_size(H2_STREAM_WINDOW_BYTES)
            .initial_connection_window_size(H2_CONNECTION_WINDOW_BYTES)
            .max_header_list_size(u32::try_from(limits.header_bytes_max).unwrap_or(u32::MAX))
            .max_concurrent_reset_streams(8)
            .max_send_buf_size(64 << 10)
            .handshake(Tap::open(stream, tape.clone()));
        let (sender, link) = handshake.await?;
        hyper::rt::Executor::execute(&spawner, async move {
            // Whoever waits for a response hears of it too.
            let _ = link.await;
        });
        let shared = H2Shared {
            facts,
            tape,
            streams: AtomicUsize::new(0),
            retired: AtomicBool::new(false),
            used: Mutex::new(Instant::now()),
            _life: life,
        };
        Ok(Self { sender, shared: Arc::new(shared) })
    }

    /// Takes a stream, whether or not there are many already.
    pub(crate) fn stream(&self) -> H2Stream {
        self.shared.streams.fetch_add(1, Ordering::Relaxed);
        H2Stream { connection: self.clone() }
    }

    pub(crate) fn is_fit(&self) -> bool {
        !self.sender.is_closed() && !self.shared.retired.load(Ordering::Relaxed)
    }

    pub(crate) fn streams(&self) -> usize {
        self.shared.streams.load(Ordering::Relaxed)
    }

    pub(crate) fn facts(&self) -> &Facts {
        &self.shared.facts
    }

    /// When its last stream ended.
    pub(crate) fn used(&self) -> Instant {
        *self.shared.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to one stream.
pub(crate) struct H2Stream {
    connection: H2,
}

impl H2Stream {
    pub(crate) fn sender(&mut self) -> &mut http2::SendRequest<Outgoing> {
        &mut self.connection.sender
    }

    pub(crate) fn connection(&self) -> &H2 {
        &self.connection
    }

    /// Lets nobody else begin on this connection.
    pub(crate) fn retire(&self) {
        self.connection.shared.retired.store(true, Ordering::Relaxed);
    }
}

impl Drop for H2Stream {
    fn drop(&mut self) {
        let shared = &self.connection.shared;
        *shared.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        shared.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs the tasks of a connection, no longer than the connection lives.
#[derive(Clone)]
struct Spawner(watch::Receiver<()>);

impl<F> hyper::rt::Executor<F> for Spawner
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, task: F) {
        let mut end = self.0.clone();
        tokio::spawn(async move {
            // Nothing is ever sent: the change is that nobody is left to send.
            select(pin!(end.changed()), pin!(task)).await;
        });
    }
}
