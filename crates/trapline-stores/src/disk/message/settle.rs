//! Settlements as messages, with what a visit found and the notes it left.

use prost::{Message, Oneof};
use trapline_core::Timestamp;
use trapline_frontier::{LeaseId, NoteWrite, Outcome, Settlement, Visit};

use super::candidate::CandidateMessage;
use super::{Span, Unreadable, read_span, read_time};

#[derive(Clone, PartialEq, Message)]
pub(super) struct SettlementMessage {
    #[prost(uint64, tag = "1")]
    lease: u64,
    #[prost(oneof = "OutcomeMessage", tags = "2, 3, 4, 5, 6, 7")]
    outcome: Option<OutcomeMessage>,
    #[prost(message, optional, tag = "8")]
    delay: Option<Span>,
    #[prost(message, repeated, tag = "9")]
    links: Vec<CandidateMessage>,
    #[prost(message, repeated, tag = "10")]
    notes: Vec<NoteMessage>,
}

#[derive(Clone, PartialEq, Oneof)]
enum OutcomeMessage {
    #[prost(message, tag = "2")]
    Done(DoneMessage),
    #[prost(uint64, tag = "3")]
    Retry(u64),
    #[prost(bool, tag = "4")]
    Release(bool),
    #[prost(string, tag = "5")]
    Dead(String),
    #[prost(string, tag = "6")]
    Disregard(String),
    #[prost(message, tag = "7")]
    Renew(Span),
}

#[derive(Clone, PartialEq, Message)]
struct DoneMessage {
    #[prost(message, optional, tag = "1")]
    visit: Option<VisitMessage>,
    #[prost(uint64, optional, tag = "2")]
    next: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct VisitMessage {
    #[prost(uint32, tag = "1")]
    status: u32,
    #[prost(uint64, tag = "2")]
    bytes: u64,
    #[prost(string, optional, tag = "3")]
    etag: Option<String>,
    #[prost(string, optional, tag = "4")]
    last_modified: Option<String>,
    #[prost(bytes = "vec", optional, tag = "5")]
    digest: Option<Vec<u8>>,
    #[prost(fixed64, optional, tag = "6")]
    simhash: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NoteMessage {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(bytes = "vec", optional, tag = "2")]
    value: Option<Vec<u8>>,
    #[prost(uint64, optional, tag = "3")]
    expires: Option<u64>,
}

impl From<&Settlement> for SettlementMessage {
    fn from(settlement: &Settlement) -> Self {
        let Settlement { lease, outcome, delay, links, notes } = settlement;
        Self {
            lease: lease.0,
            outcome: Some(outcome.into()),
            delay: delay.map(Span::from),
            links: links.iter().map(CandidateMessage::from).collect(),
            notes: notes.iter().map(NoteMessage::from).collect(),
        }
    }
}

impl SettlementMessage {
    /// What a settlement says beside its lease and its links, and beside its visit if that is kept elsewhere. None if it is done, and
    /// that is all.
    pub(super) fn beside(settlement: &Settlement, is_visit_kept: bool) -> Option<Self> {
        let Settlement { lease: _, outcome, delay, links: _, notes } = settlement;
        let done = Outcome::done();
        let outcome = if is_visit_kept { &done } else { outcome };
        let is_more = *outcome != done || delay.is_some() || !notes.is_empty();
        is_more.then(|| Self {
            lease: 0,
            outcome: Some(outcome.into()),
            delay: delay.map(Span::from),
            links: Vec::new(),
            notes: notes.iter().map(NoteMessage::from).collect(),
        })
    }

