//! Finds things by their hash: the seen set, and the queues by their keys.
//!
//! A bucket is one cache line: nine numbers, and beside each 24 bits of its hash. Who asks compares the thing itself,
//! so an answer is exact; for something new that is hardly ever needed. A bucket that is full lets newcomers pass to
//! the next one and counts them, so that a search knows where to stop.
//!
//! The table grows by an eighth, one of its many shards at a time, each at its own moments: it stays nearly full at
//! any size, and an insertion waits for no more than a shard or two to be written anew. When shards have become large they
//! are split, one after the other, so that none ever holds more than a bounded number of things.
//!
//! Hashes must be uniform in their upper bits.

/// How many parts grow by themselves, at first.
const SHARDS: usize = 1 << SHARD_BITS;
const SHARD_BITS: u32 = 10;

/// If shards hold more than this on average, the next one is split. Those whose turn is still to come hold up to twice
/// as many.
const SHARD_LEN_MEAN: usize = 1 << 13;

/// How many numbers a bucket holds.
const SLOTS: usize = 9;

const TAG_BITS: u32 = 24;

/// So often a shard is split at most; what is left of a tag still says the bucket.
const SPLITS_MAX: u32 = 9;

/// In a slot that is free.
const FREE: u32 = u32::MAX;

/// One cache line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct Bucket {
    ids: [u32; SLOTS],
    /// The tags, in two parts.
    low: [u16; SLOTS],
    high: [u8; SLOTS],
    /// How many have passed this bucket because it was full. At the highest value the count is lost: from then on,
    /// whoever searches goes on.
    passed: u8,
}

impl Bucket {
    const EMPTY: Self = Self { ids: [FREE; SLOTS], low: [0; SLOTS], high: [0; SLOTS], passed: 0 };

    /// A bit for each slot that has this tag.
    fn matches(&self, tag: u32) -> u32 {
        let (low, high) = (tag as u16, (tag >> 16) as u8);
        let mut found = 0;
        for slot in 0..SLOTS {
            found |= u32::from(self.low[slot] == low && self.high[slot] == high) << slot;
        }
        found
    }

    fn tag(&self, slot: usize) -> u32 {
        u32::from(self.low[slot]) | u32::from(self.high[slot]) << 16
    }

    fn set(&mut self, slot: usize, tag: u32, id: u32) {
        (self.ids[slot], self.low[slot], self.high[slot]) = (id, tag as u16, (tag >> 16) as u8);
    }

    /// How many slots are taken: the first ones.
    fn taken(&self) -> usize {
        self.ids.iter().position(|id| *id == FREE).unwrap_or(SLOTS)
    }

    fn is_full(&self) -> bool {
        self.ids[SLOTS - 1] != FREE
    }
}

/// A part of the table: the things whose hashes have the same bits below the tag, and the same lowest bits of the tag, as
/// many as it was split.
#[derive(Debug, Default)]
struct Shard {
    buckets: Vec<Bucket>,
    len: usize,
}

/// A table of numbers, found by the hashes of what they stand for.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// None, or [`SHARDS`] and one more for each split. They are split in the order of their numbers; when all were, it
    /// begins again with the first.
    shards: Vec<Shard>,
    /// What bits of a hash may be the number of its shard: one more than every shard was split by.
    mask: usize,
    len: usize,
    /// How many buckets all shards have.
    buckets: usize,
}

impl Index {
    /// How much memory the table takes.
    pub(super) fn bytes(&self) -> usize {
        self.buckets * size_of::<Bucket>() + self.shards.capacity() * size_of::<Shard>()
    }

    /// Makes room for so many in all, as far as memory allows.
    pub(super) fn reserve(&mut self, len: usize) {
        self.begin();
        while self.len == 0 && self.wants_split(len) {
            self.split();
        }
        for number in 0..self.shards.len() {
            // Shards differ: hardly any has four standard deviations more than the mean.
            let mean = (len / SHARDS) >> self.splits(number);
            let buckets = buckets_for(mean + 4 * mean.isqrt());
            let shard = &mut self.shards[number];
            let before = shard.buckets.len();
            if before < buckets {
                if !shard.grow_to(buckets) {
                    return;
                }
                self.buckets += buckets - before;
            }
        }
    }

    fn begin(&mut self) {
        if self.shards.is_empty() {
            self.shards.resize_with(SHARDS, Shard::default);
            self.mask = 2 * SHARDS - 1;
        }
    }

