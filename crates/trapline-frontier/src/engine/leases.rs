//! The leases that are out, by their numbers.
//!
//! Numbers are drawn one after the other and most leases end soon, so those that are out lie close together: in blocks of
//! consecutive numbers, made when the first of them is granted and dropped when the last has ended. What is still out when
//! the numbers have gone far beyond it lies in a tree, so that it does not keep the blocks in between.

use std::collections::{BTreeMap, VecDeque};

use trapline_core::Timestamp;

use super::album::Sitting;
use super::moment::Moment;
use super::urls::EntryId;

/// How many numbers a block has.
const BLOCK: u64 = 32;

/// How far numbers may lie apart before the lower ones go into the tree, in blocks: a million.
const SPAN: u64 = 1 << 15;

/// A lease as the engine keeps it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant {
    pub(super) entry: EntryId,
    pub(super) granted: Timestamp,
    pub(super) deadline: Moment,
}

impl Grant {
    /// A number without a lease.
    const NONE: Self = Self { entry: EntryId::NONE, granted: Timestamp::ZERO, deadline: Moment::ZERO };
}

/// All leases of a crawl.
#[derive(Debug, Default)]
pub(super) struct Leases {
    /// Which block is the first of `blocks`, counted from number 0. It never goes back.
    first: u64,
    /// None where no lease is out.
    blocks: VecDeque<Option<Box<Block>>>,
    /// All from before the first block.
    old: BTreeMap<u64, Grant>,
    /// How many are out.
    len: u64,
    /// A photograph being taken.
    shot: Option<Box<Sitting<u64, Grant>>>,
}

#[derive(Debug)]
struct Block {
    grants: [Grant; BLOCK as usize],
    /// So many are out.
    out: u32,
}

impl Leases {
    /// How many are out.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn get(&self, lease: u64) -> Option<&Grant> {
        let Some(at) = (lease / BLOCK).checked_sub(self.first) else { return self.old.get(&lease) };
        let grant = &self.blocks.get(at as usize)?.as_ref()?.grants[(lease % BLOCK) as usize];
        (grant.entry != EntryId::NONE).then_some(grant)
    }

    pub(super) fn get_mut(&mut self, lease: u64) -> Option<&mut Grant> {
        self.keep(lease);
        let Some(at) = (lease / BLOCK).checked_sub(self.first) else { return self.old.get_mut(&lease) };
        let grant = &mut self.blocks.get_mut(at as usize)?.as_mut()?.grants[(lease % BLOCK) as usize];
        (grant.entry != EntryId::NONE).then_some(grant)
    }

    pub(super) fn insert(&mut self, lease: u64, grant: Grant) {
        self.keep(lease);
        let block = lease / BLOCK;
        while !self.blocks.is_empty() && block.saturating_sub(self.first) >= SPAN {
            self.leave_first();
        }
        if self.blocks.is_empty() {
            self.first = self.first.max(block);
        }
        let Some(at) = block.checked_sub(self.first) else {
            self.len += u64::from(self.old.insert(lease, grant).is_none());
            return;
        };
        if at >= self.blocks.len() as u64 {
            self.blocks.resize_with(at as usize + 1, || None);
        }
        let block = self.blocks[at as usize]
            .get_or_insert_with(|| Box::new(Block { grants: [Grant::NONE; BLOCK as usize], out: 0 }));
        let place = &mut block.grants[(lease % BLOCK) as usize];
        let is_new = place.entry == EntryId::NONE;
        block.out += u32::from(is_new);
        self.len += u64::from(is_new);
        *place = grant;
    }

    /// Ends a lease; answers what it was, if it was out.
    pub(super) fn remove(&mut self, lease: u64) -> Option<Grant> {
        self.keep(lease);
        let removed = self.remove_from_its_place(lease);
        self.len -= u64::from(removed.is_some());
        removed
    }

    fn remove_from_its_place(&mut self, lease: u64) -> Option<Grant> {
        let Some(at) = (lease / BLOCK).checked_sub(self.first) else { return self.old.remove(&lease) };
        let place = self.blocks.get_mut(at as usize)?;
        let block = place.as_mut()?;
        let grant = std::mem::replace(&mut block.grants[(lease % BLOCK) as usize], Grant::NONE);
        if grant.entry == EntryId::NONE {
            return None;
        }
        block.out -= 1;
        if block.out == 0 {
            *place = None;
            while let Some(None) = self.blocks.front() {
                self.blocks.pop_front();
                self.first += 1;
            }
        }
        Some(grant)
    }

    /// A lease is about to change.
    fn keep(&mut self, lease: u64) {
        if self.shot.is_some() {
            let is = self.get(lease).copied();
            self.shot.as_mut().into_iter().for_each(|shot| shot.keep(&lease, is));
        }
    }

    /// Begins a photograph of all leases as they are now. No number beyond the last one was given to any.
    pub(super) fn begin_shot(&mut self, last: u64) {
        self.shot = (self.len > 0).then(|| Box::new(Sitting::of_all_to(last)));
    }

    /// The next leases in the photograph; None when it is complete, or none was begun.
    pub(super) fn take_shot(&mut self) -> Option<Vec<(u64, Grant)>> {
        let mut shot = self.shot.take()?;
        let from = shot.taken().map_or(0, |taken| taken + 1);
        let taken = shot.take(self.iter_from(from).map(|(lease, grant)| (lease, *grant)));
        self.shot = taken.is_some().then_some(shot);
        taken
    }

    /// Gives a photograph up.
    pub(super) fn drop_shot(&mut self) {
        self.shot = None;
    }

    /// What is still out of the first block becomes old.
    fn leave_first(&mut self) {
        if let Some(Some(block)) = self.blocks.pop_front() {
            self.old.extend(block.out_from(self.first).map(|(lease, grant)| (lease, *grant)));
        }
        self.first += 1;
    }

    /// All leases, in the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Grant)> {
        self.iter_from(0)
    }

    /// The same, from a number on.
    pub(super) fn iter_from(&self, from: u64) -> impl Iterator<Item = (u64, &Grant)> {
        let old = self.old.range(from..).map(|(lease, grant)| (*lease, grant));
        let skipped = (from / BLOCK).saturating_sub(self.first);
        let blocks = (self.first..).zip(&self.blocks).skip(usize::try_from(skipped).unwrap_or(usize::MAX));
        let blocks = blocks.filter_map(|(number, block)| Some(block.as_ref()?.out_from(number))).flatten();
        old.chain(blocks.skip_while(move |(lease, _)| *lease < from))
    }
}

