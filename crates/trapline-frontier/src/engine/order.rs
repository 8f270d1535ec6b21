//! The order inside a queue: which of its pending URLs is next.
//!
//! What is admitted goes into lanes, one a class: lists that grow only at their ends and cost two links an entry.
//! What comes back (retries, expired leases, released URLs whose neighbours have moved on) goes into a tree, and so does
//! what belongs into the middle of a lane, as it happens in `date` order. The next URL is the better of the two heads.
//!
//! Only pending URLs that are due stand here.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use trapline_core::Timestamp;

use super::moment::Rank;
use super::urls::{Band, EntryId, State, Urls};
use crate::settings::Order as Setting;

/// The order of one queue.
#[derive(Debug)]
pub(super) struct Order {
    /// The lane of the best class; without a first entry if there is none.
    best: Lane,
    len: u32,
    /// What few queues need. Boxed, because there may be millions of queues.
    more: Option<Box<More>>,
}

#[derive(Debug, Default)]
struct More {
    /// The other lanes, the best of them last.
    rest: Vec<Lane>,
    tree: BTreeMap<Spot, EntryId>,
}

#[derive(Clone, Copy, Debug)]
struct Lane {
    class: u8,
    first: EntryId,
    last: EntryId,
}

impl Lane {
    const EMPTY: Self = Self { class: 0, first: EntryId::NONE, last: EntryId::NONE };

    fn is_empty(self) -> bool {
        self.first == EntryId::NONE
    }
}

impl Default for Order {
    fn default() -> Self {
        Self { best: Lane::EMPTY, len: 0, more: None }
    }
}

/// Where an entry stands among all of its queue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Spot {
    class: u8,
    band: Band,
    place: u64,
    /// In `date` order, the URL's text.
    text: Option<Arc<str>>,
    admitted: Rank,
}

/// A place in the middle, with as much room before it (for `lifo`) as behind it (for what is put last there).
const MIDDLE: u64 = 1 << 63;

/// In `date` order a rank tells the time at which it was drawn, so that what is scheduled for its admission need not
/// remember the date. So many ranks have the same one; whatever is drawn beyond them has a date of its own.
const RANKS_OF_DATE: u32 = 21;

/// From here on (the year 2109) ranks tell no date any more, or there would soon be none left.
const DATES_END: u64 = 1 << 42;

/// The first rank of a time; 0 where ranks tell none.
pub(super) fn dated_rank(now: Timestamp) -> Rank {
    let date = now.as_millis();
    if date < DATES_END { date << RANKS_OF_DATE } else { 0 }
}

/// The date that a rank tells.
pub(super) fn date_of_rank(rank: Rank) -> u64 {
    rank >> RANKS_OF_DATE
}

/// The place of an entry that has no other: by its admission.
fn place_of_admitted(order: Setting, rank: Rank) -> u64 {
    match order {
        Setting::Fifo => rank,
        Setting::Lifo => MIDDLE - rank,
        Setting::Date => date_of_rank(rank),
    }
}

/// The place behind everything of its class; none in `date` order, where places are not given away.
pub(super) fn place_behind_all(order: Setting, rank: Rank) -> Option<u64> {
    match order {
        Setting::Fifo => Some(rank),
        Setting::Lifo => Some(MIDDLE + rank),
        Setting::Date => None,
    }
}

impl Order {
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All entries, in no particular order; None if a lane does not lead from its first to its last one in their order, or is
    /// longer than it may be.
    pub(super) fn all(&self, setting: Setting, urls: &Urls) -> Option<Vec<EntryId>> {
        let mut all: Vec<EntryId> = self.more.iter().flat_map(|more| more.tree.values().copied()).collect();
        for (class, first, last) in self.lane_ends() {
            let (mut before, mut at) = (EntryId::NONE, first);
            while let Some(id) = at.some() {
                let is_live = urls.state(id) == State::Pending && !urls.live(id).in_tree;
                if !is_live
                    || urls[id].class != class
                    || urls.live(id).before != before
                    || before.some().is_some_and(|before| compare(setting, urls, before, id).is_gt())
                    || all.len() > self.len as usize
                {
                    return None;
                }
                all.push(id);
                (before, at) = (id, urls.live(id).after);
            }
            if before != last {
                return None;
            }
        }
        Some(all)
    }

