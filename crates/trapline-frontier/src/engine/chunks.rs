//! A list that grows without moving what it holds, so that growing never takes longer than making one chunk.
//!
//! It can be photographed while it goes on changing: whoever changes a chunk that was not taken yet keeps a copy of it
//! first, once.

use std::collections::BTreeMap;

/// How many things a chunk holds.
const CHUNK: usize = 1 << CHUNK_BITS;
const CHUNK_BITS: u32 = 10;

/// What a list of things can be photographed as.
pub(super) trait Photographed {
    type Photo;

    /// All that is to be kept of it.
    fn photo(&self) -> Self::Photo;
}

#[derive(Debug)]
pub(super) struct Chunks<T: Photographed> {
    /// All full but the last.
    chunks: Vec<Vec<T>>,
    shot: Option<Box<Shot<T::Photo>>>,
}

/// A photograph being taken.
#[derive(Debug)]
struct Shot<P> {
    /// How many things there were when it began.
    len: usize,
    /// The next chunk to be taken.
    next: usize,
    /// A bit for each chunk that is as it was.
    unchanged: Vec<u64>,
    /// Chunks that have changed since, as they were.
    saved: BTreeMap<usize, Vec<P>>,
}

impl<P> Shot<P> {
    fn is_unchanged(&self, chunk: usize) -> bool {
        self.unchanged.get(chunk / 64).is_some_and(|bits| bits & (1 << (chunk % 64)) != 0)
    }

    /// How many things of a chunk are in the picture.
    fn len_of(&self, chunk: usize) -> usize {
        (self.len - chunk * CHUNK).min(CHUNK)
    }

    fn take<T: Photographed<Photo = P>>(&mut self, chunk: usize, things: &[T]) -> Vec<P> {
        self.unchanged[chunk / 64] &= !(1 << (chunk % 64));
        things[..self.len_of(chunk)].iter().map(T::photo).collect()
    }
}

impl<T: Photographed> Default for Chunks<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), shot: None }
    }
}

impl<T: Photographed> Chunks<T> {
    pub(super) fn len(&self) -> usize {
        match self.chunks.split_last() {
            Some((last, full)) => full.len() * CHUNK + last.len(),
            None => 0,
        }
    }

    pub(super) fn push(&mut self, thing: T) {
        match self.chunks.last_mut() {
            Some(last) if last.len() < CHUNK => last.push(thing),
            // The first chunk grows by itself: many crawls are small.
            None => self.chunks.push(vec![thing]),
            Some(_) => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(thing);
                self.chunks.push(chunk);
            }
        }
    }

    /// How much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        let first = self.chunks.first().map_or(0, Vec::capacity);
        let things = first + self.chunks.len().saturating_sub(1) * CHUNK;
        things * size_of::<T>() + self.chunks.capacity() * size_of::<Vec<T>>()
    }

    /// Begins a photograph of everything as it is now.
    pub(super) fn begin_shot(&mut self) {
        let chunks = self.chunks.len();
        let mut unchanged = vec![u64::MAX; chunks.div_ceil(64)];
        if let Some(last) = unchanged.last_mut().filter(|_| !chunks.is_multiple_of(64)) {
            *last = (1 << (chunks % 64)) - 1;
        }
        self.shot = Some(Box::new(Shot { len: self.len(), next: 0, unchanged, saved: BTreeMap::new() }));
    }

    /// The next chunk of the photograph; None when it is complete, or none was begun.
    pub(super) fn take_shot(&mut self) -> Option<Vec<T::Photo>> {
        let shot = self.shot.as_mut()?;
        let chunk = shot.next;
        if chunk * CHUNK >= shot.len {
            self.shot = None;
            return None;
        }
        shot.next += 1;
        Some(match shot.saved.remove(&chunk) {
            Some(saved) => saved,
            None => shot.take(chunk, &self.chunks[chunk]),
        })
    }

    /// Gives a photograph up.
    pub(super) fn drop_shot(&mut self) {
        self.shot = None;
    }

    /// A chunk is about to change.
    #[cold]
    fn save(&mut self, chunk: usize) {
        if let Some(shot) = self.shot.as_mut().filter(|shot| shot.is_unchanged(chunk)) {
            let photos = shot.take(chunk, &self.chunks[chunk]);
            shot.saved.insert(chunk, photos);
        }
    }
}

impl<T: Photographed> std::ops::Index<usize> for Chunks<T> {
    type Output = T;

    fn index(&self, at: usize) -> &T {
        &self.chunks[at >> CHUNK_BITS][at & (CHUNK - 1)]
    }
}

impl<T: Photographed> std::ops::IndexMut<usize> for Chunks<T> {
    fn index_mut(&mut self, at: usize) -> &mut T {
        if self.shot.is_some() {
            self.save(at >> CHUNK_BITS);
        }
        &mut self.chunks[at >> CHUNK_BITS][at & (CHUNK - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            chunks.begin_shot();
            let mut seen = Vec::new();
            for round in 0..1000 {
                for change in 0..40 {
                    let at = (round * 7919 + change * 104_729) % (len + 1);
                    if at < chunks.len() {
                        chunks[at] = usize::MAX;
                    }
                }
                chunks.push(usize::MAX);
                match chunks.take_shot() {
                    Some(photos) => seen.extend(photos),
                    None => break,
                }
            }
            assert!(seen.iter().copied().eq(0..len), "{len}");
            assert!(chunks.shot.is_none());
        }
    }
}
