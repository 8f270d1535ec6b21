//! The deterministic state machine behind every embedded store: the same commands at the same times give the
//! same answers and the same state.
//!
//! What is absent: clocks, randomness, I/O, locks, threads. A store wraps it and adds those.
//!
//! Nothing here is linear in queues, URLs or leases, except what asks for all of them: every choice comes from what is
//! kept in order ([`mod@line`], [`timers`], [`order`]) and every count is kept as things change.

mod admit;
mod album;
mod budgets;
mod census;
mod check;
mod chunks;
mod claim;
mod crawl;
mod fifo;
mod groups;
mod image;
mod index;
mod jobs;
mod late;
mod leases;
mod line;
mod moment;
mod more;
mod notes;
mod order;
mod passing;
mod payloads;
mod queues;
mod records;
mod relief;
mod restore;
mod room;
mod scan;
mod serving;
mod settle;
mod shot;
mod spine;
mod steer;
mod texts;
mod timers;
mod urls;

use std::collections::BTreeMap;
use std::sync::Arc;

use trapline_core::{Candidate, Identity, KEY_BYTES_MAX, Timestamp};

use crate::library::Library;
use crate::planted::Planted;
use crate::report::{Page, Query, Scan, Stats};
use crate::store::{ErrorKind, StoreError};
use crate::verbs::{
    Admission, Claimed, CrawlChange, NewCrawl, Outcome, Settled, Settlement, Steer, Steered, Visit, Want,
};
use claim::{GRANTS_MAX, Granted};
use crawl::Crawl;
use room::Room;
use urls::{EntryId, State};

pub use image::{BadImage, ChunkOf, Frame, FrameOf, Picture, ReadFrame, Restore};
pub use payloads::UnreadRequest;

/// All crawls of a store: the six verbs without a lock around them, for stores that add their own.
///
/// The same verbs at the same times give the same answers, so whoever keeps a log of them can make the same
/// engine again. `scan` and `stats` count among them: they let time pass, and a job take a step.
#[derive(Debug)]
pub struct Engine {
    /// By which rules it decides.
    rules: u16,
    /// What messages call the store it is in.
    store: &'static str,
    crawls: BTreeMap<Arc<str>, Crawl>,
    /// The number of the last lease. One counter for all crawls, so that no crawl can settle another's.
    last_lease: u64,
    /// The crawl that was served last by a claim from any.
    last_served: Option<Arc<str>>,
    /// Where requests are kept, if not here.
    library: Option<Arc<dyn Library>>,
    /// How much memory it may take, if not any.
    room: Option<Arc<Room>>,
    relief: relief::Relief,
    /// Where the requests of the latest claim are, if they were not read.
    unread: Vec<UnreadRequest>,
    /// An image of it that is being taken.
    shot: Option<Box<image::Shot>>,
    planted: Planted,
}

/// Whose it is what the library has at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// An entry's, by its slot.
    Entry(u32),
    /// A note's, by its key.
    Note(String),
}

impl Owner {
    /// Who comes first where all are looked through.
    pub const FIRST: Self = Self::Entry(0);
}

/// Something that was looked for by where the library has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Whose it is.
    pub owner: Owner,
    /// Where it is.
    pub place: u64,
    /// How many bytes it will take elsewhere beyond those it has there.
    pub more_bytes: usize,
}

impl Default for Engine {
    fn default() -> Self {
        Self::named("memory")
    }
}

impl Engine {
    /// The version of the rules by which it decides. Whoever keeps a log of verbs notes it with each: an engine of other
    /// rules may answer otherwise, or remember other things, so it does not do them again, unless it is told to [follow](Self::follow)
    /// those.
    ///
    /// Raised by one with every change after which any verb may answer otherwise than before, mended bugs included.
    ///
    /// 1: what comes by date stands in lanes, in crawls that were made since.
    pub const RULES: u16 = 1;

    /// The last rules by which what comes by date stood in a tree.
    const RULES_WITHOUT_DATED_RANKS: u16 = 0;

