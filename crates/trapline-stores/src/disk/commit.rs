//! Group commit: one thread syncs the log, and whoever arrives while it does joins the next time.
//!
//! It knows sequence numbers and one file, not what is written. A failure is final: what a kernel has done with pages it
//! could not write is anybody's guess, so a later sync that succeeds would prove nothing.

use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::files::LogFile;
use crate::planted::Planted;

/// What went wrong with a file of the log, for good.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    attempted: &'static str,
    file: String,
    why: String,
}

impl Failure {
    pub(crate) fn new(attempted: &'static str, file: &str, error: &io::Error) -> Self {
        Self { attempted, file: file.to_owned(), why: error.to_string() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} failed ({})", self.attempted, self.file, self.why)
    }
}

/// How far the log is written and how far it is on disk, shared by those who write, those who wait, and the thread
/// that syncs.
pub(crate) struct Commit {
    /// Held for moments only, never during a sync.
    state: Mutex<State>,
    /// Tells the syncing thread that there is something to do.
    work: Condvar,
    /// Held during a sync until its end is known: a kernel tells of an error once, so of two syncs at a time one could
    /// succeed because the other has failed. Taken before `state`.
    turn: Mutex<()>,
    planted: Planted,
}

struct State {
    /// The segment that is written; earlier ones are on disk.
    file: Arc<dyn LogFile>,
    name: String,
    /// The last record that was written.
    written: u64,
    /// The last record that somebody wants to be on disk.
    wanted: u64,
    /// The last record that is on disk, with all before it.
    durable: u64,
    failure: Option<Failure>,
    is_closing: bool,
    waiting: Vec<(u64, Waker)>,
}

impl Commit {
    /// A log that is on disk up to a record, and goes on in a file.
    pub(crate) fn new(file: Arc<dyn LogFile>, name: String, durable: u64, planted: Planted) -> Self {
        let state = State {
            file,
            name,
            written: durable,
            wanted: durable,
            durable,
            failure: None,
            is_closing: false,
            waiting: Vec::new(),
        };
        Self { state: Mutex::new(state), work: Condvar::new(), turn: Mutex::new(()), planted }
    }

    /// Nothing that holds this lock can fail half-way.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A record was written.
    pub(crate) fn wrote(&self, sequence: u64) {
        let mut state = self.state();
        state.written = sequence;
        // With an interval, its time begins now.
        self.work.notify_one();
    }

    /// Everything written so far is on disk, and the log goes on in another file.
    pub(crate) fn rolled(&self, file: Arc<dyn LogFile>, name: String) {
        let mut state = self.state();
        assert!(state.durable == state.written, "a segment is left behind only when it is on disk");
        state.file = file;
        state.name = name;
    }

    pub(crate) fn durable(&self) -> u64 {
        self.state().durable
    }

    pub(crate) fn written(&self) -> u64 {
        self.state().written
    }

    pub(crate) fn failure(&self) -> Option<Failure> {
        self.state().failure.clone()
    }

    /// From now on nothing is promised any more. The first failure is the one that is told.
    pub(crate) fn fail(&self, failure: Failure) {
        let mut state = self.state();
        state.failure.get_or_insert(failure);
        state.wake();
    }

    /// A record is to be on disk soon.
    pub(crate) fn want(&self, sequence: u64) {
        let mut state = self.state();
        if state.wanted < sequence {
            state.wanted = sequence;
            self.work.notify_one();
        }
    }

    /// Waits until a record is on disk, with all before it.
    pub(crate) async fn wait(&self, sequence: u64) -> Result<(), Failure> {
        std::future::poll_fn(|context| self.poll(sequence, context)).await
    }

    fn poll(&self, sequence: u64, context: &Context<'_>) -> Poll<Result<(), Failure>> {
        let mut state = self.state();
        if state.durable >= sequence {
            return Poll::Ready(Ok(()));
        }
        if let Some(failure) = &state.failure {
            return Poll::Ready(Err(failure.clone()));
        }
        state.waiting.push((sequence, context.waker().clone()));
        if state.wanted < sequence {
            state.wanted = sequence;
            self.work.notify_one();
        }
        Poll::Pending
    }