    /// The lanes: their classes, first and last entries.
    pub(super) fn lane_ends(&self) -> impl Iterator<Item = (u8, EntryId, EntryId)> {
        let lanes = self.lanes().filter(|lane| !lane.is_empty());
        lanes.map(|lane| (lane.class, lane.first, lane.last))
    }

    /// The order that had so many entries and these lanes; those of the tree are to be put back.
    pub(super) fn restore(len: u32, lanes: &[(u8, EntryId, EntryId)]) -> Self {
        let mut order = Self { len, ..Self::default() };
        for (class, first, last) in lanes {
            *order.lane(*class) = Lane { class: *class, first: *first, last: *last };
        }
        order
    }

    /// Puts an entry back into the tree, without counting it.
    pub(super) fn restore_in_tree(&mut self, setting: Setting, urls: &Urls, id: EntryId) {
        self.more().tree.insert(spot(setting, urls, id), id);
    }

    /// Puts an entry where its class, band and place say. The latest rank tells whether it was admitted just now.
    pub(super) fn insert(&mut self, setting: Setting, urls: &mut Urls, id: EntryId, latest: Rank) {
        self.len += 1;
        if urls.live(id).band == Band::Fresh && (setting != Setting::Date || urls.is_dated) {
            let lane = self.lane(urls[id].class);
            let (first, last) = (lane.first, lane.last);
            let neighbours = if lane.is_empty() {
                (lane.first, lane.last) = (id, id);
                Some((EntryId::NONE, EntryId::NONE))
            } else if is_last_of_all(setting, urls, id, latest) || compare(setting, urls, id, last).is_gt() {
                lane.last = id;
                urls.set_after(last, id);
                Some((last, EntryId::NONE))
            } else if compare(setting, urls, id, first).is_lt() {
                lane.first = id;
                urls.live_mut(first).before = id;
                Some((EntryId::NONE, first))
            } else {
                None
            };
            if let Some(neighbours) = neighbours {
                let live = urls.live_mut(id);
                (live.before, live.after) = neighbours;
                live.in_tree = false;
                return;
            }
        }
        urls.live_mut(id).in_tree = true;
        self.more().tree.insert(spot(setting, urls, id), id);
    }

    /// Takes an entry out, wherever it stands.
    pub(super) fn remove(&mut self, setting: Setting, urls: &mut Urls, id: EntryId) {
        self.len -= 1;
        let live = urls.live(id);
        if live.in_tree {
            let removed = self.more().tree.remove(&spot(setting, urls, id));
            debug_assert_eq!(removed, Some(id));
            self.tidy();
            return;
        }
        let (class, before, after) = (urls[id].class, live.before, live.after);
        let lane = self.lane(class);
        match before.some() {
            Some(before) => urls.live_mut(before).after = after,
            None => lane.first = after,
        }
        match after.some() {
            Some(after) => urls.live_mut(after).before = before,
            None => lane.last = before,
        }
        if lane.is_empty() {
            self.drop_lane(class);
            self.tidy();
        }
    }

    /// The next URL, most likely.
    pub(super) fn likely(&self) -> Option<EntryId> {
        self.best.first.some()
    }

    /// The next URL.
    pub(super) fn first(&self, setting: Setting, urls: &Urls) -> Option<EntryId> {
        let from_lane = self.best.first.some();
        let Some((best, &from_tree)) = self.more.as_ref().and_then(|more| more.tree.first_key_value()) else {
            return from_lane;
        };
        match from_lane {
            Some(id) if is_before(setting, urls, id, best) => Some(id),
            _ => Some(from_tree),
        }
    }

    /// All from this one on, which stands here, in their order.
    pub(super) fn from(&self, setting: Setting, urls: &Urls, id: EntryId) -> impl Iterator<Item = EntryId> {
        let here = spot(setting, urls, id);
        let mut lane = if urls.live(id).in_tree {
            // Nearly all that stand in the tree stand before the lane of their class.
            self.in_lanes(urls, EntryId::NONE).find(|id| !is_before(setting, urls, *id, &here))
        } else {
            Some(id)
        };
        let mut tree = self.more.iter().flat_map(move |more| more.tree.range(here.clone()..)).peekable();
        std::iter::from_fn(move || {
            if let Some((best, id)) = tree.peek().copied()
                && lane.is_none_or(|id| !is_before(setting, urls, id, best))
            {
                tree.next();
                return Some(*id);
            }
            let id = lane?;
            lane = self.in_lanes(urls, id).next();
            Some(id)
        })
    }

