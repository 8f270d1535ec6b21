//! One request on one connection: sent, its response head awaited, its body read, each within its caps.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body, Incoming};

use crate::bandwidth::Bandwidth;
use crate::connection::{Connection, Outgoing};
use crate::decode::{Codings, DecodeCaps, Decoded, Decoder};
use crate::dial::Protocol;
use crate::fetch_error::{FetchError, FetchErrorKind};
use crate::fetched::{Oddity, RawResponse, Truncated};
use crate::head::{Headers, written_head};
use crate::options::Limits;
use crate::tap::HeadOnTape;
use crate::vigil::Vigil;

/// Bodies are decoded in pieces of this size, so that one that becomes much larger is noticed soon.
const PIECE_BYTES: usize = 8 << 10;
/// After so many decoded bytes others get a turn on the thread.
const TURN_BYTES: usize = 1 << 20;

/// A response head.
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) headers: Headers,
    pub(crate) header_bytes: u64,
    pub(crate) first_byte: Duration,
    pub(crate) oddities: Vec<Oddity>,
    /// As it came, or as it is written anew for HTTP/2.
    raw: Bytes,
    body: Incoming,
}

/// A body, as far as it came.
pub(crate) struct Tail {
    pub(crate) decoded: Decoded,
    pub(crate) encoded_bytes: u64,
    pub(crate) truncated: Option<Truncated>,
    pub(crate) raw: Option<RawResponse>,
}

/// What an exchange keeps to.
pub(crate) struct Terms<'t> {
    pub(crate) limits: &'t Limits,
    /// When everything must be over.
    pub(crate) end: Instant,
    pub(crate) keep_raw: bool,
    pub(crate) bandwidth: Option<&'t Bandwidth>,
}

/// Sends a request and waits for the response head.
pub(crate) async fn send(
    connection: &mut Connection,
    request: Request<Outgoing>,
    terms: &Terms<'_>,
    vigil: &mut Vigil,
) -> Result<Head, FetchError> {
    let limits = terms.limits;
    let sent = Instant::now();
    let until = terms.end.min(sent + limits.first_byte_timeout);
    let response = match connection {
        Connection::H1(h1) => {
            let raw_bytes_max = terms.keep_raw.then_some(limits.raw_bytes_max);
            h1.tape.begin(limits.header_bytes_max, limits.informational_max, raw_bytes_max);
            let response = h1.sender.send_request(request);
            vigil.wait(until, connection.drive(response)).await
        }
        Connection::H2(stream) => vigil.wait(until, stream.sender().send_request(request)).await,
    };
    let response = match response {
        Some(Ok(response)) => response,
        Some(Err(error)) => return Err(explain(connection, limits, &error)),
        None if Instant::now() >= terms.end => {
            return Err(FetchError::new(
                FetchErrorKind::TotalTimeout,
                "no response head before the end of its time",
            ));
        }
        None => {
            let waited = limits.first_byte_timeout;
            let detail = format!("no complete response head within {waited:?}");
            return Err(FetchError::new(FetchErrorKind::FirstByteTimeout, detail));
        }
    };
    if response.status().as_u16() == 101 {
        return Err(FetchError::new(FetchErrorKind::Upgrade, "status 101 to a request without Upgrade"));
    }
    match connection.facts().protocol {
        Protocol::H1 => head_of_h1(connection, response, sent, limits),
        Protocol::H2 => head_of_h2(connection, response, sent, limits),
    }
}

fn head_of_h1(
    connection: &Connection,
    response: Response<Incoming>,
    sent: Instant,
    limits: &Limits,
) -> Result<Head, FetchError> {
    let Some(HeadOnTape { raw, header_bytes, informational, first_byte }) = connection.tape().head() else {
        let detail = format!("the head of the response is longer than {} bytes", limits.header_bytes_max);
        return Err(FetchError::new(FetchErrorKind::HeaderBytes, detail));
    };
    if informational > limits.informational_max {
        return Err(too_many_informational(limits));
    }
    let headers = Headers::of_head(&raw);
    let mut oddities = Vec::new();
    let lengths = headers.all("content-length").count();
    if lengths > 0 && headers.all("transfer-encoding").next().is_some() {
        oddities.push(Oddity::LengthAndChunks);
    }
    if lengths > 1 {
        oddities.push(Oddity::RepeatedLength);
    }
    if informational > 0 {
        oddities.push(Oddity::Informational);
    }
    Ok(Head {
        status: response.status().as_u16(),
        headers,
        header_bytes,
        first_byte: first_byte.map_or_else(|| sent.elapsed(), |first| first.saturating_duration_since(sent)),
        oddities,
        raw,
        body: response.into_body(),
    })
}

