//! Names as the public API has them: crawls, queue keys, URLs. Any characters are data.

use trapline_core::Identity;
use trapline_core::{IdentityKey, KEY_BYTES_MAX, URL_BYTES_MAX};

/// The crawl of those who name none.
const DEFAULT_CRAWL: &str = "DEFAULT";

/// So long may a key be, in characters.
const KEY_CHARS_MAX: usize = 255;

/// Where the service keeps what belongs to no crawl. It is not shown, and takes no URLs.
pub(super) const OWN_CRAWL: &str = ".urlfrontier";

/// The crawl that a client means.
pub(super) fn crawl(id: &str) -> &str {
    if id.trim().is_empty() { DEFAULT_CRAWL } else { id }
}

/// The queue that a URL belongs to: the one that is given, or else what stands where a host does. None if it can have none.
pub(super) fn key<'a>(given: &'a str, url: &'a str) -> Option<&'a str> {
    let key = if given.is_empty() { host(url) } else { given };
    let is_one = !key.is_empty() && key.len() <= KEY_BYTES_MAX && key.chars().count() <= KEY_CHARS_MAX;
    is_one.then_some(key)
}

/// What the reference server takes for a host.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split([':', '/', '?', '&']).next().unwrap_or_default()
}

/// Whether a URL can be stored. It is not looked at otherwise: to this API it is text.
pub(super) fn is_url(url: &str) -> bool {
    !url.is_empty() && url.len() <= URL_BYTES_MAX
}

/// What a URL of a queue is known by: the same URL under two keys is two URLs.
pub(super) fn identity(secret: &IdentityKey, key: &str, url: &str) -> Identity {
    let mut fingerprint = Vec::with_capacity(key.len() + 8 + url.len());
    fingerprint.extend((key.len() as u64).to_be_bytes());
    fingerprint.extend(key.as_bytes());
    fingerprint.extend(url.as_bytes());
    secret.identify_fingerprint(&fingerprint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_given_or_found() {
        let check = |given: &str, url: &str, expected: Option<&str>| {
            assert_eq!(key(given, url), expected, "{given} {url}");
        };
        check("k", "http://a/", Some("k"));
        check("", "http://Host.example:80/x", Some("Host.example"));
        check("", "http://h?x", Some("h"));
        check("", "http://h&x", Some("h"));
        check("", "http://u:p@h/", Some("u"));
        check("", "h/x", Some("h"));
        check("", "http:///x", None);
        check("", "", None);
        check(
            &"é".repeat(128),
            "http://a/",
            Some(&"é".repeat(128)).filter(|_| KEY_BYTES_MAX >= 256).map(|key| &**key),
        );
        check(&"k".repeat(255), "http://a/", Some(&*"k".repeat(255)));
        check(&"k".repeat(256), "http://a/", None);
    }

    #[test]
    fn no_name_is_the_default() {
        assert_eq!((crawl(""), crawl(" \t"), crawl("a b"), crawl("_")), ("DEFAULT", "DEFAULT", "a b", "_"));
    }

    #[test]
    fn key_and_url_together_are_the_identity() {
        let secret = IdentityKey::from_seed(1);
        assert_ne!(identity(&secret, "a", "bc"), identity(&secret, "ab", "c"));
        assert_eq!(identity(&secret, "a", "bc"), identity(&secret, "a", "bc"));
    }
}
