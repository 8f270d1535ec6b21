//! A port: accepts connections, turns away those that are too many or may not come, and carries the others until they end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::rt::{Read, Write};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::gate::{Activity, Gate};
use crate::limits::Limits;
use crate::line::Line;
use crate::listen::{Protection, Treatment};
use crate::metrics::{Metrics, PortName, Turned};
use crate::phase::{Phase, PhaseWatch};

/// What a TLS client says first.
const TLS_HANDSHAKE: u8 = 0x16;

/// How long answers may take to go out once all calls have ended. A peer that was sending while nobody read may need two seconds until its
/// system tries once more.
const LAST_WORDS: Duration = Duration::from_secs(4);

/// How long peers may take to hang up then, or if they have no calls.
const PARTING: Duration = Duration::from_secs(1);

/// After the system could not accept, most likely because there are too many open files.
const BREATH: Duration = Duration::from_millis(100);

/// One of the service's ports.
pub(crate) struct Port {
    pub(crate) gate: Arc<Gate>,
    pub(crate) protection: Arc<Protection>,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) limits: Limits,
    pub(crate) phase: PhaseWatch,
}

impl Port {
    /// Accepts until the service drains, and returns when all connections have ended.
    pub(crate) async fn run(self: Arc<Self>, listener: TcpListener) {
        let slots = Arc::new(Semaphore::new(self.limits.connections));
        let mut connections = JoinSet::new();
        let draining = self.phase.clone().reached(Phase::Draining);
        tokio::pin!(draining);
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut draining => break,
                Some(_) = connections.join_next() => continue,
                accepted = listener.accept() => accepted,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    if !is_of_one_peer(&error) {
                        tracing::warn!(port = ?self.gate.port, %error, "cannot accept connections");
                        sleep(BREATH).await;
                    }
                    continue;
                }
            };
            let treatment = self.protection.of_peer(self.gate.listening.ip(), peer.ip());
            if !treatment.is_served {
                self.turn(peer, Turned::Stranger);
                continue;
            }
            let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
                self.turn(peer, Turned::Full);
                continue;
            };
            let port = Arc::clone(&self);
            connections.spawn(async move {
                let open = Open::new(&port.gate.metrics, port.gate.port);
                let _ = stream.set_nodelay(true);
                let line = Line::new(stream);
                port.connection(line.clone(), peer, treatment).await;
                if port.phase.now() >= Phase::Draining {
                    line.hang_up(PARTING).await;
                }
                drop((open, slot));
            });
        }
        drop(listener);
        while connections.join_next().await.is_some() {}
    }

    fn turn(&self, peer: SocketAddr, why: Turned) {
        self.gate.metrics.turned(self.gate.port, why);
        tracing::debug!(port = ?self.gate.port, %peer, ?why, "turned away");
    }

    async fn connection(&self, line: Line, peer: SocketAddr, treatment: Treatment) {
        let Some(tls) = &self.tls else {
            return self.carry(TokioIo::new(line), treatment).await;
        };
        if treatment.may_be_plain {
            let mut first = [0];
            let looked = tokio::select! {
                looked = timeout(self.limits.handshake, line.peek(&mut first)) => looked,
                () = self.phase.clone().reached(Phase::Draining) => return,
            };
            match looked {
                Ok(Ok(1)) if first[0] != TLS_HANDSHAKE => {
                    return self.carry(TokioIo::new(line), treatment).await;
                }
                Ok(Ok(1)) => {}
                _ => return self.turn(peer, Turned::Handshake),
            }
        }
        let handshake = tokio::select! {
            handshake = timeout(self.limits.handshake, tls.accept(line)) => handshake,
            () = self.phase.clone().reached(Phase::Draining) => return,
        };
        match handshake {
            Ok(Ok(stream)) => self.carry(TokioIo::new(stream), treatment).await,
            Ok(Err(error)) if is_no_tls(&error) => self.turn(peer, Turned::Plaintext),
            _ => self.turn(peer, Turned::Handshake),
        }
    }

    /// Speaks HTTP on a connection until it ends, is idle for too long, or the service ends.
    async fn carry(&self, io: impl Read + Write + Unpin + Send + 'static, treatment: Treatment) {
        let limits = &self.limits;
        let activity = Activity::new();
        let service =
            service_fn(|request| Arc::clone(&self.gate).call(treatment, Arc::clone(&activity), request));
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.handshake)
            .max_buf_size((limits.header_bytes as usize).max(8 << 10));
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(limits.streams)
            .initial_stream_window_size(limits.stream_window)
            .initial_connection_window_size(limits.connection_window)
            .max_header_list_size(limits.header_bytes)
            .keep_alive_interval(limits.keepalive)
            .keep_alive_timeout(limits.keepalive_timeout);
        let builder = match self.gate.port {
            PortName::Grpc => builder.http2_only(),
            PortName::Http => builder.http1_only(),
        };
        let connection = builder.serve_connection(io, service);
        tokio::pin!(connection);
        let patience = tokio::select! {
            _ = connection.as_mut() => return,
            () = activity.idle(limits.handshake, limits.idle) => PARTING,
            () = self.phase.clone().reached(Phase::Draining) => {
                // Who has no call under way is not waited for.
                if activity.has_calls() { limits.grace + LAST_WORDS } else { PARTING }
            }
        };
        connection.as_mut().graceful_shutdown();
        let _ = timeout(patience, connection).await;
    }
}

/// Whether it was only this connection that could not be accepted.
fn is_of_one_peer(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}

/// Whether a handshake failed because the peer spoke something else.
fn is_no_tls(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    matches!(inner, Some(rustls::Error::InvalidMessage(_)))
}

/// A connection that is counted as open.
struct Open {
    metrics: Arc<Metrics>,
    port: PortName,
}

impl Open {
    fn new(metrics: &Arc<Metrics>, port: PortName) -> Self {
        metrics.opened(port);
        Self { metrics: Arc::clone(metrics), port }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.metrics.closed(self.port);
    }
}
