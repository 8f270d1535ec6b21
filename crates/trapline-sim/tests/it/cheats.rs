//! Stores that cheat, to see that the oracle notices: the memory store behind somebody who tampers with what goes in or
//! comes out.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use trapline_core::{Candidate, Identity, Timestamp};
use trapline_frontier::script::{Reopen, Verdict};
use trapline_frontier::{
    Admission, Answer, Claimed, CrawlChange, LeaseId, LeaseReport, MemoryStore, Outcome, Page, Query,
    QueueChange, Rows, Scan, Settled, Settlement, Stats, Steer, Steered, Store, StoreError, UrlChange,
    UrlState, Want,
};
use trapline_sim::{
    Faults, MemoryStores, Opened, Rule, SeedRange, SimPlan, Stores, check_seed, run_seeds, simulate,
};

use crate::kept::HesitantStores;

/// How a store cheats.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cheat {
    /// Says that a new URL is known, now and then.
    BelievesAFilter,
    /// Forgets the last link of a page.
    LosesALink,
    /// Does not pass a pause on.
    ForgetsAPause,
    /// Hands a number out again.
    ReusesANumber,
    /// Lets leases expire a millisecond early.
    ExpiresEarly,
    /// Waits a millisecond less than it was told to.
    ShortensDelays,
    /// Takes an old number for the newest lease of its URL, or says so.
    AcceptsTheStale,
    /// Does not retire a queue.
    ForgetsToRetire,
    /// Serves the queues it was told to leave alone.
    IgnoresExcept,
    /// Grants one more than wanted.
    GrantsTooMuch,
    /// Says it is exhausted when a claim finds nothing.
    GivesUpEarly,
    /// Says that more will be there a second late.
    WakesLate,
    /// Hands requests out without where they were found.
    ForgetsTheVia,
    /// Shows done URLs as unknown.
    ForgetsTheDone,
    /// Forgets a URL that it has just said was added, now and then.
    LosesAnAdmission,
    /// Forgets a URL once it is done, now and then.
    LosesTheDone,
    /// Hands a URL out that nobody has admitted, now and then.
    InventsAUrl,
    /// Serves one queue before all others.
    HasAFavourite,
    /// Spreads nothing over different queues.
    IgnoresMinQueues,
    /// Grants nothing to whoever wants ten.
    HatesLargeClaims,
    /// Does not count the bytes of a visit.
    ForgetsTheBytes,
    /// Does not keep the digest of a visit.
    ForgetsTheDigest,
    /// Hands URLs out without what their last visit left.
    HandsOutNoPage,
    /// Loses everything when it is opened again.
    LosesItself,
    /// Panics at its hundredth settlement.
    Panics,
}

impl Cheat {
    const ALL: [Self; 25] = [
        Self::BelievesAFilter,
        Self::LosesALink,
        Self::ForgetsAPause,
        Self::ReusesANumber,
        Self::ExpiresEarly,
        Self::ShortensDelays,
        Self::AcceptsTheStale,
        Self::ForgetsToRetire,
        Self::IgnoresExcept,
        Self::GrantsTooMuch,
        Self::GivesUpEarly,
        Self::WakesLate,
        Self::ForgetsTheVia,
        Self::ForgetsTheDone,
        Self::LosesAnAdmission,
        Self::LosesTheDone,
        Self::InventsAUrl,
        Self::HasAFavourite,
        Self::IgnoresMinQueues,
        Self::HatesLargeClaims,
        Self::ForgetsTheBytes,
        Self::ForgetsTheDigest,
        Self::HandsOutNoPage,
        Self::LosesItself,
        Self::Panics,
    ];

