//! Links that readers follow, and those that make up a page.

use trapline_extract::LinkKind;

use super::{Origin, Prospect};
use crate::chain::{Flow, Rule};

/// Drops images, scripts and the like, unless they are wanted.
pub(super) struct Kinds {
    pub(super) embeds: bool,
}

impl Rule<Prospect> for Kinds {
    fn name(&self) -> &'static str {
        "kinds"
    }

    fn apply(&self, prospect: &mut Prospect) -> Flow {
        match prospect.origin {
            Origin::Link { kind: LinkKind::Embed, .. } if !self.embeds => {
                prospect.drop("kinds", "a part of a page")
            }
            _ => Flow::Next,
        }
    }
}
