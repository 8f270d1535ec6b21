//! One crawl: everything it holds.
//!
//! Each verb has a file of its own; here are the steps they share. An entry [`enter`](Crawl::enter)s a state and
//! [`leave`](Crawl::leave)s it, which keeps every count; after its queues have been touched they
//! [`find their state`](Crawl::refresh).

use std::sync::Arc;

use trapline_core::{Identity, IdentityKey, Timestamp};

use super::album::Album;
use super::census::Census;
use super::groups::Groups;
use super::jobs::Jobs;
use super::leases::Leases;
use super::line::Lines;
use super::moment::{Moment, Rank};
use super::notes::Notes;
use super::order::{date_of_rank, dated_rank, place_behind_all};
use super::payloads::Payloads;
use super::queues::{Queue, QueueId, Queues};
use super::room::Room;
use super::timers::{Event, Timers};
use super::urls::{Band, EntryId, State, Urls};
use crate::library::Library;
use crate::planted::{Fault, Planted};
use crate::report::{CrawlState, UrlState};
use crate::settings::{Order, Settings};
use crate::verbs::NewCrawl;

#[derive(Debug)]
pub(super) struct Crawl {
    pub(super) name: Arc<str>,
    pub(super) key: IdentityKey,
    pub(super) settings: Settings,
    pub(super) started: Timestamp,
    pub(super) state: CrawlState,
    /// The latest time seen. It never goes back.
    pub(super) now: Timestamp,
    /// The latest rank drawn.
    pub(super) rank: Rank,

    pub(super) urls: Urls,
    pub(super) queues: Queues,
    pub(super) groups: Groups,
    /// One line a partition.
    pub(super) lines: Lines,
    pub(super) timers: Timers,
    pub(super) leases: Leases,
    pub(super) dead_letters: Album<EntryId, Death>,
    /// Why URLs were disregarded, where a reason was given.
    pub(super) disregards: Album<EntryId, String>,
    pub(super) notes: Notes,
    pub(super) jobs: Jobs,
    /// Whether purges and deletions have left entries behind that are not swept yet. If not, no entry can be gone,
    /// and nobody needs to look.
    pub(super) unswept: bool,

    /// Which reconsideration of retired queues holds: those that retired in an earlier one are not retired.
    pub(super) generation: u64,
    /// When each generation ended.
    pub(super) reconsidered: Vec<Moment>,
    /// When the length of the budget periods was last set, and from when on charges counted then.
    pub(super) period_set: Moment,
    pub(super) charged_before_period_set: Timestamp,
    /// The timer of the present budget period.
    pub(super) period_timer: Option<Moment>,

    pub(super) census: Census,
    pub(super) url_counts: [u64; 6],
    pub(super) fetched: u64,
    pub(super) bytes: u64,
    pub(super) spent: u64,
    pub(super) granted: u64,
    pub(super) expired: u64,
    pub(super) planted: Planted,
}

/// Where a crawl may keep what memory is not the place for.
#[derive(Clone, Debug, Default)]
pub(super) struct Outside {
    /// Its requests.
    pub(super) library: Option<Arc<dyn Library>>,
    /// What memory has no room for.
    pub(super) room: Option<Arc<Room>>,
    /// Whether ranks tell dates in it, if that is its order.
    pub(super) dates_ranks: bool,
}

/// Why and when an entry died.
#[derive(Clone, Debug)]
pub(super) struct Death {
    pub(super) reason: String,
    pub(super) at: Timestamp,
    /// The same, among all commands.
    pub(super) rank: Rank,
}

impl Crawl {
    pub(super) fn new(
        name: Arc<str>,
        now: Timestamp,
        new: NewCrawl,
        outside: Outside,
        planted: Planted,
    ) -> Self {
        let seed = u64::from_le_bytes(new.key.as_bytes()[..8].try_into().expect("a key has 32 bytes"));
        let notes = Notes::new(outside.library.clone());
        let mut urls = Urls::new(Payloads::new(outside.library), outside.room.as_ref());
        urls.is_dated = outside.dates_ranks && new.settings.order == Order::Date;
        if let Some(most) = new.settings.max_urls {
            urls.reserve(most);
        }
        Self {
            name,
            key: new.key,
            settings: new.settings,
            started: now,
            state: CrawlState::Running,
            now,
            rank: 0,
            urls,
            queues: Queues::new(seed),
            groups: Groups::default(),
            lines: Lines::new(new.partitions),
            timers: Timers::default(),
            leases: Leases::default(),
            dead_letters: Album::default(),
            disregards: Album::default(),
            notes,
            jobs: Jobs::default(),
            unswept: false,
            generation: 0,
            reconsidered: Vec::new(),
            period_set: Moment { at: now, rank: 0 },
            charged_before_period_set: now,
            period_timer: None,
            census: Census::default(),
            url_counts: [0; 6],
            fetched: 0,
            bytes: 0,
            spent: 0,
            granted: 0,
            expired: 0,
            planted,
        }
    }

