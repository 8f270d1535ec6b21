//! What several messages of an image have in common.

use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use trapline_core::Timestamp;

use super::BadImage;
use crate::engine::moment::{Age, Moment};
use crate::engine::urls::EntryId;

/// No frame has as many things in columns: what it says is bounded before memory is taken for it.
pub(super) const COUNT_MAX: u32 = 1 << 16;

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct MomentMessage {
    #[prost(uint64, tag = "1")]
    pub(super) at: u64,
    #[prost(uint64, tag = "2")]
    pub(super) rank: u64,
}

impl From<Moment> for MomentMessage {
    fn from(moment: Moment) -> Self {
        let Moment { at, rank } = moment;
        Self { at: at.as_millis(), rank }
    }
}

impl From<MomentMessage> for Moment {
    fn from(message: MomentMessage) -> Self {
        Self { at: Timestamp::from_millis(message.at), rank: message.rank }
    }
}

/// A moment that is left out where it is the zero one.
pub(super) fn moment(moment: Moment) -> Option<MomentMessage> {
    (moment != Moment::ZERO).then(|| moment.into())
}

pub(super) fn read_moment(message: Option<MomentMessage>) -> Moment {
    message.map_or(Moment::ZERO, Moment::from)
}

/// The ages a queue had before it was reconsidered with others, the latest first.
pub(super) fn formers(age: Option<&Arc<Age>>) -> Vec<MomentMessage> {
    std::iter::successors(age, |age| age.former.as_ref()).map(|age| age.since.into()).collect()
}

pub(super) fn read_formers(formers: &[MomentMessage]) -> Option<Arc<Age>> {
    formers.iter().rev().fold(None, |former, since| Some(Arc::new(Age { since: (*since).into(), former })))
}

/// A duration, to the nanosecond.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct SpanMessage {
    #[prost(uint64, tag = "1")]
    seconds: u64,
    #[prost(uint32, tag = "2")]
    nanoseconds: u32,
}

impl From<Duration> for SpanMessage {
    fn from(duration: Duration) -> Self {
        Self { seconds: duration.as_secs(), nanoseconds: duration.subsec_nanos() }
    }
}

pub(super) fn read_span(span: Option<SpanMessage>) -> Result<Option<Duration>, BadImage> {
    let Some(SpanMessage { seconds, nanoseconds }) = span else { return Ok(None) };
    if nanoseconds >= 1_000_000_000 {
        return Err(BadImage::Impossible("a duration"));
    }
    Ok(Some(Duration::new(seconds, nanoseconds)))
}

/// The number of an entry, or of a slot, of which there may be none: so that none is short.
pub(super) fn shifted(number: u32) -> u32 {
    number.wrapping_add(1)
}

pub(super) fn unshifted(number: u32) -> u32 {
    number.wrapping_sub(1)
}

pub(super) fn entry(id: Option<EntryId>) -> u32 {
    shifted(id.unwrap_or(EntryId::NONE).0)
}

pub(super) fn read_entry(number: u32) -> Option<EntryId> {
    EntryId(unshifted(number)).some()
}

pub(super) fn narrow<N: TryFrom<u32>>(number: u32, what: &'static str) -> Result<N, BadImage> {
    N::try_from(number).map_err(|_| BadImage::Impossible(what))
}

/// The one of all cases that has this number.
pub(super) fn case<T: Copy>(cases: &[T], number: u32, what: &'static str) -> Result<T, BadImage> {
    cases.get(number as usize).copied().ok_or(BadImage::Impossible(what))
}
