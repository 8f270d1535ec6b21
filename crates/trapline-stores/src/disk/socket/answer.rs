//! What comes back through the socket: the answer of a verb, the store's error, or that nothing was done.

use prost::Message;
use trapline_frontier::{Admission, Claimed, ErrorKind, Page, Settled, Stats, Steered, StoreError};

use super::frame::{Frame, frame};
use crate::disk::message::Unreadable;
use crate::disk::message::answer::{AdmittedMessage, SettledMessage, SteeredMessage};
use crate::disk::message::error::ErrorMessage;
use crate::disk::message::lease::ClaimedMessage;
use crate::disk::message::rows::RowsMessage;
use crate::disk::message::stats::StatsMessage;

const ADMITTED: u8 = 1;
const CLAIMED: u8 = 2;
const SETTLED: u8 = 3;
const STEERED: u8 = 4;
const PAGE: u8 = 5;
const STATS: u8 = 6;
const FLUSHED: u8 = 7;
const ERROR: u8 = 8;
const REFUSED: u8 = 9;
const GOODBYE: u8 = 10;

/// What a verb answered.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    Admitted(Vec<Admission>),
    Claimed(Claimed),
    Settled(Vec<Settled>),
    Steered(Steered),
    Page(Page),
    Stats(Box<Stats>),
    Flushed,
}

/// What a frame from the server says.
#[derive(Debug)]
pub(super) enum Reply {
    Answer(Answer),
    /// The store answered an error.
    Error(StoreError),
    /// Nothing was done, for this reason, and this connection is over.
    Refused(StoreError),
    /// The server ends in good order. What it has not answered it has not done.
    Goodbye,
}

impl Answer {
    /// The bytes of its frame.
    pub(super) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Admitted(answers) => put(ADMITTED, &AdmittedMessage::from(&**answers)),
            Self::Claimed(claimed) => put(CLAIMED, &ClaimedMessage::from(claimed)),
            Self::Settled(answers) => put(SETTLED, &SettledMessage::from(&**answers)),
            Self::Steered(steered) => put(STEERED, &SteeredMessage::from(*steered)),
            Self::Page(page) => put(PAGE, &RowsMessage::from(page)),
            Self::Stats(stats) => put(STATS, &StatsMessage::from(&**stats)),
            Self::Flushed => frame(FLUSHED, |_| {}),
        }
    }

    pub(super) fn admitted(self) -> Result<Vec<Admission>, StoreError> {
        match self {
            Self::Admitted(answers) => Ok(answers),
            _ => Err(unexpected()),
        }
    }

    pub(super) fn claimed(self) -> Result<Claimed, StoreError> {
        match self {
            Self::Claimed(claimed) => Ok(claimed),
            _ => Err(unexpected()),
        }
    }

    pub(super) fn settled(self) -> Result<Vec<Settled>, StoreError> {
        match self {
            Self::Settled(answers) => Ok(answers),
            _ => Err(unexpected()),
        }
    }

    pub(super) fn steered(self) -> Result<Steered, StoreError> {
        match self {
            Self::Steered(steered) => Ok(steered),
            _ => Err(unexpected()),
        }
    }

    pub(super) fn page(self) -> Result<Page, StoreError> {
        match self {
            Self::Page(page) => Ok(page),
            _ => Err(unexpected()),
        }
    }

    pub(super) fn stats(self) -> Result<Stats, StoreError> {
        match self {
            Self::Stats(stats) => Ok(*stats),
            _ => Err(unexpected()),
        }
    }

    pub(super) fn flushed(self) -> Result<(), StoreError> {
        match self {
            Self::Flushed => Ok(()),
            _ => Err(unexpected()),
        }
    }
}

fn unexpected() -> StoreError {
    let message =
        "disk store: the owner answered another question than was asked; report this bug in Trapline";
    StoreError::new(ErrorKind::Corrupt, message)
}

/// The bytes of a frame with a store's error.
pub(super) fn error(error: &StoreError) -> Vec<u8> {
    put(ERROR, &ErrorMessage::from(error))
}

/// The bytes of a frame that says why nothing was done and the connection is over.
pub(super) fn refused(kind: ErrorKind, message: String) -> Vec<u8> {
    put(REFUSED, &ErrorMessage::from(&StoreError::new(kind, message)))
}

/// The bytes of a frame that says that nothing will be done any more.
pub(super) fn goodbye() -> Vec<u8> {
    frame(GOODBYE, |_| {})
}

fn put(kind: u8, message: &impl Message) -> Vec<u8> {
    frame(kind, |bytes| {
        bytes.reserve(message.encoded_len());
        message.encode(bytes).expect("a vector has room for everything");
    })
}

impl Reply {
    pub(super) fn read(frame: &Frame) -> Result<Self, Unreadable> {
        let body = &*frame.body;
        Ok(Self::Answer(match frame.kind {
            ADMITTED => Answer::Admitted(AdmittedMessage::decode(body)?.read()?),
            CLAIMED => Answer::Claimed(ClaimedMessage::decode(body)?.read()?),
            SETTLED => Answer::Settled(SettledMessage::decode(body)?.read()?),
            STEERED => Answer::Steered(SteeredMessage::decode(body)?.read()),
            PAGE => Answer::Page(RowsMessage::decode(body)?.read()?),
            STATS => Answer::Stats(Box::new(StatsMessage::decode(body)?.read()?)),
            FLUSHED => Answer::Flushed,
            ERROR => return Ok(Self::Error(ErrorMessage::decode(body)?.read())),
            REFUSED => return Ok(Self::Refused(ErrorMessage::decode(body)?.read())),
            GOODBYE => return Ok(Self::Goodbye),
            _ => return Err(Unreadable::Lacks("a kind of answer it knows the meaning of")),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trapline_frontier::Rows;

    fn read(bytes: &[u8]) -> Result<Reply, Unreadable> {
        Reply::read(&Frame { kind: bytes[4], body: bytes[5..].to_vec() })
    }

    #[test]
    fn answers_come_back_as_they_were() {
        for answer in [
            Answer::Admitted(vec![Admission::Added]),
            Answer::Claimed(Claimed::default()),
            Answer::Settled(Vec::new()),
            Answer::Steered(Steered::default()),
            Answer::Page(Page { rows: Rows::Dead(Vec::new()), cursor: Some(1) }),
            Answer::Stats(Box::default()),
            Answer::Flushed,
        ] {
            assert!(matches!(read(&answer.bytes()), Ok(Reply::Answer(read)) if read == answer), "{answer:?}");
        }
        let full = StoreError::new(ErrorKind::Full, "no room");
        assert!(matches!(read(&error(&full)), Ok(Reply::Error(read)) if read.kind() == ErrorKind::Full));
        let busy = refused(ErrorKind::Unavailable, "busy".to_owned());
        assert!(matches!(read(&busy), Ok(Reply::Refused(read)) if read.to_string() == "busy"));
        assert!(matches!(read(&goodbye()), Ok(Reply::Goodbye)));
        assert!(read(&frame(0, |_| {})).is_err());
        assert!(read(&frame(11, |_| {})).is_err());
    }
}
