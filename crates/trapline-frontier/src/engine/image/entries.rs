//! Entries in an image: a column for each field, because there are so many of them.

use prost::Message;
use trapline_core::Timestamp;

use super::parts::{MomentMessage, entry, moment, read_entry, read_moment, shifted, unshifted};
use super::{BadImage, Content};
use crate::engine::chunks::Photographed;
use crate::engine::more::More;
use crate::engine::urls::{Band, EntryId, Live, Record, Urls};
use crate::verbs::{PageRecord, Visit};

/// The records of a chunk.
#[derive(Clone, PartialEq, Message)]
pub(super) struct RecordsMessage {
    /// Sixteen bytes each.
    #[prost(bytes = "vec", tag = "1")]
    pub(super) identities: Vec<u8>,
    #[prost(uint64, repeated, tag = "2")]
    pub(super) requests: Vec<u64>,
    #[prost(uint32, repeated, tag = "3")]
    pub(super) queues: Vec<u32>,
    #[prost(uint32, repeated, tag = "4")]
    pub(super) costs: Vec<u32>,
    #[prost(uint32, repeated, tag = "5")]
    pub(super) lives: Vec<u32>,
    #[prost(uint32, repeated, tag = "6")]
    pub(super) deletions: Vec<u32>,
    #[prost(bytes = "vec", tag = "7")]
    pub(super) classes: Vec<u8>,
    #[prost(bytes = "vec", tag = "8")]
    pub(super) bits: Vec<u8>,
}

/// The live parts of a chunk.
#[derive(Clone, PartialEq, Message)]
pub(super) struct LivesMessage {
    #[prost(uint32, repeated, tag = "1")]
    pub(super) before: Vec<u32>,
    #[prost(uint32, repeated, tag = "2")]
    pub(super) after: Vec<u32>,
    #[prost(uint64, repeated, tag = "3")]
    pub(super) admitted: Vec<u64>,
    #[prost(uint32, repeated, tag = "4")]
    pub(super) purges: Vec<u32>,
    /// 1 for one that came back, 2 for one in the tree.
    #[prost(bytes = "vec", tag = "5")]
    pub(super) flags: Vec<u8>,
}

pub(super) const RETURNED: u8 = 1;
pub(super) const IN_TREE: u8 = 2;

/// What few entries of a chunk have.
#[derive(Clone, PartialEq, Message)]
pub(super) struct MoresMessage {
    #[prost(message, repeated, tag = "1")]
    pub(super) mores: Vec<MoreMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct MoreMessage {
    #[prost(uint32, tag = "1")]
    pub(super) entry: u32,
    #[prost(uint64, optional, tag = "2")]
    place: Option<u64>,
    #[prost(message, optional, tag = "3")]
    due: Option<MomentMessage>,
    #[prost(uint32, tag = "4")]
    expiries: u32,
    #[prost(uint32, tag = "5")]
    retries: u32,
    #[prost(uint32, tag = "6")]
    further_visits: u32,
    #[prost(uint32, tag = "7")]
    older: u32,
    #[prost(uint32, tag = "8")]
    newer: u32,
    #[prost(message, optional, tag = "9")]
    page: Option<PageMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct PageMessage {
    #[prost(uint64, tag = "1")]
    visited: u64,
    #[prost(uint32, tag = "2")]
    visits: u32,
    #[prost(uint32, tag = "3")]
    changes: u32,
    #[prost(uint64, optional, tag = "4")]
    next: Option<u64>,
    #[prost(uint32, tag = "5")]
    status: u32,
    #[prost(uint64, tag = "6")]
    bytes: u64,
    #[prost(string, optional, tag = "7")]
    etag: Option<String>,
    #[prost(string, optional, tag = "8")]
    last_modified: Option<String>,
    #[prost(bytes = "vec", optional, tag = "9")]
    digest: Option<Vec<u8>>,
    #[prost(fixed64, optional, tag = "10")]
    simhash: Option<u64>,
}

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
    pub(super) fn begin_shot(&mut self) {
        self.records.begin_shot();
        self.live.begin_shot();
        self.more.slots.begin_shot();
    }

    pub(super) fn drop_shot(&mut self) {
        self.records.drop_shot();
        self.live.drop_shot();
        self.more.slots.drop_shot();
    }

    pub(super) fn take_shot(&mut self) -> Option<Content> {
        if let Some(records) = self.records.take_shot() {
            return Some(Content::Records(RecordsMessage::of(&records)));
        }
        if let Some(lives) = self.live.take_shot() {
            return Some(Content::Lives(LivesMessage::of(&lives)));
        }
        let mores = self.more.slots.take_shot()?;
        let mores = mores.iter().filter(|(id, _)| *id != EntryId::NONE).map(MoreMessage::of).collect();
        Some(Content::Mores(MoresMessage { mores }))
    }
}

impl RecordsMessage {
    fn of(records: &[Record]) -> Self {
        let mut message = Self::default();
        for record in records {
            let Record { identity: _, request, queue, cost, live, deletions, class, bits } = record;
            message.identities.extend_from_slice(&record.identity().0.to_le_bytes());
            message.requests.push(request.get());
            message.queues.push(queue.0);
            message.costs.push(*cost);
            message.lives.push(shifted(*live));
            message.deletions.push((*deletions).into());
            message.classes.push(*class);
            message.bits.push(*bits);
        }
        message
    }
}

impl LivesMessage {
    fn of(lives: &[Live]) -> Self {
        let mut message = Self::default();
        for live in lives {
            let Live { before, after, admitted: _, purges, band, in_tree } = live;
            message.before.push(shifted(before.0));
            message.after.push(shifted(after.0));
            message.admitted.push(live.admitted());
            message.purges.push((*purges).into());
            let returned = if *band == Band::Returned { RETURNED } else { 0 };
            message.flags.push(returned | if *in_tree { IN_TREE } else { 0 });
        }
        message
    }

