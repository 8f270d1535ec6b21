//! References become URLs against the base of their page. Whatever the way, the answer is that of
//! [`trapline_core::parse_url`]: what most references look like is put together from the base and themselves, and all the rest
//! is parsed.

use trapline_core::{is_plain_url, parse_url};
use url::{Position, Url};

/// Resolves the references of one page.
#[derive(Clone, Debug)]
pub(crate) struct Resolver {
    base: Url,
    parts: Option<Parts>,
}

/// Where the parts of a base end, if references can be put together with it.
#[derive(Clone, Copy, Debug)]
struct Parts {
    host_end: usize,
    /// Behind the last slash of the path.
    folder_end: usize,
    path_end: usize,
    query_end: usize,
}

impl Resolver {
    /// Of a document with this address and, perhaps, a `base` as written. One that is no URL, or a `data:` or
    /// `javascript:` one, does not count.
    pub(crate) fn new(document: &Url, base: Option<&str>) -> Self {
        let base = base
            .and_then(|base| parse_url(base, Some(document)).ok())
            .filter(|base| !matches!(base.scheme(), "data" | "javascript"))
            .unwrap_or_else(|| document.clone());
        let parts = Parts::of(&base);
        Self { base, parts }
    }

    pub(crate) fn base(&self) -> &Url {
        &self.base
    }

    /// None if it is no URL.
    pub(crate) fn resolve(&self, reference: &str) -> Option<String> {
        if let Some(parts) = &self.parts
            && let Some(url) = parts.join(self.base.as_str(), reference)
        {
            return Some(url);
        }
        if is_plain_url(reference) {
            return Some(reference.to_owned());
        }
        parse_url(reference, Some(&self.base)).ok().map(String::from)
    }
}

/// A byte that stands for itself in a path, and is neither dot nor percent sign nor anything that makes a scheme or a drive.
const PATH: u8 = 1;
/// A byte that stands for itself in a query of the web.
const QUERY: u8 = 2;
/// A byte that stands for itself in a fragment.
const FRAGMENT: u8 = 4;

static USES: [u8; 256] = {
    let mut uses = [0; 256];
    let mut byte = b'!';
    while byte <= b'~' {
        let plain = byte.is_ascii_alphanumeric()
            || matches!(
                byte,
                b'-' | b'_'
                    | b'~'
                    | b'!'
                    | b'$'
                    | b'&'
                    | b'('
                    | b')'
                    | b'*'
                    | b'+'
                    | b','
                    | b';'
                    | b'='
                    | b'@'
                    | b'/'
            );
        if plain {
            uses[byte as usize] = PATH | QUERY | FRAGMENT;
        } else if matches!(byte, b'.' | b'%' | b':' | b'?') {
            uses[byte as usize] = QUERY | FRAGMENT;
        }
        byte += 1;
    }
    uses
};

fn end_of(usage: u8, bytes: &[u8], start: usize) -> usize {
    let rest = bytes[start..].iter();
    start + rest.take_while(|byte| USES[usize::from(**byte)] & usage != 0).count()
}

impl Parts {
    fn of(base: &Url) -> Option<Self> {
        if !matches!(base.scheme(), "http" | "https") {
            return None;
        }
        let before_path = base[..Position::BeforePath].len();
        // Drives are for the parser to worry about.
        if base.path().contains([':', '|']) {
            return None;
        }
        Some(Self {
            host_end: before_path,
            folder_end: before_path + base.path().rfind('/')? + 1,
            path_end: base[..Position::AfterPath].len(),
            query_end: base[..Position::AfterQuery].len(),
        })
    }

    /// The base up to where a reference begins, and the reference behind it. None says nothing.
    fn join(&self, base: &str, reference: &str) -> Option<String> {
        let bytes = reference.as_bytes();
        let mut kept = match bytes {
            [] => return Some(base[..self.query_end].to_owned()),
            [b'#', ..] => self.query_end,
            [b'?', ..] => self.path_end,
            [b'/', b'/' | b'\\', ..] => return None,
            [b'/', ..] => self.host_end,
            _ => self.folder_end,
        };
        let mut start = 0;
        while bytes[start..].starts_with(b"../") {
            start += 3;
            // There is no way up from the root.
            let folder = base[self.host_end..kept].trim_end_matches('/').len();
            let is_plain = folder + 1 == kept - self.host_end || folder == 0 && kept == self.host_end + 1;
            if !is_plain {
                return None;
            }
            kept = self.host_end
                + base[self.host_end..self.host_end + folder].rfind('/').map_or(1, |slash| slash + 1);
        }
        let mut at = end_of_path(bytes, start)?;
        if bytes.get(at) == Some(&b'?') {
            at = end_of(QUERY, bytes, at);
        }
        if bytes.get(at) == Some(&b'#') {
            at = end_of(FRAGMENT, bytes, at + 1);
        }
        if at != bytes.len() {
            return None;
        }
        let mut url = String::with_capacity(kept + bytes.len() - start);
        url.push_str(&base[..kept]);
        url.push_str(&reference[start..]);
        Some(url)
    }
}

