//! Commands as bytes, and for the socket their answers: protobuf messages, so that what is added later can be left out by those who wrote earlier.
//!
//! Every conversion takes its value apart field by field: a new field does not compile until it is kept. Tags are never
//! given to another meaning. What commands do is not here.

pub(crate) mod answer;
mod candidate;
pub(crate) mod error;
pub(crate) mod lease;
pub(crate) mod logged;
mod record;
pub(crate) mod rows;
pub(crate) mod scan;
mod settings;
mod settle;
pub(crate) mod stats;
mod steer;
#[cfg(feature = "postgres")]
pub(crate) mod values;

use std::time::Duration;

use prost::{Message, Oneof};
use trapline_core::{Candidate, Identity, Timestamp};
use trapline_frontier::{Settlement, Steer, Want};

use super::command::Command;

/// Bytes that are no command this version knows.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("{0}")]
    Malformed(#[from] prost::DecodeError),
    #[error("it lacks {0}, or was written by a newer version of Trapline")]
    Lacks(&'static str),
    #[error("it has {0} that is out of bounds")]
    Beyond(&'static str),
}

#[derive(Clone, PartialEq, Message)]
struct Body {
    #[prost(oneof = "Verb", tags = "1, 2, 3, 4")]
    verb: Option<Verb>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Verb {
    #[prost(message, tag = "1")]
    Admit(AdmitMessage),
    #[prost(message, tag = "2")]
    Claim(ClaimMessage),
    #[prost(message, tag = "3")]
    Settle(SettleMessage),
    #[prost(message, tag = "4")]
    Steer(SteerMessage),
}

#[derive(Clone, PartialEq, Message)]
struct AdmitMessage {
    #[prost(string, tag = "1")]
    crawl: String,
    #[prost(uint64, tag = "2")]
    now: u64,
    #[prost(message, repeated, tag = "3")]
    batch: Vec<candidate::CandidateMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct ClaimMessage {
    #[prost(string, optional, tag = "1")]
    crawl: Option<String>,
    #[prost(uint64, tag = "2")]
    now: u64,
    #[prost(message, optional, tag = "3")]
    want: Option<WantMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct SettleMessage {
    #[prost(string, tag = "1")]
    crawl: String,
    #[prost(uint64, tag = "2")]
    now: u64,
    #[prost(message, repeated, tag = "3")]
    batch: Vec<settle::SettlementMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct SteerMessage {
    #[prost(string, tag = "1")]
    crawl: String,
    #[prost(uint64, tag = "2")]
    now: u64,
    #[prost(message, optional, tag = "3")]
    steer: Option<steer::ActMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct PassMessage {
    #[prost(string, tag = "1")]
    crawl: String,
    #[prost(uint64, tag = "2")]
    now: u64,
}

#[derive(Clone, PartialEq, Message)]
struct WantMessage {
    #[prost(uint64, tag = "1")]
    urls: u64,
    #[prost(message, optional, tag = "2")]
    lease: Option<Span>,
    #[prost(uint64, optional, tag = "3")]
    queues: Option<u64>,
    #[prost(uint64, optional, tag = "4")]
    per_queue: Option<u64>,
    #[prost(uint64, optional, tag = "5")]
    min_queues: Option<u64>,
    #[prost(message, optional, tag = "6")]
    keys: Option<Keys>,
    #[prost(string, repeated, tag = "7")]
    except: Vec<String>,
    #[prost(message, optional, tag = "8")]
    partitions: Option<Partitions>,
}

/// A list that may be absent, which is not the same as empty.
#[derive(Clone, PartialEq, Message)]
struct Keys {
    #[prost(string, repeated, tag = "1")]
    keys: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Partitions {
    #[prost(uint32, repeated, tag = "1")]
    partitions: Vec<u32>,
}

/// A duration, to the nanosecond.
#[derive(Clone, Copy, PartialEq, Message)]
struct Span {
    #[prost(uint64, tag = "1")]
    seconds: u64,
    #[prost(uint32, tag = "2")]
    nanoseconds: u32,
}

impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Self { seconds: duration.as_secs(), nanoseconds: duration.subsec_nanos() }
    }
}

impl Span {
    fn read(self) -> Result<Duration, Unreadable> {
        let Self { seconds, nanoseconds } = self;
        if nanoseconds >= 1_000_000_000 {
            return Err(Unreadable::Beyond("a duration"));
        }
        Ok(Duration::new(seconds, nanoseconds))
    }
}

fn read_span(span: Option<Span>) -> Result<Option<Duration>, Unreadable> {
    span.map(Span::read).transpose()
}

fn read_time(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

#[derive(Clone, Copy, PartialEq, Message)]
struct IdentityMessage {
    #[prost(fixed64, tag = "1")]
    low: u64,
    #[prost(fixed64, tag = "2")]
    high: u64,
}

impl From<Identity> for IdentityMessage {
    fn from(identity: Identity) -> Self {
        Self { low: identity.0 as u64, high: (identity.0 >> 64) as u64 }
    }
}

impl From<IdentityMessage> for Identity {
    fn from(message: IdentityMessage) -> Self {
        Self(u128::from(message.high) << 64 | u128::from(message.low))
    }
}

impl From<&Want> for WantMessage {
    fn from(want: &Want) -> Self {
        let Want { urls, lease, queues, per_queue, min_queues, keys, except, partitions } = want;
        Self {
            urls: *urls as u64,
            lease: lease.map(Span::from),
            queues: queues.map(|most| most as u64),
            per_queue: per_queue.map(|most| most as u64),
            min_queues: min_queues.map(|least| least as u64),
            keys: keys.clone().map(|keys| Keys { keys }),
            except: except.clone(),
            partitions: partitions.clone().map(|partitions| Partitions { partitions }),
        }
    }
}

impl WantMessage {
    fn read(self) -> Result<Want, Unreadable> {
        let Self { urls, lease, queues, per_queue, min_queues, keys, except, partitions } = self;
        let bound = |bound: Option<u64>| bound.map(read_size).transpose();
        Ok(Want {
            urls: read_size(urls)?,
            lease: read_span(lease)?,
            queues: bound(queues)?,
            per_queue: bound(per_queue)?,
            min_queues: bound(min_queues)?,
            keys: keys.map(|keys| keys.keys),
            except,
            partitions: partitions.map(|partitions| partitions.partitions),
        })
    }
}

fn read_size(size: u64) -> Result<usize, Unreadable> {
    usize::try_from(size).map_err(|_| Unreadable::Beyond("a number"))
}

fn read_byte(byte: u32, what: &'static str) -> Result<u8, Unreadable> {
    u8::try_from(byte).map_err(|_| Unreadable::Beyond(what))
}

impl ClaimMessage {
    fn of(crawl: Option<&str>, now: Timestamp, want: &Want) -> Self {
        Self { crawl: crawl.map(str::to_owned), now: now.as_millis(), want: Some(want.into()) }
    }
}

impl SteerMessage {
    fn of(crawl: &str, now: Timestamp, steer: &Steer) -> Self {
        Self { crawl: crawl.to_owned(), now: now.as_millis(), steer: Some(steer.into()) }
    }
}

fn read_claim(message: ClaimMessage) -> Result<Command, Unreadable> {
    let ClaimMessage { crawl, now, want } = message;
    let want = want.ok_or(Unreadable::Lacks("what was wanted"))?.read()?;
    Ok(Command::Claim { crawl, now: read_time(now), want })
}

fn read_steer(message: SteerMessage) -> Result<Command, Unreadable> {
    let SteerMessage { crawl, now, steer } = message;
    let steer = steer.ok_or(Unreadable::Lacks("what was steered"))?.read()?;
    Ok(Command::Steer { crawl, now: read_time(now), steer })
}

/// Appends the bytes of an admission.
pub(crate) fn admit(bytes: &mut Vec<u8>, crawl: &str, now: Timestamp, batch: &[Candidate]) {
    let batch = batch.iter().map(candidate::CandidateMessage::from).collect();
    let message = AdmitMessage { crawl: crawl.to_owned(), now: now.as_millis(), batch };
    put(bytes, Verb::Admit(message));
}

/// Appends the bytes of a claim.
pub(crate) fn claim(bytes: &mut Vec<u8>, crawl: Option<&str>, now: Timestamp, want: &Want) {
    put(bytes, Verb::Claim(ClaimMessage::of(crawl, now, want)));
}

/// Appends the bytes of settlements.
pub(crate) fn settle(bytes: &mut Vec<u8>, crawl: &str, now: Timestamp, batch: &[Settlement]) {
    let batch = batch.iter().map(settle::SettlementMessage::from).collect();
    let message = SettleMessage { crawl: crawl.to_owned(), now: now.as_millis(), batch };
    put(bytes, Verb::Settle(message));
}

/// Appends the bytes of an act of steering.
pub(crate) fn steer(bytes: &mut Vec<u8>, crawl: &str, now: Timestamp, steer: &Steer) {
    put(bytes, Verb::Steer(SteerMessage::of(crawl, now, steer)));
}

fn put(bytes: &mut Vec<u8>, verb: Verb) {
    let body = Body { verb: Some(verb) };
    bytes.reserve(body.encoded_len());
    body.encode(bytes).expect("a vector has room for everything");
}

/// The command that was put into these bytes.
pub(crate) fn read(bytes: &[u8]) -> Result<Command, Unreadable> {
    Ok(match Body::decode(bytes)?.verb.ok_or(Unreadable::Lacks("a verb"))? {
        Verb::Admit(AdmitMessage { crawl, now, batch }) => {
            let batch: Result<_, _> = batch.into_iter().map(candidate::CandidateMessage::read).collect();
            Command::Admit { crawl, now: read_time(now), batch: batch? }
        }
        Verb::Claim(message) => read_claim(message)?,
        Verb::Settle(SettleMessage { crawl, now, batch }) => {
            let batch: Result<_, _> = batch.into_iter().map(settle::SettlementMessage::read).collect();
            Command::Settle { crawl, now: read_time(now), batch: batch? }
        }
        Verb::Steer(message) => read_steer(message)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(u64::MAX);

    /// Every command comes back as it was.
    fn check(put: impl FnOnce(&mut Vec<u8>), expected: &Command) {
        let mut bytes = Vec::new();
        put(&mut bytes);
        assert_eq!(read(&bytes).unwrap(), *expected);
    }

    #[test]
    fn wants_come_back_as_they_were() {
        let full = Want {
            urls: usize::MAX,
            lease: Some(Duration::new(1, 999_999_999)),
            queues: Some(2),
            per_queue: Some(3),
            min_queues: Some(4),
            keys: Some(vec!["a".to_owned(), String::new()]),
            except: vec!["b".to_owned()],
            partitions: Some(vec![0, u32::MAX]),
        };
        let zeros = Want {
            lease: Some(Duration::ZERO),
            queues: Some(0),
            per_queue: Some(0),
            min_queues: Some(0),
            keys: Some(Vec::new()),
            partitions: Some(Vec::new()),
            ..Want::urls(0)
        };
        for want in [Want::urls(1), full, zeros] {
            for crawl in [None, Some(""), Some("ä")] {
                let expected =
                    Command::Claim { crawl: crawl.map(str::to_owned), now: NOW, want: want.clone() };
                check(|bytes| claim(bytes, crawl, NOW, &want), &expected);
            }
        }
    }

    #[test]
    fn candidates_come_back_as_they_were() {
        let batch = candidate::samples();
        let expected = Command::Admit { crawl: "c".to_owned(), now: NOW, batch: batch.clone() };
        check(|bytes| admit(bytes, "c", NOW, &batch), &expected);
        let empty = Command::Admit { crawl: String::new(), now: Timestamp::ZERO, batch: Vec::new() };
        check(|bytes| admit(bytes, "", Timestamp::ZERO, &[]), &empty);
    }

    #[test]
    fn settlements_come_back_as_they_were() {
        let batch = settle::samples();
        let expected = Command::Settle { crawl: "c".to_owned(), now: NOW, batch: batch.clone() };
        check(|bytes| settle(bytes, "c", NOW, &batch), &expected);
    }

    #[test]
    fn steers_come_back_as_they_were() {
        for act in steer::samples() {
            let expected = Command::Steer { crawl: "c".to_owned(), now: NOW, steer: act.clone() };
            check(|bytes| steer(bytes, "c", NOW, &act), &expected);
        }
    }

    #[test]
    fn other_bytes_are_an_error_never_a_panic() {
        let mut bytes = Vec::new();
        settle(&mut bytes, "c", NOW, &settle::samples());
        for place in 0..bytes.len() {
            for flip in [1, 0x80, 0xff] {
                let mut bad = bytes.clone();
                bad[place] ^= flip;
                let _ = read(&bad);
            }
            let _ = read(&bytes[..place]);
        }
        let message = read(&[]).unwrap_err().to_string();
        assert_eq!(message, "it lacks a verb, or was written by a newer version of Trapline");
    }
}
