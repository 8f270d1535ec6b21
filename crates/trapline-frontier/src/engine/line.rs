//! The line of one partition: which queue is served next.
//!
//! Ready and inactive queues stand in one order: by precedence, then ready before inactive, then age. Those of one
//! precedence mostly join in the order of their ages, so they stand in a [`Fifo`]; whoever comes out of order stands
//! in a tree beside it.
//!
//! Queues over their budget stand aside; when they are all to be reconsidered, the whole set joins the line as
//! one [`Returning`] without any of them being touched.

use std::collections::{BTreeMap, BTreeSet};

use super::fifo::Fifo;
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
    /// The best first.
    ranks: Vec<Rank>,
    /// Those that came out of order.
    strays: BTreeSet<Turn>,
    /// Over their budget, in the order they had in line.
    aside: BTreeSet<Turn>,
    /// By the generation in which they stood aside.
    returning: BTreeMap<u64, Returning>,
}

/// The queues of one precedence, either ready or inactive, by age.
#[derive(Debug)]
struct Rank {
    precedence: u8,
    inactive: bool,
    queues: Fifo,
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

/// As long as there are no more ranks than this, empty ones are kept, to be used again.
const RANKS_KEPT: usize = 4;

impl Line {
    pub(super) fn join(&mut self, turn: Turn) {
        let in_order = turn.age.is_simple() && self.rank(&turn).queues.push(turn.age.since, turn.queue);
        if !in_order {
            self.strays.insert(turn);
        }
    }

    pub(super) fn leave(&mut self, turn: &Turn) {
        let at = self.find_rank(turn);
        if let Ok(at) = at
            && turn.age.is_simple()
            && self.ranks[at].queues.remove(turn.age.since, turn.queue)
        {
            if self.ranks[at].queues.is_empty() && self.ranks.len() > RANKS_KEPT {
                self.ranks.remove(at);
            }
            return;
        }
        let was_there = self.strays.remove(turn);
        debug_assert!(was_there, "{turn:?} did not stand in line");
    }

    fn find_rank(&self, turn: &Turn) -> Result<usize, usize> {
        let wanted = (turn.precedence, turn.inactive);
        self.ranks.binary_search_by(|rank| (rank.precedence, rank.inactive).cmp(&wanted))
    }

    fn rank(&mut self, turn: &Turn) -> &mut Rank {
        let at = self.find_rank(turn).unwrap_or_else(|at| {
            let &Turn { precedence, inactive, .. } = turn;
            self.ranks.insert(at, Rank { precedence, inactive, queues: Fifo::default() });
            at
        });
        &mut self.ranks[at]
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

    /// Lets a queue stand aside where it stood: among those of its generation, which has `ended` or is the present one.
    pub(super) fn restore_aside(&mut self, turn: Turn, generation: u64, ended: Option<Moment>) {
        match ended {
            None => self.aside.insert(turn),
            Some(since) => {
                let returning = self.returning.entry(generation);
                returning.or_insert_with(|| Returning { since, queues: BTreeSet::new() }).queues.insert(turn)
            }
        };
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
        let first = self.ranks.iter().find_map(|rank| Some((rank, rank.queues.first()?)));
        if self.strays.is_empty() && self.returning.is_empty() {
            return first.map(|(_, (_, queue))| Next::Queue(queue));
        }
        let first = first.map(|(rank, (since, queue))| Turn {
            precedence: rank.precedence,
            inactive: rank.inactive,
            age: Age::since(since),
            queue,
        });
        let waiting = first.into_iter().chain(self.strays.first().cloned()).min();
        let returning = self.returning.values().filter_map(|returning| {
            let turn = returning.queues.first()?;
            Some(Turn { age: turn.age.reconsidered(returning.since), ..turn.clone() })
        });
        match (waiting, returning.min()) {
            (Some(waiting), Some(returning)) if returning < waiting => Some(Next::Returning(returning.queue)),
            (Some(waiting), _) => Some(Next::Queue(waiting.queue)),
            (None, returning) => returning.map(|turn| Next::Returning(turn.queue)),
        }
    }

    /// Who is probably served when so many others have been.
    fn likely(&self, after: usize) -> Option<QueueId> {
        let mut passed = 0;
        for rank in &self.ranks {
            if after - passed < rank.queues.len() {
                return rank.queues.after(after - passed);
            }
            passed += rank.queues.len();
        }
        None
    }

    pub(super) fn is_empty(&self) -> bool {
        self.strays.is_empty()
            && self.returning.is_empty()
            && self.ranks.iter().all(|rank| rank.queues.is_empty())
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
    pub(super) turn: usize,
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
    pub(super) fn of(&mut self, partition: u16) -> &mut Line {
        let partition = usize::from(partition);
        self.occupied[partition / 64] |= 1 << (partition % 64);
        &mut self.lines[partition]
    }

    pub(super) fn reconsider(&mut self, generation: u64, since: Moment) {
        for (partition, line) in self.lines.iter_mut().enumerate() {
            line.reconsider(generation, since);
            self.occupied[partition / 64] |= 1 << (partition % 64);
        }
    }

    /// The partition whose turn it is.
    pub(super) fn turn(&self) -> u32 {
        self.turn as u32
    }

    /// It is a partition's turn.
    pub(super) fn set_turn(&mut self, partition: u32) {
        self.turn = partition as usize % self.lines.len();
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
            if allowed.is_none_or(|allowed| allowed.contains(&(partition as u32)))
                && let Some(next) = line.next()
            {
                self.turn = partition;
                return Some(next);
            }
            if line.is_empty() {
                self.occupied[partition / 64] &= !(1 << (partition % 64));
            }
            from = partition + 1;
        }
    }

    /// The partition that was just served has had its turn.
    pub(super) fn end_turn(&mut self) {
        self.turn = (self.turn + 1) % self.lines.len();
    }

    /// Some of those that are probably served next, for a claim of so many to look at ahead of time.
    pub(super) fn likely(&self, wanted: usize) -> Vec<QueueId> {
        let mut likely = Vec::with_capacity(wanted);
        // Some looks are in vain, at lines that have no more; not many of them are worth it.
        let mut looks = 2 * wanted;
        for after in 0..wanted {
            let found = likely.len();
            for from in [self.turn..self.lines.len(), 0..self.turn] {
                let mut at = from.start;
                while let Some(partition) = self.occupied_from(at).filter(|at| *at < from.end) {
                    likely.extend(self.lines[partition].likely(after));
                    looks -= 1;
                    if likely.len() == wanted || looks == 0 {
                        return likely;
                    }
                    at = partition + 1;
                }
            }
            if likely.len() == found {
                break;
            }
        }
        likely
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
