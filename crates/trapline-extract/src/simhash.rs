//! What a page says, in 64 bits: pages whose visible text is nearly the same differ in few of them (SimHash, after
//! Charikar). Not an identity: two pages with the same 64 bits need not be the same.

/// How many words in a row are one shingle.
const SHINGLE_WORDS: usize = 3;

/// The 64 bits.
///
/// ```
/// use trapline_extract::SimHash;
///
/// let page = SimHash::of_text("Bees visit many flowers in a good order, and come back at the right time.").unwrap();
/// let same = SimHash::of_text("bees visit many flowers in a good order and come back at the right time").unwrap();
/// let other = SimHash::of_text("The price of copper fell sharply on Tuesday after a report on stocks.").unwrap();
/// assert_eq!(page.distance(same), 0);
/// assert!(page.distance(other) > 10);
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SimHash(pub u64);

impl SimHash {
    /// In how many bits two of them differ. Up to three is a usual threshold for near duplicates.
    pub fn distance(self, other: Self) -> u32 {
        (self.0 ^ other.0).count_ones()
    }

    /// Of a text without markup. None if it has no word.
    pub fn of_text(text: &str) -> Option<Self> {
        let mut words = Words::new(u64::MAX);
        words.text(text);
        words.finish()
    }
}

/// Takes text in any number of pieces and finds its words, wherever the pieces are cut.
#[derive(Clone, Debug)]
pub(crate) struct Words {
    counts: BitCounts,
    /// The hashes of the last words, the latest last.
    recent: [u64; SHINGLE_WORDS],
    words: u64,
    word: Word,
    /// How many more bytes of text count.
    room_bytes: u64,
    /// How many counted.
    pub(crate) text_bytes: u64,
    pub(crate) is_cut: bool,
}

impl Words {
    /// Only the first so many bytes count.
    pub(crate) fn new(text_bytes_max: u64) -> Self {
        Self {
            counts: BitCounts::default(),
            recent: [0; SHINGLE_WORDS],
            words: 0,
            word: Word::EMPTY,
            room_bytes: text_bytes_max,
            text_bytes: 0,
            is_cut: false,
        }
    }

    /// More text, decoded.
    pub(crate) fn text(&mut self, mut text: &str) {
        if text.len() as u64 > self.room_bytes {
            if self.room_bytes == 0 {
                self.is_cut = true;
                return;
            }
            text = &text[..text.floor_char_boundary(self.room_bytes as usize)];
            self.is_cut = true;
            self.room_bytes = 0;
        } else {
            self.room_bytes -= text.len() as u64;
        }
        self.text_bytes += text.len() as u64;
        while !text.is_empty() {
            let ascii =
                if text.is_ascii() { text.len() } else { text.bytes().take_while(u8::is_ascii).count() };
            self.ascii(&text.as_bytes()[..ascii]);
            text = &text[ascii..];
            while let Some(character) = text.chars().next().filter(|character| !character.is_ascii()) {
                self.character(character);
                text = &text[character.len_utf8()..];
            }
        }
    }

    /// More text, all of it ASCII. Its words are found sixty-four bytes at a time: deciding byte by byte, or word by word, takes the
    /// processor by surprise at the end of each.
    fn ascii(&mut self, mut bytes: &[u8]) {
        if !self.word.is_empty() {
            let rest = bytes.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
            self.word.add_letters(&bytes[..rest]);
            bytes = &bytes[rest..];
            if bytes.is_empty() {
                return;
            }
            self.end_word();
        }
        let (mut start, mut is_open) = (0, 0);
        for (place, block) in bytes.chunks(64).enumerate() {
            let (place, letters) = (place * 64, letters(block));
            let before = letters << 1 | is_open;
            is_open = letters >> 63;
            let (mut starts, mut ends) = (letters & !before, before & !letters);
            let mut next_start = || {
                let start = place + starts.trailing_zeros() as usize;
                starts &= starts.wrapping_sub(1);
                start
            };
            if before & 1 == 0 {
                start = next_start();
            }
            if block.len() < 64 {
                // A word that goes up to the end may go on in the next piece.
                ends &= (1 << block.len()) - 1;
            }
            while ends != 0 {
                let end = place + ends.trailing_zeros() as usize;
                self.count_word(Word::hash_at(bytes, start, end));
                ends &= ends - 1;
                start = next_start();
            }
        }
        if bytes.last().is_some_and(u8::is_ascii_alphanumeric) {
            self.word.add_letters(&bytes[start..]);
        }
    }

