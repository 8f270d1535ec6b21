//! Bearer tokens: who may call, and whether only to read. Where they come from, and how one that was sent is looked up.
//!
//! Nothing here shows a token: there is no `Debug` of one, and complaints name lines.

use std::fmt;
use std::path::Path;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

/// Long enough not to be guessed, as far as a length can tell.
const LENGTH_MIN: usize = 16;

/// All tokens are compared at this length, so that nobody learns theirs from how long it takes.
const LENGTH_MAX: usize = 256;

/// What a caller may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Look.
    Read,
    /// Look and change.
    Full,
}

/// The tokens that are good.
#[derive(Clone, Default)]
pub struct Tokens {
    tokens: Vec<(Access, [u8; LENGTH_MAX])>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tokens", self.tokens.len())
    }
}

impl Tokens {
    /// Reads a text with a token a line: `full TOKEN` or `read TOKEN`. What follows a `#` at the beginning of a line is for people.
    /// `origin` is what complaints call the text.
    pub fn parse(origin: &str, text: &str) -> Result<Self, String> {
        let mut tokens = Vec::new();
        // Some editors begin files with a mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |why: &str| format!("{origin}, line {}: {why}", number + 1);
            let (access, token) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let access = match access {
                "full" => Access::Full,
                "read" => Access::Read,
                _ => return Err(wrong("write `full TOKEN` or `read TOKEN`")),
            };
            let token = token.trim();
            if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(wrong("a token is one word of visible ASCII"));
            }
            if !(LENGTH_MIN..=LENGTH_MAX).contains(&token.len()) {
                return Err(wrong(&format!(
                    "a token has {LENGTH_MIN} to {LENGTH_MAX} characters; `openssl rand -hex 32` makes a good one"
                )));
            }
            let token = padded(token.as_bytes());
            if tokens.iter().any(|(other, same)| *same == token && *other != access) {
                return Err(wrong("this token stands there as `full` and as `read`; which is it?"));
            }
            tokens.push((access, token));
        }
        if tokens.is_empty() {
            return Err(format!(
                "{origin}: there is no token in it; write `full TOKEN` or `read TOKEN`, one a line"
            ));
        }
        Ok(Self { tokens })
    }

    /// Reads a file of tokens; and a warning if others than its owner may read it too.
    pub fn read(path: &Path) -> Result<(Self, Option<String>), String> {
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read the tokens in {shown}: {error}"))?;
        let tokens = Self::parse(&shown.to_string(), &text)?;
        Ok((tokens, warning(path)))
    }

    /// These and those.
    #[must_use]
    pub fn and(mut self, more: Self) -> Self {
        self.tokens.extend(more.tokens);
        self
    }

    /// Whether there are none, so that nobody needs one.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// What the sender of these headers may do; None if it sent no token, or one that is not good.
    pub(crate) fn of_headers(&self, headers: &HeaderMap) -> Option<Access> {
        let token = sent(headers).filter(|token| token.len() <= LENGTH_MAX)?;
        self.access(token.trim_ascii())
    }

    /// Whether the sender of these headers sent a token, good or not.
    pub(crate) fn is_sent(headers: &HeaderMap) -> bool {
        sent(headers).is_some_and(|token| !token.trim_ascii().is_empty())
    }

    /// Looks at all of every token, whether one fits or not.
    fn access(&self, token: &[u8]) -> Option<Access> {
        let sent = padded(token);
        let (mut reads, mut writes) = (Choice::from(0), Choice::from(0));
        for (access, good) in &self.tokens {
            let is_full = Choice::from(u8::from(*access == Access::Full));
            let fits = sent.ct_eq(good);
            reads |= fits;
            writes |= fits & is_full;
        }
        let found = u8::conditional_select(&0, &1, reads) + u8::conditional_select(&0, &1, writes);
        match found {
            0 => None,
            1 => Some(Access::Read),
            _ => Some(Access::Full),
        }
    }
}

/// What stands where a token should be.
fn sent(headers: &HeaderMap) -> Option<&[u8]> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.as_bytes().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(token)
}

/// No token has a NUL in it, so what is filled up stays different.
fn padded(token: &[u8]) -> [u8; LENGTH_MAX] {
    let mut all = [0; LENGTH_MAX];
    all[..token.len()].copy_from_slice(token);
    all
}

#[cfg(unix)]
fn warning(path: &Path) -> Option<String> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path).ok()?.permissions().mode();
    // systemd lets the service alone read its credentials, by lists that look like rights of the group.
    let is_kept = std::env::var_os("CREDENTIALS_DIRECTORY").is_some_and(|folder| path.starts_with(folder));
    (mode & 0o077 != 0 && !is_kept).then(|| {
        format!(
            "others than its owner may read the tokens in {0}: chmod 600 {0} keeps them out",
            path.display()
        )
    })
}

#[cfg(not(unix))]
fn warning(_path: &Path) -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = "full-0123456789abcdef";
    const READ: &str = "read-0123456789abcdef";

    fn tokens() -> Tokens {
        Tokens::parse("tokens", &format!("# ours\n\nfull {FULL}\n  read\t{READ}  \n")).unwrap()
    }

    #[test]
    fn a_token_says_what_its_sender_may_do() {
        let headers = |header: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, header.parse().unwrap());
            headers
        };
        let check = |header: &str, expected: Option<Access>| {
            assert_eq!(tokens().of_headers(&headers(header)), expected, "{header}");
        };
        check(&format!("Bearer {FULL}"), Some(Access::Full));
        check(&format!("bearer {READ}"), Some(Access::Read));
        check(&format!("Bearer {FULL}x"), None);
        check(&format!("Bearer {}", &FULL[..20]), None);
        check(&format!("Basic {FULL}"), None);
        check(&format!("Bearer {}", "x".repeat(300)), None);
        check("Bearer ", None);
        check("Bearer", None);
        check("", None);
        assert_eq!(tokens().of_headers(&HeaderMap::new()), None);
        // One that is not known is another mistake than none.
        for sent in [format!("Bearer {FULL}x"), format!("bearer {}", "x".repeat(300))] {
            assert!(Tokens::is_sent(&headers(&sent)), "{sent}");
        }
        for none in [&*format!("Basic {FULL}"), "Bearer  ", "Bearer", ""] {
            assert!(!Tokens::is_sent(&headers(none)), "{none}");
        }
        assert!(!Tokens::is_sent(&HeaderMap::new()));
    }

    #[test]
    fn complaints_and_debug_show_no_token() {
        assert_eq!(format!("{:?}", tokens()), "2 tokens");
        let long = "x".repeat(257);
        for (text, why) in [
            (format!("full {FULL}\nwrite {READ}"), "tokens, line 2: write `full TOKEN` or `read TOKEN`"),
            (FULL.to_owned(), "tokens, line 1: write `full TOKEN` or `read TOKEN`"),
            (format!("full {FULL} {READ}"), "tokens, line 1: a token is one word of visible ASCII"),
            ("full".to_owned(), "tokens, line 1: a token has 16 to 256 characters"),
            ("full short".to_owned(), "tokens, line 1: a token has 16 to 256 characters"),
            (format!("full {long}"), "tokens, line 1: a token has 16 to 256 characters"),
            ("# nothing\n".to_owned(), "tokens: there is no token in it"),
        ] {
            let error = Tokens::parse("tokens", &text).unwrap_err();
            assert!(error.starts_with(why), "{error}");
            assert!(
                !error.contains("0123456789") && !error.contains("short") && !error.contains("xxx"),
                "{error}"
            );
        }
    }
}
