//! Stores that cheat, to see that the oracle notices: the memory store behind somebody who tampers with what goes in or
//! comes out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use trapline_core::{Candidate, Timestamp};
use trapline_frontier::script::{Reopen, Verdict};
use trapline_frontier::{
    Admission, Answer, Claimed, CrawlChange, LeaseId, MemoryStore, Outcome, Page, Query, QueueChange, Rows,
    Scan, Settled, Settlement, Stats, Steer, Steered, Store, StoreError, UrlState, Want,
};
use trapline_sim::{Faults, MemoryStores, Opened, Rule, SimPlan, Stores, check_seed};

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
    /// Loses everything when it is opened again.
    LosesItself,
    /// Panics at its hundredth settlement.
    Panics,
}

impl Cheat {
    const ALL: [Self; 16] = [
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
        Self::LosesItself,
        Self::Panics,
    ];
}

struct Cheats(Cheat);

impl Stores for Cheats {
    fn open(&self) -> Result<Opened, StoreError> {
        let store = Cheater { memory: MemoryStore::new(), cheat: self.0, calls: AtomicU64::new(0) };
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
        let mut claimed = self.memory.claim(crawl, now, &want).await?;
        let was_short = claimed.leases.len() < want.urls;
        for lease in &mut claimed.leases {
            if self.is(Cheat::ForgetsTheVia) {
                Arc::make_mut(&mut lease.request).via = None;
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
        for settlement in &mut batch {
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

/// Every cheat is found within a few seeds.
#[test]
fn the_oracle_notices_every_cheat() {
    for cheat in Cheat::ALL {
        let found = (0..200).find_map(|seed| {
            let plan = SimPlan { seed, ..SimPlan::default() };
            check_seed(&plan, &Cheats(cheat), false).expect("stores in memory can be opened").err()
        });
        let failure = found.unwrap_or_else(|| panic!("{cheat:?} went unseen"));
        let rule = failure.breach.rule;
        let expected = match cheat {
            Cheat::BelievesAFilter => Rule::N6,
            Cheat::LosesALink => Rule::N8,
            Cheat::AcceptsTheStale => Rule::N3,
            Cheat::Panics => Rule::Failure,
            _ => rule,
        };
        assert_eq!(rule, expected, "{cheat:?}: {}", failure.breach);
        assert!(failure.find.is_some(), "{cheat:?} was not made small: {}", failure.breach);
    }
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
