//! Finds the segments of wildcard rules in one path, under a budget.
//!
//! For most paths and files this is a few searches of a few bytes. Where it becomes many, the path is indexed once
//! (see [`Index`]), and every search after that is cheap. Where even that becomes too many, the search gives up: a decision
//! takes bounded time whatever the file.

use memchr::{memchr, memmem};

use super::index::Index;
use super::rules::TooCostly;

/// From here on an index is worth its making. In units of very roughly a nanosecond, as all costs here.
const COST_INDEXED: u32 = 20_000;

/// The budget of a decision.
const COST_MAX: u32 = 450_000;

/// Places that begin like a segment, after which the search that is linear whatever comes takes over.
const TRIES_MAX: u32 = 8;

pub(super) struct Search<'a> {
    path: &'a [u8],
    cost: u32,
    index: Option<Box<Index<'a>>>,
}

impl<'a> Search<'a> {
    pub(super) fn new(path: &'a [u8]) -> Self {
        Self { path, cost: 0, index: None }
    }

    /// The first place at or after `from` where the segment stands, ending at or before `end`.
    pub(super) fn find(
        &mut self,
        segment: &[u8],
        from: usize,
        end: usize,
    ) -> Result<Option<usize>, TooCostly> {
        if self.cost > COST_MAX {
            return Err(TooCostly);
        }
        if let Some(index) = &self.index {
            return Ok(index.find(segment, from, end, &mut self.cost));
        }
        if self.cost > COST_INDEXED {
            let index = Index::new(self.path).ok_or(TooCostly)?;
            self.cost += u32::try_from(self.path.len() * 8).unwrap_or(u32::MAX);
            let index = self.index.insert(Box::new(index));
            return Ok(index.find(segment, from, end, &mut self.cost));
        }
        let Some(area) = self.path.get(from..end) else { return Ok(None) };
        let (found, cost) = find_in(area, segment);
        self.cost = self.cost.saturating_add(cost);
        Ok(found.map(|at| from + at))
    }
}

/// Where the segment first stands, and what it cost to find out.
fn find_in(area: &[u8], segment: &[u8]) -> (Option<usize>, u32) {
    let Some((first, others)) = segment.split_first() else { return (Some(0), 1) };
    let Some(last) = area.len().checked_sub(segment.len()) else { return (None, 1) };
    let (mut at, mut cost) = (0, 4);
    for _ in 0..TRIES_MAX {
        let Some(found) = memchr(*first, &area[at..=last]) else {
            return (None, cost + bytes(last - at) / 8);
        };
        at += found;
        cost += bytes(found) / 8 + 4;
        if area[at + 1..].starts_with(others) {
            return (Some(at), cost);
        }
        at += 1;
        if at > last {
            return (None, cost);
        }
    }
    let found = memmem::find(&area[at..], segment);
    let read = found.unwrap_or(area.len() - at);
    (found.map(|found| at + found), cost.saturating_add(64 + bytes(read) + bytes(segment.len())))
}

fn bytes(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX / 4)
}
