//! A connection of HTTP/1.1 that waits for its next request: awake at first, resting later.
//!
//! One that is awake keeps all that hyper has for it, buffers that fit the pages of its server above all. One that rests is
//! a stream and nothing else: tens of kilobytes less. How long a connection may wait is the pool's business.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::task::coop::unconstrained;

use crate::connection::{Facts, H1};
use crate::options::Limits;
use crate::stream::Stream;

/// A connection that waits.
pub(crate) enum Idle {
    Awake(Box<H1>),
    Resting(Box<Resting>),
}

impl Idle {
    pub(crate) fn facts(&self) -> &Facts {
        match self {
            Self::Awake(connection) => &connection.facts,
            Self::Resting(connection) => &connection.facts,
        }
    }

    pub(crate) fn is_awake(&self) -> bool {
        matches!(self, Self::Awake(_))
    }

    /// Lets it rest.
    ///
    /// # Errors
    /// If it is of no use any more: what is left of it, to be dropped.
    pub(crate) fn rest(self) -> Result<Self, Self> {
        match self {
            Self::Awake(connection) => connection.rest(),
            Self::Resting(_) => Ok(self),
        }
    }

    /// The connection, if another request can be sent on it as far as one can see.
    pub(crate) async fn wake(self, limits: &Limits) -> Option<Box<H1>> {
        match self {
            Self::Awake(mut connection) => connection.is_fit().await.then_some(connection),
            Self::Resting(connection) => connection.wake(limits).await,
        }
    }
}

/// What is left of a connection that rests.
pub(crate) struct Resting {
    pub(crate) stream: Stream,
    pub(crate) facts: Arc<Facts>,
}

impl Resting {
    async fn wake(mut self, limits: &Limits) -> Option<Box<H1>> {
        let look = poll_fn(|cx| {
            let mut byte = [0];
            Poll::Ready(Pin::new(&mut self.stream).poll_read(cx, &mut ReadBuf::new(&mut byte)))
        });
        // Tokio would say that there is nothing to read also to a task that has read enough for this turn.
        if unconstrained(look).await.is_ready() {
            return None;
        }
        H1::open(self.stream, self.facts, limits).await.ok().map(Box::new)
    }
}
