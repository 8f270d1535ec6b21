//! A list that grows without moving what it holds, so that growing never takes longer than making one chunk.
//!
//! It can be photographed while it goes on changing: whoever changes a thing that was not taken yet keeps a copy of it
//! first, once. Only of the thing, not of its chunk: a batch touches a thousand chunks where URLs of all hosts come in turn, and
//! would wait for a copy of everything.
//!
//! A photograph may leave out the chunks that are as they were in an earlier one: most URLs of a large crawl are done, or wait for long, and
//! nothing becomes of them in an hour.
//!
//! Chunks that were not used for a while can be put on a shelf, and come back by themselves when they are wanted. Those of an image
//! from which the list was made can stay there until then: they are lent.

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;

use super::late::Late;
use super::room::{Room, Shelved, unwind};
use super::shot::{Photographed, Shot, Taken};
use super::spine::Spine;
use crate::frame_source::FrameSource;
use crate::shelf::SHELF_THINGS;

/// How many things a chunk holds.
pub(super) const CHUNK: usize = SHELF_THINGS;
pub(super) const CHUNK_BITS: u32 = CHUNK.trailing_zeros();

/// Before any photograph.
const FIRST_EPOCH: u32 = 1;

#[derive(Debug)]
pub(super) struct Chunks<T: Photographed> {
    chunks: Spine<Chunk<T>>,
    /// Where each of them is if it is not here.
    elsewhere: Spine<Elsewhere>,
    len: usize,
    /// Whether chunks can be elsewhere. As long as none can, whoever reads a thing finds it at once.
    can_be_away: bool,
    /// The same, or whether somebody takes a photograph: whoever changes a thing must look.
    is_watched: bool,
    /// How often a photograph was begun.
    epoch: u32,
    /// When the photograph was begun that somebody has kept: in the picture are all chunks as they are that have not changed since.
    kept: u32,
    shot: Option<Box<Shot<T::Photo>>>,
    shelving: Option<Box<Shelving<T>>>,
    lending: Option<Box<Lending<T>>>,
}

/// What is looked at for each thing. 32 bytes: where there are many, finding one is waiting for these.
#[derive(Debug)]
struct Chunk<T> {
    /// Empty while it is on the shelf, or lent.
    things: OnceCell<Vec<T>>,
    /// Whether it was used since somebody looked for chunks to put away.
    is_used: Cell<bool>,
    /// Whether it is other than it was on the shelf.
    is_changed: Cell<bool>,
    /// The epoch in which it last changed.
    changed: u32,
}

#[derive(Debug, Default)]
struct Elsewhere {
    /// The frame of an image that it is in, as long as it was not wanted.
    frame: Cell<Option<u64>>,
    /// Where on the shelf it is, or was.
    place: Option<u64>,
}

/// How chunks are put on a shelf.
#[derive(Debug)]
struct Shelving<T> {
    room: Arc<Room>,
    size: usize,
    write: fn(&T, &mut Vec<u8>) -> bool,
    all: fn(&Room, u64, usize) -> Vec<T>,
    one: fn(&Room, u64, usize) -> T,
    amend: fn(&mut T, u32),
    /// What a chunk is written in.
    bytes: Vec<u8>,
    late: RefCell<Late>,
}

/// Where lent chunks are.
#[derive(Debug)]
struct Lending<T> {
    source: Arc<dyn FrameSource>,
    /// What a frame has in it; None if that cannot be.
    read: fn(&[u8]) -> Option<Vec<T>>,
    /// Nothing before this chunk is lent.
    next: usize,
    /// How many chunks are lent.
    out: Cell<usize>,
}

impl<T> Lending<T> {
    /// The things of a chunk, which are so many.
    fn read(&self, frame: u64, count: usize) -> Vec<T> {
        let bytes = self.source.frame(frame).unwrap_or_else(|| unwind());
        let things = (self.read)(&bytes).filter(|things| things.len() == count);
        // The source has compared its checksum, twice by now.
        things.expect("a frame has what was in it when it was lent")
    }
}

