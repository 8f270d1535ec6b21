//! Patterns for host names: which hosts a setting is for.
//!
//! Only names: an address in a URL never matches, so that no pattern turns one address into another.

use std::fmt;
use std::str::FromStr;

/// `*` for every name, `*.example.com` for all names below `example.com`, or one name.
#[derive(Clone, PartialEq, Eq)]
pub struct HostPattern(Kind);

#[derive(Clone, PartialEq, Eq)]
enum Kind {
    Every,
    /// The suffix with its leading dot.
    Below(String),
    One(String),
}

/// Why a text is no pattern for host names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no pattern for host names: expected *, *.example.com or a name")]
pub struct HostPatternError(String);

impl HostPattern {
    /// Whether the setting is for this host, as it stands in a parsed URL.
    pub fn matches(&self, host: &str) -> bool {
        let host = plain_name(host);
        match &self.0 {
            Kind::Every => true,
            Kind::Below(suffix) => host.len() > suffix.len() && ends_with(host, suffix),
            Kind::One(name) => host.eq_ignore_ascii_case(name),
        }
    }

    /// How exactly it fits: among several that match, the most exact one counts.
    pub(crate) fn exactness(&self) -> usize {
        match &self.0 {
            Kind::Every => 0,
            Kind::Below(suffix) => suffix.len(),
            Kind::One(_) => usize::MAX,
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
        let (below, name) = match text.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        // What URLs make of the name is what hosts are compared with: lower case, international names in ASCII.
        let ascii = match url::Host::parse(plain_name(name)) {
            Ok(url::Host::Domain(ascii)) if !ascii.contains('*') => ascii,
            _ => return Err(HostPatternError(text.to_owned())),
        };
        Ok(Self(if below { Kind::Below(format!(".{ascii}")) } else { Kind::One(ascii) }))
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Every => f.write_str("*"),
            Kind::Below(suffix) => write!(f, "*{suffix}"),
            Kind::One(name) => f.write_str(name),
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
    fn what_is_no_pattern_is_an_error() {
        for text in ["", "*.", "a*b", "*.*", "www.*.com", "10.0.0.1", "[::1]", "a b", "0x7f.1"] {
            let error = text.parse::<HostPattern>().unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("{text:?} is no pattern for host names: expected *, *.example.com or a name")
            );
        }
    }
}
