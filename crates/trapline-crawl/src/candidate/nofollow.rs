//! Links that ask not to be followed.

use super::{Origin, Prospect};
use crate::chain::{Flow, Rule};

/// Drops links with `rel=nofollow`, and those of pages that ask for it.
pub(super) struct Nofollow;

impl Rule<Prospect> for Nofollow {
    fn name(&self) -> &'static str {
        "nofollow"
    }

    fn apply(&self, prospect: &mut Prospect) -> Flow {
        match prospect.origin {
            Origin::Link { nofollow: true, .. } => {
                prospect.drop("nofollow", "the link or its page asks not to follow it")
            }
            _ => Flow::Next,
        }
    }
}
