//! The fetcher: from a request to all that came of it.
//!
//! It follows no redirects and knows no robots: who fetches decides both. It waits no longer than its limits say, and
//! whatever a server does, its answer is a value.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use percent_encoding::{CONTROLS, percent_encode};
use tokio::time::timeout_at;
use trapline_core::parse_url;
use url::{Host, Url};

use crate::address_pace::AddressPace;
use crate::bandwidth::Bandwidth;
use crate::connection::Connection;
use crate::cookies::Jar;
use crate::deadline::FAR;
use crate::dial::{Destination, DialTimes, Dialer};
use crate::exchange::{self, Head, Tail, Terms};
use crate::fetch_error::{FetchError, FetchErrorKind};
use crate::fetched::{Fetched, Oddity, Redirect, Truncated};
use crate::head::Headers;
use crate::options::{FetchOptions, FetcherError, HostRule, Limits};
use crate::outgoing::{Origin, Stationery, as_text};
use crate::pool::Pool;
use crate::request::FetchRequest;
use crate::tls::Offer;
use crate::vigil::Vigil;

/// A connection on which nothing was asked for so long may be dead without anybody knowing.
const STOOD_LONG: Duration = Duration::from_secs(1);

/// Fetches. Clones share everything: connections, cookies, pace.
///
/// Must be used on a Tokio runtime with time and network.
#[derive(Clone)]
pub struct Fetcher(Arc<Inner>);

struct Inner {
    dialer: Dialer,
    pool: Arc<Pool>,
    stationery: Stationery,
    jar: Option<Jar>,
    bandwidth: Option<Bandwidth>,
    address_pace: Option<AddressPace>,
    options: FetchOptions,
}

impl Fetcher {
    /// A fetcher with these options. Opens nothing yet.
    pub fn new(options: FetchOptions) -> Result<Self, FetcherError> {
        Ok(Self(Arc::new(Inner {
            dialer: Dialer::new(options.dial.clone())?,
            pool: Pool::new(options.pool),
            stationery: Stationery::new(&options)?,
            jar: options.cookies.map(Jar::new),
            bandwidth: options.bandwidth_bytes_per_s.map(Bandwidth::new),
            address_pace: AddressPace::new(options.address_pace),
            options,
        })))
    }

    /// Its options.
    pub fn options(&self) -> &FetchOptions {
        &self.0.options
    }

    /// What makes its connections.
    pub fn dialer(&self) -> &Dialer {
        &self.0.dialer
    }

    /// How many connections wait for another request.
    pub fn idle_connections(&self) -> usize {
        self.0.pool.len()
    }

    /// How many of them rest: those of HTTP/1.1 that have waited for a second or two take almost no memory.
    pub fn resting_connections(&self) -> usize {
        self.0.pool.resting()
    }

    /// Fetches.
    pub async fn fetch(&self, request: &FetchRequest) -> Fetched {
        let started = Instant::now();
        let mut fetched = Fetched::new(request.url.clone());
        if let Err(error) = self.try_fetch(request, started, &mut fetched).await {
            fetched.error = Some(error);
        }
        fetched.times.total = started.elapsed();
        fetched
    }

