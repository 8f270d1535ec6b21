//! What a fetch costs its queue: the policies that put a price on a URL when it is admitted.

use std::fmt;

use crate::Request;

/// How a crawl prices URLs. A caller with a rule of its own sets [`Candidate::cost`](crate::Candidate::cost).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CostPolicy {
    /// Everything is free: budgets never bind and sessions never end.
    Zero,
    /// Every URL costs 1.
    #[default]
    Unit,
    /// A wild guess at what is less interesting: 1, plus 1 with a query, plus 1 more if the URL equals its via
    /// except for the query.
    Wag,
}

impl CostPolicy {
    /// Every policy, with the name it has in the configuration.
    pub const NAMES: [(&'static str, Self); 3] =
        [("zero", Self::Zero), ("unit", Self::Unit), ("wag", Self::Wag)];

    /// The cost of a request.
    pub fn cost(self, request: &Request) -> u32 {
        match self {
            Self::Zero => 0,
            Self::Unit => 1,
            Self::Wag => wag(&request.url, request.via.as_deref()),
        }
    }
}

impl fmt::Display for CostPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAMES.iter().find(|(_, policy)| policy == self).map_or("", |(name, _)| name))
    }
}

fn wag(url: &str, via: Option<&str>) -> u32 {
    let (page, Some(_)) = split_query(url) else { return 1 };
    let same = via.is_some_and(|via| split_query(via).0 == page);
    2 + u32::from(same)
}

/// The URL up to its query, and the query. The fragment belongs to neither.
fn split_query(url: &str) -> (&str, Option<&str>) {
    let url = url.split_once('#').map_or(url, |(before, _)| before);
    url.split_once('?').map_or((url, None), |(page, query)| (page, Some(query)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wag_prices_queries_and_variations_of_the_page_they_were_found_on() {
        let check = |url: &str, via: Option<&str>, cost| {
            let request = Request { via: via.map(str::to_owned), ..Request::get(url) };
            assert_eq!(CostPolicy::Wag.cost(&request), cost, "{url} via {via:?}");
        };
        check("http://a.example/p", None, 1);
        check("http://a.example/p", Some("http://a.example/p?x=1"), 1);
        check("http://a.example/p?x=1", None, 2);
        check("http://a.example/p?x=1", Some("http://a.example/q"), 2);
        check("http://a.example/p?x=2", Some("http://a.example/p"), 3);
        check("http://a.example/p?x=2", Some("http://a.example/p?x=1#top"), 3);
        check("http://a.example/p#a?b", Some("http://a.example/p"), 1);
        check("http://a.example/p?", Some("http://a.example/p"), 3);
    }
}
