//! Archives that stand in the fetch chain.

use async_trait::async_trait;

use super::Visit;
use crate::archives::Archives;
use crate::chain::{Flow, Processor};

/// Keeps what came, before anybody decides what becomes of it.
pub(super) struct Keep(pub(super) Archives);

#[async_trait]
impl Processor<Visit> for Keep {
    fn name(&self) -> &'static str {
        "archive"
    }

    async fn process(&self, visit: &mut Visit) -> Flow {
        if self.0.keep(visit).await { Flow::Next } else { Flow::End }
    }
}
