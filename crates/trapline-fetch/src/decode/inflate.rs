//! gzip and deflate.
//!
//! A body may have several gzip members, one after the other. `deflate` is meant to have the header of zlib, and often has
//! none.

use flate2::{Decompress, FlushDecompress, Status};

use super::{DecodeFault, Halt, Out, STEP_BYTES};

pub(super) struct Inflate {
    kind: Kind,
    /// The first bytes, until it is clear what they begin.
    opening: Vec<u8>,
    state: Option<Decompress>,
    /// A whole stream, or member, has ended.
    ended: bool,
    another: bool,
    step: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Gzip,
    Deflate,
}

const GZIP: [u8; 2] = [0x1f, 0x8b];

impl Inflate {
    pub(super) fn gzip() -> Self {
        Self::new(Kind::Gzip)
    }

    pub(super) fn deflate() -> Self {
        Self::new(Kind::Deflate)
    }

    fn new(kind: Kind) -> Self {
        Self { kind, opening: Vec::new(), state: None, ended: false, another: false, step: Vec::new() }
    }

    pub(super) fn is_another(&self) -> bool {
        self.another
    }

    pub(super) fn push(&mut self, input: &[u8], out: &mut Out<'_>) -> Result<(), Halt> {
        let mut input = input;
        loop {
            if self.another {
                return out(input);
            }
            if self.state.is_none() {
                let wanted = 2 - self.opening.len().min(2);
                let taken = wanted.min(input.len());
                self.opening.extend_from_slice(&input[..taken]);
                input = &input[taken..];
                if self.opening.len() < 2 {
                    return Ok(());
                }
                self.open()?;
                let opening = std::mem::take(&mut self.opening);
                if self.another {
                    out(&opening)?;
                    continue;
                }
                self.inflate(&opening, out)?;
            }
            if input.is_empty() {
                return Ok(());
            }
            input = &input[self.inflate(input, out)?..];
        }
    }

    /// Decides what the first two bytes begin.
    fn open(&mut self) -> Result<(), Halt> {
        let opening = [self.opening[0], self.opening[1]];
        let state = match self.kind {
            Kind::Gzip if opening == GZIP => Decompress::new_gzip(15),
            Kind::Gzip if self.ended => return Err(Halt::Fault(DecodeFault::Surplus)),
            Kind::Gzip => {
                self.another = true;
                return Ok(());
            }
            Kind::Deflate if self.ended => return Err(Halt::Fault(DecodeFault::Surplus)),
            Kind::Deflate => {
                let checked = u16::from_be_bytes(opening).is_multiple_of(31);
                let zlib = opening[0] & 0x0f == 8 && opening[0] >> 4 <= 7 && checked;
                Decompress::new(zlib)
            }
        };
        self.state = Some(state);
        Ok(())
    }

    /// Answers how much of the input was used: all of it, unless the stream ended before.
    fn inflate(&mut self, input: &[u8], out: &mut Out<'_>) -> Result<usize, Halt> {
        let broken = Halt::Fault(DecodeFault::Broken);
        self.step.resize(STEP_BYTES, 0);
        let mut used = 0;
        while let Some(state) = &mut self.state {
            let (read, written) = (state.total_in(), state.total_out());
            let status = state
                .decompress(&input[used..], &mut self.step, FlushDecompress::None)
                .map_err(|_| broken)?;
            let read = usize::try_from(state.total_in() - read).unwrap_or(0);
            let written = usize::try_from(state.total_out() - written).unwrap_or(0);
            used += read;
            if status == Status::StreamEnd {
                self.state = None;
                self.ended = true;
            }
            out(&self.step[..written])?;
            if (read == 0 && written == 0) || (used == input.len() && written < self.step.len()) {
                break;
            }
        }
        // It always wants more, unless it has ended.
        if used < input.len() && self.state.is_some() { Err(broken) } else { Ok(used) }
    }

    pub(super) fn finish(&mut self, out: &mut Out<'_>) -> Result<(), Halt> {
        match (&self.state, self.ended) {
            _ if self.another => Ok(()),
            (Some(_), _) => Err(Halt::Fault(DecodeFault::Unfinished)),
            (None, true) if self.opening.is_empty() => Ok(()),
            (None, true) => Err(Halt::Fault(DecodeFault::Surplus)),
            (None, false) => {
                // Too short to be anything.
                self.another = true;
                out(&std::mem::take(&mut self.opening))
            }
        }
    }
}
