//! Workers: they claim, fetch from the generated web and settle, and meet whatever trouble the scene has for them.

use std::time::Duration;

use trapline_core::Timestamp;
use trapline_frontier::script::{Claim, Settle, SettleAs, Verb};
use trapline_frontier::{Answer, Lease};

use super::Simulation;
use super::agenda::{Event, Job};
use crate::faults::Fault;
use crate::oracle::Breach;
use crate::web::Response;

/// How often a page that fails is asked for.
const TRIES_MAX: u32 = 3;

/// How many links of a page are followed: enough to reach everything in time.
const LINKS_MAX: usize = 8;

impl Simulation {
    /// A worker with nothing to do claims.
    pub(super) fn claim(&mut self, worker: u32) -> Result<(), Breach> {
        let claim = self.some_claim();
        let answers = self.act(Verb::Claim(claim))?;
        let now = self.now;
        let lost = !answers.leases.is_empty() && self.scene.strikes(Fault::Lost, &mut self.random);
        let dies = self.scene.strikes(Fault::Deaths, &mut self.random);
        if lost || dies {
            // Nobody knows of the leases any more. Another worker takes its place.
            let back = self.in_about(5_000);
            self.agenda.add(back, Event::Wake(worker));
            return Ok(());
        }
        if answers.leases.is_empty() {
            let soon = self.in_about(2_000);
            let told = answers.claimed.and_then(|claimed| claimed.next).filter(|_| self.random.chance(4, 5));
            let wake = told.map_or(soon, |next| next.min(now + Duration::from_secs(20)));
            self.agenda.add(wake.max(now), Event::Wake(worker));
            return Ok(());
        }
        let jobs: Vec<Job> =
            answers.leases.into_iter().map(|(number, lease)| self.begin(number, lease)).collect();
        self.go_on(worker, jobs);
        Ok(())
    }

    fn some_claim(&mut self) -> Claim {
        let random = &mut self.random;
        let urls = usize::try_from(*random.choose(&[1, 1, 1, 2, 3, 5])).unwrap_or(1);
        let mut claim = Claim { urls, ..Claim::default() };
        if random.chance(1, 10) {
            claim.per_queue = Some(*random.choose(&[1, 2]));
        }
        if random.chance(1, 10) {
            claim.queues = Some(*random.choose(&[1, 2]));
        }
        if random.chance(1, 20) {
            claim.min_queues = Some(*random.choose(&[2, 3]));
        }
        if random.chance(1, 8) {
            let short = if self.scene.rate(Fault::Late) > 0 { 1 } else { 500 };
            claim.lease = Some(Duration::from_millis(*random.choose(&[short, 500, 2_000, 30_000])));
        }
        if random.chance(1, 15) {
            claim.keys = Some(vec![self.some_key()]);
        } else if random.chance(1, 15) {
            claim.except = vec![self.some_key()];
        }
        claim
    }

    /// A fetch begins; when it will be settled depends on who fetches.
    fn begin(&mut self, number: usize, lease: Lease) -> Job {
        let fetched = self.scene.web.fetch(&lease.request.url, self.now, &mut self.random);
        let deadline = lease.deadline;
        let mut ends = self.now + fetched.took;
        if self.scene.strikes(Fault::Stalls, &mut self.random) {
            ends = deadline + Duration::from_millis(self.random.range(0..30_000));
        } else if self.scene.strikes(Fault::Late, &mut self.random) {
            let around = self.random.range(0..3);
            ends = Timestamp::from_millis((deadline.as_millis() + around).saturating_sub(1)).max(self.now);
        }
        Job { number, lease, response: fetched.response, ends, deadline }
    }

    /// Fetches go on until the first of them ends, or needs more time than its lease has.
    fn go_on(&mut self, worker: u32, mut jobs: Vec<Job>) {
        jobs.sort_by_key(|job| job.ends);
        let Some(first) = jobs.first() else {
            let wake = self.in_about(50);
            self.agenda.add(wake, Event::Wake(worker));
            return;
        };
        // Whoever stalls does not renew either.
        let stalls = self.scene.rate(Fault::Stalls) + self.scene.rate(Fault::Late) > 0;
        if let Some(late) = jobs.iter().position(|job| job.ends >= job.deadline)
            && !stalls
        {
            let late = jobs.remove(late);
            let left = late.deadline.since(self.now).as_millis() as u64;
            let before = Timestamp::from_millis(self.now.as_millis() + left / 2);
            self.agenda.add(before, Event::Renew(worker, late));
            if jobs.is_empty() {
                return;
            }
            return self.go_on(worker, jobs);
        }
        // Together, if they end together; or the whole claim when the last is done.
        let at = if self.random.chance(1, 3) {
            jobs.last().map_or(first.ends, |last| last.ends)
        } else {
            first.ends
        };
        let rest = jobs.split_off(jobs.partition_point(|job| job.ends <= at));
        self.agenda.add(at, Event::End(worker, jobs));
        for job in rest {
            self.agenda.add(job.ends, Event::End(worker, vec![job]));
        }
    }

