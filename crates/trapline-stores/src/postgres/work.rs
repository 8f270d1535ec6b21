//! One step of work on a crawl: the queues and entries it touches, brought here from their rows, the rules applied to
//! them, and what follows from that to be written back.
//!
//! Nothing here talks to the database: [`super::load`] brings rows and [`super::save`] writes them. The rules are those of
//! the engine, with one difference: no timers. What will end by itself is written down as the moment at which a queue may
//! be served, and becomes true when that moment has passed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use trapline_core::{Candidate, Identity, Terms, Timestamp};
use trapline_frontier::{NoteWrite, Order};

use super::crawl::Crawl;
use super::entry::{Entry, FRESH, RETURNED, Spot, State, TIE_BYTES, Wait};
use super::floors::Floors;
use super::moment::{Moment, Rank, Ranks, column};
use super::queue::{BARE, BY_HAND, FULL, INACTIVE, NOT_IN_LINE, NOT_RETIRED, OVER_BUDGET, Queue, READY};

/// A step of work.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) crawl: Crawl,
    /// Whether nobody else works on the crawl.
    pub(super) alone: bool,
    pub(super) now: i64,
    pub(super) ranks: Ranks,
    pub(super) queues: BTreeMap<i64, Queue>,
    pub(super) by_key: BTreeMap<Arc<str>, i64>,
    pub(super) groups: BTreeMap<i64, Group>,
    pub(super) groups_by_name: BTreeMap<Arc<str>, i64>,
    pub(super) entries: BTreeMap<i64, Entry>,
    /// The entries of each URL, the newest first. A URL that was looked for and is unknown has none.
    pub(super) by_identity: BTreeMap<Identity, Vec<i64>>,
    /// Which entry each lease is of, among those that are here.
    pub(super) leases: BTreeMap<i64, i64>,
    /// Something is not here that was to be: others have changed it meanwhile, and the step has to begin again.
    pub(super) again: bool,
    /// URLs that are known, of which nobody needs to know more.
    pub(super) known: BTreeSet<Identity>,
    pub(super) notes: Vec<NoteWrite>,
    pub(super) tally: Tally,
    pub(super) floors: Floors,
}

/// Queues that share a pace.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) next: Moment,
    /// Whether members may be parked for it.
    pub(super) parked: bool,
    pub(super) touched: bool,
}

/// What a step adds to the counts of its crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// By state, as [`UrlState`](trapline_frontier::UrlState) has them.
    pub(super) urls: [i64; 6],
    pub(super) visits: i64,
    pub(super) fetched: i64,
    pub(super) bytes: u64,
    pub(super) spent: i64,
    pub(super) granted: i64,
    pub(super) expired: i64,
}

impl Work {
    pub(super) fn new(crawl: Crawl, now: i64, ranks: Ranks) -> Self {
        Self {
            crawl,
            alone: false,
            now,
            ranks,
            queues: BTreeMap::new(),
            by_key: BTreeMap::new(),
            groups: BTreeMap::new(),
            groups_by_name: BTreeMap::new(),
            entries: BTreeMap::new(),
            by_identity: BTreeMap::new(),
            leases: BTreeMap::new(),
            again: false,
            known: BTreeSet::new(),
            notes: Vec::new(),
            tally: Tally::default(),
            floors: Floors::default(),
        }
    }

    pub(super) fn draw(&mut self) -> Rank {
        self.ranks.draw()
    }

    /// This moment, later than everything so far.
    pub(super) fn this_moment(&mut self) -> Moment {
        Moment::set(self.now, self.draw(), self.now)
    }

    /// A moment that this command sets.
    pub(super) fn moment(&mut self, at: i64) -> Moment {
        Moment::set(at, self.draw(), self.now)
    }

    pub(super) fn queue(&self, id: i64) -> &Queue {
        &self.queues[&id]
    }

    pub(super) fn queue_mut(&mut self, id: i64) -> &mut Queue {
        let queue = self.queues.get_mut(&id).expect("a queue that was loaded");
        queue.touched = true;
        queue
    }

    pub(super) fn entry(&self, id: i64) -> &Entry {
        &self.entries[&id]
    }

    pub(super) fn entry_mut(&mut self, id: i64) -> &mut Entry {
        self.entries.get_mut(&id).expect("an entry that was loaded")
    }

