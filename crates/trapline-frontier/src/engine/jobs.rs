//! Work over many URLs, a bounded step with each verb: so that no verb waits for it, and it goes on as long as
//! anybody uses the crawl.
//!
//! A job passes over all slots that existed when it began. What came later is not its business: it is known by its rank, or, where it
//! may have none any more, by its slot, because none is used again meanwhile.

use std::collections::{BTreeMap, VecDeque};

use super::crawl::Crawl;
use super::moment::Rank;
use super::queues::QueueId;
use super::urls::{EntryId, State, Urls};
use crate::pattern::Pattern;
use crate::report::JobReport;
use crate::verbs::{DeadChange, Steered, UrlsChange};

/// How many slots a verb looks at on the side: some microseconds' worth.
const STEP: u32 = 4096;

/// How many where most of them have to be read. A purge reads as many as it looks at, and has to: logs lead through the steps it took.
const READ_STEP: u32 = 1024;

/// All jobs of a crawl, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    pub(super) jobs: BTreeMap<u64, Job>,
    pub(super) last: u64,
    /// What came of the last ones that have ended, the latest last. Those that were done with their first step are not
    /// among them: their answer said it all. Nor are sweeps, which change nothing that can be seen.
    pub(super) ended: VecDeque<JobReport>,
}

/// So many that have ended are remembered.
const ENDED_MAX: usize = 100;

#[derive(Debug)]
pub(super) struct Job {
    pub(super) task: Task,
    /// What was admitted, or died, later is left alone.
    pub(super) before: Rank,
    pub(super) passed: u32,
    pub(super) total: u32,
    /// Whether it goes round once more.
    pub(super) again: bool,
    pub(super) affected: u64,
}

/// What a job does.
#[derive(Clone, Debug)]
pub(super) enum Task {
    /// Frees the slots of URLs that are gone with purges and deletions.
    Sweep,
    /// Forgets the pending URLs that match, of a queue or all.
    Purge { queue: Option<QueueId>, pattern: Pattern },
    /// Replays or forgets dead letters, of a queue or all.
    Dead { queue: Option<QueueId>, change: DeadChange },
    /// Changes the URLs that match, or all, of a queue or all.
    Urls { queue: Option<QueueId>, pattern: Option<Pattern>, change: UrlsChange },
}

impl Task {
    /// How many slots are looked at in one step.
    fn step(&self) -> u32 {
        if matches!(self, Self::Urls { .. }) { READ_STEP } else { STEP }
    }
}

impl Crawl {
    /// Begins a job and takes its first step, which is all of it where there are few URLs.
    pub(super) fn begin(&mut self, task: Task) -> Steered {
        self.jobs.last += 1;
        let id = self.jobs.last;
        let mut job =
            Job { task, before: self.draw(), passed: 0, total: self.urls.slots(), again: false, affected: 0 };
        let done = self.step(&mut job);
        let affected = job.affected;
        if !done {
            self.jobs.jobs.insert(id, job);
        }
        Steered { affected, job: (!done).then_some(id) }
    }

    /// Begins to free the slots of what is gone. One sweep is enough for all: one that is under way goes on, and then round
    /// once more.
    pub(super) fn begin_sweep(&mut self) -> Steered {
        self.unswept = true;
        let under_way = self.jobs.jobs.iter_mut().find(|(_, job)| matches!(job.task, Task::Sweep));
        if let Some((id, job)) = under_way {
            job.again = true;
            return Steered { affected: 0, job: Some(*id) };
        }
        self.begin(Task::Sweep)
    }

    /// Frees all slots of what is gone, at once. Needed before a count of purges comes round, in one purge of 65,536: after
    /// that, what is gone would seem to be there again.
    pub(super) fn sweep_all(&mut self) {
        self.jobs.jobs.retain(|_, job| !matches!(job.task, Task::Sweep));
        for slot in 0..self.urls.slots() {
            self.work_on(&Task::Sweep, Rank::MAX, EntryId(slot));
        }
        self.unswept = false;
    }

    /// Whether a job is one that changes URLs whatever they are.
    pub(super) fn is_over_urls(&self, id: u64) -> bool {
        self.jobs.jobs.get(&id).is_some_and(|job| matches!(job.task, Task::Urls { .. }))
    }

    /// Whether slots that are free may be used again: not while a job passes over whatever is in them, because it means what was
    /// there before.
    pub(super) fn reuses_slots(&self) -> bool {
        !self.jobs.jobs.values().any(|job| matches!(job.task, Task::Urls { .. }))
    }

    /// Whether a job has steps left.
    pub(super) fn has_work(&self) -> bool {
        !self.jobs.jobs.is_empty()
    }

    /// Takes a step of the oldest job.
    pub(super) fn work(&mut self) {
        let Some((id, mut job)) = self.jobs.jobs.pop_first() else { return };
        if self.step(&mut job) {
            self.remember(id, &job);
        } else {
            self.jobs.jobs.insert(id, job);
        }
    }

