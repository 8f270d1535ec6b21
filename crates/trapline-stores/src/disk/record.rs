//! The record: one command in the log, with all that is needed to trust it.
//!
//! ```text
//!  0  u32  length of the body
//!  4  u8   kind: 1, a command
//!  5  u8   version of the body
//!  6  u16  version of the rules of the engine that did it, from 0
//!  8  u64  sequence number, from 1, without gaps over all segments
//! 16  u64  up to which sequence number everything was known to be on disk when this was written
//! 24  u64  what the command answered, as a number
//! 32  u64  checksum: xxh3 of the 32 bytes above, seeded with the xxh3 of the body, that seeded with the xxh3 of the store's number
//! 40       the body: u32, the length of the texts in it; the texts (see `texts.rs`); the message (see `message.rs`)
//! ```
//!
//! All numbers are little-endian.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::segment::Seal;
use super::texts::Extent;

/// Bytes before the body.
pub(crate) const HEADER: usize = 40;
/// Bytes before the texts.
pub(crate) const TEXTS: usize = HEADER + 4;
/// What a command's record says it is.
const COMMAND: u8 = 1;
/// The version of the bodies that are written: from the fourth on, settlements are in columns, and what a visit found is in its text alone.
const VERSION: u8 = 4;
/// The last one whose visits left no texts.
const WITHOUT_PAGES: u8 = 1;
/// The last one whose notes left none.
const WITHOUT_NOTES: u8 = 2;

/// A record being made.
pub(crate) struct Draft {
    bytes: Vec<u8>,
}

impl Draft {
    /// A record without texts; lets `put` append the message.
    pub(crate) fn new(put: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut bytes = vec![0; TEXTS];
        put(&mut bytes);
        Self { bytes }
    }

    /// A record whose texts are there, behind room for what comes before them. Lets `put` append the message, and further
    /// texts before it: it answers how many bytes of those there are.
    pub(crate) fn with_texts(mut bytes: Vec<u8>, put: impl FnOnce(&mut Vec<u8>) -> usize) -> Self {
        let texts = bytes.len() + put(&mut bytes) - TEXTS;
        let texts = u32::try_from(texts).expect("batches above the limit were refused");
        bytes[HEADER..TEXTS].copy_from_slice(&texts.to_le_bytes());
        Self { bytes }
    }

    /// What it was made in, to be used again.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// How many bytes the record has.
    pub(crate) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The whole record.
    pub(crate) fn finish(&mut self, seal: Seal, stamp: Stamp) -> &[u8] {
        let Stamp { rules, sequence, synced, answers } = stamp;
        let length = u32::try_from(self.bytes.len() - HEADER).expect("batches above the limit were refused");
        let body_hash = xxh3_64_with_seed(&self.bytes[HEADER..], seal.0);
        let header = &mut self.bytes[..HEADER];
        header[0..4].copy_from_slice(&length.to_le_bytes());
        header[4] = COMMAND;
        header[5] = VERSION;
        header[6..8].copy_from_slice(&rules.to_le_bytes());
        header[8..16].copy_from_slice(&sequence.to_le_bytes());
        header[16..24].copy_from_slice(&synced.to_le_bytes());
        header[24..32].copy_from_slice(&answers.to_le_bytes());
        let checksum = xxh3_64_with_seed(&header[..32], body_hash);
        header[32..].copy_from_slice(&checksum.to_le_bytes());
        &self.bytes
    }
}

/// What a record's header says of its body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    pub(crate) rules: u16,
    pub(crate) sequence: u64,
    pub(crate) synced: u64,
    pub(crate) answers: u64,
}

/// A record as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    /// How much of what its command has left is among its texts.
    pub(crate) extent: Extent,
    /// Those of the engine that did the command; see [`Engine::RULES`](trapline_frontier::Engine::RULES).
    pub(crate) rules: u16,
    pub(crate) sequence: u64,
    pub(crate) synced: u64,
    pub(crate) answers: u64,
    pub(crate) body: &'a [u8],
}

