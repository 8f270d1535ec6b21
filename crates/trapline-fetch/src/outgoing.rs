//! The request as it is sent: whose headers win, and which secrets may go where.

use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use url::Url;

use crate::connection::{Facts, Outgoing};
use crate::cookies::Jar;
use crate::credentials::Credentials;
use crate::dial::Protocol;
use crate::fetch_error::{FetchError, FetchErrorKind};
use crate::options::{
    FetchOptions, FetcherError, HostRule, OriginCredentials, check_shared_headers, is_own, is_secret,
};
use crate::request::FetchRequest;

/// The usual `Accept`: pages first, and anything else too.
const ACCEPT: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
const ACCEPT_ENCODING: &str = "gzip, deflate, br, zstd";

/// The longest path, with its query, that `http` has a form for.
const PATH_BYTES_MAX: usize = u16::MAX as usize - 1;

/// Headers that every request has, and what differs for some hosts.
pub(crate) struct Stationery {
    base: HeaderMap,
    /// In the order of the options' rules.
    hosts: Vec<HeaderMap>,
    credentials: Vec<(Origin, Credentials)>,
}

/// Scheme, host and port, as `https://example.com:443`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin(Arc<str>);

impl Origin {
    pub(crate) fn of(url: &Url) -> Option<Self> {
        let (scheme, host) = (url.scheme(), url.host_str()?);
        if !matches!(scheme, "http" | "https") {
            return None;
        }
        let port = url.port_or_known_default()?.to_string();
        Some(Self([scheme, "://", host, ":", &port].concat().into()))
    }

    /// Under which name its connections wait.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.0
    }
}

impl Stationery {
    pub(crate) fn new(options: &FetchOptions) -> Result<Self, FetcherError> {
        check_shared_headers(&options.headers)?;
        let mut base = HeaderMap::new();
        // Keeps the first place for the host of each request, where servers expect it.
        base.insert(header::HOST, HeaderValue::from_static(""));
        base.insert(header::USER_AGENT, user_agent(&options.user_agent_header())?);
        base.insert(header::ACCEPT, HeaderValue::from_static(ACCEPT));
        base.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(ACCEPT_ENCODING));
        replace(&mut base, &options.headers);
        let mut hosts = Vec::with_capacity(options.hosts.len());
        for HostRule { user_agent: agent, headers, .. } in &options.hosts {
            check_shared_headers(headers)?;
            let mut of_host = HeaderMap::new();
            if let Some(agent) = agent {
                of_host.insert(header::USER_AGENT, user_agent(agent)?);
            }
            replace(&mut of_host, headers);
            hosts.push(of_host);
        }
        let mut credentials = Vec::with_capacity(options.credentials.len());
        for OriginCredentials { origin, credentials: secret } in &options.credentials {
            let origin = Origin::of(origin).ok_or_else(|| FetcherError::Origin(origin.to_string()))?;
            credentials.push((origin, secret.clone()));
        }
        Ok(Self { base, hosts, credentials })
    }

    /// Whether a request can be written at all, found out before anybody is called.
    pub(crate) fn check(request: &FetchRequest) -> Result<(), FetchError> {
        if request.method == Method::CONNECT {
            return Err(refused("CONNECT is not for fetching"));
        }
        if let Some(own) = request.headers.keys().find(|name| is_own(name)) {
            return Err(refused(format!("the header `{own}` is set by the fetcher itself")));
        }
        let path_bytes = path_and_query(&request.url).len();
        if path_bytes > PATH_BYTES_MAX {
            return Err(refused(format!(
                "the URL's path has {path_bytes} bytes; {PATH_BYTES_MAX} can be sent"
            )));
        }
        Ok(())
    }

    /// Writes a request for a connection, by the host rule of this number.
    pub(crate) fn write(
        &self,
        request: &FetchRequest,
        rule: Option<usize>,
        origin: &Origin,
        jar: Option<&Jar>,
        facts: &Facts,
    ) -> Result<Request<Outgoing>, FetchError> {
        let mut headers = self.base.clone();
        if let Some(of_host) = rule.and_then(|rule| self.hosts.get(rule)) {
            replace(&mut headers, of_host);
        }
        // Whoever sits between us and a server with a wrong certificate must not learn who we are.
        let trusted = facts.tls.as_ref().is_none_or(|tls| tls.verified);
        if trusted {
            if let Some((_, secret)) = self.credentials.iter().find(|(for_origin, _)| for_origin == origin) {
                headers.insert(header::AUTHORIZATION, secret.basic());
            }
            if let Some(cookies) = jar.and_then(|jar| jar.header(&request.url)) {
                headers.insert(header::COOKIE, cookies);
            }
        }
        replace(&mut headers, &request.headers);
        if !trusted {
            let secrets: Vec<_> = headers.keys().filter(|name| is_secret(name)).cloned().collect();
            for name in secrets {
                headers.remove(name);
            }
        }
        for (name, value) in validators(request) {
            headers.insert(name, value);
        }
        let authority = authority(&request.url);
        let path =
            PathAndQuery::from_maybe_shared(Bytes::copy_from_slice(path_and_query(&request.url).as_bytes()))
                .map_err(|error| refused(format!("the URL's path cannot be sent: {error}")))?;
        let through = facts.through_proxy.as_ref().filter(|through| through.absolute_form);
        let uri = if facts.protocol == Protocol::H2 || through.is_some() {
            let mut parts = http::uri::Parts::default();
            parts.scheme = Some(if request.url.scheme() == "https" { Scheme::HTTPS } else { Scheme::HTTP });
            let parsed = Authority::from_str(authority);
            parts.authority =
                Some(parsed.map_err(|error| refused(format!("the URL's host cannot be sent: {error}")))?);
            parts.path_and_query = Some(path);
            Uri::from_parts(parts).map_err(|error| refused(error.to_string()))?
        } else {
            Uri::from(path)
        };
        if facts.protocol == Protocol::H1 {
            let host = HeaderValue::from_str(authority).map_err(|error| refused(error.to_string()))?;
            headers.insert(header::HOST, host);
        } else {
            headers.remove(header::HOST);
        }
        if let Some(authorization) = through.and_then(|through| through.authorization.clone()) {
            headers.insert(header::PROXY_AUTHORIZATION, authorization);
        }
        let mut written = Request::new(Outgoing::new(request.body.clone()));
        *written.method_mut() = request.method.clone();
        *written.uri_mut() = uri;
        *written.headers_mut() = headers;
        Ok(written)
    }
}

