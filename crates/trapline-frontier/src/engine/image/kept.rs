//! What a crawl keeps by key in an image: leases, dead letters, why URLs were disregarded, notes. There may be a million of
//! any, so they come in pieces.

use prost::Message;
use trapline_core::Timestamp;

use super::Content;
use super::parts::{MomentMessage, moment, read_moment};
use crate::engine::crawl::{Crawl, Death};
use crate::engine::leases::Grant;
use crate::engine::notes::{NoteValue, StoredNote};
use crate::engine::urls::EntryId;

/// How many of each there are.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct KeptMessage {
    #[prost(uint64, tag = "1")]
    leases: u64,
    #[prost(uint64, tag = "2")]
    deaths: u64,
    #[prost(uint64, tag = "3")]
    disregards: u64,
    #[prost(uint64, tag = "4")]
    notes: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LeasesMessage {
    #[prost(message, repeated, tag = "1")]
    pub(super) leases: Vec<LeaseMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DeathsMessage {
    #[prost(message, repeated, tag = "1")]
    pub(super) deaths: Vec<DeathMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DisregardsMessage {
    #[prost(message, repeated, tag = "1")]
    pub(super) disregards: Vec<DisregardMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NotesMessage {
    #[prost(message, repeated, tag = "1")]
    pub(super) notes: Vec<NoteMessage>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct LeaseMessage {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(uint32, tag = "2")]
    pub(super) entry: u32,
    #[prost(uint64, tag = "3")]
    pub(super) granted: u64,
    #[prost(message, optional, tag = "4")]
    pub(super) deadline: Option<MomentMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DeathMessage {
    #[prost(uint32, tag = "1")]
    pub(super) entry: u32,
    #[prost(string, tag = "2")]
    pub(super) reason: String,
    #[prost(uint64, tag = "3")]
    pub(super) at: u64,
    #[prost(uint64, tag = "4")]
    pub(super) rank: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DisregardMessage {
    #[prost(uint32, tag = "1")]
    pub(super) entry: u32,
    #[prost(string, tag = "2")]
    pub(super) reason: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NoteMessage {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) value: Vec<u8>,
    #[prost(uint64, optional, tag = "3")]
    pub(super) expires: Option<u64>,
    /// Where the library has the value, if it has.
    #[prost(uint64, optional, tag = "4")]
    pub(super) place: Option<u64>,
    /// And how many bytes it takes there.
    #[prost(uint32, tag = "5")]
    pub(super) bytes: u32,
}

impl KeptMessage {
    pub(super) fn of(crawl: &Crawl) -> Self {
        Self {
            leases: crawl.leases.len(),
            deaths: crawl.dead_letters.len() as u64,
            disregards: crawl.disregards.len() as u64,
            notes: crawl.notes.len() as u64,
        }
    }
}

impl Crawl {
    pub(super) fn begin_shot_of_kept(&mut self, last_lease: u64) {
        self.leases.begin_shot(last_lease);
        self.dead_letters.begin_shot();
        self.disregards.begin_shot();
        self.notes.begin_shot();
    }

    pub(super) fn drop_shot_of_kept(&mut self) {
        self.leases.drop_shot();
        self.dead_letters.drop_shot();
        self.disregards.drop_shot();
        self.notes.drop_shot();
    }

    pub(super) fn take_shot_of_kept(&mut self) -> Option<Content> {
        if let Some(leases) = self.leases.take_shot() {
            let leases = leases.into_iter().map(LeaseMessage::of).collect();
            return Some(Content::Leases(LeasesMessage { leases }));
        }
        if let Some(deaths) = self.dead_letters.take_shot() {
            let deaths = deaths.into_iter().map(DeathMessage::of).collect();
            return Some(Content::Deaths(DeathsMessage { deaths }));
        }
        if let Some(disregards) = self.disregards.take_shot() {
            let message = |(id, reason): (EntryId, String)| DisregardMessage { entry: id.0, reason };
            let disregards = disregards.into_iter().map(message).collect();
            return Some(Content::Disregards(DisregardsMessage { disregards }));
        }
        let notes = self.notes.take_shot()?.into_iter().map(NoteMessage::of).collect();
        Some(Content::Notes(NotesMessage { notes }))
    }
}

impl LeaseMessage {
    fn of((id, grant): (u64, Grant)) -> Self {
        let Grant { entry, granted, deadline } = grant;
        Self { id, entry: entry.0, granted: granted.as_millis(), deadline: moment(deadline) }
    }

    pub(super) fn read(&self) -> Grant {
        Grant {
            entry: EntryId(self.entry),
            granted: Timestamp::from_millis(self.granted),
            deadline: read_moment(self.deadline),
        }
    }
}

impl DeathMessage {
    fn of((id, death): (EntryId, Death)) -> Self {
        let Death { reason, at, rank } = death;
        Self { entry: id.0, reason, at: at.as_millis(), rank }
    }

    pub(super) fn read(self) -> Death {
        let Self { entry: _, reason, at, rank } = self;
        Death { reason, at: Timestamp::from_millis(at), rank }
    }
}

impl NoteMessage {
    fn of((key, note): (String, StoredNote)) -> Self {
        let StoredNote { value, expires } = note;
        let (value, place, bytes) = match value {
            NoteValue::Here(value) => (value, None, 0),
            NoteValue::Elsewhere { place, bytes } => (Vec::new(), Some(place), bytes),
        };
        Self { key, value, expires: expires.map(Timestamp::as_millis), place, bytes }
    }

    pub(super) fn read(self) -> (String, StoredNote) {
        let Self { key, value, expires, place, bytes } = self;
        let value = place.map_or(NoteValue::Here(value), |place| NoteValue::Elsewhere { place, bytes });
        (key, StoredNote { value, expires: expires.map(Timestamp::from_millis) })
    }
}
