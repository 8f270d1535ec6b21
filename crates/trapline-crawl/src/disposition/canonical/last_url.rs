//! The last URL: where a page really is, as far as this visit knows. Several names that lead to one page become one.

use crate::fetch::Visit;
use crate::response::RedirectTo;

pub(super) fn solve(visit: &Visit) -> &str {
    match visit.response.as_ref().and_then(|response| response.redirect.as_ref()) {
        Some(RedirectTo::Url(target)) => target.as_str(),
        _ => &visit.lease.request.url,
    }
}
