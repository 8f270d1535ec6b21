//! Preparation: from a request to a candidate, with everything the frontier has to know of its URL.
//!
//! A pure function, run outside the frontier and on as many threads as the caller likes. Not scope: whether
//! a URL is wanted at all is decided before.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use url::Url;

use crate::plain_url::PlainUrl;
use crate::{Candidate, CanonicalRules, IdentityKey, QueueKeyPolicy, Request, Terms, parse_url};

/// The longest URL that is prepared. Longer ones are nearly always traps or `data:` by mistake, and every
/// part of a crawl would have to carry them.
pub const URL_BYTES_MAX: usize = 64 * 1024;

/// The longest queue key. Host names end at 253 bytes; slots have some more room.
pub const KEY_BYTES_MAX: usize = 1024;

type CostOf = dyn Fn(&Request) -> u32 + Send + Sync;
type ClassOf = dyn Fn(&Request) -> u8 + Send + Sync;

/// Prepares requests for one crawl. Cheap to clone.
///
/// Class and cost of its candidates are left to the crawl's own policies, unless the caller brings a policy
/// of its own:
///
/// ```
/// use trapline_core::{IdentityKey, Preparer, Request};
///
/// let preparer = Preparer::new(IdentityKey::from_seed(1))
///     .with_cost(|request| if request.url.ends_with(".pdf") { 10 } else { 1 });
///
/// let candidate = preparer.prepare(Request::get("https://Example.com/report.pdf"))?;
/// assert_eq!(&*candidate.key, "example.com");
/// assert_eq!(candidate.cost, Some(10));
/// assert_eq!(candidate.class, None);
/// assert_eq!(candidate.request.url, "https://Example.com/report.pdf");
/// # Ok::<(), trapline_core::PrepareError>(())
/// ```
#[derive(Clone)]
pub struct Preparer {
    key: IdentityKey,
    canonical: CanonicalRules,
    queue_key: QueueKeyPolicy,
    cost: Option<Arc<CostOf>>,
    class: Option<Arc<ClassOf>>,
}

impl Preparer {
    /// A preparer with the default rules and one queue per host.
    pub fn new(key: IdentityKey) -> Self {
        Self {
            key,
            canonical: CanonicalRules::default(),
            queue_key: QueueKeyPolicy::default(),
            cost: None,
            class: None,
        }
    }

    /// Uses this key for identities.
    #[must_use]
    pub fn with_key(self, key: IdentityKey) -> Self {
        Self { key, ..self }
    }

    /// Uses these rules for canonical forms.
    #[must_use]
    pub fn with_canonical(self, canonical: CanonicalRules) -> Self {
        Self { canonical, ..self }
    }

    /// Uses this policy for queue keys.
    #[must_use]
    pub fn with_queue_key(self, queue_key: QueueKeyPolicy) -> Self {
        Self { queue_key, ..self }
    }

    /// Prices requests by the caller's own rule, instead of the crawl's cost policy.
    #[must_use]
    pub fn with_cost(self, cost: impl Fn(&Request) -> u32 + Send + Sync + 'static) -> Self {
        Self { cost: Some(Arc::new(cost)), ..self }
    }

    /// Classes requests by the caller's own rule, instead of the crawl's class policy. Lower goes first.
    #[must_use]
    pub fn with_class(self, class: impl Fn(&Request) -> u8 + Send + Sync + 'static) -> Self {
        Self { class: Some(Arc::new(class)), ..self }
    }

    /// Prepares a request for the queue its URL belongs to.
    pub fn prepare(&self, request: impl Into<Arc<Request>>) -> Result<Candidate, PrepareError> {
        self.prepare_in(request, None)
    }

    /// The canonical form of a URL, by which it is known.
    pub fn canonical_form(&self, url: &str) -> Result<String, PrepareError> {
        Ok(ReadUrl::of(url)?.canonical(&self.canonical).into_owned())
    }