    /// One live part of a column each.
    pub(super) fn live(&self, at: usize) -> Option<Live> {
        let flags = *self.flags.get(at)?;
        let mut live = Live {
            before: EntryId(unshifted(*self.before.get(at)?)),
            after: EntryId(unshifted(*self.after.get(at)?)),
            admitted: [0; 2],
            purges: u16::try_from(*self.purges.get(at)?).ok()?,
            band: if flags & RETURNED == 0 { Band::Fresh } else { Band::Returned },
            in_tree: flags & IN_TREE != 0,
        };
        live.set_admitted(*self.admitted.get(at)?);
        Some(live)
    }
}

impl MoreMessage {
    fn of((id, more): &(EntryId, More)) -> Self {
        let More { place, due, expiries, retries, further_visits, older, newer, .. } = more;
        Self {
            entry: id.0,
            place: *place,
            due: moment(*due),
            expiries: *expiries,
            retries: *retries,
            further_visits: *further_visits,
            older: entry(*older),
            newer: entry(*newer),
            page: more.page().as_deref().map(PageMessage::of),
        }
    }

    pub(super) fn read(self) -> Result<More, BadImage> {
        let Self { entry: _, place, due, expiries, retries, further_visits, older, newer, page } = self;
        let page = page.map(PageMessage::read).transpose()?;
        let mut more = More::NOTHING.with_page(page.as_ref());
        (more.place, more.due) = (place, read_moment(due));
        (more.expiries, more.retries, more.further_visits) = (expiries, retries, further_visits);
        (more.older, more.newer) = (read_entry(older), read_entry(newer));
        Ok(more)
    }
}

impl PageMessage {
    fn of(page: &PageRecord) -> Self {
        let PageRecord { visited, visit, visits, changes, next } = page;
        let Visit { status, bytes, etag, last_modified, digest, simhash } = visit.clone();
        Self {
            visited: visited.as_millis(),
            visits: *visits,
            changes: *changes,
            next: next.map(Timestamp::as_millis),
            status: status.into(),
            bytes,
            etag,
            last_modified,
            digest,
            simhash,
        }
    }

    fn read(self) -> Result<PageRecord, BadImage> {
        let Self { visited, visits, changes, next, status, bytes, etag, last_modified, digest, simhash } =
            self;
        let status = super::parts::narrow(status, "a status")?;
        Ok(PageRecord {
            visited: Timestamp::from_millis(visited),
            visit: Visit { status, bytes, etag, last_modified, digest, simhash },
            visits,
            changes,
            next: next.map(Timestamp::from_millis),
        })
    }
}