/// Where a path ends in which nothing changes: no segment of dots, in whatever spelling.
fn end_of_path(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        at = end_of(PATH, bytes, at);
        match bytes.get(at) {
            None | Some(b'?' | b'#') => return Some(at),
            Some(b'.') if at > start && bytes[at - 1] != b'/' => at += 1,
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    #[track_caller]
    fn check(base: &str, reference: &str) -> bool {
        let base = parse_url(base, None).unwrap();
        let resolver = Resolver::new(&base, None);
        let parsed = parse_url(reference, Some(&base)).ok().map(String::from);
        assert_eq!(resolver.resolve(reference), parsed, "{reference:?} against {base}");
        resolver.parts.is_some_and(|parts| parts.join(base.as_str(), reference).is_some())
    }

    #[test]
    fn usual_references_need_no_parser() {
        let base = "https://a.example:81/b/c/d.html?e#f";
        for reference in [
            "",
            "#x",
            "#x.y:z",
            "?q=a%20b",
            "x.html",
            "x/y.z/",
            "../x.html#y",
            "../../x",
            "../../../x",
            "../",
            "/x/y?z#w",
            "/",
            "_static/a.css",
            "x.html#a.b",
            "x..y",
            "x.",
        ] {
            assert!(check(base, reference), "{reference}");
        }
        for reference in [
            ".",
            "..",
            "./x",
            "x/../y",
            "x/.",
            "//b.example/",
            "http://b.example/",
            "mailto:x",
            "x:y",
            " x",
            "x y",
            "x\\y",
            "é",
            "/..",
            "/./x",
            "%2e%2e/x",
            "a\tb",
            "#<",
            "?'",
            "^",
            "x|y",
            ".x",
            "/\\b",
            "../..",
            "../.",
            "..//x/..",
        ] {
            assert!(!check(base, reference), "{reference}");
        }
        check("https://a.example/b//c", "../x");
        check("https://a.example//", "../x");
        check("https://a.example/C:/x/", "../../y");
        check("mailto:x", "#y");
        check("file:///x/y", "../z");
        check("data:,x", "y");
    }

    #[test]
    fn a_base_that_is_none_does_not_count() {
        let document = parse_url("https://a.example/b/", None).unwrap();
        let base = |base| Resolver::new(&document, base).base().to_string();
        assert_eq!(base(None), "https://a.example/b/");
        assert_eq!(base(Some("../c/")), "https://a.example/c/");
        assert_eq!(base(Some("//b.example")), "https://b.example/");
        assert_eq!(base(Some("https://:x/")), "https://a.example/b/");
        assert_eq!(base(Some("data:,x")), "https://a.example/b/");
        assert_eq!(base(Some("javascript:x")), "https://a.example/b/");
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 20_000,
            failure_persistence: None,
            rng_seed: RngSeed::Fixed(0), // the same cases each time; another number looks further
            ..ProptestConfig::default()
        })]

        #[test]
        fn put_together_or_parsed_is_all_the_same(
            base in prop::sample::select(vec![
                "https://a.example/", "http://a.example/b/c", "https://u:p@a.example:8/b/c/?d#e", "https://a.example/b//c/./d",
                "https://a.example//b", "https://a.example/C:/d/e", "https://a.example/b%2F/c?/../x", "https://[::1]/x/y",
            ]),
            pieces in prop::collection::vec(prop::sample::select(vec![
                "/", "/", "../", "..", ".", "./", "a", "B", "c.html", "?", "#", "%2e", "%", ":", "C:", "|", "\\", " ", "\t", "é",
                "'", "\"", "<", "^", "`", "{", "&", "=", "@", "~", "http:", "https://", "x", ";", "[", "\u{7f}", "\0",
            ]), 0..8),
        ) {
            check(base, &pieces.concat());
        }
    }
}
