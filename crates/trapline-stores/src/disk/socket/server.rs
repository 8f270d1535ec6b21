//! The owner's side: lets others in, each on a thread of its own, and ends them when the store is closed.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::connection::Connection;
use super::room::Room;
use crate::disk::DiskStore;

/// How many may be connected at a time.
pub(super) const CONNECTIONS_MAX: usize = 256;

/// How many bytes all connections together may have under way, beside what each may always have.
const ROOM: usize = 1 << 30;

/// How long a store that is being closed waits for those who are connected to take their answers.
const CLOSING: Duration = Duration::from_secs(10);

/// How long nobody is let in after somebody could not be: for want of file descriptors, as a rule.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Serves a store until it is stopped.
pub(crate) struct Server {
    service: Arc<Service>,
    /// Lets others in.
    doorman: JoinHandle<()>,
    /// Tells the doorman that it is over.
    bell: UnixStream,
}

/// What all connections share.
pub(super) struct Service {
    /// Not kept open by being served.
    pub(super) store: Weak<DiskStore>,
    pub(super) room: Room,
    guests: Mutex<Guests>,
    /// Tells who waits for connections to end that one has.
    left: Condvar,
}

#[derive(Default)]
struct Guests {
    is_closing: bool,
    next: u64,
    present: BTreeMap<u64, Guest>,
}

struct Guest {
    stream: Arc<UnixStream>,
    /// Once it has begun.
    thread: Option<ThreadId>,
}

impl Server {
    /// Begins to let others in.
    pub(super) fn start(listener: UnixListener, store: Weak<DiskStore>) -> io::Result<Self> {
        let (bell, rung) = UnixStream::pair()?;
        let service =
            Service { store, room: Room::new(ROOM), guests: Mutex::default(), left: Condvar::new() };
        let service = Arc::new(service);
        let serving = Arc::clone(&service);
        let doorman = thread::Builder::new()
            .name("trapline-socket".to_owned())
            .spawn(move || serving.let_in(&listener, &rung))?;
        Ok(Self { service, doorman, bell })
    }

    /// Lets nobody in any more, and waits a while until those who are connected have what they have asked for.
    pub(super) fn stop(self) {
        let service = self.close_door();
        let mut guests = service.guests();
        for guest in guests.present.values() {
            // What has been sent by now is still read; what is sent later fails at the sender.
            let _ = guest.stream.shutdown(Shutdown::Read);
        }
        let until = Instant::now() + CLOSING;
        // The store may be dropped by a connection's own thread, if that is the last to have it.
        let this = Some(thread::current().id());
        while guests.present.values().any(|guest| guest.thread != this) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = service.left.wait_timeout(guests, left);
            guests = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        guests.cut_but(this);
    }

    /// Ends at once, as a process does that is killed.
    pub(super) fn cut(self) {
        self.close_door().guests().cut_but(None);
    }

    fn close_door(self) -> Arc<Service> {
        let Self { service, doorman, mut bell } = self;
        service.guests().is_closing = true;
        // It hears the bell, or that the bell is gone.
        let _ = bell.write_all(&[0]);
        drop(bell);
        let _ = doorman.join();
        service
    }
}

impl Guests {
    /// Ends all connections, but not the one of a thread, which has its answer to give.
    fn cut_but(&self, thread: Option<ThreadId>) {
        for guest in self.present.values().filter(|guest| thread.is_none() || guest.thread != thread) {
            let _ = guest.stream.shutdown(Shutdown::Both);
        }
    }
}

impl Service {
    /// Nothing that holds this lock can fail half-way.
    fn guests(&self) -> MutexGuard<'_, Guests> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_closing(&self) -> bool {
        self.guests().is_closing
    }

    /// The doorman's work.
    fn let_in(self: &Arc<Self>, listener: &UnixListener, bell: &UnixStream) {
        loop {
            let mut awaited = [PollFd::new(bell, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
            // Should it fail, accepting says why, or that nobody is there.
            let _ = poll(&mut awaited, None);
            if self.is_closing() {
                return;
            }
            match listener.accept() {
                Ok((stream, _)) => self.welcome(stream),
                Err(error) if is_nobody(&error) => {}
                Err(_) => self.pause(bell),
            }
        }
    }

    /// Waits a little, or for the bell.
    #[expect(clippy::unused_self, reason = "it is the doorman's")]
    fn pause(&self, bell: &UnixStream) {
        let _ = poll(&mut [PollFd::new(bell, PollFlags::IN)], Some(&PAUSE));
    }

    /// Gives a connection a thread, or tells it why it gets none.
    fn welcome(self: &Arc<Self>, stream: UnixStream) {
        let stream = Arc::new(stream);
        let Some(number) = self.enter(&stream) else {
            return Connection::new(Arc::clone(self), stream).turn_away(&format!(
                "{CONNECTIONS_MAX} others are connected, and more are not let in; try again later"
            ));
        };
        let place = Place { service: Arc::clone(self), number };
        let (service, connected) = (Arc::clone(self), Arc::clone(&stream));
        let began = thread::Builder::new().name("trapline-client".to_owned()).spawn(move || {
            place.begin();
            Connection::new(service, connected).run();
        });
        if let Err(error) = began {
            // The place was dropped with what could not begin.
            let why = format!("cannot begin a thread: {error}; try again later");
            Connection::new(Arc::clone(self), stream).turn_away(&why);
        }
    }

    fn enter(&self, stream: &Arc<UnixStream>) -> Option<u64> {
        let mut guests = self.guests();
        if guests.present.len() >= CONNECTIONS_MAX {
            return None;
        }
        let number = guests.next;
        guests.next += 1;
        guests.present.insert(number, Guest { stream: Arc::clone(stream), thread: None });
        Some(number)
    }
}

fn is_nobody(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted | ConnectionAborted)
}

/// A connection's place among those that are present, given back whatever becomes of its thread.
struct Place {
    service: Arc<Service>,
    number: u64,
}

impl Place {
    fn begin(&self) {
        if let Some(guest) = self.service.guests().present.get_mut(&self.number) {
            guest.thread = Some(thread::current().id());
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.service.guests().present.remove(&self.number);
        self.service.left.notify_all();
    }
}
