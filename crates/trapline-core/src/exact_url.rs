//! The states of the URL Standard's parser, written out: exact for every URL, and in no hurry.
//!
//! [`parse_url`](crate::parse_url) comes here with the few URLs that the `url` crate reads otherwise than the
//! standard. User info, host and port are still read by the crate, which is exact there. Not a `Url`: this form can
//! only be read as a base and written out.

use std::borrow::Cow;
use std::fmt;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use url::{Host, ParseError, Position, Url};

const FRAGMENT: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'`');
const QUERY: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>');
const SPECIAL_QUERY: &AsciiSet = &QUERY.add(b'\'');
const PATH: &AsciiSet = &QUERY.add(b'?').add(b'^').add(b'`').add(b'{').add(b'}');

/// A URL in the parts that references are resolved against. Displayed, it is the standard's href.
#[derive(Clone)]
pub(crate) struct ExactUrl {
    scheme: String,
    /// User info, host and port, as they stand behind `//`. Empty for an empty host; None for no host at all.
    authority: Option<String>,
    /// Each segment with a `/` in front, or an opaque path, which has none.
    path: String,
    query: Option<String>,
    fragment: Option<String>,
}

impl ExactUrl {
    pub(crate) fn parse(input: &str, base: Option<&Self>) -> Result<Self, ParseError> {
        let input = without_tabs_and_newlines(input.trim_matches(|character| character <= ' '));
        if let Some((scheme, rest)) = split_scheme(&input) {
            return Self::absolute(scheme.to_ascii_lowercase(), rest, base);
        }
        let base = base.ok_or(ParseError::RelativeUrlWithoutBase)?;
        if !base.is_opaque() {
            return base.resolve(&input);
        }
        if input.starts_with('#') {
            return Ok(base.clone().with_query_and_fragment(&input));
        }
        Err(ParseError::RelativeUrlWithCannotBeABaseBase)
    }

    /// The nearest URL that the `url` crate can hold. Its `file:` URLs have no empty segments at the start of the
    /// path, and no host before a drive letter.
    pub(crate) fn nearest(mut self) -> Result<Url, ParseError> {
        if self.is_file() {
            let path = std::mem::take(&mut self.path);
            self.push_segments(path.trim_start_matches('/'));
            if self.drive().is_some() {
                self.authority = Some(String::new());
            }
        }
        #[expect(clippy::disallowed_methods, reason = "the text is exact; the crate only has to take it in")]
        Url::parse(&self.to_string())
    }

    fn absolute(scheme: String, rest: &str, base: Option<&Self>) -> Result<Self, ParseError> {
        let url = Self { scheme, authority: None, path: String::new(), query: None, fragment: None };
        let base = base.filter(|base| base.scheme == url.scheme);
        if url.is_file() {
            // What has no base reads as if it had `file:///`.
            let root = Self { authority: Some(String::new()), path: "/".to_owned(), ..url };
            return base.unwrap_or(&root).resolve(rest);
        }
        if url.is_special() {
            return match base {
                Some(base) if !rest.starts_with("//") => base.resolve(rest),
                _ => url.with_authority(rest.trim_start_matches(['/', '\\'])),
            };
        }
        if let Some(rest) = rest.strip_prefix("//") {
            return url.with_authority(rest);
        }
        Ok(match rest.strip_prefix('/') {
            Some(rest) => url.with_path(rest),
            None => url.with_opaque_path(rest),
        })
    }

