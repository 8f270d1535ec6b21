//! Text as readers see it: character references decoded, on its way to the words that a SimHash is made of.

use super::attributes::normalized;
use super::scanner::REFERENCE_BYTES_MAX;
use crate::simhash::Words;

/// Adds a run of text that may hold references. The scanner cuts none of them in two, unless it is too long to be one.
pub(crate) fn add_text(text: &str, words: &mut Words) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(length) = memchr::memchr(b'&', &bytes[at..]) {
        let start = at + length;
        words.text(&text[at..start]);
        let run = bytes[start + 1..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'#');
        let mut end = start + 1 + run.count();
        if end - start > REFERENCE_BYTES_MAX {
            words.text(&text[start..end]);
            at = end;
            continue;
        }
        if bytes.get(end) == Some(&b';') {
            end += 1;
        }
        match &text[start..end] {
            "&nbsp;" | "&lt;" | "&gt;" | "&quot;" | "&amp;" => words.text(" "),
            reference => words.text(&htmlize::unescape(reference)),
        }
        at = end;
    }
    words.text(&text[at..]);
}

/// A text that was collected whole, such as a title: references decoded, space collapsed, cut at so many bytes. Whether it
/// was cut comes with it.
pub(crate) fn collapsed(raw: &str, bytes_max: usize, has_references: bool) -> (String, bool) {
    let plain = normalized(raw);
    let decoded = if has_references { htmlize::unescape(plain) } else { plain };
    let mut text = String::new();
    for word in decoded.split_ascii_whitespace() {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word);
        if text.len() > bytes_max {
            text.truncate(text.floor_char_boundary(bytes_max));
            return (text, true);
        }
    }
    (text, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SimHash;

    #[test]
    fn references_are_characters() {
        let check = |html: &str, plain: &str| {
            let mut words = Words::new(1000);
            add_text(html, &mut words);
            assert_eq!(words.finish(), SimHash::of_text(plain), "{html}");
        };
        check("caf&eacute; &amp; bar&nbsp;x", "café bar x");
        check("caf&#233; &#xE9;t&eacute;", "café été");
        check("a&b; c&nosuch;d", "a b c nosuch d");
        check("&", "");
        check(&format!("&{};x", "z".repeat(100)), &format!("{} x", "z".repeat(100)));
    }

    #[test]
    fn titles_are_collapsed_and_cut() {
        assert_eq!(collapsed(" a\r\n b &amp;amp; c ", 100, true), ("a b &amp; c".to_owned(), false));
        assert_eq!(collapsed("ééé ééé", 9, false), ("ééé é".to_owned(), true));
        assert_eq!(collapsed("", 9, false), (String::new(), false));
    }
}
