//! Crashes in the middle of a call: nobody hears the answer, and whether the call was done shows when the store is open
//! again. Whole or not at all.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use trapline_core::Timestamp;
use trapline_frontier::script::Claim;
use trapline_frontier::{Claimed, Lease, Query, Rows, Scan};

use super::act::Act;
use super::call::Call;
use super::inquiry::hold_against;
use super::rig::{Answers, Rig, given, guarded, identity_of, steered};
use crate::oracle::{Breach, Oracle, Rule};

impl Rig {
    /// Begins an act, and lets the store crash before anybody has heard the answer. Answers what that would have been;
    /// None if nothing was done.
    pub(super) fn cut(&mut self, act: &Act) -> Result<Option<Answers>, Breach> {
        guarded(|| pollster::block_on(self.cut_now(act)))
    }

    async fn cut_now(&mut self, act: &Act) -> Result<Option<Answers>, Breach> {
        self.oracle.advance(act.at);
        self.tally.commands += act.verbs.len() as u64;
        let call = self.prepare(act)?;
        let begun = {
            let mut sent = pin!(call.send(self.frontier()?, act.at));
            sent.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        };
        if let Poll::Ready(reply) = begun {
            // It was done before anything could happen to it. Then it is done for good.
            let answers = self.judge(act.at, &call, reply?).await?;
            self.restart(true).await?;
            return Ok(Some(answers));
        }
        self.restart(true).await?;
        self.tally.cuts += 1;
        let Err(undone) = hold_against(self.frontier()?, act.at, &self.oracle).await else {
            return Ok(None);
        };
        match self.suppose(act.at, &call).await {
            Ok(answers) => Ok(Some(answers)),
            Err(breach) => Err(Breach::new(
                Rule::Half,
                format!(
                    "a crash cut a call short, which is neither done nor undone. \
                     If it is undone: {undone}. If it is done: {breach}"
                ),
            )),
        }
    }

    /// Supposes that a call was done, and holds everything against that.
    async fn suppose(&mut self, at: Timestamp, call: &Call<'_>) -> Result<Answers, Breach> {
        let mut oracle = self.oracle.clone();
        let answers = match call {
            Call::Admit(candidates, is_well_formed) => {
                let answers = oracle.admit(candidates);
                self.tally.count_admissions(&answers);
                Answers::admitted(is_well_formed, &answers)
            }
            Call::Settle(settlements, places) => {
                let settled = settlements.iter();
                let answers: Vec<_> =
                    settled.map(|(settle, settlement)| oracle.settle(&given(settle, settlement))).collect();
                answers.iter().for_each(|settled| self.tally.count_settlement(settled));
                Answers::settled(places, &answers)
            }
            Call::Claim(claim) => {
                let claimed = self.granted_meanwhile(at, claim, &oracle).await?;
                self.tally.count_grants(&claimed.leases);
                let asked = oracle.claimed_unheard(claim, &claimed)?;
                let retired = self.retired_among(at, asked).await?;
                oracle
                    .reached_unheard(claim, &claimed, |key| retired.iter().any(|retired| retired == key))?;
                self.claimed(claimed)
            }
            Call::Steer(verb, _) => {
                let frontier = self.frontier()?;
                steered(&mut oracle, verb, |url| identity_of(frontier, url));
                Answers::said("ok")
            }
            _ => unreachable!("questions are not cut short"),
        };
        hold_against(self.frontier()?, at, &oracle).await?;
        self.oracle = oracle;
        Ok(answers)
    }

    /// The leases that nobody has heard of, in the order of their numbers, with what a list of leases says of them.
    async fn granted_meanwhile(
        &self,
        at: Timestamp,
        claim: &Claim,
        oracle: &Oracle,
    ) -> Result<Claimed, Breach> {
        let frontier = self.frontier()?;
        let Rows::Leases(mut leases) = frontier.scan(at, &Scan::new(Query::Leases)).await?.rows else {
            return Err(Breach::new(Rule::Report, "leases were asked for, other rows came"));
        };
        leases.retain(|lease| !oracle.was_granted(lease.id));
        leases.sort_unstable_by_key(|lease| lease.id);
        let mut granted = Vec::new();
        for report in leases.into_iter().take(claim.urls) {
            let Some(identity) = identity_of(frontier, &report.request.url) else {
                let message = format!("{} was granted, which is no URL", report.request.url);
                return Err(Breach::new(Rule::N2, message));
            };
            granted.push(Lease {
                id: report.id,
                crawl: frontier.crawl().into(),
                key: report.key,
                identity,
                request: report.request,
                deadline: report.deadline,
                delivery: report.delivery,
                retries: 0,
                cost: 0,
                page: None,
            });
        }
        Ok(Claimed { leases: granted, ..Claimed::default() })
    }
}
