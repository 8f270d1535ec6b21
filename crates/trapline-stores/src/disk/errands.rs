//! Errands: texts of the log that somebody wants, read by whoever has the time: a thread that does nothing else, and the one who wants them.
//!
//! Nearly all of the time that reading a text takes goes into waiting for cold memory of the kernel's, one place after the other. Two threads
//! wait for two at once; and what a claim will probably hand out is read while the engine still decides.
//!
//! Nothing depends on the thread: whoever has sent it reads all that it does not come to.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::reader::Reader;
use super::texts::{Texts, Unread};

/// So many texts are read in a row.
const BLOCK: usize = 32;

/// Somebody else is sent for no fewer than this: waking a thread takes as long as reading some of them.
pub(super) const WORTH_IT: usize = 4 * BLOCK;

/// What a text can be read as.
pub(super) trait Readable: Sized + Send + 'static {
    fn read(reader: &mut Reader<'_>, place: u64) -> Result<Self, Unread>;
}

/// Texts that are to be read.
pub(super) struct Errand<T> {
    places: Vec<u64>,
    /// The first block that nobody has begun to read.
    next: AtomicUsize,
    done: Mutex<Done<T>>,
    /// Tells that all blocks are done.
    is_over: Condvar,
}

/// What was read so far.
struct Done<T> {
    /// By block; none where reading was given up.
    blocks: Vec<Option<Vec<Result<T, Unread>>>>,
    /// How many blocks were read or given up.
    count: usize,
}

impl<T> Errand<T> {
    fn done(&self) -> MutexGuard<'_, Done<T>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Readable> Errand<T> {
    pub(super) fn new(places: Vec<u64>) -> Self {
        let mut blocks = Vec::new();
        blocks.resize_with(places.len().div_ceil(BLOCK), || None);
        let done = Mutex::new(Done { blocks, count: 0 });
        Self { places, next: AtomicUsize::new(0), done, is_over: Condvar::new() }
    }

    /// Reads blocks until there is none left.
    fn run(&self, texts: &Texts) {
        let mut reader = texts.reader();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(places) = self.places.chunks(BLOCK).nth(number) else { return };
            let mut block = Block { errand: self, number, texts: None };
            block.texts = Some(places.iter().map(|place| T::read(&mut reader, *place)).collect());
        }
    }

    /// How many texts are to be read.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Reads what nobody has begun to read, waits for the rest, and answers what there is at each place.
    pub(super) fn finish(&self, texts: &Texts) -> Vec<(u64, Result<T, Unread>)> {
        self.run(texts);
        let done = self.is_over.wait_while(self.done(), |done| done.count < done.blocks.len());
        let blocks = std::mem::take(&mut done.unwrap_or_else(PoisonError::into_inner).blocks);
        let mut all = Vec::with_capacity(self.places.len());
        let mut reader = texts.reader();
        for (places, block) in self.places.chunks(BLOCK).zip(blocks) {
            match block {
                Some(block) => all.extend(places.iter().copied().zip(block)),
                None => all.extend(places.iter().map(|place| (*place, T::read(&mut reader, *place)))),
            }
        }
        all
    }
}

/// A block that is being read. Whatever becomes of that, nobody waits for it for ever.
struct Block<'a, T> {
    errand: &'a Errand<T>,
    number: usize,
    texts: Option<Vec<Result<T, Unread>>>,
}

impl<T> Drop for Block<'_, T> {
    fn drop(&mut self) {
        let mut done = self.errand.done();
        done.count += 1;
        done.blocks[self.number] = self.texts.take();
        if done.count == done.blocks.len() {
            self.errand.is_over.notify_one();
        }
    }
}

/// An errand, whatever it is for.
trait Run: Send + Sync {
    fn run(&self, texts: &Texts);
}

impl<T: Readable> Run for Errand<T> {
    fn run(&self, texts: &Texts) {
        Errand::run(self, texts);
    }
}

/// Whoever goes on errands. Nobody is sent any more when it ends, however it does.
struct Runner<'a>(&'a Errands);

impl Drop for Runner<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.has_runner = false;
        state.waiting.clear();
    }
}

/// Errands on which the thread has not gone yet.
#[derive(Default)]
pub(super) struct Errands {
    state: Mutex<State>,
    /// Tells the thread that there is one, or that there will be none.
    news: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Arc<dyn Run>>,
    /// Whether there is a thread.
    has_runner: bool,
    is_closing: bool,
}

impl Errands {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether somebody would go.
    pub(super) fn has_runner(&self) -> bool {
        self.state().has_runner
    }

    /// Sends the thread, if there is one and it is worth it. Who does that finishes the errand.
    pub(super) fn send<T: Readable>(&self, errand: Errand<T>) -> Arc<Errand<T>> {
        let errand = Arc::new(errand);
        let mut state = self.state();
        if state.has_runner && errand.places.len() >= WORTH_IT {
            state.waiting.push_back(Arc::clone(&errand) as Arc<dyn Run>);
            drop(state);
            self.news.notify_one();
        }
        errand
    }