    /// From now on verbs are done by these rules: those of an earlier engine that did them before. False if it does not know them.
    #[must_use]
    pub fn follow(&mut self, rules: u16) -> bool {
        let is_known = rules <= Self::RULES;
        if is_known {
            self.rules = rules;
        }
        is_known
    }

    /// An engine without crawls, for a store that messages call so.
    pub fn named(store: &'static str) -> Self {
        Self {
            store,
            rules: Self::RULES,
            crawls: BTreeMap::new(),
            last_lease: 0,
            last_served: None,
            library: None,
            room: None,
            relief: relief::Relief::default(),
            unread: Vec::new(),
            shot: None,
            planted: Planted::default(),
        }
    }

    /// The same, which keeps no requests but leaves them to a library.
    ///
    /// The leases it grants have requests without a URL: where the real ones are says [`Engine::take_unread`].
    pub fn with_library(store: &'static str, library: Arc<dyn Library>) -> Self {
        Self { library: Some(library), ..Self::named(store) }
    }

    /// Where the library has the requests of the leases that were granted last, in their order. Empty without a
    /// library.
    pub fn take_unread(&mut self) -> Vec<UnreadRequest> {
        std::mem::take(&mut self.unread)
    }

    #[cfg(feature = "planted")]
    pub(crate) fn planted(planted: Planted) -> Self {
        Self { planted, ..Self::default() }
    }

    /// Whether there is a crawl of that name.
    pub fn has(&self, crawl: &str) -> bool {
        self.crawls.contains_key(crawl)
    }

    /// Whether a question at that time would leave anything changed: time passes, a job takes a step, or the verb before it has
    /// left something that happens with the next.
    pub fn would_pass(&self, crawl: &str, now: Timestamp) -> bool {
        self.crawls.get(crawl).is_some_and(|crawl| now > crawl.now || crawl.has_overdue())
    }

    /// Where the library has the request of each URL, with the URL's crawl, its identity and its queue's key.
    pub fn places(&self) -> impl Iterator<Item = (&Arc<str>, Identity, &Arc<str>, u64)> {
        self.crawls.values().flat_map(|crawl| {
            let entries = (0..crawl.urls.slots()).map(EntryId);
            let entries = entries.filter(|id| crawl.urls.state(*id) != State::Free && !crawl.is_gone(*id));
            entries.map(|id| {
                let record = &crawl.urls[id];
                (&crawl.name, record.identity(), &crawl.queues[record.queue].key, record.request.get())
            })
        })
    }

    /// Where the library has the requests that will be put there once more when this is settled: those of pages that leave
    /// a record.
    pub fn places_of_visits(&self, crawl: &str, batch: &[Settlement]) -> Vec<u64> {
        let Some(crawl) = self.crawls.get(crawl).filter(|_| self.library.is_some()) else {
            return Vec::new();
        };
        let places = batch.iter().filter_map(|settlement| {
            let Outcome::Done { visit, next } = &settlement.outcome else { return None };
            let entry = crawl.leases.get(settlement.lease.0)?.entry;
            let leaves = *visit != Visit::default() || next.is_some() || crawl.urls.page_bytes(entry) > 0;
            if leaves { Some(crawl.urls[entry].request.get()) } else { crawl.urls.page_place(entry) }
        });
        places.collect()
    }

