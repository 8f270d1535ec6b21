//! The declared URL: the `canonical` of a page, in its head or its headers.
//!
//! Anybody can declare anything, so that it is believed only about names of the same registrable domain, or of the very same host.

use trapline_core::{SplitUrl, registrable_domain};

use super::last_url;
use crate::fetch::Visit;

pub(super) fn solve(visit: &Visit) -> &str {
    let declared = visit.page.as_ref().and_then(|page| page.canonical.as_deref());
    declared.filter(|url| is_believed(visit, url)).unwrap_or_else(|| last_url::solve(visit))
}

fn is_believed(visit: &Visit, declared: &str) -> bool {
    let Ok(url) = SplitUrl::parse(declared) else { return false };
    if !matches!(url.scheme(), "http" | "https") {
        return false;
    }
    let (own, its) = (visit.url().host_str().unwrap_or_default(), url.host_str().unwrap_or_default());
    own == its || registrable_domain(own).is_some_and(|domain| registrable_domain(its) == Some(domain))
}