    /// The queue of a key, if it is here.
    pub(super) fn queue_here(&self, key: &Arc<str>) -> Option<i64> {
        self.by_key.get(key).copied().filter(|id| self.queues.contains_key(id))
    }

    /// The newest entry of a URL.
    pub(super) fn newest(&self, identity: Identity) -> Option<i64> {
        self.by_identity.get(&identity)?.first().copied()
    }

    // Places.

    /// Gives an entry the place of one admitted at this moment and scheduled for `scheduled`.
    pub(super) fn place_as_admitted(&mut self, id: i64, scheduled: i64) {
        let rank = self.draw();
        let spot = match self.crawl.settings.order {
            Order::Fifo => Spot { band: FRESH, place: rank, tie: Vec::new(), rank },
            Order::Lifo => Spot { band: FRESH, place: -rank, tie: Vec::new(), rank },
            Order::Date => {
                let url = &self.entry(id).url;
                let tie = url[..url.len().min(TIE_BYTES)].to_vec();
                Spot { band: FRESH, place: scheduled, tie, rank }
            }
        };
        self.entry_mut(id).spot = spot;
    }

    /// Puts an entry before those admitted: it comes back, as of a time.
    pub(super) fn place_as_returned(&mut self, id: i64, since: i64) {
        let spot = &mut self.entry_mut(id).spot;
        *spot = Spot { band: RETURNED, place: since, tie: Vec::new(), rank: spot.rank };
    }

    /// Moves a pending entry to a class, behind what waits there.
    pub(super) fn move_to_class(&mut self, id: i64, class: u8) {
        let state = self.entry(id).state.clone();
        self.leave(id);
        let rank = self.draw();
        let order = self.crawl.settings.order;
        let entry = self.entry_mut(id);
        entry.class = class;
        if state == State::Pending && order != Order::Date {
            entry.spot.band = FRESH;
            entry.spot.place = rank;
        }
        self.enter(id, state);
    }

    // States of entries.

    /// An entry takes a state on: it is counted.
    pub(super) fn enter(&mut self, id: i64, state: State) {
        self.count(id, &state, 1);
        let entry = self.entries.get_mut(&id).expect("an entry that was loaded");
        if state == State::Pending {
            let row = &mut self.queues.get_mut(&entry.queue).expect("the queue of an entry").row;
            let key = (i64::from(entry.class), entry.spot.band, entry.spot.place);
            if row.ready == 1 || key < (row.head_class, row.head_band, row.head_place) {
                (row.head_class, row.head_band, row.head_place) = key;
            }
        }
        entry.state = state;
    }

    /// An entry leaves its state: it is no longer counted.
    pub(super) fn leave(&mut self, id: i64) {
        let state = self.entry(id).state.clone();
        self.count(id, &state, -1);
    }

    fn count(&mut self, id: i64, state: &State, by: i64) {
        let queue = self.entry(id).queue;
        let row = &mut self.queue_mut(queue).row;
        let (mut urls, mut visits) = (Some(state.public()), 0);
        match state {
            State::Pending => row.ready += by,
            State::Waiting(Wait::Retry | Wait::Schedule, _) => row.waiting += by,
            State::Waiting(Wait::Visit, _) => {
                row.done += by;
                row.visits += by;
                visits = by;
            }
            State::Leased(_) => row.leased += by,
            State::Done => row.done += by,
            State::Disregarded { .. } => row.disregarded += by,
            State::Dead { .. } => row.dead += by,
            State::Gone => urls = None,
        }
        self.tally.visits += visits;
        if let Some(state) = urls {
            self.tally.urls[state as usize] += by;
        }
    }

    /// Forgets an entry altogether.
    pub(super) fn drop_entry(&mut self, id: i64) {
        self.leave(id);
        let entry = self.entry_mut(id);
        entry.state = State::Gone;
        let identity = entry.identity;
        if let Some(entries) = self.by_identity.get_mut(&identity) {
            entries.retain(|entry| *entry != id);
        }
    }

