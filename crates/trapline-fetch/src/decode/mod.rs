//! Content codings undone, in small steps, with a look at the caps after each.
//!
//! What is broken or ends early is kept as far as it could be decoded, and the fault is named. What is not known to be a
//! coding stays as it came. Nothing here waits, and nothing is bigger than one step before somebody looks at it.

mod brotli;
mod coding;
mod inflate;
mod zstd;

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;

pub use coding::{Coding, Codings};

use brotli::Brotli;
use inflate::Inflate;
use zstd::Zstd;

use crate::fetched::Truncated;

/// How much a layer puts out before the caps are looked at.
const STEP_BYTES: usize = 64 << 10;

/// What may come out of a body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DecodeCaps {
    pub(crate) decoded_bytes_max: usize,
    pub(crate) ratio_max: u32,
    /// So many decoded bytes are always fine, whatever the ratio.
    pub(crate) ratio_free_bytes: usize,
    pub(crate) window_bytes_max: u64,
}

/// Why decoding stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    /// A cap was reached.
    Cap(Truncated),
    /// The coding is broken.
    Fault(DecodeFault),
}

/// What was wrong with a content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeFault {
    /// The body does not begin like its coding does. It is kept as it came.
    NotEncoded,
    /// The coding is broken at some point. What came before is kept.
    Broken,
    /// The body ends before its coding does. What there was is kept.
    Unfinished,
    /// Bytes follow the end of the coding. They are left out.
    Surplus,
    /// The coding wants a larger window than is allowed.
    Window,
    /// The coding is not known. The body is kept as it came.
    Unknown,
    /// There are more codings one in another than are undone. The body is kept as it came.
    Layers,
}

impl DecodeFault {
    /// Its name in results. Stays as it is.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotEncoded => "not_encoded",
            Self::Broken => "broken",
            Self::Unfinished => "unfinished",
            Self::Surplus => "surplus",
            Self::Window => "window",
            Self::Unknown => "unknown",
            Self::Layers => "layers",
        }
    }
}

impl std::fmt::Display for DecodeFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where a layer puts what it decoded, a step at a time.
type Out<'o> = dyn FnMut(&[u8]) -> Result<(), Halt> + 'o;

enum Layer {
    Inflate(Box<Inflate>),
    Brotli(Box<Brotli>),
    Zstd(Box<Zstd>),
}

impl Layer {
    fn push(&mut self, input: &[u8], out: &mut Out<'_>) -> Result<(), Halt> {
        match self {
            Self::Inflate(layer) => layer.push(input, out),
            Self::Brotli(layer) => layer.push(input, out),
            Self::Zstd(layer) => layer.push(input, out),
        }
    }

    fn finish(&mut self, out: &mut Out<'_>) -> Result<(), Halt> {
        match self {
            Self::Inflate(layer) => layer.finish(out),
            Self::Brotli(layer) => layer.finish(),
            Self::Zstd(layer) => layer.finish(out),
        }
    }

    /// Whether what came does not begin like this coding does. Many servers say `gzip` and send the page as it is; then the
    /// layer lets it through.
    fn is_another(&self) -> bool {
        match self {
            Self::Inflate(layer) => layer.is_another(),
            Self::Zstd(layer) => layer.is_another(),
            // Every byte could begin one.
            Self::Brotli(_) => false,
        }
    }
}

/// A layer, and how much came out of it: the one that is last may shrink again what another blew up.
struct Counted {
    layer: Layer,
    written: usize,
}

/// The decoded body, as far as it came.
struct Sink {
    body: Vec<u8>,
    caps: DecodeCaps,
    encoded: usize,
    /// How long the body will be, as far as that is believed.
    expected: usize,
    /// The whole body so far, as long as it is one piece that needed no decoding.
    whole: Option<Bytes>,
    /// Since somebody last asked.
    steps_bytes: usize,
}

impl Sink {
    /// Counts what comes out of a layer. Answers how much of it there is room for.
    fn allow(&self, written: usize, more: usize) -> (usize, Option<Truncated>) {
        let DecodeCaps { decoded_bytes_max, ratio_max, ratio_free_bytes, .. } = self.caps;
        let by_ratio = self.encoded.saturating_mul(ratio_max as usize).max(ratio_free_bytes);
        let (most, why) = if by_ratio < decoded_bytes_max {
            (by_ratio, Truncated::Ratio)
        } else {
            (decoded_bytes_max, Truncated::DecodedBytes)
        };
        let room = most.saturating_sub(written);
        if more > room { (room, Some(why)) } else { (more, None) }
    }
}

/// Undoes the codings of one body.
pub(crate) struct Decoder {
    /// From the outermost, which is undone first.
    layers: Vec<Counted>,
    sink: Sink,
    fault: Option<DecodeFault>,
    halted: Option<Truncated>,
    /// The fault was such that the rest is of no use.
    dead: bool,
}

impl Decoder {
    pub(crate) fn new(codings: &Codings, layers_max: usize, caps: DecodeCaps) -> Self {
        let (mut layers, mut fault) = (Vec::new(), None);
        if codings.known().len() > layers_max {
            fault = Some(DecodeFault::Layers);
        } else if codings.has_unknown() {
            fault = Some(DecodeFault::Unknown);
        } else {
            layers.extend(codings.known().iter().rev().map(|coding| Counted {
                layer: match coding {
                    Coding::Gzip => Layer::Inflate(Box::new(Inflate::gzip())),
                    Coding::Deflate => Layer::Inflate(Box::new(Inflate::deflate())),
                    Coding::Brotli => Layer::Brotli(Box::default()),
                    Coding::Zstd => Layer::Zstd(Box::new(Zstd::new(caps.window_bytes_max))),
                },
                written: 0,
            }));
        }
        let sink = Sink { body: Vec::new(), caps, encoded: 0, expected: 0, whole: None, steps_bytes: 0 };
        Self { layers, sink, fault, halted: None, dead: false }
    }

