//! The socket of a store's folder: through it other processes work on a store that one process owns.
//!
//! Each side first says which version of the protocol it speaks ([`hello`]). Then the client asks and the server answers,
//! one frame each ([`frame`]), one at a time on a connection. Whoever wants several things at once opens several connections:
//! each has a thread of its own at the owner, so their commands share syncs as those of its own threads do.
//!
//! Only the owner's user can connect, and that user could as well stop the owner or change its files. So the bounds here are
//! meant for mistakes, not for enemies: whatever comes through the socket, the connection it came by is the only one that
//! ends. Not here: what the verbs do, and how they are written as bytes (`message`).

mod address;
mod answer;
mod client;
mod connection;
mod frame;
mod hello;
mod listening;
mod request;
mod room;
mod server;
mod shared;

use std::path::Path;
use std::sync::{Arc, PoisonError};

use trapline_frontier::{ErrorKind, StoreError};

use super::files::{Files, Folder};
use super::folder::{self, Hold};
use super::{DiskOptions, DiskStore};

pub(crate) use address::SOCKET;
pub(crate) use listening::Listening;
pub(crate) use server::Server;

pub use client::SocketStore;
pub use shared::SharedStore;

impl DiskStore {
    /// Opens the store in a folder as [`DiskStore::open`] does, and serves it to other processes through the socket in that
    /// folder until it is closed. They use it as a [`SocketStore`] or a [`SharedStore`].
    ///
    /// They can connect from the beginning, and wait while the log is replayed. When the store is closed, what they have
    /// asked by then is answered first.
    ///
    /// # Errors
    /// As [`DiskStore::open`], and if the socket cannot be made.
    pub fn serve(path: impl AsRef<Path>, options: &DiskOptions) -> Result<Arc<Self>, StoreError> {
        Self::serve_unless_held(path.as_ref(), options)?
    }

    /// As [`DiskStore::serve`]; the inner error is that another process holds the folder, and by which.
    fn serve_unless_held(
        path: &Path,
        options: &DiskOptions,
    ) -> Result<Result<Arc<Self>, StoreError>, StoreError> {
        let cannot = |error| {
            let message = format!("disk store: cannot serve `{}`: {error}", path.display());
            StoreError::new(ErrorKind::Unavailable, message)
        };
        let mut held = match folder::hold_or_holder(path)? {
            Hold::Ours(held) => held,
            Hold::Theirs(error) => return Ok(Err(error)),
        };
        let listener = held.listen().map_err(cannot)?;
        let files: Arc<dyn Files> = Arc::new(Folder::new(path.join(folder::SEGMENTS)));
        let store =
            Arc::new(Self::open_held(&files, options, Some(held), &crate::planted::Planted::default())?);
        let server = Server::start(listener, Arc::downgrade(&store)).map_err(cannot)?;
        *store.server.lock().unwrap_or_else(PoisonError::into_inner) = Some(server);
        Ok(Ok(store))
    }

    /// Ends serving; those who are connected get what they have asked for first, within bounds.
    pub(super) fn stop_serving(&self) {
        if let Some(server) = self.take_server() {
            server.stop();
        }
    }

    /// Ends serving as if the process had died.
    pub(super) fn cut_serving(&self) {
        if let Some(server) = self.take_server() {
            server.cut();
        }
    }

    fn take_server(&self) -> Option<Server> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
