//! A claim from any crawl: the crawls take turns, one URL each, in one transaction.

use std::sync::Arc;

use async_trait::async_trait;
use trapline_core::Timestamp;
use trapline_frontier::{Claimed, CrawlState, StoreError, Want};

use super::claim::{GRANTS_MAX, Round};
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
    let mut session = Session::new(inner.pool.client().await?);
    let names = crawl_names(&session).await.map_err(|failure| inner.said("claim", failure))?;
    for name in &names {
        match inner.perform("claim", name, now, &Pass).await {
            Err(error) if error.kind() == trapline_frontier::ErrorKind::NotFound => {}
            done => done?,
        }
    }
    match try_claim(inner, &mut session, &names, now, want).await {
        Ok(claimed) => Ok(claimed),
        Err(failure) => {
            session.roll_back().await;
            Err(inner.said("claim", failure))
        }
    }
}

async fn crawl_names(session: &Session) -> Result<Vec<Arc<str>>, Failure> {
    let rows = session.rows("SELECT name FROM crawls ORDER BY name", &[]).await?;
    rows.iter().map(|row| Ok(text(row.try_get(0)?))).collect()
}

async fn try_claim(
    inner: &Inner,
    session: &mut Session,
    names: &[Arc<str>],
    now: Timestamp,
    want: &Want,
) -> Result<Claimed, Failure> {
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
        for turn in going {
            if order.len() >= most {
                still.push(turn);
                continue;
            }
            let given: usize = turns.iter().map(|(round, _)| round.queues_given()).sum();
            let (round, work) = &mut turns[turn];
            round.queues = want.queues.map(|most| most.saturating_sub(given - round.queues_given()));
            let had = round.leases.len();
            round.urls = had + 1;
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
    for (round, mut work) in turns {
        let none = round.leases.is_empty();
        let exhausted = none && work.is_exhausted(session).await?;
        claimed.exhausted &= exhausted;
        if order.len() < want.urls {
            if exhausted && work.crawl.is_running() && work.crawl.settings.pause_at_finish {
                work.crawl.set_state(CrawlState::Paused);
            }
            claimed.next =
                [claimed.next, work.next_event(session, round.is_plain()).await?].into_iter().flatten().min();
        }
        work.save(session, inner.slot()).await?;
        inner.remember_turn(&work.crawl);
        granted.push(round.leases.into_iter());
    }
    session.commit().await?;
    *lock(&inner.last_served) = served;
    claimed.leases = order.into_iter().filter_map(|turn| granted[turn].next()).collect();
    Ok(claimed)
}
