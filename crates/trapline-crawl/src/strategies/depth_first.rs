//! What is farthest from a seed first.

use std::sync::Arc;

use trapline_core::Request;

use super::{ArgumentError, Arguments, FoundLink, Memory, Seeding, Seen, Strategy, Wish};

/// By the number of links from a seed, more first.
#[derive(Debug)]
struct DepthFirst;

pub(super) fn make(_: &mut Arguments) -> Result<Arc<dyn Strategy>, ArgumentError> {
    Ok(Arc::new(DepthFirst))
}

impl Strategy for DepthFirst {
    fn name(&self) -> &'static str {
        "depth_first"
    }

    fn seed(&self, seed: &Request, _: &mut Memory) -> Seeding {
        Seeding { wish: by_depth(seed), ..Seeding::default() }
    }

    fn links(&self, _: &Seen<'_>, links: &[FoundLink<'_>], _: &mut Memory) -> Vec<Wish> {
        links.iter().map(|link| by_depth(link.request)).collect()
    }
}

fn by_depth(request: &Request) -> Wish {
    Wish::Class(u8::MAX - u8::try_from(request.depth).unwrap_or(u8::MAX))
}