    /// An entry is to be visited at a time: later, waiting for that, or at once.
    pub(super) fn schedule(&mut self, id: i64, at: i64, wait: Wait) {
        if at > self.now {
            let due = self.moment(at);
            if wait == Wait::Schedule {
                self.entry_mut(id).spot.rank = due.rank;
            }
            self.enter(id, State::Waiting(wait, due));
        } else {
            self.place_as_admitted(id, at);
            self.enter(id, State::Pending);
        }
    }

    // States of queues.

    /// Whether a queue's group waits now.
    pub(super) fn group_waits(&self, queue: &Queue) -> bool {
        self.groups.get(&queue.row.group_id).is_some_and(|group| group.next.at > self.now)
    }

    /// A queue finds its state: sessions end and begin, ages are given, and it takes its place in line.
    pub(super) fn refresh(&mut self, id: i64) {
        let now = self.now;
        let waits = self.group_waits(self.queue(id));
        let settings = self.crawl.settings.clone();
        let queue = self.queue_mut(id);
        queue.wake(now);
        let (pending, leased) = (queue.pending(), queue.row.leased);
        if pending == 0 && leased == 0 {
            queue.row.active = 0;
            queue.row.vacant = 1;
        } else if queue.row.vacant == 1 && pending > 0 {
            queue.row.vacant = 0;
            if !settings.hold_queues && !queue.is_retired() {
                queue.row.active = 1;
                queue.row.balance = queue.replenish(&settings);
            }
        }
        let (bare, full) = (queue.row.ready == 0, queue.is_full(&settings));
        queue.row.lack = if bare { BARE } else { 0 } | if full { FULL } else { 0 };
        queue.row.parked = 0;
        let ahead = queue.row.blocked_at.max(queue.row.next_at) > now;
        let used_up = queue.row.active == 1 && queue.row.balance <= 0;
        let tier = if queue.row.active == 1 && !used_up { READY } else { INACTIVE };
        if bare || full || ahead {
            queue.row.free = 0;
            if bare || full || queue.is_retired() {
                queue.row.tier = NOT_IN_LINE;
            } else {
                let since = queue.free_since();
                queue.stand(tier, if used_up { since.session_end() } else { since });
            }
            return;
        }
        if queue.row.free == 0 && !queue.is_retired() {
            queue.set_age(queue.free_since());
        }
        queue.row.free = 1;
        if queue.is_retired() {
            queue.row.tier = NOT_IN_LINE;
        } else if waits {
            self.park(id);
        } else {
            if used_up {
                let since = self.this_moment();
                let queue = self.queue_mut(id);
                queue.row.active = 0;
                queue.set_age(since);
            }
            let queue = self.queue_mut(id);
            queue.stand(tier, queue.age());
        }
    }

    /// Takes a queue out of line until its group's wait ends.
    pub(super) fn park(&mut self, id: i64) {
        let row = &mut self.queue_mut(id).row;
        row.tier = NOT_IN_LINE;
        row.parked = 1;
        let group = row.group_id;
        // Also if it says so already: somebody may be about to say that there is none.
        if let Some(group) = self.groups.get_mut(&group) {
            group.parked = true;
            group.touched = true;
        }
    }

    /// A queue was given a URL, or lost one: unless it is to wait, it finds its state.
    pub(super) fn supply(&mut self, queue: i64, deferred: Option<i64>) {
        if deferred == Some(queue) {
            return;
        }
        let moment = self.this_moment();
        self.queue_mut(queue).free(moment);
        self.refresh(queue);
    }

    /// Several queues find their state after one command. Those it freed keep their former order; then come new ones, and
    /// last those whose balance is used up, which go behind all others.
    pub(super) fn supply_all(&mut self, mut queues: Vec<i64>, deferred: Option<i64>) {
        queues.sort_by_cached_key(|id| {
            let queue = self.queue(*id);
            let age = queue.age();
            (queue.row.active == 1 && queue.row.balance <= 0, age == Moment::ZERO, age, *id)
        });
        queues.dedup();
        for queue in queues {
            self.supply(queue, deferred);
        }
    }

    /// A queue takes terms on. It must find its state afterwards.
    pub(super) fn take_terms(&mut self, id: i64, terms: &Terms, by_operator: bool) {
        if *terms == Terms::default() {
            return;
        }
        let settings = self.crawl.settings.clone();
        let changed = self.queue_mut(id).take_terms(terms, by_operator, &settings);
        self.terms_changed(id, changed);
    }

