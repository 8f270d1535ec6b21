//! Conditional requests: a page that was visited before is wanted only if it has changed.

use async_trait::async_trait;

use super::Visit;
use crate::chain::{Flow, Processor};

/// Asks only whether a page has changed.
pub(super) struct Conditional {
    pub(super) on: bool,
}

#[async_trait]
impl Processor<Visit> for Conditional {
    fn name(&self) -> &'static str {
        "conditional"
    }

    async fn process(&self, visit: &mut Visit) -> Flow {
        if let Some(page) = visit.lease.page.as_ref().filter(|_| self.on) {
            visit.request.etag.clone_from(&page.visit.etag);
            visit.request.last_modified.clone_from(&page.visit.last_modified);
        }
        Flow::Next
    }
}
