//! The other side: a store that is in another process, which owns its folder and serves it.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use trapline_core::{Candidate, Timestamp};
use trapline_frontier::{
    Admission, Claimed, ErrorKind, Page, Scan, Settled, Settlement, Stats, Steer, Steered, Store, StoreError,
    Want,
};

use super::address::SocketAddress;
use super::answer::{Answer, Reply};
use super::frame::{self, FRAME_BYTES_MAX};
use super::hello::{self, Hello, VERSION};
use super::request::Asked;
use crate::disk::folder;

/// How many connections one store opens; further calls wait for one.
const CONNECTIONS_MAX: usize = 16;

/// How long a server that takes nothing more is given to say why.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// A disk store that another process owns and serves, through the socket in its folder.
///
/// Calls block the thread they are made on, as do those of a disk store that writes. Those of several threads go over
/// connections of their own, and share syncs at the owner. When the owner closes its store or dies, calls answer
/// [`ErrorKind::Unavailable`] until it, or another owner, serves the folder again. A [`SharedStore`](super::SharedStore) goes on
/// by itself.
///
/// An answer promises what the owner's durability does.
pub struct SocketStore {
    /// As it was named, for messages.
    name: PathBuf,
    /// As it is found from everywhere.
    folder: PathBuf,
    pool: Mutex<Pool>,
    /// Tells who waits for a connection that one is free.
    freed: Condvar,
}

#[derive(Default)]
struct Pool {
    idle: Vec<UnixStream>,
    /// How many there are, the idle ones among them.
    open: usize,
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum NoConnection {
    /// There is no socket, or nobody listens to it.
    Nobody(io::Error),
    /// The owner ended before it said anything.
    Left,
    Trouble(StoreError),
}

/// Why a call has no answer.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// The owner said so, or the call itself is wrong.
    Error(StoreError),
    /// The owner is gone, and has certainly not done it.
    NotDone(StoreError),
    /// The owner is gone, and may have done it.
    Unknown(StoreError),
}

impl From<NoAnswer> for StoreError {
    fn from(no_answer: NoAnswer) -> Self {
        match no_answer {
            NoAnswer::Error(error) | NoAnswer::NotDone(error) | NoAnswer::Unknown(error) => error,
        }
    }
}

impl SocketStore {
    /// Connects to the process that owns a store's folder. While that one is still opening it, waits.
    ///
    /// # Errors
    /// If nobody serves the folder, or it is served by another version of Trapline that cannot be understood.
    pub fn connect(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        Self::try_connect(path).map_err(|none| {
            let why = match none {
                NoConnection::Trouble(error) => return error,
                NoConnection::Nobody(error) => format!("nobody serves it ({error})"),
                NoConnection::Left => "who served it has just ended".to_owned(),
            };
            StoreError::new(
                ErrorKind::Unavailable,
                format!(
                    "disk store: cannot connect to `{}`: {why}; open it instead, or start its owner",
                    path.display()
                ),
            )
        })
    }

    pub(super) fn try_connect(path: &Path) -> Result<Self, NoConnection> {
        let folder = path.canonicalize().map_err(NoConnection::Nobody)?;
        let store = Self { name: path.to_owned(), folder, pool: Mutex::default(), freed: Condvar::new() };
        let stream = store.dial()?;
        *store.pool() = Pool { idle: vec![stream], open: 1 };
        Ok(store)
    }

    fn dial(&self) -> Result<UnixStream, NoConnection> {
        let trouble = |why: &dyn std::fmt::Display| {
            let message = format!("disk store: cannot connect to `{}`: {why}", self.name.display());
            StoreError::new(ErrorKind::Unavailable, message)
        };
        let address =
            SocketAddress::of(&self.folder).map_err(|error| NoConnection::Trouble(trouble(&error)))?;
        let stream = UnixStream::connect(address.path()).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => NoConnection::Nobody(error),
            _ => NoConnection::Trouble(trouble(&error)),
        })?;
        // Whatever ends the connection here, nothing was asked yet. An owner that takes nobody in may have ended it already, and
        // said why: that is read with the first answer.
        let _ = hello::write(&stream);
        match hello::read(&stream).map_err(|_| NoConnection::Left)? {
            Hello::Version(VERSION) => Ok(stream),
            Hello::Version(theirs) => Err(NoConnection::Trouble(StoreError::of_operators(
                ErrorKind::Unsupported,
                format!(
                    "disk store: cannot connect to `{}`: {} holds it and speaks version {theirs} of the socket's language, and \
                     this is version {VERSION}; use one version of Trapline for both",
                    self.name.display(),
                    folder::holder(&self.folder),
                ),
            ))),
            Hello::Stranger => Err(NoConnection::Trouble(trouble(
                &"what listens at its socket is not Trapline; look who holds the folder",
            ))),
        }
    }

    /// Nothing that holds this lock can fail half-way.
    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks, and waits for the answer.
    pub(super) fn call(&self, asked: &Asked) -> Result<Answer, NoAnswer> {
        if !frame::fits(&asked.bytes) {
            let message = format!(
                "disk store: cannot {}: the batch has {} bytes, and at most {FRAME_BYTES_MAX} go through the socket; nothing \
                 was done: send it in parts",
                asked.attempted,
                asked.bytes.len()
            );
            return Err(NoAnswer::Error(StoreError::new(ErrorKind::Invalid, message)));
        }
        let mut line = Line::take(self);
        loop {
            let is_old = line.stream.is_some();
            let stream = match line.stream.take() {
                Some(stream) => stream,
                None => self.dial().map_err(|none| self.not_done(asked, none))?,
            };
            match exchange(&stream, asked) {
                Ok(Reply::Answer(answer)) => {
                    line.stream = Some(stream);
                    return Ok(answer);
                }
                Ok(Reply::Error(error)) => {
                    line.stream = Some(stream);
                    return Err(NoAnswer::Error(error));
                }
                Ok(Reply::Refused(error)) => return Err(NoAnswer::Error(error)),
                // A connection that was idle may be one to an earlier owner.
                Ok(Reply::Goodbye) | Err(Break::NotSent) if is_old => self.pool().forget_idle(),
                Ok(Reply::Goodbye) | Err(Break::NotSent) => {
                    return Err(self.not_done(asked, NoConnection::Left));
                }
                Err(Break::NotAnswered(why)) => return Err(self.unknown(asked, &why)),
            }
        }
    }

    fn not_done(&self, asked: &Asked, none: NoConnection) -> NoAnswer {
        let why = match none {
            NoConnection::Trouble(error) => return NoAnswer::Error(error),
            NoConnection::Nobody(error) => format!("nobody serves it any more ({error})"),
            NoConnection::Left => "who served it has ended".to_owned(),
        };
        NoAnswer::NotDone(StoreError::new(
            ErrorKind::Unavailable,
            format!(
                "disk store: cannot {} in `{}`: {why}; nothing was done: start its owner, then try again",
                asked.attempted,
                self.name.display()
            ),
        ))
    }

    fn unknown(&self, asked: &Asked, why: &str) -> NoAnswer {
        NoAnswer::Unknown(StoreError::new(
            ErrorKind::Unavailable,
            format!(
                "disk store: cannot {} in `{}` for certain: {why}; the outcome is unknown: it was done as a whole or not at all, \
                 so look before you try again",
                asked.attempted,
                self.name.display()
            ),
        ))
    }
}

