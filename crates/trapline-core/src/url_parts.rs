//! A web URL taken apart, and what the rules of a canonical form do to its parts. Which rules there are, and in which order they go, is
//! in `canonical.rs`.

use std::borrow::Cow;

use url::{Position, Url};

use crate::exact_url::dots;
use crate::parameter_names::{ParameterNames, stands_for};
use crate::plain_url::PlainUrl;
use crate::registrable_domain;

/// A web URL taken apart, without its fragment.
pub(crate) struct Parts<'u> {
    /// With its `//`.
    scheme: &'u str,
    /// With its `@`, or empty.
    pub(crate) user_info: &'u str,
    host: &'u str,
    /// With its `:`, or empty.
    port: &'u str,
    /// With the `/` every web URL has.
    path: Cow<'u, str>,
    /// Without its `?`.
    query: Option<Cow<'u, str>>,
}

impl<'u> Parts<'u> {
    pub(crate) fn of(url: &'u Url) -> Self {
        Self {
            scheme: &url[..Position::BeforeUsername],
            user_info: &url[Position::BeforeUsername..Position::BeforeHost],
            host: &url[Position::BeforeHost..Position::AfterHost],
            port: &url[Position::AfterHost..Position::BeforePath],
            path: Cow::Borrowed(&url[Position::BeforePath..Position::AfterPath]),
            query: url.query().map(Cow::Borrowed),
        }
    }

    pub(crate) fn of_plain(url: &PlainUrl<'u>) -> Self {
        Self {
            scheme: url.scheme(),
            user_info: "",
            host: url.host(),
            port: url.port(),
            path: Cow::Borrowed(url.path()),
            query: url.query().map(Cow::Borrowed),
        }
    }

    pub(crate) fn join(&self) -> String {
        let (mark, query) = self.query.as_deref().map_or(("", ""), |query| ("?", query));
        [self.scheme, self.user_info, self.host, self.port, &self.path, mark, query].concat()
    }

    pub(crate) fn strip_www(&mut self) -> bool {
        // Asked once: what is stripped stands before the registrable domain, so that stays the same.
        if www(self.host).is_none() {
            return false;
        }
        let Some(site) = registrable_domain(self.host) else { return false };
        let before = self.host.len();
        while let Some(rest) = www(self.host)
            && rest.len() >= site.len()
        {
            self.host = rest;
        }
        self.host.len() < before
    }

    pub(crate) fn normalize_percent(&mut self) -> bool {
        let path = normal_percent(&self.path).map(|path| self.path = Cow::Owned(path));
        let query = self.query.as_deref().and_then(normal_percent);
        let query = query.map(|query| self.query = Some(Cow::Owned(query)));
        path.is_some() || query.is_some()
    }

    pub(crate) fn strip_session_path(&mut self) -> bool {
        if !self.path.contains(';') {
            return false;
        }
        let stripped = self.path.split('/').map(without_session_id).collect::<Vec<_>>().join("/");
        let changed = stripped.len() < self.path.len();
        if changed {
            self.path = Cow::Owned(stripped);
        }
        changed
    }

    /// Drops the parameters whose name and value are `unwanted`, and the query with the last of them.
    pub(crate) fn strip_query(&mut self, unwanted: impl Fn(&str, &str) -> bool) -> bool {
        let Some(query) = self.query.as_deref() else { return false };
        let unwanted = |parameter: &&str| is_parameter(parameter, &unwanted);
        if !query.split('&').any(|parameter| unwanted(&parameter)) {
            return false;
        }
        let kept = query.split('&').filter(|parameter| !unwanted(parameter)).collect::<Vec<_>>();
        self.query = (!kept.is_empty()).then(|| Cow::Owned(kept.join("&")));
        true
    }

    pub(crate) fn sort_query(&mut self) -> bool {
        let Some(query) = self.query.as_deref() else { return false };
        let tidy = query.split('&').all(|parameter| !parameter.is_empty());
        if tidy && query.split('&').map(parameter_name).is_sorted() {
            return false;
        }
        let mut parameters = query.split('&').filter(|parameter| !parameter.is_empty()).collect::<Vec<_>>();
        parameters.sort_by_key(|parameter| parameter_name(parameter));
        self.query = (!parameters.is_empty()).then(|| Cow::Owned(parameters.join("&")));
        true
    }

