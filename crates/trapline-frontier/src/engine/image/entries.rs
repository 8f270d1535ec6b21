//! Entries in an image: a column for each field, because there are so many of them.

use prost::Message;

use super::column::Column;
use super::frame::{ChunkOf, Shown};
use super::mores::MoresMessage;
use super::parts::{COUNT_MAX, shifted, unshifted};
use super::{BadImage, Content};
use crate::engine::more::More;
use crate::engine::payloads::Place;
use crate::engine::queues::QueueId;
use crate::engine::shot::Photographed;
use crate::engine::urls::{Band, EntryId, Live, Record, Urls};

/// The records of a chunk.
#[derive(Clone, PartialEq, Message)]
pub(super) struct RecordsMessage {
    /// Sixteen bytes each.
    #[prost(bytes = "vec", tag = "1")]
    identities: Vec<u8>,
    #[prost(message, optional, tag = "2")]
    requests: Option<Column>,
    /// Not by steps: neighbours have nothing in common.
    #[prost(uint32, repeated, tag = "3")]
    queues: Vec<u32>,
    #[prost(message, optional, tag = "4")]
    costs: Option<Column>,
    #[prost(message, optional, tag = "5")]
    lives: Option<Column>,
    #[prost(message, optional, tag = "6")]
    deletions: Option<Column>,
    #[prost(message, optional, tag = "7")]
    classes: Option<Column>,
    #[prost(message, optional, tag = "8")]
    bits: Option<Column>,
}

/// The same as earlier versions wrote it, each number by itself.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PlainRecordsMessage {
    #[prost(bytes = "vec", tag = "1")]
    identities: Vec<u8>,
    #[prost(uint64, repeated, tag = "2")]
    requests: Vec<u64>,
    #[prost(uint32, repeated, tag = "3")]
    queues: Vec<u32>,
    #[prost(uint32, repeated, tag = "4")]
    costs: Vec<u32>,
    #[prost(uint32, repeated, tag = "5")]
    lives: Vec<u32>,
    #[prost(uint32, repeated, tag = "6")]
    deletions: Vec<u32>,
    #[prost(bytes = "vec", tag = "7")]
    classes: Vec<u8>,
    #[prost(bytes = "vec", tag = "8")]
    bits: Vec<u8>,
}

/// The live parts of a chunk.
#[derive(Clone, PartialEq, Message)]
pub(super) struct LivesMessage {
    #[prost(uint32, tag = "1")]
    count: u32,
    #[prost(message, optional, tag = "2")]
    before: Option<Column>,
    #[prost(message, optional, tag = "3")]
    after: Option<Column>,
    #[prost(message, optional, tag = "4")]
    admitted: Option<Column>,
    #[prost(message, optional, tag = "5")]
    purges: Option<Column>,
    /// 1 for one that came back, 2 for one in the tree.
    #[prost(message, optional, tag = "6")]
    flags: Option<Column>,
}

/// The same as earlier versions wrote it.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PlainLivesMessage {
    #[prost(uint32, repeated, tag = "1")]
    before: Vec<u32>,
    #[prost(uint32, repeated, tag = "2")]
    after: Vec<u32>,
    #[prost(uint64, repeated, tag = "3")]
    admitted: Vec<u64>,
    #[prost(uint32, repeated, tag = "4")]
    purges: Vec<u32>,
    #[prost(bytes = "vec", tag = "5")]
    flags: Vec<u8>,
}

const RETURNED: u64 = 1;
pub(super) const IN_TREE: u64 = 2;

impl Photographed for Record {
    type Photo = Self;

    fn photo(&self) -> Self {
        *self
    }
}

impl Photographed for Live {
    type Photo = Self;

    fn photo(&self) -> Self {
        *self
    }
}

impl Photographed for (EntryId, More) {
    type Photo = Self;

    fn photo(&self) -> Self {
        self.clone()
    }
}

impl Urls {
    pub(super) fn begin_shot(&mut self, leaves_out: bool) {
        self.records.begin_shot(leaves_out);
        self.live.begin_shot(leaves_out);
        self.more.slots.begin_shot(leaves_out);
    }

    pub(super) fn drop_shot(&mut self) {
        self.records.drop_shot();
        self.live.drop_shot();
        self.more.slots.drop_shot();
    }

    pub(super) fn keep_shot(&mut self) -> bool {
        self.records.keep_shot() && self.live.keep_shot() && self.more.slots.keep_shot()
    }

    /// All is as it is in the image that it was made from, but for what was put elsewhere.
    pub(super) fn is_all_kept(&mut self) {
        self.records.is_all_kept();
        self.live.is_all_kept();
    }

    pub(super) fn take_shot(&mut self) -> Option<Shown> {
        if let Some(records) = self.records.take_shot() {
            return Some(Shown::of(ChunkOf::Records, records, |records| {
                Content::Records(RecordsMessage::of(&records))
            }));
        }
        if let Some(lives) = self.live.take_shot() {
            return Some(Shown::of(ChunkOf::Lives, lives, |lives| Content::Lives(LivesMessage::of(&lives))));
        }
        let mores = self.more.slots.take_shot()?;
        Some(Shown::of(ChunkOf::Mores, mores, |mores| {
            Content::Mores(MoresMessage::of(mores.iter().filter(|(id, _)| *id != EntryId::NONE)))
        }))
    }
}

