//! Lists of chunks, on shelves, lent and photographed.

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
        let mut expected: Vec<usize> = (0..5).flat_map(|frame| 1000 * frame..1000 * frame + CHUNK).collect();
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
            let expected: Vec<usize> = (0..chunks.len()).map(|at| chunks.ask(at, |number| *number)).collect();
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