    /// The next rank: later than everything so far.
    pub(super) fn draw(&mut self) -> Rank {
        self.rank += 1;
        if self.urls.is_dated {
            self.rank = self.rank.max(dated_rank(self.now));
        }
        self.rank
    }

    /// This moment, later than everything so far.
    pub(super) fn this_moment(&mut self) -> Moment {
        Moment { at: self.now, rank: self.draw() }
    }

    /// Gives an entry the place of one admitted at this moment and scheduled for `scheduled`.
    pub(super) fn place_as_admitted(&mut self, id: EntryId, scheduled: Timestamp) {
        let rank = self.draw();
        let live = self.urls.live_mut(id);
        live.set_admitted(rank);
        live.band = Band::Fresh;
        let date = scheduled.as_millis();
        let is_told = self.urls.is_dated && date_of_rank(rank) == date;
        if self.settings.order == Order::Date && !is_told {
            self.urls.more_mut(id).place = Some(date);
        } else if let Some(more) = self.urls.existing_more(id) {
            more.place = None;
        }
    }

    /// Puts an entry before those admitted: it comes back, as of a time.
    pub(super) fn place_as_returned(&mut self, id: EntryId, since: Timestamp) {
        self.urls.live_mut(id).band = Band::Returned;
        self.urls.more_mut(id).place = Some(since.as_millis());
    }

    /// Moves a pending entry to a class, behind what waits there.
    pub(super) fn move_to_class(&mut self, id: EntryId, class: u8) {
        let state = self.urls.state(id);
        self.leave(id);
        let rank = self.draw();
        self.urls[id].class = class;
        if state == State::Pending
            && let Some(place) = place_behind_all(self.settings.order, rank)
        {
            self.urls.live_mut(id).band = Band::Fresh;
            self.urls.more_mut(id).place = Some(place);
        }
        self.enter(id, state);
    }

    /// An entry takes a state on: it is counted, and put where its state says. A waiting one must know when it
    /// is due, a leased one its lease, a dead one its death.
    pub(super) fn enter(&mut self, id: EntryId, state: State) {
        let queue = self.urls.set_state(id, state);
        let queue = &mut self.queues[queue];
        if state.is_pending() {
            self.urls.live_mut(id).purges = queue.purges();
            self.census.add_pending(queue, self.generation);
        }
        match state {
            State::Pending => queue.order.insert(self.settings.order, &mut self.urls, id, self.rank),
            State::Retrying | State::Scheduled => {
                queue.rare_mut().waiting += 1;
                self.timers.set(self.urls.more(id).due, Event::Due(id));
            }
            State::Leased => queue.leased += 1,
            State::Done => queue.done += 1,
            State::Revisiting => {
                queue.done += 1;
                queue.rare_mut().visits += 1;
                self.census.add_visit(queue, self.generation);
                self.timers.set(self.urls.more(id).due, Event::Due(id));
            }
            State::Disregarded => queue.rare_mut().disregarded += 1,
            State::Dead => queue.rare_mut().dead += 1,
            State::Free => {}
        }
        self.url_counts[state.public() as usize] += 1;
    }

    /// An entry leaves its state: it is no longer counted, and nothing waits for it any more.
    pub(super) fn leave(&mut self, id: EntryId) {
        if self.urls.state(id) != State::Pending {
            self.forget_timers(id);
        }
        self.leave_untimed(id);
    }

    /// The same, once its timer has gone off or its lease is gone.
    pub(super) fn leave_untimed(&mut self, id: EntryId) {
        let record = &self.urls[id];
        let state = record.state();
        let queue = &mut self.queues[record.queue];
        if state.is_pending() {
            self.census.remove_pending(queue, self.generation, 1);
        }
        match state {
            State::Pending => queue.order.remove(self.settings.order, &mut self.urls, id),
            State::Retrying | State::Scheduled => queue.rare_mut().waiting -= 1,
            State::Leased => queue.leased -= 1,
            State::Done => queue.done -= 1,
            State::Revisiting => {
                queue.done -= 1;
                queue.rare_mut().visits -= 1;
                self.census.remove_visits(queue, self.generation, 1);
            }
            State::Disregarded => {
                queue.rare_mut().disregarded -= 1;
                self.disregards.remove(&id);
            }
            State::Dead => {
                queue.rare_mut().dead -= 1;
                self.dead_letters.remove(&id);
            }
            State::Free => {}
        }
        self.url_counts[state.public() as usize] -= 1;
    }

