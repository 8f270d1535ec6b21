//! The one door to the network: the only place where a connection is opened.
//!
//! The guard is asked here and nowhere before, about the very address that is given to `connect`. Nothing is looked up between the two.
//! Every other `connect` in this crate is an error (see its `clippy.toml`).

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

use crate::deadline::after;
use crate::dial_error::{DialError, DialErrorKind};
use crate::guard::Guard;

/// The door, its guard, and how often it was opened.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) guard: Guard,
    pub(crate) connect_timeout: Duration,
    pub(crate) connect_timeout_total: Duration,
    pub(crate) attempt_delay: Duration,
    pub(crate) attempts_max: usize,
    opened: AtomicU64,
    refused: AtomicU64,
}

impl Door {
    pub(crate) fn new(
        guard: Guard,
        connect_timeout: Duration,
        connect_timeout_total: Duration,
        attempt_delay: Duration,
        attempts_max: usize,
    ) -> Self {
        let (opened, refused) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { guard, connect_timeout, connect_timeout_total, attempt_delay, attempts_max, opened, refused }
    }

    /// How often `connect` was called, and how often the guard refused.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.opened.load(Ordering::Relaxed), self.refused.load(Ordering::Relaxed))
    }

    /// Whether an address may be handed to a proxy, which then connects in our place.
    pub(crate) fn check(&self, address: SocketAddr) -> Result<(), DialError> {
        self.guard.check(address).map_err(|refusal| {
            self.refused.fetch_add(1, Ordering::Relaxed);
            DialError::from(refusal)
        })
    }

    /// Opens a connection, if the guard lets it through.
    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    async fn open(&self, address: SocketAddr) -> Result<TcpStream, DialError> {
        self.check(address)?;
        self.opened.fetch_add(1, Ordering::Relaxed);
        let stream = match timeout(self.connect_timeout, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(DialError::connecting(address, &error)),
            Err(_) => return Err(silent(address, self.connect_timeout)),
        };
        // Requests are written in one piece, so there is nothing to wait for.
        stream.set_nodelay(true).map_err(|error| DialError::connecting(address, &error))?;
        Ok(stream)
    }

    /// Opens a connection to the first of several addresses that answers.
    ///
    /// They are tried in order, the next one as soon as one failed or was silent for a moment (RFC 8305). Those that the guard
    /// refuses are passed over; if it refuses all, that is the error.
    pub(crate) async fn open_first(
        &self,
        addresses: &[SocketAddr],
    ) -> Result<(TcpStream, SocketAddr), DialError> {
        let deadline = after(self.connect_timeout_total);
        let mut waiting = addresses.iter().copied();
        let mut trying = FuturesUnordered::new();
        let mut tried = 0;
        let mut trouble: Option<DialError> = None;
        let mut refusal: Option<DialError> = None;
        loop {
            if tried < self.attempts_max
                && let Some(address) = waiting.next()
            {
                trying.push(async move { (address, self.open(address).await) });
                tried += 1;
            } else if trying.is_empty() {
                break;
            }
            let more = tried < self.attempts_max && waiting.len() > 0;
            let next_at = if more { deadline.min(after(self.attempt_delay)) } else { deadline };
            match timeout_at(next_at, trying.next()).await {
                Ok(Some((address, Ok(stream)))) => return Ok((stream, address)),
                Ok(Some((_, Err(error)))) if error.is_refusal() => {
                    // What is refused costs nothing, so it does not count as tried.
                    tried -= 1;
                    refusal.get_or_insert(error);
                }
                Ok(Some((_, Err(error)))) => {
                    trouble.get_or_insert(error);
                }
                Ok(None) => {}
                Err(_) if Instant::now() >= deadline => {
                    trouble = Some(silent(addresses.first().copied(), self.connect_timeout_total));
                    break;
                }
                Err(_) => {}
            }
        }
        match (trouble, refusal) {
            (Some(trouble), Some(_)) => Err(trouble.with_note(" (other addresses of the host are refused)")),
            (Some(error), None) | (None, Some(error)) => Err(error),
            (None, None) => Err(DialError::new(DialErrorKind::DnsNoAddress, "the host has no address")),
        }
    }
}

fn silent(address: impl Into<Option<SocketAddr>>, waited: Duration) -> DialError {
    let detail = match address.into() {
        Some(address) => format!("{address} did not answer within {waited:?}"),
        None => format!("no answer within {waited:?}"),
    };
    DialError::new(DialErrorKind::ConnectTimeout, detail)
}
