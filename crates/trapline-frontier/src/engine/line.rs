//! The line of one partition: which queue is served next.
//!
//! Ready and inactive queues stand in one set, ordered by precedence, then ready before inactive, then age.
//! Queues over their budget stand aside; when they are all to be reconsidered, the whole set joins the line as
//! one [`Returning`] without any of them being touched.

use std::collections::{BTreeMap, BTreeSet};

use super::moment::{Age, Moment};
use super::queues::QueueId;

/// A place in line: lower is served earlier.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    pub(super) precedence: u8,
    /// Ready queues, which are active, come before inactive ones.
    pub(super) inactive: bool,
    pub(super) age: Age,
    pub(super) queue: QueueId,
}

/// The queues of one partition that can supply, or could but for their budget.
#[derive(Debug, Default)]
pub(super) struct Line {
    waiting: BTreeSet<Turn>,
    /// Over their budget, in the order they had in line.
    aside: BTreeSet<Turn>,
    /// By the generation in which they stood aside.
    returning: BTreeMap<u64, Returning>,
}

/// Queues that were reconsidered together.
#[derive(Debug)]
struct Returning {
    /// When.
    since: Moment,
    queues: BTreeSet<Turn>,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    /// This queue's.
    Queue(QueueId),
    /// This queue's, once it has been put into line: it was reconsidered and not touched since.
    Returning(QueueId),
}

impl Line {
    pub(super) fn join(&mut self, turn: Turn) {
        self.waiting.insert(turn);
    }

    pub(super) fn leave(&mut self, turn: &Turn) {
        // Usually it leaves because its turn has come, and the first is found without a search.
        let was_there = if self.waiting.first() == Some(turn) {
            self.waiting.pop_first().is_some()
        } else {
            self.waiting.remove(turn)
        };
        debug_assert!(was_there, "{turn:?} did not stand in line");
    }

    pub(super) fn step_aside(&mut self, turn: Turn) {
        self.aside.insert(turn);
    }

    /// Takes a queue from those that stand aside; `generation` is when it stepped there, `now` the present one.
    /// If it has been reconsidered meanwhile, answers the age that gives it.
    pub(super) fn leave_aside(&mut self, turn: &Turn, generation: u64, now: u64) -> Option<Age> {
        if generation == now {
            self.aside.remove(turn);
            return None;
        }
        let returning = self.returning.get_mut(&generation)?;
        returning.queues.remove(turn);
        let age = turn.age.reconsidered(returning.since);
        if returning.queues.is_empty() {
            self.returning.remove(&generation);
        }
        Some(age)
    }

    /// All that stand aside come back, as of `since`.
    pub(super) fn reconsider(&mut self, generation: u64, since: Moment) {
        let queues = std::mem::take(&mut self.aside);
        if !queues.is_empty() {
            self.returning.insert(generation, Returning { since, queues });
        }
    }

    /// Whose turn it is.
    pub(super) fn next(&self) -> Option<Next> {
        let waiting = self.waiting.first();
        let returning = self.returning.values().filter_map(|returning| {
            let turn = returning.queues.first()?;
            Some(Turn { age: turn.age.reconsidered(returning.since), ..turn.clone() })
        });
        match (waiting, returning.min()) {
            (Some(waiting), Some(returning)) if returning < *waiting => {
                Some(Next::Returning(returning.queue))
            }
            (Some(waiting), _) => Some(Next::Queue(waiting.queue)),
            (None, returning) => returning.map(|turn| Next::Returning(turn.queue)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.returning.is_empty()
    }
}

/// The lines of all partitions, which take turns.
#[derive(Debug)]
pub(super) struct Lines {
    lines: Vec<Line>,
    /// A bit for each line that may have somebody in it: set when a line is touched, cleared when it is found
    /// empty, so that empty partitions cost nothing.
    occupied: Vec<u64>,
    /// The partition whose turn it is.
    turn: usize,
}

impl Lines {
    pub(super) fn new(partitions: u32) -> Self {
        let partitions = partitions.max(1) as usize;
        let lines = (0..partitions).map(|_| Line::default()).collect();
        Self { lines, occupied: vec![0; partitions.div_ceil(64)], turn: 0 }
    }

    pub(super) fn len(&self) -> u32 {
        self.lines.len() as u32
    }

    /// The line of a partition, to be changed.
    pub(super) fn of(&mut self, partition: u32) -> &mut Line {
        let partition = partition as usize;
        self.occupied[partition / 64] |= 1 << (partition % 64);
        &mut self.lines[partition]
    }

    pub(super) fn reconsider(&mut self, generation: u64, since: Moment) {
        for partition in 0..self.len() {
            self.of(partition).reconsider(generation, since);
        }
    }

    /// Whose turn it is: of the partition whose turn it is, or of the next one that has anybody, among those
    /// allowed.
    pub(super) fn next(&mut self, allowed: Option<&BTreeSet<u32>>) -> Option<Next> {
        let mut from = self.turn;
        let mut wrapped = false;
        loop {
            let Some(partition) = self.occupied_from(from) else {
                if wrapped || self.turn == 0 {
                    return None;
                }
                (from, wrapped) = (0, true);
                continue;
            };
            if wrapped && partition >= self.turn {
                return None;
            }
            let line = &self.lines[partition];
            if line.is_empty() {
                self.occupied[partition / 64] &= !(1 << (partition % 64));
            } else if allowed.is_none_or(|allowed| allowed.contains(&(partition as u32)))
                && let Some(next) = line.next()
            {
                self.turn = partition;
                return Some(next);
            }
            from = partition + 1;
        }
    }

    /// The partition that was just served has had its turn.
    pub(super) fn end_turn(&mut self) {
        self.turn = (self.turn + 1) % self.lines.len();
    }

    /// The first partition, from this one on, whose line may have somebody in it.
    fn occupied_from(&self, from: usize) -> Option<usize> {
        let mut word = from / 64;
        let mut bits = self.occupied.get(word)? & (u64::MAX << (from % 64));
        while bits == 0 {
            word += 1;
            bits = *self.occupied.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }
}
