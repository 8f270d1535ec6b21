//! What was found last.

use std::sync::Arc;

use trapline_core::Request;
use trapline_frontier::Order;

use super::{ALL_ALIKE, ArgumentError, Arguments, FoundLink, Memory, Seeding, Seen, Strategy, Wish};

/// Last found, first fetched, whatever its priority or depth.
#[derive(Debug)]
struct Lifo;

pub(super) fn make(_: &mut Arguments) -> Result<Arc<dyn Strategy>, ArgumentError> {
    Ok(Arc::new(Lifo))
}

impl Strategy for Lifo {
    fn name(&self) -> &'static str {
        "lifo"
    }

    fn order(&self) -> Option<Order> {
        Some(Order::Lifo)
    }

    fn seed(&self, _: &Request, _: &mut Memory) -> Seeding {
        Seeding { wish: ALL_ALIKE, ..Seeding::default() }
    }

    fn links(&self, _: &Seen<'_>, links: &[FoundLink<'_>], _: &mut Memory) -> Vec<Wish> {
        vec![ALL_ALIKE; links.len()]
    }
}
