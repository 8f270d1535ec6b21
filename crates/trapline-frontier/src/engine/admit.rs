//! `admit`: candidates become pending, or are known, restated or refused.

use trapline_core::{Candidate, KEY_BYTES_MAX, Statement, Terms, Timestamp, URL_BYTES_MAX};

use super::crawl::Crawl;
use super::moment::{Age, Moment};
use super::queues::{QueueId, TermsChanged};
use super::urls::{EntryId, NewEntry, State};
use crate::planted::Fault;
use crate::settings::AdmissionGate;
use crate::verbs::{Admission, Refusal};

impl Crawl {
    /// Admits one candidate. `deferred` is a queue that will find its state later: that of a settlement whose
    /// links these are.
    pub(super) fn admit(&mut self, candidate: &Candidate, deferred: Option<QueueId>) -> Admission {
        if candidate.key.is_empty()
            || candidate.key.len() > KEY_BYTES_MAX
            || candidate.request.url.len() > URL_BYTES_MAX
        {
            return Admission::Refused(Refusal::Malformed);
        }
        if self.is_finished() {
            return Admission::Refused(Refusal::Finished);
        }
        if let Some(statement) = candidate.statement {
            self.restate(candidate, statement, deferred);
            return Admission::Restated;
        }
        if !candidate.dont_filter
            && let Some(known) = self.find_url(candidate.identity)
        {
            if candidate.improve && self.improve(known, candidate) {
                return Admission::Rescored;
            }
            return Admission::Known;
        }
        let believed = self.planted.is(Fault::FilterBelieved) && candidate.identity.0.is_multiple_of(8);
        if believed && !candidate.dont_filter {
            return Admission::Known;
        }
        if let Some(refusal) = self.refusal(candidate) {
            return Admission::Refused(refusal);
        }
        let price = self.price(candidate);
        let queue = self.queue_of(&candidate.key);
        self.take_terms(queue, &candidate.terms, false);
        let older = if candidate.dont_filter { self.urls.newest(candidate.identity) } else { None };
        let id = self.new_entry(candidate, older, queue, price);
        self.place_as_admitted(id, self.now);
        self.enter(id, State::Pending);
        self.supply(queue, deferred);
        Admission::Added
    }

    /// What a candidate costs and which class it has: its own, or what the crawl's policies say.
    fn price(&self, candidate: &Candidate) -> (u32, u8) {
        let cost = candidate.cost.unwrap_or_else(|| self.settings.cost.cost(&candidate.request));
        let class = candidate.class.unwrap_or_else(|| self.settings.class.class(&candidate.request, cost));
        (cost, class)
    }

    /// Moves a pending URL to the better class its candidate asks for; answers whether it is one.
    fn improve(&mut self, known: EntryId, candidate: &Candidate) -> bool {
        let (_, class) = self.price(candidate);
        let record = &self.urls[known];
        let better = record.state().is_pending() && class < record.class;
        if better {
            self.move_to_class(known, class);
        }
        better
    }

    /// Looks a whole batch up once before it is admitted, each URL and its queue. The answers do not matter; the point
    /// is that these look-ups do not wait for one another, while those of the admission itself, one after the
    /// other, then find everything in the cache.
    pub(super) fn warm(&self, batch: &[Candidate]) {
        let mut touched = 0;
        for candidate in batch {
            touched ^= match self.urls.guess(candidate.identity) {
                Some(entry) => self.urls.touch_here(entry).into(),
                None => self.queues.guess(&candidate.key).map_or(0, |queue| self.queues.touch(queue)),
            };
        }
        std::hint::black_box(touched);
    }

    /// Why a new URL is not to be taken.
    fn refusal(&self, candidate: &Candidate) -> Option<Refusal> {
        let (settings, request) = (&self.settings, &candidate.request);
        if settings.admission == AdmissionGate::Blocked {
            return Some(Refusal::Blocked);
        }
        let limits = [settings.max_depth, request.depth_limit];
        if limits.iter().flatten().any(|limit| request.depth > *limit) {
            return Some(Refusal::TooDeep);
        }
        let longest = settings.max_queue_length?;
        let length = self.queues.find(&candidate.key).map_or(0, |queue| self.queues[queue].pending());
        (u64::from(length) >= longest).then_some(Refusal::QueueFull)
    }