    /// The rule that it must be found to break, and those that may be seen broken before.
    fn rules(self) -> (Rule, &'static [Rule]) {
        match self {
            Self::BelievesAFilter => (Rule::N6, &[]),
            Self::LosesALink => (Rule::N8, &[]),
            Self::ForgetsAPause => (Rule::N7, &[Rule::Report]),
            Self::ReusesANumber | Self::AcceptsTheStale => (Rule::N3, &[]),
            Self::ExpiresEarly => (Rule::Supply, &[Rule::Report]),
            Self::ShortensDelays => (Rule::Supply, &[Rule::Report]),
            Self::ForgetsToRetire => (Rule::Bounds, &[Rule::Report]),
            Self::IgnoresExcept | Self::GrantsTooMuch => (Rule::Bounds, &[]),
            Self::GivesUpEarly | Self::WakesLate => (Rule::Supply, &[]),
            Self::ForgetsTheVia | Self::HandsOutNoPage => (Rule::Lease, &[]),
            Self::ForgetsTheDone => (Rule::N1, &[Rule::N8]),
            Self::LosesAnAdmission | Self::LosesTheDone => {
                (Rule::N1, &[Rule::N8, Rule::Supply, Rule::Report])
            }
            Self::InventsAUrl => (Rule::N2, &[]),
            Self::HasAFavourite => (Rule::N9, &[Rule::Order]),
            Self::IgnoresMinQueues => (Rule::Bounds, &[Rule::Order]),
            Self::HatesLargeClaims => (Rule::Drain, &[]),
            Self::ForgetsTheBytes | Self::ForgetsTheDigest => (Rule::Report, &[Rule::Lease]),
            Self::LosesItself => (Rule::N1, &[Rule::N8, Rule::Lease, Rule::Report]),
            Self::Panics => (Rule::Failure, &[]),
        }
    }
}

struct Cheats(Cheat);

impl Stores for Cheats {
    fn open(&self) -> Result<Opened, StoreError> {
        let store = Cheater {
            memory: MemoryStore::new(),
            cheat: self.0,
            calls: AtomicU64::new(0),
            favourite: Mutex::new(None),
        };
        let reopen = (self.0 == Cheat::LosesItself).then(|| Box::new(Lost) as Box<dyn Reopen>);
        Ok(Opened { store: Arc::new(store), reopen })
    }
}

struct Lost;

#[async_trait]
impl Reopen for Lost {
    async fn restart(&mut self) -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(MemoryStore::new()))
    }

    async fn crash(&mut self) -> Result<Arc<dyn Store>, StoreError> {
        self.restart().await
    }
}

struct Cheater {
    memory: MemoryStore,
    cheat: Cheat,
    calls: AtomicU64,
    /// The first queue there was.
    favourite: Mutex<Option<String>>,
}

impl Cheater {
    fn is(&self, cheat: Cheat) -> bool {
        self.cheat == cheat
    }

    /// Now and then.
    fn now_and_then(&self) -> bool {
        self.calls.fetch_add(1, Ordering::Relaxed) % 7 == 6
    }
}

impl Cheater {
    /// Whatever the favourite has, and the rest from others.
    async fn claim_from_favourite(
        &self,
        crawl: Option<&str>,
        now: Timestamp,
        want: &Want,
    ) -> Result<Claimed, StoreError> {
        let favourite = self.favourite.lock().expect("nobody panics while holding it").clone();
        let is_bound = want.keys.is_some() || want.per_queue.or(want.queues).or(want.min_queues).is_some();
        let Some(favourite) = favourite.filter(|key| !is_bound && !want.except.contains(key)) else {
            return self.memory.claim(crawl, now, want).await;
        };
        let first = Want { keys: Some(vec![favourite]), ..want.clone() };
        let mut claimed = self.memory.claim(crawl, now, &first).await?;
        let rest = Want { urls: want.urls - claimed.leases.len(), ..want.clone() };
        if rest.urls > 0 {
            let others = self.memory.claim(crawl, now, &rest).await?;
            claimed.leases.extend(others.leases);
            (claimed.next, claimed.exhausted) = (others.next, others.exhausted);
        }
        Ok(claimed)
    }

    /// The URLs that are leased.
    async fn leased(&self, crawl: &str, now: Timestamp) -> Result<Vec<(LeaseId, Identity)>, StoreError> {
        let rows = |query| async {
            Ok::<_, StoreError>(self.memory.scan(crawl, now, &Scan::new(query)).await?.rows)
        };
        let Rows::Leases(leases) = rows(Query::Leases).await? else { unreachable!("leases were asked for") };
        let all = Query::Urls { key: None, pattern: None, state: Some(UrlState::Leased) };
        let Rows::Urls(urls) = rows(all).await? else { unreachable!("URLs were asked for") };
        let of = |lease: &LeaseReport| {
            let url =
                urls.iter().find(|url| url.request.as_ref().is_some_and(|it| it.url == lease.request.url));
            url.map(|url| (lease.id, url.identity))
        };
        Ok(leases.iter().filter_map(of).collect())
    }
}

fn a_little_less(time: &mut Option<Duration>) {
    *time = time.map(|time| time.saturating_sub(Duration::from_millis(1)));
}