    /// What follows from changed terms: a queue over its budget gets another chance, one that was full may not be.
    pub(super) fn terms_changed(&mut self, id: i64, (any, concurrency): (bool, bool)) {
        let group = self.queue(id).group();
        let group = group.map_or(0, |name| self.groups_by_name.get(&name).copied().unwrap_or(0));
        self.queue_mut(id).row.group_id = group;
        if concurrency {
            let moment = self.this_moment();
            self.queue_mut(id).free(moment);
        }
        if any {
            self.reconsider(id);
        }
    }

    // Budgets.

    /// Retires a queue, which ends its session.
    pub(super) fn retire(&mut self, id: i64, why: i64) {
        let now = self.now;
        let row = &mut self.queue_mut(id).row;
        row.retired = why;
        row.retired_at = now;
        row.active = 0;
        row.tier = NOT_IN_LINE;
        row.parked = 0;
    }

    /// A retired queue is served again, as of a moment. It must find its state afterwards.
    pub(super) fn unretire(&mut self, id: i64, since: Moment) {
        let queue = self.queue_mut(id);
        queue.row.retired = NOT_RETIRED;
        queue.free(since);
        queue.set_age(since);
    }

    /// If a queue is over its budget, it gets another chance. It must find its state afterwards.
    pub(super) fn reconsider(&mut self, id: i64) {
        if self.queue(id).row.retired == OVER_BUDGET {
            let since = self.this_moment();
            self.unretire(id, since);
        }
    }

    pub(super) fn is_retired_by_hand(&self, id: i64) -> bool {
        self.queue(id).row.retired == BY_HAND
    }

    /// From when on charges count.
    pub(super) fn charges_from(&self) -> i64 {
        self.crawl.charges_from(self.now)
    }

    /// Finishes the crawl if it has reached one of its limits.
    pub(super) fn check_limits(&mut self) {
        let settings = &self.crawl.settings;
        let over = |limit: Option<u64>, count: u64| limit.is_some_and(|limit| count >= limit);
        let fetched = (self.crawl.fetched + self.tally.fetched).unsigned_abs();
        let bytes = self.crawl.bytes.saturating_add(self.tally.bytes);
        let ends = settings.max_time.map(|limit| column(self.crawl.started + limit));
        let reason = if over(settings.max_urls, fetched) {
            "max_urls"
        } else if over(settings.max_bytes, bytes) {
            "max_bytes"
        } else if ends.is_some_and(|ends| self.now >= ends) {
            "max_time"
        } else {
            return;
        };
        self.crawl.finish(reason);
    }

    /// After how long somebody who waits for something to claim should look, because of what was done here; None if there is no need.
    pub(super) fn news(&self) -> Option<Duration> {
        if !self.crawl.is_running() {
            return None;
        }
        if self.alone {
            return Some(Duration::ZERO);
        }
        let queues = self.queues.values().filter(|queue| queue.touched && queue.row.tier != NOT_IN_LINE);
        let queues = queues
            .map(|queue| (queue.row.serve_at, queue.stood))
            .filter(|(at, stood)| !stood || *at > self.now);
        let groups = self.groups.values().filter(|group| group.touched && group.parked);
        let entries = self.entries.values().filter_map(|entry| match &entry.state {
            State::Leased(grant) => Some(grant.deadline.at),
            State::Waiting(_, due) => Some(due.at),
            _ => None,
        });
        let soonest =
            queues.map(|(at, _)| at).chain(groups.map(|group| group.next.at)).chain(entries).min()?;
        Some(Duration::from_millis(soonest.saturating_sub(self.now).max(0).unsigned_abs()))
    }

    /// The time that callers mean by `at`.
    pub(super) fn at(at: Timestamp) -> i64 {
        column(at)
    }

    /// What a candidate costs and which class it has: its own, or what the crawl's policies say.
    pub(super) fn price(&self, candidate: &Candidate) -> (u32, u8) {
        let settings = &self.crawl.settings;
        let cost = candidate.cost.unwrap_or_else(|| settings.cost.cost(&candidate.request));
        let class = candidate.class.unwrap_or_else(|| settings.class.class(&candidate.request, cost));
        (cost, class)
    }
}
