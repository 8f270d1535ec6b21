//! The web URLs that need no parser: one look at their bytes tells that the URL Standard's would leave them as they
//! are.
//!
//! Nearly all links are of this kind, and the look takes a tenth of the parser's time. Not a parser: what is doubtful
//! in the least, spelled otherwise than the standard spells it or simply rare is left to
//! [`parse_url`](crate::parse_url).

use std::ops::Range;

/// Whether a text is a web URL that needs no parser, because [`parse_url`](crate::parse_url) would write it the same way. It says no
/// to some that are, and to all with a fragment.
///
/// ```
/// use trapline_core::is_plain_url;
///
/// assert!(is_plain_url("https://example.com/a/b?c"));
/// assert!(!is_plain_url("https://Example.com/a/../b"));
/// ```
pub fn is_plain_url(text: &str) -> bool {
    PlainUrl::read(text).is_some_and(|url| url.text().len() == text.len())
}

/// An `http` or `https` URL that is written as the parser writes it, without user info, perhaps with a fragment.
#[derive(Clone, Debug)]
pub(crate) struct PlainUrl<'u> {
    /// Without fragment.
    text: &'u str,
    host: Range<usize>,
    path_start: usize,
    /// Where the `?` is, or the end.
    path_end: usize,
}

impl<'u> PlainUrl<'u> {
    /// Reads a text. None does not say that it is no URL, or not such a one.
    pub(crate) fn read(text: &'u str) -> Option<Self> {
        let bytes = text.as_bytes();
        let (host_start, default_port) = match bytes {
            [b'h', b't', b't', b'p', b':', b'/', b'/', ..] => (7, 80),
            [b'h', b't', b't', b'p', b's', b':', b'/', b'/', ..] => (8, 443),
            _ => return None,
        };
        let host_end = end_of_host(bytes, host_start)?;
        let path_start = if bytes.get(host_end) == Some(&b':') {
            end_of_port(bytes, host_end + 1, default_port)?
        } else {
            host_end
        };
        if bytes.get(path_start) != Some(&b'/') {
            return None;
        }
        let path_end = end_of_path(bytes, path_start)?;
        let end = match bytes.get(path_end) {
            Some(b'?') => end_of(QUERY, bytes, path_end),
            _ => path_end,
        };
        // What follows `#` cannot change what stands before it.
        if !matches!(bytes.get(end), None | Some(b'#')) {
            return None;
        }
        Some(Self { text: &text[..end], host: host_start..host_end, path_start, path_end })
    }

    /// The URL without its fragment.
    pub(crate) fn text(&self) -> &'u str {
        self.text
    }

    /// With its `//`.
    pub(crate) fn scheme(&self) -> &'u str {
        &self.text[..self.host.start]
    }

    /// In lower case, without a dot at the end.
    pub(crate) fn host(&self) -> &'u str {
        &self.text[self.host.clone()]
    }

    /// With its `:`, or empty.
    pub(crate) fn port(&self) -> &'u str {
        &self.text[self.host.end..self.path_start]
    }

    /// The host, with `:port` if that is not the scheme's own.
    pub(crate) fn host_and_port(&self) -> &'u str {
        &self.text[self.host.start..self.path_start]
    }

    /// With its `/`.
    pub(crate) fn path(&self) -> &'u str {
        &self.text[self.path_start..self.path_end]
    }

    /// Without its `?`.
    pub(crate) fn query(&self) -> Option<&'u str> {
        self.text.get(self.path_end + 1..)
    }
}

/// A byte of a label of a host, in lower case.
const LABEL: u8 = 1;
/// A byte that may stand in a path, wherever it stands.
const PATH: u8 = 2;
/// A byte that may stand in a query.
const QUERY: u8 = 4;

/// What each byte is good for.
static USES: [u8; 256] = {
    let mut uses = [0; 256];
    let mut byte = b'!';
    while byte <= b'~' {
        let of_label = matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        let of_path = !matches!(
            byte,
            b'"' | b'#' | b'<' | b'>' | b'?' | b'\\' | b'^' | b'`' | b'{' | b'}' | b'.' | b'%'
        );
        let of_query = !matches!(byte, b'"' | b'#' | b'<' | b'>' | b'\'');
        uses[byte as usize] = of_label as u8 * LABEL + of_path as u8 * PATH + of_query as u8 * QUERY;
        byte += 1;
    }
    uses
};