#[async_trait]
impl Store for Cheater {
    async fn admit(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: &[Candidate],
    ) -> Result<Vec<Admission>, StoreError> {
        let mut answers = self.memory.admit(crawl, now, batch).await?;
        if let Some(first) = batch.first() {
            self.favourite
                .lock()
                .expect("nobody panics while holding it")
                .get_or_insert_with(|| first.key.to_string());
        }
        for (candidate, answer) in batch.iter().zip(&answers) {
            if self.is(Cheat::LosesAnAdmission) && *answer == Admission::Added && self.now_and_then() {
                self.memory.steer(crawl, now, Steer::Url(candidate.identity, UrlChange::Forget)).await?;
            }
        }
        if self.is(Cheat::BelievesAFilter) && self.now_and_then() {
            answers
                .iter_mut()
                .filter(|answer| **answer == Admission::Added)
                .for_each(|a| *a = Admission::Known);
        }
        Ok(answers)
    }

    async fn claim(&self, crawl: Option<&str>, now: Timestamp, want: &Want) -> Result<Claimed, StoreError> {
        let mut want = want.clone();
        if self.is(Cheat::IgnoresExcept) {
            want.except.clear();
        }
        if self.is(Cheat::GrantsTooMuch) {
            want.urls += 1;
        }
        if self.is(Cheat::IgnoresMinQueues) {
            want.min_queues = None;
        }
        let mut claimed = if self.is(Cheat::HasAFavourite) {
            self.claim_from_favourite(crawl, now, &want).await?
        } else if self.is(Cheat::HatesLargeClaims) && want.urls == 10 {
            let nothing = Want { keys: Some(Vec::new()), ..want.clone() };
            self.memory.claim(crawl, now, &nothing).await?
        } else {
            self.memory.claim(crawl, now, &want).await?
        };
        if self.is(Cheat::InventsAUrl)
            && let Some(last) = claimed.leases.last_mut()
            && self.now_and_then()
        {
            last.identity = Identity(last.identity.0 ^ 1);
        }
        let was_short = claimed.leases.len() < want.urls;
        for lease in &mut claimed.leases {
            if self.is(Cheat::ForgetsTheVia) {
                Arc::make_mut(&mut lease.request).via = None;
            }
            if self.is(Cheat::HandsOutNoPage) {
                lease.page = None;
            }
            if self.is(Cheat::ReusesANumber) {
                lease.id = LeaseId(lease.id.0 % 20);
            }
        }
        if self.is(Cheat::GivesUpEarly) {
            claimed.exhausted |= claimed.leases.is_empty();
        }
        if self.is(Cheat::WakesLate) && was_short {
            claimed.next = claimed.next.map(|next| next + Duration::from_secs(1));
        }
        Ok(claimed)
    }

    async fn settle(
        &self,
        crawl: &str,
        now: Timestamp,
        mut batch: Vec<Settlement>,
    ) -> Result<Vec<Settled>, StoreError> {
        if self.is(Cheat::Panics) {
            assert!(self.calls.fetch_add(1, Ordering::Relaxed) < 100, "the hundredth settlement");
        }
        let done: Vec<LeaseId> = batch
            .iter()
            .filter(|settlement| matches!(settlement.outcome, Outcome::Done { next: None, .. }))
            .map(|settlement| settlement.lease)
            .collect();
        let leased = if self.is(Cheat::LosesTheDone) { self.leased(crawl, now).await? } else { Vec::new() };
        for settlement in &mut batch {
            if let Outcome::Done { visit, .. } = &mut settlement.outcome {
                if self.is(Cheat::ForgetsTheBytes) {
                    visit.bytes = 0;
                }
                if self.is(Cheat::ForgetsTheDigest) {
                    visit.digest = None;
                }
            }
            if self.is(Cheat::LosesALink) {
                settlement.links.pop();
            }
            if self.is(Cheat::ShortensDelays) {
                a_little_less(&mut settlement.delay);
            }
            if self.is(Cheat::ExpiresEarly)
                && let Outcome::Renew { lease } = &mut settlement.outcome
            {
                *lease = lease.saturating_sub(Duration::from_millis(1));
            }
        }
        let mut settled = self.memory.settle(crawl, now, batch).await?;
        for (lease, identity) in leased {
            if done.contains(&lease) && self.now_and_then() {
                self.memory.steer(crawl, now, Steer::Url(identity, UrlChange::Forget)).await?;
            }
        }
        if self.is(Cheat::AcceptsTheStale) {
            settled.iter_mut().filter(|s| s.answer == Answer::Stale).for_each(|s| s.answer = Answer::Done);
        }
        Ok(settled)
    }

