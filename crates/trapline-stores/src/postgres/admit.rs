//! `admit`: candidates become pending, or are known, restated or refused.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use trapline_core::{Candidate, Identity, KEY_BYTES_MAX, Statement, URL_BYTES_MAX};
use trapline_frontier::{Admission, AdmissionGate, Refusal, payload};

use super::entry::{Entry, Spot, State, Wait};
use super::session::{Failure, Session};
use super::step::Verb;
use super::work::Work;

/// Candidates to be admitted.
pub(super) struct Admit(pub(super) Vec<Candidate>);

#[async_trait]
impl Verb for Admit {
    type Answer = Vec<Admission>;

    fn draws(&self) -> usize {
        self.0.len() * DRAWS + 16
    }

    async fn run(&self, work: &mut Work, session: &mut Session) -> Result<Vec<Admission>, Failure> {
        work.bring_candidates(session, self.0.iter(), BTreeSet::new()).await?;
        Ok(self.0.iter().map(|candidate| work.admit(candidate, None)).collect())
    }
}

/// A candidate draws no more ranks than this.
pub(super) const DRAWS: usize = 12;

/// Whether nobody can take it.
fn is_malformed(candidate: &Candidate) -> bool {
    candidate.key.is_empty()
        || candidate.key.len() > KEY_BYTES_MAX
        || candidate.request.url.len() > URL_BYTES_MAX
}

/// Whether more has to be known of the URL than whether it is known.
fn needs_entries(candidate: &Candidate) -> bool {
    candidate.statement.is_some() || candidate.dont_filter || candidate.improve
}

