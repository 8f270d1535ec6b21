//! The fetch itself.

use std::sync::Arc;

use async_trait::async_trait;

use super::Visit;
use crate::chain::{Flow, Processor};
use crate::ports::Fetch;

/// Gets the page. If there is no response, there is nothing more to do here.
pub(super) struct Get(pub(super) Arc<dyn Fetch>);

#[async_trait]
impl Processor<Visit> for Get {
    fn name(&self) -> &'static str {
        "fetch"
    }

    async fn process(&self, visit: &mut Visit) -> Flow {
        let response = self.0.fetch(&visit.request).await;
        let flow = if response.status.is_some() { Flow::Next } else { Flow::End };
        visit.response = Some(response);
        flow
    }
}
