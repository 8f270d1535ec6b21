//! An index of one path, for files that ask about thousands of segments.
//!
//! It knows the first and the last place of all two and three bytes that stand together in the path, which rules out most segments and
//! most places at once, and for each byte the set of its places as bits, so that 512 places are tried together: a segment begins
//! where the set of its first byte, that of its second moved by one, and so on, all have a bit. What a search costs hardly
//! depends on how the path was made.

/// Words of places that are tried together.
const BLOCK: usize = 8;

/// Bytes of a segment that are compared as bits. What is longer is compared as text at the places that remain.
const BITS_MAX: usize = 64;

/// Places that are so few that they are compared one by one.
const NEAR: usize = 4;

/// Empty words behind the places of a byte: what a block, moved by as many bytes as are compared, can reach.
const PADDING: usize = BLOCK + BITS_MAX / 64 + 1;

/// Two or three bytes, and where they stand.
#[derive(Clone, Copy, Default)]
struct Gram {
    /// Their number, after them in the number of bits; 0 where there is none.
    key: u32,
    first: u16,
    last: u16,
}

pub(super) struct Index<'a> {
    path: &'a [u8],
    /// Which row of places belongs to a byte; the first one is empty and for those that the path does not have.
    row_of: [u16; 256],
    /// Places as bits, one row a byte.
    rows: Vec<u64>,
    /// Words a row.
    width: usize,
    /// A hash table, half empty at least, where the next place is tried if one is taken.
    grams: Vec<Gram>,
    shift: u32,
}

impl<'a> Index<'a> {
    /// None if the path is too long for its places to be counted in 16 bits.
    pub(super) fn new(path: &'a [u8]) -> Option<Self> {
        let len = u16::try_from(path.len()).ok()?;
        let width = usize::from(len) / 64 + 1 + PADDING;
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
        let bits = (usize::from(len) * 4).next_power_of_two().ilog2().max(4);
        let grams = vec![Gram::default(); 1 << bits];
        let mut index = Self { path, row_of, rows, width, grams, shift: 32 - bits };
        for place in 0..len {
            let rest = &path[usize::from(place)..];
            for length in 2..=rest.len().min(3) {
                let key = key(&rest[..length]);
                let slot = index.slot(key);
                let gram = &mut index.grams[slot];
                if gram.key == 0 {
                    *gram = Gram { key, first: place, last: place };
                }
                gram.last = place;
            }
        }
        Some(index)
    }

    /// Where a gram is, or would be.
    fn slot(&self, key: u32) -> usize {
        let mut slot = (key.wrapping_mul(0x9e37_79b1) >> self.shift) as usize;
        while self.grams[slot].key != 0 && self.grams[slot].key != key {
            slot = (slot + 1) & (self.grams.len() - 1);
        }
        slot
    }

    /// The first and the last place of two or three bytes.
    fn places(&self, gram: &[u8]) -> Option<(usize, usize)> {
        let key = key(gram);
        let found = self.grams[self.slot(key)];
        (found.key == key).then_some((found.first.into(), found.last.into()))
    }

    /// Places between which a segment of at least two bytes begins, if anywhere.
    fn span(&self, segment: &[u8]) -> Option<(usize, usize)> {
        let (mut first, mut last) = self.places(&segment[..segment.len().min(3)])?;
        if let Some(before) = segment.len().checked_sub(3).filter(|before| *before > 0) {
            let (end_first, end_last) = self.places(&segment[before..])?;
            first = first.max(end_first.saturating_sub(before));
            last = last.min(end_last.checked_sub(before)?);
        }
        Some((first, last))
    }

    /// The first place at or after `from` where the segment stands, ending at or before `end`. Adds to the cost, which is in
    /// nanoseconds, very roughly.
    pub(super) fn find(&self, segment: &[u8], from: usize, end: usize, cost: &mut u32) -> Option<usize> {
        *cost += 1;
        let latest = end.checked_sub(segment.len()).filter(|latest| from <= *latest)?;
        match segment {
            [] => return Some(from),
            [byte] => return self.find_byte(*byte, from, cost).filter(|at| *at <= latest),
            _ => *cost += 12,
        }
        let (first, last) = self.span(segment)?;
        let last = last.min(latest);
        if from <= first && segment.len() <= 3 {
            return (first <= last).then_some(first);
        }
        let first = first.max(from);
        if last < first + NEAR {
            // A few places are compared sooner than prepared for.
            *cost = cost.saturating_add(8 + u32::try_from(segment.len() / 16).unwrap_or(u32::MAX));
            return (first..=last).find(|at| self.path[*at..].starts_with(segment));
        }
        self.find_between(segment, first, last, cost)
    }

    fn find_byte(&self, byte: u8, from: usize, cost: &mut u32) -> Option<usize> {
        *cost += 6;
        let row = self.row(byte);
        let mut set = row[from / 64] & !0 << (from % 64);
        for (word, next) in (from / 64..).zip(&row[from / 64 + 1..]) {
            if set != 0 {
                return Some(word * 64 + set.trailing_zeros() as usize);
            }
            *cost += 1;
            set = *next;
        }
        None
    }

    fn find_between(&self, segment: &[u8], first: usize, last: usize, cost: &mut u32) -> Option<usize> {
        let (compared, rest) = segment.split_at(segment.len().min(BITS_MAX));
        let mut floor = !0 << (first % 64);
        for start in (first / 64..=last / 64).step_by(BLOCK) {
            *cost += 15;
            let mut block = [!0; BLOCK];
            block[0] = floor;
            floor = !0;
            for (offset, byte) in compared.iter().enumerate() {
                *cost += 3;
                if !narrow(&mut block, self.row(*byte), start, offset) {
                    break;
                }
            }
            for (word, mut set) in block.into_iter().enumerate() {
                while set != 0 {
                    let at = (start + word) * 64 + set.trailing_zeros() as usize;
                    if at > last {
                        return None;
                    }
                    if self.path[at + compared.len()..].starts_with(rest) {
                        return Some(at);
                    }
                    *cost = cost.saturating_add(6 + u32::try_from(rest.len() / 16).unwrap_or(u32::MAX));
                    set &= set - 1;
                }
            }
        }
        None
    }

    fn row(&self, byte: u8) -> &[u64] {
        let start = usize::from(self.row_of[usize::from(byte)]) * self.width;
        &self.rows[start..start + self.width]
    }
}

fn key(gram: &[u8]) -> u32 {
    gram.iter().fold(gram.len() as u32, |key, byte| key << 8 | u32::from(*byte))
}

/// Keeps the places of a block for which the byte of this row stands `offset` behind. Whether any are left.
fn narrow(block: &mut [u64; BLOCK], row: &[u64], start: usize, offset: usize) -> bool {
    let start = start + offset / 64;
    let by = offset % 64;
    let (Some(here), Some(next)) = (
        row.get(start..).and_then(<[u64]>::first_chunk::<BLOCK>),
        row.get(start + 1..).and_then(<[u64]>::first_chunk::<BLOCK>),
    ) else {
        // There is enough padding for this not to be.
        return false;
    };
    let mut any = 0;
    for word in 0..BLOCK {
        // Moved by one first, because moving by 64 at once is nothing that numbers do.
        block[word] &= here[word] >> by | next[word] << 1 << (63 - by);
        any |= block[word];
    }
    any != 0
}
