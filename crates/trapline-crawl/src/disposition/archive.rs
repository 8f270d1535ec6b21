//! Archives that stand in the disposition chain.

use async_trait::async_trait;
use trapline_frontier::Outcome;

use super::Disposition;
use crate::archives::Archives;
use crate::chain::{Flow, Processor};

/// Keeps what came, once it is known what becomes of its URL.
pub(super) struct Keep(pub(super) Archives);

#[async_trait]
impl Processor<Disposition> for Keep {
    fn name(&self) -> &'static str {
        "archive"
    }

    async fn process(&self, disposition: &mut Disposition) -> Flow {
        if matches!(disposition.outcome, Outcome::Release) {
            return Flow::Next;
        }
        if !self.0.keep(&mut disposition.visit).await {
            // How long its host is left alone is still to be decided.
            disposition.outcome = Outcome::Release;
        }
        Flow::Next
    }
}