    /// Cancels what waits for an entry: its timer, or its lease with its expiry.
    fn forget_timers(&mut self, id: EntryId) {
        match self.urls.state(id) {
            State::Retrying | State::Scheduled | State::Revisiting => {
                self.timers.cancel(self.urls.more(id).due, Event::Due(id));
            }
            State::Leased => {
                let lease = self.urls.live(id).lease();
                if let Some(grant) = self.leases.remove(lease) {
                    self.timers.cancel(self.expiry_of(grant.deadline), Event::Expiry(lease));
                }
            }
            _ => {}
        }
    }

    /// Whether an entry was purged or deleted with its queue, and only waits to be swept.
    pub(super) fn is_gone(&self, id: EntryId) -> bool {
        if !self.unswept {
            return false;
        }
        let record = &self.urls[id];
        let queue = &self.queues[record.queue];
        record.deletions != queue.deletions()
            || record.state().is_pending() && self.urls.live(id).purges != queue.purges()
    }

    /// Frees the slot of an entry that is gone. It is counted nowhere any more.
    pub(super) fn sweep(&mut self, id: EntryId) {
        self.forget_timers(id);
        self.discard(id);
    }

    /// The same, once its timer has gone off.
    pub(super) fn discard(&mut self, id: EntryId) {
        self.dead_letters.remove(&id);
        self.disregards.remove(&id);
        self.urls.remove(id);
    }

    /// Forgets an entry altogether.
    pub(super) fn drop_entry(&mut self, id: EntryId) {
        self.leave(id);
        self.urls.remove(id);
    }

    /// The newest entry of a URL that is not gone.
    pub(super) fn find_url(&mut self, identity: Identity) -> Option<EntryId> {
        while let Some(id) = self.urls.newest(identity) {
            if !self.is_gone(id) {
                return Some(id);
            }
            self.sweep(id);
        }
        None
    }

    /// The same for questions, which sweep nothing: a log of commands would not know.
    pub(super) fn see_url(&self, identity: Identity) -> Option<EntryId> {
        let mut entries = std::iter::successors(self.urls.newest(identity), |id| self.urls.older(*id));
        entries.find(|id| !self.is_gone(*id))
    }

    /// All entries of a URL that are not gone, the newest first.
    pub(super) fn find_all(&mut self, identity: Identity) -> Vec<EntryId> {
        let mut found = Vec::new();
        let mut next = self.find_url(identity);
        while let Some(id) = next {
            next = self.urls.older(id);
            if self.is_gone(id) {
                self.sweep(id);
            } else {
                found.push(id);
            }
        }
        found
    }

    /// The queue of a key, made if there is none.
    pub(super) fn queue_of(&mut self, key: &Arc<str>) -> QueueId {
        let partitions = self.lines.len();
        let partition = |key: &str| trapline_core::partition_of(key, partitions) as u16;
        let (id, made) = self.queues.find_or_make(key, partition);
        if made {
            self.census.add(&self.queues[id], self.generation);
        }
        id
    }

    /// Finishes the crawl if it has reached one of its limits.
    pub(super) fn check_limits(&mut self) {
        if let Some(reason) = self.limit_reached() {
            self.finish(reason.to_owned());
        }
    }

    /// One of its limits that it has reached.
    fn limit_reached(&self) -> Option<&'static str> {
        let settings = &self.settings;
        let over = |limit: Option<u64>, count: u64| limit.is_some_and(|limit| count >= limit);
        if over(settings.max_urls, self.fetched) {
            Some("max_urls")
        } else if over(settings.max_bytes, self.bytes) {
            Some("max_bytes")
        } else if settings.max_time.is_some_and(|limit| self.now >= self.started + limit) {
            Some("max_time")
        } else {
            None
        }
    }

    /// Whether the next verb changes something before it begins, whatever its time.
    pub(super) fn has_overdue(&self) -> bool {
        self.has_work()
            || self.notes.are_overdue(self.now)
            || !self.is_finished() && self.limit_reached().is_some()
    }

    /// Ends the crawl; the first reason stays.
    pub(super) fn finish(&mut self, reason: String) {
        if !self.is_finished() {
            self.state = CrawlState::Finished(reason);
        }
    }

    pub(super) fn is_finished(&self) -> bool {
        matches!(self.state, CrawlState::Finished(_))
    }

    /// Whether, outside retired queues, nothing is pending or waits for its next visit, and no lease is out.
    pub(super) fn is_exhausted(&self) -> bool {
        let pending = self.url_counts[UrlState::Pending as usize];
        self.url_counts[UrlState::Leased as usize] == 0
            && self.census.nothing_to_do()
            && !(self.planted.is(Fault::RetiredCounted) && pending > 0)
    }

    pub(super) fn order(&self) -> Order {
        self.settings.order
    }

    pub(super) fn queue_of_entry(&self, id: EntryId) -> &Queue {
        &self.queues[self.urls[id].queue]
    }
}