impl<T> Chunk<T> {
    /// A chunk of these, or one that is elsewhere.
    fn new(things: Option<Vec<T>>, epoch: u32) -> Self {
        let things = things.map_or_else(OnceCell::new, OnceCell::from);
        Self { things, is_used: Cell::new(true), is_changed: Cell::new(true), changed: epoch }
    }
}

impl<T> Shelving<T> {
    /// What a chunk takes of memory.
    const BYTES: u64 = (CHUNK * size_of::<T>()) as u64;

    fn read(&self, place: Option<u64>, number: usize, count: usize) -> Vec<T> {
        let mut things = place.map_or_else(Vec::new, |place| (self.all)(&self.room, place, count));
        self.late.borrow().tell(number, &mut things, self.amend);
        things
    }

    /// One thing of a chunk that is only here.
    fn one(&self, place: u64, at: usize) -> T {
        let mut thing = (self.one)(&self.room, place, at & (CHUNK - 1));
        for news in self.late.borrow().of(at) {
            (self.amend)(&mut thing, news);
        }
        thing
    }

    /// The things of a chunk are in memory again, and know what there was to tell. Answers whether there was anything.
    fn came_back(&self, number: usize) -> bool {
        self.room.came_back(Self::BYTES);
        self.late.borrow_mut().told(number)
    }

    /// Puts a chunk away. It stays if it must, or if there is no room.
    fn put_away(&mut self, chunk: &mut Chunk<T>, elsewhere: &mut Elsewhere) {
        let Some(things) = chunk.things.get() else { return };
        self.bytes.clear();
        if chunk.is_changed.get() && !things.iter().all(|thing| (self.write)(thing, &mut self.bytes)) {
            return;
        }
        let changed = chunk.is_changed.get().then_some(self.bytes.as_slice());
        if let Some(place) = self.room.put_away(Self::BYTES, elsewhere.place, self.size, changed) {
            elsewhere.place = Some(place);
            chunk.is_changed.set(false);
            chunk.things.take();
        }
    }
}

impl<T: Photographed> Default for Chunks<T> {
    fn default() -> Self {
        Self {
            chunks: Spine::default(),
            elsewhere: Spine::default(),
            len: 0,
            can_be_away: false,
            is_watched: false,
            epoch: FIRST_EPOCH,
            kept: 0,
            shot: None,
            shelving: None,
            lending: None,
        }
    }
}

impl<T: Photographed> Drop for Chunks<T> {
    fn drop(&mut self) {
        if let Some(shelving) = &self.shelving {
            for (chunk, elsewhere) in self.chunks.iter().zip(self.elsewhere.iter()) {
                let is_here = chunk.things.get().is_some();
                shelving.room.dropped(Shelving::<T>::BYTES, is_here, elsewhere.place, shelving.size);
            }
        }
    }
}

impl<T: Photographed + Shelved> Chunks<T> {
    /// A list whose chunks may be put on a shelf, if there is one.
    pub(super) fn on_shelf(room: Option<&Arc<Room>>) -> Self {
        let shelving = room.map(|room| {
            Box::new(Shelving {
                room: Arc::clone(room),
                size: T::SIZE,
                write: T::write,
                all: Room::all,
                one: Room::one,
                amend: T::amend,
                bytes: Vec::new(),
                late: RefCell::default(),
            })
        });
        let mut chunks = Self::default();
        chunks.shelving = shelving;
        chunks.look_around();
        chunks
    }

