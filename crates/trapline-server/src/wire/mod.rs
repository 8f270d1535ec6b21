//! The values of the six verbs as messages of `trapline.v1`, and back. Every conversion takes its value apart field by field: a
//! new field does not compile until it is sent. What the verbs do is not here.

pub(crate) mod candidate;
pub(crate) mod claim;
pub(crate) mod error;
pub(crate) mod record;
pub(crate) mod request;
pub(crate) mod rows;
pub(crate) mod scan;
pub(crate) mod settings;
pub(crate) mod settle;
pub(crate) mod stats;
pub(crate) mod steer;

use std::time::Duration;

use trapline_core::{Identity, Timestamp};

/// A message that says nothing this version knows, in a sentence that says what it should have.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unreadable(String);

impl Unreadable {
    pub(crate) fn lacks(what: &str) -> Self {
        Self(format!("the request lacks {what}; give it, or use a service as new as the client"))
    }

    /// A choice was made by a word that says no.
    fn refused(name: &str) -> Self {
        Self(format!("`{name}` is false, and was chosen all the same; leave it out, or say true"))
    }

    /// The same, about one of many.
    pub(crate) fn of(self, what: &str, number: usize) -> Self {
        Self(format!("{what} {number}, counted from 0: {self}; nothing was done"))
    }

    fn beyond(name: &str, value: impl std::fmt::Display, bounds: &str) -> Self {
        Self(format!("`{name}` is {value}; it must be {bounds}"))
    }
}

/// Rounded up: no wait becomes shorter on its way.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// What is chosen by a word that is true.
fn chosen<T>(name: &str, word: bool, choice: T) -> Result<T, Unreadable> {
    if word { Ok(choice) } else { Err(Unreadable::refused(name)) }
}

fn byte(name: &str, value: u32) -> Result<u8, Unreadable> {
    u8::try_from(value).map_err(|_| Unreadable::beyond(name, value, "from 0 to 255"))
}

fn count(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

pub(crate) fn write_identity(identity: Identity) -> Vec<u8> {
    identity.0.to_be_bytes().to_vec()
}

pub(crate) fn read_identity(bytes: &[u8]) -> Result<Identity, Unreadable> {
    let bytes = bytes.try_into().map_err(|_| {
        Unreadable::beyond("identity", format!("{} bytes long", bytes.len()), "16 bytes long")
    })?;
    Ok(Identity(u128::from_be_bytes(bytes)))
}

fn write_time(at: Option<Timestamp>) -> Option<u64> {
    at.map(Timestamp::as_millis)
}

fn read_time(at: Option<u64>) -> Option<Timestamp> {
    at.map(Timestamp::from_millis)
}
