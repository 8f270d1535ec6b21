//! A store that several processes work on at once: the first owns and serves it, the others go through its socket, and when
//! the owner ends one of them takes over.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use trapline_core::{Candidate, Timestamp};
use trapline_frontier::{
    Admission, Claimed, ErrorKind, Page, Recovered, Scan, Settled, Settlement, Stats, Steer, Steered, Store,
    StoreError, Want,
};

use super::answer::Answer;
use super::client::{NoAnswer, NoConnection, SocketStore};
use super::request::Asked;
use crate::disk::{DiskOptions, DiskStore};

/// How long a folder may be held without being served, before that is taken for its owner's way. An owner that is just
/// beginning or ending needs a moment.
const GRACE: Duration = Duration::from_secs(2);

/// How long to wait before looking again.
const PAUSE: Duration = Duration::from_millis(20);

/// How many owners may end while they are being connected to.
const LEFT_MAX: u32 = 100;

/// A disk store whoever owns it: this process if nobody does, serving others as long as it is used; else through the socket of
/// the process that does.
///
/// When the owner closes its store, calls wait until another process has taken over, perhaps this one, and go on. When the
/// owner dies in the middle of a call, that call answers [`ErrorKind::Unavailable`], because nobody knows whether it was
/// done; later ones go on.
///
/// The owner's options hold for all: see [`Stats::durability`].
pub struct SharedStore {
    path: PathBuf,
    options: DiskOptions,
    role: Mutex<Role>,
}

/// What this process is to the store at present.
#[derive(Clone)]
enum Role {
    Owner(Arc<DiskStore>),
    Guest(Arc<SocketStore>),
}

impl SharedStore {
    /// Opens the store in a folder, or connects to the process that has it open.
    ///
    /// # Errors
    /// As [`DiskStore::open`]: also if another process holds the folder and does not serve it.
    pub fn open(path: impl Into<PathBuf>, options: DiskOptions) -> Result<Self, StoreError> {
        let path = path.into();
        let role = Mutex::new(join(&path, &options)?);
        Ok(Self { path, options, role })
    }

    /// Whether this process owns the folder at present.
    pub fn is_owner(&self) -> bool {
        matches!(self.role(), Role::Owner(_))
    }

    /// What was found when this process opened the store, if it owns it.
    pub fn recovered(&self) -> Option<Recovered> {
        self.owner().map(|store| store.recovered().0)
    }

    fn role(&self) -> Role {
        self.role.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn owner(&self) -> Option<Arc<DiskStore>> {
        match self.role() {
            Role::Owner(store) => Some(store),
            Role::Guest(_) => None,
        }
    }

    /// Finds the owner that follows one that is gone; others wait meanwhile.
    fn rejoin(&self, gone: &Arc<SocketStore>) -> Result<(), StoreError> {
        let mut role = self.role.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(&*role, Role::Guest(socket) if Arc::ptr_eq(socket, gone)) {
            *role = join(&self.path, &self.options)?;
        }
        Ok(())
    }

    /// Asks whoever owns the store.
    async fn ask(&self, asked: &Asked) -> Result<Answer, StoreError> {
        loop {
            let socket = match self.role() {
                Role::Guest(socket) => socket,
                // It has become so since it was asked.
                Role::Owner(store) => {
                    let request = asked.request().map_err(|error| {
                        let message = format!("disk store: cannot {}: {error}", asked.attempted);
                        StoreError::new(ErrorKind::Invalid, message)
                    })?;
                    return request.perform(&*store).await;
                }
            };
            match socket.call(asked) {
                Err(NoAnswer::NotDone(_)) => self.rejoin(&socket)?,
                answered => return Ok(answered?),
            }
        }
    }
}

impl Drop for SharedStore {
    fn drop(&mut self) {
        // Not left to whoever is the last to have the store: that may be a thread that serves, which would end with the
        // process, in the middle of it.
        if let Some(store) = self.owner() {
            let _ = store.close();
        }
    }
}

/// Opens the store of a folder, or connects to the process that has it open.
fn join(path: &Path, options: &DiskOptions) -> Result<Role, StoreError> {
    let mut until = Instant::now() + GRACE;
    let mut left = 0;
    loop {
        let held = match DiskStore::serve_unless_held(path, options)? {
            Ok(store) => return Ok(Role::Owner(store)),
            Err(held) => held,
        };
        match SocketStore::try_connect(path) {
            Ok(socket) => return Ok(Role::Guest(Arc::new(socket))),
            Err(NoConnection::Trouble(error)) => return Err(error),
            Err(NoConnection::Nobody(_)) if Instant::now() >= until => return Err(held),
            Err(NoConnection::Nobody(_)) => {}
            // It is served, and the next owner may need its moment too.
            Err(NoConnection::Left) if left < LEFT_MAX => {
                left += 1;
                until = Instant::now() + GRACE;
            }
            Err(NoConnection::Left) => return Err(held),
        }
        pause();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "another process tells nobody when it begins or ends to hold a folder"
)]
fn pause() {
    std::thread::sleep(PAUSE);
}

#[async_trait]
impl Store for SharedStore {
    async fn admit(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: &[Candidate],
    ) -> Result<Vec<Admission>, StoreError> {
        if let Some(store) = self.owner() {
            return store.admit(crawl, now, batch).await;
        }
        self.ask(&Asked::admit(crawl, now, batch)).await?.admitted()
    }

    async fn claim(&self, crawl: Option<&str>, now: Timestamp, want: &Want) -> Result<Claimed, StoreError> {
        if let Some(store) = self.owner() {
            return store.claim(crawl, now, want).await;
        }
        self.ask(&Asked::claim(crawl, now, want)).await?.claimed()
    }

    async fn settle(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: Vec<Settlement>,
    ) -> Result<Vec<Settled>, StoreError> {
        if let Some(store) = self.owner() {
            return store.settle(crawl, now, batch).await;
        }
        self.ask(&Asked::settle(crawl, now, &batch)).await?.settled()
    }

    async fn steer(&self, crawl: &str, now: Timestamp, steer: Steer) -> Result<Steered, StoreError> {
        if let Some(store) = self.owner() {
            return store.steer(crawl, now, steer).await;
        }
        self.ask(&Asked::steer(crawl, now, &steer)).await?.steered()
    }

    async fn scan(&self, crawl: &str, now: Timestamp, scan: &Scan) -> Result<Page, StoreError> {
        if let Some(store) = self.owner() {
            return store.scan(crawl, now, scan).await;
        }
        self.ask(&Asked::scan(crawl, now, scan)).await?.page()
    }

    async fn stats(&self, crawl: &str, now: Timestamp) -> Result<Stats, StoreError> {
        if let Some(store) = self.owner() {
            return store.stats(crawl, now).await;
        }
        self.ask(&Asked::stats(crawl, now)).await?.stats()
    }

    async fn flush(&self) -> Result<(), StoreError> {
        if let Some(store) = self.owner() {
            return store.flush().await;
        }
        self.ask(&Asked::flush()).await?.flushed()
    }
}