    /// What stands in lanes behind this one, or all of it, in its order.
    fn in_lanes<'a>(&'a self, urls: &'a Urls, behind: EntryId) -> impl Iterator<Item = EntryId> + 'a {
        let follower = move |id: EntryId| match id.some() {
            Some(id) => urls.live(id).after.some().or_else(|| {
                let class = urls[id].class;
                self.lanes().find(|lane| lane.class > class)?.first.some()
            }),
            None => self.best.first.some(),
        };
        std::iter::successors(follower(behind), move |id| follower(*id))
    }

    /// All lanes, the best first.
    fn lanes(&self) -> impl Iterator<Item = &Lane> {
        let rest = self.more.iter().flat_map(|more| more.rest.iter().rev());
        std::iter::once(&self.best).filter(|lane| !lane.is_empty()).chain(rest)
    }

    /// The lane of a class, made if there is none.
    fn lane(&mut self, class: u8) -> &mut Lane {
        if self.best.is_empty() {
            self.best = Lane { class, ..Lane::EMPTY };
        } else if class < self.best.class {
            let best = self.best;
            self.more().rest.push(best);
            self.best = Lane { class, ..Lane::EMPTY };
        } else if class > self.best.class {
            let rest = &mut self.more().rest;
            let index = match rest.binary_search_by(|lane| class.cmp(&lane.class)) {
                Ok(index) => index,
                Err(index) => {
                    rest.insert(index, Lane { class, ..Lane::EMPTY });
                    index
                }
            };
            return &mut rest[index];
        }
        &mut self.best
    }

    fn drop_lane(&mut self, class: u8) {
        if self.best.class == class {
            self.best = self.more.as_mut().and_then(|more| more.rest.pop()).unwrap_or(Lane::EMPTY);
        } else {
            self.more().rest.retain(|lane| lane.class != class);
        }
    }

    /// Gives back what is not needed any more.
    fn tidy(&mut self) {
        if self.more.as_ref().is_some_and(|more| more.rest.is_empty() && more.tree.is_empty()) {
            self.more = None;
        }
    }

    fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }
}

/// The place of an entry among its class and band.
pub(super) fn place(setting: Setting, urls: &Urls, id: EntryId) -> u64 {
    urls.more(id).place.unwrap_or_else(|| place_of_admitted(setting, urls.live(id).admitted()))
}

/// Whether an entry certainly stands behind all that were admitted before: then nobody need look at them.
fn is_last_of_all(setting: Setting, urls: &Urls, id: EntryId, latest: Rank) -> bool {
    setting == Setting::Fifo && place(setting, urls, id) == latest
}

/// Which of two stands first that were both admitted, in the same class. Texts are looked at only where nothing else decides:
/// they may be in a log.
fn compare(setting: Setting, urls: &Urls, one: EntryId, other: EntryId) -> Ordering {
    let places = place(setting, urls, one).cmp(&place(setting, urls, other));
    places.then_with(|| match setting {
        Setting::Date => {
            (urls.url(one), urls.live(one).admitted()).cmp(&(urls.url(other), urls.live(other).admitted()))
        }
        Setting::Fifo | Setting::Lifo => urls.live(one).admitted().cmp(&urls.live(other).admitted()),
    })
}

/// Whether an entry stands before a spot. Again texts decide last.
fn is_before(setting: Setting, urls: &Urls, id: EntryId, there: &Spot) -> bool {
    let here = (urls[id].class, urls.live(id).band, place(setting, urls, id));
    match here.cmp(&(there.class, there.band, there.place)) {
        Ordering::Equal => spot(setting, urls, id) < *there,
        ordering => ordering.is_lt(),
    }
}

fn spot(setting: Setting, urls: &Urls, id: EntryId) -> Spot {
    let live = urls.live(id);
    let text = (setting == Setting::Date && live.band == Band::Fresh).then(|| Arc::from(&*urls.url(id)));
    let place = place(setting, urls, id);
    Spot { class: urls[id].class, band: live.band, place, text, admitted: live.admitted() }
}