    pub(super) fn read(self) -> Result<Settlement, Unreadable> {
        let Self { lease, outcome, delay, links, notes } = self;
        let links: Result<_, _> = links.into_iter().map(CandidateMessage::read).collect();
        Ok(Settlement {
            lease: LeaseId(lease),
            outcome: outcome.ok_or(Unreadable::Lacks("an outcome"))?.read()?,
            delay: read_span(delay)?,
            links: links?,
            notes: notes.into_iter().map(NoteMessage::read).collect(),
        })
    }
}

impl From<&Outcome> for OutcomeMessage {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Done { visit, next } => Self::Done(DoneMessage {
                visit: (*visit != Visit::default()).then(|| visit.into()),
                next: next.map(Timestamp::as_millis),
            }),
            Outcome::Retry { at } => Self::Retry(at.as_millis()),
            Outcome::Release => Self::Release(true),
            Outcome::Dead { reason } => Self::Dead(reason.clone()),
            Outcome::Disregard { reason } => Self::Disregard(reason.clone()),
            Outcome::Renew { lease } => Self::Renew((*lease).into()),
        }
    }
}

impl OutcomeMessage {
    fn read(self) -> Result<Outcome, Unreadable> {
        Ok(match self {
            Self::Done(DoneMessage { visit, next }) => Outcome::Done {
                visit: visit.map(VisitMessage::read).transpose()?.unwrap_or_default(),
                next: next.map(read_time),
            },
            Self::Retry(at) => Outcome::Retry { at: read_time(at) },
            Self::Release(_) => Outcome::Release,
            Self::Dead(reason) => Outcome::Dead { reason },
            Self::Disregard(reason) => Outcome::Disregard { reason },
            Self::Renew(lease) => Outcome::Renew { lease: lease.read()? },
        })
    }
}

impl From<&Visit> for VisitMessage {
    fn from(visit: &Visit) -> Self {
        let Visit { status, bytes, etag, last_modified, digest, simhash } = visit.clone();
        Self { status: status.into(), bytes, etag, last_modified, digest, simhash }
    }
}

impl VisitMessage {
    pub(super) fn read(self) -> Result<Visit, Unreadable> {
        let Self { status, bytes, etag, last_modified, digest, simhash } = self;
        let status = u16::try_from(status).map_err(|_| Unreadable::Beyond("a status"))?;
        Ok(Visit { status, bytes, etag, last_modified, digest, simhash })
    }
}

impl From<&NoteWrite> for NoteMessage {
    fn from(note: &NoteWrite) -> Self {
        let NoteWrite { key, value, expires } = note.clone();
        Self { key, value, expires: expires.map(Timestamp::as_millis) }
    }
}

impl NoteMessage {
    pub(super) fn read(self) -> NoteWrite {
        let Self { key, value, expires } = self;
        NoteWrite { key, value, expires: expires.map(read_time) }
    }
}

#[cfg(test)]
pub(super) fn sample_notes() -> Vec<NoteWrite> {
    vec![
        NoteWrite { key: "k".to_owned(), value: Some(vec![0, 255]), expires: Some(Timestamp::MAX) },
        NoteWrite { key: String::new(), value: Some(Vec::new()), expires: Some(Timestamp::ZERO) },
        NoteWrite { key: "gone".to_owned(), value: None, expires: None },
    ]
}

/// Every outcome, with everything a settlement can carry and with nothing.
#[cfg(test)]
pub(super) fn samples() -> Vec<Settlement> {
    use std::time::Duration;
    let visit = Visit {
        status: u16::MAX,
        bytes: u64::MAX,
        etag: Some(String::new()),
        last_modified: Some("m".to_owned()),
        digest: Some(vec![1, 2]),
        simhash: Some(0),
    };
    let outcomes = vec![
        Outcome::done(),
        Outcome::Done { visit, next: Some(Timestamp::ZERO) },
        Outcome::Retry { at: Timestamp::MAX },
        Outcome::Release,
        Outcome::Dead { reason: String::new() },
        Outcome::Disregard { reason: "r".to_owned() },
        Outcome::Renew { lease: Duration::ZERO },
    ];
    let bare = outcomes.clone().into_iter().map(|outcome| Settlement::new(LeaseId(0), outcome));
    let laden = outcomes.into_iter().map(|outcome| Settlement {
        lease: LeaseId(u64::MAX),
        outcome,
        delay: Some(Duration::MAX),
        links: super::candidate::samples(),
        notes: sample_notes(),
    });
    bare.chain(laden).collect()
}