    async fn try_fetch(
        &self,
        request: &FetchRequest,
        started: Instant,
        fetched: &mut Fetched,
    ) -> Result<(), FetchError> {
        let inner = &*self.0;
        Stationery::check(request)?;
        let mut destination = Destination::of_url(&request.url)?;
        let origin = Origin::of(&request.url)
            .ok_or_else(|| FetchError::new(FetchErrorKind::RequestRefused, "the URL has no origin"))?;
        let (rule_number, rule) = inner.rule_for(&destination.host).unzip();
        let limits = limits_under(&inner.options.limits, rule);
        if let Some(rule) = rule {
            destination.lenient_tls |= rule.lenient_tls;
            destination.route = rule.route.clone();
        }
        if inner.options.http1_only || rule.is_some_and(|rule| rule.http1_only) {
            destination.offer = Offer::Http1;
        }
        let origin_name = origin.name();
        let mut vigil = Vigil::default();
        let mut terms = Terms {
            limits: &limits,
            end: started + limits.total_timeout,
            keep_raw: inner.options.keep_raw,
            bandwidth: inner.bandwidth.as_ref(),
        };
        let mut fresh_only = false;
        let mut turn = None;
        loop {
            let pooled = if fresh_only { None } else { inner.pool.take(origin_name, &limits).await };
            fetched.reused = pooled.is_some();
            let mut connection = match pooled {
                Some(connection) => connection,
                None => {
                    let (connection, times) = inner.connect(&destination, &limits, terms.end).await?;
                    (fetched.times.dns, fetched.times.connect, fetched.times.tls) =
                        (times.dns, times.connect, times.tls);
                    if let Connection::H2(stream) = &connection {
                        // Others need not wait for this response to have theirs over the same connection.
                        inner.pool.share(origin_name, stream.connection().clone());
                    }
                    connection
                }
            };
            let facts = Arc::clone(connection.facts());
            fetched.address = Some(facts.address);
            fetched.protocol = Some(facts.protocol);
            fetched.tls.clone_from(&facts.tls);
            if let Some(pace) = inner.address_pace.as_ref().filter(|_| turn.is_none()) {
                let asked = Instant::now();
                let taken = pace.turn(facts.target.ip()).await;
                let waited = asked.elapsed();
                fetched.times.waited += waited;
                terms.end += waited;
                let busy = |_| {
                    FetchError::new(
                        FetchErrorKind::AddressBusy,
                        format!("{} has too many requests waiting", facts.target.ip()),
                    )
                };
                turn = Some(taken.map_err(busy)?);
            }
            let written =
                inner.stationery.write(request, rule_number, &origin, inner.jar.as_ref(), &facts)?;
            let sent = inner.options.keep_raw.then(|| as_text(&written, &request.body));
            let mut head = match exchange::send(&mut connection, written, &terms, &mut vigil).await {
                Ok(head) => head,
                Err(error) => {
                    let stood = fetched.reused || fetched.times.waited >= STOOD_LONG;
                    let again = stood && is_stale(&connection, &error) && request.is_idempotent();
                    if let Connection::H2(stream) = &connection {
                        stream.retire();
                    }
                    if again && !fresh_only {
                        fetched.retried = true;
                        fresh_only = true;
                        continue;
                    }
                    return Err(error);
                }
            };
            let decoded_bytes_max = request.decoded_bytes_max.unwrap_or(limits.decoded_bytes_max);
            let tail =
                exchange::read_body(&mut connection, &mut head, &terms, decoded_bytes_max, &mut vigil).await;
            drop(turn);
            let whole = tail.truncated.is_none();
            inner.record(request, fetched, head, tail);
            if let (Some(raw), Some(sent)) = (&mut fetched.raw, sent) {
                raw.request = sent;
                raw.server = Some(facts.target.ip());
            }
            inner.keep(origin_name, connection, whole, fetched).await;
            return Ok(());
        }
    }
}

impl Inner {
    /// Of all rules that are for a host, the most exact one.
    fn rule_for(&self, host: &Host<String>) -> Option<(usize, &HostRule)> {
        let matching = self.options.hosts.iter().enumerate().filter(|(_, rule)| rule.hosts.is_for(host));
        matching.max_by_key(|(_, rule)| rule.hosts.exactness())
    }

    async fn connect(
        &self,
        destination: &Destination,
        limits: &Limits,
        end: Instant,
    ) -> Result<(Connection, DialTimes), FetchError> {
        let dialing = async {
            let dialed = self.dialer.dial(destination).await?;
            let times = dialed.times;
            let connection = Connection::open(dialed, limits).await;
            let connection = connection.map_err(|error| {
                FetchError::new(FetchErrorKind::Reset, format!("cannot begin HTTP: {error}"))
            })?;
            Ok((connection, times))
        };
        timeout_at(end.into(), dialing).await.unwrap_or_else(|_| {
            Err(FetchError::new(
                FetchErrorKind::TotalTimeout,
                format!("no connection to {destination} in time"),
            ))
        })
    }

    /// Writes down what came.
    fn record(&self, request: &FetchRequest, fetched: &mut Fetched, head: Head, tail: Tail) {
        let Head { status, headers, header_bytes, first_byte, oddities, .. } = head;
        let Tail { decoded, encoded_bytes, truncated, raw } = tail;
        let trusted = fetched.tls.as_ref().is_none_or(|tls| tls.verified);
        if let Some(jar) = self.jar.as_ref().filter(|_| trusted) {
            jar.store(&request.url, &headers);
        }
        fetched.status = Some(status);
        fetched.charset = headers.get("content-type").and_then(charset);
        fetched.redirect = redirect(status, &headers, &request.url);
        fetched.not_modified = status == 304 && request.validators.is_some();
        fetched.times.first_byte = Some(first_byte);
        fetched.sizes.header_bytes = header_bytes;
        fetched.sizes.encoded_bytes = encoded_bytes;
        fetched.body = decoded.whole.unwrap_or_else(|| Bytes::from(decoded.body));
        fetched.sizes.decoded_bytes = fetched.body.len() as u64;
        fetched.truncated = truncated;
        fetched.decode_fault = decoded.fault;
        fetched.headers = headers;
        fetched.oddities = oddities;
        fetched.raw = raw;
    }

    /// Keeps a connection for the next request, if it has shown nothing odd.
    async fn keep(&self, origin: &Arc<str>, connection: Connection, whole: bool, fetched: &mut Fetched) {
        let early = [Some(Truncated::DecodedBytes), Some(Truncated::EncodedBytes), Some(Truncated::Ratio)];
        match connection {
            Connection::H1(mut connection) => {
                if whole && fetched.oddities.is_empty() {
                    // Who takes it out of the pool looks again, so there is no need to here.
                    if connection.seems_fit() || connection.is_fit().await {
                        self.pool.give_back(origin, connection);
                    } else if connection.strayed() {
                        fetched.oddities.push(Oddity::StrayBytes);
                    }
                }
            }
            Connection::H2(stream) => {
                if !whole && !early.contains(&fetched.truncated) {
                    stream.retire();
                }
            }
        }
    }
}

