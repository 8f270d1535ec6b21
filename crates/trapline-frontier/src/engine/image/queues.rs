//! Queues in an image.

use prost::Message;
use std::sync::Arc;
use trapline_core::Timestamp;

use super::frame::{ChunkOf, Shown};
use super::parts::{
    MomentMessage, SpanMessage, case, formers, moment, narrow, read_formers, read_moment, read_span,
};
use super::{BadImage, Content};
use crate::engine::groups::GroupId;
use crate::engine::order::Order;
use crate::engine::queues::{Lack, Queue, QueueTerms, QueueTimer, Queues, Rare, Retired, Standing, Term};
use crate::engine::shot::Photographed;
use crate::engine::urls::EntryId;
use crate::report::QueueState;

/// The queues of a chunk.
#[derive(Clone, PartialEq, Message)]
pub(super) struct QueuesMessage {
    #[prost(message, repeated, tag = "1")]
    pub(super) queues: Vec<QueueMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(in crate::engine) struct QueueMessage {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(uint32, tag = "2")]
    partition: u32,
    /// How many stand in its order, and the lanes of those that are not in the tree.
    #[prost(uint32, tag = "3")]
    len: u32,
    #[prost(message, repeated, tag = "4")]
    lanes: Vec<LaneMessage>,
    #[prost(sint64, tag = "5")]
    balance: i64,
    #[prost(uint64, tag = "6")]
    spent: u64,
    #[prost(uint64, tag = "7")]
    spent_at: u64,
    #[prost(uint64, tag = "8")]
    charged: u64,
    #[prost(uint32, tag = "9")]
    grants: u32,
    #[prost(uint32, tag = "10")]
    latest_cost: u32,
    #[prost(message, optional, tag = "11")]
    next_fetch: Option<MomentMessage>,
    #[prost(message, optional, tag = "12")]
    freed: Option<MomentMessage>,
    #[prost(message, optional, tag = "13")]
    since: Option<MomentMessage>,
    #[prost(uint32, tag = "14")]
    leased: u32,
    #[prost(uint32, tag = "15")]
    done: u32,
    #[prost(bool, tag = "16")]
    active: bool,
    #[prost(bool, tag = "17")]
    vacant: bool,
    #[prost(uint32, tag = "18")]
    lack: u32,
    #[prost(uint32, tag = "19")]
    base: u32,
    #[prost(uint32, tag = "20")]
    standing: u32,
    #[prost(uint32, tag = "21")]
    timer: u32,
    #[prost(message, optional, tag = "22")]
    rare: Option<Box<RareMessage>>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct LaneMessage {
    #[prost(uint32, tag = "1")]
    class: u32,
    #[prost(uint32, tag = "2")]
    first: u32,
    #[prost(uint32, tag = "3")]
    last: u32,
}

#[derive(Clone, PartialEq, Message)]
struct RareMessage {
    #[prost(uint32, optional, tag = "1")]
    precedence: Option<u32>,
    #[prost(uint64, optional, tag = "2")]
    queue_budget: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    balance_replenish: Option<u64>,
    #[prost(message, optional, tag = "4")]
    delay: Option<SpanMessage>,
    #[prost(uint32, optional, tag = "5")]
    concurrency: Option<u32>,
    /// A bit for each term an operator set, in the order above; then one for the group.
    #[prost(uint32, tag = "6")]
    by_operator: u32,
    #[prost(uint32, optional, tag = "7")]
    group: Option<u32>,
    #[prost(uint32, tag = "8")]
    waiting: u32,
    #[prost(uint32, tag = "9")]
    visits: u32,
    #[prost(uint32, tag = "10")]
    disregarded: u32,
    #[prost(uint32, tag = "11")]
    dead: u32,
    #[prost(uint64, tag = "12")]
    errors: u64,
    #[prost(message, optional, tag = "13")]
    blocked: Option<MomentMessage>,
    #[prost(bool, tag = "14")]
    retired_by_hand: bool,
    /// In which generation it went over its budget.
    #[prost(uint64, optional, tag = "15")]
    over_budget: Option<u64>,
    #[prost(message, repeated, tag = "16")]
    formers: Vec<MomentMessage>,
    #[prost(uint32, tag = "17")]
    purges: u32,
    #[prost(uint32, tag = "18")]
    deletions: u32,
}

const LACKS: [Lack; 4] = [Lack::Nothing, Lack::Bare, Lack::Full, Lack::BareAndFull];
const STANDINGS: [Standing; 4] = [Standing::Nowhere, Standing::InLine, Standing::InGroup, Standing::Aside];
const TIMERS: [QueueTimer; 3] = [QueueTimer::None, QueueTimer::Fetch, QueueTimer::Block];

impl Queues {
    pub(super) fn begin_shot(&mut self, leaves_out: bool) {
        self.queues.begin_shot(leaves_out);
    }

    pub(super) fn keep_shot(&mut self) -> bool {
        self.queues.keep_shot()
    }

    /// All is as it is in the image that it was made from.
    pub(super) fn is_all_kept(&mut self) {
        self.queues.is_all_kept();
    }

    pub(super) fn drop_shot(&mut self) {
        self.queues.drop_shot();
    }

    pub(super) fn take_shot(&mut self) -> Option<Shown> {
        let queues = self.queues.take_shot()?;
        Some(Shown::of(ChunkOf::Queues, queues, |queues| Content::Queues(QueuesMessage { queues })))
    }
}

impl Photographed for Queue {
    type Photo = QueueMessage;