impl Pool {
    fn forget_idle(&mut self) {
        self.open -= self.idle.len();
        self.idle.clear();
    }
}

/// The right to use one connection; it goes back to the pool if there is one.
struct Line<'a> {
    store: &'a SocketStore,
    stream: Option<UnixStream>,
}

impl<'a> Line<'a> {
    fn take(store: &'a SocketStore) -> Self {
        let mut pool = store.pool();
        loop {
            if let Some(stream) = pool.idle.pop() {
                return Self { store, stream: Some(stream) };
            }
            if pool.open < CONNECTIONS_MAX {
                pool.open += 1;
                return Self { store, stream: None };
            }
            pool = store.freed.wait(pool).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        let mut pool = self.store.pool();
        match self.stream.take() {
            Some(stream) => pool.idle.push(stream),
            None => pool.open -= 1,
        }
        drop(pool);
        self.store.freed.notify_one();
    }
}

/// How a connection broke.
enum Break {
    /// The owner cannot have got the whole of what was asked.
    NotSent,
    NotAnswered(String),
}

fn exchange(stream: &UnixStream, asked: &Asked) -> Result<Reply, Break> {
    if frame::write(stream, &asked.bytes, None).is_err() {
        let _ = stream.set_read_timeout(Some(LAST_WORDS));
        // Having ended, the owner may have said why.
        return match frame::read(stream, None, None) {
            Ok(Some(frame)) => match Reply::read(&frame) {
                Ok(reply @ (Reply::Refused(_) | Reply::Goodbye)) => Ok(reply),
                _ => Err(Break::NotSent),
            },
            _ => Err(Break::NotSent),
        };
    }
    match frame::read(stream, None, None) {
        Ok(Some(frame)) => Reply::read(&frame)
            .map_err(|error| Break::NotAnswered(format!("the answer cannot be read: {error}"))),
        Ok(None) => Err(Break::NotAnswered("its owner went away before it answered".to_owned())),
        Err(bad) => Err(Break::NotAnswered(format!("its owner went away before it answered ({bad})"))),
    }
}

#[async_trait]
impl Store for SocketStore {
    async fn admit(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: &[Candidate],
    ) -> Result<Vec<Admission>, StoreError> {
        self.call(&Asked::admit(crawl, now, batch))?.admitted()
    }

    async fn claim(&self, crawl: Option<&str>, now: Timestamp, want: &Want) -> Result<Claimed, StoreError> {
        self.call(&Asked::claim(crawl, now, want))?.claimed()
    }

    async fn settle(
        &self,
        crawl: &str,
        now: Timestamp,
        batch: Vec<Settlement>,
    ) -> Result<Vec<Settled>, StoreError> {
        self.call(&Asked::settle(crawl, now, &batch))?.settled()
    }

    async fn steer(&self, crawl: &str, now: Timestamp, steer: Steer) -> Result<Steered, StoreError> {
        self.call(&Asked::steer(crawl, now, &steer))?.steered()
    }

    async fn scan(&self, crawl: &str, now: Timestamp, scan: &Scan) -> Result<Page, StoreError> {
        self.call(&Asked::scan(crawl, now, scan))?.page()
    }

    async fn stats(&self, crawl: &str, now: Timestamp) -> Result<Stats, StoreError> {
        self.call(&Asked::stats(crawl, now))?.stats()
    }

    async fn flush(&self) -> Result<(), StoreError> {
        self.call(&Asked::flush())?.flushed()
    }
}
