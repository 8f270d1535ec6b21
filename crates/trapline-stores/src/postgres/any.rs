//! A claim from any crawl: the crawls take turns, one URL each, in one transaction.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use trapline_core::Timestamp;
use trapline_frontier::{Claimed, CrawlState, ErrorKind, StoreError, Want};

use super::claim::{GRANTS_MAX, Round};
use super::evidence::Evidence;
use super::load::text;
use super::session::{Failure, Session};
use super::step::Verb;
use super::store::{Inner, lock};
use super::work::Work;

/// Lets time pass in a crawl, and nothing else.
struct Pass;

#[async_trait]
impl Verb for Pass {
    type Answer = ();

    fn draws(&self) -> usize {
        16
    }

    async fn run(&self, _: &mut Work, _: &mut Session) -> Result<(), Failure> {
        Ok(())
    }
}

/// Claims from all crawls together. The bounds hold for all of them; the wish for different queues is left aside.
pub(super) async fn claim_any(
    inner: &Arc<Inner>,
    now: Timestamp,
    want: &Want,
) -> Result<Claimed, StoreError> {
    let mut names = crawl_names(inner).await?;
    let mut readable = Vec::with_capacity(names.len());
    for name in names.drain(..) {
        match inner.perform("claim", &name, now, &Pass).await {
            Ok(()) => readable.push(name),
            // One that is gone, or that cannot be read, keeps nobody from the others.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Corrupt) => {}
            Err(error) => return Err(error),
        }
    }
    let mut failures = 0;
    loop {
        let mut session = Session::new(inner.pool.client().await?);
        let (failure, claimed) = match try_claim(inner, &mut session, &readable, now, want).await {
            Ok(claimed) => return Ok(claimed),
            Err(failed) => failed,
        };
        match claimed {
            Some((claimed, evidence)) => {
                if inner.was_committed(session.end(), &evidence).await? {
                    return Ok(claimed);
                }
            }
            None => session.roll_back().await,
        }
        failures += 1;
        if !inner.may_try_again(&failure, failures).await {
            return Err(inner.said("claim", failure));
        }
    }
}

/// Holds no connection afterwards: who holds one and wants another waits for those who do the same.
async fn crawl_names(inner: &Inner) -> Result<Vec<Arc<str>>, StoreError> {
    let mut failures = 0;
    loop {
        let session = Session::new(inner.pool.client().await?);
        let failure = match session.rows("SELECT name FROM crawls ORDER BY name", &[]).await {
            Ok(rows) => {
                let names = rows.iter().map(|row| Ok(text(row.try_get(0)?))).collect::<Result<_, Failure>>();
                return names.map_err(|failure| inner.said("claim", failure));
            }
            Err(failure) => failure,
        };
        session.roll_back().await;
        failures += 1;
        if !inner.may_try_again(&failure, failures).await {
            return Err(inner.said("claim", failure));
        }
    }
}

/// Claims once. With the failure to end the transaction comes the answer, and what its end would be seen by.
async fn try_claim(
    inner: &Arc<Inner>,
    session: &mut Session,
    names: &[Arc<str>],
    now: Timestamp,
    want: &Want,
) -> Result<Claimed, (Failure, Option<(Claimed, Evidence)>)> {
    let only = |failure| (failure, None);
    let mut news = Vec::new();
    let granted = grant_turns(inner, session, names, now, want, &mut news).await;
    let (claimed, evidence, served) = granted.map_err(only)?;
    if let Err(failure) = session.commit().await {
        return Err((failure, Some((claimed, evidence))));
    }
    *lock(&inner.last_served) = served;
    for (crawl, after) in news {
        inner.tell(session, crawl, after).await;
    }
    Ok(claimed)
}

/// The crawls take turns. Answers also what it leaves, and which crawl was served last. Of which crawls there is news then is added to
/// those.
async fn grant_turns(
    inner: &Inner,
    session: &mut Session,
    names: &[Arc<str>],
    now: Timestamp,
    want: &Want,
    news: &mut Vec<(i64, Duration)>,
) -> Result<(Claimed, Evidence, Option<Arc<str>>), Failure> {
    session.begin().await?;
    let last = lock(&inner.last_served).clone();
    let (before, after): (Vec<_>, Vec<_>) =
        names.iter().partition(|name| last.as_ref().is_some_and(|last| *name <= last));
    let mut turns = Vec::new();
    for name in after.into_iter().chain(before) {
        let Some(id) = inner.find_crawl(session, name).await? else { continue };
        let draws = want.urls.min(GRANTS_MAX) * 8 + 16_000;
        if let Some((work, _)) = inner.begin(session, id, now, false, draws).await? {
            turns.push((Round::new(want), work));
        }
    }
    let mut order = Vec::new();
    let mut going: Vec<usize> = (0..turns.len()).collect();
    let most = want.urls.min(GRANTS_MAX);
    let mut served = last;
    while order.len() < most && !going.is_empty() {
        let mut still = Vec::new();
        // What each will probably give: to bring it one by one would take a statement a URL, to bring all that is wanted from
        // everybody would keep others from queues that nobody here needs.
        let share = (most - order.len()).div_ceil(going.len());
        for turn in going {
            if order.len() >= most {
                still.push(turn);
                continue;
            }
            let given: usize = turns.iter().map(|(round, _)| round.queues_given()).sum();
            let (round, work) = &mut turns[turn];
            round.queues = want.queues.map(|most| most.saturating_sub(given - round.queues_given()));
            let had = round.leases.len();
            (round.urls, round.pause_at) = (had + share, had + 1);
            work.grant_all(session, round).await?;
            if round.leases.len() > had {
                order.push(turn);
                served = Some(Arc::clone(&work.crawl.name));
                still.push(turn);
            }
        }
        going = still;
    }
    let mut claimed = Claimed { exhausted: true, ..Claimed::default() };
    let mut granted = Vec::new();
    let mut evidence = Evidence::default();
    for (round, mut work) in turns {
        let none = round.leases.is_empty();
        let exhausted = none && work.is_exhausted(session).await?;
        claimed.exhausted &= exhausted;
        if order.len() < want.urls {
            if exhausted && work.crawl.is_running() && work.crawl.settings.pause_at_finish {
                work.crawl.set_state(CrawlState::Paused);
            }
            claimed.next =
                [claimed.next, work.next_event(session, &round).await?].into_iter().flatten().min();
        }
        work.save(session, inner.slot()).await?;
        evidence.add(&work);
        news.extend(work.news().map(|after| (work.crawl.id, after)));
        inner.remember_turn(&work.crawl);
        inner.keep_floors(&work);
        granted.push(round.leases.into_iter());
    }
    claimed.leases = order.into_iter().filter_map(|turn| granted[turn].next()).collect();
    Ok((claimed, evidence, served))
}