    /// Prepares a request for the caller's own queue, the slot. An empty slot counts as none.
    pub fn prepare_in(
        &self,
        request: impl Into<Arc<Request>>,
        slot: Option<&str>,
    ) -> Result<Candidate, PrepareError> {
        let request = request.into();
        if request.url.len() > URL_BYTES_MAX {
            return Err(PrepareError::UrlTooLong { url: excerpt(&request.url), bytes: request.url.len() });
        }
        let url = ReadUrl::of(&request.url)?;
        let key: Arc<str> = match slot.filter(|slot| !slot.is_empty()) {
            Some(slot) => slot.into(),
            None => {
                url.key(self.queue_key).ok_or_else(|| PrepareError::NoHost { url: excerpt(&request.url) })?
            }
        };
        if key.len() > KEY_BYTES_MAX {
            return Err(PrepareError::KeyTooLong { url: excerpt(&request.url), bytes: key.len() });
        }
        let identity = match &request.fingerprint {
            Some(fingerprint) => self.key.identify_fingerprint(fingerprint),
            None => {
                let canonical = url.canonical(&self.canonical);
                self.key.identify(&uppercase(&request.method), &canonical, &request.body)
            }
        };
        Ok(Candidate {
            identity,
            key,
            class: self.class.as_ref().map(|class| class(&request)),
            cost: self.cost.as_ref().map(|cost| cost(&request)),
            terms: Terms::default(),
            improve: false,
            dont_filter: request.dont_filter,
            statement: None,
            request,
        })
    }
}

impl fmt::Debug for Preparer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Preparer")
            .field("canonical", &self.canonical)
            .field("queue_key", &self.queue_key)
            .field("own_cost", &self.cost.is_some())
            .field("own_class", &self.class.is_some())
            .finish_non_exhaustive()
    }
}

/// A URL that was read, by the parser only if it had to be.
enum ReadUrl<'u> {
    Plain(PlainUrl<'u>),
    Parsed { text: &'u str, url: Url },
}

impl<'u> ReadUrl<'u> {
    fn of(text: &'u str) -> Result<Self, PrepareError> {
        if let Some(url) = PlainUrl::read(text) {
            return Ok(Self::Plain(url));
        }
        let url =
            parse_url(text, None).map_err(|reason| PrepareError::NotAUrl { url: excerpt(text), reason })?;
        Ok(Self::Parsed { text, url })
    }

    /// Its queue, if it has a host.
    fn key(&self, policy: QueueKeyPolicy) -> Option<Arc<str>> {
        match self {
            Self::Plain(url) => Some(policy.name(url.host(), url.host_and_port()).into()),
            Self::Parsed { url, .. } => policy.key(url),
        }
    }

    fn canonical(&self, rules: &CanonicalRules) -> Cow<'_, str> {
        match self {
            Self::Plain(url) => rules.canonicalize_plain(url),
            Self::Parsed { text, url } => rules.canonicalize_parsed(text, url),
        }
    }
}

/// A request that cannot become a candidate. The caller drops it, or mends it and tries again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrepareError {
    /// The URL is not an absolute URL.
    #[error("cannot prepare `{url}`: {reason}; give an absolute URL, such as https://example.com/page")]
    NotAUrl {
        /// The URL's beginning.
        url: String,
        /// What the parser says.
        reason: url::ParseError,
    },
    /// The URL has no host, and the caller gave no slot.
    #[error("cannot prepare `{url}`: it has no host to name a queue by; give it a slot")]
    NoHost {
        /// The URL's beginning.
        url: String,
    },
    /// The URL is longer than [`URL_BYTES_MAX`].
    #[error("cannot prepare `{url}`: it has {bytes} bytes, and a URL may have {URL_BYTES_MAX}; drop it")]
    UrlTooLong {
        /// The URL's beginning.
        url: String,
        /// Its length.
        bytes: usize,
    },
    /// The queue key is longer than [`KEY_BYTES_MAX`].
    #[error(
        "cannot prepare `{url}`: its queue key has {bytes} bytes, and a key may have {KEY_BYTES_MAX}; give it a \
         shorter slot, or drop it"
    )]
    KeyTooLong {
        /// The URL's beginning.
        url: String,
        /// The key's length.
        bytes: usize,
    },
}

/// As much of a URL as a message can bear.
fn excerpt(url: &str) -> String {
    const BYTES: usize = 120;
    if url.len() <= BYTES {
        return url.to_owned();
    }
    format!("{}…", &url[..url.floor_char_boundary(BYTES)])
}