fn head_of_h2(
    connection: &Connection,
    response: Response<Incoming>,
    sent: Instant,
    limits: &Limits,
) -> Result<Head, FetchError> {
    let first_byte = sent.elapsed();
    if response.headers().len() > limits.header_count_max {
        let detail = format!("the response has {} headers", response.headers().len());
        return Err(FetchError::new(FetchErrorKind::HeaderCount, detail));
    }
    let status = response.status().as_u16();
    let raw = written_head(status, response.headers());
    let headers = Headers::of_head(&raw);
    connection.tape().useful(raw.len() as u64);
    let header_bytes = raw.len() as u64;
    let body = response.into_body();
    Ok(Head { status, headers, header_bytes, first_byte, oddities: Vec::new(), raw, body })
}

/// Reads the body of a response.
pub(crate) async fn read_body(
    connection: &mut Connection,
    head: &mut Head,
    terms: &Terms<'_>,
    decoded_bytes_max: usize,
    vigil: &mut Vigil,
) -> Tail {
    let limits = terms.limits;
    let caps = DecodeCaps {
        decoded_bytes_max,
        ratio_max: limits.ratio_max,
        ratio_free_bytes: limits.ratio_free_bytes,
        window_bytes_max: limits.zstd_window_bytes_max,
    };
    let mut decoder = Decoder::new(&Codings::of(&head.headers), limits.codings_max, caps);
    let h2 = connection.facts().protocol == Protocol::H2;
    let mut raw_h2 = (h2 && terms.keep_raw).then(Vec::new);
    let mut raw_complete = true;
    let length = head.body.size_hint().exact();
    if let Some(length) = length {
        decoder.expect_bytes(length);
    }
    let tape = connection.tape().clone();
    let raised = Some(decoded_bytes_max as u64).filter(|_| decoded_bytes_max > limits.decoded_bytes_max);
    let encoded_bytes_max = limits.encoded_bytes_max.max(raised.unwrap_or(0));
    let mut encoded_bytes = 0_u64;
    let mut pace = Pace::new(limits, Instant::now());
    let truncated = loop {
        let frame = poll_fn(|cx| Pin::new(&mut head.body).poll_frame(cx));
        let until = terms.end.min(pace.idle_until());
        let data = match vigil.wait(until, connection.drive(frame)).await {
            None if Instant::now() >= terms.end => break Some(Truncated::TotalTime),
            None => break Some(Truncated::IdleTime),
            Some(None) => break None,
            Some(Some(Err(error))) => break Some(broken_off(&error, h2)),
            Some(Some(Ok(frame))) => frame.into_data(),
        };
        // Trailers tell nothing that a crawler needs; they are among the raw bytes.
        let Ok(mut data) = data else { continue };
        if h2 {
            tape.useful(data.len() as u64);
        }
        let now = Instant::now();
        let too_slow = pace.note(data.len(), now);
        let room = encoded_bytes_max.saturating_sub(encoded_bytes);
        let too_long = data.len() as u64 > room;
        data.truncate(usize::try_from(room).unwrap_or(usize::MAX));
        encoded_bytes += data.len() as u64;
        if let Some(raw) = &mut raw_h2 {
            let room = limits.raw_bytes_max.saturating_sub(head.raw.len() + raw.len()).min(data.len());
            raw_complete &= room == data.len();
            raw.extend_from_slice(&data[..room]);
        }
        let bytes = data.len();
        let mut wanted = true;
        if decoder.is_plain() {
            wanted = decoder.push_plain(data);
        } else {
            for piece in data.chunks(PIECE_BYTES) {
                wanted = decoder.push(piece);
                if !wanted {
                    break;
                }
                if decoder.take_steps_bytes() > TURN_BYTES {
                    tokio::task::yield_now().await;
                }
            }
        }
        if !wanted {
            break None;
        }
        if too_long {
            break Some(Truncated::EncodedBytes);
        }
        if now >= terms.end {
            break Some(Truncated::TotalTime);
        }
        if too_slow {
            break Some(Truncated::Rate);
        }
        if let Some(wait) = terms.bandwidth.and_then(|bandwidth| bandwidth.take(bytes, now)) {
            tokio::time::sleep_until(wait.min(terms.end).into()).await;
            // It was not the server who was slow.
            pace.pause_until(Instant::now(), now);
        }
    };
    let decoded = decoder.finish();
    if !h2 && length.is_some_and(|length| tape.received() > head.header_bytes + length) {
        head.oddities.push(Oddity::StrayBytes);
    }
    let raw = terms.keep_raw.then(|| match raw_h2 {
        Some(body) => RawResponse {
            request: Bytes::new(),
            server: None,
            head: head.raw.clone(),
            body: Bytes::from(body),
            complete: raw_complete,
            exact: false,
        },
        None => {
            let (kept, complete) = tape.end();
            let head_bytes = usize::try_from(head.header_bytes).unwrap_or(usize::MAX);
            let body = kept.slice(head_bytes.min(kept.len())..);
            RawResponse {
                request: Bytes::new(),
                server: None,
                head: head.raw.clone(),
                body,
                complete,
                exact: true,
            }
        }
    });
    if !h2 && raw.is_none() {
        tape.end();
    }
    Tail { truncated: truncated.or(decoded.truncated), decoded, encoded_bytes, raw }
}

