//! Patterns over URLs: text in which `*` stands for anything, matched against the whole URL.
//!
//! Deliberately less than a regular expression: every store, SQL and Redis among them, must mean the same by
//! it, and no pattern may take long.

use std::fmt;

/// A pattern such as `http://a.example/calendar/*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// Any text is a pattern.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Whether the whole of `text` matches. Takes at most text × pattern steps, whatever the pattern.
    pub fn matches(&self, text: &str) -> bool {
        let (pattern, text) = (self.0.as_bytes(), text.as_bytes());
        let (mut p, mut t) = (0, 0);
        // Where the latest star stands and where the text it swallows ends: on a mismatch it swallows one
        // byte more. Earlier stars never need to be tried again.
        let mut star: Option<(usize, usize)> = None;
        while t < text.len() {
            if p < pattern.len() && pattern[p] == b'*' {
                star = Some((p, t));
                p += 1;
            } else if p < pattern.len() && pattern[p] == text[t] {
                p += 1;
                t += 1;
            } else if let Some((at, swallowed)) = star {
                star = Some((at, swallowed + 1));
                p = at + 1;
                t = swallowed + 1;
            } else {
                return false;
            }
        }
        pattern[p..].iter().all(|byte| *byte == b'*')
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_match_anything_and_the_rest_matches_itself() {
        let check = |pattern: &str, text: &str, expected| {
            assert_eq!(Pattern::new(pattern).matches(text), expected, "{pattern} on {text}");
        };
        check("", "", true);
        check("", "a", false);
        check("*", "", true);
        check("*", "anything", true);
        check("abc", "abc", true);
        check("abc", "abcd", false);
        check("a*c", "abbbc", true);
        check("a*c", "abbbd", false);
        check("*cal*", "http://a.example/calendar", true);
        check("a*b*c", "a-b-b-c", true);
        check("a**c", "ac", true);
        check("[a]?.", "[a]?.", true);
        check("[a]?.", "ax.", false);
        check("*ä*", "xäx", true);
    }

    #[test]
    fn hostile_patterns_stay_cheap() {
        let pattern = Pattern::new("*a".repeat(500) + "b");
        assert!(!pattern.matches(&"a".repeat(8_192)));
    }
}
