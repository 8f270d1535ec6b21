//! The first URL: the one from which redirects led to a page. A page keeps its name wherever it moves.

use crate::fetch::Visit;

pub(super) fn solve(visit: &Visit) -> &str {
    let request = &visit.lease.request;
    request.redirects.first().unwrap_or(&request.url)
}
