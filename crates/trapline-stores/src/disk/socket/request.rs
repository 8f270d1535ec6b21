//! What can be asked through the socket: the commands as the log has them, and the questions that no log needs.

use prost::Message;
use trapline_core::{Candidate, Timestamp};
use trapline_frontier::{ErrorKind, Scan, Settlement, Steer, Store, StoreError, Want};

use super::answer::Answer;
use super::frame::{Frame, frame};
use crate::disk::command::Command;
use crate::disk::message::scan::ScanMessage;
use crate::disk::message::{self, Unreadable};

const COMMAND: u8 = 1;
const SCAN: u8 = 2;
const STATS: u8 = 3;
const FLUSH: u8 = 4;

#[derive(Clone, PartialEq, Message)]
struct ScanRequest {
    #[prost(string, tag = "1")]
    crawl: String,
    #[prost(uint64, tag = "2")]
    now: u64,
    #[prost(message, optional, tag = "3")]
    scan: Option<ScanMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct StatsRequest {
    #[prost(string, tag = "1")]
    crawl: String,
    #[prost(uint64, tag = "2")]
    now: u64,
}

/// A verb with its arguments, as the server has read it.
#[derive(Debug, PartialEq)]
pub(super) enum Request {
    Command(Command),
    Scan { crawl: String, now: Timestamp, scan: Scan },
    Stats { crawl: String, now: Timestamp },
    Flush,
}

/// A verb with its arguments, ready to be sent; and its name, for messages to people.
pub(super) struct Asked {
    pub(super) attempted: &'static str,
    /// A whole frame.
    pub(super) bytes: Vec<u8>,
}

impl Asked {
    pub(super) fn admit(crawl: &str, now: Timestamp, batch: &[Candidate]) -> Self {
        let bytes = frame(COMMAND, |bytes| message::admit(bytes, crawl, now, batch));
        Self { attempted: "admit", bytes }
    }

    pub(super) fn claim(crawl: Option<&str>, now: Timestamp, want: &Want) -> Self {
        let bytes = frame(COMMAND, |bytes| message::claim(bytes, crawl, now, want));
        Self { attempted: "claim", bytes }
    }

    pub(super) fn settle(crawl: &str, now: Timestamp, batch: &[Settlement]) -> Self {
        let bytes = frame(COMMAND, |bytes| message::settle(bytes, crawl, now, batch));
        Self { attempted: "settle", bytes }
    }

    pub(super) fn steer(crawl: &str, now: Timestamp, steer: &Steer) -> Self {
        let bytes = frame(COMMAND, |bytes| message::steer(bytes, crawl, now, steer));
        Self { attempted: "steer", bytes }
    }

    pub(super) fn scan(crawl: &str, now: Timestamp, scan: &Scan) -> Self {
        let request = ScanRequest { crawl: crawl.to_owned(), now: now.as_millis(), scan: Some(scan.into()) };
        Self { attempted: "scan", bytes: frame(SCAN, |bytes| put(bytes, &request)) }
    }

    pub(super) fn stats(crawl: &str, now: Timestamp) -> Self {
        let request = StatsRequest { crawl: crawl.to_owned(), now: now.as_millis() };
        Self { attempted: "count", bytes: frame(STATS, |bytes| put(bytes, &request)) }
    }

    pub(super) fn flush() -> Self {
        Self { attempted: "flush", bytes: frame(FLUSH, |_| {}) }
    }