/// The method as HTTP clients would spell it, copied only if it was spelled otherwise.
fn uppercase(method: &str) -> Cow<'_, str> {
    if method.bytes().any(|byte| byte.is_ascii_lowercase()) {
        Cow::Owned(method.to_ascii_uppercase())
    } else {
        Cow::Borrowed(method)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preparer() -> Preparer {
        Preparer::new(IdentityKey::from_seed(7))
    }

    #[test]
    fn spellings_of_one_request_have_one_identity() {
        let same = |a: Request, b: Request, same: bool| {
            let identity = |request: &Request| preparer().prepare(request.clone()).unwrap().identity;
            assert_eq!(identity(&a) == identity(&b), same, "{a:?} and {b:?}");
        };
        let get = || Request::get("http://a.example/p?a=1&b=2");
        same(get(), Request::get("HTTP://A.EXAMPLE:80/x/../p?b=2&a=1#f"), true);
        same(get(), Request::get("https://a.example/p?a=1&b=2"), false);
        same(Request::get("http://a.example/^"), Request::get("http://a.example/C:/../%5E"), true);
        same(get(), Request { method: "get".into(), ..get() }, true);
        same(get(), Request { method: "POST".into(), ..get() }, false);
        same(get(), Request { body: b"x".to_vec(), ..get() }, false);
        same(get(), Request { headers: vec![("a".into(), b"b".to_vec())], depth: 3, ..get() }, true);
        let printed =
            |url: &str, print: &[u8]| Request { fingerprint: Some(print.to_vec()), ..Request::get(url) };
        same(get(), printed("http://a.example/p?a=1&b=2", b"x"), false);
        same(printed("http://a.example/1", b"x"), printed("http://b.example/2", b"x"), true);
        same(printed("http://a.example/1", b"x"), printed("http://a.example/1", b"y"), false);
    }

    #[test]
    fn the_request_comes_through_untouched() {
        let request = Request::get(" HTTP://WWW.A.example:80/%7e?b&a#f");
        let candidate = preparer().prepare(request.clone()).unwrap();
        assert_eq!(*candidate.request, request);
        assert_eq!((candidate.class, candidate.cost), (None, None));
        assert_eq!(
            (candidate.terms, candidate.improve, candidate.statement),
            (Terms::default(), false, None)
        );
    }

    #[test]
    fn a_slot_wins_over_the_policy() {
        let key = |url: &str, slot| {
            preparer().prepare_in(Request::get(url), slot).map(|ready| ready.key.to_string())
        };
        assert_eq!(key("http://a.example/", None).unwrap(), "a.example");
        assert_eq!(key("http://a.example/", Some("mine")).unwrap(), "mine");
        assert_eq!(key("http://a.example/", Some("")).unwrap(), "a.example");
        assert_eq!(key("urn:isbn:1", Some("books")).unwrap(), "books");
        let domain = preparer().with_queue_key(QueueKeyPolicy::Domain);
        assert_eq!(&*domain.prepare(Request::get("http://www.a.example/")).unwrap().key, "a.example");
    }

    #[test]
    fn callers_may_bring_their_own_class_and_cost() {
        let preparer =
            preparer().with_class(|request| u8::try_from(request.depth).unwrap_or(u8::MAX)).with_cost(|_| 5);
        let candidate = preparer.prepare(Request { depth: 3, ..Request::get("http://a.example/") }).unwrap();
        assert_eq!((candidate.class, candidate.cost), (Some(3), Some(5)));
    }

    #[test]
    fn refusals_say_what_to_do() {
        let check = |url: &str, slot: Option<&str>, message: &str| {
            let error = preparer().prepare_in(Request::get(url), slot).unwrap_err().to_string();
            assert_eq!(error, message);
        };
        check(
            "/page",
            Some("mine"),
            "cannot prepare `/page`: relative URL without a base; give an absolute URL, such as \
             https://example.com/page",
        );
        check(
            "",
            None,
            "cannot prepare ``: relative URL without a base; give an absolute URL, such as https://example.com/page",
        );
        check(
            "mailto:a@b.example",
            None,
            "cannot prepare `mailto:a@b.example`: it has no host to name a queue by; give it a slot",
        );
        let start = "http://a.example/".to_owned() + &"é".repeat(51) + "…";
        let long = "http://a.example/".to_owned() + &"é".repeat(URL_BYTES_MAX / 2);
        check(
            &long,
            None,
            &format!("cannot prepare `{start}`: it has 65553 bytes, and a URL may have 65536; drop it"),
        );
        check(
            "http://a.example/",
            Some(&"s".repeat(1025)),
            "cannot prepare `http://a.example/`: its queue key has 1025 bytes, and a key may have 1024; give it a \
             shorter slot, or drop it",
        );
        let host = format!("http://{}.example/", "a.".repeat(600));
        assert!(matches!(
            preparer().prepare(Request::get(host)),
            Err(PrepareError::NotAUrl { .. } | PrepareError::KeyTooLong { .. })
        ));
    }

    #[test]
    fn the_longest_url_is_still_taken() {
        let start = "http://a.example/";
        let url = start.to_owned() + &"a".repeat(URL_BYTES_MAX - start.len());
        assert!(preparer().prepare(Request::get(url.clone())).is_ok());
        assert!(preparer().prepare(Request::get(url + "a")).is_err());
    }
}