    /// Where the library has what is known of pages whose URLs these candidates state anew: they will keep it.
    pub fn places_of_restated<'a>(
        &self,
        crawl: &str,
        batch: impl Iterator<Item = &'a Candidate>,
    ) -> Vec<u64> {
        let Some(crawl) = self.crawls.get(crawl).filter(|_| self.library.is_some()) else {
            return Vec::new();
        };
        let stated = batch.filter(|candidate| candidate.statement.is_some());
        let entries = stated.flat_map(|candidate| {
            std::iter::successors(crawl.urls.newest(candidate.identity), |id| crawl.urls.older(*id))
        });
        entries.filter_map(|id| crawl.urls.page_place(id)).collect()
    }

    /// Where the library has what it keeps for anybody, of URLs that are gone but not swept yet as well.
    pub fn all_places(&self) -> impl Iterator<Item = u64> {
        self.crawls.values().flat_map(|crawl| {
            let entries = (0..crawl.urls.slots()).map(EntryId);
            let entries = entries.filter(|id| crawl.urls.state(*id) != State::Free);
            let notes = crawl.notes.places().map(|(_, place)| place);
            entries.map(|id| crawl.urls[id].request.get()).chain(notes)
        })
    }

    /// Where the library has what notes say that a scan will list.
    pub fn places_of_notes(&self, crawl: &str, scan: &Scan) -> Vec<u64> {
        let Query::Notes { prefix } = &scan.query else { return Vec::new() };
        let Some(crawl) = self.crawls.get(crawl) else { return Vec::new() };
        let from = usize::try_from(scan.cursor.unwrap_or(0)).unwrap_or(usize::MAX);
        let listed = crawl.notes.beginning_with(prefix).skip(from).take(scan.limit.max(1));
        listed.filter_map(|(_, note)| note.place()).collect()
    }

    /// Where the library has notes, with their crawls and keys.
    pub fn note_places(&self) -> impl Iterator<Item = (&Arc<str>, &String, u64)> {
        let crawls = self.crawls.values();
        crawls.flat_map(|crawl| crawl.notes.places().map(|(key, place)| (&crawl.name, key, place)))
    }

    /// Looks for what the library has of a crawl at such places, among so many entries or notes from one on. Answers whose it is, with
    /// the places and how many bytes more each will need elsewhere, and where to go on; None at the end.
    pub fn find_places(
        &self,
        crawl: &str,
        from: &Owner,
        count: u32,
        is_wanted: impl Fn(u64) -> bool,
    ) -> (Vec<Found>, Option<Owner>) {
        let Some(crawl) = self.crawls.get(crawl) else { return (Vec::new(), None) };
        let from = match from {
            Owner::Entry(from) => *from,
            Owner::Note(from) => {
                let (found, next) = crawl.notes.find_places(from, count as usize, is_wanted);
                return (found, next.map(Owner::Note));
            }
        };
        let end = from.saturating_add(count).min(crawl.urls.slots());
        let entries = (from..end).map(EntryId).filter(|id| crawl.urls.state(*id) != State::Free);
        let found =
            entries.map(|id| (id, crawl.urls[id].request.get())).filter(|(_, place)| is_wanted(*place));
        let found = found.map(|(id, place)| Found {
            owner: Owner::Entry(id.0),
            place,
            more_bytes: crawl.urls.page_bytes(id),
        });
        let next = if end < crawl.urls.slots() { Owner::Entry(end) } else { Owner::Note(String::new()) };
        (found.collect(), Some(next))
    }

    /// Whether the library still has something of a crawl at a place.
    pub fn is_at(&self, crawl: &str, owner: &Owner, place: u64) -> bool {
        self.crawls.get(crawl).is_some_and(|crawl| match owner {
            Owner::Entry(entry) => {
                *entry < crawl.urls.slots()
                    && crawl.urls.state(EntryId(*entry)) != State::Free
                    && crawl.urls[EntryId(*entry)].request.get() == place
            }
            Owner::Note(key) => crawl.notes.place(key) == Some(place),
        })
    }

    /// Lets the library put what it has elsewhere: each with the place where it is now. Answers how much was still there. No
    /// time passes.
    pub fn relocate(&mut self, crawl: &str, owners: &[(Owner, u64)]) -> u64 {
        let mut moved = 0;
        for (owner, place) in owners {
            if self.is_at(crawl, owner, *place)
                && let Some(crawl) = self.crawls.get_mut(crawl)
            {
                match owner {
                    Owner::Entry(entry) => crawl.urls.relocate(EntryId(*entry)),
                    Owner::Note(key) => crawl.notes.relocate(key),
                }
                moved += 1;
            }
        }
        moved
    }

    /// Leaves out the numbers of leases up to this one, if they were not given out: somebody may hold them all the same.
    pub fn skip_leases(&mut self, to: u64) {
        self.last_lease = self.last_lease.max(to);
    }

    /// The number of the last lease.
    pub fn last_lease(&self) -> u64 {
        self.last_lease
    }

    /// Whether a crawl has URLs that are gone and were not swept yet. While it has, looking for a URL may change something:
    /// it sweeps what it meets.
    pub fn has_unswept(&self, crawl: &str) -> bool {
        self.crawls.get(crawl).is_some_and(|crawl| crawl.unswept)
    }

    /// All crawls with their counts, as they stand: no time passes.
    pub fn crawls(&self) -> impl Iterator<Item = (&Arc<str>, Stats)> {
        self.crawls.iter().map(|(name, crawl)| (name, crawl.stats()))
    }

    /// See [`Store::admit`](crate::Store::admit).
    pub fn admit(
        &mut self,
        crawl: &str,
        now: Timestamp,
        batch: &[Candidate],
    ) -> Result<Vec<Admission>, StoreError> {
        let store = self.store;
        let crawl = self.crawl(crawl, "admit")?;
        crawl.advance(now);
        check_room(store, crawl, batch.len() + KEPT_FOR_LINKS, "admit")?;
        let mut answers = Vec::with_capacity(batch.len());
        for part in batch.chunks(WARMED_MAX) {
            crawl.warm(part);
            answers.extend(part.iter().map(|candidate| crawl.admit(candidate, None)));
        }
        Ok(answers)
    }

    /// See [`Store::claim`](crate::Store::claim).
    pub fn claim(&mut self, crawl: Option<&str>, now: Timestamp, want: &Want) -> Result<Claimed, StoreError> {
        let Some(name) = crawl else { return Ok(self.claim_any(now, want)) };
        // Not through `self.crawl`: the counter of leases is needed beside it.
        let Some(crawl) = self.crawls.get_mut(name) else {
            return Err(StoreError::no_crawl(self.store, "claim", name));
        };
        crawl.advance(now);
        let Granted { leases, unread } = crawl.claim(want, &mut self.last_lease);
        self.unread = unread;
        let next = if leases.len() < want.urls { crawl.next_event() } else { None };
        Ok(Claimed { leases, next, exhausted: crawl.is_exhausted() })
    }

    /// The crawls take turns, one URL each, until enough is granted or none has any left. The bounds hold for all of
    /// them together; the wish for different queues is left aside.
    fn claim_any(&mut self, now: Timestamp, want: &Want) -> Claimed {
        for crawl in self.crawls.values_mut() {
            crawl.advance(now);
        }
        let last = self.last_served.take();
        let (before, after): (Vec<_>, Vec<_>) =
            self.crawls.values_mut().partition(|crawl| last.as_ref().is_some_and(|last| crawl.name <= *last));
        let mut turns: Vec<_> =
            after.into_iter().chain(before).map(|crawl| (crawl.begin_round(want), crawl)).collect();

        self.last_served = last;
        let mut order = Vec::new();
        let mut going: Vec<usize> = (0..turns.len()).collect();
        let most = want.urls.min(GRANTS_MAX);
        while order.len() < most && !going.is_empty() {
            going.retain(|turn| {
                if order.len() >= most {
                    return true;
                }
                let given: usize = turns.iter().map(|(round, _)| round.queues_given()).sum();
                let (round, crawl) = &mut turns[*turn];
                round.queues = want.queues.map(|most| most.saturating_sub(given - round.queues_given()));
                let had = round.leases.len();
                round.urls = had + 1;
                crawl.grant_round(round, &mut self.last_lease);
                let granted = round.leases.len() > had;
                if granted {
                    order.push(*turn);
                    self.last_served = Some(Arc::clone(&crawl.name));
                }
                granted
            });
        }

        let mut claimed = Claimed { exhausted: true, ..Claimed::default() };
        let (mut granted, mut unread) = (Vec::new(), Vec::new());
        for (round, crawl) in turns {
            let ended = crawl.end_round(round);
            granted.push(ended.leases.into_iter());
            unread.push(ended.unread.into_iter());
            claimed.exhausted &= crawl.is_exhausted();
            if order.len() < want.urls {
                claimed.next = [claimed.next, crawl.next_event()].into_iter().flatten().min();
            }
        }
        self.unread = order.iter().filter_map(|turn| unread[*turn].next()).collect();
        claimed.leases = order.into_iter().filter_map(|turn| granted[turn].next()).collect();
        claimed
    }

    /// See [`Store::settle`](crate::Store::settle).
    pub fn settle(
        &mut self,
        crawl: &str,
        now: Timestamp,
        batch: &[Settlement],
    ) -> Result<Vec<Settled>, StoreError> {
        let store = self.store;
        let crawl = self.crawl(crawl, "settle")?;
        crawl.advance(now);
        check_room(store, crawl, batch.iter().map(|settlement| settlement.links.len()).sum(), "settle")?;
        crawl.warm_settle(batch);
        Ok(batch.iter().map(|settlement| crawl.settle(settlement)).collect())
    }

    /// See [`Store::steer`](crate::Store::steer).
    pub fn steer(&mut self, crawl: &str, now: Timestamp, steer: Steer) -> Result<Steered, StoreError> {
        if let Steer::Crawl(CrawlChange::Create(new)) = steer {
            return self.create(crawl, now, new);
        }
        let (name, store) = (crawl, self.store);
        let crawl = self.crawl(name, "steer")?;
        if let Steer::Crawl(CrawlChange::Cancel(job)) = steer
            && crawl.is_over_urls(job)
        {
            // Without another step: that may be what it is cancelled for.
            let affected = u64::from(crawl.cancel_job(job));
            crawl.advance(now);
            return Ok(Steered { affected, job: None });
        }
        crawl.advance(now);
        let change = match steer {
            Steer::Queue(key, change) => {
                check_key(&key)?;
                return Ok(crawl.steer_queue(&key, change));
            }
            Steer::Url(identity, change) => return Ok(crawl.steer_url(identity, change)),
            Steer::Urls(which, change) => return Ok(crawl.steer_urls(which, change)),
            Steer::Dead(which, change) => return Ok(crawl.steer_dead(which, change)),
            Steer::Crawl(change) => change,
        };
        let mut affected = 1;
        match change {
            CrawlChange::Set(changes) => crawl.set(&changes)?,
            CrawlChange::Pause => crawl.pause(),
            CrawlChange::Resume => crawl.resume(),
            CrawlChange::Finish(reason) => crawl.finish(reason),
            CrawlChange::Note(note) => crawl.notes.write(&note),
            CrawlChange::Restore(records) => {
                restore::check(store, crawl, &records)?;
                affected = crawl.restore(records);
            }
            CrawlChange::Purge(pattern) => return Ok(crawl.purge_all(pattern)),
            CrawlChange::Cancel(job) => affected = u64::from(crawl.cancel_job(job)),
            CrawlChange::Delete => {
                if let Some((name, mut crawl)) = self.crawls.remove_entry(name) {
                    crawl.urls.free_all();
                    crawl.notes.free_all();
                    if let Some(shot) = &mut self.shot {
                        shot.keep(&name, crawl);
                    }
                }
            }
            CrawlChange::Create(_) => {}
        }
        Ok(Steered { affected, job: None })
    }

    fn create(&mut self, name: &str, now: Timestamp, new: NewCrawl) -> Result<Steered, StoreError> {
        if self.crawls.contains_key(name) {
            return Ok(Steered::default());
        }
        if new.partitions == 0 || new.partitions > MOST_PARTITIONS {
            return Err(StoreError::new(
                ErrorKind::Invalid,
                format!(
                    "cannot create crawl `{name}` with {} partitions: choose 1 to {MOST_PARTITIONS}",
                    new.partitions
                ),
            ));
        }
        let name: Arc<str> = Arc::from(name);
        self.crawls.insert(Arc::clone(&name), Crawl::new(name, now, new, self.outside(), self.planted));
        Ok(Steered { affected: 1, job: None })
    }

    /// See [`Store::scan`](crate::Store::scan).
    pub fn scan(&mut self, crawl: &str, now: Timestamp, scan: &Scan) -> Result<Page, StoreError> {
        if scan.query != Query::Crawls {
            self.crawl(crawl, "scan")?.advance(now);
        }
        self.look(crawl, scan)
    }

    /// See [`Store::stats`](crate::Store::stats).
    pub fn stats(&mut self, crawl: &str, now: Timestamp) -> Result<Stats, StoreError> {
        self.crawl(crawl, "count")?.advance(now);
        self.count(crawl)
    }

    /// All that a question changes, see [`Engine::would_pass`]. Nothing happens if there is no such crawl.
    pub fn pass(&mut self, crawl: &str, now: Timestamp) {
        if let Some(crawl) = self.crawls.get_mut(crawl) {
            crawl.advance(now);
        }
    }

    /// As [`Engine::scan`], of things as they stand: no time passes.
    pub fn look(&mut self, crawl: &str, scan: &Scan) -> Result<Page, StoreError> {
        if scan.query == Query::Crawls {
            return Ok(scan::list_crawls(self.crawls.values(), scan));
        }
        Ok(self.crawl(crawl, "scan")?.scan(scan))
    }

    /// As [`Engine::stats`], of things as they stand: no time passes.
    pub fn count(&mut self, crawl: &str) -> Result<Stats, StoreError> {
        Ok(self.crawl(crawl, "count")?.stats())
    }

    fn crawl(&mut self, name: &str, attempted: &str) -> Result<&mut Crawl, StoreError> {
        let store = self.store;
        self.crawls.get_mut(name).ok_or_else(|| StoreError::no_crawl(store, attempted, name))
    }
}