    fn push(&mut self, character: char) {
        let mut bytes = [0; 8];
        let count = character.encode_utf8(&mut bytes).len();
        self.word.add(u64::from_le_bytes(bytes), count);
    }

    #[cold]
    fn character(&mut self, character: char) {
        // Scripts that put no spaces between words: each character stands for one.
        let stands_alone = matches!(character,
            '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
            | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}');
        if stands_alone {
            self.end_word();
            self.push(character);
            self.end_word();
        } else if character.is_alphanumeric() {
            character.to_lowercase().for_each(|lower| self.push(lower));
        } else if character != '\u{ad}' {
            self.end_word();
        }
    }

    /// Something that parts words, such as the end of a paragraph.
    #[inline]
    pub(crate) fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let hash = std::mem::replace(&mut self.word, Word::EMPTY).hash();
        self.count_word(hash);
    }

    #[inline]
    fn count_word(&mut self, hash: u64) {
        self.recent = [self.recent[1], self.recent[2], hash];
        self.words += 1;
        if self.words >= SHINGLE_WORDS as u64 {
            self.shingle();
        }
    }

    fn shingle(&mut self) {
        // The words' hashes are good in all their bits; what is left to do is to mind their order.
        let [first, second, third] = self.recent;
        let mixed = first
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(second)
            .rotate_left(29)
            .wrapping_mul(0xbf58_476d_1ce4_e5b9)
            .wrapping_add(third)
            .wrapping_mul(0x94d0_49bb_1331_11eb);
        self.counts.add(mixed ^ mixed >> 32);
    }

    pub(crate) fn finish(mut self) -> Option<SimHash> {
        self.end_word();
        if self.words == 0 {
            return None;
        }
        if self.words < SHINGLE_WORDS as u64 {
            self.shingle();
        }
        Some(SimHash(self.counts.majority()))
    }
}

/// One in each byte.
const EACH: u64 = 0x0101_0101_0101_0101;
/// The bit that makes small letters of great ones, and leaves digits as they are.
const LOWER: u64 = 0x20 * EACH;

/// Which of up to sixty-four bytes of ASCII are letters or digits, the first one in the lowest bit.
#[inline]
fn letters(block: &[u8]) -> u64 {
    let eights = block.chunks(8).map(|eight| letters_of_eight(eight_bytes(eight)));
    eights.enumerate().fold(0, |letters, (place, eight)| letters | eight << (8 * place))
}

/// Which of eight bytes are, likewise: eight bits.
#[inline]
fn letters_of_eight(text: u64) -> u64 {
    // The highest bit of each byte tells whether it is at least that much.
    let at_least = |bytes: u64, least: u8| bytes + u64::from(0x80 - least) * EACH;
    let lower = text | LOWER;
    let letters = at_least(lower, b'a') & !at_least(lower, b'z' + 1);
    let digits = at_least(text, b'0') & !at_least(text, b'9' + 1);
    // The multiplication brings the bits of all bytes together in the highest one.
    ((letters | digits) >> 7 & EACH).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// Up to eight bytes, the first one lowest, and zeros behind them.
#[inline]
fn eight_bytes(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(eight) => u64::from_le_bytes(*eight),
        None => bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)),
    }
}

/// A word on its way to a hash: multiplied and folded, eight bytes at a time. The same on every machine, and wherever it is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Word {
    hash: u64,
    /// The bytes that are not yet part of the hash, the first one lowest.
    tail: u64,
    tail_bits: u32,
}

impl Word {
    const EMPTY: Self = Self { hash: 0x243f_6a88_85a3_08d3, tail: 0, tail_bits: 0 };

    /// None of the bytes is zero, and what follows them is.
    #[inline]
    fn add(&mut self, bytes: u64, count: usize) {
        self.tail |= bytes << self.tail_bits;
        let bits = self.tail_bits + 8 * count as u32;
        if bits >= 64 {
            self.hash = fold(self.hash ^ self.tail);
            self.tail = bytes.checked_shr(64 - self.tail_bits).unwrap_or(0);
        }
        self.tail_bits = bits % 64;
    }

