//! Patterns for hosts: which ones a setting is for.
//!
//! An address in a URL is matched by that address alone. Where names are looked up, no pattern is an address, so that none turns one
//! address into another.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use url::Host;

/// `*` for every name, `*.example.com` for all names below `example.com`, one name, or one address: `192.0.2.1`, `2001:db8::1` or
/// `[2001:db8::1]`.
#[derive(Clone, PartialEq, Eq)]
pub struct HostPattern(Kind);

#[derive(Clone, PartialEq, Eq)]
enum Kind {
    Every,
    /// The suffix with its leading dot.
    Below(String),
    One(String),
    /// As URLs write it.
    Address(String),
}

/// Why a text is no pattern for hosts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no pattern for hosts: expected *, *.example.com, a name or an address")]
pub struct HostPatternError(String);

impl HostPattern {
    /// Whether the setting is for this host, as it stands in a parsed URL.
    pub fn matches(&self, host: &str) -> bool {
        let host = plain_name(host);
        match &self.0 {
            Kind::Every => true,
            Kind::Below(suffix) => host.len() > suffix.len() && ends_with(host, suffix),
            Kind::One(name) | Kind::Address(name) => host.eq_ignore_ascii_case(name),
        }
    }

    /// The same for a host that was read.
    pub(crate) fn is_for(&self, host: &Host<String>) -> bool {
        match host {
            Host::Domain(name) => self.matches(name),
            address => self.is_address() && self.matches(&address.to_string()),
        }
    }

    pub(crate) fn is_address(&self) -> bool {
        matches!(self.0, Kind::Address(_))
    }

    /// How exactly it fits: among several that match, the most exact one counts.
    pub(crate) fn exactness(&self) -> usize {
        match &self.0 {
            Kind::Every => 0,
            Kind::Below(suffix) => suffix.len(),
            Kind::One(_) | Kind::Address(_) => usize::MAX,
        }
    }
}

/// A name without the dot of the root, which names the same machines.
pub(crate) fn plain_name(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

fn ends_with(host: &str, suffix: &str) -> bool {
    let (host, suffix) = (host.as_bytes(), suffix.as_bytes());
    host[host.len() - suffix.len()..].eq_ignore_ascii_case(suffix)
}

impl FromStr for HostPattern {
    type Err = HostPatternError;

    fn from_str(text: &str) -> Result<Self, HostPatternError> {
        let text = text.trim();
        if text == "*" {
            return Ok(Self(Kind::Every));
        }
        if let Some(address) = address(text) {
            return Ok(Self(Kind::Address(address.to_string())));
        }
        let (below, name) = match text.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        // What URLs make of the name is what hosts are compared with: lower case, international names in ASCII.
        let ascii = match Host::parse(plain_name(name)) {
            Ok(Host::Domain(ascii)) if !ascii.contains('*') => ascii,
            _ => return Err(HostPatternError(text.to_owned())),
        };
        Ok(Self(if below { Kind::Below(format!(".{ascii}")) } else { Kind::One(ascii) }))
    }
}

/// An address as people write it.
fn address(text: &str) -> Option<Host<String>> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match (text.parse::<Ipv4Addr>(), bare.unwrap_or(text).parse::<Ipv6Addr>()) {
        (Ok(address), _) => Some(Host::Ipv4(address)),
        (_, Ok(address)) => Some(Host::Ipv6(address)),
        _ => None,
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Every => f.write_str("*"),
            Kind::Below(suffix) => write!(f, "*{suffix}"),
            Kind::One(name) | Kind::Address(name) => f.write_str(name),
        }
    }
}

impl fmt::Debug for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, matching: &[&str], others: &[&str]) {
        let pattern: HostPattern = pattern.parse().unwrap();
        for host in matching {
            assert!(pattern.matches(host), "{pattern} should match {host}");
        }
        for host in others {
            assert!(!pattern.matches(host), "{pattern} should not match {host}");
        }
    }

    #[test]
    fn patterns_match_whole_labels() {
        check("*", &["a", "a.example", "localhost"], &[]);
        check(
            "Example.com.",
            &["example.com", "example.com.", "EXAMPLE.com"],
            &["www.example.com", "example.com.evil"],
        );
        check(
            "*.example.com",
            &["www.example.com", "a.b.example.com."],
            &["example.com", "notexample.com", ".example.com"],
        );
        check("bücher.example", &["xn--bcher-kva.example"], &["bucher.example"]);
    }

    #[test]
    fn an_address_is_matched_by_itself_alone_however_it_is_written() {
        check("192.0.2.1", &["192.0.2.1"], &["192.0.2.10", "1.192.0.2.1", "[::ffff:c000:201]"]);
        for text in ["2001:DB8:0::1", "[2001:db8::1]"] {
            check(text, &["[2001:db8::1]"], &["[2001:db8::2]", "2001", "db8"]);
        }
        check("::ffff:192.0.2.1", &["[::ffff:c000:201]"], &["192.0.2.1"]);
        for (pattern, host, expected) in [
            ("192.0.2.1", "http://192.0.2.1/", true),
            ("::1", "http://[::1]:8080/", true),
            ("*", "http://[::1]/", false),
            ("*", "http://192.0.2.1/", false),
            ("*", "http://a.example/", true),
        ] {
            let url = trapline_core::parse_url(host, None).unwrap();
            let host = url.host().unwrap().to_owned();
            assert_eq!(pattern.parse::<HostPattern>().unwrap().is_for(&host), expected, "{pattern} {host}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_an_error() {
        for text in [
            "",
            "*.",
            "a*b",
            "*.*",
            "www.*.com",
            "*.10.0.0.1",
            "[::1",
            "[10.0.0.1]",
            "[::1]:80",
            "a b",
            "0x7f.1",
        ] {
            let error = text.parse::<HostPattern>().unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("{text:?} is no pattern for hosts: expected *, *.example.com, a name or an address")
            );
        }
    }
}
