//! A tap on a connection: what a server really sent, byte by byte, before anybody has interpreted it.
//!
//! It sits between hyper and the socket. It keeps the bytes of one response at a time, notices bytes that nobody
//! asked for, and ends a connection that sends much and says little. It knows nothing of HTTP but where a head may end.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::{Buf, Bytes, BytesMut};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::head::HeadSearch;

/// After so many bytes of a metered connection without a pause others get a turn on the thread. They may be thousands of frames
/// that say nothing.
const TURN_BYTES: usize = 64 << 10;

/// What is kept of the response under way.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    /// A request is under way. What comes without one is stray.
    listening: bool,
    /// For the head, in what came so far.
    search: HeadSearch,
    /// The head, and as much of the body as has to be kept.
    kept: BytesMut,
    /// How many bytes of the whole response are to be kept; none for those who want only its head.
    raw_bytes_max: Option<usize>,
    /// Something was not kept, because of `raw_bytes_max`.
    left_off: bool,
    /// Something of the request has gone out.
    asked: bool,
    /// Bytes of this response so far, those of its head included.
    received: u64,
    first_byte: Option<Instant>,
    stray: bool,
    /// How many bytes a head may have before the connection is ended.
    head_bytes_max: usize,
    head_too_long: bool,
    /// How many informational responses there may be.
    informational_max: u32,
    /// For a connection with many streams: bytes of the whole connection, those among them that were of use, and how
    /// many may be of none.
    metered: Option<Metered>,
    hung_up: bool,
}

/// What the tape has of a response head.
pub(crate) struct HeadOnTape {
    /// The final head as it came.
    pub(crate) raw: Bytes,
    /// How many bytes came before the body, informational heads included.
    pub(crate) header_bytes: u64,
    pub(crate) informational: u32,
    pub(crate) first_byte: Option<Instant>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Metered {
    received: u64,
    useful: u64,
    useless_max: u64,
    flooded: bool,
}

impl Tape {
    fn keep(&mut self, bytes: &[u8]) {
        if self.search.found().is_some() {
            let room = self.raw_bytes_max.map_or(0, |most| most.saturating_sub(self.kept.len()));
            self.left_off |= room < bytes.len();
            self.kept.extend_from_slice(&bytes[..room.min(bytes.len())]);
            return;
        }
        // The usual case: the whole head comes at once, and with it a part of the body, which need not be copied.
        if self.raw_bytes_max.is_none()
            && self.kept.is_empty()
            && let Some(place) = self.search.go_on(bytes)
        {
            self.kept.extend_from_slice(&bytes[..place.end]);
            return;
        }
        // No more than a head may have, and one read: whoever sends more is not read on.
        self.kept.extend_from_slice(bytes);
        self.search.go_on(&self.kept);
    }
}

/// The tape of a connection, shared by the tap that writes it and by who reads it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedTape(Arc<Mutex<Tape>>);

impl SharedTape {
    fn lock(&self) -> MutexGuard<'_, Tape> {
        // Nothing between lock and unlock can leave a tape half-written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a response: from here on bytes are expected. Its head is kept, and all of it up to so many bytes if that is
    /// asked for.
    pub(crate) fn begin(&self, head_bytes_max: usize, informational_max: u32, raw_bytes_max: Option<usize>) {
        let mut tape = self.lock();
        tape.search = HeadSearch::default();
        tape.raw_bytes_max = raw_bytes_max;
        tape.informational_max = informational_max;
        tape.listening = true;
        tape.kept = BytesMut::new();
        tape.left_off = false;
        tape.asked = false;
        tape.received = 0;
        tape.first_byte = None;
        tape.head_bytes_max = head_bytes_max;
        tape.head_too_long = false;
    }

    /// What was kept so far.
    pub(crate) fn with_kept<T>(&self, look: impl FnOnce(&[u8]) -> T) -> T {
        look(&self.lock().kept)
    }

    /// The head, once it is complete.
    pub(crate) fn head(&self) -> Option<HeadOnTape> {
        let mut tape = self.lock();
        let place = tape.search.found()?;
        let mut raw = if tape.raw_bytes_max.is_none() && tape.kept.len() == place.end {
            std::mem::take(&mut tape.kept).freeze()
        } else {
            // A copy, because headers outlive the body that may have come with them.
            Bytes::copy_from_slice(&tape.kept[..place.end])
        };
        raw.advance(place.start);
        Some(HeadOnTape {
            raw,
            header_bytes: place.end as u64,
            informational: tape.search.informational,
            first_byte: tape.first_byte,
        })
    }