    /// Answers whether that was the last one.
    fn step(&mut self, job: &mut Job) -> bool {
        let end = job.total.min(job.passed.saturating_add(job.task.step()));
        for slot in job.passed..end {
            job.affected += u64::from(self.work_on(&job.task, job.before, EntryId(slot)));
        }
        job.passed = end;
        if end == job.total && std::mem::take(&mut job.again) {
            (job.passed, job.total) = (0, self.urls.slots());
            return false;
        }
        let done = end == job.total;
        if done && matches!(job.task, Task::Sweep) {
            self.unswept = false;
        }
        done
    }

    /// Does to one entry what a task says; answers whether that changed anything.
    fn work_on(&mut self, task: &Task, before: Rank, id: EntryId) -> bool {
        let entry = &self.urls[id];
        let state = entry.state();
        if state == State::Free {
            return false;
        }
        match task {
            Task::Sweep => {
                if self.is_gone(id) {
                    self.sweep(id);
                }
                false
            }
            Task::Purge { queue, pattern } => {
                let of = entry.queue;
                let meant = queue.is_none_or(|queue| queue == of)
                    && state.is_pending()
                    && self.urls.live(id).admitted() <= before
                    && !self.is_gone(id)
                    && pattern.matches(&self.urls.url(id));
                if meant {
                    self.drop_entry(id);
                    self.supply(of, None);
                }
                meant
            }
            Task::Dead { queue, change } => {
                let meant = state == State::Dead
                    && queue.is_none_or(|queue| queue == entry.queue)
                    && self.dead_letters.get(&id).is_some_and(|death| death.rank <= before)
                    && !self.is_gone(id);
                if meant {
                    let queue = entry.queue;
                    let changed = self.change_dead(id, *change);
                    self.supply(queue, None);
                    return changed;
                }
                false
            }
            Task::Urls { queue, pattern, change } => {
                queue.is_none_or(|queue| queue == entry.queue)
                    && !self.is_gone(id)
                    && self.change_url(id, pattern.as_ref(), *change)
            }
        }
    }

    /// Answers whether there was anything to change. A crawl that is over visits nothing again. What need not be read is not.
    fn change_url(&mut self, id: EntryId, pattern: Option<&Pattern>, change: UrlsChange) -> bool {
        let queue = self.urls[id].queue;
        let matches = |urls: &Urls| pattern.is_none_or(|pattern| pattern.matches(&urls.url(id)));
        match change {
            UrlsChange::Forget => {
                if !matches(&self.urls) {
                    return false;
                }
                self.drop_entry(id);
            }
            UrlsChange::Revisit => {
                let is_done = matches!(self.urls.state(id), State::Done | State::Revisiting);
                if !is_done || self.is_finished() || !matches(&self.urls) {
                    return false;
                }
                self.leave(id);
                self.place_as_admitted(id, self.now);
                self.enter(id, State::Pending);
            }
            UrlsChange::ForgetPages(before) => {
                let page = self.urls.page(id).filter(|page| page.visited < before);
                let Some(page) = page.filter(|_| matches(&self.urls)) else { return false };
                self.urls.forget_page(id, &page);
                // For its queue nothing is new.
                return true;
            }
        }
        self.supply(queue, None);
        true
    }

    /// Stops a job where it is; answers whether there was one. Sweeping goes on: what it frees is gone already.
    pub(super) fn cancel_job(&mut self, id: u64) -> bool {
        let cancelled = self.jobs.jobs.get(&id).is_some_and(|job| !matches!(job.task, Task::Sweep));
        if cancelled && let Some(job) = self.jobs.jobs.remove(&id) {
            self.remember(id, &job);
        }
        cancelled
    }

    fn remember(&mut self, id: u64, job: &Job) {
        if matches!(job.task, Task::Sweep) {
            return;
        }
        if self.jobs.ended.len() == ENDED_MAX {
            self.jobs.ended.pop_front();
        }
        let report = JobReport { ended: true, ..self.job_report(id, job) };
        self.jobs.ended.push_back(report);
    }

    /// Those that have ended first.
    pub(super) fn job_reports(&self) -> impl Iterator<Item = JobReport> {
        let under_way = self.jobs.jobs.iter().map(|(id, job)| self.job_report(*id, job));
        self.jobs.ended.iter().cloned().chain(under_way)
    }

    fn job_report(&self, id: u64, job: &Job) -> JobReport {
        JobReport {
            id,
            what: self.describe(&job.task),
            passed: job.passed.into(),
            total: job.total.into(),
            affected: job.affected,
            ended: false,
        }
    }

    fn describe(&self, task: &Task) -> String {
        let of = |queue: &Option<QueueId>| match queue {
            Some(queue) => format!("of queue {}", self.queues[*queue].key),
            None => "of all queues".to_owned(),
        };
        match task {
            Task::Sweep => "free the memory of forgotten URLs".to_owned(),
            Task::Purge { queue, pattern } => {
                format!("purge pending URLs {} that match {pattern}", of(queue))
            }
            Task::Dead { queue, change } => {
                let verb = if *change == DeadChange::Replay { "replay" } else { "purge" };
                format!("{verb} dead letters {}", of(queue))
            }
            Task::Urls { queue, pattern, change } => change.describe(&of(queue), pattern.as_ref()),
        }
    }
}
