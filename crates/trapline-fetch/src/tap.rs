//! A tap on a connection: what a server really sent, byte by byte, before anybody has interpreted it.
//!
//! It sits between hyper and the socket. It keeps the bytes of one response at a time, notices bytes that nobody
//! asked for, and ends a connection that sends much and says little. It knows nothing of HTTP but where a head may end.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use hyper::rt::ReadBufCursor;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::head::{HeadPlace, find_head};

/// How much is read from a socket at once.
const READ_BYTES: usize = 64 << 10;
/// After so many bytes of a metered connection without a pause others get a turn on the thread. They may be thousands of frames
/// that say nothing.
const TURN_BYTES: usize = 64 << 10;

thread_local! {
    /// Where sockets are read into. One for each thread, not one for each connection: thousands of those may lie idle.
    static LANDING: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES].into_boxed_slice());
}

/// What is kept of the response under way.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    /// A request is under way. What comes without one is stray.
    listening: bool,
    /// The end of the response's head was found, by whoever interprets it.
    head_ended: bool,
    /// Where the head lies, if it came in one piece.
    head_place: Option<HeadPlace>,
    /// The body is to be kept too.
    keep_body: bool,
    kept: BytesMut,
    kept_max: usize,
    /// Something was not kept, because of `kept_max`.
    left_off: bool,
    /// Bytes of this response so far, those of its head included.
    received: u64,
    first_byte: Option<Instant>,
    stray: bool,
    /// How many bytes a head may have before the connection is ended.
    head_bytes_max: usize,
    head_too_long: bool,
    /// Informational responses so far, and how many there may be.
    informational: u32,
    informational_max: u32,
    /// For a connection with many streams: bytes of the whole connection, those among them that were of use, and how
    /// many may be of none.
    metered: Option<Metered>,
    hung_up: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Metered {
    received: u64,
    useful: u64,
    useless_max: u64,
    flooded: bool,
}

/// The tape of a connection, shared by the tap that writes it and by who reads it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedTape(Arc<Mutex<Tape>>);

impl SharedTape {
    fn lock(&self) -> MutexGuard<'_, Tape> {
        // Nothing between lock and unlock can leave a tape half-written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a response: from here on bytes are expected, and up to so many kept.
    pub(crate) fn begin(&self, head_bytes_max: usize, informational_max: u32, keep_body: bool) {
        let mut tape = self.lock();
        tape.head_place = None;
        tape.keep_body = keep_body;
        tape.informational = 0;
        tape.informational_max = informational_max;
        tape.listening = true;
        tape.head_ended = false;
        tape.kept = BytesMut::new();
        // Heads are read together with the beginning of their body.
        tape.kept_max = head_bytes_max.saturating_add(READ_BYTES);
        tape.left_off = false;
        tape.received = 0;
        tape.first_byte = None;
        tape.head_bytes_max = head_bytes_max;
        tape.head_too_long = false;
    }

    /// What came so far. Called when the head is complete, to find it in there.
    pub(crate) fn with_kept<T>(&self, look: impl FnOnce(&[u8]) -> T) -> T {
        look(&self.lock().kept)
    }

    /// Where the head lies in what came.
    pub(crate) fn head_place(&self) -> Option<HeadPlace> {
        let tape = self.lock();
        tape.head_place.or_else(|| find_head(&tape.kept))
    }

    /// The head has so many bytes, informational ones before it included. Answers it, and keeps what comes from here on
    /// too, up to so many bytes with the head, or nothing.
    pub(crate) fn head_ended(&self, head_bytes: usize, kept_max: Option<usize>) -> Bytes {
        let mut tape = self.lock();
        tape.head_ended = true;
        if kept_max.is_none() && tape.kept.len() == head_bytes {
            tape.kept_max = 0;
            return std::mem::take(&mut tape.kept).freeze();
        }
        // A copy, because headers outlive the body that may have come with them.
        let head = Bytes::copy_from_slice(tape.kept.get(..head_bytes).unwrap_or(&tape.kept));
        tape.kept_max = kept_max.unwrap_or(0);
        match kept_max {
            None => tape.kept = BytesMut::new(),
            Some(kept_max) if tape.kept.len() > kept_max => {
                tape.kept.truncate(kept_max);
                tape.left_off = true;
            }
            Some(_) => {}
        }
        head
    }

    /// Ends a response. Answers what was kept of it, and whether that is all of it.
    pub(crate) fn end(&self) -> (Bytes, bool) {
        let mut tape = self.lock();
        tape.listening = false;
        let all = !tape.left_off;
        (std::mem::take(&mut tape.kept).freeze(), all)
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

    pub(crate) fn first_byte(&self) -> Option<Instant> {
        self.lock().first_byte
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

    /// The server closed its side.
    pub(crate) fn hung_up(&self) -> bool {
        self.lock().hung_up
    }

    /// An informational response came.
    pub(crate) fn note_informational(&self) {
        self.lock().informational += 1;
    }

    pub(crate) fn informational(&self) -> u32 {
        self.lock().informational
    }

    fn may_read(&self) -> io::Result<()> {
        let mut tape = self.lock();
        if tape.listening
            && !tape.head_ended
            && tape.received >= tape.head_bytes_max as u64
            && tape.head_bytes_max > 0
        {
            tape.head_too_long = true;
            return Err(io::Error::other("the head of the response is too long"));
        }
        if tape.informational > tape.informational_max {
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
        if !tape.keep_body && !tape.head_ended {
            if tape.head_place.is_some() {
                return;
            }
            // The usual case: the whole head comes at once, and with it a part of the body, which need not be copied.
            if tape.kept.is_empty()
                && let Some(place) = find_head(bytes)
            {
                tape.head_place = Some(place);
                tape.kept.extend_from_slice(&bytes[..place.end]);
                return;
            }
        }
        let room = tape.kept_max.saturating_sub(tape.kept.len()).min(bytes.len());
        tape.left_off |= room < bytes.len();
        tape.kept.extend_from_slice(&bytes[..room]);
    }
}

/// A stream with a tap on it, in the form that hyper reads.
#[derive(Debug)]
pub(crate) struct Tap<S> {
    stream: S,
    tape: SharedTape,
    /// Bytes that came since others had a turn, and how many that may be.
    unbroken_bytes: usize,
    turn_bytes: usize,
}

impl<S> Tap<S> {
    pub(crate) fn new(stream: S, tape: SharedTape) -> Self {
        let turn_bytes = if tape.lock().metered.is_some() { TURN_BYTES } else { usize::MAX };
        Self { stream, tape, unbroken_bytes: 0, turn_bytes }
    }
}

impl<S: AsyncRead + Unpin> hyper::rt::Read for Tap<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let tap = self.get_mut();
        tap.tape.may_read()?;
        if tap.unbroken_bytes >= tap.turn_bytes {
            tap.unbroken_bytes = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        LANDING.with(|landing| {
            let mut landing = landing.borrow_mut();
            let room = into.remaining().min(landing.len());
            let mut buffer = ReadBuf::new(&mut landing[..room]);
            let read = Pin::new(&mut tap.stream).poll_read(cx, &mut buffer);
            tap.unbroken_bytes =
                if read.is_pending() { 0 } else { tap.unbroken_bytes + buffer.filled().len() };
            ready!(read)?;
            tap.tape.note(buffer.filled());
            into.put_slice(buffer.filled());
            Poll::Ready(Ok(()))
        })
    }
}

impl<S: AsyncWrite + Unpin> hyper::rt::Write for Tap<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
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
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, slices)
    }
}
