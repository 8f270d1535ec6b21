//! Waiting for something, but not for ever.
//!
//! A fetch waits hundreds of times, each time with another deadline. One timer serves them all: it is set anew only if it
//! would ring too late, and asked what time it is when it rings.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Instant;

use tokio::time::{Sleep, sleep_until};

/// A timer for one fetch.
#[derive(Default)]
pub(crate) struct Vigil {
    timer: Option<Pin<Box<Sleep>>>,
}

impl Vigil {
    /// Waits for a future, at most until then. None if it was too late.
    pub(crate) async fn wait<F: Future>(&mut self, until: Instant, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let until = tokio::time::Instant::from_std(until);
        poll_fn(move |cx| {
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return Poll::Ready(Some(output));
            }
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(until)));
            if timer.deadline() > until {
                timer.as_mut().reset(until);
            }
            while timer.as_mut().poll(cx).is_ready() {
                if timer.deadline() >= until {
                    return Poll::Ready(None);
                }
                timer.as_mut().reset(until);
            }
            Poll::Pending
        })
        .await
    }
}