    /// A new entry of a candidate, before `older` ones of the same URL.
    fn new_entry(
        &mut self,
        candidate: &Candidate,
        older: Option<EntryId>,
        queue: QueueId,
        price: (u32, u8),
    ) -> EntryId {
        let (cost, class) = price;
        let new = NewEntry {
            identity: candidate.identity,
            request: &candidate.request,
            queue,
            deletions: self.queues[queue].deletions(),
            class,
            cost,
        };
        let reuse = self.reuses_slots();
        self.urls.add(new, older, reuse)
    }

    /// A queue was given a URL: unless it is to wait, it finds its state.
    pub(super) fn supply(&mut self, queue: QueueId, deferred: Option<QueueId>) {
        if deferred == Some(queue) {
            return;
        }
        let moment = self.this_moment();
        let freed = &mut self.queues[queue].freed;
        *freed = moment.max(*freed);
        if self.planted.is(Fault::BlockForgotten) && self.queues[queue].blocked().at > self.now {
            self.block(queue, moment);
        }
        self.refresh(queue);
    }

    /// Takes over what a caller knows of a URL. All entries of the URL become one, and any lease of it ends.
    fn restate(&mut self, candidate: &Candidate, statement: Statement, deferred: Option<QueueId>) {
        let price = self.price(candidate);
        let mut touched = Vec::new();
        let (mut page, mut visits) = (None, 0);
        for entry in self.find_all(candidate.identity) {
            touched.push(self.urls[entry].queue);
            page = page.or_else(|| self.urls.page(entry));
            visits = self.urls.visits(entry).max(visits);
            self.drop_entry(entry);
        }
        let queue = self.queue_of(&candidate.key);
        self.take_terms(queue, &candidate.terms, false);
        let id = self.new_entry(candidate, None, queue, price);
        self.urls.set_visits(id, visits);
        if let Some(page) = page {
            // Who offers a URL cannot know how large that is, and room must be made before.
            self.urls.keep_page(id, &page);
        }
        match statement {
            Statement::Done => self.enter(id, State::Done),
            Statement::Next(at) => self.schedule(id, at, State::Scheduled),
        }
        touched.push(queue);
        self.supply_all(touched, deferred);
    }

    /// Several queues find their state after one command. Those it freed keep their former order; then come new
    /// ones, and last those whose balance is used up, which go behind all others.
    pub(super) fn supply_all(&mut self, mut queues: Vec<QueueId>, deferred: Option<QueueId>) {
        let former = |id: &QueueId| {
            let queue = &self.queues[*id];
            let age = queue.age();
            (queue.active && queue.balance <= 0, age == Age::default(), age, *id)
        };
        queues.sort_by_cached_key(former);
        queues.dedup();
        for queue in queues {
            self.supply(queue, deferred);
        }
    }

    /// An entry is to be visited at a time: later, in the state given, or at once.
    pub(super) fn schedule(&mut self, id: EntryId, at: Timestamp, waiting: State) {
        if at > self.now {
            let rank = self.draw();
            self.urls.more_mut(id).due = Moment { at, rank };
            if waiting == State::Scheduled {
                self.urls.live_mut(id).set_admitted(rank);
            }
            self.enter(id, waiting);
        } else {
            self.place_as_admitted(id, at);
            self.enter(id, State::Pending);
        }
    }

    /// A queue takes terms on. It must find its state afterwards.
    pub(super) fn take_terms(&mut self, id: QueueId, terms: &Terms, by_operator: bool) {
        if *terms == Terms::default() {
            return;
        }
        self.stand_down(id);
        let mut changed = self.queues[id].take_terms(terms, by_operator, &self.settings);
        if let Some(name) = &terms.group
            && self.queues[id].may_change_group(by_operator)
        {
            let group = if name.is_empty() { None } else { Some(self.groups.find_or_make(name)) };
            changed.any |= std::mem::replace(&mut self.queues[id].rare_mut().group, group) != group;
        }
        self.terms_changed(id, changed);
    }

    /// What follows from changed terms: a queue over its budget gets another chance, one that was full may not be.
    /// It must find its state afterwards.
    pub(super) fn terms_changed(&mut self, id: QueueId, changed: TermsChanged) {
        if changed.concurrency {
            let moment = self.this_moment();
            self.queues[id].freed = self.queues[id].freed.max(moment);
        }
        if changed.any {
            self.reconsider(id);
        }
    }
}
