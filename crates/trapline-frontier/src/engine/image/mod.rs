//! The image of an engine: everything it knows at one moment, in frames that a store can keep, to go on from there one
//! day without the commands that led there.
//!
//! An image may leave out the chunks that are as they were in the one before it: a store that has that one can do with it.
//!
//! What is small is copied at once. What there may be millions of is photographed piece by piece while the engine goes
//! on; see [`super::chunks`] and [`super::album`]. What follows from the rest (the tables, the line of queues, timers, the census) is left out and made
//! again. Requests are the library's.
//!
//! Frames are protobuf messages, so that what is added later can be left out by those who wrote earlier. Tags are never
//! given to another meaning.

mod column;
mod crawl;
mod entries;
mod frame;
mod kept;
mod lent;
mod mores;
mod parts;
mod queues;
mod restore;

use std::collections::{BTreeMap, VecDeque};
use std::hash::BuildHasher;
use std::sync::Arc;

use prost::{Message, Oneof};

use super::Engine;
use super::crawl::Crawl;
use super::urls::{Live, Record};
use crate::frame_source::FrameSource;
use crawl::CrawlMessage;
use entries::{LivesMessage, PlainLivesMessage, PlainRecordsMessage, RecordsMessage};
use frame::Shown;
pub use frame::{ChunkOf, Frame, FrameOf};
use kept::{DeathsMessage, DisregardsMessage, LeasesMessage, NotesMessage};
use lent::{LentLives, LentRecords};
use mores::{MoresMessage, PlainMoresMessage};
use queues::QueuesMessage;
use restore::Restored;

