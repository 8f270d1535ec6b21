//! A server's stand-in that passes everything on, and at the next `COMMIT` does what networks do at the worst moment.
//!
//! It reads the messages of clients, as far as it must to know a `COMMIT`, and nothing of what the server answers but its end.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What happens to the next `COMMIT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The connection is cut before the server hears of it.
    Unheard,
    /// The connection is cut when the server has done it and says so.
    Unanswered,
    /// It stays on its way until [`Proxy::let_go`] or [`Proxy::cut`].
    Held,
}

/// Stands before a server on 127.0.0.1, on a port of its own.
pub(super) struct Proxy {
    port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    step: Mutex<Step>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    #[default]
    Idle,
    /// After so many more.
    Armed(Fault, usize),
    /// A `COMMIT` is held.
    Holding,
    Released,
    Cut,
    /// The fault has happened.
    Struck,
}

impl Proxy {
    /// Stands before the server on this port, for as long as the process runs.
    pub(super) fn before(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let port = listener.local_addr().expect("it has an address").port();
        let state = Arc::new(State::default());
        let of_all = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // Nobody there: the client finds its connection closed.
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                carry(&client, &server, &of_all);
            }
        });
        Self { port, state }
    }

    /// The URL that leads through it.
    pub(super) fn url(&self, direct: &str) -> String {
        let (start, rest) = direct.split_once("@127.0.0.1:").expect("a URL of a test server");
        let (_, database) = rest.split_once('/').expect("a URL of a test server");
        let joint = if database.contains('?') { '&' } else { '?' };
        format!("{start}@127.0.0.1:{}/{database}{joint}sslmode=disable", self.port)
    }

    /// The next `COMMIT` meets this fault.
    pub(super) fn arm(&self, fault: Fault) {
        self.arm_after(0, fault);
    }

    /// The `COMMIT` after the next so many meets this fault.
    pub(super) fn arm_after(&self, commits: usize, fault: Fault) {
        *self.state.step() = Step::Armed(fault, commits);
    }

    /// Whether the fault has happened.
    pub(super) fn has_struck(&self) -> bool {
        *self.state.step() == Step::Struck
    }

    /// Waits until a `COMMIT` is held.
    pub(super) fn wait_until_held(&self) {
        self.state.wait_while(|step| step != Step::Holding);
    }

    /// Passes the held `COMMIT` on.
    pub(super) fn let_go(&self) {
        self.state.change(Step::Released);
    }

    /// Cuts the connection of the held `COMMIT`, which nobody hears.
    pub(super) fn cut(&self) {
        self.state.change(Step::Cut);
    }
}

impl State {
    fn step(&self) -> MutexGuard<'_, Step> {
        self.step.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, to: Step) {
        *self.step() = to;
        self.changed.notify_all();
    }

    fn wait_while(&self, is_to_wait: impl Fn(Step) -> bool) -> Step {
        let waited = self.changed.wait_while(self.step(), |step| is_to_wait(*step));
        *waited.unwrap_or_else(PoisonError::into_inner)
    }

    /// Meets a `COMMIT`. Answers the fault, if it is this one's; a held one comes back when it is let go or cut.
    fn meet(&self) -> Option<Fault> {
        let mut step = self.step();
        let Step::Armed(fault, before) = *step else { return None };
        if before > 0 {
            *step = Step::Armed(fault, before - 1);
            return None;
        }
        if fault != Fault::Held {
            *step = Step::Struck;
            return Some(fault);
        }
        drop(step);
        self.change(Step::Holding);
        let how = self.wait_while(|step| step == Step::Holding);
        self.change(Step::Struck);
        (how == Step::Cut).then_some(Fault::Unheard)
    }
}

/// Carries messages both ways until one side ends.
fn carry(client: &TcpStream, server: &TcpStream, state: &Arc<State>) {
    // Small messages are not to wait for more.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let deaf = Arc::new(AtomicBool::new(false));
    let both = || (client.try_clone().expect("a second end"), server.try_clone().expect("a second end"));
    let ((from, to), state, to_be_deaf) = (both(), Arc::clone(state), Arc::clone(&deaf));
    std::thread::spawn(move || {
        carry_questions(&from, &to, &state, &to_be_deaf);
        cut(&from, &to);
    });
    let (to, from) = both();
    std::thread::spawn(move || {
        carry_answers(&from, &to, &deaf);
        cut(&from, &to);
    });
}

/// Either may be closed already.
fn cut(one: &TcpStream, other: &TcpStream) {
    let _ = (one.shutdown(Shutdown::Both), other.shutdown(Shutdown::Both));
}

fn carry_questions(mut from: &TcpStream, mut to: &TcpStream, state: &State, deaf: &AtomicBool) {
    let mut had = Vec::new();
    let mut is_first = true;
    let mut part = [0; 16 * 1024];
    while let Ok(read) = from.read(&mut part)
        && read > 0
    {
        had.extend_from_slice(&part[..read]);
        while let Some(length) = message_length(&had, is_first) {
            let message: Vec<u8> = had.drain(..length).collect();
            if !is_first && message[0] == b'Q' && message[5..].eq_ignore_ascii_case(b"COMMIT\0") {
                match state.meet() {
                    Some(Fault::Unheard) => return,
                    Some(_) => deaf.store(true, Ordering::Release),
                    None => {}
                }
            }
            is_first = false;
            if to.write_all(&message).is_err() {
                return;
            }
        }
    }
}

/// How long the first message in the buffer is, once it is there as a whole: a letter, but for the very first one, and the length
/// of the rest.
fn message_length(had: &[u8], is_first: bool) -> Option<usize> {
    let before = usize::from(!is_first);
    let length: [u8; 4] = had.get(before..before + 4)?.try_into().expect("four of them");
    let whole = before + u32::from_be_bytes(length) as usize;
    (had.len() >= whole).then_some(whole)
}

fn carry_answers(mut from: &TcpStream, mut to: &TcpStream, deaf: &AtomicBool) {
    let mut withheld = Vec::new();
    let mut part = [0; 16 * 1024];
    while let Ok(read) = from.read(&mut part)
        && read > 0
    {
        if deaf.load(Ordering::Acquire) {
            withheld.extend_from_slice(&part[..read]);
            if withheld.windows(7).any(|bytes| bytes == b"COMMIT\0") {
                return;
            }
        } else if to.write_all(&part[..read]).is_err() {
            return;
        }
    }
}