    /// The number under this hash that `is` says is the right one.
    pub(super) fn find(&self, hash: u64, mut is: impl FnMut(u32) -> bool) -> Option<u32> {
        let shard = self.shards.get(self.shard_of(hash))?;
        let tag = tag_of(hash);
        let home = shard.home(tag)?;
        let mut at = home;
        loop {
            let bucket = &shard.buckets[at];
            let mut matches = bucket.matches(tag);
            while matches != 0 {
                let id = bucket.ids[matches.trailing_zeros() as usize];
                if id != FREE && is(id) {
                    return Some(id);
                }
                matches &= matches - 1;
            }
            if bucket.passed == 0 {
                return None;
            }
            at = shard.after(at);
            if at == home {
                return None;
            }
        }
    }

    /// What may be under this hash, without asking: so that a whole batch can be looked up at once, none of
    /// the look-ups waiting for another.
    pub(super) fn guess(&self, hash: u64) -> Option<u32> {
        let shard = self.shards.get(self.shard_of(hash))?;
        let tag = tag_of(hash);
        let bucket = &shard.buckets[shard.home(tag)?];
        let slot = bucket.matches(tag).trailing_zeros() as usize;
        bucket.ids.get(slot).copied().filter(|id| *id != FREE)
    }

    /// Adds a number that is not there yet.
    pub(super) fn insert(&mut self, hash: u64, id: u32) {
        debug_assert_ne!(id, FREE);
        self.begin();
        self.len += 1;
        if self.wants_split(self.len) {
            self.split();
        }
        let number = self.shard_of(hash);
        let shard = &mut self.shards[number];
        if shard.len >= shard.room() {
            let more = step(shard.buckets.len(), number);
            let grown = shard.buckets.len() + more;
            assert!(shard.grow_to(grown), "no memory for {grown} buckets of the index");
            self.buckets += more;
        }
        shard.place(tag_of(hash), id);
        shard.len += 1;
    }

    /// Puts another number in the place of one that is there.
    pub(super) fn replace(&mut self, hash: u64, id: u32, with: u32) {
        let number = self.shard_of(hash);
        let Some(shard) = self.shards.get_mut(number) else { return };
        if let Some((at, slot)) = shard.search(tag_of(hash), id) {
            shard.buckets[at].ids[slot] = with;
        }
    }

    /// Takes a number out.
    pub(super) fn remove(&mut self, hash: u64, id: u32) {
        let number = self.shard_of(hash);
        let Some(shard) = self.shards.get_mut(number) else { return };
        let tag = tag_of(hash);
        let Some((found, slot)) = shard.search(tag, id) else { return };
        let bucket = &mut shard.buckets[found];
        let last = bucket.taken() - 1;
        bucket.set(slot, bucket.tag(last), bucket.ids[last]);
        bucket.set(last, 0, FREE);
        let mut at = shard.home(tag).unwrap_or(found);
        while at != found {
            let passed = &mut shard.buckets[at].passed;
            if *passed < u8::MAX {
                *passed -= 1;
            }
            at = shard.after(at);
        }
        shard.len -= 1;
        self.len -= 1;
    }

    /// How often every shard was split.
    fn rounds(&self) -> u32 {
        self.mask.count_ones() - SHARD_BITS - 1
    }

    /// How often a shard was split: as often as all, or once more.
    fn splits(&self, number: usize) -> u32 {
        let twin = number | (self.mask / 2 + 1);
        self.rounds() + u32::from(twin < self.shards.len())
    }

    /// The shard of a hash: the bits below the tag are its first number, and each split has put a bit of the tag before it.
    fn shard_of(&self, hash: u64) -> usize {
        let number = (hash >> (64 - TAG_BITS - SHARD_BITS)) as usize & self.mask;
        // One that is still to be made: it is in the one that will be split.
        if number < self.shards.len() { number } else { number & (self.mask / 2) }
    }

    /// Whether there are too few shards for so many things. No more splits than a tag has bits to spare.
    fn wants_split(&self, len: usize) -> bool {
        len > self.shards.len() * SHARD_LEN_MEAN && self.rounds() < SPLITS_MAX
    }

