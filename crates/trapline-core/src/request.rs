//! The request: what somebody wants fetched, with everything they want to have back when it is.
//!
//! Nothing here is computed. Identity, queue key, class and cost are derived from a request by
//! [`Preparer`](crate::Preparer) and travel beside it in a [`Candidate`](crate::Candidate).

use std::borrow::Cow;
use std::collections::BTreeMap;

/// One request as the caller made it. The frontier hands it out again unchanged.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The URL to fetch, as it was given. Canonical forms decide only about identity, never about this.
    pub url: String,
    /// The HTTP method. Part of the identity. Defaults to `GET`, and like every literal costs no allocation:
    /// `method: "POST".into()`.
    pub method: Cow<'static, str>,
    /// Headers, in order. Values are bytes, because HTTP's are.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Cookies to send with this request, in order.
    pub cookies: Vec<(String, String)>,
    /// The body. Part of the identity.
    pub body: Vec<u8>,
    /// The caller's own metadata, a map of lists of strings as the URLFrontier API has it.
    pub metadata: BTreeMap<String, Vec<String>>,
    /// Opaque bytes for callers whose metadata are not strings, such as Scrapy's pickles.
    pub opaque: Vec<u8>,
    /// -128…127, higher first. None counts as 0.
    pub priority: Option<i8>,
    /// 0.0…1.0, higher first, for crawls ordered by score.
    pub score: Option<f32>,
    /// How many links away from a seed. Seeds have 0.
    pub depth: u32,
    /// This request's own depth limit: deeper than this it is refused, whatever the crawl allows.
    pub depth_limit: Option<u32>,
    /// The URL on which this one was found.
    pub via: Option<String>,
    /// How it was reached, one letter a hop as in Heritrix: L link, E embed, R redirect, P prerequisite.
    pub hop_path: String,
    /// The URLs that redirected here, first one first.
    pub redirects: Vec<String>,
    /// How often it was tried before, by the caller's count.
    pub retries: u32,
    /// Skip the seen check: the URL becomes pending once more, as an entry of its own.
    pub dont_filter: bool,
    /// The seed it descends from.
    pub seed: Option<String>,
    /// The caller's own fingerprint. If set, it alone is the identity, instead of method, URL and body.
    pub fingerprint: Option<Vec<u8>>,
}

impl Request {
    /// A plain `GET` of a URL.
    pub fn get(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            method: Cow::Borrowed("GET"),
            headers: Vec::new(),
            cookies: Vec::new(),
            body: Vec::new(),
            metadata: BTreeMap::new(),
            opaque: Vec::new(),
            priority: None,
            score: None,
            depth: 0,
            depth_limit: None,
            via: None,
            hop_path: String::new(),
            redirects: Vec::new(),
            retries: 0,
            dont_filter: false,
            seed: None,
            fingerprint: None,
        }
    }
}
