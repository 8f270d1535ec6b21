//! Who may ask name servers right now: so many names at once, and no more than a share of them of one domain.
//!
//! Anybody can have a domain whose name servers are slow and a page with a thousand names below it. Without shares these would take all
//! turns, and every other name would wait until its time is up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};
use trapline_core::registrable_domain;

/// One domain gets so many of all turns: one in this.
const SHARE: usize = 4;

/// Turns for questions.
pub(super) struct Turns {
    all: Semaphore,
    per_domain: usize,
    /// Domains of which somebody asks or waits.
    domains: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// A turn that was taken; the next one may begin when it is dropped.
pub(super) struct Turn<'t> {
    _all: Option<SemaphorePermit<'t>>,
    _domain: Place<'t>,
}

impl Turns {
    pub(super) fn new(most: usize) -> Self {
        let most = most.clamp(1, Semaphore::MAX_PERMITS);
        Self { all: Semaphore::new(most), per_domain: most.div_ceil(SHARE), domains: Mutex::default() }
    }

    /// Waits for a turn, first among those of its domain, so that who waits there keeps nobody else from asking.
    pub(super) async fn take(&self, name: &str) -> Turn<'_> {
        let mut domain = Place::join(self, registrable_domain(name).unwrap_or(name));
        domain.wait().await;
        // Nobody closes them.
        let all = self.all.acquire().await.ok();
        Turn { _all: all, _domain: domain }
    }

    fn domains(&self) -> MutexGuard<'_, HashMap<String, Arc<Semaphore>>> {
        self.domains.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place among those who ask for names of one domain; the last to leave takes the domain off the list.
struct Place<'t> {
    turns: &'t Turns,
    domain: String,
    room: Arc<Semaphore>,
    taken: bool,
}

impl<'t> Place<'t> {
    fn join(turns: &'t Turns, domain: &str) -> Self {
        let mut domains = turns.domains();
        let room = domains.entry(domain.to_owned());
        let room = Arc::clone(room.or_insert_with(|| Arc::new(Semaphore::new(turns.per_domain))));
        Self { turns, domain: domain.to_owned(), room, taken: false }
    }

    async fn wait(&mut self) {
        if let Ok(permit) = self.room.acquire().await {
            permit.forget();
            self.taken = true;
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.taken {
            self.room.add_permits(1);
        }
        let mut domains = self.turns.domains();
        // Joining needs the lock, so nobody joins between counting and removing.
        if Arc::strong_count(&self.room) == 2 {
            domains.remove(&self.domain);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn one_domain_gets_its_share_and_others_the_rest() {
        let turns = Turns::new(8);
        let take = |name: &str| turns.take(name).now_or_never();
        let first = take("a.evil.example");
        let second = take("b.evil.example");
        assert!(first.is_some() && second.is_some());
        assert!(take("c.evil.example").is_none());
        let others: Vec<_> = (0..6).map(|number| take(&format!("h{number}.example"))).collect();
        assert!(others.iter().all(Option::is_some));
        assert!(take("one-more.example").is_none());
        drop(first);
        let third = take("c.evil.example");
        assert!(third.is_some());
        drop((second, third, others));
        assert!(turns.domains().is_empty());
        assert_eq!(turns.all.available_permits(), 8);
    }

    #[test]
    fn even_a_single_turn_can_be_taken() {
        let turns = Turns::new(0);
        assert!(turns.take("a.example").now_or_never().is_some());
    }
}
