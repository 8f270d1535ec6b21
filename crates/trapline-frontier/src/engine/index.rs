//! Finds things by their hash: the seen set, and the queues by their keys.
//!
//! A bucket is one cache line: nine numbers, and beside each 24 bits of its hash. Who asks compares the thing itself,
//! so an answer is exact; for something new that is hardly ever needed. A bucket that is full lets newcomers pass to
//! the next one and counts them, so that a search knows where to stop.
//!
//! The table grows by an eighth, one of its many shards at a time, each at its own moments: it stays nearly full at
//! any size, and an insertion waits for no more than one shard to be written anew.
//!
//! Hashes must be uniform in their upper bits.

/// How many parts grow by themselves.
const SHARDS: usize = 1 << SHARD_BITS;
const SHARD_BITS: u32 = 10;

/// How many numbers a bucket holds.
const SLOTS: usize = 9;

const TAG_BITS: u32 = 24;

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

/// A part of the table.
#[derive(Debug, Default)]
struct Shard {
    buckets: Vec<Bucket>,
    len: usize,
}

/// A table of numbers, found by the hashes of what they stand for.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// None, or all of them.
    shards: Vec<Shard>,
}

impl Index {
    /// How much memory the table takes.
    pub(super) fn bytes(&self) -> usize {
        let buckets: usize = self.shards.iter().map(|shard| shard.buckets.capacity()).sum();
        buckets * size_of::<Bucket>() + self.shards.capacity() * size_of::<Shard>()
    }

    /// Makes room for so many in all, as far as memory allows.
    pub(super) fn reserve(&mut self, len: usize) {
        // Shards differ: hardly any has four standard deviations more than the mean.
        let mean = len / SHARDS;
        let share = mean + 4 * mean.isqrt();
        let buckets = (share * 16).div_ceil(SLOTS * 15);
        self.shards.resize_with(SHARDS, Shard::default);
        for shard in &mut self.shards {
            if shard.buckets.len() < buckets && !shard.grow_to(buckets) {
                return;
            }
        }
    }

    /// The number under this hash that `is` says is the right one.
    pub(super) fn find(&self, hash: u64, mut is: impl FnMut(u32) -> bool) -> Option<u32> {
        let shard = self.shards.get(shard_of(hash))?;
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
        let shard = self.shards.get(shard_of(hash))?;
        let tag = tag_of(hash);
        let bucket = &shard.buckets[shard.home(tag)?];
        let slot = bucket.matches(tag).trailing_zeros() as usize;
        bucket.ids.get(slot).copied().filter(|id| *id != FREE)
    }

    /// Adds a number that is not there yet.
    pub(super) fn insert(&mut self, hash: u64, id: u32) {
        debug_assert_ne!(id, FREE);
        let number = shard_of(hash);
        if self.shards.is_empty() {
            self.shards.resize_with(SHARDS, Shard::default);
        }
        let shard = &mut self.shards[number];
        if shard.len >= shard.room() {
            let grown = shard.buckets.len() + shard.step(number);
            assert!(shard.grow_to(grown), "no memory for {grown} buckets of the index");
        }
        shard.place(tag_of(hash), id);
        shard.len += 1;
    }

    /// Puts another number in the place of one that is there.
    pub(super) fn replace(&mut self, hash: u64, id: u32, with: u32) {
        let Some(shard) = self.shards.get_mut(shard_of(hash)) else { return };
        if let Some((at, slot)) = shard.search(tag_of(hash), id) {
            shard.buckets[at].ids[slot] = with;
        }
    }

    /// Takes a number out.
    pub(super) fn remove(&mut self, hash: u64, id: u32) {
        let Some(shard) = self.shards.get_mut(shard_of(hash)) else { return };
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
    }
}

impl Shard {
    /// How many it takes before it grows: so nearly all that searches stay short.
    fn room(&self) -> usize {
        self.buckets.len() * SLOTS * 15 / 16
    }

    /// By how many buckets it grows: about an eighth, by a share of its own, so that not all grow at once. While it is
    /// small, by more.
    fn step(&self, number: usize) -> usize {
        (self.buckets.len() * (96 + number * 37 % 64) / 1024).max(4.min(self.buckets.len() / 2 + 1))
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
        let mut grown = Self::default();
        if grown.buckets.try_reserve_exact(buckets).is_err() {
            return false;
        }
        grown.buckets.resize(buckets, Bucket::EMPTY);
        grown.len = self.len;
        for bucket in &self.buckets {
            for slot in 0..bucket.taken() {
                grown.place(bucket.tag(slot), bucket.ids[slot]);
            }
        }
        *self = grown;
        true
    }
}

fn shard_of(hash: u64) -> usize {
    (hash >> (64 - SHARD_BITS)) as usize
}

fn tag_of(hash: u64) -> u32 {
    (hash >> (64 - SHARD_BITS - TAG_BITS)) as u32 & ((1 << TAG_BITS) - 1)
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
        index.shards.iter().map(|shard| shard.len).sum()
    }

    #[test]
    fn a_bucket_is_one_cache_line() {
        assert_eq!(size_of::<Bucket>(), 64);
    }

    /// Against a map, through every size from nothing to a million and back, with few and with many shards in use.
    #[test]
    fn it_finds_what_was_inserted_and_nothing_else() {
        let narrow = |of: u64| hash(of) >> 9;
        let shards_in_use: [fn(u64) -> u64; 2] = [hash, narrow];
        for (count, hash) in [200_000, 20_000].into_iter().zip(shards_in_use) {
            let mut index = Index::default();
            let mut expected = BTreeMap::new();
            for step in 0..count {
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
}