/// Where the bytes from `start` on are no longer of this use.
fn end_of(usage: u8, bytes: &[u8], start: usize) -> usize {
    let rest = bytes[start..].iter();
    start + rest.take_while(|byte| USES[usize::from(**byte)] & usage != 0).count()
}

/// Where a host ends that stays as it is: a name that has no need of IDNA, with no label empty, or an address of version 4.
fn end_of_host(bytes: &[u8], start: usize) -> Option<usize> {
    let mut label_start = start;
    loop {
        let end = end_of(LABEL, bytes, label_start);
        let label = &bytes[label_start..end];
        if label.is_empty() || label.starts_with(b"xn--") {
            return None;
        }
        if bytes.get(end) != Some(&b'.') {
            // A number at the end makes it an address; no name of the web ends with a label that begins with a digit.
            return (label[0].is_ascii_lowercase() || is_address(&bytes[start..end])).then_some(end);
        }
        label_start = end + 1;
    }
}

/// Whether it is an address of version 4 as the parser writes it: four numbers, no zero in front of any.
fn is_address(host: &[u8]) -> bool {
    let mut at = 0;
    for place in 0..4 {
        if place > 0 {
            if host.get(at) != Some(&b'.') {
                return false;
            }
            at += 1;
        }
        match number(host, at, 3) {
            Some((number, end)) if number <= 255 => at = end,
            _ => return false,
        }
    }
    at == host.len()
}

/// Where a port ends that stays as it is: no zero in front, and not the scheme's own.
fn end_of_port(bytes: &[u8], start: usize, default: u16) -> Option<usize> {
    let (port, end) = number(bytes, start, 5)?;
    (port != u32::from(default) && port <= u32::from(u16::MAX)).then_some(end)
}

/// The number of at most so many digits that stands there, and where it ends. None if there is none, or with a zero in front.
fn number(bytes: &[u8], start: usize, digits_max: usize) -> Option<(u32, usize)> {
    let (mut number, mut end) = (0, start);
    while let Some(digit) = bytes.get(end).filter(|byte| byte.is_ascii_digit()) {
        number = number * 10 + u32::from(digit - b'0');
        end += 1;
        if end - start > digits_max {
            return None;
        }
    }
    let stays = end > start && (bytes[start] != b'0' || end == start + 1);
    stays.then_some((number, end))
}