    /// Adds letters and digits of ASCII, in lower case.
    fn add_letters(&mut self, letters: &[u8]) {
        for eight in letters.chunks(8) {
            let bits = 64 - 8 * eight.len();
            self.add((eight_bytes(eight) | LOWER) << bits >> bits, eight.len());
        }
    }

    /// The hash of a word of ASCII that stands somewhere in a text.
    #[inline]
    fn hash_at(text: &[u8], start: usize, end: usize) -> u64 {
        match text[start..].first_chunk() {
            Some(eight) if end - start < 8 => {
                let bits = 64 - 8 * (end - start);
                let tail = (u64::from_le_bytes(*eight) | LOWER) << bits >> bits;
                Self { tail, ..Self::EMPTY }.hash()
            }
            _ => {
                let mut word = Self::EMPTY;
                word.add_letters(&text[start..end]);
                word.hash()
            }
        }
    }

    fn is_empty(&self) -> bool {
        *self == Self::EMPTY
    }

    #[inline]
    fn hash(&self) -> u64 {
        fold(self.hash ^ self.tail)
    }
}

/// Both halves of a product, one on the other.
#[inline]
fn fold(number: u64) -> u64 {
    let product = u128::from(number) * 0xa076_1d64_78bd_642f;
    (product >> 64) as u64 ^ product as u64
}

/// How often each of 64 bits was set: the counters lie across, the lowest digit of all of them in the first number, so that
/// one addition serves all. Eight numbers are added at a time, which needs a carry beyond the third digit only once.
#[derive(Clone, Debug)]
struct BitCounts {
    digits: [u64; 48],
    total: u64,
    waiting: [u64; 8],
}

impl Default for BitCounts {
    fn default() -> Self {
        Self { digits: [0; 48], total: 0, waiting: [0; 8] }
    }
}

/// Adds three numbers of one digit in each bit: the digit of the sum, and the carry.
#[inline]
fn sum(first: u64, second: u64, third: u64) -> (u64, u64) {
    let either = first ^ second;
    (either ^ third, first & second | either & third)
}

impl BitCounts {
    #[inline]
    fn add(&mut self, bits: u64) {
        let place = (self.total % 8) as usize;
        self.waiting[place] = bits;
        self.total += 1;
        if place == 7 {
            self.add_waiting();
        }
    }

    fn add_waiting(&mut self) {
        let [a, b, c, d, e, f, g, h] = std::mem::take(&mut self.waiting);
        let (ones, twos_1) = sum(self.digits[0], a, b);
        let (ones, twos_2) = sum(ones, c, d);
        let (ones, twos_3) = sum(ones, e, f);
        let (ones, twos_4) = sum(ones, g, h);
        let (twos, fours_1) = sum(self.digits[1], twos_1, twos_2);
        let (twos, fours_2) = sum(twos, twos_3, twos_4);
        let (fours, mut carry) = sum(self.digits[2], fours_1, fours_2);
        (self.digits[0], self.digits[1], self.digits[2]) = (ones, twos, fours);
        for digit in &mut self.digits[3..] {
            if carry == 0 {
                return;
            }
            (*digit, carry) = (*digit ^ carry, *digit & carry);
        }
    }

