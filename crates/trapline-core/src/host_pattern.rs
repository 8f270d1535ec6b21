//! Patterns for hosts: which ones a setting is for, and which of several settings is the more exact one.
//!
//! There is one such notion for everything that is different for some hosts: how they are fetched from, on what terms, and what their
//! robots.txt is worth. An address in a URL is matched by that address alone. Where names are looked up, no pattern is an address, so
//! that none turns one address into another.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use url::Host;

/// One name; one address (`192.0.2.1`, `2001:db8::1` or `[2001:db8::1]`); `domain:example.com` for that name and all below it;
/// `*.example.com` for all below it; any other name with `*` for any letters and `?` for one; or `*` for every name.
///
/// Of several that match a host, the more exact one counts: a name or an address before all others, then the one with more letters that
/// are given, then the one with more that are at least counted, by `?`. If that does not decide, the later one counts.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct HostPattern(Kind);

#[derive(Clone, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Every,
    /// The name with a leading dot.
    Domain(String),
    /// The same, without the name itself.
    Below(String),
    /// With wildcards somewhere else.
    Glob(String),
    One(String),
    /// As URLs write it.
    Address(String),
}

/// By what a pattern can be found; suffixes with their dot.
pub(crate) enum Place<'p> {
    One(&'p str),
    Below(&'p str),
    Domain(&'p str),
    Anywhere,
}

/// Why a text is no pattern for hosts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no pattern for hosts: expected a name, an address, domain:example.com, *.example.com, a name with * or ?, or *"
)]
pub struct HostPatternError(String);

impl HostPattern {
    /// Whether the setting is for this host, as it stands in a parsed URL.
    pub fn matches(&self, host: &str) -> bool {
        let host = plain_name(host);
        match &self.0 {
            Kind::One(name) | Kind::Address(name) => host.eq_ignore_ascii_case(name),
            _ if is_address(host) => false,
            Kind::Every => true,
            Kind::Below(suffix) => host.len() > suffix.len() && ends_with(host, suffix),
            Kind::Domain(suffix) => {
                host.eq_ignore_ascii_case(&suffix[1..])
                    || host.len() > suffix.len() && ends_with(host, suffix)
            }
            Kind::Glob(glob) => fits(glob.as_bytes(), host.as_bytes()),
        }
    }

    /// The same for a host that was read.
    pub fn is_for(&self, host: &Host<String>) -> bool {
        match host {
            Host::Domain(name) => self.matches(name),
            address => self.is_address() && self.matches(&address.to_string()),
        }
    }

    /// Whether it is one address.
    pub fn is_address(&self) -> bool {
        matches!(self.0, Kind::Address(_))
    }

    /// How exactly it fits: among several that match, the most exact one counts.
    pub fn exactness(&self) -> (usize, usize) {
        match &self.0 {
            Kind::Every => (0, 0),
            // Its dot is not always there.
            Kind::Domain(suffix) => (suffix.len() - 1, 0),
            Kind::Below(suffix) => (suffix.len(), 0),
            Kind::Glob(glob) => {
                let count = |is: fn(&u8) -> bool| glob.bytes().filter(is).count();
                (count(|byte| !b"*?".contains(byte)), count(|byte| *byte == b'?'))
            }
            Kind::One(_) | Kind::Address(_) => (usize::MAX, 0),
        }
    }

    /// By what it can be found.
    pub(crate) fn place(&self) -> Place<'_> {
        match &self.0 {
            Kind::One(name) | Kind::Address(name) => Place::One(name),
            Kind::Below(suffix) => Place::Below(suffix),
            Kind::Domain(suffix) => Place::Domain(suffix),
            Kind::Every | Kind::Glob(_) => Place::Anywhere,
        }
    }

    /// Of all that are for a host, the most exact one.
    pub fn most_exact<'p, T>(all: impl Iterator<Item = (&'p Self, T)>, host: &str) -> Option<T> {
        let matching = all.filter(|(pattern, _)| pattern.matches(host));
        // The last of those that are equal.
        matching.max_by_key(|(pattern, _)| pattern.exactness()).map(|(_, of)| of)
    }
}

