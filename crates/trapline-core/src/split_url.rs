//! A URL with the places of its parts: what rules look at that decide about a URL without changing it.
//!
//! Made for the links of pages, of which there are fifty for each page that is fetched: most of them need no parser, and those that
//! do are parsed. Not a second parser: the parts are those that [`parse_url`] finds.

use std::fmt;
use std::ops::Range;

use url::{ParseError, Position, Url};

use crate::parse_url;
use crate::plain_url::PlainUrl;

/// An absolute URL, as the URL Standard writes it, without its fragment.
///
/// ```
/// use trapline_core::SplitUrl;
///
/// let url = SplitUrl::parse("HTTP://Example.com:80/a/../b?c#d")?;
/// assert_eq!(url.as_str(), "http://example.com/b?c");
/// assert_eq!((url.host_str(), url.path(), url.query()), (Some("example.com"), "/b", Some("c")));
/// # Ok::<(), url::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitUrl {
    text: String,
    /// Where the `:` behind the scheme is.
    scheme_end: usize,
    /// Empty if there is none.
    host: Range<usize>,
    path_start: usize,
    /// Where the `?` is, or the end.
    path_end: usize,
}

impl SplitUrl {
    /// Reads an absolute URL.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        match PlainUrl::read(text) {
            Some(plain) => Ok(Self::of_plain(&plain)),
            None => parse_url(text, None).map(|url| Self::from(&url)),
        }
    }

    fn of_plain(url: &PlainUrl<'_>) -> Self {
        let scheme = url.scheme().len();
        let host_end = scheme + url.host().len();
        let path_start = host_end + url.port().len();
        Self {
            text: url.text().to_owned(),
            scheme_end: scheme - "://".len(),
            host: scheme..host_end,
            path_start,
            path_end: path_start + url.path().len(),
        }
    }

    /// Whole, without its fragment.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// In lower case, without its `:`.
    pub fn scheme(&self) -> &str {
        &self.text[..self.scheme_end]
    }

    /// The host, if it has one. An address of version 6 stands in brackets.
    pub fn host_str(&self) -> Option<&str> {
        Some(&self.text[self.host.clone()]).filter(|host| !host.is_empty())
    }

    /// The host, with `:port` if that is not the scheme's own. Empty if there is no host.
    pub fn host_and_port(&self) -> &str {
        if self.host.is_empty() { "" } else { &self.text[self.host.start..self.path_start] }
    }

    /// With its `/`, if it has a host.
    pub fn path(&self) -> &str {
        &self.text[self.path_start..self.path_end]
    }

    /// Without its `?`. None if there is no `?`.
    pub fn query(&self) -> Option<&str> {
        self.text.get(self.path_end + 1..)
    }

    /// The whole up to its path.
    pub fn before_path(&self) -> &str {
        &self.text[..self.path_start]
    }

    /// The whole up to its query.
    pub fn before_query(&self) -> &str {
        &self.text[..self.path_end]
    }
}

impl From<&Url> for SplitUrl {
    fn from(url: &Url) -> Self {
        let end = |position| url[..position].len();
        Self {
            text: url[..Position::AfterQuery].to_owned(),
            scheme_end: url.scheme().len(),
            host: end(Position::BeforeHost)..end(Position::AfterHost),
            path_start: end(Position::BeforePath),
            path_end: end(Position::AfterPath),
        }
    }
}

impl fmt::Display for SplitUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_those_of_the_parser() {
        for text in [
            "http://a.example/",
            "https://a.example:8080/b/c.html?d=e&f#g",
            "http://127.0.0.1:8080/b",
            "https://a.example/?",
            "HTTP://User:pw@EXAMPLE.com:80/a/../b?c d#e",
            "http://[::1]:81/x?",
            "https://bücher.example/ü",
            "file:///a/b?c",
            "mailto:a@b.example?c#d",
            "data:,x",
            "x://h",
        ] {
            let parsed = parse_url(text, None).unwrap();
            let split = SplitUrl::parse(text).unwrap();
            assert_eq!(split, SplitUrl::from(&parsed), "{text}");
            assert_eq!(split.as_str(), &parsed[..Position::AfterQuery], "{text}");
            assert_eq!(split.scheme(), parsed.scheme(), "{text}");
            assert_eq!(split.host_str(), parsed.host_str().filter(|host| !host.is_empty()), "{text}");
            let port = parsed.port().map_or(String::new(), |port| format!(":{port}"));
            let host_and_port = split.host_str().unwrap_or_default().to_owned() + &port;
            assert_eq!(split.host_and_port(), host_and_port, "{text}");
            assert_eq!(split.path(), parsed.path(), "{text}");
            assert_eq!(split.query(), parsed.query(), "{text}");
            assert_eq!(split.before_path(), &parsed[..Position::BeforePath], "{text}");
            assert_eq!(split.before_query(), &parsed[..Position::AfterPath], "{text}");
        }
        assert!(SplitUrl::parse("/a").is_err());
        assert!(SplitUrl::parse("https://a b/").is_err());
    }
}
