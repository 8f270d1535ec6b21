//! Brotli. Its window has at most 16 MiB: the large ones of files are not for HTTP.

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};

use super::{DecodeFault, Halt, Out, STEP_BYTES};

type State = BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>;

pub(super) struct Brotli {
    state: Box<State>,
    ended: bool,
    step: Vec<u8>,
}

impl Default for Brotli {
    fn default() -> Self {
        let alloc = StandardAlloc::default;
        Self {
            state: Box::new(BrotliState::new_strict(alloc(), alloc(), alloc())),
            ended: false,
            step: Vec::new(),
        }
    }
}

impl Brotli {
    pub(super) fn push(&mut self, input: &[u8], out: &mut Out<'_>) -> Result<(), Halt> {
        if self.ended {
            return if input.is_empty() { Ok(()) } else { Err(Halt::Fault(DecodeFault::Surplus)) };
        }
        self.step.resize(STEP_BYTES, 0);
        let (mut available_in, mut input_at) = (input.len(), 0);
        loop {
            let (mut room, mut written, mut total) = (self.step.len(), 0, 0);
            let result = BrotliDecompressStream(
                &mut available_in,
                &mut input_at,
                input,
                &mut room,
                &mut written,
                &mut self.step,
                &mut total,
                &mut self.state,
            );
            out(&self.step[..written])?;
            match result {
                BrotliResult::NeedsMoreOutput => {}
                BrotliResult::NeedsMoreInput => return Ok(()),
                BrotliResult::ResultFailure => return Err(Halt::Fault(DecodeFault::Broken)),
                BrotliResult::ResultSuccess => {
                    self.ended = true;
                    let surplus = available_in > 0;
                    return if surplus { Err(Halt::Fault(DecodeFault::Surplus)) } else { Ok(()) };
                }
            }
        }
    }

    pub(super) fn finish(&mut self) -> Result<(), Halt> {
        if self.ended { Ok(()) } else { Err(Halt::Fault(DecodeFault::Unfinished)) }
    }
}
