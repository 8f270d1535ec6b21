//! Whether an engine is whole: everything that is kept twice, so that asking costs nothing, is counted once more.
//!
//! For `verify` and for tests. It takes as long as looking at everything does.

use super::Engine;
use super::census::Census;
use super::crawl::Crawl;
use super::moment::Moment;
use super::queues::{Queue, QueueId};
use super::urls::{EntryId, State};
use crate::report::UrlState;

impl Engine {
    /// What does not add up, if anything.
    ///
    /// # Errors
    /// The first thing that does not, in words.
    pub fn check(&self) -> Result<(), String> {
        for (name, crawl) in &self.crawls {
            crawl.check(self.last_lease).map_err(|trouble| format!("crawl `{name}`: {trouble}"))?;
        }
        Ok(())
    }
}

/// What the entries of a queue add up to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sums {
    due: u32,
    waiting: u32,
    leased: u32,
    done: u32,
    visits: u32,
    disregarded: u32,
    dead: u32,
}

impl Sums {
    /// What the queue says.
    fn of(queue: &Queue) -> Self {
        let rare = queue.rare();
        Self {
            due: queue.order.len(),
            waiting: queue.waiting(),
            leased: queue.leased,
            done: queue.done,
            visits: queue.visits(),
            disregarded: rare.map_or(0, |rare| rare.disregarded),
            dead: rare.map_or(0, |rare| rare.dead),
        }
    }

    fn add(&mut self, state: State) {
        match state {
            State::Pending => self.due += 1,
            State::Retrying | State::Scheduled => self.waiting += 1,
            State::Leased => self.leased += 1,
            State::Done => self.done += 1,
            State::Revisiting => (self.done, self.visits) = (self.done + 1, self.visits + 1),
            State::Disregarded => self.disregarded += 1,
            State::Dead => self.dead += 1,
            State::Free => {}
        }
    }
}

impl Crawl {
    fn check(&self, last_lease: u64) -> Result<(), String> {
        self.check_entries()?;
        self.check_orders()?;
        self.check_leases(last_lease)?;
        self.notes.check()?;
        let mut census = Census::default();
        for id in (0..self.queues.len()).map(QueueId) {
            census.add(&self.queues[id], self.generation);
        }
        census.held_by_groups = self.census.held_by_groups;
        ensure(census == self.census, || {
            format!("the queues add up to {census:?}, and the census says {:?}", self.census)
        })
    }

    /// Every URL is found by its identity, and counted where it is.
    fn check_entries(&self) -> Result<(), String> {
        let mut counts = [0; 6];
        let mut sums = vec![Sums::default(); self.queues.len() as usize];
        for id in (0..self.urls.slots()).map(EntryId) {
            let state = self.urls.state(id);
            if state == State::Free {
                continue;
            }
            let newest = self.urls.newest(self.urls[id].identity());
            let newest = newest.filter(|newest| self.chain(*newest).any(|other| other == id));
            ensure(newest.is_some(), || format!("{} is not found by its identity", self.name_of(id)))?;
            let waits = matches!(state, State::Retrying | State::Scheduled | State::Revisiting);
            ensure((self.urls.more(id).due != Moment::ZERO) == waits, || {
                format!("{} is {state:?}, and its timer does not fit that", self.name_of(id))
            })?;
            if self.is_gone(id) {
                continue;
            }
            counts[state.public() as usize] += 1;
            sums[self.urls[id].queue.0 as usize].add(state);
            ensure((state == State::Dead) == self.dead_letters.contains_key(&id), || {
                format!("{} is {state:?}, and its dead letter does not fit that", self.name_of(id))
            })?;
        }
        ensure(counts == self.url_counts, || {
            format!("the URLs add up to {counts:?} by state, and the counts say {:?}", self.url_counts)
        })?;
        for (id, sums) in (0..self.queues.len()).map(QueueId).zip(sums) {
            let queue = &self.queues[id];
            ensure(Sums::of(queue) == sums, || {
                format!("queue {} has {sums:?}, and says {:?}", queue.key, Sums::of(queue))
            })?;
        }
        let waiting = self.url_counts[UrlState::Leased as usize];
        let leased = self.leases.iter().filter(|(_, grant)| !self.is_gone(grant.entry)).count() as u64;
        ensure(waiting == leased, || format!("{leased} leases are out, and {waiting} URLs are leased"))
    }

    /// An entry and the older ones of its URL.
    fn chain(&self, newest: EntryId) -> impl Iterator<Item = EntryId> {
        std::iter::successors(Some(newest), |id| self.urls.older(*id)).take(self.urls.slots() as usize)
    }

    /// What waits in a queue's order is there, and in order.
    fn check_orders(&self) -> Result<(), String> {
        for id in (0..self.queues.len()).map(QueueId) {
            let queue = &self.queues[id];
            let ids = queue
                .order
                .all(self.settings.order, &self.urls)
                .ok_or_else(|| format!("queue {}: its order is torn", queue.key))?;
            ensure(ids.len() == queue.order.len() as usize, || {
                format!(
                    "queue {}: {} URLs are in its order, which says {}",
                    queue.key,
                    ids.len(),
                    queue.order.len()
                )
            })?;
            let strays = ids.iter().find(|entry| {
                self.urls.state(**entry) != State::Pending
                    || self.urls[**entry].queue != id
                    || self.is_gone(**entry)
            });
            ensure(strays.is_none(), || {
                format!("queue {}: its order has a URL in it that does not belong there", queue.key)
            })?;
        }
        Ok(())
    }

    fn check_leases(&self, last_lease: u64) -> Result<(), String> {
        for (lease, grant) in self.leases.iter() {
            let entry = grant.entry;
            let fits = self.urls.state(entry) == State::Leased && self.urls.live(entry).lease() == lease;
            ensure(fits && lease <= last_lease, || {
                format!("lease {lease} is out for a URL that does not know of it")
            })?;
        }
        Ok(())
    }

    /// What to call an entry. Its URL may be what cannot be read.
    fn name_of(&self, id: EntryId) -> String {
        format!("URL {:032x} of queue {}", self.urls[id].identity().0, self.queue_of_entry(id).key)
    }
}

fn ensure(holds: bool, trouble: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(trouble()) }
}