    /// Resolves a reference, from behind its scheme, against this base.
    fn resolve(&self, reference: &str) -> Result<Self, ParseError> {
        let mut url = Self { fragment: None, ..self.clone() };
        if reference.is_empty() || reference.starts_with(['?', '#']) {
            return Ok(url.with_query_and_fragment(reference));
        }
        url.query = None;
        let Some(rest) = self.without_slash(reference) else {
            if url.is_file() && starts_with_drive_letter(reference) {
                url.path.clear();
            } else {
                url.shorten_path();
            }
            return Ok(url.with_path(reference));
        };
        url.path.clear();
        let Some(authority) = self.without_slash(rest) else {
            if let Some(drive) = self.drive().filter(|_| !starts_with_drive_letter(rest)) {
                url.path = format!("/{drive}");
            }
            return Ok(url.with_path(rest));
        };
        if url.is_file() {
            url.with_file_host(authority)
        } else if url.is_special() {
            url.with_authority(authority.trim_start_matches(['/', '\\']))
        } else {
            url.with_authority(authority)
        }
    }

    /// Reads user info, host, port and whatever follows.
    fn with_authority(mut self, rest: &str) -> Result<Self, ParseError> {
        let end = rest.find(|character| self.is_slash(character) || matches!(character, '?' | '#'));
        let (authority, rest) = rest.split_at(end.unwrap_or(rest.len()));
        self.authority = Some(self.normal_authority(authority)?);
        Ok(self.with_path_start(rest))
    }

    /// The authority as the crate writes it, which for schemes it does not know takes too much.
    fn normal_authority(&self, authority: &str) -> Result<String, ParseError> {
        let host = authority.rsplit_once('@').map(|(_, host)| host);
        if host == Some("") {
            return Err(ParseError::EmptyHost);
        }
        if host.unwrap_or(authority).contains('\\') {
            return Err(ParseError::InvalidDomainCharacter);
        }
        #[expect(clippy::disallowed_methods, reason = "the crate is exact about authorities")]
        let url = Url::parse(&format!("{}://{authority}/", self.scheme))?;
        Ok(url[Position::BeforeUsername..Position::BeforePath].to_owned())
    }

    /// Reads the host of a `file:` URL, which has neither user info nor port, and whatever follows.
    fn with_file_host(mut self, rest: &str) -> Result<Self, ParseError> {
        let end = rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len());
        let (host, after_host) = rest.split_at(end);
        self.authority = Some(String::new());
        if is_drive_letter(host) {
            return Ok(self.with_path(rest));
        }
        if !host.is_empty() {
            let host = Host::parse(host)?.to_string();
            self.authority = Some(if host == "localhost" { String::new() } else { host });
        }
        Ok(self.with_path_start(after_host))
    }

    /// Reads what follows an authority.
    fn with_path_start(self, rest: &str) -> Self {
        match self.without_slash(rest) {
            Some(rest) => self.with_path(rest),
            None if self.is_special() => self.with_path(rest),
            None => self.with_query_and_fragment(rest),
        }
    }

    /// Reads a path, from behind its first slash, and whatever follows.
    fn with_path(mut self, rest: &str) -> Self {
        let (path, rest) = split_path(rest);
        self.push_segments(path);
        self.with_query_and_fragment(rest)
    }

    fn with_opaque_path(mut self, rest: &str) -> Self {
        let (path, rest) = split_path(rest);
        self.path = encoded(path, CONTROLS);
        // A space at the end would be lost if what follows were ever cut off.
        if !rest.is_empty() && self.path.ends_with(' ') {
            self.path.pop();
            self.path.push_str("%20");
        }
        self.with_query_and_fragment(rest)
    }

    fn with_query_and_fragment(mut self, rest: &str) -> Self {
        let (query, fragment) =
            rest.split_once('#').map_or((rest, None), |(query, fragment)| (query, Some(fragment)));
        if let Some(query) = query.strip_prefix('?') {
            let set = if self.is_special() { SPECIAL_QUERY } else { QUERY };
            self.query = Some(encoded(query, set));
        }
        self.fragment = fragment.map(|fragment| encoded(fragment, FRAGMENT));
        self
    }

    fn push_segments(&mut self, path: &str) {
        let special = self.is_special();
        let mut segments = path.split(|character| is_slash(character, special)).peekable();
        while let Some(segment) = segments.next() {
            let segment = encoded(segment, PATH);
            match dots(&segment) {
                2 => self.shorten_path(),
                1 => {}
                _ => {
                    let drive = self.is_file() && self.path.is_empty() && is_drive_letter(&segment);
                    self.path.push('/');
                    self.path.push_str(if drive { &segment[..1] } else { &segment });
                    self.path.push_str(if drive { ":" } else { "" });
                    continue;
                }
            }
            if segments.peek().is_none() {
                self.path.push('/');
            }
        }
    }

    /// Removes the last segment, unless it is the drive letter of a `file:` URL.
    fn shorten_path(&mut self) {
        if self.drive().is_none_or(|drive| self.path.len() > 1 + drive.len()) {
            self.path.truncate(self.path.rfind('/').unwrap_or(0));
        }
    }

    /// The drive letter that the path of a `file:` URL begins with: `C:`.
    fn drive(&self) -> Option<&str> {
        let first = self.path.strip_prefix('/')?.split('/').next()?;
        (self.is_file() && is_drive_letter(first) && first.ends_with(':')).then_some(first)
    }

    fn is_opaque(&self) -> bool {
        self.authority.is_none() && !self.path.starts_with('/')
    }

    fn is_file(&self) -> bool {
        self.scheme == "file"
    }

    fn is_special(&self) -> bool {
        matches!(self.scheme.as_str(), "http" | "https" | "ws" | "wss" | "ftp" | "file")
    }

    fn is_slash(&self, character: char) -> bool {
        is_slash(character, self.is_special())
    }

    fn without_slash<'t>(&self, text: &'t str) -> Option<&'t str> {
        text.strip_prefix(|character| self.is_slash(character))
    }
}

