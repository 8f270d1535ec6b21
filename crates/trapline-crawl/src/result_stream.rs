//! Results as a stream, for programs that want them one by one while the crawl goes on.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures_util::Stream;
use tokio::sync::mpsc;
use trapline_frontier::NoteWrite;

use crate::ports::{Output, OutputError, Results};

/// What came of each visit, in the order in which they are settled. Ends with the crawl.
///
/// Results are handed over before they are settled: after a crash, the last ones may come again.
pub struct ResultStream(mpsc::Receiver<Results>);

impl ResultStream {
    /// A stream, and the output to give to the crawl. So many results at most wait to be read, one at least; then the crawl
    /// waits for its reader. If nobody reads any more, the crawl stops with an error.
    pub fn new(waiting_max: usize) -> (Arc<dyn Output>, Self) {
        let (sender, receiver) = mpsc::channel(waiting_max.max(1));
        (Arc::new(StreamOutput(sender)), Self(receiver))
    }

    /// The next one; None once the crawl has ended.
    pub async fn next(&mut self) -> Option<Results> {
        self.0.recv().await
    }
}

impl Stream for ResultStream {
    type Item = Results;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Results>> {
        self.0.poll_recv(context)
    }
}

struct StreamOutput(mpsc::Sender<Results>);

#[async_trait]
impl Output for StreamOutput {
    async fn write(&self, batch: &[Results]) -> Result<Vec<NoteWrite>, OutputError> {
        for results in batch {
            // Of a visit that was given back there is nothing to tell.
            if results.page.is_none() && results.skipped.is_empty() {
                continue;
            }
            self.0.send(results.clone()).await.map_err(|_| {
                OutputError(
                    "the results of the crawl cannot be told: nobody reads the stream any more".to_owned(),
                )
            })?;
        }
        Ok(Vec::new())
    }
}