impl RecordsMessage {
    fn of(records: &[Record]) -> Self {
        let column = |number: fn(&Record) -> u64| Some(Column::of(records.iter().map(number)));
        Self {
            identities: records.iter().flat_map(|record| record.identity().0.to_le_bytes()).collect(),
            requests: column(|record| record.request.get()),
            queues: records.iter().map(|record| record.queue.0).collect(),
            costs: column(|record| record.cost.into()),
            lives: column(|record| shifted(record.live).into()),
            deletions: column(|record| record.deletions.into()),
            classes: column(|record| record.class.into()),
            bits: column(|record| record.bits.into()),
        }
    }

    pub(super) fn read(&self) -> Result<Vec<Record>, BadImage> {
        let column = |column: &Option<Column>| Column::read(column.as_ref(), self.queues.len());
        let columns = RecordColumns {
            identities: &self.identities,
            requests: column(&self.requests)?,
            queues: self.queues.iter().copied().map(u64::from).collect(),
            costs: column(&self.costs)?,
            lives: column(&self.lives)?,
            deletions: column(&self.deletions)?,
            classes: column(&self.classes)?,
            bits: column(&self.bits)?,
        };
        columns.records()
    }
}

impl PlainRecordsMessage {
    pub(super) fn read(&self) -> Result<Vec<Record>, BadImage> {
        let columns = RecordColumns {
            identities: &self.identities,
            requests: self.requests.clone(),
            queues: wide(&self.queues),
            costs: wide(&self.costs),
            lives: wide(&self.lives),
            deletions: wide(&self.deletions),
            classes: wide(&self.classes),
            bits: wide(&self.bits),
        };
        columns.records()
    }
}

fn wide<N: Copy + Into<u64>>(numbers: &[N]) -> Vec<u64> {
    numbers.iter().map(|number| (*number).into()).collect()
}

/// The fields of records, a column each.
struct RecordColumns<'m> {
    identities: &'m [u8],
    requests: Vec<u64>,
    queues: Vec<u64>,
    costs: Vec<u64>,
    lives: Vec<u64>,
    deletions: Vec<u64>,
    classes: Vec<u64>,
    bits: Vec<u64>,
}

impl RecordColumns<'_> {
    fn records(&self) -> Result<Vec<Record>, BadImage> {
        let record = |at| self.record(at).ok_or(BadImage::Impossible("a record"));
        (0..self.identities.len().div_ceil(16)).map(record).collect()
    }

    fn record(&self, at: usize) -> Option<Record> {
        let identity = self.identities.get(at * 16..at * 16 + 16)?;
        let live = u32::try_from(*self.lives.get(at)?).ok()?;
        Record::restore(
            u128::from_le_bytes(identity.try_into().ok()?),
            Place::new(*self.requests.get(at)?),
            QueueId(u32::try_from(*self.queues.get(at)?).ok()?),
            u32::try_from(*self.costs.get(at)?).ok()?,
            unshifted(live),
            u16::try_from(*self.deletions.get(at)?).ok()?,
            u8::try_from(*self.classes.get(at)?).ok()?,
            u8::try_from(*self.bits.get(at)?).ok()?,
        )
    }
}

impl LivesMessage {
    fn of(lives: &[Live]) -> Self {
        let column = |number: fn(&Live) -> u64| Some(Column::of(lives.iter().map(number)));
        Self {
            count: lives.len() as u32,
            before: column(|live| shifted(live.before.0).into()),
            after: column(|live| shifted(live.after.0).into()),
            admitted: column(Live::admitted),
            purges: column(|live| live.purges.into()),
            flags: column(|live| {
                let returned = if live.band == Band::Returned { RETURNED } else { 0 };
                returned | if live.in_tree { IN_TREE } else { 0 }
            }),
        }
    }

    pub(super) fn read(&self) -> Result<Vec<Live>, BadImage> {
        if self.count > COUNT_MAX {
            return Err(BadImage::Impossible("a number of live parts"));
        }
        let column = |column: &Option<Column>| Column::read(column.as_ref(), self.count as usize);
        let columns = LiveColumns {
            before: column(&self.before)?,
            after: column(&self.after)?,
            admitted: column(&self.admitted)?,
            purges: column(&self.purges)?,
            flags: column(&self.flags)?,
        };
        columns.lives()
    }
}

impl PlainLivesMessage {
    pub(super) fn read(&self) -> Result<Vec<Live>, BadImage> {
        let columns = LiveColumns {
            before: wide(&self.before),
            after: wide(&self.after),
            admitted: self.admitted.clone(),
            purges: wide(&self.purges),
            flags: wide(&self.flags),
        };
        columns.lives()
    }
}

/// The fields of live parts, a column each.
struct LiveColumns {
    before: Vec<u64>,
    after: Vec<u64>,
    admitted: Vec<u64>,
    purges: Vec<u64>,
    flags: Vec<u64>,
}

impl LiveColumns {
    fn lives(&self) -> Result<Vec<Live>, BadImage> {
        let live = |at| self.live(at).ok_or(BadImage::Impossible("a live part"));
        (0..self.flags.len()).map(live).collect()
    }

    fn live(&self, at: usize) -> Option<Live> {
        let neighbour = |column: &[u64]| Some(EntryId(unshifted(u32::try_from(*column.get(at)?).ok()?)));
        let flags = self.flags[at];
        let mut live = Live {
            before: neighbour(&self.before)?,
            after: neighbour(&self.after)?,
            admitted: [0; 2],
            purges: u16::try_from(*self.purges.get(at)?).ok()?,
            band: if flags & RETURNED == 0 { Band::Fresh } else { Band::Returned },
            in_tree: flags & IN_TREE != 0,
        };
        live.set_admitted(*self.admitted.get(at)?);
        Some(live)
    }
}