/// How fast a body comes.
struct Pace {
    idle_timeout: Duration,
    window: Duration,
    window_bytes_min: u64,
    last: Instant,
    window_began: Instant,
    window_bytes: u64,
}

impl Pace {
    fn new(limits: &Limits, now: Instant) -> Self {
        let window_bytes_min = limits.rate_min_bytes_per_s as f64 * limits.rate_window.as_secs_f64();
        Self {
            idle_timeout: limits.idle_timeout,
            window: limits.rate_window,
            window_bytes_min: window_bytes_min as u64,
            last: now,
            window_began: now,
            window_bytes: 0,
        }
    }

    fn idle_until(&self) -> Instant {
        self.last + self.idle_timeout
    }

    /// Some bytes came. True if they were too few for too long.
    fn note(&mut self, bytes: usize, now: Instant) -> bool {
        // A frame without bytes is no progress.
        if bytes > 0 {
            self.last = now;
        }
        self.window_bytes += bytes as u64;
        if now.saturating_duration_since(self.window_began) < self.window {
            return false;
        }
        let too_slow = self.window_bytes < self.window_bytes_min;
        (self.window_began, self.window_bytes) = (now, 0);
        too_slow
    }

    /// Time passed in which nothing was read.
    fn pause_until(&mut self, now: Instant, since: Instant) {
        self.last = now;
        self.window_began += now.saturating_duration_since(since);
    }
}

/// Why a body ended before its end.
fn broken_off(error: &hyper::Error, h2: bool) -> Truncated {
    if h2 {
        return Truncated::Stream;
    }
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<std::io::Error>());
    let in_chunks = cause.is_some_and(|cause| {
        matches!(cause.kind(), std::io::ErrorKind::InvalidInput | std::io::ErrorKind::InvalidData)
    });
    if in_chunks { Truncated::Chunks } else { Truncated::Length }
}

fn too_many_informational(limits: &Limits) -> FetchError {
    let detail = format!("more than {} informational responses", limits.informational_max);
    FetchError::new(FetchErrorKind::InformationalFlood, detail)
}

/// Why there is no response head.
fn explain(connection: &Connection, limits: &Limits, error: &hyper::Error) -> FetchError {
    let tape = connection.tape();
    if connection.facts().protocol == Protocol::H2 {
        let kind = if tape.flooded() { FetchErrorKind::H2Flood } else { kind_of_h2(error) };
        return FetchError::new(kind, chain(error));
    }
    if tape.informational() > limits.informational_max {
        return too_many_informational(limits);
    }
    let kind = if tape.head_too_long() {
        FetchErrorKind::HeaderBytes
    } else if is_too_large(error) {
        let lines = tape.with_kept(|kept| kept.iter().filter(|byte| **byte == b'\n').count());
        if tape.received() >= limits.header_bytes_max as u64 {
            FetchErrorKind::HeaderBytes
        } else if lines > limits.header_count_max {
            FetchErrorKind::HeaderCount
        } else {
            // hyper calls a length so that no number can hold too large as well.
            FetchErrorKind::BadResponse
        }
    } else if error.is_parse() || (tape.received() > 0 && !tape.asked()) {
        // A server that speaks first, as those of SSH and mail do, is heard before or after the request went out.
        FetchErrorKind::BadResponse
    } else if is_io(error) {
        FetchErrorKind::Reset
    } else {
        FetchErrorKind::Closed
    };
    FetchError::new(kind, chain(error))
}

fn kind_of_h2(error: &hyper::Error) -> FetchErrorKind {
    let mut cause = std::error::Error::source(error);
    while let Some(current) = cause {
        if let Some(h2) = current.downcast_ref::<h2::Error>() {
            return match h2.reason() {
                Some(h2::Reason::REFUSED_STREAM) => FetchErrorKind::H2Refused,
                // A server that goes away without complaint.
                Some(h2::Reason::NO_ERROR) if h2.is_go_away() => FetchErrorKind::Closed,
                _ if h2.is_io() => FetchErrorKind::Reset,
                _ => FetchErrorKind::H2Protocol,
            };
        }
        cause = current.source();
    }
    if is_io(error) { FetchErrorKind::Reset } else { FetchErrorKind::Closed }
}

fn is_io(error: &hyper::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(current) = cause {
        if current.is::<std::io::Error>() {
            return true;
        }
        cause = current.source();
    }
    false
}

/// hyper tells servers of it, and clients only in words.
fn is_too_large(error: &hyper::Error) -> bool {
    error.is_parse() && error.to_string().contains("too large")
}

/// An error with all its causes.
fn chain(error: &hyper::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(current) = cause {
        text = format!("{text}: {current}");
        cause = current.source();
    }
    text
}