impl Record<'_> {
    /// How many bytes it takes in the log.
    pub(crate) fn len(&self) -> usize {
        HEADER + self.body.len()
    }

    /// Its texts and its message; None if it does not have as many texts as it says.
    pub(crate) fn parts(&self) -> Option<(&[u8], &[u8])> {
        let (length, rest) = self.body.split_first_chunk()?;
        rest.split_at_checked(u32::from_le_bytes(*length) as usize)
    }
}

/// What stands somewhere in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    Record(Record<'a>),
    /// A whole record of a kind or version that this version does not know.
    Newer,
    /// Nothing was written here.
    Blank,
    /// Something else than a whole record.
    Broken,
}

/// What stands at the beginning of these bytes, which go on to the end of the segment.
pub(crate) fn read(bytes: &[u8], seal: Seal) -> Found<'_> {
    let Some(header) = bytes.get(..HEADER) else {
        return if bytes.iter().all(|byte| *byte == 0) { Found::Blank } else { Found::Broken };
    };
    if header.iter().all(|byte| *byte == 0) {
        return Found::Blank;
    }
    let number = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
    let length = u32::from_le_bytes(header[..4].try_into().expect("four bytes")) as usize;
    let Some(body) = bytes[HEADER..].get(..length) else { return Found::Broken };
    if xxh3_64_with_seed(&header[..32], xxh3_64_with_seed(body, seal.0)) != number(32) {
        return Found::Broken;
    }
    if header[4] != COMMAND || !(WITHOUT_PAGES..=VERSION).contains(&header[5]) {
        return Found::Newer;
    }
    let extent = match header[5] {
        WITHOUT_PAGES => Extent::Requests,
        WITHOUT_NOTES => Extent::Pages,
        _ => Extent::Notes,
    };
    let rules = u16::from_le_bytes([header[6], header[7]]);
    Found::Record(Record {
        extent,
        rules,
        sequence: number(8),
        synced: number(16),
        answers: number(24),
        body,
    })
}

/// Whether these bytes may begin a record. Cheap to look at, and rarely so by chance; only then is a checksum computed. Rules
/// will not change hundreds of times.
fn is_likely(header: &[u8]) -> bool {
    let number = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
    header[4] == COMMAND && header[7] == 0 && number(8) > number(16)
}

/// The first whole record in these bytes that has this number or a later one: where it is, and its number.
pub(crate) fn find(bytes: &[u8], from: u64, seal: Seal) -> Option<(usize, u64)> {
    (0..bytes.len()).find_map(|at| {
        let header = bytes[at..].get(..HEADER)?;
        let number = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
        let likely = is_likely(header) && number(8) >= from;
        match likely.then(|| read(&bytes[at..], seal)) {
            Some(Found::Record(record)) => Some((at, record.sequence)),
            _ => None,
        }
    })
}

