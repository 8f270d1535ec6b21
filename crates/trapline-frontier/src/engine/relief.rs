//! Keeping within the memory that an engine may take: chunks that were not used for a while go to the shelf.
//!
//! A hand goes round over the lists of all crawls, as the hand of a clock: whatever was used since it came by last is passed
//! over once more, and whatever was not goes. So each verb puts away what the one before it has brought.

use std::ops::Bound;
use std::sync::Arc;

use super::Engine;
use super::crawl::{Crawl, Outside};
use super::room::Room;
use super::urls::Urls;
use crate::report::Pressure;
use crate::shelf::Shelf;

/// Where the hand is.
#[derive(Debug, Default)]
pub(super) struct Relief {
    crawl: Option<Arc<str>>,
    list: usize,
    chunk: usize,
    /// What the engine takes besides, when it was last counted.
    fixed: u64,
    /// How many verbs there were.
    verbs: usize,
}

/// With each verb it is counted again what so many crawls take besides.
const COUNTED_AT_ONCE: usize = 8;

/// After so many verbs a shelf that was full is asked again.
const HOPES_AFTER: usize = 256;

/// So much of all memory is for what can be put on the shelf, however much the rest takes: with less, every verb would wait for
/// what the one before it has put away.
const SHARE: u64 = 8;

impl Engine {
    /// The same, which takes no more memory than this, as far as it can: what has no room is put on a shelf.
    ///
    /// # Panics
    /// Verbs unwind, without a message, if the shelf cannot read what was put there. The engine is not to be used after that.
    #[must_use]
    pub fn within(self, max_memory: u64, shelf: Arc<dyn Shelf>) -> Self {
        Self { room: Some(Arc::new(Room::new(shelf, max_memory))), ..self }
    }

    /// Puts on the shelf what was not used for a while, if there is more in memory than may be. To be called after each verb.
    pub fn relieve(&mut self) {
        let Some(room) = self.room.clone() else { return };
        if self.relief.verbs.is_multiple_of(self.crawls.len() / COUNTED_AT_ONCE + 1) {
            self.relief.fixed = self.fixed_bytes();
        }
        if self.relief.verbs.is_multiple_of(HOPES_AFTER) {
            room.hope();
        }
        self.relief.verbs = self.relief.verbs.wrapping_add(1);
        let most = most_here(&room, self.relief.fixed);
        // Once round takes what was not used; the second time, what was used before that.
        let mut rounds = 0;
        while rounds <= 2 && room.here() > most {
            let relief = &mut self.relief;
            let from = relief.crawl.as_deref().map_or(Bound::Unbounded, Bound::Included);
            let mut crawls = self.crawls.range_mut::<str, _>((from, Bound::Unbounded));
            let Some((name, crawl)) = crawls.next() else {
                (relief.crawl, relief.list, relief.chunk) = (None, 0, 0);
                rounds += 1;
                continue;
            };
            if relief.crawl.as_ref() != Some(name) {
                (relief.crawl, relief.list, relief.chunk) = (Some(Arc::clone(name)), 0, 0);
            }
            match crawl.urls.put_away(relief.list, relief.chunk, most) {
                Some(chunk) => relief.chunk = chunk,
                None if relief.list + 1 < Urls::LISTS => (relief.list, relief.chunk) = (relief.list + 1, 0),
                None => {
                    let next = crawls.next().map(|(name, _)| Arc::clone(name));
                    (relief.crawl, relief.list, relief.chunk) = (next, 0, 0);
                    rounds += u32::from(relief.crawl.is_none());
                }
            }
        }
    }

    /// How it keeps within its memory; None if it may take any.
    pub fn pressure(&self) -> Option<Pressure> {
        self.room.as_ref().map(|room| room.pressure(self.fixed_bytes()))
    }

    /// Where a new crawl may keep what memory is not the place for.
    pub(super) fn outside(&self) -> Outside {
        Outside {
            library: self.library.clone(),
            room: self.room.clone(),
            dates_ranks: self.rules > Self::RULES_WITHOUT_DATED_RANKS,
        }
    }

    /// How much memory it takes besides what can be put on the shelf.
    fn fixed_bytes(&self) -> u64 {
        self.crawls.values().map(Crawl::fixed_bytes).sum()
    }
}

impl Crawl {
    /// The same for a crawl that is being made from an image, of which nothing is certain yet.
    pub(super) fn relieve(&mut self, room: Option<&Arc<Room>>) {
        let Some(room) = room else { return };
        let most = most_here(room, self.fixed_bytes());
        for _ in 0..2 {
            for list in 0..Urls::LISTS {
                if room.here() > most {
                    self.urls.put_away(list, 0, most);
                }
            }
        }
    }

    fn fixed_bytes(&self) -> u64 {
        let leases = self.leases.len() as usize * LEASE;
        let besides = self.timers.instants() * TIMER + leases + self.notes.len() * NOTE;
        (self.urls.fixed_bytes() + self.queues.bytes() + besides) as u64
    }
}

/// What can be put on the shelf may take so much of memory, if the rest takes that.
fn most_here(room: &Room, fixed: u64) -> u64 {
    room.most.saturating_sub(fixed).max(room.most / SHARE)
}

/// What a timer, a lease and a note take, about.
const TIMER: usize = 48;
const LEASE: usize = 64;
const NOTE: usize = 128;