    /// The bits that were set more often than not.
    fn majority(mut self) -> u64 {
        self.add_waiting();
        let mut majority = 0;
        for bit in 0..64 {
            let digits = self.digits.iter().enumerate();
            let count = digits.map(|(place, digit)| (digit >> bit & 1) << place).sum::<u64>();
            if count * 2 > self.total {
                majority |= 1 << bit;
            }
        }
        majority
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_lying_across_are_counts() {
        let mut counts = BitCounts::default();
        let mut plain = [0u64; 64];
        for number in 0..1000u64 {
            let bits = fold(number + 1);
            counts.add(bits);
            for (bit, count) in plain.iter_mut().enumerate() {
                *count += bits >> bit & 1;
            }
        }
        let expected =
            plain.iter().enumerate().fold(0, |all, (bit, count)| all | u64::from(count * 2 > 1000) << bit);
        assert_eq!(counts.majority(), expected);
    }

    /// Words of ASCII, found letter by letter.
    fn plain(text: &str) -> Words {
        let mut words = Words::new(u64::MAX);
        for letter in text.chars() {
            if letter.is_ascii_alphanumeric() {
                words.push(letter.to_ascii_lowercase());
            } else {
                words.end_word();
            }
        }
        words.text_bytes = text.len() as u64;
        words
    }

    #[track_caller]
    fn check(text: &str, cuts: &[usize]) {
        let mut words = Words::new(u64::MAX);
        let mut start = 0;
        for cut in cuts.iter().map(|cut| cut % (text.len() + 1)) {
            if cut > start {
                words.text(&text[start..cut]);
                start = cut;
            }
        }
        words.text(&text[start..]);
        let expected = plain(text);
        assert_eq!(words.word, expected.word, "{text:?} {cuts:?}");
        assert_eq!((words.words, words.recent), (expected.words, expected.recent), "{text:?} {cuts:?}");
        assert_eq!(words.finish(), expected.finish(), "{text:?} {cuts:?}");
    }

    #[test]
    fn every_byte_is_what_it_is_wherever_it_stands() {
        for byte in 0..128u8 {
            for place in 0..138 {
                let mut bytes = b"aZ09mNyB- x Information".repeat(6);
                bytes[place] = byte;
                check(std::str::from_utf8(&bytes).unwrap(), &[]);
            }
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config {
            cases: 5_000,
            failure_persistence: None,
            rng_seed: proptest::test_runner::RngSeed::Fixed(0), // the same cases each time; another number looks further
            ..Default::default()
        })]

        #[test]
        fn words_are_the_same_whatever_they_are_cut_into(
            text in r"([a-zA-Z0-9]{0,20}[ .,\n@\[`{/:]{0,3}){0,30}",
            cuts in proptest::collection::vec(0..400usize, 0..4),
        ) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            check(&text, &cuts);
        }
    }

    #[test]
    fn a_word_is_the_same_wherever_it_is_cut() {
        let text = "abcdefghijklmnopqrstuvwxyz";
        let mut hashes = std::collections::BTreeSet::new();
        for length in 1..=text.len() {
            let mut whole = Words::new(1000);
            whole.text(&text[..length]);
            assert!(hashes.insert(whole.word.hash()), "{length}");
            for cut in 0..=length {
                let mut cut_up = Words::new(1000);
                cut_up.text(&text[..cut]);
                cut_up.text(&text[cut..length]);
                assert_eq!(cut_up.word, whole.word, "{length} at {cut}");
            }
        }
    }

    #[test]
    fn pieces_case_and_punctuation_make_no_difference() {
        let text = "Straße und Äpfel: Ünïcode wörds, 漢字 and kana かな; the end of it all.";
        let whole = SimHash::of_text(text);
        let mut words = Words::new(1000);
        text.chars().for_each(|character| words.text(character.encode_utf8(&mut [0; 4])));
        assert_eq!(words.finish(), whole);
        assert_eq!(SimHash::of_text(&text.to_lowercase().replace([':', ';', ','], " - ")), whole);
        assert_ne!(SimHash::of_text("Straßeund Äpfel"), SimHash::of_text("Straße und Äpfel"));
    }

    #[test]
    fn short_texts_have_one_and_empty_ones_none() {
        assert_eq!(SimHash::of_text(""), None);
        assert_eq!(SimHash::of_text(" \n .,-"), None);
        assert!(SimHash::of_text("one").is_some());
        assert_ne!(SimHash::of_text("one"), SimHash::of_text("one two"));
        assert_ne!(SimHash::of_text("one two"), SimHash::of_text("one two three"));
    }

    #[test]
    fn a_word_changed_in_a_long_text_changes_few_bits() {
        let words = (0..600).map(|word| format!("word{}", word * 7919 % 211)).collect::<Vec<_>>();
        let one = SimHash::of_text(&words.join(" ")).unwrap();
        let mut changed = words.clone();
        changed[300] = "another".to_owned();
        let near = one.distance(SimHash::of_text(&changed.join(" ")).unwrap());
        changed.reverse();
        let far = one.distance(SimHash::of_text(&changed.join(" ")).unwrap());
        assert!(near <= 6 && far > 15, "{near} {far}");
    }

    #[test]
    fn what_is_over_the_cap_does_not_count() {
        let mut words = Words::new(9);
        words.text("one two éé");
        words.text("three");
        assert!(words.is_cut);
        assert_eq!(words.text_bytes, 8);
        assert_eq!(words.finish(), SimHash::of_text("one two"));
    }
}
