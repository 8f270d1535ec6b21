//! The fetch itself.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Verdict, Visit};
use crate::chain::{Flow, Processor};
use crate::gate::Gate;
use crate::ports::Fetch;

/// Gets the page. If there is no response, there is nothing more to do here.
pub(super) struct Get {
    pub(super) fetch: Arc<dyn Fetch>,
    pub(super) gate: Arc<Gate>,
}

#[async_trait]
impl Processor<Visit> for Get {
    fn name(&self) -> &'static str {
        "fetch"
    }

    async fn process(&self, visit: &mut Visit) -> Flow {
        if self.gate.is_closed() {
            visit.verdict = Some(Verdict::Release { asked: visit.fetched_robots() });
            return Flow::End;
        }
        let response = self.fetch.fetch(&visit.request).await;
        let flow = if response.status.is_some() { Flow::Next } else { Flow::End };
        visit.response = Some(Arc::new(response));
        flow
    }
}