    /// Syncs when it is wanted, and with an interval once that has passed since something was written. Until the store is
    /// closed, or something fails.
    pub(crate) fn run(&self, interval: Option<Duration>) {
        let mut state = self.state();
        let mut due: Option<Instant> = None;
        loop {
            if state.is_closing || state.failure.is_some() {
                return;
            }
            if state.wanted > state.durable {
                drop(state);
                // A failure ends the loop.
                let _ = self.sync();
                state = self.state();
                due = None;
                continue;
            }
            let unsynced = state.written > state.durable;
            state = match interval.filter(|_| unsynced) {
                Some(interval) => {
                    let now = Instant::now();
                    let at = *due.get_or_insert(now + interval);
                    if at <= now {
                        state.wanted = state.written;
                        continue;
                    }
                    let waited = self.work.wait_timeout(state, at - now);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.work.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Syncs everything written by now; what is written meanwhile waits for the next time.
    pub(crate) fn sync(&self) -> Result<(), Failure> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.state();
        if let Some(failure) = &state.failure {
            return Err(failure.clone());
        }
        if state.durable == state.written {
            return Ok(());
        }
        let (file, written) = (Arc::clone(&state.file), state.written);
        drop(state);
        let synced = self.planted.sync(&*file, written);
        let mut state = self.state();
        match synced {
            Ok(()) => state.durable = state.durable.max(written),
            Err(error) => {
                let failure = Failure::new("syncing", &state.name, &error);
                state.failure.get_or_insert(failure);
            }
        }
        state.wake();
        state.failure.clone().map_or(Ok(()), Err)
    }

    /// Brings everything to disk, and lets the thread end.
    pub(crate) fn close(&self) -> Result<(), Failure> {
        let synced = self.sync();
        self.state().is_closing = true;
        self.work.notify_one();
        synced
    }

    /// Lets the thread end, and whoever waits wait no more.
    pub(crate) fn abandon(&self) {
        let mut state = self.state();
        let failure = Failure::new("keeping", &state.name, &io::Error::other("the store was abandoned"));
        state.failure.get_or_insert(failure);
        state.wake();
        self.work.notify_one();
    }
}

impl State {
    /// Wakes whoever has waited long enough; everybody, if there is nothing to wait for any more.
    fn wake(&mut self) {
        let (durable, all) = (self.durable, self.failure.is_some());
        self.waiting.retain(|(sequence, waker)| {
            let done = all || *sequence <= durable;
            if done {
                waker.wake_by_ref();
            }
            !done
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// A file whose syncs end when they are told to, and how.
    struct Slow {
        begun: Sender<()>,
        may_end: Mutex<Receiver<io::Result<()>>>,
        syncs: AtomicU32,
    }

    impl LogFile for Slow {
        fn read(&self) -> io::Result<Vec<u8>> {
            Ok(Vec::new())
        }

        fn bytes(&self) -> io::Result<u64> {
            Ok(0)
        }

        fn read_at(&self, _: u64, _: usize) -> io::Result<Vec<u8>> {
            Ok(Vec::new())
        }

        fn write(&self, _: u64, _: &[u8]) -> io::Result<()> {
            Ok(())
        }

        fn sync(&self) -> io::Result<()> {
            self.syncs.fetch_add(1, Ordering::Relaxed);
            self.begun.send(()).unwrap();
            self.may_end.lock().unwrap().recv().unwrap()
        }
    }

    fn with_slow_file(test: impl FnOnce(&Arc<Commit>, &Slow, &Receiver<()>, &Sender<io::Result<()>>)) {
        let (begun, has_begun) = channel();
        let (end, may_end) = channel();
        let file = Arc::new(Slow { begun, may_end: Mutex::new(may_end), syncs: AtomicU32::new(0) });
        let shared = Arc::clone(&file) as Arc<dyn LogFile>;
        let commit = Arc::new(Commit::new(shared, "file".to_owned(), 0, Planted::default()));
        std::thread::scope(|scope| {
            scope.spawn(|| commit.run(None));
            test(&commit, &file, &has_begun, &end);
            commit.abandon();
        });
    }

    #[test]
    fn whoever_arrives_during_a_sync_joins_the_next_one() {
        with_slow_file(|commit, file, begun, end| {
            std::thread::scope(|scope| {
                commit.wrote(1);
                let first = scope.spawn(|| pollster::block_on(commit.wait(1)));
                begun.recv().unwrap();
                let late: Vec<_> = (2..=9)
                    .map(|sequence| {
                        commit.wrote(sequence);
                        scope.spawn(move || pollster::block_on(commit.wait(sequence)))
                    })
                    .collect();
                end.send(Ok(())).unwrap();
                assert!(first.join().unwrap().is_ok());
                assert_eq!(commit.durable(), 1, "what was written during a sync is not on disk by it");
                // Until the last of them has come, there may be more than one.
                begun.recv().unwrap();
                end.send(Ok(())).unwrap();
                for waiter in late {
                    assert!(waiter.join().unwrap().is_ok());
                }
                assert_eq!((commit.durable(), file.syncs.load(Ordering::Relaxed)), (9, 2));
            });
        });
    }

    #[test]
    fn a_failed_sync_is_final_for_all_who_wait_and_who_come() {
        with_slow_file(|commit, file, begun, end| {
            commit.wrote(1);
            std::thread::scope(|scope| {
                let waiter = scope.spawn(|| pollster::block_on(commit.wait(1)));
                begun.recv().unwrap();
                end.send(Err(io::Error::other("broken"))).unwrap();
                let failure = waiter.join().unwrap().unwrap_err();
                assert_eq!(failure.to_string(), "syncing file failed (broken)");
            });
            commit.wrote(2);
            assert!(pollster::block_on(commit.wait(2)).is_err());
            assert_eq!(file.syncs.load(Ordering::Relaxed), 1, "it is not tried again");
        });
    }
}