impl Block {
    /// Its leases, if this is its place among all blocks.
    fn out_from(&self, number: u64) -> impl Iterator<Item = (u64, &Grant)> {
        (number * BLOCK..).zip(&self.grants).filter(|(_, grant)| grant.entry != EntryId::NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(lease: u64) -> Grant {
        Grant { entry: EntryId(lease as u32), ..Grant::NONE }
    }

    /// Against a tree: numbers with gaps, leaps and one that goes back, ended in any order.
    #[test]
    fn leases_are_found_by_their_numbers() {
        let (mut leases, mut expected) = (Leases::default(), BTreeMap::new());
        let (mut random, mut last) = (7_u64, 0);
        for round in 0..200_000_u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let draw = random >> 33;
            last += match draw % 5000 {
                0 => SPAN * BLOCK / 3,
                1 => SPAN * BLOCK * 2,
                2..50 => draw % 300,
                _ => 1,
            };
            let lease = if draw % 997 == 0 { last / 2 } else { last };
            leases.insert(lease, grant(lease));
            expected.insert(lease, grant(lease).entry);
            let phase_of_ending = (round / 20_000) % 2 == 1;
            for _ in 0..if phase_of_ending { 2 } else { 1 } {
                let pick =
                    if draw.is_multiple_of(3) { draw % last } else { last.saturating_sub(draw % 1000) };
                if let Some((&lease, &entry)) = expected.range(pick..).next() {
                    assert_eq!(leases.get(lease).map(|grant| grant.entry), Some(entry));
                    assert_eq!(leases.remove(lease).map(|grant| grant.entry), Some(entry));
                    assert!(leases.get(lease).is_none() && leases.remove(lease).is_none());
                    expected.remove(&lease);
                }
            }
            if round % 10_000 == 0 {
                assert_eq!(leases.len(), expected.len() as u64);
                let from = draw % last;
                let found: Vec<_> =
                    leases.iter_from(from).map(|(lease, grant)| (lease, grant.entry)).collect();
                let wanted: Vec<_> = expected.range(from..).map(|(lease, entry)| (*lease, *entry)).collect();
                assert_eq!(found, wanted);
                assert!(leases.iter().map(|(lease, _)| lease).eq(expected.keys().copied()));
            }
        }
    }

    /// Old ones, those in blocks, and such as become old meanwhile; ended, renewed and granted.
    #[test]
    fn a_photograph_shows_the_leases_that_were_out_when_it_began() {
        let mut leases = Leases::default();
        let mut last = 0;
        for number in 0..20_000 {
            last += if number % 5000 == 4999 { SPAN * BLOCK } else { 1 + number % 3 };
            leases.insert(last, grant(last));
        }
        let all: Vec<_> = leases.iter().map(|(lease, grant)| (lease, grant.entry)).collect();
        leases.begin_shot(last);
        let (mut seen, mut random) = (Vec::new(), 5_usize);
        while let Some(photos) = leases.take_shot() {
            seen.extend(photos.into_iter().map(|(lease, grant)| (lease, grant.entry)));
            for change in 0..300 {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let (lease, _) = all[(random >> 33) % all.len()];
                match change % 3 {
                    0 => drop(leases.remove(lease)),
                    1 => leases.get_mut(lease).into_iter().for_each(|grant| grant.entry = EntryId(7)),
                    _ => leases.insert(last + SPAN * (random >> 33) as u64 % 1000, grant(9)),
                }
            }
        }
        assert!(seen == all, "{} of {}", seen.len(), all.len());
    }

    #[test]
    fn a_lease_that_never_ends_keeps_no_memory_but_its_own() {
        let mut leases = Leases::default();
        leases.insert(1, grant(1));
        for lease in 2..3 * SPAN * BLOCK {
            leases.insert(lease, grant(lease));
            leases.remove(lease);
        }
        assert!(leases.blocks.len() < 3, "{} blocks", leases.blocks.len());
        assert_eq!(leases.get_mut(1).map(|grant| grant.entry), Some(EntryId(1)));
        assert_eq!(leases.old.len(), 1);
    }
}
