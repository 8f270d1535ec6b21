//! Answers as numbers: what a record of the log keeps of what it answered, to notice an engine that would answer
//! otherwise.
//!
//! Only answers to candidates that the record keeps are in it. A request is left out, because its identity stands for it. Never change what is hashed, or how: logs are compared
//! with it.

use trapline_core::Timestamp;
use trapline_frontier::{Admission, Answer, Claimed, Lease, PageRecord, Refusal, Settled, Steered, Visit};
use xxhash_rust::xxh3::xxh3_64;

use super::message::logged::Which;

/// The number of no answer.
pub(crate) const NOTHING: u64 = 0;

/// The number of the answers to candidates.
pub(crate) fn admitted(answers: &[Admission], which: Which) -> u64 {
    let bytes: Vec<u8> = answers.iter().filter(|answer| which.has(answer)).map(admission).collect();
    xxh3_64(&bytes)
}

/// The number of what a claim got.
pub(crate) fn claimed(claimed: &Claimed) -> u64 {
    let Claimed { leases, next, exhausted } = claimed;
    let mut bytes = Vec::with_capacity(16 + leases.len() * 96);
    time(&mut bytes, *next);
    bytes.push((*exhausted).into());
    for lease in leases {
        let Lease { id, crawl, key, identity, request: _, deadline, delivery, retries, cost, page } = lease;
        number(&mut bytes, id.0);
        text(&mut bytes, crawl);
        text(&mut bytes, key);
        bytes.extend_from_slice(&identity.0.to_le_bytes());
        number(&mut bytes, deadline.as_millis());
        for count in [*delivery, *retries, *cost] {
            bytes.extend_from_slice(&count.to_le_bytes());
        }
        bytes.push(page.is_some().into());
        if let Some(record) = page {
            let PageRecord { visited, visit, visits, changes, next } = &**record;
            // What the visit found was said in a settlement; its status shows which one.
            let Visit { status, .. } = visit;
            number(&mut bytes, visited.as_millis());
            bytes.extend_from_slice(&status.to_le_bytes());
            bytes.extend_from_slice(&visits.to_le_bytes());
            bytes.extend_from_slice(&changes.to_le_bytes());
            time(&mut bytes, *next);
        }
    }
    xxh3_64(&bytes)
}

/// The number of the answers to settlements.
pub(crate) fn settled(answers: &[Settled], which: Which) -> u64 {
    let mut bytes = Vec::with_capacity(answers.len() * 16);
    for Settled { answer, links } in answers {
        bytes.push(match answer {
            Answer::Done => 1,
            Answer::Retry => 2,
            Answer::Released => 3,
            Answer::Dead => 4,
            Answer::Disregarded => 5,
            Answer::Renewed => 6,
            Answer::Stale => 7,
        });
        let begin = bytes.len();
        number(&mut bytes, 0);
        bytes.extend(links.iter().filter(|link| which.has(link)).map(admission));
        let links = (bytes.len() - begin - 8) as u64;
        bytes[begin..begin + 8].copy_from_slice(&links.to_le_bytes());
    }
    xxh3_64(&bytes)
}

/// The number of what an act of steering did.
pub(crate) fn steered(steered: Steered) -> u64 {
    let Steered { affected, job } = steered;
    let mut bytes = Vec::with_capacity(17);
    number(&mut bytes, affected);
    bytes.push(job.is_some().into());
    number(&mut bytes, job.unwrap_or_default());
    xxh3_64(&bytes)
}

/// The code of one answer to a candidate.
pub(crate) fn admission(admission: &Admission) -> u8 {
    match admission {
        Admission::Added => 1,
        Admission::Known => 2,
        Admission::Rescored => 3,
        Admission::Restated => 4,
        Admission::Refused(Refusal::Finished) => 5,
        Admission::Refused(Refusal::Blocked) => 6,
        Admission::Refused(Refusal::TooDeep) => 7,
        Admission::Refused(Refusal::QueueFull) => 8,
        Admission::Refused(Refusal::Malformed) => 9,
    }
}

fn number(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend_from_slice(&number.to_le_bytes());
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    number(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}

fn time(bytes: &mut Vec<u8>, time: Option<Timestamp>) {
    bytes.push(time.is_some().into());
    number(bytes, time.unwrap_or_default().as_millis());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use trapline_core::{Identity, Request};
    use trapline_frontier::LeaseId;

    /// These numbers are in logs: if this test fails, the change is wrong, not the test.
    #[test]
    fn numbers_never_change() {
        let page = PageRecord {
            visited: Timestamp::from_millis(5),
            visit: Visit { status: 200, ..Visit::default() },
            visits: 2,
            changes: 1,
            next: None,
        };
        let lease = Lease {
            id: LeaseId(7),
            crawl: Arc::from("c"),
            key: Arc::from("a.example"),
            identity: Identity(8),
            request: Arc::new(Request::get("http://a.example/")),
            deadline: Timestamp::from_millis(9),
            delivery: 1,
            retries: 2,
            cost: 3,
            page: Some(Arc::new(page)),
        };
        let got = Claimed { leases: vec![lease], next: Some(Timestamp::ZERO), exhausted: false };
        let numbers = [
            admitted(&[Admission::Added, Admission::Refused(Refusal::TooDeep)], Which::All),
            claimed(&got),
            settled(&[Settled { answer: Answer::Stale, links: vec![Admission::Known] }], Which::All),
            steered(Steered { affected: 1, job: Some(0) }),
        ];
        assert_eq!(
            numbers,
            [9700230047516208406, 16296102702616539562, 7579947352213682859, 12139748941726808778]
        );
    }

    #[test]
    fn other_answers_have_other_numbers() {
        let all = |answers| admitted(answers, Which::All);
        assert_ne!(all(&[]), all(&[Admission::Added]));
        assert_ne!(all(&[Admission::Known]), all(&[Admission::Added]));
        let mixed = [Admission::Known, Admission::Added];
        assert_eq!(admitted(&mixed, Which::Effective), all(&[Admission::Added]));
        assert_ne!(claimed(&Claimed::default()), claimed(&Claimed { exhausted: true, ..Claimed::default() }));
        let next = Some(Timestamp::ZERO);
        assert_ne!(claimed(&Claimed::default()), claimed(&Claimed { next, ..Claimed::default() }));
    }
}