    fn photo(&self) -> QueueMessage {
        let Self {
            key,
            rare,
            order,
            balance,
            spent,
            spent_at,
            charged,
            grants,
            latest_cost,
            next_fetch,
            freed,
            since,
            leased,
            done,
            partition,
            active,
            vacant,
            lack,
            base,
            standing,
            timer,
        } = self;
        let lane = |(class, first, last): (u8, EntryId, EntryId)| LaneMessage {
            class: class.into(),
            first: first.0,
            last: last.0,
        };
        QueueMessage {
            key: key.to_string(),
            partition: (*partition).into(),
            len: order.len(),
            lanes: order.lane_ends().map(lane).collect(),
            balance: *balance,
            spent: *spent,
            spent_at: spent_at.as_millis(),
            charged: *charged,
            grants: *grants,
            latest_cost: *latest_cost,
            next_fetch: moment(*next_fetch),
            freed: moment(*freed),
            since: moment(*since),
            leased: *leased,
            done: *done,
            active: *active,
            vacant: *vacant,
            lack: *lack as u32,
            base: *base as u32,
            standing: *standing as u32,
            timer: *timer as u32,
            rare: rare.as_deref().map(|rare| Box::new(RareMessage::of(rare))),
        }
    }
}

impl QueueMessage {
    /// The queue, but for those of its order that are in the tree.
    pub(super) fn read(self, entries: u32) -> Result<Queue, BadImage> {
        let mut lanes = Vec::with_capacity(self.lanes.len());
        for LaneMessage { class, first, last } in self.lanes {
            if first >= entries || last >= entries {
                return Err(BadImage::Impossible("a queue of URLs"));
            }
            lanes.push((narrow(class, "a class")?, EntryId(first), EntryId(last)));
        }
        let read_case = |number| case(&QueueState::ALL, number, "a state of a queue");
        Ok(Queue {
            key: Arc::from(self.key),
            rare: self.rare.map(|rare| rare.read().map(Box::new)).transpose()?,
            order: Order::restore(self.len, &lanes),
            balance: self.balance,
            spent: self.spent,
            spent_at: Timestamp::from_millis(self.spent_at),
            charged: self.charged,
            grants: self.grants,
            latest_cost: self.latest_cost,
            next_fetch: read_moment(self.next_fetch),
            freed: read_moment(self.freed),
            since: read_moment(self.since),
            leased: self.leased,
            done: self.done,
            partition: narrow(self.partition, "a partition")?,
            active: self.active,
            vacant: self.vacant,
            lack: case(&LACKS, self.lack, "a lack")?,
            base: read_case(self.base)?,
            standing: case(&STANDINGS, self.standing, "a standing")?,
            timer: case(&TIMERS, self.timer, "a timer")?,
        })
    }
}

impl RareMessage {
    fn of(rare: &Rare) -> Self {
        let Rare {
            terms,
            group,
            waiting,
            visits,
            disregarded,
            dead,
            errors,
            blocked,
            retired,
            former,
            purges,
            deletions,
        } = rare;
        let QueueTerms { precedence, queue_budget, balance_replenish, delay, concurrency, group_by_operator } =
            terms;
        let flags = [
            precedence.by_operator,
            queue_budget.by_operator,
            balance_replenish.by_operator,
            delay.by_operator,
            concurrency.by_operator,
            *group_by_operator,
        ];
        Self {
            precedence: precedence.value.map(u32::from),
            queue_budget: queue_budget.value,
            balance_replenish: balance_replenish.value,
            delay: delay.value.map(SpanMessage::from),
            concurrency: concurrency.value,
            by_operator: flags.iter().rev().fold(0, |bits, flag| bits << 1 | u32::from(*flag)),
            group: group.map(|group| group.0),
            waiting: *waiting,
            visits: *visits,
            disregarded: *disregarded,
            dead: *dead,
            errors: *errors,
            blocked: moment(*blocked),
            retired_by_hand: *retired == Some(Retired::ByHand),
            over_budget: match retired {
                Some(Retired::OverBudget(generation)) => Some(*generation),
                Some(Retired::ByHand) | None => None,
            },
            formers: formers(former.as_ref()),
            purges: (*purges).into(),
            deletions: (*deletions).into(),
        }
    }

    fn read(self) -> Result<Rare, BadImage> {
        let by_operator = |bit: u32| self.by_operator & (1 << bit) != 0;
        let precedence = self.precedence.map(|number| narrow(number, "a precedence")).transpose()?;
        let terms = QueueTerms {
            precedence: Term { value: precedence, by_operator: by_operator(0) },
            queue_budget: Term { value: self.queue_budget, by_operator: by_operator(1) },
            balance_replenish: Term { value: self.balance_replenish, by_operator: by_operator(2) },
            delay: Term { value: read_span(self.delay)?, by_operator: by_operator(3) },
            concurrency: Term { value: self.concurrency, by_operator: by_operator(4) },
            group_by_operator: by_operator(5),
        };
        let retired = match (self.retired_by_hand, self.over_budget) {
            (true, _) => Some(Retired::ByHand),
            (false, generation) => generation.map(Retired::OverBudget),
        };
        Ok(Rare {
            terms,
            group: self.group.map(GroupId),
            waiting: self.waiting,
            visits: self.visits,
            disregarded: self.disregarded,
            dead: self.dead,
            errors: self.errors,
            blocked: read_moment(self.blocked),
            retired,
            former: read_formers(&self.formers),
            purges: narrow(self.purges, "a count of purges")?,
            deletions: narrow(self.deletions, "a count of deletions")?,
        })
    }
}
