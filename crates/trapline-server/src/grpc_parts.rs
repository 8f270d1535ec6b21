//! Batches that one message has no room for: the parts in which they go instead. Nothing is known here of calls.

use prost::Message;
use trapline_core::Candidate;
use trapline_frontier::Settlement;

use crate::frontier_service::BATCH_MAX;
use crate::wire::{candidate, settle};

/// What a service takes in one message unless it is told otherwise, with room for the frame around a batch.
pub(crate) const BYTES_MAX: usize = (4 << 20) - (64 << 10);

/// How many bytes a message takes within another one, at most.
fn size(message: &impl Message) -> usize {
    message.encoded_len() + 8
}

pub(crate) fn size_of_settlement(settlement: &Settlement) -> usize {
    size(&settle::write(settlement))
}

/// How many settlements and links one of them counts as.
fn count_of_settlement(settlement: &Settlement) -> usize {
    1 + settlement.links.len()
}

/// Things in a row in parts, of which each fits: by the bytes of each thing, and what it counts as.
fn parts<T>(things: Vec<T>, bytes_of: impl Fn(&T) -> usize, count_of: impl Fn(&T) -> usize) -> Vec<Vec<T>> {
    let mut parts = Vec::new();
    let (mut part, mut bytes, mut count) = (Vec::new(), 0, 0);
    for thing in things {
        let (its_bytes, its_count) = (bytes_of(&thing), count_of(&thing));
        if !part.is_empty() && (bytes + its_bytes > BYTES_MAX || count + its_count > BATCH_MAX) {
            parts.push(std::mem::take(&mut part));
            (bytes, count) = (0, 0);
        }
        (bytes, count) = (bytes + its_bytes, count + its_count);
        part.push(thing);
    }
    parts.push(part);
    parts
}

pub(crate) fn parts_of_candidates(candidates: Vec<Candidate>) -> Vec<Vec<Candidate>> {
    parts(candidates, |one| size(&candidate::write(one)), |_| 1)
}

pub(crate) fn parts_of_settlements(settlements: Vec<Settlement>) -> Vec<Vec<Settlement>> {
    parts(settlements, size_of_settlement, count_of_settlement)
}

/// Whether a settlement can go as it is.
pub(crate) fn is_fit(settlement: &Settlement) -> bool {
    size_of_settlement(settlement) <= BYTES_MAX && count_of_settlement(settlement) <= BATCH_MAX
}

/// The links of a settlement in parts that leave room for the rest of it.
pub(crate) fn parts_of_links(links: Vec<Candidate>, rest: usize) -> Vec<Vec<Candidate>> {
    let least = BYTES_MAX / 4;
    let bytes = BYTES_MAX.saturating_sub(rest).max(least);
    // As if each took so much more that no more than `bytes` of them come together.
    parts(links, |one| size(&candidate::write(one)) * BYTES_MAX / bytes, |_| 2)
}
