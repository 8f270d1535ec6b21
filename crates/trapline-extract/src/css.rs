//! The links of a style sheet: `url()` and `@import`. A scanner of CSS tokens as far as these need it, not a parser of rules.

use std::borrow::Cow;

/// How a style sheet names something.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CssLink {
    /// `@import`: another style sheet.
    Import,
    /// `url()` anywhere else.
    Url,
}

/// Calls `found` with each reference of a style sheet, or of a `style` attribute, escapes decoded, in order. References into
/// the same document (`url(#id)`) and empty ones are left out.
///
/// ```
/// use trapline_extract::css_links;
///
/// let mut found = Vec::new();
/// css_links("@import 'a.css'; b { c: url(d.png) /* url(e) */ }", |link, reference| {
///     found.push((link, reference.to_owned()));
/// });
/// assert_eq!(found.iter().map(|(_, reference)| &reference[..]).collect::<Vec<_>>(), ["a.css", "d.png"]);
/// ```
pub fn css_links(css: &str, mut found: impl FnMut(CssLink, &str)) {
    let mut tell = |link, reference: &str| {
        let reference = reference.trim_matches(is_css_space);
        if !reference.is_empty() && !reference.starts_with('#') {
            found(link, reference);
        }
    };
    let bytes = css.as_bytes();
    let mut at = 0;
    // Whether all since `@import` was space and comments.
    let mut after_import = false;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at += 2;
                at += memchr::memmem::find(&bytes[at..], b"*/").map_or(bytes.len() - at, |length| length + 2);
            }
            b'"' | b'\'' => {
                let end = end_of_string(bytes, at + 1, byte);
                if after_import {
                    tell(CssLink::Import, &unescaped(&css[at + 1..end]));
                    after_import = false;
                }
                // A line end closes a string that nothing else closes, and is not part of it.
                at = if bytes.get(end) == Some(&byte) { end + 1 } else { end };
            }
            b'\t' | b'\n' | 0x0c | b'\r' | b' ' => at += 1,
            b'@' => {
                let end = end_of_name(bytes, at + 1);
                after_import = css[at + 1..end].eq_ignore_ascii_case("import");
                at = end;
            }
            b'u' | b'U' => {
                let end = end_of_name(bytes, at);
                let is_url = css[at..end].eq_ignore_ascii_case("url") && bytes.get(end) == Some(&b'(');
                if !is_url {
                    (at, after_import) = (end.max(at + 1), false);
                    continue;
                }
                let link = if after_import { CssLink::Import } else { CssLink::Url };
                after_import = false;
                at = url(css, end + 1, |reference| tell(link, reference));
            }
            _ => {
                after_import = false;
                let end = end_of_name(bytes, at);
                at = end.max(at + 1);
                while !css.is_char_boundary(at) {
                    at += 1;
                }
            }
        }
    }
}

/// What stands in `url(…)`, from behind the parenthesis on. Answers where it ends.
fn url(css: &str, start: usize, tell: impl FnOnce(&str)) -> usize {
    let bytes = css.as_bytes();
    let mut at = start;
    while bytes.get(at).is_some_and(|byte| is_css_space(char::from(*byte))) {
        at += 1;
    }
    if let Some(&quote @ (b'"' | b'\'')) = bytes.get(at) {
        let end = end_of_string(bytes, at + 1, quote);
        if bytes.get(end) != Some(&quote) && end < bytes.len() {
            return end;
        }
        tell(&unescaped(&css[at + 1..end]));
        return (end + 1).min(bytes.len());
    }
    let reference_start = at;
    let mut is_good = true;
    let mut reference_end = None;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b')' => break,
            b'\\' => {
                at = end_of_escape(bytes, at);
                continue;
            }
            b'"' | b'\'' | b'(' => is_good = false,
            _ if is_css_space(char::from(byte)) => {
                // Only space may follow space.
                reference_end.get_or_insert(at);
                at += 1;
                continue;
            }
            _ => is_good &= reference_end.is_none(),
        }
        at += 1;
    }
    let end = at.min(bytes.len());
    if is_good {
        tell(&unescaped(&css[reference_start..reference_end.unwrap_or(end)]));
    }
    (end + 1).min(bytes.len())
}

