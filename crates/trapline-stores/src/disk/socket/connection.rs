//! One connection at the owner's side: reads what is asked, has it done, and answers.
//!
//! Whatever comes, this connection is the only one that ends by it.

use std::fmt;
use std::io::{self, Read};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use trapline_core::Timestamp;
use trapline_frontier::{Claimed, ErrorKind, Outcome, Settlement, Store, StoreError};

use super::answer::{self, Answer};
use super::frame::{self, BadFrame, FRAME_BYTES_MAX, Frame};
use super::hello::{self, Hello, VERSION};
use super::request::Request;
use super::room::Share;
use super::server::Service;
use crate::disk::DiskStore;

/// How long a frame that has begun may take to come to its end, and an answer to be taken.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long the hello may take.
const HELLO_PATIENCE: Duration = Duration::from_secs(10);

/// How long somebody is told why there is no place for them.
const TURN_AWAY_PATIENCE: Duration = Duration::from_millis(100);

/// How long, and how much, somebody is heard out who was refused.
const LAST_WORDS_PATIENCE: Duration = Duration::from_millis(200);
const LAST_WORDS_BYTES: u64 = 16 << 20;

pub(super) struct Connection {
    service: Arc<Service>,
    stream: Arc<UnixStream>,
}

impl Connection {
    pub(super) fn new(service: Arc<Service>, stream: Arc<UnixStream>) -> Self {
        Self { service, stream }
    }

    /// Says why nothing will be done, and ends. Never takes long.
    pub(super) fn turn_away(&self, why: &str) {
        let _ = self.stream.set_nonblocking(false);
        let _ = self.stream.set_write_timeout(Some(TURN_AWAY_PATIENCE));
        let _ = hello::write(&*self.stream);
        self.refuse(ErrorKind::Unavailable, &why);
    }

    /// Answers until one of the two sides ends.
    pub(super) fn run(&self) {
        let is_set = self.stream.set_nonblocking(false).is_ok()
            && self.stream.set_write_timeout(Some(PATIENCE)).is_ok()
            && self.stream.set_read_timeout(Some(HELLO_PATIENCE)).is_ok();
        if !is_set || !self.greet() {
            return;
        }
        let patience = Some(PATIENCE);
        loop {
            let mut share = self.service.room.share();
            match frame::read(&self.stream, patience, Some(&mut share)) {
                Ok(Some(frame)) => {
                    let Some(bytes) = self.answer(frame, &mut share) else { return };
                    if frame::write(&self.stream, &bytes, patience).is_err() {
                        return;
                    }
                }
                Ok(None) | Err(BadFrame::Half) => return self.part(),
                Err(bad @ BadFrame::NoRoom) => return self.refuse_gently(ErrorKind::Unavailable, &bad),
                Err(bad) => return self.refuse_gently(ErrorKind::Invalid, &bad),
            }
        }
    }

    fn greet(&self) -> bool {
        let theirs = hello::read(&*self.stream);
        if hello::write(&*self.stream).is_err() {
            return false;
        }
        match theirs {
            Ok(Hello::Version(VERSION)) => return true,
            Ok(Hello::Version(theirs)) => self.refuse_gently(
                ErrorKind::Unsupported,
                &format_args!(
                    "the owner speaks version {VERSION} of the socket's language, and the other side version {theirs}; use one \
                     version of Trapline for both"
                ),
            ),
            Ok(Hello::Stranger) => {
                self.refuse_gently(ErrorKind::Invalid, &"the other side does not speak the language of Trapline's sockets");
            }
            Err(_) => self.part(),
        }
        false
    }

    /// The bytes of the answer to a frame; None if the connection is over.
    fn answer(&self, frame: Frame, share: &mut Share<'_>) -> Option<Vec<u8>> {
        let request = match Request::read(&frame) {
            Ok(request) => request,
            Err(error) => {
                self.refuse_gently(
                    ErrorKind::Invalid,
                    &format_args!("what was asked cannot be read: {error}"),
                );
                return None;
            }
        };
        drop(frame);
        let Some(store) = self.service.store.upgrade() else {
            // It is being dropped, and may not have come to closing yet.
            self.say_goodbye();
            return None;
        };
        let now = request.now();
        let answered = pollster::block_on(request.perform(&*store));
        Some(match answered {
            Ok(answer) => bound(&store, now, &answer, share),
            Err(error) => answer::error(&error),
        })
    }

    fn refuse(&self, kind: ErrorKind, why: &dyn fmt::Display) {
        let message = format!("disk store: cannot go on through the socket: {why}");
        let _ = frame::write(&self.stream, &answer::refused(kind, message), Some(PATIENCE));
    }

    /// As [`Connection::refuse`], and hears the other side out for a moment: who is cut off while it still sends may miss
    /// what it was told.
    fn refuse_gently(&self, kind: ErrorKind, why: &dyn fmt::Display) {
        self.refuse(kind, why);
        let _ = self.stream.shutdown(Shutdown::Write);
        let _ = self.stream.set_read_timeout(Some(LAST_WORDS_PATIENCE));
        let mut rest = (&*self.stream).take(LAST_WORDS_BYTES);
        let _ = io::copy(&mut rest, &mut io::sink());
    }

    /// Ends a connection on which nothing is under way.
    fn part(&self) {
        if self.service.is_closing() {
            self.say_goodbye();
        }
    }

    fn say_goodbye(&self) {
        let _ = frame::write(&self.stream, &answer::goodbye(), Some(PATIENCE));
    }
}

/// The bytes of an answer. Where it is too large, an error, and what it would have handed out is taken back.
fn bound(store: &DiskStore, now: Timestamp, answer: &Answer, share: &mut Share<'_>) -> Vec<u8> {
    let bytes = answer.bytes();
    let is_small = frame::fits(&bytes);
    // Other answers are never larger than what they answer.
    let can_be_large = matches!(answer, Answer::Claimed(_) | Answer::Page(_));
    if is_small && (!can_be_large || share.grow_to(bytes.len())) {
        return bytes;
    }
    let (kind, why) = if is_small {
        (ErrorKind::Unavailable, "too much is being sent to all together; try again later".to_owned())
    } else {
        let size = bytes.len();
        let why = format!(
            "the answer has {size} bytes, and at most {FRAME_BYTES_MAX} go through the socket; ask for less"
        );
        (ErrorKind::Invalid, why)
    };
    drop(bytes);
    let what = match answer {
        Answer::Claimed(claimed) => {
            release(store, now, claimed);
            "claim"
        }
        _ => "scan",
    };
    answer::error(&StoreError::new(kind, format!("disk store: cannot {what}: {why}")))
}

/// Gives leases back that nobody will hear of. One that cannot be given back expires.
fn release(store: &DiskStore, now: Timestamp, claimed: &Claimed) {
    for lease in &claimed.leases {
        let settlement = Settlement::new(lease.id, Outcome::Release);
        let _ = pollster::block_on(store.settle(&lease.crawl, now, vec![settlement]));
    }
}
