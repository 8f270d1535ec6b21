//! What URLs that are on the shelf are to be told when they come back: a link that changes does not bring a chunk of a thousand here.

use std::collections::BTreeMap;

use super::chunks::{CHUNK, CHUNK_BITS};

/// What things that are on the shelf are to be told when they come back.
#[derive(Debug, Default)]
pub(super) struct Late {
    /// By chunk, for things by their numbers in it.
    news: BTreeMap<usize, Vec<(u16, u32)>>,
    count: usize,
    /// The chunk that comes back next if there is too much of it.
    next: usize,
}

/// So much of it may wait for each chunk on average. Then bringing one back for it costs little for each.
pub(super) const MEAN: usize = 64;

/// What a piece of it takes, with the room that its list has, where there is much of it.
pub(super) const BYTES: usize = 16;

impl Late {
    /// Tells the things of a chunk what there is for them.
    pub(super) fn tell<T>(&self, chunk: usize, things: &mut [T], amend: fn(&mut T, u32)) {
        for (at, news) in self.news.get(&chunk).into_iter().flatten() {
            amend(&mut things[usize::from(*at)], *news);
        }
    }

    pub(super) fn add(&mut self, at: usize, news: u32) {
        self.news.entry(at >> CHUNK_BITS).or_default().push(((at & (CHUNK - 1)) as u16, news));
        self.count += 1;
    }

    /// A chunk for which some of it waits, another one each time.
    pub(super) fn next_chunk(&mut self) -> Option<usize> {
        let chunk = self.news.range(self.next..).chain(self.news.range(..self.next)).next();
        let chunk = chunk.map(|(chunk, _)| *chunk)?;
        self.next = chunk + 1;
        Some(chunk)
    }

    /// What there is for one thing.
    pub(super) fn of(&self, at: usize) -> impl Iterator<Item = u32> {
        let all = self.news.get(&(at >> CHUNK_BITS)).into_iter().flatten();
        all.filter(move |(number, _)| usize::from(*number) == at & (CHUNK - 1)).map(|(_, news)| *news)
    }

    /// A chunk was told; answers whether there was anything.
    pub(super) fn told(&mut self, chunk: usize) -> bool {
        let told = self.news.remove(&chunk).map_or(0, |news| news.len());
        self.count -= told;
        told > 0
    }

    /// Whether there is more of it than so many chunks may leave waiting.
    pub(super) fn is_much(&self, chunks: usize) -> bool {
        self.count > chunks * MEAN
    }

    /// How much memory it takes, nearly.
    pub(super) fn bytes(&self) -> usize {
        self.count * BYTES
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.count
    }
}
