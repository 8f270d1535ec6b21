//! Frames that an engine leaves where they are until what is in them is wanted: what must be known of them at once.
//!
//! Of records: their identities, for the seen table, and which slots are free. Of live parts: which of them stand in a tree.

use prost::Message;

use super::column::Column;
use super::entries::{IN_TREE, LivesMessage, RecordsMessage};
use super::{BadImage, Content, FrameMessage};
use crate::engine::chunks::CHUNK;
use crate::engine::urls::{Live, Record, State};
use trapline_core::Identity;

/// What is known of records that stay in their frame.
#[derive(Debug)]
pub(super) struct LentRecords {
    pub(super) frame: u64,
    identities: Vec<u8>,
    bits: Vec<u64>,
}

/// What is known of live parts that stay in their frame.
#[derive(Debug)]
pub(super) struct LentLives {
    pub(super) frame: u64,
    flags: Vec<u64>,
}

pub(super) enum Lent {
    Records(LentRecords),
    Lives(LentLives),
}

/// A frame message of which most is passed over.
#[derive(Clone, PartialEq, Message)]
struct HeadMessage {
    #[prost(message, optional, tag = "12")]
    records: Option<RecordsHead>,
    #[prost(message, optional, tag = "13")]
    lives: Option<LivesHead>,
}

#[derive(Clone, PartialEq, Message)]
struct RecordsHead {
    #[prost(bytes = "vec", tag = "1")]
    identities: Vec<u8>,
    #[prost(message, optional, tag = "8")]
    bits: Option<Column>,
}

#[derive(Clone, PartialEq, Message)]
struct LivesHead {
    #[prost(uint32, tag = "1")]
    count: u32,
    #[prost(message, optional, tag = "6")]
    flags: Option<Column>,
}

/// Where the live parts of records are.
#[derive(Clone, PartialEq, Message)]
struct LivesOfRecordsMessage {
    #[prost(message, optional, tag = "12")]
    records: Option<LivesOfRecords>,
}

#[derive(Clone, PartialEq, Message)]
struct LivesOfRecords {
    #[prost(message, optional, tag = "5")]
    lives: Option<Column>,
}

/// Looks at a frame; None if it has neither records nor live parts.
pub(super) fn read(bytes: &[u8], frame: u64) -> Result<Option<Lent>, BadImage> {
    let HeadMessage { records, lives } = HeadMessage::decode(bytes)?;
    Ok(match (records, lives) {
        (Some(RecordsHead { identities, bits }), _) => {
            let count = identities.len() / 16;
            if !identities.len().is_multiple_of(16) || count > CHUNK {
                return Err(BadImage::Impossible("a record"));
            }
            let bits = Column::read(bits.as_ref(), count)?;
            Some(Lent::Records(LentRecords { frame, identities, bits }))
        }
        (None, Some(LivesHead { count, flags })) => {
            let count = count as usize;
            if count > CHUNK {
                return Err(BadImage::Impossible("a number of live parts"));
            }
            Some(Lent::Lives(LentLives { frame, flags: Column::read(flags.as_ref(), count)? }))
        }
        (None, None) => None,
    })
}

impl LentRecords {
    pub(super) fn len(&self) -> usize {
        self.bits.len()
    }

    /// The identities of those that are no free slots, and the how-manieth each is.
    pub(super) fn identities(&self) -> impl Iterator<Item = (u32, Identity)> {
        let identities =
            self.identities.as_chunks().0.iter().map(|bytes| Identity(u128::from_le_bytes(*bytes)));
        let taken = self.bits.iter().map(|bits| Record::state_of(*bits as u8) != State::Free);
        (0..).zip(identities).zip(taken).filter(|(_, taken)| *taken).map(|(record, _)| record)
    }
}

impl LentLives {
    pub(super) fn len(&self) -> usize {
        self.flags.len()
    }

    /// The how-manieth of them stand in a tree, or did once.
    pub(super) fn in_trees(&self) -> impl Iterator<Item = usize> {
        (0..).zip(&self.flags).filter(|(_, flags)| **flags & IN_TREE != 0).map(|(at, _)| at)
    }
}

/// The records in a frame.
pub(super) fn records(bytes: &[u8]) -> Option<Vec<Record>> {
    match FrameMessage::decode(bytes).ok()?.content? {
        Content::Records(message) => RecordsMessage::read(&message).ok(),
        _ => None,
    }
}

/// The live parts in a frame.
pub(super) fn lives(bytes: &[u8]) -> Option<Vec<Live>> {
    match FrameMessage::decode(bytes).ok()?.content? {
        Content::Lives(message) => LivesMessage::read(&message).ok(),
        _ => None,
    }
}

/// Which slots the live parts of the records in a frame have, one more each; 0 has none.
pub(super) fn lives_of_records(bytes: &[u8], count: usize) -> Option<Vec<u64>> {
    let lives = LivesOfRecordsMessage::decode(bytes).ok()?.records?.lives;
    Column::read(lives.as_ref(), count).ok()
}
