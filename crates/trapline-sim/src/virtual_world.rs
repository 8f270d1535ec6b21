//! A world in virtual time, for the loop of a crawl: one thread, tasks that have their turn in the order in which they are
//! woken, and a clock that jumps to the next moment anybody waits for when nobody has anything to do.
//!
//! One seed, one history. It has no sockets and no stores; whoever runs something in it brings those.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::future::BoxFuture;
use trapline_core::Timestamp;
use trapline_crawl::ports::World;

use crate::random::Random;

/// The number of the task that everything is run for.
const MAIN: u64 = 0;

/// A world in virtual time. Clones are the same world.
#[derive(Clone)]
pub struct VirtualWorld(Arc<Mutex<State>>);

struct State {
    now: Timestamp,
    random: Random,
    /// Tasks that are neither done nor having their turn.
    tasks: BTreeMap<u64, Task>,
    woken: VecDeque<u64>,
    /// Who sleeps until when.
    sleepers: BTreeMap<(Timestamp, u64), Waker>,
    /// Of tasks and sleepers.
    numbers: u64,
}

struct Task {
    future: BoxFuture<'static, ()>,
    alarm: Arc<Alarm>,
}

impl VirtualWorld {
    /// A world in which it is a certain time, and in which chance follows from a seed.
    pub fn new(now: Timestamp, seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            now,
            random: Random::new(seed),
            tasks: BTreeMap::new(),
            woken: VecDeque::new(),
            sleepers: BTreeMap::new(),
            numbers: MAIN,
        })))
    }

    /// Does something, and all that is spawned meanwhile. What is not done by then is left where it is, and goes on with
    /// the next call.
    ///
    /// # Panics
    /// If everybody waits for somebody else.
    pub fn run<T>(&self, main: impl Future<Output = T>) -> T {
        let mut main = pin!(main);
        let alarm = Alarm::new(self, MAIN);
        let waker = Waker::from(Arc::clone(&alarm));
        waker.wake_by_ref();
        loop {
            let woken = self.state().woken.pop_front();
            match woken {
                Some(MAIN) => {
                    alarm.rung.store(false, Ordering::Relaxed);
                    if let Poll::Ready(answer) = main.as_mut().poll(&mut Context::from_waker(&waker)) {
                        return answer;
                    }
                }
                Some(number) => self.turn(number),
                None => self.pass(),
            }
        }
    }

    /// A task has its turn.
    fn turn(&self, number: u64) {
        let Some(mut task) = self.state().tasks.remove(&number) else { return };
        task.alarm.rung.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&task.alarm));
        if task.future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            self.state().tasks.insert(number, task);
        }
    }

    /// Time passes until somebody has slept enough.
    fn pass(&self) {
        let mut state = self.state();
        let first = state.sleepers.pop_first();
        let ((at, _), sleeper) =
            first.expect("everybody waits for somebody else, and nobody for time to pass");
        state.now = at.max(state.now);
        drop(state);
        sleeper.wake();
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        self.state().now
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl World for VirtualWorld {
    fn now(&self) -> Timestamp {
        Self::now(self)
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'static, ()> {
        let number = self.state().number();
        Box::pin(Sleep { world: self.clone(), at, number })
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        let number = self.state().number();
        let alarm = Alarm::new(self, number);
        self.state().tasks.insert(number, Task { future: task, alarm: Arc::clone(&alarm) });
        alarm.wake();
    }

    fn random(&self) -> u64 {
        self.state().random.draw()
    }
}

impl State {
    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }
}

/// Wakes a task: it is put into the row once, however often it rings.
struct Alarm {
    world: VirtualWorld,
    number: u64,
    rung: AtomicBool,
}

impl Alarm {
    fn new(world: &VirtualWorld, number: u64) -> Arc<Self> {
        Arc::new(Self { world: world.clone(), number, rung: AtomicBool::new(false) })
    }
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        if !self.rung.swap(true, Ordering::Relaxed) {
            self.world.state().woken.push_back(self.number);
        }
    }
}

/// Somebody sleeps. Who is woken otherwise is not waited for any more.
struct Sleep {
    world: VirtualWorld,
    at: Timestamp,
    number: u64,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.world.state();
        if state.now >= self.at {
            return Poll::Ready(());
        }
        state.sleepers.insert((self.at, self.number), context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let sleeper = self.world.state().sleepers.remove(&(self.at, self.number));
        // Not while the world is locked: it may be the last hand on a task.
        drop(sleeper);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn time_passes_only_while_nobody_has_anything_to_do() {
        let world = VirtualWorld::new(Timestamp::from_millis(1_000), 1);
        let log = Arc::new(Mutex::new(Vec::new()));
        for wait in [30, 10, 20] {
            let (inside, log) = (world.clone(), Arc::clone(&log));
            world.spawn(Box::pin(async move {
                inside.sleep_until(inside.now() + Duration::from_millis(wait)).await;
                log.lock().unwrap().push((wait, inside.now().as_millis()));
            }));
        }
        world.run(world.sleep_until(Timestamp::from_millis(1_025)));
        assert_eq!(*log.lock().unwrap(), [(10, 1_010), (20, 1_020)]);
        world.run(world.sleep_until(Timestamp::from_millis(2_000)));
        assert_eq!(*log.lock().unwrap(), [(10, 1_010), (20, 1_020), (30, 1_030)]);
    }

    #[test]
    fn a_sleep_that_was_given_up_holds_nobody_up() {
        let world = VirtualWorld::new(Timestamp::ZERO, 1);
        drop(world.sleep_until(Timestamp::from_millis(5)));
        world.run(async {
            let mut long = world.sleep_until(Timestamp::from_millis(60_000));
            let polled =
                std::future::poll_fn(|context| Poll::Ready(long.as_mut().poll(context).is_pending())).await;
            assert!(polled);
            drop(long);
            world.sleep_until(Timestamp::from_millis(7)).await;
        });
        assert_eq!((world.now(), world.state().sleepers.len()), (Timestamp::from_millis(7), 0));
    }

    #[test]
    #[should_panic(expected = "everybody waits for somebody else")]
    fn a_deadlock_is_noticed() {
        VirtualWorld::new(Timestamp::ZERO, 1).run(std::future::pending::<()>());
    }
}
