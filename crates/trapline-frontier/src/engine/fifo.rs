//! Queues in the order of their ages, joined at the end and mostly left at the front.
//!
//! Whoever leaves from the middle leaves a gap, into which nobody else may step; gaps are closed when they are more
//! than half. It is kept in blocks, so that growing moves nothing.

use std::collections::VecDeque;

use super::moment::Moment;
use super::queues::QueueId;

/// How many places a block has.
const BLOCK: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Fifo {
    /// All full but the last.
    blocks: VecDeque<Vec<Place>>,
    /// How many places of the first block are left behind.
    begin: usize,
    /// How many places come after those, and how many of them are taken. The first always is.
    places: usize,
    taken: usize,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    since: Moment,
    /// None in a gap.
    queue: Option<QueueId>,
}

impl Fifo {
    pub(super) fn len(&self) -> usize {
        self.taken
    }

    pub(super) fn is_empty(&self) -> bool {
        self.taken == 0
    }

    /// The eldest, and since when it waits.
    pub(super) fn first(&self) -> Option<(Moment, QueueId)> {
        let place = self.blocks.front()?.get(self.begin)?;
        place.queue.map(|queue| (place.since, queue))
    }

    /// Whoever has so many places before it, if it did not leave.
    pub(super) fn after(&self, places: usize) -> Option<QueueId> {
        (places < self.places).then(|| self.place(places).queue)?
    }

    /// Lets a queue join, if it is the youngest or steps back into its own gap; answers whether it did.
    pub(super) fn push(&mut self, since: Moment, queue: QueueId) -> bool {
        let youngest = self.places == 0 || self.place(self.places - 1).since < since;
        if youngest {
            match self.blocks.back_mut() {
                Some(last) if last.len() < BLOCK => last.push(Place { since, queue: Some(queue) }),
                None => self.blocks.push_back(vec![Place { since, queue: Some(queue) }]),
                Some(_) => {
                    let mut block = Vec::with_capacity(BLOCK);
                    block.push(Place { since, queue: Some(queue) });
                    self.blocks.push_back(block);
                }
            }
            self.places += 1;
            self.taken += 1;
            return true;
        }
        let Some(at) = self.search(since).filter(|at| self.place(*at).queue.is_none()) else { return false };
        self.place_mut(at).queue = Some(queue);
        self.taken += 1;
        true
    }

    /// Lets a queue leave; answers whether it was there.
    pub(super) fn remove(&mut self, since: Moment, queue: QueueId) -> bool {
        if self.first() == Some((since, queue)) {
            self.taken -= 1;
            self.drop_first();
            while self.places > 0 && self.place(0).queue.is_none() {
                self.drop_first();
            }
            return true;
        }
        let Some(at) = self.search(since).filter(|at| self.place(*at).queue == Some(queue)) else {
            return false;
        };
        self.place_mut(at).queue = None;
        self.taken -= 1;
        if self.places > 2 * self.taken + BLOCK {
            self.close_gaps();
        }
        true
    }

    fn drop_first(&mut self) {
        self.begin += 1;
        self.places -= 1;
        if self.begin == BLOCK {
            self.begin = 0;
            self.blocks.pop_front();
        } else if self.places == 0 {
            // The only block is used again.
            self.begin = 0;
            if let Some(block) = self.blocks.front_mut() {
                block.clear();
            }
        }
    }

    fn close_gaps(&mut self) {
        let old = std::mem::take(self);
        for place in old.blocks.into_iter().flatten().skip(old.begin) {
            if let Some(queue) = place.queue {
                self.push(place.since, queue);
            }
        }
    }

    fn place(&self, at: usize) -> &Place {
        let at = self.begin + at;
        &self.blocks[at / BLOCK][at % BLOCK]
    }

    fn place_mut(&mut self, at: usize) -> &mut Place {
        let at = self.begin + at;
        &mut self.blocks[at / BLOCK][at % BLOCK]
    }

    /// The place of a moment.
    fn search(&self, since: Moment) -> Option<usize> {
        let (mut low, mut high) = (0, self.places);
        while low < high {
            let middle = low.midpoint(high);
            if self.place(middle).since < since {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low < self.places && self.place(low).since == since).then_some(low)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use trapline_core::Timestamp;

    use super::*;

    fn moment(rank: u64) -> Moment {
        Moment { at: Timestamp::ZERO, rank }
    }

    /// Against a tree: joining in order, leaving from anywhere, stepping back.
    #[test]
    fn it_keeps_the_order_of_ages() {
        let mut fifo = Fifo::default();
        let mut expected = BTreeMap::new();
        let mut gone: Vec<u64> = Vec::new();
        let mut random = 7_u64;
        for rank in 1..50_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let draw = random >> 33;
            if !draw.is_multiple_of(3) || expected.is_empty() {
                assert!(fifo.push(moment(rank), QueueId(rank as u32)));
                expected.insert(rank, QueueId(rank as u32));
            }
            let phase_of_leaving = (rank / 5000) % 2 == 1;
            for _ in 0..if phase_of_leaving { 2 } else { 1 } {
                let pick = if draw.is_multiple_of(2) { 0 } else { draw % rank };
                if let Some((rank, queue)) =
                    expected.range(pick..).next().map(|(rank, queue)| (*rank, *queue))
                {
                    assert!(fifo.remove(moment(rank), queue));
                    assert!(!fifo.remove(moment(rank), queue));
                    expected.remove(&rank);
                    gone.push(rank);
                }
            }
            if draw.is_multiple_of(5)
                && let Some(back) = gone.pop()
            {
                let may = fifo.push(moment(back), QueueId(back as u32));
                if may {
                    expected.insert(back, QueueId(back as u32));
                }
            }
            assert_eq!(fifo.len(), expected.len());
            let first = expected.first_key_value().map(|(rank, queue)| (moment(*rank), *queue));
            assert_eq!(fifo.first(), first);
            if let Some((_, queue)) = first {
                assert_eq!(fifo.after(0), Some(queue));
            }
            assert!(fifo.places <= 2 * fifo.taken + BLOCK + 1);
        }
    }
}
