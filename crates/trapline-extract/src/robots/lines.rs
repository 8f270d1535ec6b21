//! The lines of a robots.txt: where they end, and which name and value each one has. Not what they mean together.

use memchr::memchr2;

/// A line, counted from 1, without its end.
pub(super) struct Line<'a> {
    pub(super) number: u32,
    pub(super) bytes: &'a [u8],
}

/// Lines end with LF, CR LF or CR.
pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let mut rest = text;
    let mut number = 0;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        number += 1;
        let end = memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let bytes = &rest[..end];
        rest = match &rest[end..] {
            [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
            [] => &[],
        };
        Some(Line { number, bytes })
    })
}

/// The names that we know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    UserAgent,
    Allow,
    Disallow,
    CrawlDelay,
    Sitemap,
    /// Any other: not our business, and no fault.
    Other,
}

/// What a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said<'a> {
    /// Nothing: it is empty, or a comment.
    Nothing,
    /// Nothing that could be understood.
    Nonsense,
    Pair {
        name: Name,
        misspelled: bool,
        /// Whether there was no colon.
        bare: bool,
        value: &'a [u8],
    },
}

/// Reads a line.
pub(super) fn read(line: &[u8]) -> Said<'_> {
    let end = memchr::memchr(b'#', line).unwrap_or(line.len());
    let line = trim(&line[..end]);
    if line.is_empty() {
        return Said::Nothing;
    }
    if let Some(colon) = memchr::memchr(b':', line) {
        let (name, misspelled) = known(trim(&line[..colon]));
        return Said::Pair { name, misspelled, bare: false, value: trim(&line[colon + 1..]) };
    }
    // Without a colon there must be exactly two words, and the first one of ours.
    let Some(space) = line.iter().position(|byte| is_space(*byte)) else { return Said::Nonsense };
    let value = trim(&line[space..]);
    match known(&line[..space]) {
        (Name::Other, _) => Said::Nonsense,
        _ if value.iter().any(|byte| is_space(*byte)) => Said::Nonsense,
        (name, misspelled) => Said::Pair { name, misspelled, bare: true, value },
    }
}

/// What a name stands for, and whether it is misspelled. The misspellings are those that the parser of the largest search
/// engine takes, because sites were tried with it.
fn known(name: &[u8]) -> (Name, bool) {
    const SPELLINGS: [(&str, Name, bool); 14] = [
        ("user-agent", Name::UserAgent, false),
        ("disallow", Name::Disallow, false),
        ("allow", Name::Allow, false),
        ("crawl-delay", Name::CrawlDelay, false),
        ("sitemap", Name::Sitemap, false),
        ("useragent", Name::UserAgent, true),
        ("user agent", Name::UserAgent, true),
        ("dissallow", Name::Disallow, true),
        ("dissalow", Name::Disallow, true),
        ("disalow", Name::Disallow, true),
        ("diasllow", Name::Disallow, true),
        ("disallaw", Name::Disallow, true),
        ("crawldelay", Name::CrawlDelay, true),
        ("site-map", Name::Sitemap, true),
    ];
    let found = SPELLINGS.iter().find(|(spelling, ..)| name.eq_ignore_ascii_case(spelling.as_bytes()));
    found.map_or((Name::Other, false), |(_, name, misspelled)| (*name, *misspelled))
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\x0b' | b'\x0c')
}

fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = bytes
        && is_space(*first)
    {
        bytes = rest;
    }
    while let [rest @ .., last] = bytes
        && is_space(*last)
    {
        bytes = rest;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_in_three_ways() {
        let all = lines(b"a\nb\r\nc\rd\n\r\ne\r\r").map(|line| (line.number, line.bytes.to_vec()));
        let expected = [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, ""), (6, "e"), (7, "")];
        assert_eq!(all.collect::<Vec<_>>(), expected.map(|(number, text)| (number, text.as_bytes().to_vec())));
        assert_eq!(lines(b"").count(), 0);
        assert_eq!(lines(b"\n").count(), 1);
    }

    #[test]
    fn names_and_values_are_told_apart() {
        let check = |line: &str, name, misspelled, bare, value: &str| {
            let expected = Said::Pair { name, misspelled, bare, value: value.as_bytes() };
            assert_eq!(read(line.as_bytes()), expected, "{line}");
        };
        check("User-agent: a", Name::UserAgent, false, false, "a");
        check("  USER-AGENT\t:\ta  # b", Name::UserAgent, false, false, "a");
        check("Disallow:", Name::Disallow, false, false, "");
        check("disallow:/a b ", Name::Disallow, false, false, "/a b");
        check("Disallow /a", Name::Disallow, false, true, "/a");
        check("dissallow \t /a#b", Name::Disallow, true, true, "/a");
        check("user agent: a", Name::UserAgent, true, false, "a");
        check("Sitemap: https://a.example/s", Name::Sitemap, false, false, "https://a.example/s");
        check("Host: a", Name::Other, false, false, "a");
        check(": a", Name::Other, false, false, "a");
        for (line, said) in [
            ("", Said::Nothing),
            (" \t", Said::Nothing),
            ("# User-agent: a", Said::Nothing),
            ("disallow", Said::Nonsense),
            ("disallow /a b", Said::Nonsense),
            ("<html> <body>", Said::Nonsense),
        ] {
            assert_eq!(read(line.as_bytes()), said, "{line}");
        }
    }
}