    /// A worker asks for more time; if it is too late, it stops.
    pub(super) fn renew(&mut self, worker: u32, mut job: Job) -> Result<(), Breach> {
        let longer = Duration::from_millis(*self.random.choose(&[1_000, 10_000, 60_000]));
        let settle = self.settlement(&job, SettleAs::Renew { lease: longer });
        let answers = self.act(Verb::Settle(settle))?;
        if answers.texts.iter().any(|text| *text == Answer::Renewed.to_string()) {
            job.deadline = self.now + longer;
            self.go_on(worker, vec![job]);
        } else {
            self.go_on(worker, Vec::new());
        }
        Ok(())
    }

    /// A worker settles what has ended, and claims again.
    pub(super) fn settle(&mut self, worker: u32, jobs: &[Job]) -> Result<(), Breach> {
        let mut settlements = Vec::new();
        for job in jobs {
            let settlement = self.conclude(job);
            if self.scene.strikes(Fault::Doubles, &mut self.random) {
                let later = *self.random.choose(&[0, 1, 5_000, 60_000]);
                let again = Event::Again(self.named(&settlement, job));
                self.agenda.add(self.now + Duration::from_millis(later), again);
            }
            settlements.push(settlement);
        }
        let repeat: Vec<Settle> =
            settlements.iter().zip(jobs).map(|(settlement, job)| self.named(settlement, job)).collect();
        self.act_together(settlements.into_iter().map(Verb::Settle).collect())?;
        if self.scene.strikes(Fault::Lost, &mut self.random) {
            // The answer did not arrive, so the whole batch is sent again.
            self.act_together(repeat.into_iter().map(Verb::Settle).collect())?;
        }
        self.go_on(worker, Vec::new());
        Ok(())
    }

    /// What a worker makes of a fetch.
    fn conclude(&mut self, job: &Job) -> Settle {
        let now = self.now;
        let mut links = Vec::new();
        let mut delay = None;
        let outcome = match &job.response {
            _ if self.random.chance(1, 30) => SettleAs::Release,
            _ if self.random.chance(1, 30) => SettleAs::Retry { at: self.some_time() },
            Response::Page { links: found, .. } => {
                links.extend(found.iter().take(LINKS_MAX).cloned());
                let revisits = self.random.chance(self.scene.revisits, 100);
                SettleAs::done(revisits.then(|| self.some_time()))
            }
            Response::Redirect { to } => {
                links.push(to.clone());
                SettleAs::done(None)
            }
            Response::NotFound => SettleAs::Dead { reason: "404".to_owned() },
            Response::Broken | Response::Unavailable { .. } if job.lease.retries >= TRIES_MAX => {
                SettleAs::Dead { reason: "gave up".to_owned() }
            }
            Response::Broken => SettleAs::Retry { at: self.some_time() },
            Response::Unavailable { retry_after } => {
                delay = Some(*retry_after);
                SettleAs::Retry { at: now + *retry_after }
            }
            Response::Disallowed => SettleAs::Disregard,
        };
        if self.random.chance(1, 10) {
            delay = Some(Duration::from_millis(*self.random.choose(&[0, 100, 2_000, 15_000])));
        }
        Settle { delay, links, ..self.settlement(job, outcome) }
    }

    /// A plain settlement of a job. It names its lease where the URL alone would not do, and sometimes else.
    fn settlement(&mut self, job: &Job, outcome: SettleAs) -> Settle {
        let is_newest = self.rig.is_newest(job.number, job.lease.identity);
        let is_named = !is_newest || self.random.chance(1, 6);
        Settle {
            url: job.lease.request.url.clone(),
            outcome,
            delay: None,
            links: Vec::new(),
            lease: is_named.then_some(job.number + 1),
        }
    }

    /// A settlement that will still mean the same lease when the URL was leased again.
    fn named(&self, settle: &Settle, job: &Job) -> Settle {
        Settle { lease: Some(job.number + 1), ..settle.clone() }
    }
}