/// A request as one of HTTP/1.1 that may be shown to anybody: without credentials and cookies.
pub(crate) fn as_text(request: &Request<Outgoing>, body: &Bytes) -> Bytes {
    let path = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
    let mut text = format!("{} {path} HTTP/1.1\r\n", request.method()).into_bytes();
    let mut line = |name: &str, value: &[u8]| {
        for part in [name.as_bytes(), b": ", value, b"\r\n"] {
            text.extend_from_slice(part);
        }
    };
    // In HTTP/2 it is part of the URL.
    if let Some(authority) =
        request.uri().authority().filter(|_| !request.headers().contains_key(header::HOST))
    {
        line("host", authority.as_str().as_bytes());
    }
    for (name, value) in request.headers().iter().filter(|(name, _)| !is_secret(name)) {
        line(name.as_str(), value.as_bytes());
    }
    if !body.is_empty() {
        line("content-length", body.len().to_string().as_bytes());
    }
    text.extend_from_slice(b"\r\n");
    text.extend_from_slice(body);
    Bytes::from(text)
}

fn refused(what: impl Into<String>) -> FetchError {
    FetchError::new(FetchErrorKind::RequestRefused, what)
}

/// The part of a URL between its scheme and its path, without user info.
fn authority(url: &Url) -> &str {
    &url[url::Position::BeforeHost..url::Position::AfterPort]
}

fn path_and_query(url: &Url) -> &str {
    match &url[url::Position::BeforePath..url::Position::AfterQuery] {
        "" => "/",
        path => path,
    }
}

/// What a conditional request asks. Values that came from a server and do not fit a header are not sent back.
fn validators(request: &FetchRequest) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
    let value = |text: Option<&String>| text.and_then(|text| HeaderValue::from_str(text).ok());
    let validators = request.validators.as_ref();
    let etag = value(validators.and_then(|validators| validators.etag.as_ref()));
    let modified = value(validators.and_then(|validators| validators.last_modified.as_ref()));
    let etag = etag.map(|value| (header::IF_NONE_MATCH, value));
    etag.into_iter().chain(modified.map(|value| (header::IF_MODIFIED_SINCE, value)))
}

fn user_agent(text: &str) -> Result<HeaderValue, FetcherError> {
    let visible = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let value = HeaderValue::from_str(text).ok().filter(|_| visible && !text.is_empty());
    value.ok_or_else(|| FetcherError::UserAgent(text.to_owned()))
}

/// Headers in place of those of the same name.
fn replace(headers: &mut HeaderMap, by: &HeaderMap) {
    for name in by.keys() {
        headers.remove(name);
    }
    for (name, value) in by {
        headers.append(name.clone(), value.clone());
    }
}