    /// Tells a thing something. If it is on the shelf, it is told when it comes back, and does not come back for that.
    pub(super) fn amend(&mut self, at: usize, news: u32) {
        let number = at >> CHUNK_BITS;
        if !self.can_be_away
            || self.chunks[number].things.get().is_some()
            || self.elsewhere[number].place.is_none()
        {
            self[at].amend(news);
            return;
        }
        self.save(at);
        self.chunks[number].changed = self.epoch;
        let full = self.shelving.as_ref().and_then(|shelving| {
            let mut late = shelving.late.borrow_mut();
            late.add(at, news);
            if late.is_much(self.chunks.len()) { late.next_chunk() } else { None }
        });
        if let Some(number) = full {
            self.here(number);
            // Nobody has asked for it.
            self.chunks[number].is_used.set(false);
        }
    }
}

impl<T: Photographed> Chunks<T> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// What there is to look at has changed.
    fn look_around(&mut self) {
        self.can_be_away = self.shelving.is_some() || self.lending.is_some();
        self.is_watched = self.can_be_away || self.shot.is_some();
    }

    pub(super) fn push(&mut self, thing: T) {
        let last = self.chunks.len().wrapping_sub(1);
        if self.len < self.chunks.len() * CHUNK {
            self.here_mut(last).push(thing);
        } else {
            // The first chunk grows by itself: many crawls are small.
            let room = if self.len == 0 { 1 } else { CHUNK };
            let mut things = Vec::with_capacity(room);
            things.push(thing);
            self.push_chunk(Some(things), None);
            if let Some(shelving) = &self.shelving {
                shelving.room.made(Shelving::<T>::BYTES);
            }
        }
        self.len += 1;
    }

    fn push_chunk(&mut self, things: Option<Vec<T>>, frame: Option<u64>) {
        self.chunks.push(Chunk::new(things, self.epoch));
        self.elsewhere.push(Elsewhere { frame: Cell::new(frame), place: None });
    }

    /// From now on chunks can be lent: a frame of this source has in it what `read` says.
    pub(super) fn begin_lending(&mut self, source: Arc<dyn FrameSource>, read: fn(&[u8]) -> Option<Vec<T>>) {
        self.lending = Some(Box::new(Lending { source, read, next: 0, out: Cell::new(0) }));
        self.look_around();
    }

    /// Appends the things of a frame, which stay there until they are wanted. False if they cannot, because chunks begin elsewhere.
    pub(super) fn lend(&mut self, frame: u64, count: usize) -> bool {
        let fits =
            self.lending.is_some() && self.len == self.chunks.len() * CHUNK && (1..=CHUNK).contains(&count);
        if fits {
            self.lending.iter().for_each(|lending| lending.out.update(|out| out + 1));
            self.push_chunk(None, Some(frame));
            self.len += count;
            if let Some(shelving) = &self.shelving {
                shelving.room.lent(Shelving::<T>::BYTES);
            }
        }
        fits
    }

    /// The frame that a chunk is still in.
    pub(super) fn frame_of(&self, chunk: usize) -> Option<u64> {
        self.elsewhere.get(chunk)?.frame.get()
    }

    /// Lets go of the source if nothing is lent any more.
    fn end_lending(&mut self) {
        if self.lending.as_ref().is_some_and(|lending| lending.out.get() == 0) {
            self.lending = None;
            self.look_around();
        }
    }

    /// Brings lent chunks here, as long as it is not more than this. Answers whether those were all.
    pub(super) fn bring_lent(&mut self, most: &mut usize) -> bool {
        while let Some(lending) = &mut self.lending {
            let is_lent = |number: &usize| self.elsewhere[*number].frame.get().is_some();
            match (lending.next..self.chunks.len()).find(is_lent) {
                None => {
                    self.lending = None;
                    self.look_around();
                }
                Some(_) if *most == 0 => return false,
                Some(next) => {
                    lending.next = next;
                    *most -= 1;
                    self.here(next);
                }
            }
        }
        true
    }

    /// How much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        let chunks = self.fixed_bytes();
        let things = |chunk: &Chunk<T>| chunk.things.get().map_or(0, Vec::capacity);
        if self.shelving.is_none() && self.lending.is_none() {
            let first = self.chunks.get(0).map_or(0, things);
            return (first + self.chunks.len().saturating_sub(1) * CHUNK) * size_of::<T>() + chunks;
        }
        self.chunks.iter().map(things).sum::<usize>() * size_of::<T>() + chunks
    }

    /// How much memory it takes besides what can be put on the shelf.
    pub(super) fn fixed_bytes(&self) -> usize {
        let late = self.shelving.as_ref().map_or(0, |shelving| shelving.late.borrow().bytes());
        self.chunks.bytes() + self.elsewhere.bytes() + late
    }

    /// Puts chunks on the shelf that were not used since this was last done, from one on, until no more than so many bytes of any
    /// list are in memory. Answers where to go on; None at the end of the list.
    pub(super) fn put_away(&mut self, from: usize, most: u64) -> Option<usize> {
        self.end_lending();
        let shelving = self.shelving.as_mut()?;
        let chunks = self.chunks.iter_mut_from(from).zip(self.elsewhere.iter_mut_from(from));
        for (at, (chunk, elsewhere)) in (from..).zip(chunks) {
            if shelving.room.here() <= most {
                return Some(at);
            }
            // On a shelf that is full, those have room that were there before.
            let has_room = elsewhere.place.is_some() || !shelving.room.is_full();
            if !chunk.is_used.replace(false) && has_room {
                shelving.put_away(chunk, elsewhere);
            }
        }
        None
    }

    /// Asks a thing something, where it is: its chunk does not come back for that.
    pub(super) fn ask<A>(&self, at: usize, question: impl Fn(&T) -> A) -> A {
        if let Some(shelving) = &self.shelving
            && self.chunks[at >> CHUNK_BITS].things.get().is_none()
            && let Some(place) = self.elsewhere[at >> CHUNK_BITS].place
        {
            return question(&shelving.one(place, at));
        }
        question(&self[at])
    }

    /// A thing, if it is in memory.
    pub(super) fn get_here(&self, at: usize) -> Option<&T> {
        self.chunks.get(at >> CHUNK_BITS)?.things.get()?.get(at & (CHUNK - 1))
    }

    /// How many things a chunk has.
    fn len_of(&self, chunk: usize) -> usize {
        (self.len - chunk * CHUNK).min(CHUNK)
    }

    /// The things of a chunk, brought back if they are elsewhere.
    fn here(&self, number: usize) -> &Vec<T> {
        let chunk = &self.chunks[number];
        if self.shelving.is_some() {
            chunk.is_used.set(true);
        }
        chunk.things.get_or_init(|| self.bring(number))
    }

    /// The same, to be changed.
    fn here_mut(&mut self, number: usize) -> &mut Vec<T> {
        if self.can_be_away {
            self.here(number);
            self.chunks[number].is_changed.set(true);
        }
        let chunk = &mut self.chunks[number];
        chunk.changed = self.epoch;
        chunk.things.get_mut().expect("it is there now")
    }

    /// A thing that may be elsewhere.
    #[inline(never)]
    fn find(&self, at: usize) -> &T {
        &self.here(at >> CHUNK_BITS)[at & (CHUNK - 1)]
    }

    /// A thing that may be elsewhere, and is about to change.
    #[inline(never)]
    fn find_mut(&mut self, at: usize) -> &mut T {
        let number = at >> CHUNK_BITS;
        if self.can_be_away {
            self.here(number);
        }
        self.save(at);
        &mut self.here_mut(number)[at & (CHUNK - 1)]
    }

    /// The things of a chunk that is elsewhere, which is as good as here from now on.
    #[cold]
    fn bring(&self, number: usize) -> Vec<T> {
        let count = self.len_of(number);
        let mut things = self.read_elsewhere(number, count);
        if self.elsewhere[number].frame.take().is_some() {
            self.lending.iter().for_each(|lending| lending.out.update(|out| out - 1));
        }
        things.reserve_exact(CHUNK - count);
        if self.shelving.as_ref().is_some_and(|shelving| shelving.came_back(number)) {
            self.chunks[number].is_changed.set(true);
        }
        things
    }

    /// The things of a chunk that is elsewhere, which stays there.
    fn read_elsewhere(&self, number: usize, count: usize) -> Vec<T> {
        let elsewhere = &self.elsewhere[number];
        match (elsewhere.frame.get(), &self.lending, &self.shelving) {
            (Some(frame), Some(lending), _) => lending.read(frame, count),
            (_, _, Some(shelving)) => shelving.read(elsewhere.place, number, count),
            _ => unreachable!("it was put elsewhere"),
        }
    }

    /// Begins a photograph of everything as it is now; or only of what is not as it was in the one that was kept last.
    pub(super) fn begin_shot(&mut self, leaves_out: bool) {
        self.epoch += 1;
        self.shot = Some(Box::new(Shot::new(self.len, leaves_out)));
        self.look_around();
    }

    /// The next chunk of the photograph; None when it is complete, or none was begun.
    pub(super) fn take_shot(&mut self) -> Option<Taken<T::Photo>> {
        let Some(number) = self.shot.as_mut()?.next_chunk() else {
            self.drop_shot();
            return None;
        };
        let is_same = self.is_as_kept(number);
        let shot = self.shot.as_mut()?;
        if shot.leaves_out(number, is_same) {
            return Some(Taken::Same);
        }
        if self.chunks[number].things.get().is_none() {
            // It is only looked at, and stays where it is.
            let things = self.read_elsewhere(number, self.len_of(number));
            return self.shot.as_mut().map(|shot| Taken::Photos(shot.take(number, &things)));
        }
        let things = self.chunks[number].things.get().map_or(&[][..], Vec::as_slice);
        Some(Taken::Photos(shot.take(number, things)))
    }

    /// Gives a photograph up.
    pub(super) fn drop_shot(&mut self) {
        self.shot = None;
        self.look_around();
    }

    /// The latest photograph is complete, and was kept. False if it is not complete.
    pub(super) fn keep_shot(&mut self) -> bool {
        if self.shot.is_none() {
            self.kept = self.epoch;
        }
        self.shot.is_none()
    }

    /// Everything is as it is in a photograph that was kept: it was made from that.
    pub(super) fn is_all_kept(&mut self) {
        self.epoch += 1;
        self.kept = self.epoch;
    }

    /// Whether nothing of a chunk has changed since the photograph that was kept last was begun.
    fn is_as_kept(&self, number: usize) -> bool {
        self.chunks[number].changed < self.kept
    }

    /// A thing is about to change.
    fn save(&mut self, at: usize) {
        let Some(mut shot) = self.shot.take_if(|shot| shot.wants(at)) else { return };
        if !shot.leaves_out(at >> CHUNK_BITS, self.is_as_kept(at >> CHUNK_BITS)) {
            shot.save(at, self.ask(at, T::photo));
        }
        self.shot = Some(shot);
    }
}

impl<T: Photographed> std::ops::Index<usize> for Chunks<T> {
    type Output = T;

    /// Each cycle of a claim and its settlement comes by here some sixty times.
    #[inline]
    fn index(&self, at: usize) -> &T {
        if self.can_be_away {
            return self.find(at);
        }
        let things = self.chunks[at >> CHUNK_BITS].things.get().expect("none is elsewhere");
        &things[at & (CHUNK - 1)]
    }
}

impl<T: Photographed> std::ops::IndexMut<usize> for Chunks<T> {
    #[inline]
    fn index_mut(&mut self, at: usize) -> &mut T {
        if self.is_watched {
            return self.find_mut(at);
        }
        let chunk = &mut self.chunks[at >> CHUNK_BITS];
        chunk.changed = self.epoch;
        let things = chunk.things.get_mut().expect("none is elsewhere");
        &mut things[at & (CHUNK - 1)]
    }
}

#[cfg(test)]
mod tests;