/// Looks for a whole record anywhere in these bytes that was written when `sequence` was already on disk. It proves that
/// what is broken before it was whole once.
pub(crate) fn proves_damage(bytes: &[u8], sequence: u64, seal: Seal) -> bool {
    let mut at = 0;
    while let Some(header) = bytes[at..].get(..HEADER) {
        let number = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
        if is_likely(header) && number(16) >= sequence && matches!(read(&bytes[at..], seal), Found::Record(_))
        {
            return true;
        }
        at += 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEAL: Seal = Seal(77);

    fn record(sequence: u64, synced: u64, body: &[u8]) -> Vec<u8> {
        let mut draft = Draft { bytes: [&[0; HEADER], body].concat() };
        draft.finish(SEAL, Stamp { rules: 0, sequence, synced, answers: 77 }).to_vec()
    }

    /// These bytes are in logs: if this test fails, the change is wrong, not the test.
    #[test]
    fn the_layout_never_changes() {
        let bytes = record(3, 2, b"body");
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(text, LAYOUT);
        let earlier = [(LAYOUT_1, Extent::Requests), (LAYOUT_2, Extent::Pages), (LAYOUT_3, Extent::Notes)];
        for (layout, extent) in earlier {
            let before: Vec<u8> = (0..layout.len() / 2)
                .map(|at| u8::from_str_radix(&layout[2 * at..][..2], 16).unwrap())
                .collect();
            let expected = Record { extent, rules: 0, sequence: 3, synced: 2, answers: 77, body: b"body" };
            assert_eq!(read(&before, SEAL), Found::Record(expected));
        }
    }

    const LAYOUT: &str =
        "0400000001040000030000000000000002000000000000004d00000000000000050b3f6361f6c478626f6479";
    /// As earlier versions wrote it.
    const LAYOUT_3: &str =
        "0400000001030000030000000000000002000000000000004d0000000000000052337c8f614a0cb3626f6479";
    const LAYOUT_2: &str =
        "0400000001020000030000000000000002000000000000004d00000000000000e7e7c5ad67ba88da626f6479";
    const LAYOUT_1: &str =
        "0400000001010000030000000000000002000000000000004d0000000000000064c95b977e153415626f6479";

    #[test]
    fn a_record_comes_back_and_nothing_else_passes_for_one() {
        let bytes = record(3, 2, b"body");
        let expected =
            Record { extent: Extent::Notes, rules: 0, sequence: 3, synced: 2, answers: 77, body: b"body" };
        assert_eq!(read(&bytes, SEAL), Found::Record(expected));
        assert_eq!(read(&[bytes.as_slice(), &[1, 2, 3]].concat(), SEAL), Found::Record(expected));
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(&bad, SEAL), Found::Broken, "bit {bit}");
        }
        for cut in 1..bytes.len() {
            assert_eq!(read(&bytes[..cut], SEAL), Found::Broken, "cut at {cut}");
        }
    }

    #[test]
    fn texts_and_message_come_back_apart() {
        let bytes = [&[0; TEXTS], b"texts".as_slice()].concat();
        let mut draft = Draft::with_texts(bytes, |bytes| {
            bytes.extend_from_slice(b" moremessage");
            5
        });
        let bytes = draft.finish(SEAL, Stamp { rules: 0, sequence: 1, synced: 0, answers: 0 }).to_vec();
        let Found::Record(record) = read(&bytes, SEAL) else { panic!("it is whole") };
        assert_eq!(record.parts(), Some((b"texts more".as_slice(), b"message".as_slice())));
        let lying = Record { body: &[9, 0, 0, 0, 1], ..record };
        assert_eq!(lying.parts(), None);
        assert_eq!(Record { body: &[1, 0], ..record }.parts(), None);
    }

    #[test]
    fn zeros_are_blank_at_any_length() {
        for length in [0, 1, HEADER - 1, HEADER, 1000] {
            assert_eq!(read(&vec![0; length], SEAL), Found::Blank);
        }
    }

    #[test]
    fn a_kind_nobody_knows_is_newer() {
        let mut bytes = record(3, 2, b"body");
        bytes[5] = VERSION + 1;
        let checksum = xxh3_64_with_seed(&bytes[..32], xxh3_64_with_seed(b"body", SEAL.0));
        bytes[32..40].copy_from_slice(&checksum.to_le_bytes());
        assert_eq!(read(&bytes, SEAL), Found::Newer);
    }

    #[test]
    fn a_later_record_proves_damage_only_if_it_knew_the_earlier_one_on_disk() {
        let mut bytes = vec![9; 123];
        bytes.extend(record(7, 5, b"later"));
        bytes.extend([0; 50]);
        assert!(proves_damage(&bytes, 4, SEAL) && proves_damage(&bytes, 5, SEAL));
        assert!(!proves_damage(&bytes, 6, SEAL));
        bytes[130] ^= 1;
        assert!(!proves_damage(&bytes, 4, SEAL));
    }

    /// A page may have anything in it, but it does not know the store's number.
    #[test]
    fn a_record_of_another_store_is_none() {
        let bytes = record(7, 5, b"forged");
        let other = Seal::of(3);
        assert_eq!(read(&bytes, other), Found::Broken);
        assert_eq!(find(&bytes, 1, other), None);
        assert!(!proves_damage(&bytes, 4, other));
        assert_eq!(find(&bytes, 1, SEAL), Some((0, 7)));
    }
}