    async fn steer(&self, crawl: &str, now: Timestamp, steer: Steer) -> Result<Steered, StoreError> {
        match steer {
            Steer::Crawl(CrawlChange::Pause) if self.is(Cheat::ForgetsAPause) => Ok(Steered::default()),
            Steer::Queue(_, QueueChange::Retire) if self.is(Cheat::ForgetsToRetire) => Ok(Steered::default()),
            steer => self.memory.steer(crawl, now, steer).await,
        }
    }

    async fn scan(&self, crawl: &str, now: Timestamp, scan: &Scan) -> Result<Page, StoreError> {
        let mut page = self.memory.scan(crawl, now, scan).await?;
        if self.is(Cheat::ForgetsTheDone)
            && matches!(scan.query, Query::UrlList(_))
            && let Rows::Urls(urls) = &mut page.rows
        {
            for url in urls.iter_mut().filter(|url| url.state == UrlState::Done) {
                url.state = UrlState::Unknown;
            }
        }
        Ok(page)
    }

    async fn stats(&self, crawl: &str, now: Timestamp) -> Result<Stats, StoreError> {
        self.memory.stats(crawl, now).await
    }
}

/// Every cheat is found to break the rule that it breaks, within so many seeds.
const SEEDS: u64 = 1_000;

#[test]
fn the_oracle_notices_every_cheat_by_the_rule_it_breaks() {
    for cheat in Cheat::ALL {
        let (must, before) = cheat.rules();
        let found = (0..SEEDS).find_map(|seed| {
            let plan = SimPlan { seed, ..SimPlan::default() };
            let breach = simulate(&plan, &Cheats(cheat)).expect("stores in memory can be opened").breach?;
            let is_known = breach.rule == must || before.contains(&breach.rule);
            assert!(is_known, "{cheat:?} was found by another rule at seed {seed}: {breach}");
            (breach.rule == must).then_some(plan)
        });
        let plan = found.unwrap_or_else(|| panic!("nobody saw that {cheat:?} breaks {must}"));
        println!("{cheat:?}: {must}, after {} seeds", plan.seed + 1);
        let failure = check_seed(&plan, &Cheats(cheat), false).unwrap().unwrap_err();
        assert_eq!(failure.breach.rule, must);
        let find = failure.find.unwrap_or_else(|| panic!("{cheat:?} was not made small: {}", failure.breach));
        let shown = if must == Rule::Drain { Rule::Supply } else { must };
        assert_eq!(find.breach.rule, shown, "{cheat:?}: {}", find.breach);
    }
}

/// A call that a crash cuts short is done or undone, and either is right; by half it is not.
#[test]
fn the_oracle_notices_calls_that_were_cut_in_half() {
    let seeds = SeedRange { from: 0, count: 200 };
    let whole = run_seeds(&SimPlan::default(), seeds, 2, &HesitantStores { by_halves: false }, &|_| ());
    let tally =
        whole.unwrap().unwrap_or_else(|failure| panic!("seed {}: {}", failure.plan.seed, failure.breach));
    assert!(tally.cuts > 200, "{tally:?}");
    let half = run_seeds(&SimPlan::default(), seeds, 2, &HesitantStores { by_halves: true }, &|_| ());
    let failure = half.unwrap().expect_err("half a batch is seen");
    assert_eq!(failure.breach.rule, Rule::Half, "{}", failure.breach);
}

/// What is found is a trace of a few lines, whose last says what should have come back.
#[test]
fn a_find_is_a_small_trace_that_shows_the_wrong_line() {
    let plan = SimPlan { seed: 3, faults: Faults::ALL, ..SimPlan::default() };
    let find = |cheat| {
        let found = (0..50).find_map(|seed| {
            check_seed(&SimPlan { seed, ..plan }, &Cheats(cheat), false).unwrap().err()?.find
        });
        found.expect("it is noticed and made small")
    };
    for cheat in [Cheat::AcceptsTheStale, Cheat::BelievesAFilter] {
        let find = find(cheat);
        assert!(find.script.steps.len() <= 8, "{cheat:?}:\n{}", find.script);
        // On an honest store the trace holds: the last line expects what is right.
        let store = MemoryStores.open().unwrap().store;
        let played = trapline_frontier::script::run(&find.script, store, None, |step, answer, verdict| {
            assert_ne!(*verdict, Verdict::Different, "{cheat:?}: {}", step.describe(answer));
        });
        pollster::block_on(played).unwrap();
        assert!(find.script.steps.last().is_some_and(|step| step.expected.is_some()));
    }
}
