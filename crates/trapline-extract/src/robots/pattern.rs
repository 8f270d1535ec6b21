//! The one spelling in which paths and patterns are compared.
//!
//! RFC 9309, 2.2.2: an octet that may stand for itself everywhere (a letter, a digit, `-`, `.`, `_`, `~`) is not encoded, an
//! octet that may stand nowhere is, with upper-case digits, and the delimiters (`/`, `?`, `&` …) stay as they are written,
//! because `%2F` and `/` can be two things. In a path, `*` and `$` are written `%2A` and `%24`, so that a pattern can name
//! them: in a pattern they mean something else.

use std::borrow::Cow;

/// Which kind of byte this is, as a bit. A set of kinds tells quickly that a path cannot hold what a pattern asks for.
pub(super) fn kind(byte: u8) -> u64 {
    KINDS[byte as usize]
}

/// The bit of bytes that a path must not have as they are.
pub(super) const ODD: u64 = 1 << 63;

static KINDS: [u64; 256] = kinds();

const fn kinds() -> [u64; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let octet = byte as u8;
        table[byte] = match octet {
            b'a'..=b'z' => 1 << (octet - b'a'),
            b'0'..=b'9' => 1 << (26 + octet - b'0'),
            // Capital letters share twelve bits: they are rare.
            b'A'..=b'Z' => 1 << (36 + (octet - b'A') % 12),
            b'/' => 1 << 48,
            b'?' => 1 << 49,
            b'=' => 1 << 50,
            b'&' => 1 << 51,
            b'.' => 1 << 52,
            b'-' => 1 << 53,
            b'_' => 1 << 54,
            b'+' | b',' => 1 << 55,
            b':' | b';' => 1 << 56,
            b'~' | b'!' | b'\'' => 1 << 57,
            b'(' | b')' | b'@' => 1 << 58,
            b'[' | b']' | b'#' => 1 << 59,
            // Harmless where it belongs to an escape in the one spelling, but that must be looked at.
            b'%' => ODD | 1 << 60,
            _ => ODD,
        };
        byte += 1;
    }
    table
}

/// The kinds of bytes a path has.
pub(super) fn kinds_of(path: &[u8]) -> u64 {
    path.iter().fold(0, |set, byte| set | kind(*byte))
}

/// A path with its query in the one spelling.
pub(super) fn spell_path(path: &[u8]) -> Cow<'_, [u8]> {
    if kinds_of(path) & ODD == 0 {
        return Cow::Borrowed(path);
    }
    let mut spelled = Vec::with_capacity(path.len() + 16);
    let mut rest = path;
    while let Some((octet, after)) = next(rest) {
        rest = after;
        match octet {
            Octet::Plain(b'*') => encode(b'*', &mut spelled),
            Octet::Plain(b'$') => encode(b'$', &mut spelled),
            octet => push(octet, &mut spelled),
        }
    }
    Cow::Owned(spelled)
}

/// A pattern in the one spelling: ASCII without spaces. `*` is a wildcard, `$` at the end the end, and `$` elsewhere a dollar.
pub(super) fn spell_pattern(pattern: &[u8], spelled: &mut Vec<u8>) {
    let mut rest = pattern;
    while let Some((octet, after)) = next(rest) {
        rest = after;
        match octet {
            Octet::Plain(b'$') if !rest.is_empty() => encode(b'$', spelled),
            octet => push(octet, spelled),
        }
    }
}

enum Octet {
    /// As it stands.
    Plain(u8),
    /// From an escape.
    Escaped(u8),
}

fn next(text: &[u8]) -> Option<(Octet, &[u8])> {
    match text {
        [] => None,
        [b'%', high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
            Some((Octet::Escaped(digit(*high) << 4 | digit(*low)), rest))
        }
        [byte, rest @ ..] => Some((Octet::Plain(*byte), rest)),
    }
}

fn push(octet: Octet, spelled: &mut Vec<u8>) {
    match octet {
        Octet::Plain(byte) if is_delimiter(byte) => spelled.push(byte),
        Octet::Plain(byte) | Octet::Escaped(byte) if is_unreserved(byte) => spelled.push(byte),
        Octet::Plain(byte) | Octet::Escaped(byte) => encode(byte, spelled),
    }
}

fn encode(byte: u8, spelled: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    spelled.extend([b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
}

fn digit(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => byte - b'0',
        _ => (byte | 0x20) - b'a' + 10,
    }
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// RFC 3986's reserved characters, and a `%` that begins no escape: it cannot be told what it was to be.
fn is_delimiter(byte: u8) -> bool {
    b":/?#[]@!$&'()*+,;=%".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> String {
        String::from_utf8(spell_path(text.as_bytes()).into_owned()).unwrap()
    }

    fn pattern(text: &str) -> String {
        let mut spelled = Vec::new();
        spell_pattern(text.as_bytes(), &mut spelled);
        String::from_utf8(spelled).unwrap()
    }

    #[test]
    fn paths_and_patterns_have_one_spelling() {
        for (written, spelled) in [
            ("/foo/bar?baz=quz", "/foo/bar?baz=quz"),
            ("/foo/bar/ツ", "/foo/bar/%E3%83%84"),
            ("/foo/bar/%e3%83%84", "/foo/bar/%E3%83%84"),
            ("/foo/bar/%62%61%7A", "/foo/bar/baz"),
            ("/a%3c", "/a%3C"),
            ("/a<b|c\\d\"", "/a%3Cb%7Cc%5Cd%22"),
            ("/a b", "/a%20b"),
            ("/a%2fb", "/a%2Fb"),
            ("/a%7Eb~", "/a~b~"),
            ("/100%/%zz/%4", "/100%/%zz/%4"),
            ("/%25%32%35", "/%2525"),
            ("/\0\x7f", "/%00%7F"),
            ("", ""),
        ] {
            assert_eq!(path(written), spelled);
            assert_eq!(pattern(written), spelled);
        }
    }

    #[test]
    fn stars_and_dollars_of_a_path_are_literal() {
        assert_eq!(path("/a*b$"), "/a%2Ab%24");
        assert_eq!(path("/a%2ab%24"), "/a%2Ab%24");
        assert_eq!(pattern("/a*b$"), "/a*b$");
        assert_eq!(pattern("/a%2ab%24"), "/a%2Ab%24");
        assert_eq!(pattern("/a$b*$$"), "/a%24b*%24$");
    }

    #[test]
    fn plain_paths_are_not_copied() {
        let plain = "/aZ09-._~/?a=b&c:d;e,f+g!h'i(j)k@l[m]";
        assert!(matches!(spell_path(plain.as_bytes()), Cow::Borrowed(_)));
    }
}
