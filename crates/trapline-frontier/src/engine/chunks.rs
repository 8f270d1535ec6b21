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
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::engine::late::{BYTES as LATE_BYTES, MEAN};
    use crate::shelf::Shelf;

    /// A shelf in memory, which may have room for so many chunks only.
    #[derive(Debug)]
    struct MemoryShelf {
        chunks: Mutex<Vec<Option<Vec<u8>>>>,
        most: usize,
    }

    impl MemoryShelf {
        fn with_room_for(most: usize) -> Arc<Self> {
            Arc::new(Self { chunks: Mutex::default(), most })
        }

        fn len(&self) -> usize {
            self.chunks.lock().unwrap().iter().flatten().count()
        }
    }

    impl Shelf for MemoryShelf {
        fn put(&self, before: Option<u64>, _size: usize, things: &[u8]) -> Option<u64> {
            let mut chunks = self.chunks.lock().unwrap();
            let place = before.unwrap_or(chunks.len() as u64);
            if before.is_none() {
                if chunks.len() == self.most {
                    return None;
                }
                chunks.push(None);
            }
            chunks[place as usize] = Some(things.to_vec());
            Some(place)
        }

        fn read(&self, place: u64, size: usize, from: usize, buffer: &mut [u8]) -> Option<()> {
            let chunks = self.chunks.lock().unwrap();
            let things = chunks[place as usize].as_ref()?;
            buffer.copy_from_slice(&things[from * size..][..buffer.len()]);
            Some(())
        }

        fn free(&self, place: u64, _size: usize) {
            self.chunks.lock().unwrap()[place as usize] = None;
        }
    }

    impl Shelved for usize {
        const SIZE: usize = 8;

        fn write(&self, bytes: &mut Vec<u8>) -> bool {
            bytes.extend(self.to_le_bytes());
            *self != STAYS
        }

        fn read(bytes: &[u8]) -> Self {
            Self::from_le_bytes(bytes.try_into().unwrap())
        }

        fn amend(&mut self, news: u32) {
            *self = news as usize;
        }
    }

    /// The next chunk of a photograph of everything.
    fn take(chunks: &mut Chunks<usize>) -> Option<Vec<usize>> {
        match chunks.take_shot()? {
            Taken::Photos(photos) => Some(photos),
            Taken::Same => panic!("nothing is left out"),
        }
    }

    /// A number that cannot be put on a shelf.
    const STAYS: usize = usize::MAX - 1;

    /// What a chunk of numbers takes.
    const BYTES: u64 = (CHUNK * 8) as u64;

    /// Everything is put away again and again, and is found, asked and photographed as if it had stayed.
    #[test]
    fn what_is_put_away_is_found_where_it_was_put() {
        let shelf = MemoryShelf::with_room_for(usize::MAX);
        let room = Arc::new(Room::new(Arc::clone(&shelf) as Arc<dyn Shelf>, 0));
        let mut chunks = Chunks::on_shelf(Some(&room));
        let mut expected = Vec::new();
        for round in 0..40 {
            for number in 0..round * 37 {
                chunks.push(number);
                expected.push(number);
            }
            for change in 0..expected.len() / 7 {
                let at = (round * 7919 + change * 104_729) % expected.len();
                (chunks[at], expected[at]) = (round, round);
            }
            for _ in 0..2 {
                chunks.put_away(0, 0);
            }
            assert_eq!(room.here(), 0, "in round {round}");
            let asked: Vec<usize> = (0..chunks.len()).map(|at| chunks.ask(at, |number| *number)).collect();
            assert_eq!(asked, expected);
            assert_eq!((room.here(), chunks.get_here(0)), (0, None), "asking brings nothing back");
            if round % 3 == 0 {
                assert!((0..chunks.len()).all(|at| chunks[at] == expected[at]));
                assert_eq!(room.here(), expected.len().div_ceil(CHUNK) as u64 * BYTES);
            }
        }
        drop(chunks);
        assert_eq!((shelf.len(), room.here(), room.pressure(0).paged), (0, 0, 0));
    }

    /// Whoever asks, reads or photographs a thing finds what it was told, and a photograph that was begun before does not.
    #[test]
    fn what_is_told_to_those_away_is_known_when_they_come_back() {
        let room = Arc::new(Room::new(MemoryShelf::with_room_for(usize::MAX), 0));
        let mut chunks = Chunks::on_shelf(Some(&room));
        let mut expected: Vec<usize> = (0..20 * CHUNK).collect();
        expected.iter().for_each(|number| chunks.push(*number));
        let put_all_away = |chunks: &mut Chunks<usize>| {
            chunks.put_away(0, 0);
            chunks.put_away(0, 0);
            assert_eq!(room.here(), 0);
        };
        for round in 0..8 {
            put_all_away(&mut chunks);
            let before = expected.clone();
            chunks.begin_shot(false);
            let mut seen = take(&mut chunks).unwrap();
            let most = MEAN * 20;
            for change in 0..most / 2 * round {
                let at = (round * 7919 + change * 104_729) % expected.len();
                chunks.amend(at, change as u32);
                expected[at] = change;
                let late = chunks.shelving.as_ref().unwrap().late.borrow().len();
                assert!(late <= most, "{late} in round {round}");
                let fixed = chunks.chunks.bytes() + chunks.elsewhere.bytes();
                assert_eq!(chunks.fixed_bytes(), fixed + late * LATE_BYTES);
            }
            let asked: Vec<usize> = (0..chunks.len()).map(|at| chunks.ask(at, |number| *number)).collect();
            assert_eq!(asked, expected);
            seen.extend(std::iter::from_fn(|| take(&mut chunks)).flatten());
            assert_eq!(seen, before, "in round {round}");
            chunks.begin_shot(false);
            assert!(std::iter::from_fn(|| take(&mut chunks)).flatten().eq(expected.iter().copied()));
            if round % 2 == 0 {
                assert!((0..chunks.len()).all(|at| chunks[at] == expected[at]));
                assert_eq!(chunks.shelving.as_ref().unwrap().late.borrow().len(), 0);
            }
        }
    }

    /// Frames of numbers: frame 3 begins with 3,000.
    #[derive(Debug)]
    struct Numbers;

    impl FrameSource for Numbers {
        fn frame(&self, number: u64) -> Option<Vec<u8>> {
            let first = 1000 * number as usize;
            Some((first..first + CHUNK).flat_map(usize::to_le_bytes).collect())
        }
    }

    /// What is lent is found, changed and photographed as if it were here, with a shelf and without; and the source is let go of when
    /// nothing is there any more.
    #[test]
    fn what_is_lent_is_as_good_as_here() {
        let read = |bytes: &[u8]| Some(bytes.chunks_exact(8).map(<usize as Shelved>::read).collect());
        for shelf in [None, Some(MemoryShelf::with_room_for(usize::MAX))] {
            let room = shelf.map(|shelf| Arc::new(Room::new(shelf, 0)));
            let has_shelf = room.is_some();
            let source = Arc::new(Numbers);
            let mut chunks = Chunks::on_shelf(room.as_ref());
            chunks.begin_lending(Arc::clone(&source) as Arc<dyn FrameSource>, read);
            assert!(!chunks.lend(0, CHUNK + 1), "no chunk has as many");
            for frame in 0..5 {
                assert!(chunks.lend(frame, CHUNK));
            }
            let mut expected: Vec<usize> =
                (0..5).flat_map(|frame| 1000 * frame..1000 * frame + CHUNK).collect();
            chunks.begin_shot(false);
            // One is looked at, one is changed, one is told something, before they are photographed and after.
            assert_eq!(chunks[CHUNK], 1000);
            let mut taken = Vec::new();
            for at in [2 * CHUNK + 7, 5, 4 * CHUNK] {
                chunks[at] = 7;
                chunks.amend(at + 1, 8);
                (expected[at], expected[at + 1]) = (7, 8);
                chunks.put_away(0, 0);
                taken.extend(take(&mut chunks).unwrap());
            }
            taken.extend(std::iter::from_fn(|| take(&mut chunks)).flatten());
            let first = |frame: usize| 1000 * frame..1000 * frame + CHUNK;
            assert!(taken.into_iter().eq((0..5).flat_map(first)), "as it was when the photograph began");
            assert!(!chunks.bring_lent(&mut 0), "one was not wanted yet");
            assert!((0..chunks.len()).all(|at| chunks.ask(at, |number| *number) == expected[at]));
            assert!(chunks.bring_lent(&mut 100));
            assert_eq!(Arc::strong_count(&source), 1, "nobody wants it any more");
            assert_eq!((chunks.can_be_away, chunks.is_watched), (has_shelf, has_shelf));
            assert!((0..chunks.len()).all(|at| chunks[at] == expected[at]));
        }
    }

    #[test]
    fn a_photograph_shows_what_was_there_whatever_was_put_away_meanwhile() {
        let room = Arc::new(Room::new(MemoryShelf::with_room_for(usize::MAX), 0));
        let mut chunks = Chunks::on_shelf(Some(&room));
        let len = 9 * CHUNK + 5;
        (0..len).for_each(|number| chunks.push(number));
        chunks.put_away(0, 0);
        chunks.begin_shot(false);
        let mut seen = Vec::new();
        for round in 0.. {
            for change in 0..4 {
                chunks[(round * 7919 + change * 104_729) % len] = usize::MAX;
            }
            chunks.push(usize::MAX);
            chunks.put_away(0, 0);
            match take(&mut chunks) {
                Some(photos) => seen.extend(photos),
                None => break,
            }
        }
        assert!(seen.into_iter().eq(0..len));
    }

    #[test]
    fn what_was_used_goes_last_and_what_cannot_go_stays() {
        let room = Arc::new(Room::new(MemoryShelf::with_room_for(usize::MAX), 0));
        let mut chunks = Chunks::on_shelf(Some(&room));
        (0..5 * CHUNK).for_each(|number| chunks.push(number));
        chunks.put_away(0, 0);
        assert_eq!(room.here(), 5 * BYTES, "all were used");
        chunks[2 * CHUNK] = 7;
        chunks[3 * CHUNK] = STAYS;
        assert_eq!(chunks.put_away(0, 3 * BYTES), Some(2), "it stops when it is enough");
        assert!(chunks.get_here(0).is_none() && chunks.get_here(2 * CHUNK) == Some(&7));
        assert_eq!(chunks.put_away(2, 0), None);
        chunks.put_away(0, 0);
        assert_eq!(room.here(), BYTES);
        assert_eq!(chunks.get_here(3 * CHUNK), Some(&STAYS));
    }

    /// What is as it was on the shelf need not be written once more; and what has no room stays.
    #[test]
    fn a_shelf_without_room_keeps_what_it_has() {
        let room = Arc::new(Room::new(MemoryShelf::with_room_for(2), 0));
        let mut chunks = Chunks::on_shelf(Some(&room));
        (0..4 * CHUNK).for_each(|number| chunks.push(number));
        chunks.put_away(0, 0);
        chunks.put_away(0, 0);
        assert!(room.is_full() && room.pressure(0).is_full);
        assert_eq!(room.here(), 2 * BYTES);
        assert_eq!(chunks[0], 0);
        chunks.put_away(0, 0);
        chunks.put_away(0, 0);
        assert_eq!(room.here(), 2 * BYTES, "what came back has its place");
        assert!((0..4 * CHUNK).all(|at| chunks[at] == at));
    }

    impl Photographed for usize {
        type Photo = Self;

        fn photo(&self) -> Self {
            *self
        }
    }

    #[test]
    fn what_is_pushed_is_found_where_it_was_put() {
        let mut chunks = Chunks::default();
        for number in 0..5 * CHUNK + 3 {
            assert_eq!(chunks.len(), number);
            chunks.push(number);
        }
        for number in 0..chunks.len() {
            assert_eq!(chunks[number], number);
        }
    }

    #[test]
    fn a_photograph_shows_what_was_there_when_it_began() {
        for len in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 70 * CHUNK + 5] {
            let mut chunks = Chunks::default();
            (0..len).for_each(|number| chunks.push(number));
            chunks.begin_shot(false);
            let mut seen = Vec::new();
            for round in 0..1000 {
                for change in 0..40 {
                    let at = (round * 7919 + change * 104_729) % (len + 1);
                    if at < chunks.len() {
                        chunks[at] = usize::MAX;
                    }
                }
                chunks.push(usize::MAX);
                match take(&mut chunks) {
                    Some(photos) => seen.extend(photos),
                    None => break,
                }
            }
            assert!(seen.iter().copied().eq(0..len), "{len}");
            assert!(chunks.shot.is_none());
        }
    }

    /// Who has a photograph that was kept, and all that came after it, has everything; whatever changes while one is taken, on a shelf
    /// or not, and if some are given up.
    #[test]
    fn what_has_not_changed_since_a_photograph_was_kept_is_left_out() {
        for has_shelf in [false, true] {
            let room = has_shelf.then(|| Arc::new(Room::new(MemoryShelf::with_room_for(usize::MAX), 0)));
            let mut chunks = Chunks::on_shelf(room.as_ref());
            let mut kept: Vec<Vec<usize>> = Vec::new();
            let (mut number, mut left_out, mut given_up) = (1, 0, 0);
            let mut draw = |most: usize| {
                number = (number * 48_271) % 0x7fff_ffff;
                number % most
            };
            for round in 0..60 {
                let change = |chunks: &mut Chunks<usize>, draw: &mut dyn FnMut(usize) -> usize| {
                    let changes = draw(4);
                    for _ in 0..changes {
                        match draw(3) {
                            _ if chunks.len() == 0 => {}
                            0 => chunks.amend(draw(chunks.len()), draw(1000) as u32),
                            1 => {
                                let at = draw(chunks.len());
                                chunks[at] = draw(1000);
                            }
                            _ => (0..draw(300)).for_each(|_| chunks.push(round)),
                        }
                    }
                    chunks.put_away(0, 0);
                };
                if round < 20 {
                    (0..draw(2000)).for_each(|number| chunks.push(number));
                }
                change(&mut chunks, &mut draw);
                let expected: Vec<usize> =
                    (0..chunks.len()).map(|at| chunks.ask(at, |number| *number)).collect();
                chunks.begin_shot(true);
                let mut photograph = Vec::new();
                let gives_up = draw(4) == 0;
                loop {
                    change(&mut chunks, &mut draw);
                    match chunks.take_shot() {
                        Some(Taken::Photos(photos)) => photograph.push(photos),
                        Some(Taken::Same) => {
                            left_out += 1;
                            photograph.push(kept[photograph.len()].clone());
                        }
                        None => break,
                    }
                    if gives_up && draw(3) == 0 {
                        chunks.drop_shot();
                        break;
                    }
                }
                if gives_up {
                    given_up += 1;
                    continue;
                }
                change(&mut chunks, &mut draw);
                assert!(chunks.keep_shot());
                assert!(photograph.concat() == expected, "round {round}, on a shelf: {has_shelf}");
                kept = photograph;
            }
            assert!(left_out > 200 && given_up > 5, "{left_out}, {given_up}");
        }
    }
}
