//! Settlements, and what happened to them.

use std::time::Duration;

use trapline_core::{Preparer, Timestamp};
use trapline_frontier::{Admission, Answer, LeaseId, NoteWrite, Outcome, Refusal, Settled, Settlement};

use super::{Unreadable, candidate, chosen, claim, millis, read_time, write_time};
use crate::proto::v1;
use v1::settlement::Outcome as OutcomeMessage;

pub(crate) fn write(settlement: &Settlement) -> v1::Settlement {
    let Settlement { lease, outcome, delay, links, notes } = settlement;
    v1::Settlement {
        lease: lease.0,
        outcome: Some(match outcome {
            Outcome::Done { visit, next } => OutcomeMessage::Done(v1::Done {
                visit: Some(claim::write_visit(visit)),
                next_ms: write_time(*next),
            }),
            Outcome::Retry { at } => OutcomeMessage::RetryAtMs(at.as_millis()),
            Outcome::Release => OutcomeMessage::Release(true),
            Outcome::Dead { reason } => OutcomeMessage::Dead(reason.clone()),
            Outcome::Disregard { reason } => OutcomeMessage::Disregard(reason.clone()),
            Outcome::Renew { lease } => OutcomeMessage::RenewMs(millis(*lease)),
        }),
        delay_ms: delay.map(millis),
        links: links.iter().map(candidate::write).collect(),
        notes: notes.iter().map(write_note).collect(),
    }
}

/// A settlement without the links that are no URLs, and which of the links are.
pub(crate) struct Read {
    pub(crate) settlement: Settlement,
    well_formed: Vec<bool>,
}

pub(crate) fn read(settlement: v1::Settlement, preparer: Option<&Preparer>) -> Result<Read, Unreadable> {
    let v1::Settlement { lease, outcome, delay_ms, links: given, notes } = settlement;
    let outcome = match outcome.ok_or_else(|| Unreadable::lacks("an outcome of a settlement"))? {
        OutcomeMessage::Done(v1::Done { visit, next_ms }) => {
            Outcome::Done { visit: claim::read_visit(visit.unwrap_or_default())?, next: read_time(next_ms) }
        }
        OutcomeMessage::RetryAtMs(at) => Outcome::Retry { at: Timestamp::from_millis(at) },
        OutcomeMessage::Release(word) => chosen("release", word, Outcome::Release)?,
        OutcomeMessage::Dead(reason) => Outcome::Dead { reason },
        OutcomeMessage::Disregard(reason) => Outcome::Disregard { reason },
        OutcomeMessage::RenewMs(lease) => Outcome::Renew { lease: Duration::from_millis(lease) },
    };
    let mut links = Vec::with_capacity(given.len());
    let mut well_formed = Vec::with_capacity(given.len());
    for link in given {
        let link = candidate::read(link, preparer)?;
        well_formed.push(link.is_some());
        links.extend(link);
    }
    let settlement = Settlement {
        lease: LeaseId(lease),
        outcome,
        delay: delay_ms.map(Duration::from_millis),
        links,
        notes: notes.into_iter().map(read_note).collect(),
    };
    Ok(Read { settlement, well_formed })
}

/// The answers to a batch of which some could not be sent on: those are refused in their places.
pub(crate) fn with_refused(well_formed: &[bool], admitted: &[Admission]) -> Vec<i32> {
    let mut admitted = admitted.iter();
    let refused = Admission::Refused(Refusal::Malformed);
    let one = |well: &bool| if *well { admitted.next() } else { None }.unwrap_or(&refused);
    well_formed.iter().map(one).map(|one| candidate::write_admission(one).into()).collect()
}

pub(crate) fn write_settled(settled: &Settled, well_formed: &[bool]) -> v1::Settled {
    let Settled { answer, links } = settled;
    let is_stale = *answer == Answer::Stale;
    let answer = match answer {
        Answer::Done => v1::SettledAnswer::SettledDone,
        Answer::Retry => v1::SettledAnswer::SettledRetry,
        Answer::Released => v1::SettledAnswer::SettledReleased,
        Answer::Dead => v1::SettledAnswer::SettledDead,
        Answer::Disregarded => v1::SettledAnswer::SettledDisregarded,
        Answer::Renewed => v1::SettledAnswer::SettledRenewed,
        Answer::Stale => v1::SettledAnswer::SettledStale,
    };
    let links = if is_stale { Vec::new() } else { with_refused(well_formed, links) };
    v1::Settled { answer: answer.into(), links }
}

pub(crate) fn read_settled(settled: v1::Settled) -> Result<Settled, Unreadable> {
    let v1::Settled { answer, links } = settled;
    let answer = match v1::SettledAnswer::try_from(answer) {
        Ok(v1::SettledAnswer::SettledDone) => Answer::Done,
        Ok(v1::SettledAnswer::SettledRetry) => Answer::Retry,
        Ok(v1::SettledAnswer::SettledReleased) => Answer::Released,
        Ok(v1::SettledAnswer::SettledDead) => Answer::Dead,
        Ok(v1::SettledAnswer::SettledDisregarded) => Answer::Disregarded,
        Ok(v1::SettledAnswer::SettledRenewed) => Answer::Renewed,
        Ok(v1::SettledAnswer::SettledStale) => Answer::Stale,
        Ok(v1::SettledAnswer::SettledUnspecified) | Err(_) => {
            return Err(Unreadable::lacks("an answer it knows"));
        }
    };
    Ok(Settled { answer, links: links.into_iter().map(candidate::read_admission).collect::<Result<_, _>>()? })
}

impl Read {
    /// Takes it apart: what the store is to do, and which of its links are URLs.
    pub(crate) fn parts(self) -> (Settlement, Vec<bool>) {
        (self.settlement, self.well_formed)
    }
}

pub(super) fn write_note(note: &NoteWrite) -> v1::NoteWrite {
    let NoteWrite { key, value, expires } = note;
    v1::NoteWrite { key: key.clone(), value: value.clone(), expires_ms: write_time(*expires) }
}

pub(super) fn read_note(note: v1::NoteWrite) -> NoteWrite {
    let v1::NoteWrite { key, value, expires_ms } = note;
    NoteWrite { key, value, expires: read_time(expires_ms) }
}