impl Work {
    /// Brings here and locks what candidates need to be admitted, and these queues besides.
    pub(super) async fn bring_candidates<'a>(
        &mut self,
        session: &mut Session,
        candidates: impl Iterator<Item = &'a Candidate> + Send,
        mut queues: BTreeSet<i64>,
    ) -> Result<(), Failure> {
        let takes_any = !self.crawl.is_finished();
        let candidates: Vec<&Candidate> =
            candidates.filter(|candidate| takes_any && !is_malformed(candidate)).collect();
        let all: BTreeSet<Identity> = candidates.iter().map(|candidate| candidate.identity).collect();
        let all: Vec<Identity> = all.into_iter().collect();
        let known = self.find_known(session, &all).await?;
        self.known = known.iter().map(|(identity, _)| *identity).collect();

        let whole: BTreeSet<Identity> = candidates
            .iter()
            .filter(|candidate| needs_entries(candidate))
            .map(|candidate| candidate.identity)
            .collect();
        let of_whole = known.iter().filter(|(identity, _)| whole.contains(identity));
        queues.extend(of_whole.map(|(_, queue)| *queue));

        let supplying: Vec<&Candidate> = candidates
            .iter()
            .copied()
            .filter(|candidate| candidate.statement.is_some() || self.may_supply(candidate))
            .collect();
        let groups = supplying.iter().filter_map(|candidate| candidate.terms.group.clone());
        let groups: Vec<Arc<str>> = groups.collect();
        self.make_groups(session, groups).await?;
        self.find_queues(session, supplying.iter().map(|candidate| &candidate.key), true).await?;
        queues.extend(supplying.iter().filter_map(|candidate| self.by_key.get(&candidate.key)));
        self.lock_queues(session, queues, true).await?;

        let whole: Vec<Identity> = whole.into_iter().collect();
        self.load_urls(session, &whole).await?;
        // Somebody may have admitted them before the queues were locked.
        let new = supplying.iter().map(|candidate| candidate.identity);
        let new: BTreeSet<Identity> =
            new.filter(|identity| !self.by_identity.contains_key(identity)).collect();
        let new: Vec<Identity> = new.into_iter().collect();
        let known = self.find_known(session, &new).await?;
        self.known.extend(known.into_iter().map(|(identity, _)| identity));
        Ok(())
    }

    /// Whether a candidate may become a new entry, as far as can be seen before its queue is here.
    fn may_supply(&self, candidate: &Candidate) -> bool {
        (candidate.dont_filter || !self.known.contains(&candidate.identity))
            && self.general_refusal(candidate).is_none()
    }

    /// Admits one candidate. `deferred` is a queue that will find its state later: that of a settlement whose links these
    /// are.
    pub(super) fn admit(&mut self, candidate: &Candidate, deferred: Option<i64>) -> Admission {
        if is_malformed(candidate) {
            return Admission::Refused(Refusal::Malformed);
        }
        if self.crawl.is_finished() {
            return Admission::Refused(Refusal::Finished);
        }
        if let Some(statement) = candidate.statement {
            match self.queue_here(&candidate.key) {
                Some(queue) => self.restate(candidate, statement, queue, deferred),
                None => self.again = true,
            }
            return Admission::Restated;
        }
        if !candidate.dont_filter {
            if let Some(known) = self.newest(candidate.identity) {
                let improved = candidate.improve && self.improve(known, candidate);
                return if improved { Admission::Rescored } else { Admission::Known };
            }
            // What is here in whole is known better than what was found first: it may have been forgotten since.
            if self.known.contains(&candidate.identity) && !self.by_identity.contains_key(&candidate.identity)
            {
                return Admission::Known;
            }
        }
        if let Some(refusal) = self.general_refusal(candidate) {
            return Admission::Refused(refusal);
        }
        let Some(queue) = self.queue_here(&candidate.key) else {
            // It was known when it was looked for, and has been forgotten since.
            self.again = true;
            return Admission::Known;
        };
        let length = self.queue(queue).pending().unsigned_abs();
        if self.crawl.settings.max_queue_length.is_some_and(|longest| length >= longest) {
            return Admission::Refused(Refusal::QueueFull);
        }
        self.take_terms(queue, &candidate.terms, false);
        let id = self.new_entry(candidate, queue);
        self.place_as_admitted(id, self.now);
        self.enter(id, State::Pending);
        self.supply(queue, deferred);
        Admission::Added
    }

    fn improve(&mut self, known: i64, candidate: &Candidate) -> bool {
        let (_, class) = self.price(candidate);
        let entry = self.entry(known);
        let better = entry.state.is_pending() && class < entry.class;
        if better {
            self.move_to_class(known, class);
        }
        better
    }

    /// Why a new URL is not to be taken, whatever its queue.
    fn general_refusal(&self, candidate: &Candidate) -> Option<Refusal> {
        let (settings, request) = (&self.crawl.settings, &candidate.request);
        if settings.admission == AdmissionGate::Blocked {
            return Some(Refusal::Blocked);
        }
        let limits = [settings.max_depth, request.depth_limit];
        if limits.iter().flatten().any(|limit| request.depth > *limit) {
            return Some(Refusal::TooDeep);
        }
        // No queue is made for what no queue can take.
        (settings.max_queue_length == Some(0)).then_some(Refusal::QueueFull)
    }

    /// A new entry of a candidate, newer than those its URL has.
    pub(super) fn new_entry(&mut self, candidate: &Candidate, queue: i64) -> i64 {
        let (cost, class) = self.price(candidate);
        let request = &candidate.request;
        let entry = Entry {
            id: self.draw(),
            identity: candidate.identity,
            nth: self.next_nth(candidate.identity),
            queue,
            class,
            cost,
            spot: Spot::default(),
            state: State::Gone,
            expiries: 0,
            retries: 0,
            visits: 0,
            page: None,
            url: request.url.clone().into_bytes(),
            rest: Some(payload::encode(request)),
            stored: None,
        };
        let id = entry.id;
        self.by_identity.entry(entry.identity).or_default().insert(0, id);
        self.entries.insert(id, entry);
        id
    }

    /// Above all numbers that this step has seen, also of entries it forgets: their rows may still be there when the new
    /// one is written.
    pub(super) fn next_nth(&self, identity: Identity) -> i64 {
        let newest = self.newest(identity).map_or(-1, |id| self.entry(id).nth);
        newest + 1
    }

    /// Takes over what a caller knows of a URL. All entries of the URL become one, and any lease of it ends.
    fn restate(&mut self, candidate: &Candidate, statement: Statement, queue: i64, deferred: Option<i64>) {
        let mut touched = Vec::new();
        let (mut page, mut visits) = (None, 0);
        for id in self.by_identity.get(&candidate.identity).cloned().unwrap_or_default() {
            let entry = self.entry(id);
            touched.push(entry.queue);
            page = page.or_else(|| entry.page.clone());
            visits = visits.max(entry.visits);
            self.drop_entry(id);
        }
        self.take_terms(queue, &candidate.terms, false);
        let id = self.new_entry(candidate, queue);
        let entry = self.entry_mut(id);
        (entry.page, entry.visits) = (page, visits);
        match statement {
            Statement::Done => self.enter(id, State::Done),
            Statement::Next(at) => self.schedule(id, Self::at(at), Wait::Schedule),
        }
        touched.push(queue);
        self.supply_all(touched, deferred);
    }
}