/// So many are looked at ahead of time: as much as stays in the cache.
const WARMED_MAX: usize = 1000;

/// So many URLs are not admitted although they would fit: they may still come as links, and a page's links are not lost.
const KEPT_FOR_LINKS: usize = 100_000;

/// More partitions than this would cost more than they could ever give.
const MOST_PARTITIONS: u32 = 65_536;

/// Whether so many URLs fit, whatever they are.
fn check_room(store: &str, crawl: &Crawl, urls: usize, attempted: &str) -> Result<(), StoreError> {
    if crawl.urls.room() >= urls {
        return Ok(());
    }
    let message = format!(
        "{store} store: cannot {attempted}: the crawl `{}` has no room for {urls} URLs more, and takes no more than 16 GiB of \
         them; what is there can still be claimed, and settled without links: forget URLs, or begin another crawl",
        crawl.name
    );
    Err(StoreError::new(ErrorKind::Full, message))
}

fn check_key(key: &str) -> Result<(), StoreError> {
    if (1..=KEY_BYTES_MAX).contains(&key.len()) {
        return Ok(());
    }
    let message =
        format!("cannot steer a queue whose key has {} bytes: keys have 1 to {KEY_BYTES_MAX}", key.len());
    Err(StoreError::new(ErrorKind::Invalid, message))
}

#[cfg(test)]
mod tests {
    use trapline_core::IdentityKey;

    use super::*;
    use crate::settings::Settings;

    #[test]
    fn a_crawl_that_is_full_says_so_and_what_to_do() {
        let mut engine = Engine::default();
        let new = NewCrawl { settings: Settings::default(), partitions: 1, key: IdentityKey::from_seed(1) };
        let create = Steer::Crawl(CrawlChange::Create(new));
        engine.steer("full", Timestamp::ZERO, create).unwrap();
        let crawl = engine.crawl("full", "admit").unwrap();
        assert!(check_room("memory", crawl, 8_000_000, "admit").is_ok());
        let error = check_room("memory", crawl, 9_000_000, "admit").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Full);
        assert_eq!(
            error.to_string(),
            "memory store: cannot admit: the crawl `full` has no room for 9000000 URLs more, and takes no more than \
             16 GiB of them; what is there can still be claimed, and settled without links: forget URLs, or begin \
             another crawl"
        );
    }
}
