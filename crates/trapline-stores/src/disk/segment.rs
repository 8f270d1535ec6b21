//! The segment: a file of the log, with a header that says which log and which part of it.
//!
//! ```text
//!  0  8 bytes  "trapline"
//!  8  u32      version of the format
//! 12  u32      length of this header: records begin there
//! 16  u128     number of the store, drawn when it was made
//! 32  u64      number of the segment, from 1
//! 40  u64      sequence number of its first record
//! 48  u64      1 if the records before it cannot be replayed, but only their texts read; else 0
//! 56  u64      xxh3 of all above
//! ```

use xxhash_rust::xxh3::xxh3_64;

/// Bytes before the first record.
pub(crate) const HEADER: u64 = 64;
/// The version of the format that is written.
pub(crate) const FORMAT: u32 = 1;

const MAGIC: &[u8; 8] = b"trapline";
const ENDING: &str = ".segment";

/// What a segment says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) store: u128,
    pub(crate) number: u64,
    pub(crate) first: u64,
    /// Whether replaying cannot begin before it, because what came before it is not all there: opening needs a snapshot
    /// that was taken later.
    pub(crate) is_origin: bool,
}

/// Why a header cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadHeader {
    /// All of it is zeros, or it is not even long enough: it was being made.
    Unfinished,
    /// A format to come.
    Newer(u32),
    /// Something else.
    Broken,
}

/// What checksums of a store's records are seeded with. Nobody outside knows it, so no page can have bytes in it that pass for a
/// record of this store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seal(pub(crate) u64);

impl Seal {
    pub(crate) fn of(store: u128) -> Self {
        Self(xxh3_64(&store.to_le_bytes()))
    }
}

impl Segment {
    pub(crate) fn seal(&self) -> Seal {
        Seal::of(self.store)
    }

    /// The name of its file.
    pub(crate) fn name(number: u64) -> String {
        format!("{number:010}{ENDING}")
    }

    /// The number in a file's name; None if it is no segment's.
    pub(crate) fn number_of(name: &str) -> Option<u64> {
        let number = name.strip_suffix(ENDING)?.parse().ok()?;
        (Self::name(number) == name).then_some(number)
    }

    pub(crate) fn header(&self) -> [u8; HEADER as usize] {
        let mut header = [0; HEADER as usize];
        header[..8].copy_from_slice(MAGIC);
        header[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        header[12..16].copy_from_slice(&(HEADER as u32).to_le_bytes());
        header[16..32].copy_from_slice(&self.store.to_le_bytes());
        header[32..40].copy_from_slice(&self.number.to_le_bytes());
        header[40..48].copy_from_slice(&self.first.to_le_bytes());
        header[48..56].copy_from_slice(&u64::from(self.is_origin).to_le_bytes());
        let checksum = xxh3_64(&header[..56]);
        header[56..64].copy_from_slice(&checksum.to_le_bytes());
        header
    }

    /// Reads a header from the beginning of a file's bytes.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, BadHeader> {
        if bytes.iter().all(|byte| *byte == 0) {
            return Err(BadHeader::Unfinished);
        }
        let Some(header) = bytes.get(..HEADER as usize) else { return Err(BadHeader::Broken) };
        let number = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
        let format = number(8) as u32;
        // Before the checksum, which a newer format may keep elsewhere.
        if header[..8] == *MAGIC && format > FORMAT {
            return Err(BadHeader::Newer(format));
        }
        if header[..8] != *MAGIC || format != FORMAT || xxh3_64(&header[..56]) != number(56) {
            return Err(BadHeader::Broken);
        }
        let store = u128::from_le_bytes(header[16..32].try_into().expect("sixteen bytes"));
        Ok(Self { store, number: number(32), first: number(40), is_origin: number(48) != 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_and_others_are_told_apart() {
        let segment = Segment { store: u128::MAX / 3, number: 4, first: 55, is_origin: true };
        let header = segment.header();
        assert_eq!(Segment::read(&header), Ok(segment));
        for bit in 0..64 * 8 {
            let mut bad = header;
            bad[bit / 8] ^= 1 << (bit % 8);
            let expected = if (64..96).contains(&bit) && bit != 64 {
                BadHeader::Newer(FORMAT ^ 1 << (bit - 64))
            } else {
                BadHeader::Broken
            };
            assert_eq!(Segment::read(&bad), Err(expected), "bit {bit}");
        }
        assert_eq!(Segment::read(&[0; 64]), Err(BadHeader::Unfinished));
        assert_eq!(Segment::read(&[]), Err(BadHeader::Unfinished));
        assert_eq!(Segment::read(&header[..63]), Err(BadHeader::Broken));
    }

    #[test]
    fn files_are_named_by_number() {
        assert_eq!(Segment::name(7), "0000000007.segment");
        assert_eq!(Segment::number_of("0000000007.segment"), Some(7));
        for other in ["7.segment", "0000000007.segment~", "lock", "+000000007.segment"] {
            assert_eq!(Segment::number_of(other), None, "{other}");
        }
    }
}