    /// Goes on errands until the store is closed.
    pub(super) fn run(&self, texts: &Texts) {
        let _runner = Runner(self);
        let mut state = self.state();
        state.has_runner = !state.is_closing;
        loop {
            let idle = |state: &mut State| state.waiting.is_empty() && !state.is_closing;
            state = self.news.wait_while(state, idle).unwrap_or_else(PoisonError::into_inner);
            let Some(errand) = state.waiting.pop_front() else { return };
            drop(state);
            errand.run(texts);
            state = self.state();
        }
    }

    /// The thread is to end. What was not read then, whoever wants it reads.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.is_closing = true;
        state.waiting.clear();
        drop(state);
        self.news.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;
    use crate::disk::files::Folder;

    fn texts() -> Arc<Texts> {
        Arc::new(Texts::new(Arc::new(Folder::new("/nowhere"))))
    }

    /// Does something with a thread that goes on errands.
    fn with_runner(test: impl FnOnce(&Texts)) {
        let texts = texts();
        thread::scope(|scope| {
            scope.spawn(|| texts.errands.run(&texts));
            while !texts.errands.has_runner() {
                thread::yield_now();
            }
            test(&texts);
            texts.errands.close();
        });
    }

    /// What "was read" at a place: that place, but for every seventh.
    fn found<T: Readable>(
        read: Vec<(u64, Result<T, Unread>)>,
        place_of: impl Fn(&T) -> u64,
    ) -> Vec<Option<u64>> {
        let read = read.into_iter().map(|(place, read)| {
            let found = read.ok().map(|text| place_of(&text));
            assert!(found.is_none_or(|found| found == place));
            found
        });
        read.collect()
    }

    fn expected(places: u64) -> Vec<Option<u64>> {
        (0..places).map(|place| (!place.is_multiple_of(7)).then_some(place)).collect()
    }

    struct Plain(u64);

    impl Readable for Plain {
        fn read(_: &mut Reader<'_>, place: u64) -> Result<Self, Unread> {
            if place.is_multiple_of(7) { Err(Unread::test()) } else { Ok(Self(place)) }
        }
    }

    #[test]
    fn all_is_read_in_its_order_with_a_thread_and_without() {
        for places in [0, 1, BLOCK as u64, 1000] {
            let errand = || Errand::<Plain>::new((0..places).collect());
            let texts = texts();
            assert_eq!(found(texts.errands.send(errand()).finish(&texts), |plain| plain.0), expected(places));
            with_runner(|texts| {
                for _ in 0..20 {
                    let read = texts.errands.send(errand()).finish(texts);
                    assert_eq!(found(read, |plain| plain.0), expected(places));
                }
            });
        }
    }

    static BOTH: Barrier = Barrier::new(2);

    /// Can be read only by two at once.
    struct Shared(u64);

    impl Readable for Shared {
        fn read(_: &mut Reader<'_>, place: u64) -> Result<Self, Unread> {
            if place.is_multiple_of(BLOCK as u64) {
                BOTH.wait();
            }
            Ok(Self(place))
        }
    }

    #[test]
    fn two_read_at_once() {
        with_runner(|texts| {
            let read =
                texts.errands.send(Errand::<Shared>::new((0..WORTH_IT as u64).collect())).finish(texts);
            assert!(read.iter().all(|(place, read)| read.as_ref().is_ok_and(|shared| shared.0 == *place)));
        });
    }

    /// Whoever is on an errand dies on it.
    struct Deadly(u64);

    impl Readable for Deadly {
        fn read(_: &mut Reader<'_>, place: u64) -> Result<Self, Unread> {
            if thread::current().name() == Some("doomed") {
                std::panic::resume_unwind(Box::new("it dies"));
            }
            Ok(Self(place))
        }
    }

    /// If it is the one that goes on errands, nobody is sent any more.
    #[test]
    fn a_runner_that_dies_is_counted_on_no_more() {
        let texts = texts();
        let its = Arc::clone(&texts);
        let doomed = thread::Builder::new().name("doomed".to_owned());
        let runner = doomed.spawn(move || its.errands.run(&its)).unwrap();
        while !texts.errands.has_runner() {
            thread::yield_now();
        }
        let errand = texts.errands.send(Errand::<Deadly>::new((0..1000).collect()));
        assert!(runner.join().is_err());
        assert!(!texts.errands.has_runner());
        assert_eq!(errand.finish(&texts).len(), 1000);
    }

    #[test]
    fn a_thread_that_dies_costs_nobody_anything() {
        let texts = texts();
        let errand = Arc::new(Errand::<Deadly>::new((0..1000).collect()));
        let doomed = thread::Builder::new().name("doomed".to_owned());
        let (its_texts, its_errand) = (Arc::clone(&texts), Arc::clone(&errand));
        let died = doomed.spawn(move || its_errand.run(&its_texts)).unwrap().join();
        assert!(died.is_err());
        let read = errand.finish(&texts);
        assert!(read.iter().all(|(place, read)| read.as_ref().is_ok_and(|deadly| deadly.0 == *place)));
        assert_eq!(read.len(), 1000);
    }

    #[test]
    fn errands_are_finished_by_whoever_sent_them_when_the_store_is_closed() {
        with_runner(|texts| {
            texts.errands.close();
            let read = texts.errands.send(Errand::<Plain>::new((0..1000).collect())).finish(texts);
            assert_eq!(found(read, |plain| plain.0), expected(1000));
        });
    }
}
