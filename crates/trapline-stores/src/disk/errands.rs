//! Errands: texts of the log that somebody wants, read by whoever has the time: a thread that does nothing else, and the one who wants them.
//!
//! Nearly all of the time that reading a text takes goes into waiting for cold memory of the kernel's, one place after the other. Two threads
//! wait for two at once; and what a claim will probably hand out is read while the engine still decides.
//!
//! Nothing depends on the thread: whoever has sent it reads all that it does not come to.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::texts::{Reader, Texts, Unread};

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
        // Empty if nobody waits any more.
        if let Some(block) = done.blocks.get_mut(self.number) {
            *block = self.texts.take();
        }
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
        let mut state = self.state();
        state.has_runner = true;
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
        (state.is_closing, state.has_runner) = (true, false);
        state.waiting.clear();
        drop(state);
        self.news.notify_one();
    }
}
