//! A photograph of a list of chunks: what was there when it began, as it was then, taken a chunk at a time while the list changes.

use super::chunks::{CHUNK, CHUNK_BITS};

/// What a list of things can be photographed as.
pub(super) trait Photographed {
    type Photo;

    /// All that is to be kept of it.
    fn photo(&self) -> Self::Photo;
}

/// A chunk in a photograph.
#[derive(Debug, PartialEq)]
pub(super) enum Taken<P> {
    Photos(Vec<P>),
    /// As in the photograph that was kept last.
    Same,
}

/// A photograph being taken.
#[derive(Debug)]
pub(super) struct Shot<P> {
    /// How many things there were when it began.
    len: usize,
    /// The next chunk to be taken.
    next: usize,
    /// Whether chunks are left out that are as in the one that was kept last.
    leaves_out: bool,
    /// Of each chunk, what has changed since.
    saved: Vec<Change<P>>,
}

/// What has become of a chunk since the photograph was begun.
#[derive(Debug)]
enum Change<P> {
    Nothing,
    /// It has changed, but before it was as in the photograph that was kept last, and is left out.
    LeftOut,
    Saved(Box<Saved<P>>),
}

/// Things of a chunk as they were before they changed, and a bit for each of them.
#[derive(Debug)]
struct Saved<P> {
    which: [u64; CHUNK / 64],
    photos: Vec<(u16, P)>,
}

impl<P> Shot<P> {
    pub(super) fn new(len: usize, leaves_out: bool) -> Self {
        let mut saved = Vec::new();
        saved.resize_with(len.div_ceil(CHUNK), || Change::Nothing);
        Self { len, next: 0, leaves_out, saved }
    }

    /// Whether a chunk is left out. It is, if nothing of it has changed since the photograph that was kept last: `is_same` says whether
    /// that is so now.
    pub(super) fn leaves_out(&mut self, chunk: usize, is_same: bool) -> bool {
        match &self.saved[chunk] {
            Change::LeftOut => true,
            Change::Nothing if self.leaves_out && is_same => {
                self.saved[chunk] = Change::LeftOut;
                true
            }
            Change::Nothing | Change::Saved(_) => false,
        }
    }

    /// Whether a thing is in the picture, not taken yet, and as it was.
    pub(super) fn wants(&self, at: usize) -> bool {
        let (chunk, at) = (at >> CHUNK_BITS, at & (CHUNK - 1));
        let is_left = (self.next..self.saved.len()).contains(&chunk) && at < self.len_of(chunk);
        is_left
            && match &self.saved[chunk] {
                Change::Nothing => true,
                Change::LeftOut => false,
                Change::Saved(saved) => saved.which[at / 64] & (1 << (at % 64)) == 0,
            }
    }

    /// Keeps a thing as it is, which is about to change.
    pub(super) fn save(&mut self, at: usize, photo: P) {
        let (chunk, at) = (at >> CHUNK_BITS, at & (CHUNK - 1));
        if !matches!(self.saved[chunk], Change::Saved(_)) {
            self.saved[chunk] = Change::Saved(Box::new(Saved { which: [0; CHUNK / 64], photos: Vec::new() }));
        }
        let Change::Saved(saved) = &mut self.saved[chunk] else { return };
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
        let mut saved = match std::mem::replace(&mut self.saved[chunk], Change::Nothing) {
            Change::Saved(saved) => saved.photos,
            Change::Nothing | Change::LeftOut => Vec::new(),
        };
        saved.sort_unstable_by_key(|(at, _)| *at);
        let mut saved = saved.into_iter().peekable();
        let photo = |(at, thing): (usize, &T)| match saved.next_if(|(next, _)| usize::from(*next) == at) {
            Some((_, photo)) => photo,
            None => thing.photo(),
        };
        things[..self.len_of(chunk)].iter().enumerate().map(photo).collect()
    }
}