    /// Ends a response. Answers what was kept of it, and whether that is all of it.
    pub(crate) fn end(&self) -> (Bytes, bool) {
        let mut tape = self.lock();
        tape.listening = false;
        let mut kept = std::mem::take(&mut tape.kept);
        let most = tape.raw_bytes_max.unwrap_or(0);
        let all = !tape.left_off && kept.len() <= most;
        kept.truncate(most);
        (kept.freeze(), all)
    }

    /// Counts what came from here on, and lets so many bytes of it be of no use.
    pub(crate) fn meter(&self, useless_max: u64) {
        self.lock().metered = Some(Metered { useless_max, ..Metered::default() });
    }

    /// Somebody had use for so many bytes.
    pub(crate) fn useful(&self, bytes: u64) {
        if let Some(metered) = &mut self.lock().metered {
            metered.useful += bytes;
        }
    }

    pub(crate) fn received(&self) -> u64 {
        self.lock().received
    }

    /// Whether the server can have seen anything of the request.
    pub(crate) fn asked(&self) -> bool {
        self.lock().asked
    }

    /// Bytes came while nobody had asked for any.
    pub(crate) fn stray(&self) -> bool {
        self.lock().stray
    }

    pub(crate) fn head_too_long(&self) -> bool {
        self.lock().head_too_long
    }

    pub(crate) fn flooded(&self) -> bool {
        self.lock().metered.is_some_and(|metered| metered.flooded)
    }

    /// Nothing came that nobody had asked for, and the server has not closed its side.
    pub(crate) fn is_quiet(&self) -> bool {
        let tape = self.lock();
        !tape.stray && !tape.hung_up
    }

    /// How many informational responses came.
    pub(crate) fn informational(&self) -> u32 {
        self.lock().search.informational
    }

    fn may_read(&self) -> io::Result<()> {
        let mut tape = self.lock();
        if tape.listening
            && tape.search.found().is_none()
            && tape.received >= tape.head_bytes_max as u64
            && tape.head_bytes_max > 0
        {
            tape.head_too_long = true;
            return Err(io::Error::other("the head of the response is too long"));
        }
        if tape.search.informational > tape.informational_max {
            return Err(io::Error::other("too many informational responses came"));
        }
        if let Some(metered) = &mut tape.metered
            && metered.received > metered.useless_max.saturating_add(metered.useful.saturating_mul(2))
        {
            metered.flooded = true;
            return Err(io::Error::other("the server sends too much that is of no use"));
        }
        Ok(())
    }

    fn note(&self, bytes: &[u8]) {
        let mut tape = self.lock();
        if let Some(metered) = &mut tape.metered {
            metered.received += bytes.len() as u64;
            return;
        }
        if bytes.is_empty() {
            tape.hung_up = true;
            return;
        }
        if !tape.listening {
            tape.stray = true;
            return;
        }
        if tape.first_byte.is_none() {
            tape.first_byte = Some(Instant::now());
        }
        tape.received += bytes.len() as u64;
        tape.keep(bytes);
    }
}

/// A stream with a tap on it.
#[derive(Debug)]
pub(crate) struct Tap<S> {
    stream: S,
    tape: SharedTape,
    /// Bytes that came since others had a turn, and how many that may be.
    unbroken_bytes: usize,
    turn_bytes: usize,
}

impl<S> Tap<S> {
    /// A tap in the form that hyper reads.
    pub(crate) fn open(stream: S, tape: SharedTape) -> TokioIo<Self> {
        let turn_bytes = if tape.lock().metered.is_some() { TURN_BYTES } else { usize::MAX };
        TokioIo::new(Self { stream, tape, unbroken_bytes: 0, turn_bytes })
    }

    /// The stream without the tap.
    pub(crate) fn into_stream(self) -> S {
        self.stream
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Tap<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let tap = self.get_mut();
        tap.tape.may_read()?;
        if tap.unbroken_bytes >= tap.turn_bytes {
            tap.unbroken_bytes = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = into.filled().len();
        let read = Pin::new(&mut tap.stream).poll_read(cx, into);
        let came = &into.filled()[before..];
        tap.unbroken_bytes = if read.is_pending() { 0 } else { tap.unbroken_bytes + came.len() };
        ready!(read)?;
        tap.tape.note(came);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Tap<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.tape.lock().asked = true;
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.tape.lock().asked = true;
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, slices)
    }
}
