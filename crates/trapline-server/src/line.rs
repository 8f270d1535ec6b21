//! A connection that can be hung up in good order, whoever has spoken on it.
//!
//! A socket that is closed while something that came was not read is reset, and a reset takes with it what the peer has not read yet:
//! the last answers, and why there are no more. So whoever hangs up says first that nothing more follows, and reads on
//! until the peer has hung up too.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::net::{Shutdown, shutdown};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// One end of a connection. Its clones are the same end.
#[derive(Clone)]
pub(crate) struct Line(Arc<TcpStream>);

impl Line {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self(Arc::new(stream))
    }

    pub(crate) async fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.peek(buffer).await
    }

    /// Says that nothing more follows, and reads on until the peer has said so too, but no longer than this.
    pub(crate) async fn hang_up(&self, patience: Duration) {
        if shutdown(&*self.0, Shutdown::Write).is_ok() {
            let _ = timeout(patience, self.read_to_end()).await;
        }
    }

    async fn read_to_end(&self) -> io::Result<()> {
        let mut passed_over = [0; 1 << 10];
        loop {
            // Unlike `readable` this lets others have their turn, and the end of patience with them.
            poll_fn(|context| self.0.poll_read_ready(context)).await?;
            match self.0.try_read(&mut passed_over) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Does what the socket was found ready for, again if it was not.
    fn once_ready<T>(
        mut is_ready: impl FnMut() -> Poll<io::Result<()>>,
        mut done: impl FnMut() -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        loop {
            ready!(is_ready())?;
            match done() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }
}

impl AsyncRead for Line {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Self::once_ready(|| self.0.poll_read_ready(context), || self.0.try_read_buf(buffer).map(drop))
    }
}

impl AsyncWrite for Line {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Self::once_ready(|| self.0.poll_write_ready(context), || self.0.try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Self::once_ready(|| self.0.poll_write_ready(context), || self.0.try_write_vectored(parts))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(shutdown(&*self.0, Shutdown::Write).map_err(io::Error::from))
    }
}