    /// Splits the shard whose turn it is. There must be shards.
    fn split(&mut self) {
        let rounds = self.rounds();
        let numbers = [self.shards.len() - (SHARDS << rounds), self.shards.len()];
        let old = std::mem::take(&mut self.shards[numbers[0]]);
        let half_of = |tag: u32| (tag >> rounds & 1) as usize;
        let mut halves = [Shard::default(), Shard::default()];
        old.each(|tag, _| halves[half_of(tag)].len += 1);
        for (half, number) in halves.iter_mut().zip(numbers) {
            let buckets = buckets_for(half.len);
            half.buckets = vec![Bucket::EMPTY; buckets + step(buckets, number)];
        }
        old.each(|tag, id| halves[half_of(tag)].place(tag, id));
        let [lower, upper] = halves;
        self.buckets = self.buckets + lower.buckets.len() + upper.buckets.len() - old.buckets.len();
        self.shards[numbers[0]] = lower;
        self.shards.push(upper);
        if self.shards.len() > self.mask {
            self.mask = 2 * self.mask + 1;
        }
    }
}

impl Shard {
    /// How many it takes before it grows: so nearly all that searches stay short.
    fn room(&self) -> usize {
        self.buckets.len() * SLOTS * 15 / 16
    }

    /// Tells all tags and numbers in it.
    fn each(&self, mut tell: impl FnMut(u32, u32)) {
        for bucket in &self.buckets {
            for slot in 0..bucket.taken() {
                tell(bucket.tag(slot), bucket.ids[slot]);
            }
        }
    }

    fn home(&self, tag: u32) -> Option<usize> {
        let home = (u64::from(tag) * self.buckets.len() as u64) >> TAG_BITS;
        (!self.buckets.is_empty()).then_some(home as usize)
    }

    fn after(&self, at: usize) -> usize {
        if at + 1 == self.buckets.len() { 0 } else { at + 1 }
    }

    /// Where a number is that is there.
    fn search(&self, tag: u32, id: u32) -> Option<(usize, usize)> {
        let home = self.home(tag)?;
        let mut at = home;
        loop {
            let bucket = &self.buckets[at];
            if let Some(slot) = bucket.ids.iter().position(|other| *other == id) {
                return Some((at, slot));
            }
            at = self.after(at);
            if bucket.passed == 0 || at == home {
                return None;
            }
        }
    }

    /// Puts a number into the first bucket, from its home on, that has a free slot. There must be one.
    fn place(&mut self, tag: u32, id: u32) {
        let Some(mut at) = self.home(tag) else { return };
        while self.buckets[at].is_full() {
            let passed = &mut self.buckets[at].passed;
            *passed = passed.saturating_add(1);
            at = self.after(at);
        }
        let bucket = &mut self.buckets[at];
        let slot = bucket.taken();
        bucket.set(slot, tag, id);
    }

    /// Writes itself anew with so many buckets; answers whether there was memory for it.
    fn grow_to(&mut self, buckets: usize) -> bool {
        let mut grown = Self { buckets: Vec::new(), len: self.len };
        if grown.buckets.try_reserve_exact(buckets).is_err() {
            return false;
        }
        grown.buckets.resize(buckets, Bucket::EMPTY);
        self.each(|tag, id| grown.place(tag, id));
        *self = grown;
        true
    }
}

/// How many buckets have room for so many things.
fn buckets_for(len: usize) -> usize {
    (len * 16).div_ceil(SLOTS * 15)
}

/// By how many buckets a shard of so many grows: about an eighth, by a share of its own, so that not all grow at once.
/// While it is small, by more.
fn step(buckets: usize, number: usize) -> usize {
    (buckets * (96 + number * 37 % 64) / 1024).max(4.min(buckets / 2 + 1))
}