/// Whether a connection died before the server could have seen the request.
fn is_stale(connection: &Connection, error: &FetchError) -> bool {
    match connection {
        Connection::H1(_) => {
            let tape = connection.tape();
            let nothing_came = tape.received() == 0;
            matches!(error.kind(), FetchErrorKind::Closed | FetchErrorKind::Reset) && nothing_came
                || !tape.asked()
        }
        Connection::H2(_) => {
            matches!(error.kind(), FetchErrorKind::Closed | FetchErrorKind::Reset | FetchErrorKind::H2Refused)
        }
    }
}

/// The limits for a host. Adding a time without end to a moment would panic.
fn limits_under(limits: &Limits, rule: Option<&HostRule>) -> Limits {
    let or = |own: Option<Duration>, usual: Duration| own.unwrap_or(usual).min(FAR);
    let first_byte = rule.and_then(|rule| rule.first_byte_timeout);
    let idle = rule.and_then(|rule| rule.idle_timeout);
    let total = rule.and_then(|rule| rule.total_timeout);
    Limits {
        first_byte_timeout: or(first_byte, limits.first_byte_timeout),
        idle_timeout: or(idle, limits.idle_timeout),
        total_timeout: or(total, limits.total_timeout),
        ..*limits
    }
}

/// Where a response leads.
fn redirect(status: u16, headers: &Headers, base: &Url) -> Option<Redirect> {
    if !matches!(status, 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = headers.all("location").next().filter(|value| !value.is_empty());
    let Some(target) = location.map(|value| parse_url(&reference(value), Some(base))) else {
        return Some(Redirect::Nowhere);
    };
    Some(match target {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Redirect::To(url),
        Ok(url) => Redirect::Refused(url.scheme().to_owned()),
        Err(_) => Redirect::Nowhere,
    })
}

/// A reference in a header. What is not UTF-8 names its bytes, as in browsers: who wrote `caf\xe9` means `caf%E9`.
fn reference(value: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(value) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(percent_encode(value, CONTROLS).to_string()),
    }
}

/// The `charset` of a `Content-Type`.
fn charset(content_type: &str) -> Option<String> {
    content_type.split(';').skip(1).find_map(|part| {
        let (name, value) = part.split_once('=')?;
        let value = value.trim().trim_matches(['"', '\'']);
        (name.trim().eq_ignore_ascii_case("charset") && !value.is_empty() && value.len() <= 64)
            .then(|| value.to_ascii_lowercase())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_are_resolved_and_other_schemes_named() {
        let base = parse_url("https://a.example/b/c", None).unwrap();
        let check = |status, location: &str, expected: Option<Redirect>| {
            let head = Bytes::from(format!("HTTP/1.1 {status} X\r\nLocation: {location}\r\n\r\n"));
            assert_eq!(redirect(status, &Headers::of_head(&head), &base), expected, "{location}");
        };
        let to = |url| Some(Redirect::To(parse_url(url, None).unwrap()));
        check(301, "/x", to("https://a.example/x"));
        check(302, "../x y", to("https://a.example/x%20y"));
        check(303, "//b.example", to("https://b.example/"));
        check(307, "http://169.254.169.254/latest", to("http://169.254.169.254/latest"));
        check(308, "file:///etc/passwd", Some(Redirect::Refused("file".to_owned())));
        check(302, "data:text/html,x", Some(Redirect::Refused("data".to_owned())));
        check(302, "ftp://a.example/", Some(Redirect::Refused("ftp".to_owned())));
        check(302, "javascript:alert(1)", Some(Redirect::Refused("javascript".to_owned())));
        check(302, "http://[", Some(Redirect::Nowhere));
        check(302, "", Some(Redirect::Nowhere));
        check(200, "/x", None);
        check(304, "/x", None);
        check(300, "/x", None);
        check(302, "/caf\u{e9}", to("https://a.example/caf%C3%A9"));
        let latin =
            Headers::of_head(&Bytes::from_static(b"HTTP/1.1 302 X\r\nLocation: /caf\xe9?b c\r\n\r\n"));
        assert_eq!(redirect(302, &latin, &base), to("https://a.example/caf%E9?b%20c"));
    }

    #[test]
    fn the_charset_is_what_the_header_says() {
        let check =
            |header, expected: Option<&str>| assert_eq!(charset(header).as_deref(), expected, "{header}");
        check("text/html; charset=UTF-8", Some("utf-8"));
        check("text/html;foo=bar;CHARSET = \"iso-8859-1\"", Some("iso-8859-1"));
        check("text/html", None);
        check("text/html; charset=", None);
        check("charset=utf-8", None);
    }
}
