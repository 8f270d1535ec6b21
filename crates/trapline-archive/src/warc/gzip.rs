//! Gzip members, one a record. Compressors are large, so that they are used again.

use std::sync::{Mutex, PoisonError};

use flate2::{Compress, Compression, FlushCompress, Status};
use trapline_crawl::ports::ArchiveError;

/// What is no longer than this hardly becomes shorter by trying hard: the codes that would make it so are as long as what they save.
const SHORT_BYTES: usize = 1536;
const QUICK: Compression = Compression::new(1);

/// What zlib takes at most.
const WINDOW_BITS: u8 = 15;

/// Compressors of one level, and quick ones for what is short.
pub(super) struct Gzips {
    usual: Idle,
    quick: Idle,
}

/// Compressors that nobody uses.
struct Idle {
    level: Compression,
    idle: Mutex<Vec<Compress>>,
}

impl Gzips {
    pub(super) fn new(level: u32) -> Self {
        let of = |level| Idle { level, idle: Mutex::default() };
        Self { usual: of(Compression::new(level.clamp(1, 9))), quick: of(QUICK) }
    }

    /// Appends a member with these pieces in it.
    pub(super) fn member(&self, pieces: &[&[u8]], into: &mut Vec<u8>) -> Result<(), ArchiveError> {
        let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        let idle = if bytes <= SHORT_BYTES { &self.quick } else { &self.usual };
        let mut gzip = idle.take();
        let written = write(&mut gzip, pieces, into);
        idle.give_back(gzip);
        written.map_err(|error| ArchiveError(format!("cannot compress a record: {error}")))
    }
}

impl Idle {
    fn take(&self) -> Compress {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.unwrap_or_else(|| Compress::new_gzip(self.level, WINDOW_BITS))
    }

    fn give_back(&self, mut gzip: Compress) {
        gzip.reset();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(gzip);
    }
}

fn write(gzip: &mut Compress, pieces: &[&[u8]], into: &mut Vec<u8>) -> Result<(), flate2::CompressError> {
    into.reserve(pieces.iter().map(|piece| piece.len()).sum::<usize>() / 3 + 64);
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            let before = gzip.total_in();
            gzip.compress_vec(rest, into, FlushCompress::None)?;
            rest = &rest[(gzip.total_in() - before) as usize..];
            make_room(into);
        }
    }
    while gzip.compress_vec(&[], into, FlushCompress::Finish)? != Status::StreamEnd {
        make_room(into);
    }
    Ok(())
}

fn make_room(into: &mut Vec<u8>) {
    if into.len() == into.capacity() {
        into.reserve((into.len() / 2).max(4096));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn members_can_be_read_one_by_one() {
        let gzips = Gzips::new(6);
        let mut all = Vec::new();
        // What cannot be made shorter, nothing at all, and what can.
        let noise: Vec<u8> =
            (0..300_000_u64).map(|n| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect();
        let long = b"abc".repeat(100_000);
        let mut ends = Vec::new();
        for pieces in [&[noise.as_slice(), b"", b"end"][..], &[], &[&long], &[b"x"]] {
            gzips.member(pieces, &mut all).unwrap();
            ends.push((all.len(), pieces.concat()));
        }
        let mut begin = 0;
        for (end, content) in ends {
            let mut read = Vec::new();
            flate2::read::GzDecoder::new(&all[begin..end]).read_to_end(&mut read).unwrap();
            assert_eq!(read, content);
            begin = end;
        }
        let idle = [&gzips.usual, &gzips.quick].map(|idle| idle.idle.lock().unwrap().len());
        assert_eq!(idle, [1, 1], "one of each was enough for all of them");
    }
}
