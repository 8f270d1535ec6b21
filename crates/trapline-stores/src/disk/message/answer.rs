//! Answers to commands as messages: what became of candidates, of settlements, of an act of steering.
//!
//! Leases have a file of their own, and so have the rows of a scan and the counts of a crawl.

use prost::Message;
use trapline_frontier::{Admission, Answer, Refusal, Settled, Steered};

use super::Unreadable;

/// Every admission there is; its code is its place, counting from 1.
const ADMISSIONS: [Admission; 9] = [
    Admission::Added,
    Admission::Known,
    Admission::Rescored,
    Admission::Restated,
    Admission::Refused(Refusal::Finished),
    Admission::Refused(Refusal::Blocked),
    Admission::Refused(Refusal::TooDeep),
    Admission::Refused(Refusal::QueueFull),
    Admission::Refused(Refusal::Malformed),
];

/// Every answer to a settlement; its code is its place, counting from 1.
const ANSWERS: [Answer; 7] = [
    Answer::Done,
    Answer::Retry,
    Answer::Released,
    Answer::Dead,
    Answer::Disregarded,
    Answer::Renewed,
    Answer::Stale,
];

/// One byte for each candidate.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct AdmittedMessage {
    #[prost(bytes = "vec", tag = "1")]
    codes: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SettledMessage {
    #[prost(message, repeated, tag = "1")]
    answers: Vec<OneSettled>,
}

#[derive(Clone, PartialEq, Message)]
struct OneSettled {
    #[prost(uint32, tag = "1")]
    code: u32,
    #[prost(bytes = "vec", tag = "2")]
    links: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct SteeredMessage {
    #[prost(uint64, tag = "1")]
    affected: u64,
    #[prost(uint64, optional, tag = "2")]
    job: Option<u64>,
}

/// The codes are the ones that the log has for its answers.
fn codes(admissions: &[Admission]) -> Vec<u8> {
    admissions.iter().map(super::super::answers::admission).collect()
}

fn read_codes(codes: &[u8]) -> Result<Vec<Admission>, Unreadable> {
    codes.iter().map(|code| at(&ADMISSIONS, u64::from(*code))).collect()
}

/// What has this code, counting from 1.
fn at<T: Clone>(all: &[T], code: u64) -> Result<T, Unreadable> {
    let place = usize::try_from(code).ok().and_then(|code| code.checked_sub(1));
    place
        .and_then(|place| all.get(place))
        .cloned()
        .ok_or(Unreadable::Lacks("an answer it knows the meaning of"))
}

impl From<&[Admission]> for AdmittedMessage {
    fn from(admissions: &[Admission]) -> Self {
        Self { codes: codes(admissions) }
    }
}

impl AdmittedMessage {
    pub(crate) fn read(self) -> Result<Vec<Admission>, Unreadable> {
        read_codes(&self.codes)
    }
}

impl From<&[Settled]> for SettledMessage {
    fn from(answers: &[Settled]) -> Self {
        let one = |Settled { answer, links }: &Settled| OneSettled {
            code: ANSWERS.iter().position(|known| known == answer).map_or(0, |place| place as u32 + 1),
            links: codes(links),
        };
        Self { answers: answers.iter().map(one).collect() }
    }
}

impl SettledMessage {
    pub(crate) fn read(self) -> Result<Vec<Settled>, Unreadable> {
        let one = |OneSettled { code, links }: OneSettled| {
            Ok(Settled { answer: at(&ANSWERS, code.into())?, links: read_codes(&links)? })
        };
        self.answers.into_iter().map(one).collect()
    }
}

impl From<Steered> for SteeredMessage {
    fn from(steered: Steered) -> Self {
        let Steered { affected, job } = steered;
        Self { affected, job }
    }
}

impl SteeredMessage {
    pub(crate) fn read(self) -> Steered {
        let Self { affected, job } = self;
        Steered { affected, job }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_back_as_they_were() {
        for admissions in [&ADMISSIONS[..], &[]] {
            let bytes = AdmittedMessage::from(admissions).encode_to_vec();
            assert_eq!(AdmittedMessage::decode(&*bytes).unwrap().read().unwrap(), admissions);
        }
        let settled: Vec<_> = ANSWERS
            .into_iter()
            .flat_map(|answer| [ADMISSIONS.to_vec(), Vec::new()].map(|links| Settled { answer, links }))
            .collect();
        let bytes = SettledMessage::from(&*settled).encode_to_vec();
        assert_eq!(SettledMessage::decode(&*bytes).unwrap().read().unwrap(), settled);
        for steered in [Steered::default(), Steered { affected: u64::MAX, job: Some(0) }] {
            let bytes = SteeredMessage::from(steered).encode_to_vec();
            assert_eq!(SteeredMessage::decode(&*bytes).unwrap().read(), steered);
        }
    }

    #[test]
    fn a_code_that_means_nothing_is_an_error() {
        for code in [0, 10, 255] {
            assert!(AdmittedMessage { codes: vec![code] }.read().is_err(), "{code}");
            let answers = vec![OneSettled { code: code.into(), links: Vec::new() }];
            assert!(SettledMessage { answers }.read().is_err(), "{code}");
        }
    }
}
