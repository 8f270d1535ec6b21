//! A photograph of a list of chunks: what was there when it began, as it was then, taken a chunk at a time while the list changes.

use super::chunks::{CHUNK, CHUNK_BITS};

/// What a list of things can be photographed as.
pub(super) trait Photographed {
    type Photo;

    /// All that is to be kept of it.
    fn photo(&self) -> Self::Photo;
}

/// A photograph being taken.
#[derive(Debug)]
pub(super) struct Shot<P> {
    /// How many things there were when it began.
    len: usize,
    /// The next chunk to be taken.
    next: usize,
    /// Of each chunk, what has changed since.
    saved: Vec<Option<Box<Saved<P>>>>,
}

/// Things of a chunk as they were before they changed, and a bit for each of them.
#[derive(Debug)]
struct Saved<P> {
    which: [u64; CHUNK / 64],
    photos: Vec<(u16, P)>,
}

impl<P> Shot<P> {
    pub(super) fn new(len: usize) -> Self {
        let mut saved = Vec::new();
        saved.resize_with(len.div_ceil(CHUNK), || None);
        Self { len, next: 0, saved }
    }

    /// Whether a thing is in the picture, not taken yet, and as it was.
    pub(super) fn wants(&self, at: usize) -> bool {
        let (chunk, at) = (at >> CHUNK_BITS, at & (CHUNK - 1));
        let is_saved = |saved: &Saved<P>| saved.which[at / 64] & (1 << (at % 64)) != 0;
        (self.next..self.saved.len()).contains(&chunk)
            && at < self.len_of(chunk)
            && !self.saved[chunk].as_deref().is_some_and(is_saved)
    }

    /// Keeps a thing as it is, which is about to change.
    pub(super) fn save(&mut self, at: usize, photo: P) {
        let (chunk, at) = (at >> CHUNK_BITS, at & (CHUNK - 1));
        let saved = self.saved[chunk]
            .get_or_insert_with(|| Box::new(Saved { which: [0; CHUNK / 64], photos: Vec::new() }));
        saved.which[at / 64] |= 1 << (at % 64);
        saved.photos.push((at as u16, photo));
    }

    /// The next chunk to be taken; None when all are.
    pub(super) fn next_chunk(&mut self) -> Option<usize> {
        let number = self.next;
        let is_left = number * CHUNK < self.len;
        self.next += usize::from(is_left);
        is_left.then_some(number)
    }

    /// How many things of a chunk are in the picture.
    fn len_of(&self, chunk: usize) -> usize {
        (self.len - chunk * CHUNK).min(CHUNK)
    }

    /// The photograph of a chunk that has these things now.
    pub(super) fn take<T: Photographed<Photo = P>>(&mut self, chunk: usize, things: &[T]) -> Vec<P> {
        let mut saved = self.saved[chunk].take().map_or_else(Vec::new, |saved| saved.photos);
        saved.sort_unstable_by_key(|(at, _)| *at);
        let mut saved = saved.into_iter().peekable();
        let photo = |(at, thing): (usize, &T)| match saved.next_if(|(next, _)| usize::from(*next) == at) {
            Some((_, photo)) => photo,
            None => thing.photo(),
        };
        things[..self.len_of(chunk)].iter().enumerate().map(photo).collect()
    }
}
