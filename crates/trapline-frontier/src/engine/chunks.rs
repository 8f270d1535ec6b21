//! A list that grows without moving what it holds, so that growing never takes longer than making one chunk.

/// How many things a chunk holds.
const CHUNK: usize = 1 << CHUNK_BITS;
const CHUNK_BITS: u32 = 10;

#[derive(Debug)]
pub(super) struct Chunks<T> {
    /// All full but the last.
    chunks: Vec<Vec<T>>,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self { chunks: Vec::new() }
    }
}

impl<T> Chunks<T> {
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
}

impl<T> std::ops::Index<usize> for Chunks<T> {
    type Output = T;

    fn index(&self, at: usize) -> &T {
        &self.chunks[at >> CHUNK_BITS][at & (CHUNK - 1)]
    }
}

impl<T> std::ops::IndexMut<usize> for Chunks<T> {
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.chunks[at >> CHUNK_BITS][at & (CHUNK - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