    /// What the server would read.
    pub(super) fn request(&self) -> Result<Request, Unreadable> {
        Request::read(&Frame { kind: self.bytes[4], body: self.bytes[5..].to_vec() })
    }
}

fn put(bytes: &mut Vec<u8>, message: &impl Message) {
    message.encode(bytes).expect("a vector has room for everything");
}

impl Request {
    pub(super) fn read(frame: &Frame) -> Result<Self, Unreadable> {
        let body = &*frame.body;
        Ok(match frame.kind {
            COMMAND => match message::read(body)? {
                // It is no verb; who only asks passes time by asking.
                Command::Pass { .. } => return Err(Unreadable::Lacks("a verb")),
                command => Self::Command(command),
            },
            SCAN => {
                let ScanRequest { crawl, now, scan } = ScanRequest::decode(body)?;
                let scan = scan.ok_or(Unreadable::Lacks("a scan"))?.read()?;
                Self::Scan { crawl, now: Timestamp::from_millis(now), scan }
            }
            STATS => {
                let StatsRequest { crawl, now } = StatsRequest::decode(body)?;
                Self::Stats { crawl, now: Timestamp::from_millis(now) }
            }
            FLUSH => Self::Flush,
            _ => return Err(Unreadable::Lacks("a kind of request it knows the meaning of")),
        })
    }

    /// Does it.
    pub(super) async fn perform(self, store: &impl Store) -> Result<Answer, StoreError> {
        Ok(match self {
            Self::Command(Command::Admit { crawl, now, batch }) => {
                Answer::Admitted(store.admit(&crawl, now, &batch).await?)
            }
            Self::Command(Command::Claim { crawl, now, want }) => {
                Answer::Claimed(store.claim(crawl.as_deref(), now, &want).await?)
            }
            Self::Command(Command::Settle { crawl, now, batch }) => {
                Answer::Settled(store.settle(&crawl, now, batch).await?)
            }
            Self::Command(Command::Steer { crawl, now, steer }) => {
                Answer::Steered(store.steer(&crawl, now, steer).await?)
            }
            Self::Command(Command::Pass { crawl, now }) | Self::Stats { crawl, now } => {
                Answer::Stats(Box::new(store.stats(&crawl, now).await?))
            }
            Self::Scan { crawl, now, scan } => Answer::Page(store.scan(&crawl, now, &scan).await?),
            // Nobody can ask for it: no message says so.
            Self::Command(Command::Move { .. }) => {
                let message = "disk store: what is moved in its log is its own business";
                return Err(StoreError::new(ErrorKind::Unsupported, message.to_owned()));
            }
            Self::Flush => {
                store.flush().await?;
                Answer::Flushed
            }
        })
    }

    /// The time that it was asked at.
    pub(super) fn now(&self) -> Timestamp {
        match self {
            Self::Command(
                Command::Admit { now, .. }
                | Command::Claim { now, .. }
                | Command::Settle { now, .. }
                | Command::Steer { now, .. }
                | Command::Pass { now, .. },
            )
            | Self::Scan { now, .. }
            | Self::Stats { now, .. } => *now,
            Self::Command(Command::Move { .. }) | Self::Flush => Timestamp::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trapline_frontier::Query;

    const NOW: Timestamp = Timestamp::from_millis(7);

    #[test]
    fn requests_come_back_as_they_were() {
        let check = |asked: Asked, expected: Request| assert_eq!(asked.request().unwrap(), expected);
        let crawl = || "c".to_owned();
        let admit = Command::Admit { crawl: crawl(), now: NOW, batch: Vec::new() };
        check(Asked::admit("c", NOW, &[]), Request::Command(admit));
        let claim = Command::Claim { crawl: None, now: NOW, want: Want::urls(2) };
        check(Asked::claim(None, NOW, &Want::urls(2)), Request::Command(claim));
        let scan = Scan::new(Query::Jobs);
        check(Asked::scan("c", NOW, &scan), Request::Scan { crawl: crawl(), now: NOW, scan });
        check(Asked::stats("c", NOW), Request::Stats { crawl: crawl(), now: NOW });
        check(Asked::flush(), Request::Flush);
    }

    #[test]
    fn what_is_no_request_is_an_error() {
        let check = |kind, body: &[u8]| {
            assert!(Request::read(&Frame { kind, body: body.to_vec() }).is_err(), "{kind} {body:?}");
        };
        check(0, &[]);
        check(5, &[]);
        check(COMMAND, &[]);
        check(SCAN, &[]);
        check(STATS, &[0xff]);
        // What is only in the log: time that passed.
        check(COMMAND, &[0x2a, 0]);
    }
}
