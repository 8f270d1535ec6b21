//! `admit`: candidates become pending, or are known, restated or refused.

use trapline_core::{Candidate, KEY_BYTES_MAX, Statement, Terms, Timestamp, URL_BYTES_MAX};

use super::crawl::Crawl;
use super::moment::{Age, Moment};
use super::queues::{QueueId, TermsChanged};
use super::urls::{Band, Entry, EntryId, State};
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
        if let Some(refusal) = self.refusal(candidate) {
            return Admission::Refused(refusal);
        }
        let (cost, class) = self.price(candidate);
        let queue = self.queue_of(&candidate.key);
        self.take_terms(queue, &candidate.terms, false);
        let id = self.new_entry(candidate, queue, class, cost);
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
        let entry = &self.urls[known];
        let better = entry.state.is_pending() && class < entry.class;
        if better {
            self.move_to_class(known, class);
        }
        better
    }

    /// Looks a whole batch up once before it is admitted, each URL and its queue. The answers only size the tables;
    /// the point is that these look-ups do not wait for one another, while those of the admission itself, one
    /// after the other, then find everything in the cache.
    pub(super) fn warm(&mut self, batch: &[Candidate]) {
        let new: Vec<&Candidate> =
            batch.iter().filter(|candidate| self.urls.newest(candidate.identity).is_none()).collect();
        let new_queues = new.iter().filter(|candidate| self.queues.find(&candidate.key).is_none()).count();
        self.urls.make_room(new.len());
        self.queues.make_room(new_queues);
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

    fn new_entry(&mut self, candidate: &Candidate, queue: QueueId, class: u8, cost: u32) -> EntryId {
        self.urls.add(Entry {
            identity: candidate.identity,
            request: candidate.request.clone(),
            page: None,
            queue,
            older: EntryId::NONE,
            newer: EntryId::NONE,
            before: EntryId::NONE,
            after: EntryId::NONE,
            place: 0,
            admitted: 0,
            due: Moment::default(),
            lease: 0,
            cost,
            expiries: 0,
            retries: 0,
            visits: 0,
            purges: 0,
            deletions: self.queues[queue].deletions,
            class,
            band: Band::Fresh,
            state: State::Free,
            in_tree: false,
        })
    }

    /// A queue was given a URL: unless it is to wait, it finds its state.
    pub(super) fn supply(&mut self, queue: QueueId, deferred: Option<QueueId>) {
        if deferred == Some(queue) {
            return;
        }
        let moment = self.this_moment();
        self.queues[queue].freed = self.queues[queue].freed.max(moment);
        self.refresh(queue);
    }

    /// Takes over what a caller knows of a URL. All entries of the URL become one, and any lease of it ends.
    fn restate(&mut self, candidate: &Candidate, statement: Statement, deferred: Option<QueueId>) {
        let (cost, class) = self.price(candidate);
        let mut touched = Vec::new();
        let (mut page, mut visits) = (None, 0);
        for entry in self.find_all(candidate.identity) {
            touched.push(self.urls[entry].queue);
            page = page.or_else(|| self.urls[entry].page.take());
            visits = self.urls[entry].visits.max(visits);
            self.drop_entry(entry);
        }
        let queue = self.queue_of(&candidate.key);
        self.take_terms(queue, &candidate.terms, false);
        let id = self.new_entry(candidate, queue, class, cost);
        (self.urls[id].page, self.urls[id].visits) = (page, visits);
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
            (queue.active && queue.balance <= 0, queue.age == Age::default(), &queue.age, *id)
        };
        queues.sort_by(|a, b| former(a).cmp(&former(b)));
        queues.dedup();
        for queue in queues {
            self.supply(queue, deferred);
        }
    }

    /// An entry is to be visited at a time: later, in the state given, or at once.
    pub(super) fn schedule(&mut self, id: EntryId, at: Timestamp, waiting: State) {
        if at > self.now {
            let rank = self.draw();
            let entry = &mut self.urls[id];
            entry.due = Moment { at, rank };
            if waiting == State::Scheduled {
                entry.admitted = rank;
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
            changed.any |= std::mem::replace(&mut self.queues[id].group, group) != group;
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
