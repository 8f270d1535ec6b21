//! What name servers said, for as long as it holds, and who is being asked right now.
//!
//! One question is asked once, however many wait for its answer. Bounded in entries; which ones stay is decided by how often they
//! are asked for, so that a flood of strange names does not drive out the popular ones. Knows nothing of DNS.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OnceCell;
use tokio::time::Instant;

/// An answer and when it ends.
#[derive(Debug, Clone)]
pub(super) struct Remembered<A> {
    pub(super) answer: A,
    pub(super) until: Instant,
}

/// Open questions by name, each with the place where its answer will be.
type Asked<A> = HashMap<Arc<str>, Arc<OnceCell<Remembered<A>>>>;

/// Answers by name.
pub(super) struct Memory<A> {
    answers: moka::sync::Cache<Arc<str>, Remembered<A>>,
    /// Held for a few instructions only, never across an `await`.
    asked: Mutex<Asked<A>>,
}

impl<A: Clone + Send + Sync + 'static> Memory<A> {
    pub(super) fn new(entries_max: u64) -> Self {
        Self { answers: moka::sync::Cache::new(entries_max), asked: Mutex::new(HashMap::new()) }
    }

    /// The answer that is remembered, if it still holds.
    pub(super) fn get(&self, name: &str) -> Option<A> {
        let remembered = self.answers.get(name)?;
        (remembered.until > Instant::now()).then_some(remembered.answer)
    }

    /// The answer that is remembered, or that somebody is waiting for already, or that `ask` gives.
    ///
    /// Whoever asks may be dropped in the middle; then the next one in line asks again.
    pub(super) async fn get_or_ask<F>(&self, name: &str, ask: impl FnOnce() -> F) -> A
    where
        F: Future<Output = Remembered<A>>,
    {
        if let Some(answer) = self.get(name) {
            return answer;
        }
        let question = Question::join(self, name);
        let remembered = question
            .cell
            .get_or_init(|| async {
                // Somebody may have got the answer between the look above and joining.
                if let Some(answer) = self.get(name) {
                    return Remembered { answer, until: Instant::now() };
                }
                let remembered = ask().await;
                self.answers.insert(Arc::clone(&question.name), remembered.clone());
                remembered
            })
            .await;
        remembered.answer.clone()
    }

    fn asked(&self) -> MutexGuard<'_, Asked<A>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many answers are remembered, about.
    pub(super) fn len(&self) -> u64 {
        self.answers.entry_count()
    }

    /// How many answers are remembered and how many questions are open.
    #[cfg(test)]
    fn sizes(&self) -> (u64, usize) {
        self.answers.run_pending_tasks();
        (self.answers.entry_count(), self.asked().len())
    }
}

/// A place among those who wait for one answer; the last to leave takes the question off the list.
struct Question<'a, A: Clone + Send + Sync + 'static> {
    memory: &'a Memory<A>,
    name: Arc<str>,
    cell: Arc<OnceCell<Remembered<A>>>,
}

impl<'a, A: Clone + Send + Sync + 'static> Question<'a, A> {
    fn join(memory: &'a Memory<A>, name: &str) -> Self {
        let mut asked = memory.asked();
        let name: Arc<str> = name.into();
        let cell = Arc::clone(asked.entry(Arc::clone(&name)).or_default());
        drop(asked);
        Self { memory, name, cell }
    }
}

impl<A: Clone + Send + Sync + 'static> Drop for Question<'_, A> {
    fn drop(&mut self) {
        let mut asked = self.memory.asked();
        if let Entry::Occupied(place) = asked.entry(Arc::clone(&self.name)) {
            // Joining needs the lock, so nobody joins between counting and removing. An answered question leaves
            // at once, so that whoever comes later looks at what is remembered instead.
            let ours = Arc::ptr_eq(place.get(), &self.cell);
            if ours && (self.cell.initialized() || Arc::strong_count(&self.cell) == 2) {
                place.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use futures_util::future::join_all;
    use tokio::sync::Notify;

    use super::*;

    fn remember(answer: usize, seconds: u64) -> Remembered<usize> {
        Remembered { answer, until: Instant::now() + Duration::from_secs(seconds) }
    }

    #[tokio::test(start_paused = true)]
    async fn many_who_wait_ask_once_and_the_answer_holds_until_it_ends() {
        let memory = Memory::new(10);
        let asked = AtomicUsize::new(0);
        let ask = || async {
            let answer = asked.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(1)).await;
            remember(answer, 30)
        };
        let answers = join_all((0..100).map(|_| memory.get_or_ask("a", ask))).await;
        assert_eq!(answers, vec![0; 100]);
        assert_eq!(memory.get_or_ask("a", ask).await, 0);
        assert_eq!(memory.sizes(), (1, 0));
        tokio::time::advance(Duration::from_secs(30)).await;
        assert_eq!(memory.get_or_ask("a", ask).await, 1);
        assert_eq!(memory.get_or_ask("b", ask).await, 2);
    }

    #[tokio::test]
    async fn a_question_whose_asker_is_dropped_is_asked_by_the_next_in_line() {
        let memory = Arc::new(Memory::new(10));
        let started = Arc::new(Notify::new());
        let first = tokio::spawn({
            let (memory, started) = (Arc::clone(&memory), Arc::clone(&started));
            async move {
                let forever = || async {
                    started.notify_one();
                    std::future::pending::<Remembered<usize>>().await
                };
                memory.get_or_ask("a", forever).await
            }
        });
        started.notified().await;
        let second = memory.get_or_ask("a", || async { remember(7, 30) });
        let (_, second) = tokio::join!(async { first.abort() }, second);
        assert_eq!(second, 7);
        assert_eq!(memory.sizes(), (1, 0));
    }

    #[tokio::test]
    async fn the_memory_is_bounded() {
        let memory = Memory::new(10);
        for number in 0..1000 {
            memory.get_or_ask(&number.to_string(), || async { remember(number, 30) }).await;
        }
        let (answers, questions) = memory.sizes();
        assert!(answers <= 10, "{answers}");
        assert_eq!(questions, 0);
    }
}
