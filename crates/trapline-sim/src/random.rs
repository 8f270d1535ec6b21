//! Randomness that repeats: splitmix64, sixty-four bits of state and three multiplications a number.
//!
//! Good enough to build webs and draw delays with. Nothing secret may depend on it.

use std::ops::Range;

/// A sequence of numbers that looks random and follows from its seed alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The sequence of a seed.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The sequence that belongs to a thing, named by numbers: what is drawn for one thing does not depend on
    /// what was drawn for others before.
    pub fn of(parts: &[u64]) -> Self {
        let mut name = Self::new(0);
        for part in parts {
            name.state ^= *part;
            name.state = name.draw();
        }
        name
    }

    /// The next number.
    pub const fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number of a range. Some are likelier than others by the range's length in 2⁶⁴, which nobody can notice.
    ///
    /// # Panics
    /// If the range is empty.
    pub fn range(&mut self, range: Range<u64>) -> u64 {
        assert!(!range.is_empty(), "no number lies in {range:?}");
        let length = u128::from(range.end - range.start);
        let offset = (u128::from(self.draw()) * length) >> 64;
        range.start + u64::try_from(offset).expect("an offset is less than its range's length")
    }

    /// A number of a range of small ones.
    ///
    /// # Panics
    /// If the range is empty.
    pub fn number(&mut self, range: Range<u32>) -> u32 {
        let number = self.range(range.start.into()..range.end.into());
        u32::try_from(number).expect("a number between two of u32")
    }

    /// Whether something happens that does so `hits` times in `of`.
    pub fn chance(&mut self, hits: u64, of: u64) -> bool {
        self.range(0..of) < hits
    }

    /// One of several.
    ///
    /// # Panics
    /// If there are none.
    pub fn choose<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        let index = self.range(0..items.len() as u64);
        &items[usize::try_from(index).expect("an index of a slice")]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_splitmix64() {
        let mut random = Random::new(1_234_567);
        let drawn = [(); 5].map(|()| random.draw());
        assert_eq!(
            drawn,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821
            ]
        );
    }

    #[test]
    fn ranges_are_filled_evenly_and_never_left() {
        let mut random = Random::new(1);
        let mut counts = [0u32; 7];
        for _ in 0..7_000 {
            let number = random.range(10..17);
            counts[usize::try_from(number - 10).unwrap()] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
        assert_eq!(random.range(5..6), 5);
        assert_eq!(random.range(u64::MAX - 1..u64::MAX), u64::MAX - 1);
    }

    #[test]
    fn chances_come_as_often_as_they_should() {
        let mut random = Random::new(2);
        let hits = (0..10_000).filter(|_| random.chance(3, 100)).count();
        assert!((230..370).contains(&hits), "{hits}");
        assert!(!random.chance(0, 1) && random.chance(1, 1));
        assert!((0..100).all(|_| ["a", "b"].contains(random.choose(&["a", "b"]))));
    }

    #[test]
    fn things_have_sequences_of_their_own() {
        let first = |parts: &[u64]| Random::of(parts).draw();
        assert_eq!(first(&[1, 2, 3]), first(&[1, 2, 3]));
        for other in [&[1, 2, 4][..], &[2, 1, 3], &[1, 2], &[0, 1, 2, 3]] {
            assert_ne!(first(&[1, 2, 3]), first(other), "{other:?}");
        }
    }
}
