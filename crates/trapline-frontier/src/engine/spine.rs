//! A list of what a large list consists of, which grows without moving it either: at fifty million URLs it is megabytes
//! long, and copying it to where there is more room would be the slowest thing that any batch does.

/// How many things a piece holds.
const PIECE: usize = 1 << PIECE_BITS;
const PIECE_BITS: u32 = 10;

#[derive(Debug)]
pub(super) struct Spine<T> {
    /// All full but the last.
    pieces: Vec<Vec<T>>,
}

impl<T> Default for Spine<T> {
    fn default() -> Self {
        Self { pieces: Vec::new() }
    }
}

impl<T> Spine<T> {
    pub(super) fn len(&self) -> usize {
        self.pieces.last().map_or(0, |last| (self.pieces.len() - 1) * PIECE + last.len())
    }

    pub(super) fn push(&mut self, thing: T) {
        match self.pieces.last_mut().filter(|last| last.len() < PIECE) {
            Some(last) => last.push(thing),
            None => {
                // The first piece grows by itself: many lists are short.
                let room = if self.pieces.is_empty() { 1 } else { PIECE };
                let mut piece = Vec::with_capacity(room);
                piece.push(thing);
                self.pieces.push(piece);
            }
        }
    }

    pub(super) fn get(&self, at: usize) -> Option<&T> {
        self.pieces.get(at >> PIECE_BITS)?.get(at & (PIECE - 1))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.pieces.iter().flatten()
    }

    /// All from one on.
    pub(super) fn iter_mut_from(&mut self, at: usize) -> impl Iterator<Item = &mut T> {
        let pieces = self.pieces.iter_mut().skip(at >> PIECE_BITS);
        pieces.flatten().skip(at & (PIECE - 1))
    }

    /// How much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        let first = self.pieces.first().map_or(0, Vec::capacity);
        let things = first + self.pieces.len().saturating_sub(1) * PIECE;
        things * size_of::<T>() + self.pieces.capacity() * size_of::<Vec<T>>()
    }
}

impl<T> std::ops::Index<usize> for Spine<T> {
    type Output = T;

    #[inline]
    fn index(&self, at: usize) -> &T {
        &self.pieces[at >> PIECE_BITS][at & (PIECE - 1)]
    }
}

impl<T> std::ops::IndexMut<usize> for Spine<T> {
    #[inline]
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.pieces[at >> PIECE_BITS][at & (PIECE - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pushed_stays_where_it_is() {
        let mut spine = Spine::default();
        assert_eq!((spine.len(), spine.bytes(), spine.get(0)), (0, 0, None));
        let mut places = Vec::new();
        for number in 0..3 * PIECE + 5 {
            assert_eq!((spine.len(), spine.get(number)), (number, None));
            spine.push(number);
            assert_eq!(spine[number], number);
            if number >= PIECE {
                places.push(&raw const spine[number]);
            }
        }
        assert!(places.into_iter().eq((PIECE..spine.len()).map(|at| &raw const spine[at])));
        assert!(spine.iter().copied().eq(0..spine.len()));
        for from in [0, 1, PIECE - 1, PIECE, 2 * PIECE + 7, spine.len(), spine.len() + PIECE] {
            let rest: Vec<usize> = spine.iter_mut_from(from).map(|thing| *thing).collect();
            assert!(rest.into_iter().eq(from..3 * PIECE + 5), "from {from}");
        }
        let taken = 4 * PIECE * size_of::<usize>();
        assert!((taken..taken + 200).contains(&spine.bytes()), "{}", spine.bytes());
    }
}