/// What is wrong with an image.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BadImage {
    /// Bytes that are no frame.
    #[error("a frame cannot be read: {0}")]
    Malformed(#[from] prost::DecodeError),
    /// A frame that says something that cannot be.
    #[error("it has {0} that cannot be")]
    Impossible(&'static str),
    /// Frames are missing.
    #[error("it lacks {0}")]
    Lacks(&'static str),
    /// It is of an engine to come, which may know what this one would leave out.
    #[error("it is of an engine with rules {0}, and this one has rules {rules}", rules = Engine::RULES)]
    Newer(u32),
}

#[derive(Clone, PartialEq, Message)]
struct FrameMessage {
    #[prost(oneof = "Content", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14")]
    content: Option<Content>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Content {
    #[prost(message, tag = "1")]
    Engine(EngineMessage),
    /// Followed by all that belongs to it.
    #[prost(message, tag = "2")]
    Crawl(Box<CrawlMessage>),
    /// As earlier versions wrote them.
    #[prost(message, tag = "3")]
    PlainRecords(PlainRecordsMessage),
    #[prost(message, tag = "4")]
    PlainLives(PlainLivesMessage),
    #[prost(message, tag = "5")]
    PlainMores(PlainMoresMessage),
    #[prost(message, tag = "6")]
    Queues(QueuesMessage),
    #[prost(message, tag = "7")]
    End(EndMessage),
    #[prost(message, tag = "8")]
    Leases(LeasesMessage),
    #[prost(message, tag = "9")]
    Deaths(DeathsMessage),
    #[prost(message, tag = "10")]
    Disregards(DisregardsMessage),
    #[prost(message, tag = "11")]
    Notes(NotesMessage),
    #[prost(message, tag = "12")]
    Records(RecordsMessage),
    #[prost(message, tag = "13")]
    Lives(LivesMessage),
    #[prost(message, tag = "14")]
    Mores(MoresMessage),
}

#[derive(Clone, PartialEq, Message)]
struct EngineMessage {
    #[prost(uint64, tag = "1")]
    last_lease: u64,
    #[prost(string, optional, tag = "2")]
    last_served: Option<String>,
    /// See [`Engine::RULES`].
    #[prost(uint32, tag = "3")]
    rules: u32,
}

/// Nothing is missing.
#[derive(Clone, Copy, PartialEq, Message)]
struct EndMessage {
    #[prost(uint64, tag = "1")]
    crawls: u64,
}

/// An image being taken.
#[derive(Debug)]
pub(super) struct Shot {
    /// The crawls that are to be taken, the present one first, each with what was copied of it, until that is taken.
    waiting: VecDeque<(Arc<str>, Option<Box<CrawlMessage>>)>,
    /// Crawls that were deleted since.
    departed: BTreeMap<Arc<str>, Crawl>,
    engine: Option<EngineMessage>,
    crawls: u64,
}

/// What of an engine goes into an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Picture {
    /// All of it.
    Whole,
    /// All but the chunks that are as they were in the image that was [kept](Engine::keep_image) last.
    Changes,
}

impl Shot {
    /// A crawl leaves the engine. It is kept until its picture is complete.
    pub(super) fn keep(&mut self, name: &Arc<str>, crawl: Crawl) {
        if self.waiting.iter().any(|(waiting, _)| waiting == name) {
            self.departed.entry(Arc::clone(name)).or_insert(crawl);
        }
    }
}

impl Engine {
    /// Begins an image of everything as it is now, which [`Engine::next_frames`] takes. The engine can be used meanwhile;
    /// what is done now is not in it.
    ///
    /// Only an engine with a library has all of it in its image.
    pub fn begin_image(&mut self, extent: Picture) {
        let last_served = self.last_served.as_deref().map(str::to_owned);
        let engine =
            Some(EngineMessage { last_lease: self.last_lease, last_served, rules: Self::RULES.into() });
        let mut waiting = VecDeque::new();
        for (name, crawl) in &mut self.crawls {
            waiting.push_back((Arc::clone(name), Some(Box::new(crawl.begin_shot(self.last_lease, extent)))));
        }
        let crawls = waiting.len() as u64;
        self.shot = Some(Box::new(Shot { waiting, departed: BTreeMap::new(), engine, crawls }));
    }

    /// The next frames of the image that was begun, as many as can be taken without being noticed; none when it is
    /// complete, or given up.
    pub fn next_frames(&mut self) -> Vec<Frame> {
        let Some(shot) = &mut self.shot else { return Vec::new() };
        let (mut frames, mut work) = (Vec::new(), 0);
        frames.extend(shot.engine.take().map(|engine| Shown::new(Content::Engine(engine))));
        while work < WORK_AT_ONCE {
            work += FRAME_WORK;
            let Some((name, head)) = shot.waiting.front_mut() else {
                frames.push(Shown::new(Content::End(EndMessage { crawls: shot.crawls })));
                self.shot = None;
                break;
            };
            if let Some(head) = head.take() {
                frames.push(Shown::new(Content::Crawl(head)));
                continue;
            }
            let departed = shot.departed.get_mut(name);
            let Some(crawl) = departed.or_else(|| self.crawls.get_mut(name)) else {
                debug_assert!(false, "a crawl that leaves is kept");
                self.shot = None;
                return Vec::new();
            };
            match crawl.take_shot() {
                Some(same @ Shown::Same(_)) => {
                    work -= FRAME_WORK - 1;
                    frames.push(same);
                }
                Some(shown) => frames.push(shown),
                None => {
                    shot.departed.remove(name);
                    shot.waiting.pop_front();
                }
            }
        }
        frames.into_iter().map(Frame).collect()
    }

    /// Gives up the image that was begun, if it is not complete.
    pub fn drop_image(&mut self) {
        self.shot = None;
        for crawl in self.crawls.values_mut() {
            crawl.drop_shot();
        }
    }

    /// The image that was begun last is complete, and somebody has it for certain: the next one may leave out what has not [changed](Picture::Changes)
    /// since it was begun.
    pub fn keep_image(&mut self) {
        let is_complete = self.shot.is_none() && self.crawls.values_mut().all(Crawl::keep_shot);
        debug_assert!(is_complete, "nobody has an image that is not complete");
    }

    /// All that an image of it would have in it, as one number: two engines that have the same behave the same.
    pub fn digest(&mut self) -> u64 {
        self.begin_image(Picture::Whole);
        let hash = |bytes: &[u8]| foldhash::quality::FixedState::with_seed(0).hash_one(bytes);
        let (mut digest, mut loose) = (0, 0_u64);
        loop {
            let frames = self.next_frames();
            if frames.is_empty() {
                return hash(&[digest, loose].map(u64::to_le_bytes).concat());
            }
            for Frame(shown) in frames {
                let Shown::Message(message) = shown else { unreachable!("all of it is asked for") };
                // Which of its slots these have does not matter.
                if let Some(Content::Mores(mores)) = &message.content {
                    let mores = mores.clone().read().expect("it was just made");
                    for more in &mores.mores {
                        loose = loose.wrapping_add(hash(&more.encode_to_vec()));
                    }
                    continue;
                }
                digest = hash(&[&digest.to_le_bytes(), message.encode_to_vec().as_slice()].concat());
            }
        }
    }

    /// Begins to make an engine without crawls that of an image, from its frames.
    pub fn restore(self) -> Restore {
        Restore { engine: self, crawl: None, source: None, begun: false, ended: false }
    }

    /// The same; what frames were read for lending have in them stays in their source until it is wanted.
    /// What the image says of its size is not believed beyond so many records.
    pub fn restore_from(self, source: Arc<dyn FrameSource>, most_records: u64) -> Restore {
        Restore { source: Some((source, most_records)), ..self.restore() }
    }

    /// Brings here some of what is still lent by the source of the image that it was made from: so many frames. Answers whether that was all.
    ///
    /// # Panics
    /// It unwinds, without a message, if the source cannot give a frame. The engine is not to be used after that.
    pub fn bring_lent(&mut self, frames: usize) -> bool {
        let mut most = frames;
        self.crawls.values_mut().all(|crawl| crawl.urls.bring_lent(&mut most))
    }
}

/// So much is done at once: sixteen frames, of some thousand entries or queues each, are a millisecond's work.
const WORK_AT_ONCE: u32 = 16 * FRAME_WORK;
/// So many frames that are left out are as little work as one that is not.
const FRAME_WORK: u32 = 64;

impl Crawl {
    fn begin_shot(&mut self, last_lease: u64, extent: Picture) -> CrawlMessage {
        let leaves_out = extent == Picture::Changes;
        self.urls.begin_shot(leaves_out);
        self.queues.begin_shot(leaves_out);
        self.begin_shot_of_kept(last_lease);
        CrawlMessage::of(self)
    }

    fn take_shot(&mut self) -> Option<Shown> {
        let chunk = self.urls.take_shot().or_else(|| self.queues.take_shot());
        chunk.or_else(|| self.take_shot_of_kept().map(Shown::new))
    }

    fn keep_shot(&mut self) -> bool {
        self.urls.keep_shot() && self.queues.keep_shot()
    }

    fn drop_shot(&mut self) {
        self.urls.drop_shot();
        self.queues.drop_shot();
        self.drop_shot_of_kept();
    }
}

/// An engine being made from an image.
#[derive(Debug)]
pub struct Restore {
    engine: Engine,
    crawl: Option<Restored>,
    source: Option<(Arc<dyn FrameSource>, u64)>,
    begun: bool,
    ended: bool,
}

/// A frame that was read. That takes longer than to make an engine of it, and can be done elsewhere meanwhile.
#[derive(Debug)]
pub struct ReadFrame(Read);

#[derive(Debug)]
enum Read {
    Records(Vec<Record>),
    Lives(Vec<Live>),
    LentRecords(LentRecords),
    LentLives(LentLives),
    Mores(PlainMoresMessage),
    Other(Box<Content>),
}

impl ReadFrame {
    /// What it is of.
    pub fn of(&self) -> FrameOf<'_> {
        match &self.0 {
            Read::Records(_) | Read::LentRecords(_) => FrameOf::Chunk(ChunkOf::Records),
            Read::Lives(_) | Read::LentLives(_) => FrameOf::Chunk(ChunkOf::Lives),
            Read::Mores(_) => FrameOf::Chunk(ChunkOf::Mores),
            Read::Other(content) => content.of(),
        }
    }

    /// Reads a frame.
    ///
    /// # Errors
    /// If it cannot be read, or what it says cannot be.
    pub fn read(bytes: &[u8]) -> Result<Self, BadImage> {
        let content = FrameMessage::decode(bytes)?.content;
        Ok(Self(match content.ok_or(BadImage::Lacks("a frame this version knows"))? {
            Content::Records(message) => Read::Records(message.read()?),
            Content::PlainRecords(message) => Read::Records(message.read()?),
            Content::Lives(message) => Read::Lives(message.read()?),
            Content::PlainLives(message) => Read::Lives(message.read()?),
            Content::Mores(message) => Read::Mores(message.read()?),
            Content::PlainMores(message) => Read::Mores(message),
            content => Read::Other(Box::new(content)),
        }))
    }

    /// Reads as much of a frame as must be known of what stays in it.
    ///
    /// # Errors
    /// If it cannot be read, or what it says cannot be.
    pub fn lend(bytes: &[u8], number: u64) -> Result<Self, BadImage> {
        Ok(Self(match lent::read(bytes, number)? {
            Some(lent::Lent::Records(records)) => Read::LentRecords(records),
            Some(lent::Lent::Lives(lives)) => Read::LentLives(lives),
            None => return Self::read(bytes),
        }))
    }
}

impl Restore {
    /// Takes the next frame.
    ///
    /// # Errors
    /// If what it says cannot be.
    pub fn frame(&mut self, ReadFrame(frame): ReadFrame) -> Result<(), BadImage> {
        if self.ended {
            return Err(BadImage::Impossible("frames after its end"));
        }
        let crawl = self.crawl.as_mut().ok_or(BadImage::Lacks("a crawl before its parts"));
        let content = match frame {
            Read::Records(records) => {
                crawl?.records(records);
                return Ok(());
            }
            Read::Lives(lives) => {
                crawl?.lives(lives);
                return Ok(());
            }
            Read::Mores(mores) => return crawl?.mores(mores),
            Read::LentRecords(records) => return crawl?.lent_records(&records),
            Read::LentLives(lives) => return crawl?.lent_lives(&lives),
            Read::Other(content) => *content,
        };
        match content {
            Content::Engine(EngineMessage { rules, .. }) if rules > Engine::RULES.into() => {
                return Err(BadImage::Newer(rules));
            }
            Content::Engine(EngineMessage { last_lease, last_served, rules: _ }) => {
                self.engine.last_lease = last_lease;
                self.engine.last_served = last_served.map(Arc::from);
                self.begun = true;
            }
            Content::Crawl(message) => {
                self.end_crawl()?;
                self.crawl = Some(Restored::begin(*message, &self.engine, self.source.as_ref())?);
            }
            // They were read.
            Content::Records(_) | Content::PlainRecords(_) | Content::Lives(_) | Content::PlainLives(_) => {}
            Content::Mores(_) | Content::PlainMores(_) => {}
            Content::Queues(message) => crawl?.queues(message)?,
            Content::Leases(LeasesMessage { leases }) => crawl?.leases(&leases)?,
            Content::Deaths(DeathsMessage { deaths }) => crawl?.deaths(deaths)?,
            Content::Disregards(DisregardsMessage { disregards }) => crawl?.disregards(disregards)?,
            Content::Notes(NotesMessage { notes }) => crawl?.notes(notes),
            Content::End(EndMessage { crawls }) => {
                self.end_crawl()?;
                if !self.begun || self.engine.crawls.len() as u64 != crawls {
                    return Err(BadImage::Lacks("some of its crawls"));
                }
                self.ended = true;
            }
        }
        Ok(())
    }

    fn end_crawl(&mut self) -> Result<(), BadImage> {
        if let Some(restored) = self.crawl.take() {
            let crawl = restored.end()?;
            self.engine.crawls.insert(Arc::clone(&crawl.name), crawl);
        }
        Ok(())
    }

    /// The engine, if all frames were there.
    ///
    /// # Errors
    /// If the last frame is missing.
    pub fn finish(self) -> Result<Engine, BadImage> {
        if self.ended { Ok(self.engine) } else { Err(BadImage::Lacks("its end")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::Library;
    use crate::settings::Settings;
    use crate::verbs::{CrawlChange, NewCrawl, NoteWrite, PageRecord, Steer};
    use trapline_core::{IdentityKey, Request, Timestamp};

    #[derive(Debug)]
    struct Nothing;

    impl Library for Nothing {
        fn put(&self, _: &Request) -> u64 {
            0
        }

        fn get(&self, _: u64) -> Arc<Request> {
            Arc::new(Request::get(""))
        }

        fn put_page(&self, _: u64, _: &PageRecord) -> Option<u64> {
            None
        }

        fn copy(&self, place: u64, _: bool) -> (u64, u32) {
            (place, 0)
        }

        fn page(&self, _: u64) -> Option<Arc<PageRecord>> {
            None
        }

        fn free_page(&self, _: u64, _: &PageRecord) {}

        fn put_note(&self, _: &str, _: &[u8]) -> Option<(u64, u32)> {
            None
        }

        fn note(&self, _: u64) -> Option<Vec<u8>> {
            None
        }

        fn free_note(&self, _: u64, _: u32) {}

        fn free(&self, _: u64) {}
    }

    /// Nobody waits until a million of them are copied.
    #[test]
    fn what_there_may_be_many_of_comes_in_pieces() {
        let mut engine = Engine::with_library("disk", Arc::new(Nothing));
        let new = NewCrawl { settings: Settings::default(), partitions: 1, key: IdentityKey::from_seed(1) };
        let mut steer = |change| engine.steer("c", Timestamp::ZERO, Steer::Crawl(change)).unwrap();
        steer(CrawlChange::Create(new));
        for key in 0..3000 {
            let key = format!("{key}");
            steer(CrawlChange::Note(NoteWrite { key, value: Some(Vec::new()), expires: None }));
        }
        engine.begin_image(Picture::Whole);
        let mut pieces = Vec::new();
        for Frame(shown) in engine.next_frames() {
            let Shown::Message(message) = shown else { panic!("nothing is left out") };
            match message.content {
                Some(Content::Crawl(crawl)) => assert_eq!(crawl.notes, []),
                Some(Content::Notes(NotesMessage { notes })) => pieces.push(notes.len()),
                _ => {}
            }
        }
        assert_eq!(pieces, [1024, 1024, 952]);
    }

    /// What a later engine remembers and this one does not know would be left out without a word.
    #[test]
    fn an_image_of_an_engine_to_come_is_refused() {
        let restore = |rules| {
            let engine = EngineMessage { rules, ..EngineMessage::default() };
            let message = FrameMessage { content: Some(Content::Engine(engine)) };
            Engine::with_library("disk", Arc::new(Nothing))
                .restore()
                .frame(ReadFrame::read(&message.encode_to_vec())?)
        };
        let rules = u32::from(Engine::RULES);
        assert!(restore(rules).is_ok());
        let error = restore(rules + 1).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("it is of an engine with rules {}, and this one has rules {rules}", rules + 1)
        );
    }
}
