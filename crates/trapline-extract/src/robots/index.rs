//! An index of one path, for files that ask about thousands of segments.
//!
//! It knows the first and the last place of every one, two and three bytes that stand in the path, which rules out most
//! segments and most places at once, and for each byte the set of its places as bits, so that 64 places are tried at a time:
//! a segment begins where the set of its first byte, that of its second moved by one, and so on, all have a bit.
//! What a search costs does not depend on how the path was made.

/// Bytes of a segment that are compared as bits. What is longer is compared as text at the places that remain.
const BITS_MAX: usize = 64;

/// The places of what is not there.
const NOWHERE: Places = Places { first: u16::MAX, last: 0 };

#[derive(Clone, Copy)]
struct Places {
    first: u16,
    last: u16,
}

pub(super) struct Index<'a> {
    path: &'a [u8],
    /// Which row of sets belongs to a byte; 0 for those that the path does not have.
    row_of: [u16; 256],
    /// The sets of places, one row a byte, with an empty word behind each.
    rows: Vec<u64>,
    /// Words a row.
    width: usize,
    /// By hash; those that share one share their places, which then reach too far, but never too short.
    grams: Vec<Places>,
    shift: u32,
}

impl<'a> Index<'a> {
    /// None if the path is too long for its places to be counted in 16 bits.
    pub(super) fn new(path: &'a [u8]) -> Option<Self> {
        let len = u16::try_from(path.len()).ok().filter(|len| *len < u16::MAX)?;
        let width = usize::from(len) / 64 + 2;
        let mut row_of = [0; 256];
        let mut rows = vec![0_u64; width];
        for (place, byte) in path.iter().enumerate() {
            let row = &mut row_of[usize::from(*byte)];
            if *row == 0 {
                *row = (rows.len() / width) as u16;
                rows.resize(rows.len() + width, 0);
            }
            rows[usize::from(*row) * width + place / 64] |= 1 << (place % 64);
        }
        let bits = (usize::from(len) * 8).next_power_of_two().ilog2().clamp(8, 16);
        let mut index =
            Self { path, row_of, rows, width, grams: vec![NOWHERE; 1 << bits], shift: 32 - bits };
        for place in 0..len {
            let rest = &path[usize::from(place)..];
            for length in 1..=rest.len().min(3) {
                let slot = index.slot(&rest[..length]);
                let places = &mut index.grams[slot];
                places.first = places.first.min(place);
                places.last = place;
            }
        }
        Some(index)
    }

    /// Where one, two or three bytes are remembered.
    fn slot(&self, gram: &[u8]) -> usize {
        let number = match gram {
            [a] => u32::from(*a),
            [a, b] => 1 << 24 | u32::from(*a) << 8 | u32::from(*b),
            [a, b, c, ..] => 2 << 24 | u32::from(*a) << 16 | u32::from(*b) << 8 | u32::from(*c),
            [] => 3 << 24,
        };
        (number.wrapping_mul(0x9e37_79b1) >> self.shift) as usize
    }

    /// Places between which the segment begins, if anywhere.
    fn span(&self, segment: &[u8]) -> (usize, usize) {
        let Places { first, last } = self.grams[self.slot(&segment[..segment.len().min(3)])];
        let (mut first, mut last) = (usize::from(first), usize::from(last));
        if let Some(before) = segment.len().checked_sub(3).filter(|before| *before > 0) {
            let end = self.grams[self.slot(&segment[before..])];
            if usize::from(end.last) < before {
                return (1, 0);
            }
            first = first.max(usize::from(end.first).saturating_sub(before));
            last = last.min(usize::from(end.last) - before);
        }
        (first, last)
    }

    /// The first place at or after `from` where the segment stands, ending at or before `end`. Adds to the cost.
    pub(super) fn find(&self, segment: &[u8], from: usize, end: usize, cost: &mut u32) -> Option<usize> {
        *cost += 5;
        let Some(latest) = end.checked_sub(segment.len()) else { return None };
        if segment.is_empty() {
            return (from <= end).then_some(from);
        }
        let (first, last) = self.span(segment);
        let (first, last) = (first.max(from), last.min(latest));
        if first > last {
            return None;
        }
        let (compared, rest) = segment.split_at(segment.len().min(BITS_MAX));
        let mut floor = !0 << (first % 64);
        for word in first / 64..=last / 64 {
            let mut set = floor;
            floor = !0;
            for (offset, byte) in compared.iter().enumerate() {
                *cost += 1;
                set &= self.moved(*byte, word, offset);
                if set == 0 {
                    break;
                }
            }
            while set != 0 {
                let at = word * 64 + set.trailing_zeros() as usize;
                if at > last {
                    return None;
                }
                if rest.is_empty() || self.path[at + BITS_MAX..].starts_with(rest) {
                    return Some(at);
                }
                *cost = cost.saturating_add(4 + u32::try_from(rest.len() / 16).unwrap_or(u32::MAX));
                set &= set - 1;
            }
        }
        None
    }

    /// Where the byte stands `offset` after the 64 places of a word.
    fn moved(&self, byte: u8, word: usize, offset: usize) -> u64 {
        let row = usize::from(self.row_of[usize::from(byte)]) * self.width;
        let word = word + offset / 64;
        let here = self.rows.get(row + word).copied().unwrap_or(0);
        match offset % 64 {
            0 => here,
            by => {
                // A row ends with an empty word, so that no other byte's places come in.
                let next = self.rows.get(row + word + 1).copied().unwrap_or(0);
                here >> by | next << (64 - by)
            }
        }
    }
}
