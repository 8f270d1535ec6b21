//! Workers: they claim, fetch from the generated web and settle, and meet whatever trouble the scene has for them.

use std::time::Duration;

use trapline_core::Timestamp;
use trapline_frontier::script::{Claim, Settle, SettleAs, Verb};
use trapline_frontier::{Answer, Lease, Visit};

use super::Simulation;
use super::agenda::{Event, Job};
use crate::faults::Trouble;
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
        let answers = self.act_at_risk(vec![Verb::Claim(claim)])?;
        let now = self.now;
        let lost = !answers.leases.is_empty() && self.scene.strikes(Trouble::Lost, &mut self.random);
        if lost || self.scene.strikes(Trouble::Deaths, &mut self.random) {
            self.replace(worker);
            return Ok(());
        }
        if answers.leases.is_empty() {
            let soon = self.in_about(2_000);
            let told = answers.claimed.and_then(|claimed| claimed.next).filter(|_| self.random.chance(4, 5));
            let wake = told.map_or(soon, |next| next.min(now + Duration::from_secs(20)));
            self.agenda.add(wake.max(now), Event::Wake(worker));
            return Ok(());
        }
        let mut jobs: Vec<Job> =
            answers.leases.into_iter().map(|(number, lease)| self.begin(number, lease)).collect();
        if self.random.chance(1, 3) {
            // The whole claim is settled when the last page of it is there.
            let ends = jobs.iter().filter(|job| job.renews).map(|job| job.ends).max();
            jobs.iter_mut().filter(|job| job.renews).for_each(|job| job.ends = ends.unwrap_or(job.ends));
        }
        jobs.iter_mut().for_each(|job| self.plan(job));
        self.go_on(worker, jobs);
        Ok(())
    }

    /// Nobody knows of a worker's leases any more. Another takes its place.
    fn replace(&mut self, worker: u32) {
        let back = self.in_about(5_000);
        self.agenda.add(back, Event::Wake(worker));
    }

    fn some_claim(&mut self) -> Claim {
        let random = &mut self.random;
        let urls = *random.choose(&[1, 1, 1, 2, 3, 5]);
        let mut claim = Claim { urls, ..Claim::default() };
        if random.chance(1, 10) {
            claim.per_queue = Some(*random.choose(&[1, 2]));
        }
        if random.chance(1, 10) {
            claim.queues = Some(*random.choose(&[1, 2]));
        }
        if random.chance(1, 12) {
            claim.min_queues = Some(*random.choose(&[2, 3]));
        }
        if random.chance(1, 8) {
            let short = if self.scene.rate(Trouble::Late) > 0 { *random.choose(&[0, 1]) } else { 500 };
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
        let (mut ends, mut renews) = (self.now + fetched.took, false);
        if self.scene.strikes(Trouble::Stalls, &mut self.random) {
            ends = deadline + Duration::from_millis(self.random.range(0..30_000));
        } else if self.scene.strikes(Trouble::Late, &mut self.random) {
            let around = self.random.range(0..3);
            ends = Timestamp::from_millis((deadline.as_millis() + around).saturating_sub(1)).max(self.now);
        } else {
            renews = true;
        }
        Job { number, lease, response: fetched.response, ends, deadline, renews, acts: ends }
    }

    /// When something is to be done about a job: half-way to its deadline, if it takes longer than that or its worker is
    /// anxious, else when it ends.
    fn plan(&mut self, job: &mut Job) {
        let is_anxious = self.random.chance(1, 15);
        job.acts = job.ends;
        if job.renews && (is_anxious || job.ends >= job.deadline) {
            let left = job.deadline.as_millis().saturating_sub(self.now.as_millis());
            job.acts = job.ends.min(Timestamp::from_millis(self.now.as_millis() + left / 2));
        }
    }

    /// A worker goes on until the first of its jobs needs it; without any it claims again.
    fn go_on(&mut self, worker: u32, jobs: Vec<Job>) {
        match jobs.iter().map(|job| job.acts).min() {
            Some(at) => self.agenda.add(at, Event::Work(worker, jobs)),
            None => {
                let wake = self.in_about(50);
                self.agenda.add(wake, Event::Wake(worker));
            }
        }
    }

    /// A worker settles what has ended and renews what needs more time, in one batch. What is too late to renew it gives up.
    pub(super) fn work(&mut self, worker: u32, jobs: Vec<Job>) -> Result<(), Breach> {
        if self.scene.strikes(Trouble::Deaths, &mut self.random) && self.random.chance(1, 4) {
            self.replace(worker);
            return Ok(());
        }
        let (due, mut rest): (Vec<Job>, Vec<Job>) = jobs.into_iter().partition(|job| job.acts <= self.now);
        let (ended, renewed): (Vec<Job>, Vec<Job>) = due.into_iter().partition(|job| job.ends <= self.now);
        let mut batch = Vec::new();
        for job in &ended {
            let settlement = self.conclude(job);
            if self.scene.strikes(Trouble::Doubles, &mut self.random) {
                let later = *self.random.choose(&[0, 1, 5_000, 60_000]);
                let again = Event::Again(named(&settlement, job));
                self.agenda.add(self.now + Duration::from_millis(later), again);
            }
            batch.push(settlement);
        }
        let longer = Duration::from_millis(*self.random.choose(&[1_000, 10_000, 60_000]));
        for job in &renewed {
            batch.push(self.settlement(job, SettleAs::Renew { lease: longer }));
        }
        let all = ended.iter().chain(&renewed);
        let repeat = batch.iter().zip(all).map(|(settle, job)| Verb::Settle(named(settle, job))).collect();
        let mut answers = self.act_at_risk(batch.into_iter().map(Verb::Settle).collect())?;
        if answers.lost || self.scene.strikes(Trouble::Lost, &mut self.random) {
            // The answer did not arrive, so the whole batch is sent again.
            answers = self.act_together(repeat)?;
        }
        let renewed_until = self.history.latest() + longer;
        let is_renewed =
            answers.texts.iter().skip(ended.len()).map(|text| *text == Answer::Renewed.to_string());
        for (mut job, _) in renewed.into_iter().zip(is_renewed).filter(|(_, is_renewed)| *is_renewed) {
            job.deadline = renewed_until;
            self.plan(&mut job);
            rest.push(job);
        }
        self.go_on(worker, rest);
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
            Response::Page { links: found, bytes, digest } => {
                links.extend(found.iter().take(LINKS_MAX).cloned());
                let revisits = self.random.chance(self.scene.revisits, 100);
                let records = self.random.chance(self.scene.records, 100);
                let visit = if records { visit(job, *bytes, *digest) } else { Visit::default() };
                SettleAs::Done { visit, next: revisits.then(|| self.some_time()) }
            }
            Response::Redirect { to } => {
                links.push(to.clone());
                let records = self.random.chance(self.scene.records, 100);
                SettleAs::Done {
                    visit: Visit { status: if records { 301 } else { 0 }, ..Visit::default() },
                    next: None,
                }
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
}

/// A settlement that will still mean the same lease when the URL was leased again.
fn named(settle: &Settle, job: &Job) -> Settle {
    Settle { lease: Some(job.number + 1), ..settle.clone() }
}

/// What a visit left: the page, or the word that it is the same as last time.
fn visit(job: &Job, bytes: u64, digest: u64) -> Visit {
    let digest = Some(digest.to_be_bytes().to_vec());
    let last = job.lease.page.as_ref().map(|page| &page.visit.digest);
    let (status, bytes) = if last == Some(&digest) { (304, 0) } else { (200, bytes) };
    Visit { status, bytes, digest, ..Visit::default() }
}