/// A name without the dot of the root, which names the same machines.
pub fn plain_name(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

/// Whether a host of a URL is an address. No name ends with a number.
fn is_address(host: &str) -> bool {
    host.starts_with('[')
        || host.ends_with(|last: char| last.is_ascii_digit()) && host.parse::<Ipv4Addr>().is_ok()
}

fn ends_with(host: &str, suffix: &str) -> bool {
    let (host, suffix) = (host.as_bytes(), suffix.as_bytes());
    host[host.len() - suffix.len()..].eq_ignore_ascii_case(suffix)
}

/// Whether a name is what a text with wildcards says. Takes at most as many steps as the product of their lengths.
fn fits(glob: &[u8], name: &[u8]) -> bool {
    let (mut at, mut place) = (0, 0);
    // Where the last `*` was, and how much of the name it stands for.
    let mut star: Option<(usize, usize)> = None;
    while place < name.len() {
        match glob.get(at) {
            Some(b'*') => {
                star = Some((at, place));
                at += 1;
            }
            Some(byte) if *byte == b'?' || byte.eq_ignore_ascii_case(&name[place]) => {
                at += 1;
                place += 1;
            }
            _ => match &mut star {
                Some((stands, end)) => {
                    *end += 1;
                    (at, place) = (*stands + 1, *end);
                }
                None => return false,
            },
        }
    }
    glob[at..].iter().all(|byte| *byte == b'*')
}

impl FromStr for HostPattern {
    type Err = HostPatternError;

    fn from_str(text: &str) -> Result<Self, HostPatternError> {
        let text = text.trim();
        let wrong = || HostPatternError(text.to_owned());
        if text == "*" {
            return Ok(Self(Kind::Every));
        }
        if let Some(address) = address(text) {
            return Ok(Self(Kind::Address(address.to_string())));
        }
        if let Some(domain) = text.strip_prefix("domain:") {
            return name(domain).map(|name| Self(Kind::Domain(format!(".{name}")))).ok_or_else(wrong);
        }
        if !text.contains(['*', '?']) {
            return name(text).map(|name| Self(Kind::One(name))).ok_or_else(wrong);
        }
        if let Some(name) = text.strip_prefix("*.").and_then(name) {
            return Ok(Self(Kind::Below(format!(".{name}"))));
        }
        glob(text).map(|glob| Self(Kind::Glob(glob))).ok_or_else(wrong)
    }
}

/// What URLs make of a name is what hosts are compared with: lower case, international names in ASCII.
fn name(text: &str) -> Option<String> {
    match Host::parse(plain_name(text)) {
        Ok(Host::Domain(ascii)) if !ascii.contains(['*', '?']) && !ascii.starts_with('.') => Some(ascii),
        _ => None,
    }
}

/// A name with wildcards, written likewise. Where they stand there are no letters but those of ASCII: nobody knows what the others
/// would become.
fn glob(text: &str) -> Option<String> {
    let label = |label: &str| match label.contains(['*', '?']) {
        false => name(label),
        true => {
            let usual = |byte: u8| byte.is_ascii_alphanumeric() || b"-_*?".contains(&byte);
            label.bytes().all(usual).then(|| label.to_ascii_lowercase())
        }
    };
    // Of an address nothing is left out.
    let of_address = text.contains('.')
        && text.bytes().all(|byte| byte.is_ascii_digit() || b".*?".contains(&byte))
        && text.bytes().any(|byte| byte.is_ascii_digit());
    let labels: Option<Vec<_>> =
        plain_name(text).split('.').map(|text| numbers(text).or_else(|| label(text))).collect();
    let glob = labels?.join(".");
    (!of_address && glob != "*" && name(&glob.replace(['*', '?'], "a")).is_some()).then_some(glob)
}

/// A label of digits, which by itself would be an address.
fn numbers(label: &str) -> Option<String> {
    (!label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit())).then(|| label.to_owned())
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
            Kind::Domain(suffix) => write!(f, "domain:{}", &suffix[1..]),
            Kind::Below(suffix) => write!(f, "*{suffix}"),
            Kind::One(name) | Kind::Address(name) | Kind::Glob(name) => f.write_str(name),
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
        check(
            "domain:Example.com",
            &["example.com", "example.com.", "www.example.com", "a.b.EXAMPLE.com"],
            &["notexample.com", ".example.com", "example.com.evil", "com"],
        );
        check("bücher.example", &["xn--bcher-kva.example"], &["bucher.example"]);
    }

    #[test]
    fn wildcards_stand_anywhere() {
        check(
            "shop-*.example",
            &["shop-1.example", "shop-.example", "SHOP-a.b.example"],
            &["shop.example", "shop-1.example.org"],
        );
        check("www.*.com", &["www.a.com", "www.a.b.com."], &["www.com", "a.com"]);
        check("?.example", &["a.example"], &["ab.example", ".example"]);
        check("*cdn*", &["cdn", "mycdn.example", "a.cdns.b"], &["c.dn"]);
        check("*.*", &["a.b", "a.b.c"], &["localhost"]);
        check("a*.bücher.example", &["ab.xn--bcher-kva.example"], &[]);
        check("*.1*.example", &["a.10.example"], &["a.20.example"]);
        let long = format!("{}b", "a".repeat(60));
        check("*a*a*a*a*a*c", &[], &[&long]);
    }

    #[test]
    fn an_address_is_matched_by_itself_alone_however_it_is_written() {
        check("192.0.2.1", &["192.0.2.1"], &["192.0.2.10", "1.192.0.2.1", "[::ffff:c000:201]"]);
        for text in ["2001:DB8:0::1", "[2001:db8::1]"] {
            check(text, &["[2001:db8::1]"], &["[2001:db8::2]", "2001", "db8"]);
        }
        check("::ffff:192.0.2.1", &["[::ffff:c000:201]"], &["192.0.2.1"]);
        check("*", &["x1"], &["192.0.2.1", "[::1]"]);
        check("*1*", &["x1"], &["192.0.2.1", "[::1]"]);
        for (pattern, host, expected) in [
            ("192.0.2.1", "http://192.0.2.1/", true),
            ("::1", "http://[::1]:8080/", true),
            ("*", "http://[::1]/", false),
            ("*", "http://192.0.2.1/", false),
            ("*", "http://a.example/", true),
        ] {
            let url = crate::parse_url(host, None).unwrap();
            let pattern = pattern.parse::<HostPattern>().unwrap();
            assert_eq!(pattern.is_for(&url.host().unwrap().to_owned()), expected, "{pattern} {host}");
            assert_eq!(pattern.matches(url.host_str().unwrap()), expected, "{pattern} {host}");
        }
    }

    /// The order of exactness, from the least to the most; each is for the host.
    #[test]
    fn the_more_exact_one_counts_wherever_it_stands() {
        let exact = [
            "*",
            "*.org",
            "*shop*a*",
            "domain:example.org",
            "*.example.org",
            "?*.example.org",
            "domain:a.example.org",
            "*.?.example.org",
            "*.a.example.org",
            "*p.a.example.org",
            "?hop.a.example.org",
            "shop.a.example.org",
        ];
        let patterns = exact.map(|text| text.parse::<HostPattern>().unwrap());
        let found = |patterns: &[(usize, &HostPattern)]| {
            let all = patterns.iter().map(|(place, pattern)| (*pattern, *place));
            HostPattern::most_exact(all, "shop.a.example.org")
        };
        for (place, exact) in patterns.iter().enumerate() {
            for (other, less) in patterns[..place].iter().enumerate() {
                assert_eq!(found(&[(other, less), (place, exact)]), Some(place), "{exact} before {less}");
                assert_eq!(found(&[(place, exact), (other, less)]), Some(place), "{exact} before {less}");
            }
            // Of two that are equally exact, the later one.
            assert_eq!(found(&[(100, exact), (101, exact)]), Some(101), "{exact}");
        }
        let elsewhere = HostPattern::most_exact([(&patterns[11], 1)].into_iter(), "b.example");
        assert_eq!(elsewhere, None);
        let [one, two] = ["s*.example", "*s.example"].map(|text| text.parse::<HostPattern>().unwrap());
        let tie = |all: [(&HostPattern, u8); 2]| HostPattern::most_exact(all.into_iter(), "sos.example");
        assert_eq!((tie([(&one, 1), (&two, 2)]), tie([(&two, 2), (&one, 1)])), (Some(2), Some(1)));
    }

    #[test]
    fn what_is_shown_can_be_read_again() {
        for (text, shown) in [
            ("*", "*"),
            ("A.example.", "a.example"),
            ("*.A.example", "*.a.example"),
            ("domain:B\u{fc}.example", "domain:xn--b-eha.example"),
            ("Shop-*.?.example", "shop-*.?.example"),
            ("[2001:DB8::1]", "[2001:db8::1]"),
        ] {
            let pattern: HostPattern = text.parse().unwrap();
            assert_eq!(pattern.to_string(), shown);
            assert_eq!(shown.parse::<HostPattern>().unwrap(), pattern);
        }
    }

    #[test]
    fn what_is_no_pattern_is_an_error() {
        for text in [
            "",
            "*.",
            ".example.org",
            "domain:",
            "domain:*.org",
            "domain:127.0.0.1",
            "*.10.0.0.1",
            "192.0.2.*",
            "1?.0.0.1",
            "bü*.example",
            "a*/b",
            "a..*",
            "[::1",
            "[10.0.0.1]",
            "[::1]:80",
            "a b",
            "a b*",
            "0x7f.1",
        ] {
            let error = text.parse::<HostPattern>().unwrap_err();
            assert_eq!(
                error.to_string(),
                format!(
                    "{text:?} is no pattern for hosts: expected a name, an address, domain:example.com, *.example.com, a name \
                     with * or ?, or *"
                )
            );
        }
    }
}