fn tag_of(hash: u64) -> u32 {
    (hash >> (64 - TAG_BITS)) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A hash like those of identities: uniform in all bits.
    fn hash(of: u64) -> u64 {
        let mut x = of.wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn len(index: &Index) -> usize {
        let len = index.shards.iter().map(|shard| shard.len).sum();
        assert_eq!(index.len, len);
        let buckets: usize = index.shards.iter().map(|shard| shard.buckets.len()).sum();
        assert_eq!(index.buckets, buckets);
        len
    }

    #[test]
    fn nothing_is_found_in_nothing() {
        let mut index = Index::default();
        for hash in [0, u64::MAX] {
            assert_eq!((index.find(hash, |_| true), index.guess(hash)), (None, None));
            index.remove(hash, 1);
            index.replace(hash, 1, 2);
        }
        assert_eq!(len(&index), 0);
    }

    #[test]
    fn a_bucket_is_one_cache_line() {
        assert_eq!(size_of::<Bucket>(), 64);
    }

    /// Against a map, through every size from nothing to a million and back, with few and with many shards in use, whole
    /// ones and such that are split before their time.
    #[test]
    fn it_finds_what_was_inserted_and_nothing_else() {
        let narrow = |of: u64| hash(of) & !(0x1ff << (64 - TAG_BITS - SHARD_BITS));
        let hashes: [fn(u64) -> u64; 4] = [hash, narrow, hash, narrow];
        let splits_after = [u64::MAX, u64::MAX, 40, 7];
        for ((count, hash), split_after) in
            [200_000, 20_000, 200_000, 20_000].into_iter().zip(hashes).zip(splits_after)
        {
            let mut index = Index::default();
            let mut expected = BTreeMap::new();
            for step in 0..count {
                if step % split_after == split_after - 1 {
                    index.split();
                }
                index.insert(hash(step), step as u32);
                expected.insert(step, step as u32);
                if step % 3 == 0 {
                    let gone = hash(step) % (step + 1);
                    if let Some(id) = expected.remove(&gone) {
                        index.remove(hash(gone), id);
                    }
                }
                if step % 7 == 0
                    && let Some((key, id)) = expected.range(step / 2..).next().map(|(key, id)| (*key, *id))
                {
                    index.replace(hash(key), id, id + 10_000_000);
                    expected.insert(key, id + 10_000_000);
                }
            }
            assert_eq!(len(&index), expected.len());
            for of in 0..count * 2 {
                let id = expected.get(&of).copied();
                assert_eq!(index.find(hash(of), |found| Some(found) == id), id, "of {of}");
                if let Some(id) = id {
                    index.remove(hash(of), id);
                    assert_eq!(index.find(hash(of), |found| found == id), None, "of {of}, removed");
                }
            }
            assert_eq!(len(&index), 0);
        }
    }

    /// Hashes that all want one bucket make it slow, not wrong.
    #[test]
    fn equal_hashes_are_told_apart_by_who_asks() {
        let mut index = Index::default();
        for id in 0..1000 {
            index.insert(42, id);
        }
        for id in 0..1000 {
            assert_eq!(index.find(42, |found| found == id), Some(id));
        }
        for id in (0..1000).rev() {
            index.remove(42, id);
            assert_eq!(index.find(42, |found| found == id), None);
        }
        assert_eq!(len(&index), 0);
    }

    /// However many there are, no shard becomes so large that writing it anew takes long.
    #[test]
    fn shards_are_split_before_they_are_large() {
        let mut index = Index::default();
        for shards in SHARDS..5 * SHARDS {
            // As if there were so many already.
            index.len = shards * SHARD_LEN_MEAN;
            index.insert(hash(shards as u64), 1);
            assert_eq!(index.shards.len(), shards + 1);
            let splits = (0..=shards).map(|number| index.splits(number)).min();
            let share = splits.map(|splits| (index.len / SHARDS) >> splits);
            assert!(share.is_some_and(|share| share <= 2 * SHARD_LEN_MEAN), "{share:?} with {shards} shards");
        }
    }

    /// What the manual says it takes.
    #[test]
    fn it_takes_less_than_nine_bytes_each() {
        let mut index = Index::default();
        for id in 0..1_000_000_u32 {
            index.insert(hash(id.into()), id);
            if id % 50_000 == 49_999 && id > 200_000 {
                let each = index.bytes() as f64 / f64::from(id + 1);
                assert!(each < 9.0, "{each} bytes each at {}", id + 1);
            }
        }
    }

    #[test]
    fn room_made_ahead_is_not_made_again() {
        let mut index = Index::default();
        index.reserve(100_000);
        let bytes = index.bytes();
        for id in 0..90_000 {
            index.insert(hash(id), id as u32);
        }
        assert_eq!(index.bytes(), bytes);
    }

    /// Also if it is so much that shards are split first.
    #[test]
    fn room_for_many_is_made_in_shards_of_a_bounded_size() {
        let mut index = Index::default();
        index.reserve(3 * SHARDS * SHARD_LEN_MEAN);
        assert_eq!(index.shards.len(), 3 * SHARDS);
        let most = index.shards.iter().map(Shard::room).max();
        assert!(most.is_some_and(|most| most < 2 * SHARD_LEN_MEAN + SHARD_LEN_MEAN / 4), "{most:?}");
        let each = index.bytes() as f64 / (3 * SHARDS * SHARD_LEN_MEAN) as f64;
        assert!(each < 9.0, "{each} bytes each");
    }
}
