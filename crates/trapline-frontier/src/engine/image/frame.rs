//! A piece of an image, not yet made into bytes.

use prost::Message;

use super::{Content, FrameMessage};
use crate::engine::shot::Taken;

/// A piece of an image, not yet made into bytes.
#[derive(Debug)]
pub struct Frame(pub(super) Shown);

#[derive(Debug)]
pub(super) enum Shown {
    Message(Box<FrameMessage>),
    /// Left out: as it is in the image that was kept last.
    Same(ChunkOf),
}

/// What a frame is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameOf<'f> {
    /// A crawl, by its name. What follows belongs to it.
    Crawl(&'f str),
    /// The next chunk of a kind.
    Chunk(ChunkOf),
    /// Something else.
    Other,
    /// The whole image, of which this is the end. One without it was given up.
    End,
}

/// What a chunk has a thousand of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkOf {
    /// What is remembered of each URL.
    Records,
    /// What is needed of those that are pending or leased.
    Lives,
    /// What few URLs have.
    Mores,
    /// Queues.
    Queues,
}

impl Shown {
    pub(super) fn new(content: Content) -> Self {
        Self::Message(Box::new(FrameMessage { content: Some(content) }))
    }

    pub(super) fn of<P>(chunk: ChunkOf, taken: Taken<P>, content: impl FnOnce(Vec<P>) -> Content) -> Self {
        match taken {
            Taken::Photos(photos) => Self::new(content(photos)),
            Taken::Same => Self::Same(chunk),
        }
    }
}

impl Frame {
    /// Its bytes. None if it is left out, because it is as it was in the image that was [kept](super::Engine::keep_image) last.
    pub fn encode(&self) -> Option<Vec<u8>> {
        match &self.0 {
            Shown::Message(message) => Some(message.encode_to_vec()),
            Shown::Same(_) => None,
        }
    }

    /// What it is of.
    pub fn of(&self) -> FrameOf<'_> {
        match &self.0 {
            Shown::Message(message) => message.content.as_ref().map_or(FrameOf::Other, Content::of),
            Shown::Same(chunk) => FrameOf::Chunk(*chunk),
        }
    }
}

impl Content {
    /// What it is of.
    pub(super) fn of(&self) -> FrameOf<'_> {
        match self {
            Self::Crawl(crawl) => FrameOf::Crawl(&crawl.name),
            Self::Records(_) | Self::PlainRecords(_) => FrameOf::Chunk(ChunkOf::Records),
            Self::Lives(_) | Self::PlainLives(_) => FrameOf::Chunk(ChunkOf::Lives),
            Self::Mores(_) | Self::PlainMores(_) => FrameOf::Chunk(ChunkOf::Mores),
            Self::Queues(_) => FrameOf::Chunk(ChunkOf::Queues),
            Self::End(_) => FrameOf::End,
            Self::Engine(_) | Self::Leases(_) | Self::Deaths(_) | Self::Disregards(_) | Self::Notes(_) => {
                FrameOf::Other
            }
        }
    }
}