/// Where a path ends, if nothing in it changes.
fn end_of_path(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        at = end_of(PATH, bytes, at);
        match bytes.get(at) {
            None | Some(b'?' | b'#') => return Some(at),
            // Segments of dots lead elsewhere. `%2e` is a dot.
            Some(b'.') if bytes[at - 1] == b'/' => return None,
            Some(b'%') if bytes[at - 1] == b'/' && bytes.get(at + 1) == Some(&b'2') => return None,
            Some(b'.' | b'%') => at += 1,
            Some(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;
    use crate::{
        Candidate, CanonicalRules, IdentityKey, Preparer, QueueKeyPolicy, Request, SplitUrl, Terms, parse_url,
    };

    #[test]
    fn ordinary_links_need_no_parser() {
        let check = |text: &str, parts: [&str; 4], query: Option<&str>| {
            let url = PlainUrl::read(text).unwrap_or_else(|| panic!("{text} is plain"));
            assert_eq!([url.scheme(), url.host_and_port(), url.port(), url.path()], parts, "{text}");
            assert_eq!(url.query(), query, "{text}");
        };
        check("http://a.example/", ["http://", "a.example", "", "/"], None);
        check("https://localhost/a//b/", ["https://", "localhost", "", "/a//b/"], None);
        check("http://1.2.30.255:81/a", ["http://", "1.2.30.255:81", ":81", "/a"], None);
        check("http://a.example:443/", ["http://", "a.example:443", ":443", "/"], None);
        check(
            "https://3-a.b--c.example:8080/?",
            ["https://", "3-a.b--c.example:8080", ":8080", "/"],
            Some(""),
        );
        check("http://a.example/C:/a|b.html#f", ["http://", "a.example", "", "/C:/a|b.html"], None);
        check("http://a.example/%D0%9F%2e/x.#", ["http://", "a.example", "", "/%D0%9F%2e/x."], None);
        check(
            "http://a.example/(a);'@*?b=2&a=%7e/../?^`{|}\\#\n é",
            ["http://", "a.example", "", "/(a);'@*"],
            Some("b=2&a=%7e/../?^`{|}\\"),
        );
    }

    #[test]
    fn what_is_doubtful_goes_to_the_parser() {
        for text in [
            "",
            "http://",
            "http:///",
            "http://a.example",
            "http://a.example?q",
            "ftp://a.example/",
            "HTTP://a.example/",
            " http://a.example/",
            "http:/a.example/",
            "http://A.example/",
            "http://u@a.example/",
            "http://a..example/",
            "http://a.example./",
            "http://.example/",
            "http://xn--a.example/",
            "http://a.xn--p1ai/",
            "http://a_b.example/",
            "http://1.2.3/",
            "http://1.2.3.04/",
            "http://1.2.3.256/",
            "http://1.2.3.4.5/",
            "http://a.1.2.3.4/",
            "http://1.2.3.4./",
            "http://a.0x7f/",
            "http://[::1]/",
            "http://bücher.example/",
            "http://a.example:/",
            "http://a.example:80/",
            "https://a.example:443/",
            "http://a.example:081/",
            "http://a.example:65536/",
            "http://a.example:+81/",
            "http://a.example:81",
            "http://a.example/.",
            "http://a.example/../",
            "http://a.example/a/%2e",
            "http://a.example/^",
            "http://a.example/a\\b",
            "http://a.example/a b",
            "http://a.example/a\tb",
            "http://a.example/ü",
            "http://a.example/?'",
            "http://a.example/?a\n",
            "http://a.example/ ",
        ] {
            assert!(PlainUrl::read(text).is_none(), "{text}");
        }
    }

    /// What the preparer makes of a text is what it would make of it if there were no plain URLs, whatever the profile
    /// and whatever the policy.
    fn same_as_parsed(text: &str) -> Result<(), TestCaseError> {
        let secret = IdentityKey::from_seed(3);
        let profiles = CanonicalRules::PROFILES.iter().zip(["host", "domain", "buckets:7", "host"]);
        for (profile, policy) in profiles {
            let rules: CanonicalRules = profile.parse().unwrap();
            let policy: QueueKeyPolicy = policy.parse().unwrap();
            let preparer = Preparer::new(secret).with_canonical(rules.clone()).with_queue_key(policy);
            let request = Request::get(text);
            let parsed = parse_url(text, None).ok();
            let candidate = parsed.as_ref().and_then(|url| policy.key(url)).map(|key| Candidate {
                identity: secret.identify("GET", &rules.canonicalize_str(text).unwrap(), b""),
                key,
                class: None,
                cost: None,
                terms: Terms::default(),
                improve: false,
                dont_filter: false,
                statement: None,
                request: Arc::new(request.clone()),
            });
            if let Some(plain) = PlainUrl::read(text) {
                let url = parsed.unwrap();
                prop_assert_eq!(rules.canonicalize_plain(&plain), rules.canonicalize(&url), "{:?}", text);
                prop_assert_eq!(plain.text(), &url[..url::Position::AfterQuery], "{:?}", text);
                prop_assert_eq!(Some(plain.host()), url.host_str(), "{:?}", text);
                prop_assert_eq!(SplitUrl::parse(text), Ok(SplitUrl::from(&url)), "{:?}", text);
            }
            prop_assert_eq!(preparer.prepare(request).ok(), candidate, "{:?}", text);
        }
        Ok(())
    }

    /// A link with every part that a plain URL can have, and the places where its parts begin and end.
    const LINK: &str = "http://a-b.example:81/c/d.e/?f=1&g";

    /// Every character wherever it may stand, and every two of ASCII where a part begins or ends.
    #[test]
    fn no_character_makes_a_difference_anywhere() {
        let characters = || '\0'..='\u{100}';
        for at in 0..=LINK.len() {
            let (before, after) = LINK.split_at(at);
            for character in characters() {
                same_as_parsed(&format!("{before}{character}{after}")).unwrap();
                same_as_parsed(&format!("{before}{character}{}", after.get(1..).unwrap_or_default()))
                    .unwrap();
            }
        }
        for at in ["a-b", ".example", ":81", "/c", "/d.e", "?f", "&g"].map(|part| LINK.find(part).unwrap()) {
            let (before, after) = LINK.split_at(at);
            for first in '\0'..='\u{7f}' {
                for second in '\0'..='\u{7f}' {
                    same_as_parsed(&format!("{before}{first}{second}{after}")).unwrap();
                }
            }
        }
    }

    /// Texts that are plain or nearly so.
    fn nearly_plain() -> impl Strategy<Value = String> {
        let host = prop::sample::select(vec![
            "a.example",
            "www.example.co.uk",
            "www.www2.example.com",
            "www.com",
            "localhost",
            "1.example",
            "a.1",
            "a.1x",
            "a.0x1f",
            "0x7f.1",
            "1.2.3.4",
            "1.2.3.256",
            "01.2.3.4",
            "1.2.3",
            "1.2.3.4.5",
            "-a-.-b-",
            "xn--a.example",
            "a.xn--p1ai",
            "axn--b.example",
            "a--b.example",
            "a_b.example",
            "someone.github.io",
            "a..b",
            ".",
            "a.",
            "B.example",
            "u@a.example",
        ]);
        let long = prop::sample::select(vec![0, 0, 0, 0, 1, 30, 63, 64, 250, 400]);
        let port = prop::sample::select(vec![
            "", "", "", ":", ":80", ":443", ":8080", ":08", ":65535", ":65536", ":0",
        ]);
        let piece = prop::sample::select(vec![
            "/",
            "/",
            "//",
            ".",
            "..",
            "%2e",
            "%2E",
            "%2",
            "%",
            "%7e",
            "%C3%BC",
            "%c3",
            "a",
            "b",
            "page-1.html",
            "C:",
            "c|",
            ";",
            ";jsessionid=1",
            "~",
            "'",
            "(",
            "!",
            "$",
            "*",
            "+",
            ",",
            "[",
            "]",
            "@",
            ":",
            "_",
            "-",
            "?",
            "?",
            "&",
            "&",
            "=",
            "a=1",
            "b=2",
            "utm_source=x",
            "sid=0123456789abcdef",
            "^",
            "`",
            "{",
            "|",
            "\\",
            "\"",
            "<",
            " ",
            "\t",
            "\n",
            "é",
            "\u{7f}",
            "#",
            "www.",
        ]);
        (prop::bool::ANY, long, host, port, prop::collection::vec(piece, 0..12)).prop_map(
            |(secure, long, host, port, pieces)| {
                let scheme = if secure { "https" } else { "http" };
                format!("{scheme}://{}{host}{port}/{}", "l".repeat(long), pieces.concat())
            },
        )
    }

    /// A text with a few characters added, taken away or exchanged.
    fn mutated(texts: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
        let character = prop_oneof![8 => (0..0x80u8).prop_map(char::from), 1 => any::<char>()];
        let edit = (any::<prop::sample::Index>(), prop::option::of(character), any::<bool>());
        (texts, prop::collection::vec(edit, 1..4)).prop_map(|(text, edits)| {
            let mut characters = text.chars().collect::<Vec<_>>();
            for (at, new, replace) in edits {
                let at = at.index(characters.len() + 1);
                let end = characters.len().min(at + usize::from(replace));
                characters.splice(at..end, new);
            }
            characters.into_iter().collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 20_000,
            failure_persistence: None,
            rng_seed: RngSeed::Fixed(0), // the same cases each time; another number looks further
            ..ProptestConfig::default()
        })]

        #[test]
        fn plain_or_parsed_is_all_the_same(text in nearly_plain()) {
            same_as_parsed(&text)?;
        }

        #[test]
        fn so_it_is_for_what_was_mistyped(text in mutated(nearly_plain())) {
            same_as_parsed(&text)?;
        }
    }
}
