//! How far a crawl goes, and how strange a URL may be.

use super::{HostPolicies, Origin, Prospect};
use crate::chain::{Flow, Rule};
use crate::fetch::SITEMAP_HOP;

/// How far a crawl goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitOptions {
    /// How many links away from a seed a page may be. Redirects do not count. Defaults to none.
    pub max_depth: Option<u32>,
    /// How many hops of any kind away from a seed. Defaults to 100.
    pub max_hops: usize,
    /// How many redirects in a row. Defaults to 10.
    pub max_redirects: usize,
    /// How many segments the path of a URL may have. Defaults to 30.
    pub max_path_segments: usize,
    /// How many bytes a URL may have. Defaults to 2,083.
    pub max_url_bytes: usize,
}

impl Default for LimitOptions {
    fn default() -> Self {
        Self { max_depth: None, max_hops: 100, max_redirects: 10, max_path_segments: 30, max_url_bytes: 2083 }
    }
}

/// How many sitemaps may name one another in a row: an index of indexes, and those that it names.
const SITEMAPS_MAX: usize = 3;

/// How many sitemaps a URL was reached through in a row, itself included. Redirects do not count.
pub(super) fn sitemaps_in_a_row(hops: &str) -> usize {
    hops.chars().rev().filter(|hop| *hop != 'R').take_while(|hop| *hop == SITEMAP_HOP).count()
}

/// Drops what is too far away, or too long.
pub(super) struct Limits {
    pub(super) usual: LimitOptions,
    pub(super) hosts: HostPolicies,
}

impl Rule<Prospect> for Limits {
    fn name(&self) -> &'static str {
        "limits"
    }

    fn apply(&self, prospect: &mut Prospect) -> Flow {
        let limits = &self.usual;
        let own = self.hosts.of(prospect.url.host_str().unwrap_or_default());
        let max_depth = own.and_then(|terms| terms.max_depth).or(limits.max_depth);
        let request = &prospect.request;
        let bytes = prospect.url.as_str().len();
        let segments = prospect.url.path().split('/').filter(|segment| !segment.is_empty()).count();
        let too_much = if max_depth.is_some_and(|most| request.depth > most) {
            format!("depth {}", request.depth)
        } else if request.hop_path.len() > limits.max_hops {
            format!("{} hops", request.hop_path.len())
        } else if prospect.origin == Origin::Redirect && request.redirects.len() > limits.max_redirects {
            format!("{} redirects in a row", request.redirects.len())
        } else if prospect.origin == Origin::Sitemap && sitemaps_in_a_row(&request.hop_path) > SITEMAPS_MAX {
            format!("more than {SITEMAPS_MAX} sitemaps in one another")
        } else if segments > limits.max_path_segments {
            format!("{segments} path segments")
        } else if bytes > limits.max_url_bytes {
            format!("{bytes} bytes")
        } else {
            return Flow::Next;
        };
        prospect.drop("limits", too_much)
    }
}