    /// Makes room for a body that is said to be so long, as far as it is believed.
    pub(crate) fn expect_bytes(&mut self, bytes: u64) {
        const BELIEVED_BYTES: u64 = 256 << 10;
        let bytes = if self.layers.is_empty() { bytes } else { 0 };
        let room = usize::try_from(bytes.min(BELIEVED_BYTES)).unwrap_or(0);
        self.sink.expected = room.min(self.sink.caps.decoded_bytes_max);
    }

    /// Whether bodies come out as they go in.
    pub(crate) fn is_plain(&self) -> bool {
        self.layers.is_empty()
    }

    /// Takes some more bytes of a body that comes out as it goes in. One that is a single piece is not copied, unless it is so
    /// short that the buffer it lies in would be mostly waste.
    pub(crate) fn push_plain(&mut self, input: Bytes) -> bool {
        const WORTHWHILE_BYTES: usize = 8 << 10;
        let first = self.sink.encoded == 0;
        let fits = (WORTHWHILE_BYTES..=self.sink.caps.decoded_bytes_max).contains(&input.len());
        if first && fits {
            self.sink.encoded += input.len();
            self.sink.whole = Some(input);
            return true;
        }
        if let Some(whole) = self.sink.whole.take() {
            self.sink.body.reserve_exact(std::mem::take(&mut self.sink.expected).max(whole.len()));
            self.sink.body.extend_from_slice(&whole);
        }
        self.push(&input)
    }

    /// Takes some more bytes of the body. False once nothing more is wanted.
    pub(crate) fn push(&mut self, input: &[u8]) -> bool {
        self.sink.encoded += input.len();
        if self.halted.is_some() || self.dead {
            return self.halted.is_none();
        }
        let Self { layers, sink, .. } = self;
        let fed = guarded(|| feed(layers, input, sink));
        self.note(fed);
        self.halted.is_none()
    }

    /// The body has ended, whether or not it came to its end.
    pub(crate) fn finish(mut self) -> Decoded {
        let layers = self.layers.len();
        if !self.dead && self.halted.is_none() && self.sink.encoded > 0 {
            for place in 0..layers {
                let (before, rest) = self.layers.split_at_mut(place + 1);
                let sink = &mut self.sink;
                let Some(Counted { layer, written }) = before.last_mut() else { break };
                let finished = guarded(|| layer.finish(&mut |step| feed_on(written, rest, step, sink)));
                self.note(finished);
            }
        }
        if self.layers.iter().any(|counted| counted.layer.is_another()) {
            self.fault = self.fault.or(Some(DecodeFault::NotEncoded));
        }
        Decoded { whole: self.sink.whole, body: self.sink.body, truncated: self.halted, fault: self.fault }
    }

    /// How much was put out since this was last asked.
    pub(crate) fn take_steps_bytes(&mut self) -> usize {
        std::mem::take(&mut self.sink.steps_bytes)
    }

    fn note(&mut self, fed: Result<(), Halt>) {
        match fed {
            Ok(()) => {}
            Err(Halt::Cap(why)) => self.halted = self.halted.or(Some(why)),
            Err(Halt::Fault(fault)) => {
                // The first one is the cause of the others.
                self.fault = self.fault.or(Some(fault));
                self.dead = true;
            }
        }
    }
}

/// What became of a body.
#[derive(Debug)]
pub(crate) struct Decoded {
    /// The body, if it came in one piece; otherwise it is in `body`.
    pub(crate) whole: Option<Bytes>,
    pub(crate) body: Vec<u8>,
    pub(crate) truncated: Option<Truncated>,
    pub(crate) fault: Option<DecodeFault>,
}

/// The decoders are other people's, some check themselves with assertions, and the input is hostile: should one give up, it
/// costs this body and nothing else.
fn guarded(work: impl FnOnce() -> Result<(), Halt>) -> Result<(), Halt> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(Halt::Fault(DecodeFault::Broken)))
}

/// Gives bytes to the first layer, what comes out of it to the next, and so on. As deep as there are layers: a handful.
fn feed(layers: &mut [Counted], input: &[u8], sink: &mut Sink) -> Result<(), Halt> {
    match layers.split_first_mut() {
        None => {
            let (room, full) = sink.allow(sink.body.len(), input.len());
            sink.body.reserve_exact(std::mem::take(&mut sink.expected));
            sink.body.extend_from_slice(&input[..room]);
            sink.steps_bytes += room;
            full.map_or(Ok(()), |why| Err(Halt::Cap(why)))
        }
        Some((Counted { layer, written }, rest)) => {
            layer.push(input, &mut |step| feed_on(written, rest, step, sink))
        }
    }
}

/// A step of a layer, on its way to the next.
fn feed_on(written: &mut usize, rest: &mut [Counted], step: &[u8], sink: &mut Sink) -> Result<(), Halt> {
    let (room, full) = sink.allow(*written, step.len());
    *written += room;
    feed(rest, &step[..room], sink)?;
    full.map_or(Ok(()), |why| Err(Halt::Cap(why)))
}

#[cfg(test)]
mod tests;
