//! What has come on a stream by now, up to so much, as one step.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::stream::{Fuse, FusedStream, Stream, StreamExt};
use prost::Message;
use tonic::Status;

/// Messages of a stream, as many at once as are there.
///
/// What is bounded is what one stream has in memory: the bytes of its messages, beside their number.
pub(super) struct Ready<S> {
    stream: Fuse<S>,
    messages_max: usize,
    bytes_max: usize,
}

impl<S: Stream> Ready<S> {
    /// At least one message, and no more once there are so many, or they have so many bytes.
    pub(super) fn new(stream: S, messages_max: usize, bytes_max: usize) -> Self {
        Self { stream: stream.fuse(), messages_max, bytes_max }
    }
}

impl<S, M> Stream for Ready<S>
where
    S: Stream<Item = Result<M, Status>> + Unpin,
    M: Message,
{
    type Item = Vec<Result<M, Status>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(first) = ready!(self.stream.poll_next_unpin(context)) else { return Poll::Ready(None) };
        let bytes_of = |message: &Result<M, Status>| message.as_ref().map_or(0, Message::encoded_len);
        let mut bytes = bytes_of(&first);
        let mut messages = vec![first];
        while messages.len() < self.messages_max && bytes < self.bytes_max && !self.stream.is_terminated() {
            let Poll::Ready(Some(next)) = self.stream.poll_next_unpin(context) else { break };
            bytes += bytes_of(&next);
            messages.push(next);
        }
        Poll::Ready(Some(messages))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;
    use crate::proto::urlfrontier::Long;

    /// How many messages come at once of those that are there, each of two bytes.
    fn check(messages: usize, messages_max: usize, bytes_max: usize, expected: &[usize]) {
        let stream = stream::iter((0..messages).map(|_| Ok(Long { value: 1 })));
        let steps = Ready::new(stream, messages_max, bytes_max).map(|step| step.len());
        assert_eq!(pollster::block_on(steps.collect::<Vec<_>>()), expected);
    }

    #[test]
    fn steps_are_bounded_by_number_and_bytes() {
        check(0, 4, 100, &[]);
        check(3, 4, 100, &[3]);
        check(9, 4, 100, &[4, 4, 1]);
        check(5, 4, 3, &[2, 2, 1]);
        check(2, 4, 0, &[1, 1]);
    }
}
