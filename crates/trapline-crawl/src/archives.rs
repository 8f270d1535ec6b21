//! The archives of a crawl, and what happens while one of them cannot keep anything: nothing new is fetched, what has come waits and
//! is offered again and again, and somebody is told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::fetch::{Verdict, Visit};
use crate::ports::{Archive, World};
use crate::tally::{Tally, Trouble};

/// How long an archive in trouble is left alone, at first and at most.
const WAIT: Duration = Duration::from_millis(200);
const WAIT_MAX: Duration = Duration::from_secs(10);

/// In which chain an archive stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArchivePlace {
    /// In the fetch chain, behind `extract`: a page is kept before anybody decides what becomes of it.
    Fetch,
    /// In the disposition chain, behind `outcome`.
    #[default]
    Disposition,
}

/// What all archives of a crawl share: the troubles that there are.
pub(crate) struct Hold {
    /// By archive.
    troubles: Mutex<BTreeMap<String, Trouble>>,
    tally: Arc<Mutex<Tally>>,
    /// An archive can keep things again.
    mended: Notify,
    /// The crawl is to end: nobody waits for an archive any more.
    ending: watch::Sender<bool>,
}

impl Hold {
    pub(crate) fn new(tally: Arc<Mutex<Tally>>) -> Self {
        Self { troubles: Mutex::default(), tally, mended: Notify::new(), ending: watch::channel(false).0 }
    }

    /// Whether an archive is in trouble, so that nothing is to be fetched.
    pub(crate) fn is_on(&self) -> bool {
        !self.troubles.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// What waits for an archive goes back to its place.
    pub(crate) fn give_up(&self) {
        self.ending.send_if_modified(|ending| !std::mem::replace(ending, true));
    }

    /// The crawl goes on with other options, and may not be about to end any more.
    pub(crate) fn begin_anew(&self) {
        self.ending.send_if_modified(|ending| std::mem::replace(ending, false));
    }

    /// Whatever was wrong is to be found out anew.
    pub(crate) fn forget(&self) {
        let mut troubles = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        if !troubles.is_empty() {
            troubles.clear();
            self.tally.lock().unwrap_or_else(PoisonError::into_inner).archive_trouble = None;
        }
    }

    /// The trouble of an archive, or that it has none.
    fn set(&self, archive: &str, trouble: Option<Trouble>) {
        let mut troubles = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        match trouble {
            Some(Trouble { since, why }) => {
                let known = troubles.entry(archive.to_owned());
                let known = known.and_modify(|known| known.why.clone_from(&why));
                known.or_insert_with(|| {
                    tracing::warn!(archive, error = why, "the crawl is paused: an archive cannot keep pages");
                    Trouble { since, why }
                });
            }
            None if troubles.remove(archive).is_some() => {
                tracing::info!(archive, "the archive keeps pages again");
                self.mended.notify_waiters();
            }
            None => return,
        }
        let first = troubles.iter().next();
        let told = first.map(|(archive, Trouble { since, why })| {
            let why = format!("the archive {archive} cannot keep pages: {why}");
            Trouble { since: *since, why }
        });
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).archive_trouble = told;
    }
}

/// The archives that stand in one chain.
pub(crate) struct Archives {
    pub(crate) all: Vec<Arc<dyn Archive>>,
    pub(crate) world: Arc<dyn World>,
    pub(crate) hold: Arc<Hold>,
}

impl Archives {
    /// Keeps a visit in all of them, however long it takes. If the crawl ends before, the visit is to be repeated, and the answer is no.
    pub(crate) async fn keep(&self, visit: &mut Visit) -> bool {
        if visit.response.as_ref().is_none_or(|response| response.status.is_none()) {
            return true;
        }
        for archive in &self.all {
            match self.keep_in(&**archive, visit).await {
                Some(place) => visit.archived.extend(place),
                None => {
                    visit.verdict = Some(Verdict::Release { asked: true });
                    return false;
                }
            }
        }
        true
    }

    async fn keep_in(&self, archive: &dyn Archive, visit: &Visit) -> Option<Option<String>> {
        let mut ending = self.hold.ending.subscribe();
        let mut wait = WAIT;
        loop {
            let mended = self.hold.mended.notified();
            match archive.keep(visit).await {
                Ok(place) => {
                    self.hold.set(archive.name(), None);
                    return Some(place);
                }
                Err(error) => {
                    let trouble = Trouble { since: self.world.now(), why: error.to_string() };
                    self.hold.set(archive.name(), Some(trouble));
                }
            }
            tokio::select! {
                biased;
                _ = ending.wait_for(|ending| *ending) => return None,
                () = mended => wait = WAIT,
                () = self.world.sleep_until(self.world.now() + wait) => wait = (wait * 2).min(WAIT_MAX),
            }
        }
    }
}
