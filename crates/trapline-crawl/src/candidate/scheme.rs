//! Only what can be fetched.

use super::Prospect;
use crate::chain::{Flow, Rule};

/// Drops what is not `http` or `https`.
pub(super) struct Scheme;

impl Rule<Prospect> for Scheme {
    fn name(&self) -> &'static str {
        "scheme"
    }

    fn apply(&self, prospect: &mut Prospect) -> Flow {
        match prospect.url.scheme() {
            "http" | "https" => Flow::Next,
            other => {
                let detail = format!("`{other}:` is not fetched");
                prospect.drop("scheme", detail)
            }
        }
    }
}
