//! Zstandard, block by block.
//!
//! The decoder below would take all blocks that it is given before it lets go of anything: a few kilobytes could become
//! gigabytes in one step. So frames are taken apart here, and it sees one block at a time, of at most 128 KiB.

use ruzstd::decoding::FrameDecoder;
use ruzstd::decoding::errors::FrameDecoderError;

use super::{DecodeFault, Halt, Out, STEP_BYTES};

const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The block that ends a frame without adding anything to it.
const LAST_EMPTY_BLOCK: [u8; 3] = [1, 0, 0];

pub(super) struct Zstd {
    decoder: FrameDecoder,
    /// The piece that is being collected.
    piece: Vec<u8>,
    stage: Stage,
    another: bool,
    /// A whole frame has ended.
    ended: bool,
    step: Vec<u8>,
}

/// What is being collected.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The first bytes of a frame.
    Opening,
    /// A frame's header of so many bytes.
    Header(usize),
    /// A frame to be skipped: so many bytes are left of it.
    Skipping(u64),
    /// A block's header.
    BlockHeader { checksum: bool },
    /// A block, with its header, and the checksum behind it if it is the last: so many bytes.
    Block { bytes: usize, last: bool, checksum: bool },
}

impl Zstd {
    pub(super) fn new(window_bytes_max: u64) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(window_bytes_max);
        Self {
            decoder,
            piece: Vec::new(),
            stage: Stage::Opening,
            another: false,
            ended: false,
            step: Vec::new(),
        }
    }

    pub(super) fn is_another(&self) -> bool {
        self.another
    }

    pub(super) fn push(&mut self, input: &[u8], out: &mut Out<'_>) -> Result<(), Halt> {
        let mut input = input;
        while !input.is_empty() {
            if self.another {
                return out(input);
            }
            if let Stage::Skipping(left) = self.stage {
                let skipped = left.min(input.len() as u64);
                input = &input[usize::try_from(skipped).unwrap_or(input.len())..];
                self.stage = if left == skipped { Stage::Opening } else { Stage::Skipping(left - skipped) };
                continue;
            }
            let wanted = match self.stage {
                Stage::Opening => 5,
                Stage::Header(bytes) => bytes,
                Stage::Skipping(_) => 0,
                Stage::BlockHeader { .. } => 3,
                Stage::Block { bytes, .. } => bytes,
            };
            let taken = wanted.saturating_sub(self.piece.len()).min(input.len());
            self.piece.extend_from_slice(&input[..taken]);
            input = &input[taken..];
            if self.stage == Stage::Opening {
                self.look_at_opening()?;
                if self.another {
                    out(&std::mem::take(&mut self.piece))?;
                    continue;
                }
            }
            if self.piece.len() >= wanted {
                self.take_piece(out)?;
            }
        }
        Ok(())
    }

    /// Whether this is a frame at all, as soon as it can be told.
    fn look_at_opening(&mut self) -> Result<(), Halt> {
        let begins_like = |magic: &[u8]| self.piece.iter().zip(magic).all(|(byte, magic)| byte == magic);
        let skippable = self.piece[0] & 0xf0 == 0x50
            && self.piece[1..].iter().zip(&[0x2a, 0x4d, 0x18]).all(|(byte, magic)| byte == magic);
        if begins_like(&MAGIC) || skippable {
            return Ok(());
        }
        if self.ended {
            return Err(Halt::Fault(DecodeFault::Surplus));
        }
        self.another = true;
        Ok(())
    }

    fn take_piece(&mut self, out: &mut Out<'_>) -> Result<(), Halt> {
        match self.stage {
            Stage::Opening if self.piece.starts_with(&MAGIC) => {
                self.stage = Stage::Header(header_bytes(self.piece[4]));
            }
            // Of a frame to be skipped the length comes next, in four bytes, of which one was taken.
            Stage::Opening => self.stage = Stage::Header(8),
            Stage::Header(_) if !self.piece.starts_with(&MAGIC) => {
                let bytes = [self.piece[4], self.piece[5], self.piece[6], self.piece[7]];
                self.ended = true;
                self.begin(match u32::from_le_bytes(bytes) {
                    0 => Stage::Opening,
                    bytes => Stage::Skipping(bytes.into()),
                });
            }
            Stage::Header(_) => {
                let checksum = self.piece[4] & 4 != 0;
                self.decoder.reset(self.piece.as_slice()).map_err(|error| match error {
                    FrameDecoderError::WindowSizeTooBig { .. } => Halt::Fault(DecodeFault::Window),
                    _ => Halt::Fault(DecodeFault::Broken),
                })?;
                self.ended = false;
                self.begin(Stage::BlockHeader { checksum });
            }
            Stage::BlockHeader { checksum } => {
                let header = u32::from_le_bytes([self.piece[0], self.piece[1], self.piece[2], 0]);
                let (last, kind, size) = (header & 1 != 0, header >> 1 & 3, (header >> 3) as usize);
                // One byte, many times over.
                let content = if kind == 1 { 1 } else { size };
                let bytes = 3 + content + if last && checksum { 4 } else { 0 };
                self.stage = Stage::Block { bytes, last, checksum };
                if self.piece.len() >= bytes {
                    self.take_block(out)?;
                }
            }
            Stage::Block { .. } => self.take_block(out)?,
            Stage::Skipping(_) => {}
        }
        Ok(())
    }

    fn take_block(&mut self, out: &mut Out<'_>) -> Result<(), Halt> {
        let Stage::Block { last, checksum, .. } = self.stage else { return Ok(()) };
        let piece = std::mem::take(&mut self.piece);
        self.drain(&piece, out)?;
        self.ended = last;
        self.begin(if last { Stage::Opening } else { Stage::BlockHeader { checksum } });
        // Its room is used again for the next.
        self.piece = piece;
        self.piece.clear();
        Ok(())
    }

    /// Decodes one block, and puts out what is not needed for the next ones.
    fn drain(&mut self, block: &[u8], out: &mut Out<'_>) -> Result<(), Halt> {
        let broken = Halt::Fault(DecodeFault::Broken);
        self.step.resize(STEP_BYTES, 0);
        let mut input = block;
        loop {
            let (_, written) = self.decoder.decode_from_to(input, &mut self.step).map_err(|_| broken)?;
            input = &[];
            if written == 0 {
                return Ok(());
            }
            out(&self.step[..written])?;
        }
    }

    fn begin(&mut self, stage: Stage) {
        self.stage = stage;
        self.piece.clear();
    }

    pub(super) fn finish(&mut self, out: &mut Out<'_>) -> Result<(), Halt> {
        let unfinished = Err(Halt::Fault(DecodeFault::Unfinished));
        match self.stage {
            _ if self.another => Ok(()),
            Stage::Opening if self.ended && self.piece.is_empty() => Ok(()),
            Stage::Opening | Stage::Header(_) | Stage::Skipping(_) => unfinished,
            Stage::BlockHeader { checksum } | Stage::Block { checksum, .. } => {
                // What was decoded is still in the window. It comes out once the frame has ended, so it is ended.
                let mut last = LAST_EMPTY_BLOCK.to_vec();
                last.extend_from_slice(if checksum { &[0; 4] } else { &[] });
                self.drain(&last, out)?;
                unfinished
            }
        }
    }
}

/// How long a frame's header is, by its descriptor.
fn header_bytes(descriptor: u8) -> usize {
    let single_segment = descriptor & 0x20 != 0;
    let window = usize::from(!single_segment);
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let content_size = match descriptor >> 6 {
        0 => usize::from(single_segment),
        1 => 2,
        2 => 4,
        _ => 8,
    };
    5 + window + dictionary + content_size
}
