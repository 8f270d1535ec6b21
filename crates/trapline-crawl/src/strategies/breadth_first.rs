//! What is nearest to a seed first.

use std::sync::Arc;

use trapline_core::Request;

use super::{ArgumentError, Arguments, FoundLink, Memory, Seeding, Seen, Strategy, Wish};

/// By the number of links from a seed, fewer first.
#[derive(Debug)]
struct BreadthFirst;

pub(super) fn make(_: &mut Arguments) -> Result<Arc<dyn Strategy>, ArgumentError> {
    Ok(Arc::new(BreadthFirst))
}

impl Strategy for BreadthFirst {
    fn name(&self) -> &'static str {
        "breadth_first"
    }

    fn seed(&self, seed: &Request, _: &mut Memory) -> Seeding {
        Seeding { wish: by_depth(seed), ..Seeding::default() }
    }

    fn links(&self, _: &Seen<'_>, links: &[FoundLink<'_>], _: &mut Memory) -> Vec<Wish> {
        links.iter().map(|link| by_depth(link.request)).collect()
    }
}

fn by_depth(request: &Request) -> Wish {
    Wish::Class(u8::try_from(request.depth).unwrap_or(u8::MAX))
}
