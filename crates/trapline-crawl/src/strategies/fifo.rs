//! What was found first.

use std::sync::Arc;

use trapline_core::Request;
use trapline_frontier::Order;

use super::{ALL_ALIKE, ArgumentError, Arguments, FoundLink, Memory, Seeding, Seen, Strategy, Wish};

/// First found, first fetched, whatever its priority or depth.
#[derive(Debug)]
struct Fifo;

pub(super) fn make(_: &mut Arguments) -> Result<Arc<dyn Strategy>, ArgumentError> {
    Ok(Arc::new(Fifo))
}

impl Strategy for Fifo {
    fn name(&self) -> &'static str {
        "fifo"
    }

    fn order(&self) -> Option<Order> {
        Some(Order::Fifo)
    }

    fn seed(&self, _: &Request, _: &mut Memory) -> Seeding {
        Seeding { wish: ALL_ALIKE, ..Seeding::default() }
    }

    fn links(&self, _: &Seen<'_>, links: &[FoundLink<'_>], _: &mut Memory) -> Vec<Wish> {
        vec![ALL_ALIKE; links.len()]
    }
}