    pub(crate) fn strip_trailing_slash(&mut self) -> bool {
        let kept = self.path.trim_end_matches('/').len().max(1);
        let changed = kept < self.path.len();
        if changed {
            match &mut self.path {
                Cow::Borrowed(path) => *path = &path[..kept],
                Cow::Owned(path) => path.truncate(kept),
            }
        }
        changed
    }
}

/// What follows `www.`, `www2.` and the like.
fn www(host: &str) -> Option<&str> {
    host.strip_prefix("www")?
        .trim_start_matches(|character: char| character.is_ascii_digit())
        .strip_prefix('.')
}

fn parameter_name(parameter: &str) -> &str {
    parameter.split_once('=').map_or(parameter, |(name, _)| name)
}

/// Whether the name and the value of a parameter are such.
fn is_parameter(parameter: &str, such: impl Fn(&str, &str) -> bool) -> bool {
    let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
    such(name, value)
}

pub(crate) fn is_session_id(name: &str, value: &str) -> bool {
    let named = |patterns: &[&str]| patterns.iter().any(|pattern| stands_for(pattern, name));
    named(&ParameterNames::SESSION)
        || named(&["sid", "sessid", "sessionid", "session_id"]) && looks_random(value)
}

/// Long enough for a session id, and nothing but letters and digits: `sid=12` is more likely a story.
fn looks_random(value: &str) -> bool {
    value.len() >= 16 && value.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// A path segment without the session ids among its parameters. One that would become a dot segment stays
/// whole: without its parameters it would mean another path.
fn without_session_id(segment: &str) -> Cow<'_, str> {
    let session = |parameter: &&str| is_parameter(parameter, is_session_id);
    let Some((name, parameters)) = segment.split_once(';') else { return Cow::Borrowed(segment) };
    if !parameters.split(';').any(|parameter| session(&parameter)) {
        return Cow::Borrowed(segment);
    }
    let kept = parameters.split(';').filter(|parameter| !session(parameter));
    let stripped = std::iter::once(name).chain(kept).collect::<Vec<_>>().join(";");
    if dots(&stripped) > 0 { Cow::Borrowed(segment) } else { Cow::Owned(stripped) }
}

/// The text with its percent-encoding normalized, or None if it is so already.
fn normal_percent(text: &str) -> Option<String> {
    // Without an early end the compiler looks at many bytes at once.
    if !text.bytes().fold(false, |found, byte| found | (byte == b'%')) {
        return None;
    }
    let mut normal = String::new();
    let mut rest = text;
    let mut changed = false;
    while let Some(at) = rest.find('%') {
        normal.push_str(&rest[..at]);
        rest = &rest[at..];
        let Some(byte) = encoded_byte(rest.as_bytes()) else {
            normal.push('%');
            rest = &rest[1..];
            continue;
        };
        let triplet = &rest[..3];
        rest = &rest[3..];
        if is_unreserved(byte) && !completes_triplet(normal.as_bytes(), byte) {
            normal.push(char::from(byte));
            changed = true;
        } else {
            changed |= triplet.bytes().any(|byte| byte.is_ascii_lowercase());
            normal.extend(triplet.chars().map(|character| character.to_ascii_uppercase()));
        }
    }
    changed.then(|| normal + rest)
}

/// The byte that a text beginning with `%` and two hexadecimal digits encodes.
fn encoded_byte(text: &[u8]) -> Option<u8> {
    let digit = |at: usize| text.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    u8::try_from(digit(1)? * 16 + digit(2)?).ok()
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Whether a decoded digit might read as part of an encoding that a bare `%` in front of it begins: `%%34%31`
/// must not become `%41`.
fn completes_triplet(before: &[u8], digit: u8) -> bool {
    digit.is_ascii_hexdigit()
        && matches!(before, [.., b'%'] | [.., b'%', b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F'])
}