impl fmt::Display for ExactUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.scheme)?;
        match &self.authority {
            Some(authority) => write!(f, "//{authority}")?,
            // Else the path would read as an authority.
            None if self.path.starts_with("//") => f.write_str("/.")?,
            None => {}
        }
        f.write_str(&self.path)?;
        if let Some(query) = &self.query {
            write!(f, "?{query}")?;
        }
        if let Some(fragment) = &self.fragment {
            write!(f, "#{fragment}")?;
        }
        Ok(())
    }
}

fn is_slash(character: char, special: bool) -> bool {
    character == '/' || special && character == '\\'
}

fn encoded(text: &str, set: &'static AsciiSet) -> String {
    utf8_percent_encode(text, set).to_string()
}

fn without_tabs_and_newlines(text: &str) -> Cow<'_, str> {
    let ignored = ['\t', '\n', '\r'];
    if text.contains(ignored) { Cow::Owned(text.replace(ignored, "")) } else { Cow::Borrowed(text) }
}

/// The scheme and what stands behind its colon.
fn split_scheme(input: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = input.split_once(':')?;
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    (scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.bytes().all(legal))
        .then_some((scheme, rest))
}

/// The path, and the query and the fragment with their marks.
fn split_path(rest: &str) -> (&str, &str) {
    rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()))
}

/// Of how many dots a dot segment is made, some of which may be encoded: 1 or 2, and 0 for any other segment.
pub(crate) fn dots(segment: &str) -> usize {
    let mut rest = segment;
    for dots in 0..=2 {
        if rest.is_empty() {
            return dots;
        }
        let encoded = rest.get(..3).filter(|start| start.eq_ignore_ascii_case("%2e"));
        let Some(after) = rest.strip_prefix(encoded.unwrap_or(".")) else { return 0 };
        rest = after;
    }
    0
}

/// Whether this is a letter followed by `:` or `|`.
fn is_drive_letter(text: &str) -> bool {
    matches!(text.as_bytes(), [letter, b':' | b'|'] if letter.is_ascii_alphabetic())
}

/// Whether a path begins with a whole segment that is a drive letter.
fn starts_with_drive_letter(path: &str) -> bool {
    is_drive_letter(path.split(['/', '\\', '?', '#']).next().unwrap_or_default())
}
