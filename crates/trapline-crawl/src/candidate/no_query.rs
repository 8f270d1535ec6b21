//! Pages without parameters. Not among the usual rules: name it in `chains.candidate` to have it.

use super::{Origin, Prospect};
use crate::chain::{Flow, Rule};

/// Drops URLs with a query, behind which are most searches, sort orders and calendars. Seeds are believed.
pub(super) struct NoQuery;

impl Rule<Prospect> for NoQuery {
    fn name(&self) -> &'static str {
        "no_query"
    }

    fn apply(&self, prospect: &mut Prospect) -> Flow {
        if prospect.url.query().is_some() && prospect.origin != Origin::Seed {
            return prospect.drop("no_query", "it has a query");
        }
        Flow::Next
    }
}