/// Where an escape ends that begins with a backslash here: up to six digits and one space, or any one character.
fn end_of_escape(bytes: &[u8], start: usize) -> usize {
    let digits = bytes[start + 1..].iter().take(6).take_while(|byte| byte.is_ascii_hexdigit()).count();
    let mut at = start + 1 + digits;
    if digits > 0 {
        match bytes.get(at..) {
            Some([b'\r', b'\n', ..]) => at += 2,
            Some([byte, ..]) if is_css_space(char::from(*byte)) => at += 1,
            _ => {}
        }
    } else if at < bytes.len() {
        at += 1;
        // The rest of a character that is not ASCII.
        at += bytes[at..].iter().take_while(|byte| **byte & 0xc0 == 0x80).count();
    }
    at
}

fn is_css_space(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\u{c}' | '\r' | ' ')
}

/// Where a string ends: at its quote, at a line end that is not escaped, or at the end of all.
fn end_of_string(bytes: &[u8], start: usize, quote: u8) -> usize {
    let mut at = start;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'\n' | b'\r' | 0x0c => return at,
            _ if byte == quote => return at,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Where a name ends: letters, digits, `-`, `_`, all that is not ASCII, and escapes.
fn end_of_name(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | 0x80.. => at += 1,
            b'\\' if bytes.get(at + 1).is_some_and(u8::is_ascii) => at += 2,
            _ => break,
        }
    }
    at.min(bytes.len())
}

/// A string or reference with its escapes decoded.
fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut decoded = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character != '\\' {
            decoded.push(character);
            continue;
        }
        let mut number = None;
        for _ in 0..6 {
            let Some(digit) = characters.peek().and_then(|character| character.to_digit(16)) else { break };
            number = Some(number.unwrap_or(0) * 16 + digit);
            characters.next();
        }
        match number {
            Some(number) => {
                if characters.peek() == Some(&'\r') {
                    characters.next();
                    characters.next_if_eq(&'\n');
                } else {
                    characters.next_if(|next| is_css_space(*next));
                }
                decoded.push(char::from_u32(number).filter(|its| *its != '\0').unwrap_or('\u{fffd}'));
            }
            None => match characters.next() {
                // An escaped line end continues a string and is nothing.
                Some('\r') => {
                    characters.next_if_eq(&'\n');
                }
                Some('\n' | '\u{c}') | None => {}
                Some(other) => decoded.push(other),
            },
        }
    }
    Cow::Owned(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(css: &str, expected: &str) {
        let mut found = Vec::new();
        css_links(css, |link, reference| {
            found.push(if link == CssLink::Import { format!("@{reference}") } else { reference.to_owned() });
        });
        assert_eq!(found.join(" | "), expected, "{css:?}");
    }

    #[test]
    fn urls_are_found_in_every_spelling() {
        check("a{b:url(c.png)}", "c.png");
        check("a{b:URL( \n'c d.png'\t)}", "c d.png");
        check("a{b:url( c.png )}", "c.png");
        check("a{b:url(\"c)d\") url(e)}", "c)d | e");
        check("a{b:url(c\\)d\\20 e)}", "c)d e");
        check("a{b:url(\\000041\\42)}", "AB");
        check("a{b:url(\\41\t\\42 \n)}", "AB");
        check("a{b:url(a\\é b)} url(\\🐝)", "🐝");
        check("a{b:url('c\\\nd')}", "cd");
        check("a{b:url(é.png)url(ü)}", "é.png | ü");
        check("b: url(//cdn.example/x?y=1&z)", "//cdn.example/x?y=1&z");
    }

    #[test]
    fn imports_are_told_apart() {
        check(
            "@import 'a.css'; @import url(b.css) screen; @IMPORT/**/\"c\";@import url( 'd' );",
            "@a.css | @b.css | @c | @d",
        );
        check("@imports 'a'; @import x 'b'; @media 'c'; @import;'d'", "");
        check("@font-face{src:url(a.woff2) format('woff2')}", "a.woff2");
    }

    #[test]
    fn what_is_no_link_is_none() {
        check("/* url(a) @import 'b' */ c", "");
        check("a{content:'url(b)'} c{content:\"@import 'd'\"}", "");
        check("curl(a) url-x(b) -url(c) xurl(d)", "");
        check("url(#a) url() url('') url( )", "");
        check("url(a b) url(c'd) url(e(f) url(g)", "g");
    }

    #[test]
    fn what_is_unfinished_ends_with_the_text() {
        check("url(a", "a");
        check("url('a", "a");
        // The second quote begins another string.
        check("url('a\n') url(b)", "");
        check("url('a\n) url(b)", "b");
        check("'a\nurl(b)", "b");
        check("/* url(a)", "");
        check("url(a\\", "a");
        check("url(\\é) url(b)", "é | b");
        check("@import '\\", "");
        check("@", "");
        check("\\", "");
        check("\\é url(a)", "a");
    }
}
